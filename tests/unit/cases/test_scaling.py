"""Scaling: which measurements belong together, efficiencies, records that are read again, the picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.core.errors import CaseError
from fluxloom.machine.ranks import RankSpec
from fluxloom_lab.bench import scaling
from fluxloom_lab.bench.base import cells_from_text
from fluxloom_lab.bench.scaling import (
    Point,
    ScalingBench,
    ScalingOptions,
    points_of,
    read_points,
    strong_rows,
    weak_rows,
)
from fluxloom_lab.bench.scaling_plot import draw_scaling

Call = Callable[..., SimpleNamespace]


def point(ranks: int, cells: int, milliseconds: float, device: str = "cpu") -> Point:
    return Point(device, "some processor", ranks, cells, milliseconds, {"rms": 0.5})


def record(ranks: int, cells: int, milliseconds: float, device: str = "cpu") -> dict[str, Any]:
    """Return a record of the benchmark airfoil."""
    metrics = {"ms_per_iteration": milliseconds, "rms": 0.25, "transport": "host", "cells": cells}
    return {
        "case": "airfoil", "device": device, "device_name": f"{ranks} x chip", "ranks": ranks, "gpus": 0,
        "sizes": {"cells": cells}, "copy_gbs": 10.0 * ranks, "metrics": metrics,
    }  # fmt: skip


def test_strong_rows() -> None:
    """Series have one size and one device; the fewest ranks are the measure, be it one or not."""
    points = [
        point(4, 1000, 3.0), point(1, 1000, 10.0), point(2, 1000, 5.0), point(2, 8000, 30.0), point(8, 8000, 10.0),
        point(1, 1000, 1.0, "cuda"), point(1, 3000, 1.0),
    ]  # fmt: skip
    rows = strong_rows(points)
    assert [(row["cells"], row["ranks"]) for row in rows] == [(1000, 1), (1000, 2), (1000, 4), (8000, 2), (8000, 8)]
    assert [row["efficiency"] for row in rows] == pytest.approx([1.0, 1.0, 10 / 12, 1.0, 0.75])
    assert [row["speedup"] for row in rows] == pytest.approx([1.0, 2.0, 10 / 3, 2.0, 6.0])
    assert all(row["rms"] == 0.5 for row in rows)


def test_weak_rows() -> None:
    """Loads may differ a little, which the efficiency makes good."""
    points = [point(1, 1000, 10.0), point(2, 2020, 12.5), point(4, 8000, 11.0), point(2, 3000, 1.0)]
    points.append(point(4, 4000, 9.0))
    rows = weak_rows(points)
    assert [(row["ranks"], row["cells_a_rank"]) for row in rows] == [(1, 1000), (2, 1000), (4, 1000)]
    assert [row["efficiency"] for row in rows] == pytest.approx([1.0, 0.8 * 1.01, 10 / 9])


def test_records_are_read_again(tmp_path: Path, fluxloom: Call) -> None:
    names = []
    for number, item in enumerate([record(1, 720_000, 8.0), record(2, 720_000, 5.0), record(2, 1_440_000, 9.0)]):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(item))
        names.append(str(path))
    assert [(p.ranks, p.cells, p.milliseconds) for p in read_points(names)] == [
        (1, 720_000, 8.0), (2, 720_000, 5.0), (2, 1_440_000, 9.0)
    ]  # fmt: skip
    first, picture = tmp_path / "s.json", tmp_path / "new" / "s.png"
    done = fluxloom("bench", "scaling", "--from", ",".join(names), "--json", first, "--draw", picture)
    assert done.code == 0, done.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(first.read_text())
    assert (found["ranks"], found["device"], found["device_name"]) == (2, "cpu", "2 x chip")
    assert [row["efficiency"] for row in found["metrics"]["strong"]] == pytest.approx([1.0, 0.8])
    assert [row["efficiency"] for row in found["metrics"]["weak"]] == pytest.approx([1.0, 8 / 9])
    again = points_of(found)
    assert strong_rows(again) == found["metrics"]["strong"]
    assert weak_rows(again) == found["metrics"]["weak"]


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    for text, message in (
        ("", "other.json: not the record of a benchmark, which is JSON"),
        ("{", "not the record of a benchmark, which is JSON"),
        ("[]", "not the record of a benchmark, as `fluxloom bench airfoil"),
        ('{"a": 1}', "not the record of a benchmark, as `fluxloom bench airfoil"),
        (json.dumps({"case": "lbm"}), "a record of 'lbm'"),
        (json.dumps(record(1, 1000, 1.0) | {"metrics": {}}), "not the record of a benchmark: 'ms_per_iteration' is"),
        (json.dumps(record(1, 1000, 1.0) | {"metrics": 3}), "not the record of a benchmark: "),
        (json.dumps(record(1, 1000, 0.0)), "ranks, cells and times must be positive"),
        (json.dumps(record(1, 1000, 1.0)), "there is no series"),
    ):
        other.write_text(text)
        with pytest.raises(CaseError, match=message):
            ScalingBench().run(ScalingOptions(sources=str(other)), print)
    with pytest.raises(CaseError, match="cannot be read"):
        read_points([str(tmp_path / "none.json")])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", ","), "--from ',': name records"),
        (("--from", "."), ".: cannot be read: Is a directory"),
        (("--draw", "s.jpg"), "--draw s.jpg: the picture is a PNG file"),
        (("--draw", "/dev/null/s.png"), "/dev/null/s.png: the directory /dev/null cannot be made"),
        (("--json", "/dev/null/s.json"), "/dev/null/s.json: the directory /dev/null cannot be made"),
        (("--strong", "1k,many"), "--strong 'many' (allowed: 72k"),
        (("--strong", "1e30"), "--strong '1e30' (allowed: 72k"),
        (("--strong", ","), "--strong ',': give sizes"),
        (("--strong", "1k", "--weak", "-1"), "--weak '-1' (allowed: 72k"),
        (("--ranks", "1,100000"), "100,000 ranks on the "),
        (("--ranks", "1,x"), "--ranks '1,x': give two or more numbers of ranks"),
        (("--device", "cpus"), "unknown device 'cpus'; did you mean 'cpu'?"),
        (("--device", "reference"), "--device reference: it runs on one rank only"),
        (("--shares", "1,2"), "the benchmark scaling has no option --shares"),
        (("--transport", "tcp"), "--transport 'tcp' (allowed: auto, host, mpi, nccl, peer)"),
    ],
)
def test_what_cannot_be_measured(
    words: tuple[str, ...], message: str, fluxloom: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything runs, so that nothing measured is lost."""
    def start(*_: object, **__: object) -> int:
        raise AssertionError("a benchmark was started")

    monkeypatch.setattr(scaling, "start", start)
    done = fluxloom("bench", "scaling", *words)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("parts", [(1, 0), (0, 1), (1, 1)])
