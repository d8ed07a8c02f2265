"""The examples of flow on edges: each is correct and runs, and a number of it is that of the literature or pinned.

C. H. Marchi, R. Suero, L. K. Araki: *The lid-driven square cavity flow: numerical solution with a 1024 x 1024 grid*,
J. Braz. Soc. Mech. Sci. Eng. 31 (2009) 186-198: Reynolds number 100, extremes of the velocity on the centrelines.
M. Schäfer, S. Turek: *Benchmark computations of laminar flow around a cylinder* (1996): 2D-1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.edges.flow_tables import EdgeFlowCase
from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.flows.edges.flow import EdgeFlow
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.edges.probes import simplices_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.toml") if 'solver = "edge_flow"' in path.read_text("utf-8"))
MARCHI = (-0.2140417, 0.1795728, -0.2538030)
"""Least u on the vertical centreline, largest and least v on the horizontal one."""


_POINTS_COARSE, _POINTS = 230, 3411
"""Of the meshes that the numbers below are pinned on: another version of Gmsh may make others."""


def build(name: str, **tables: dict[str, Any]) -> FlowRun[EdgeFlow]:
    """Return an example with some keys changed; a table within a table is given whole."""
    case, application = load_case(EXAMPLES / f"{name}.toml")
    given = case.model_dump()
    for table, keys in tables.items():
        for key, value in keys.items():
            given[table][key] = given[table][key] | value if isinstance(value, dict) else value
    runner = application.build(EdgeFlowCase.model_validate(given), Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, EdgeFlow)
    return runner


def finished(runner: FlowRun[EdgeFlow], folder: Path, steps: int = 10**9) -> FlowRun[EdgeFlow]:
    """Return a runner at its end, or after some steps, with its history."""
    runner.begin(ResultFolder(folder))
    while not runner.finished and runner.flow.solver.steps < steps:
        runner.advance()
    runner.finish(pictures=False)
    return runner


def along(runner: FlowRun[EdgeFlow], places: np.ndarray) -> np.ndarray:
    """Return the velocity at places."""
    cells, weights, _ = simplices_of(runner.flow.solver.mesh, places)
    corners = runner.flow.solver.velocity()[runner.flow.solver.mesh.simplices[cells]]
    return np.einsum("nj,njk->nk", weights, corners)


def extremes(runner: FlowRun[EdgeFlow]) -> tuple[float, float, float]:
    """Return what `MARCHI` has."""
    s, half = np.linspace(0.001, 0.999, 999), np.full(999, 0.5)
    u = along(runner, np.stack([half, s], axis=1))[:, 0]
    v = along(runner, np.stack([s, half], axis=1))[:, 1]
    return float(u.min()), float(v.max()), float(v.min())


def reattachment(runner: FlowRun[EdgeFlow]) -> float:
    """Return where the flow comes back to the floor, in heights of the step."""
    x, height = np.linspace(0.02, 9.0, 3000), 0.005
    u = along(runner, np.stack([x, np.full(x.size, height - 0.5)], axis=1))[:, 0]
    (k,) = np.flatnonzero((u[:-1] < 0) & (u[1:] >= 0))[-1:]
    return float(x[k] - u[k] * (x[k + 1] - x[k]) / (u[k + 1] - u[k])) / 0.5


@pytest.mark.parametrize("name", NAMES)
def test_correct(name: str) -> None:
    """The file is correct, and is called as the case."""
    case, application = load_case(EXAMPLES / f"{name}.toml")
    assert application.name == "edge_flow"
    assert case.case.name == name


def test_all_there() -> None:
    assert NAMES == ["ahmed", "edge_cavity", "edge_cavity3d", "edge_cylinder", "edge_step"]


def test_cavity_on_half_the_triangles(tmp_path: Path) -> None:
    """On 2 x 16 x 16 triangles: pinned, 2 per cent from the literature at most."""
    runner = finished(build("edge_cavity", mesh={"nx": 16, "ny": 16}, time={"steady": 1e-4}), tmp_path)
    assert runner.residual() < 1e-3
    assert runner.finished  # a part of the largest
    found = extremes(runner)
    assert found == pytest.approx((-0.21098, 0.18081, -0.25675), rel=3e-3)
    assert found == pytest.approx(MARCHI, rel=0.025)


@pytest.mark.long
def test_cavity(tmp_path: Path) -> None:
    """The whole run: pinned, and within half a per cent of the literature."""
    runner = finished(build("edge_cavity"), tmp_path)
    found = extremes(runner)
    assert found == pytest.approx((-0.21403, 0.18015, -0.25490), rel=1e-3)
    assert found == pytest.approx(MARCHI, rel=0.005)
    assert runner.flow.solver.state().kinetic_energy == pytest.approx(0.035245, rel=1e-3)


def test_cavity3d_coarse(tmp_path: Path) -> None:
    """A few hundred nodes, for some steps: pinned."""
    pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    changes = {"mesh": {"gmsh": {"size": 0.2}}, "time": {"dt": 2e-3}}
    runner = finished(build("edge_cavity3d", **changes), tmp_path)
    assert runner.flow.solver.steps == 50
    if runner.flow.points == _POINTS_COARSE:
        assert runner.flow.solver.state().kinetic_energy == pytest.approx(0.09933, rel=3e-3)
    assert 0.08 < runner.flow.solver.state().kinetic_energy < 0.12
    assert runner.flow.solver.force("ymax")[0] < 0.0


@pytest.mark.long
def test_cavity3d(tmp_path: Path) -> None:
    """The file: 3,400 nodes, 500 steps, pinned."""
    pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    runner = finished(build("edge_cavity3d"), tmp_path)
    assert runner.flow.solver.steps == 500
    if runner.flow.points == _POINTS:
        assert runner.flow.solver.state().kinetic_energy == pytest.approx(0.030725, rel=3e-3)
    assert runner.flow.solver.state().kinetic_energy == pytest.approx(0.0307, rel=0.05)


@pytest.mark.long
def test_cylinder(tmp_path: Path) -> None:
    """Drag and lift within two per cent of the benchmark, the difference of pressures too."""
    pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    runner = finished(build("edge_cylinder"), tmp_path)
    assert runner.history.column("cylinder.drag")[-1] == pytest.approx(5.57953523384, rel=0.02)
    assert runner.history.column("cylinder.lift")[-1] == pytest.approx(0.010618948146, rel=0.02)
    series = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    assert series["frontp"][-1] - series["backp"][-1] == pytest.approx(0.11752016697, rel=0.02)


@pytest.mark.long
def test_step(tmp_path: Path) -> None:
    """The flow comes back to the floor behind the step: pinned."""
    pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    runner = finished(build("edge_step"), tmp_path)
    assert reattachment(runner) == pytest.approx(4.810, rel=0.01)


@pytest.mark.long
def test_step_of_gartling(tmp_path: Path) -> None:
    """D. K. Gartling, Int. J. Numer. Meth. Fluids 11 (1990): Reynolds number 800, after 6.1 channel heights."""
    pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    channel = {"upstream": 0.0, "downstream": 15.0, "size": 0.04, "size_step": 0.02, "growth": 0.02}
    changes = {"fluid": {"viscosity": 1.25e-3}, "time": {"end": 200.0, "steady": 1e-4}}
    runner = finished(build("edge_step", mesh={"gmsh": channel}, **changes), tmp_path)
    assert reattachment(runner) == pytest.approx(12.2, rel=0.02)


@pytest.mark.long
def test_ahmed_coarse(tmp_path: Path, shared_data: Path) -> None:
    """3,000 nodes for 100 steps: bounded, with a drag."""
    pytest.importorskip("gmsh", reason="needs Gmsh and its libraries", exc_type=ImportError)
    file = shared_data / "ahmed_body" / "ahmed_body_raw.stl"
    wake = {"lower": [0.9, -0.25, 0.0], "upper": [2.0, 0.25, 0.45], "size": 0.1}
    coarse = {"file": str(file), "size_body": 0.05, "size_far": 0.4, "growth": 0.2, "refine": [wake]}
    runner = finished(build("ahmed", mesh={"gmsh": coarse}), tmp_path, steps=100)
    assert 2_000 < runner.flow.points < 6_000
    assert runner.history.column("body.drag")[-1] == pytest.approx(0.43, rel=0.1)
    assert runner.fields()["speed"].max() < 160.0
