"""The benchmark ``ib``: its bodies, its tables, and what it refuses. No time is asserted."""

from __future__ import annotations

import json
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import CaseError, SolverError
from fluxloom_lab.bench.base import Record
from fluxloom_lab.bench.boxes import immersed, immersed_alone, immersed_coupled
from fluxloom_lab.bench.boxes.immersed import ImmersedBench, ImmersedOptions
from fluxloom_lab.bench.boxes.immersed_coupled import Coupled, coupled
from fluxloom_lab.bench.rounds import Rounds
from fluxloom_lab.cli.bench import _run
from fluxloom_lab.problems.immersed_bodies import filling, nested


def little(**named: Any) -> Any:
    """Return options for little work."""
    usual: dict[str, Any] = {"threads": 1, "iterations": 2, "rounds": 1}
    return ImmersedOptions(**usual | named)


def silent(_: str) -> None:
    """Say nothing."""


# ---------------------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("count", [8, 100, 2500, 20_011])
def test_nested_surfaces(count: int, dimensions: int) -> None:
    """There are exactly as many markers as wanted, about a cell apart, and their supports stay inside the box."""
    shape, body = nested(count, dimensions)
    x = body.markers.positions
    assert (len(x), len(shape)) == (count, dimensions)
    assert x.min() >= 2.0
    assert np.all(x.max(axis=0) <= np.array(shape) - 3.0)
    radii = np.linalg.norm(x - 0.5 * (np.array(shape) - 1), axis=1)
    shells = np.unique(np.round(radii, 6))
    assert len(shells) == 1 or np.diff(shells).min() > 3.9
    assert count < 100 or np.median(body.markers.measures) == pytest.approx(1.0, rel=0.1)


def test_few_markers_make_no_surface() -> None:
    with pytest.raises(CaseError, match="at least eight markers"):
        nested(7, 2)


@pytest.mark.parametrize(
    ("shape", "diameter", "counts"),
    [((200, 640), 20.0, (2, 4)), ((800, 2560), 40.0, (8, 16)), ((96, 96, 96), 10.0, (8, 17))],
)
def test_fillings(shape: tuple[int, ...], diameter: float, counts: tuple[int, int]) -> None:
    """The bodies fill what they should, as nearly as whole ones can, and do not touch."""
    volume = np.pi * diameter**2 / 4 if len(shape) == 2 else np.pi * diameter**3 / 6
    for fraction, count in zip((0.005, 0.01), counts, strict=True):
        found = filling(shape, fraction, 0.005)
        assert (found.diameter, len(found.bodies)) == (diameter, count)
        assert abs(found.fraction - fraction) <= 0.5 * volume / np.prod(shape)
        assert found.markers == sum(len(body.markers.positions) for body in found.bodies)
        centres = [body.markers.positions.mean(axis=0) for body in found.bodies]
        assert min(dist(a, b) for a, b in combinations(centres, 2)) >= diameter + 3.9


def test_the_number_of_bodies_grows_with_the_box() -> None:
    assert [len(filling(shape, 0.01, 0.005).bodies) for shape in ((400, 1280), (800, 2560), (1600, 5120))] == [
        4,
        16,
        65,
    ]


def test_boxes_that_are_too_small() -> None:
    with pytest.raises(CaseError, match=r"a box of 10000 cells is too small for 0\.5 % of bodies"):
        filling((100, 100), 0.005, 0.005)
    with pytest.raises(CaseError, match="do not fit"):
        filling((300, 300), 0.9, 0.5)


# ---------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("carrier", ["rows", pytest.param("addresses", marks=pytest.mark.long)])
def test_markers_alone(monkeypatch: pytest.MonkeyPatch, carrier: str) -> None:
    """Every step of the boundary is counted in one of the parts, whichever way values are carried."""
    monkeypatch.setattr(immersed_alone, "CARRIERS", {carrier: immersed_alone.CARRIERS[carrier]})
    record = ImmersedBench().run(little(methods="alone", nodes="40", lattice="d2q9"), silent).as_json()
    (row,) = record["metrics"]["alone"]
    assert (row["carrier"], row["markers"], row["dimensions"]) == (carrier, 40, 2)
    assert all(row[f"{part}_us"] > 0 for part in ("interpolation", "forcing", "spreading", "other", "redo", "whole"))
    assert 0 < row["support_cells"] < row["cells"]
    assert row["ns_per_marker"] == pytest.approx(1e3 * row["whole_us"] / 40)
    assert record["sizes"] == {"cells": row["cells"], "n": 40}
    assert record["seconds"] == pytest.approx(1e-6 * row["whole_us"])


