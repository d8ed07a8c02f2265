"""The table of formats and sizes: its record, its options, its peers. No time is asserted."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import CaseError, DeviceUnavailable
from fluxloom.device.bandwidth import Bandwidth
from fluxloom_lab.bench.linear import spmv_table
from fluxloom_lab.bench.linear.spmv_table import THESIS_BYTES, SpmvTableBench, SpmvTableOptions
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.peers import spmv_peers
from fluxloom_lab.problems.matrices import tet_dual


def no_mkl(*_: object) -> None:
    raise DeviceUnavailable("no MKL here")


@pytest.mark.usefixtures("optimised")
def test_record(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = iter(range(20, 60, 2))
    meter = SimpleNamespace(measure=lambda _: Bandwidth(float(next(copies)), 1.0, 1.0, 1, 1, 15.0))
    monkeypatch.setattr(spmv_table, "meter_for", lambda *_: meter)
    small = SimpleNamespace(measure=lambda: Bandwidth(60.0, 1.0, 1.0, 1, 1, 50.0))
    asked: list[int] = []
    monkeypatch.setattr(spmv_table, "meter_of_size", lambda _, __, footprint: asked.append(footprint) or small)
    monkeypatch.setattr(spmv_table, "mkl_library", no_mkl)
    told: list[str] = []
    record = SpmvTableBench().run(SpmvTableOptions(cells="0.001,0.002", rounds=2, threads=1), told.append)
    rows = record.metrics["table"]
    formats = ["csr", "ell", "sliced", "sliced_one_by_one", "row_grouped", "scipy"]
    assert [row["format"] for row in rows] == 4 * formats
    assert [row["order"] for row in rows] == 2 * (6 * ["mesh"] + 6 * ["reordered"])
    assert told[-1] == "left out: no MKL here"
    assert len(told) == 5
    copy_of = {(row["rows"], row["order"]): c for row, c in zip(rows[::6], (21.0, 25.0, 29.0, 33.0), strict=True)}
    for row in rows:
        entries = tet_dual(5 * (1000 if row["rows"] == rows[0]["rows"] else 2000), 1).nnz
        seconds, copy = 1e-3 * row["ms"], copy_of[row["rows"], row["order"]]
        assert row["gflops"] == pytest.approx(2e-9 * entries / seconds)
        assert row["useful_gbs"] == pytest.approx((12 * entries + 20 * row["rows"]) / seconds / 1e9)
        assert row["percent_of_copy"] == pytest.approx(100 * row["useful_gbs"] / copy)
        assert row["percent_of_bound"] == pytest.approx(100 * THESIS_BYTES * row["rows"] / seconds / 1e9 / copy)
        nbytes, read = 12 * entries + 16 * row["rows"], 12 * entries + 8 * row["rows"]
        least = max(nbytes / (copy + 1.0), read / max(15.0, (copy + 1.0) / 2))
        assert row["percent_of_read_bound"] == pytest.approx(1e-4 * least / row["ms"])
        assert row["percent_of_same_size_bound"] == pytest.approx(1e-4 * read / 50.0 / row["ms"])
        assert nbytes in asked
    assert [row.lanes for row in record.loops[:5]] == [1, 8, 8, 1, 1]
    assert record.metrics["best_percent_of_bound"] >= record.metrics["percent_of_bound_at_most_rows"] > 0


def test_registered() -> None:
    assert isinstance(benches()["spmv-table"], SpmvTableBench)


@pytest.mark.parametrize("text", ["many", "0", "-1", "1000", "0.1,,2"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(CaseError, match="in millions"):
        spmv_table._sizes(text, fl.Context("cpu"))


def test_sizes() -> None:
    assert spmv_table._sizes("", fl.Context("cpu"))[-1] == 1.6
    assert spmv_table._sizes("0.5M, 2", fl.Context("cpu")) == (0.5, 2.0)


def test_the_reference_device_is_not_timed() -> None:
    with pytest.raises(CaseError, match="reference"):
        SpmvTableBench().run(SpmvTableOptions(device="reference"), lambda _: None)


def test_without_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(spmv_peers.ctypes, "CDLL", nothing)
    with pytest.raises(DeviceUnavailable, match="pip install mkl"):
        spmv_peers.mkl_library(tet_dual(300, 1), np.ones(12), 1)


def test_mkl() -> None:
    matrix = tet_dual(3000, 1)
    x = np.random.default_rng(0).random(matrix.indptr.size - 1)
    try:
        peer = spmv_peers.mkl_library(matrix, x, 1)
    except DeviceUnavailable:
        pytest.skip("MKL is not installed")
    result, *_ = peer.run()  # type: ignore[misc]
    assert np.allclose(result, matrix @ x, rtol=1e-13)
    assert peer.name == "MKL, 1 thread"
