"""The benchmark of compressible flow: its record, the table of loops over faces, and what it says of wrong options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import Bandwidth
from fluxloom.dsl.context import Context
from fluxloom.mesh import box2d, box3d, write
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom_lab.bench.flows.compressible import CompressibleBench
from fluxloom_lab.bench.flows.compressible_domain import CompressibleOptions, disturbed, flow_on, wall_of
from fluxloom_lab.bench.flows.compressible_table import _Table
from fluxloom_lab.bench.registry import benches


class Memory:
    """A memory of 10 GB/s."""

    def measure(self, repeats: int = 5) -> Bandwidth:
        return Bandwidth(10.0, 10.0, 10.0, 1, 1, 10.0, 10.0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rounds be of moments, and the memory be known: what they measure is not looked at."""
    for module in ("rounds", "flows.compressible_table"):
        monkeypatch.setattr(f"fluxloom_lab.bench.{module}.meter_for", lambda *_: Memory())
    monkeypatch.setattr("fluxloom_lab.bench.flows.compressible_table._ROUND_SECONDS", 1e-4)


def record(**options: Any) -> dict[str, Any]:
    return CompressibleBench().run(CompressibleOptions(rounds=1, threads=1, **options), lambda _: None).as_json()


def test_record() -> None:
    """Bytes are those of the loops, times those of the rounds."""
    told: list[str] = []
    options = CompressibleOptions(cells="4,3,2", rounds=2, threads=1, iterations=2)
    found = benches()["compressible"].run(options, told.append).as_json()
    metrics = found["metrics"]
    assert found["sizes"] == {"cells": 24}
    assert (found["model"], metrics["flux"], metrics["limiter"]) == ("euler", "roe", "venkatakrishnan")
    assert metrics["ns_per_cell_stage"] == pytest.approx(1e9 * found["seconds"] / (2 * 3 * 24))
    assert metrics["percent_of_copy"] == pytest.approx(10.0 * metrics["useful_gbs"])
    assert metrics["useful_gbs"] == pytest.approx(metrics["bytes_per_cell_stage"] / metrics["ns_per_cell_stage"])
    assert metrics["bytes_per_cell_stage"] <= metrics["bytes_per_cell_stage_unfused"]
    assert metrics["clipped_faces"] == metrics["clipped_cells"] == 0
    assert metrics["residual_of_mass"] > 0.0
    assert sum(row["calls"] for row in found["loops"] if "through_faces" in row["name"]) == 2 * 3
    assert (found["precision"], metrics["loops"]) == ("float64", "faces")
    assert len([line for line in told if "ns a cell and stage" in line]) == 2


@pytest.mark.long
def test_models_fluxes_limiters() -> None:
    """Kernels that run as Python need no compiler."""
    python: dict[str, Any] = {"device": "reference", "cells": "2", "iterations": 1}
    found = record(model="rans", flux="hllc", limiter="barth-jespersen", **python)
    assert (found["model"], found["metrics"]["flux"]) == ("rans", "hllc")
    names = {name for row in found["loops"] for name in row["name"].split("+")}
    assert {"through_faces_with_friction", "turbulence"} <= names
    laminar = record(model="laminar", limiter="none", loops="cells", storage="float32", **python)
    assert (laminar["precision"], laminar["metrics"]["loops"]) == ("float32", "cells")
    names = {name for row in laminar["loops"] for name in row["name"].split("+")}
    assert "friction" in names
    assert not names & {"turbulence", "limited_gradients"}


def test_a_mesh_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "square.su2"
    write(path, box2d(5, 4, kind="triangle"))
    found = record(mesh=str(path), iterations=1, device="reference")
    assert found["sizes"] == {"cells": 40}
    assert found["metrics"]["dimension"] == 2
    finer = record(mesh=str(path), refine=1, iterations=1, device="reference")
    assert finer["sizes"] == {"cells": 160}


@pytest.mark.long
def test_ranks_share_the_mesh() -> None:
    """Two ranks do the steps of one: the residual says so."""

    def run(comm: Comm) -> dict[str, Any]:
        return record(cells="4", iterations=2, comm=comm)

    one, two = (run_threads(n, run)[0] for n in (1, 2))
    assert (one["ranks"], two["ranks"]) == (1, 2)
    assert one["sizes"] == two["sizes"] == {"cells": 64}
    assert two["copy_gbs"] == 2 * one["copy_gbs"]
    assert two["metrics"]["residual_of_mass"] == pytest.approx(one["metrics"]["residual_of_mass"], rel=1e-12)