@pytest.mark.parametrize("mode", ["local", pytest.param("field", marks=pytest.mark.long)])
def test_flows_with_bodies(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A row without bodies, then one for each mode; their ratio is to that one."""
    monkeypatch.setattr(immersed_coupled, "FRACTIONS", (0.01,))
    monkeypatch.setattr(immersed_coupled, "MODES", (mode,))
    kept: list[Record] = []
    record = ImmersedBench().run(little(methods="coupled", cells="128,128", keep=kept.append), silent).as_json()
    rows = record["metrics"]["coupled"]
    assert [one.metrics["complete"] for one in kept] == [False] * 2
    assert "complete" not in record["metrics"]
    assert [row["mode"] for row in rows] == ["no bodies", mode]
    assert [row.get("error") for row in rows] == [None] * 2
    assert [(row["bodies"], row["diameter"], row["markers"]) for row in rows] == [(0, None, 0), (2, 10.0, 62)]
    for row in rows:
        assert row["ratio"] == pytest.approx(row["mlups"] / rows[0]["mlups"])
    assert (record["case"], record["precision"], record["sizes"]) == ("ib", "float64", {"cells": 16384, "n": 62})
    assert {"interpolate", "force_marker", "spread"} <= {row["name"] for row in record["loops"]}


def test_a_mode_that_is_refused_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(context: Any, choice: Any, shape: Any, bodies: Any, mode: str, *rest: Any) -> Coupled:
        if mode == "field":
            raise SolverError("no field here\nand more")
        return Coupled(None, immersed_coupled._about(shape, bodies, mode) | {"mlups": 2.0 if mode else 4.0})  # type: ignore[arg-type]

    monkeypatch.setattr(immersed_coupled, "_timed", timed)
    choice = immersed._choice(little())
    rows = [one.row for one in coupled(little().context(), choice, [(200, 640)], 1, 1, little(), silent)]
    assert [row["mode"] for row in rows] == ["no bodies", "local", "field", "local", "field"]
    assert [row.get("ratio") for row in rows[1:3]] == [0.5, None]
    assert [row.get("error") for row in rows[1:3]] == [None, "no field here"]


def test_a_run_that_is_stopped_leaves_its_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each row is in the file as soon as it is measured; the file says that there should be more."""
    file, seen = tmp_path / "ib.json", []

    def timed(context: Any, choice: Any, shape: Any, bodies: Any, mode: str, *rest: Any) -> Coupled:
        seen.append(json.loads(file.read_text()) if file.exists() else None)
        if len(seen) == 3:
            raise KeyboardInterrupt
        row = immersed_coupled._about(shape, bodies, mode) | {"mlups": 2.0 if mode else 4.0, "copy_gbs": 7.0}
        return Coupled(Rounds([0.5], [], [], 2), row)

    monkeypatch.setattr(immersed_coupled, "_timed", timed)
    with pytest.raises(KeyboardInterrupt):
        _run("ib", ImmersedBench(), little(methods="coupled", cells="640,200"), (), file)
    assert [None if one is None else [row["mode"] for row in one["metrics"]["coupled"]] for one in seen] == [
        None, ["no bodies"], ["no bodies", "local"],
    ]  # fmt: skip
    left = json.loads(file.read_text())
    assert (left["metrics"]["complete"], left["seconds"], left["sizes"]["cells"]) == (False, 0.5, 128_000)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_parts_and_sizes() -> None:
    counts, boxes, choice = immersed._counts, immersed._boxes, immersed._choice(little())
    assert (choice.lattice, choice.precision) == ("D2Q9", "float64")
    assert counts(little(), False)[-1] == 100_000
    assert counts(little(full=True), False)[-1] == counts(little(), True)[-1] == 1_000_000
    assert counts(little(nodes="100,2.5k"), True) == [100, 2500]
    assert boxes(little(), choice, False) == [(200, 640), (400, 1280), (800, 2560)]
    assert boxes(little(), choice, True)[-2:] == [(1400, 5120), (3072, 10240)]
    assert boxes(little(cells="64,32"), choice, True) == [(32, 64)]
    assert boxes(little(cells="64"), choice, True) == [(64, 64)]
    cube = immersed._choice(little(lattice="d3q19"))
    assert boxes(little(), cube, True)[-1] == (320, 320, 320)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"methods": "alon"}, "--methods 'alon'; did you mean 'alone'?"),
        ({"nodes": "100,4"}, "at least eight"),
        ({"nodes": "many"}, "numbers of markers"),
        ({"lattice": "d2q9,d3q19"}, "ib measures one flow"),
        ({"device": "reference"}, "nothing to time"),
    ],
)
def test_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError) as caught:
        ImmersedBench().run(little(**named), silent)
    assert message in str(caught.value)
