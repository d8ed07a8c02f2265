"""Walls of many bodies in one loop: the flow and the forces of one loop a body."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries import Body, Velocity, Wall, assemble
from fluxloom.lbm.boundaries.sums import ROW, WallSum
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom.lbm.shapes.shapes import Block, Circle, Sphere
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import lattice_flow

from .harness import Values, compare, context, everywhere, rest_is_long, same

PLANE, SPACE = (31, 60), (18, 18, 40)


def turning(center: tuple[float, float], speed: float) -> Any:
    """Return the velocity of a surface that turns about a point."""
    return lambda x: speed * np.stack([x[:, 1] - center[1], center[0] - x[:, 0]], axis=1)


def plane_bodies() -> list[Body]:
    """Bodies at rest that are measured, of which one is alone in its kind; some that turn; one of few links."""
    middles = [(8.0, 10.0), (8.0, 30.0), (22.0, 10.0), (22.0, 30.0)]
    still = [Body(f"still {k}", Circle(at, 3.2), Wall(measure=True, interpolated=True)) for k, at in enumerate(middles)]
    drums = [
        Body(f"drum {k}", Circle(at, 3.0), Wall(velocity=turning(at, 0.01 * (k + 1)), measure=True, center=at))
        for k, at in enumerate([(8.0, 50.0), (22.0, 50.0)])
    ]
    moving = [Body(f"quiet {k}", Circle((15.3, x), 1.6), Wall(velocity=(0.0, 0.0))) for k, x in enumerate((20.0, 40.0))]
    return [
        *still,
        *drums,
        *moving,
        Body("post", Block((1.6, 20.6), (2.4, 21.4))),
        Body("alone", Circle((15.0, 50.0), 1.6)),
    ]


def space_bodies() -> list[Body]:
    """Two spheres at rest, larger than a row of links."""
    return [
        Body(f"ball {k}", Sphere((9.0, 9.0, x), 5.3), Wall(measure=True, center=(9.0, 9.0, x)))
        for k, x in enumerate((10.0, 28.0))
    ]


def flow_of(
    ctx: fl.Context, shape: tuple[int, ...], streaming: str = "pull", dtype: str = "float64"
) -> LatticeBoltzmann:
    d = len(shape)
    sides = {"xmin": Velocity((*(0.0,) * (d - 1), 0.05)), "xmax": Wall(), "ymin": Wall(), "ymax": Wall(measure=True)}
    flow = lattice_flow(
        ctx, shape, viscosity=0.05, lattice=D2Q9 if d == 2 else D3Q19, dtype=dtype, streaming=streaming,
        boundaries=sides, bodies=plane_bodies() if d == 2 else space_bodies(),
    )  # fmt: skip
    flow.initialise()
    return flow


def found(flow: LatticeBoltzmann) -> Values:
    parts = flow.conditions.parts
    forces = {name: flow.force_on(name) for name, part in parts.items() if part.force is not None}
    torques = {f"{n} torque": np.asarray(p.torque.value) for n, p in parts.items() if p.torque is not None}
    return {**{k: np.asarray(v, np.float64) for k, v in forces.items()}, **torques}


def stepped(ctx: fl.Context, shape: tuple[int, ...], streaming: str, dtype: str = "float64") -> tuple[Values, Values]:
    """Return what six steps leave, and the forces in the last one; the drums turn faster from the fourth step on."""
    flow = flow_of(ctx, shape, streaming, dtype)
    flow.step(3)
    if len(shape) == 2:
        flow.assign("drum 1", turning((22.0, 50.0), -0.01))
    flow.step(3)
    return {"density": flow.density(), "velocity": flow.velocity()}, found(flow)


@functools.cache
def one_by_one(shape: tuple[int, ...], streaming: str) -> tuple[Values, Values]:
    patch = pytest.MonkeyPatch()
    with patch.context() as here:
        here.setattr(assemble, "_alike", lambda bodies: {})
        return stepped(fl.Context("cpu", threads=1, tuning=False), shape, streaming)


def balanced(got: Values, want: Values, tolerance: float = 1e-12) -> None:
    """Compare forces, of which parts cancel."""
    assert set(got) == set(want)
    largest = max(float(np.abs(value).max()) for value in want.values())
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=tolerance, atol=tolerance * largest, err_msg=name)


FLOWS = [(PLANE, "pull"), (SPACE, "pull"), (PLANE, "in-place")]


@pytest.mark.parametrize(("shape", "streaming"), rest_is_long(FLOWS, keep=2))
def test_one_loop_for_all(shape: tuple[int, ...], streaming: str) -> None:
    fields, forces = stepped(fl.Context("cpu", threads=1, tuning=False), shape, streaming)
    want, single = one_by_one(shape, streaming)
    same(fields, want)
    balanced(forces, single)


@pytest.mark.parametrize(("device", "dtype"), everywhere([], ["float64", "float32"], keep_items=1))
def test_devices(device: str, dtype: str) -> None:
    fields, forces = stepped(context(device, dtype=dtype), PLANE, "pull", dtype)
    want, single = one_by_one(PLANE, "pull")
    if dtype == "float64":
        compare(fields, want)
    balanced(forces, single, 1e-11 if dtype == "float64" else 1e-4)


def test_loops() -> None:
    """One loop over links and two for sums for all bodies of a kind, whatever their number."""
    flow = flow_of(fl.Context("cpu", threads=1, tuning=False), PLANE)
    names = [step.name for step in flow.conditions.loops(0) if isinstance(step, fl.Loop)]
    for kernel in ("interpolated_still_push", "half_way_push", "half_way_still_push", "half_way"):
        assert names.count(f"bodies {kernel}") == 1, names
    assert not any(name.startswith(("still", "drum", "post")) for name in names)
    parts = flow.conditions.parts
    assert isinstance(parts["still 1"].force, WallSum)
    assert parts["still 0"].links == parts["still 1"].links > 0
    assert parts["post"].links < parts["alone"].links


def test_rows() -> None:
    """Walls of more links than a row has are summed in several; the flow of the test above has such walls."""
    flow = flow_of(fl.Context("cpu", threads=1, tuning=False), SPACE)
    assert flow.conditions.parts["ball 0"].links > 2 * ROW


@pytest.mark.parametrize("ranks", rest_is_long([2, 3], keep=1))
def test_ranks(ranks: int) -> None:
    """Bodies across cuts, and on one rank alone."""

    def case(comm: Comm) -> tuple[Any, Values, Values]:
        flow = flow_of(fl.Context("cpu", comm=comm, threads=1, tuning=False), PLANE)
        flow.step(3)
        flow.assign("drum 1", turning((22.0, 50.0), -0.01))
        flow.step(3)
        return flow.grid.window, {"velocity": flow.velocity()}, found(flow)

    want, single = one_by_one(PLANE, "pull")
    for window, fields, forces in run_threads(ranks, case):
        part = want["velocity"][window]
        np.testing.assert_allclose(
            fields["velocity"], part[tuple(slice(0, n) for n in fields["velocity"].shape[:2])], rtol=1e-12, atol=1e-15
        )
        balanced(forces, single, 1e-11)


CASE: dict[str, Any] = {
    "case": {"name": "channel", "solver": "lattice"},
    "run": {"iterations": 24},
    "mesh": {"nx": 32, "ny": 16, "spacing": 0.125},
    "fluid": {"reynolds": 50},
    "boundary": {"xmin": {"type": "velocity", "velocity": [1.0, 0.0]}, "xmax": {"type": "outflow"}},
    "body": {
        "left": {"shape": "circle", "center": [0.8, 0.5], "diameter": 0.5},
        "right": {"shape": "circle", "center": [0.8, 1.4], "diameter": 0.75},
    },
    "forces": {"left": {}, "right": {}},
    "history": {"every": 4},
}  # fmt: skip


def history(device: str, folder: Path) -> np.ndarray:
    """Return what a case has written of the forces on its bodies."""
    case, _ = parse_case(Document(Path("case.toml"), CASE, {}))
    assert isinstance(case, LatticeCase)
    runner = LatticeApplication().build(case, context(device))
    runner.begin(ResultFolder(folder))
    for _ in range(12):
        runner.advance()
    columns = [runner.history.column(f"{body}.force_{axis}") for body in ("left", "right") for axis in "xy"]
    return np.stack([column[1:] for column in columns])


@pytest.mark.parametrize("device", everywhere(keep_items=1)[1:])
def test_history_of_a_case(device: str, tmp_path: Path) -> None:
    """A device that keeps the numbers of a history beside the steps keeps those of each body."""
    want, got = (history(name, tmp_path / name) for name in ("cpu", device))
    assert want.shape[1] >= 3
    assert (np.abs(want[::2, -1]) > 0).all()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


def test_a_body_without_links() -> None:
    """A body inside of another one feels nothing, and says why."""
    bodies = [
        Body("shell", Circle((8.0, 20.0), 5.0)),
        Body("core", Block((7.6, 19.6), (8.4, 20.4)), Wall(velocity=(0.0, 0.0), measure=True)),
    ]
    ctx = fl.Context("cpu", threads=1, tuning=False)
    shell = Sphere((8.0, 8.0, 8.0), 5.0)
    with pytest.raises(SolverError, match="body 'core' has no cell: all of its cells are those of 'shell'"):
        LatticeBoltzmann(ctx, (16, 40), viscosity=0.05, lattice=D2Q9, bodies=bodies)
    inner = [Body("core", Sphere((8.0, 8.0, 8.0), 2.0), Wall(velocity=(0.0,) * 3, measure=True)), Body("shell", shell)]
    flow = LatticeBoltzmann(ctx, (17, 17, 17), viscosity=0.05, bodies=inner)
    flow.step(1)
    with pytest.raises(SolverError, match="on 'core', a Wall: no link leads to it from a fluid cell"):
        flow.force_on("core")
    with pytest.raises(SolverError, match="core: no link leads to it from a fluid cell"):
        flow.assign("core", (0.0, 0.0, 0.01))
    assert flow.force_on("shell").shape == (3,)