def test_picture(parts: tuple[int, int], tmp_path: Path) -> None:
    points = [point(p, 1000 * q, 10.0 * q / p + 0.5) for p in (1, 2, 4, 8) for q in (1, 2, 4, 8)]
    rows = strong_rows(points) if parts[0] else [], weak_rows(points) if parts[1] else []
    draw_scaling(tmp_path / "a.png", *rows)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number of ranks runs once for each mesh, on devices with numbers, with the options that were given."""
    runs: list[tuple[list[RankSpec], list[str]]] = []

    def start(specs: list[RankSpec], words: list[str], *, quiet: bool) -> int:
        assert quiet
        runs.append((list(specs), words))
        i, j = (int(part) for part in words[words.index("--cells") + 1].split(","))
        found = record(len(specs), 3 * i * j, 3e-3 * i * j / len(specs), "cuda")
        Path(words[words.index("--json") + 1]).write_text(json.dumps(found))
        return 0

    monkeypatch.setattr(scaling, "start", start)
    options = ScalingOptions(device="cuda", ranks="4,1,2", strong="2k,1k", weak="1k", iterations=7, transport="nccl",
                           partition="rcb", fused=False)  # fmt: skip
    found = ScalingBench().run(options, lambda _: None)
    assert [len(specs) for specs, _ in runs] == [1, 2, 4, 1, 2, 4, 2, 4]  # 1k on one rank is known
    assert runs[2][0] == [RankSpec(f"cuda:{k}") for k in range(4)]
    text = " ".join(runs[0][1])
    assert all(part in text for part in ("--partition rcb", "--transport nccl", "--iterations 7", "--no-fused"))
    assert [row["efficiency"] for row in found.metrics["strong"]] == pytest.approx([1.0] * 6)
    assert [row["efficiency"] for row in found.metrics["weak"]] == pytest.approx([1.0] * 3)
    assert (found.gpus, found.ranks, found.copy_gbs) == (4, 4, 10.0)
    monkeypatch.setattr(scaling, "start", lambda *_, **__: 7)
    with pytest.raises(CaseError, match="on 1 rank ended with status 7"):
        ScalingBench().run(options, lambda _: None)


@pytest.mark.parametrize(("text", "cells"), [("46M", 46e6), ("46.08M", 46.08e6), ("12000", 12e3), ("1g", 1e9)])
def test_any_number_of_cells(text: str, cells: float) -> None:
    i, j = cells_from_text(text, "")
    assert 3 * i * j == pytest.approx(cells, rel=0.01)
    assert j / i == pytest.approx(1.5, rel=0.1)


@pytest.mark.parametrize("text", ["999", "-5k", "nanM", "infM", "M", "1e", "0k"])
def test_no_number_of_cells(text: str) -> None:
    with pytest.raises(CaseError, match="another number from 1k"):
        cells_from_text(text, "")