@pytest.mark.long
def test_table_of_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A row a loop, all ways with their gain, all orders, and what is not possible with its reason."""
    module, path = "fluxloom_lab.bench.flows.compressible_table", tmp_path / "square.su2"
    monkeypatch.setattr(f"{module}.STRATEGIES", {"auto": None, "gather": "gather"})
    python = Context("reference")  # the stage beside the loops, of which there is less to compile
    monkeypatch.setattr(f"{module}.flow_on", lambda _, *others: flow_on(python, *others))
    write(path, box2d(3, 2, kind="triangle", perturb=0.2))
    found = record(mesh=str(path), table="kernels")
    assert found["sizes"] == {"cells": 12}
    metrics = found["metrics"]
    rows = {row["loop"]: row for row in metrics["kernels"]}
    assert set(rows) == {"flux", *(f"K{n}" for n in range(1, 11))}
    row = rows["K6"]
    assert row["GB/s"] == pytest.approx(row["MB"] / row["ms"])
    assert row["% of copy"] == pytest.approx(10.0 * row["GB/s"])
    assert row["GFLOP/s"] == pytest.approx(row["MFLOP"] / row["ms"])
    assert rows["K7"]["MFLOP"] == 0.0
    assert found["seconds"] == pytest.approx(1e-3 * sum(row["ms"] for row in rows.values()))
    assert found["seconds"] == pytest.approx(1e-3 * metrics["renumbered_ms"])
    assert metrics["largest_difference"] < 1e-11
    assert metrics["best_ways_ms"] <= metrics["renumbered_ms"]
    assert metrics["two_passes_ms"] > 0.0
    ways = {(w["loop"], w["order"], w["over"], w["strategy"], w["split"]) for w in metrics["ways"]}
    assert len(ways) == len(metrics["ways"])
    assert {("K2", "shuffled", "nodes", "auto", True), ("K8", "given", "cells", "auto", False),
            ("K1", "renumbered", "faces", "gather", True)} <= ways  # fmt: skip
    assert [row["loop"] for row in metrics["renumbering"]] == [row["loop"] for row in metrics["kernels"]]
    assert {(row["loop"], row["strategy"]) for row in metrics["not_possible"]} == {("K2", "gather"), ("K9", "gather")}


@pytest.mark.long
def test_ways_that_disagree_are_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _Table._check

    def spoiled(self: Any, loops: Any, work: Any, order: Any) -> None:
        first(self, loops, work, order)
        if work.kind.name == "K1":
            self._wanted["K1"] = 1.001 * self._wanted["K1"]

    monkeypatch.setattr("fluxloom_lab.bench.flows.compressible_table._Table._check", spoiled)
    with pytest.raises(FluxloomError, match=r"K1 over faces, given, .*: the result differs by 1\.0e-03"):
        record(cells="2", table="kernels")


def test_from_the_command_line(fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    found = fluxloom("bench", "compressible", "--cells", "3", "-n", 1, "--rounds", 1, "--threads", 1,
                     "--json", tmp_path / "record.json")  # fmt: skip
    assert found.code == 0, found.text
    assert "ns_per_cell_stage" in found.out
    assert '"case": "compressible"' in (tmp_path / "record.json").read_text()


def test_options_of_the_command_line(fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """Each option arrives, and other benchmarks refuse it."""
    path = tmp_path / "square.su2"
    write(path, box2d(3, 2))
    words = ("--model", "rans", "--flux", "hllc", "--limiter", "none", "--mesh", path, "--refine", 1)
    found = fluxloom("bench", "compressible", *words, "--device", "reference", "-n", 1, "--rounds", 1,
                     "--json", tmp_path / "record.json")  # fmt: skip
    assert found.code == 0, found.text
    text = (tmp_path / "record.json").read_text()
    for part in ('"model": "rans"', '"flux": "hllc"', '"limiter": "none"', '"cells": 24'):
        assert part in text
    assert "--table 'kernel'; did you mean 'kernels'?" in fluxloom("bench", "compressible", "--table", "kernel").err
    assert "the benchmark krylov has no option --refine" in fluxloom("bench", "krylov", "--refine", 1).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "ranss"}, r"--model 'ranss'.*did you mean 'rans'.*allowed: euler, laminar, rans"),
        ({"table": "kernel"}, r"--table 'kernel'.*did you mean 'kernels'"),
        ({"cells": "1,4,4"}, r"--cells '1,4,4': a box of 2 cells a side or more"),
        ({"cells": "4,4"}, r"--cells '4,4' \(allowed: N for a cube"),
        ({"cells": "4", "mesh": "wing.su2"}, r"--mesh reads a mesh, --cells is the size of a box"),
        ({"cells": "4", "refine": 1}, r"--refine refines the mesh of --mesh"),
        ({"layout": "soa"}, r"--layout: .*--table kernels"),
        ({"table": "kernels", "model": "euler"}, r"--table kernels: .*--model rans, not euler"),
        ({"table": "kernels", "device": "reference"}, r"runs kernels as Python"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        record(**options)


def test_wrong_flux() -> None:
    with pytest.raises(FluxloomError, match=r"unknown flux 'row'; did you mean 'roe'"):
        record(cells="2", flux="row")


def test_the_flow_begins_near_that_beyond() -> None:
    places = np.random.default_rng(0).random((50, 3))
    states = disturbed(Context("cpu", threads=1), places)
    assert np.abs(states / states.mean(axis=0) - 1.0).max() < 0.05
    assert np.ptp(states, axis=0).min() > 0.0
    assert wall_of(connectivity(box3d(2, 2, 2)).patches) == "zmin"
    assert wall_of({"wing": range(3), "far": range(2)}) == "wing"


def test_transports_want_several_ranks() -> None:
    """It is said before anything is measured."""
    with pytest.raises(CaseError, match="start several ranks"):
        CompressibleBench().run(CompressibleOptions(cells="4", transports=True), lambda _: None)
