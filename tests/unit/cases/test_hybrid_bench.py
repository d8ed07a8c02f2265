"""The benchmark of several devices in one process."""

from __future__ import annotations

import json

import pytest

from fluxloom.core.errors import CaseError, DeviceUnavailable
from fluxloom.linalg.mixed.balance import KINDS
from fluxloom_lab.bench.hybrid import HybridBench, HybridOptions, rows_from_text
from fluxloom_lab.bench.registry import benches


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BUDGET", 1), ("_SOLVES", 1)):
        monkeypatch.setattr(f"fluxloom_lab.bench.hybrid.{name}", value)


@pytest.mark.long
def test_record() -> None:
    told: list[str] = []
    options = HybridOptions(devices="cpu:1, cpu:1", strong="3k,9k", rounds=1)
    record = json.loads(json.dumps(benches()["hybrid"].run(options, told.append).as_json()))
    metrics = record["metrics"]
    assert record["device"] == "cpu"
    assert record["gpus"] == 0
    assert metrics["devices"] == ["cpu:1", "cpu:1"]
    assert min(metrics["axpy_gbs_each"]) > 0
    sizes = [row["rows"] for row in metrics["solves"]]
    assert record["sizes"]["n"] == max(sizes)
    assert [(row["rows"], row["kernel"]) for row in metrics["kernels"]] == [(n, kind) for n in sizes for kind in KINDS]
    for row in metrics["kernels"]:
        assert row["pays"] == (row["speed_up"] > 1)
        assert row["speed_up"] == pytest.approx(row["fastest_ms"] / row["split_ms"])
    last = metrics["kernels"][-1]
    assert record["seconds"] == pytest.approx(1e-3 * min(last["split_ms"], last["fastest_ms"]))
    for row in metrics["solves"]:
        assert abs(row["alone_iterations"] - row["split_iterations"]) <= 1  # sums of other rows, rounded otherwise
        assert row["alone_iterations"] > 5
        assert row["difference"] < 1e-4
    assert len(metrics["trace"]) == len(sizes) * len(KINDS) * 3
    (gathered,) = metrics["gathered"]
    assert gathered["rows"] == max(sizes)
    assert abs(gathered["iterations"] - metrics["solves"][-1]["alone_iterations"]) <= 1
    expected = 100 * (gathered["gather_ms"] + gathered["scatter_ms"]) / gathered["solve_ms"]
    assert gathered["overhead_percent"] == pytest.approx(expected)
    assert "gather, solve, scatter: " in told[-1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (HybridOptions(devices="cpu:1"), CaseError, "name them, as in --devices cuda:0,cpu:12"),
        (HybridOptions(), CaseError, "compares devices"),
        (HybridOptions(devices="cpu:1,cpu:1", threads=2), CaseError, "from --devices alone"),
        (HybridOptions(devices="cpu:1,cpu:1", strong="many"), CaseError, "rows 'many': a number like 200k"),
        (HybridOptions(devices="cpu:1,gpu"), DeviceUnavailable, "unknown device 'gpu'"),
    ],
)
def test_wrong_options(options: HybridOptions, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        HybridBench().run(options, print)


@pytest.mark.parametrize(("text", "rows"), [("200k", 200_000), ("12.8M", 12_800_000), (" 1000 ", 1000)])
def test_rows(text: str, rows: int) -> None:
    assert rows_from_text(text) == rows


@pytest.mark.parametrize("text", ["", "k", "10", "1e9", "-5k", "nan", "inf", "3G"])
def test_no_rows(text: str) -> None:
    with pytest.raises(CaseError, match="from 100 to 200M"):
        rows_from_text(text)
