"""Incompressible flow on several ranks: the control volumes, the steps and the sums of one rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Wale
from fluxloom.fv.incompressible.operators import Operators
from fluxloom.fv.incompressible.projection_schemes import ProjectionScheme, RungeKutta
from fluxloom.linalg import GatheredSolver, Stop
from fluxloom.linalg.operators import Preconditioner
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.pressure import PressureEquation, PressureMethod
from fluxloom.solvers.incompressible.types import FlowState
from tests.parallel.launch import mpiexec

Array = np.ndarray
Case = tuple[MeshData, list[tuple[str, str]], dict[str, Boundary]]

WALLS: dict[str, Boundary] = {"ymin": NoSlip(), "ymax": NoSlip((0.3, 0.0))}


def stream(places: Array) -> Array:
    return np.stack([places[:, 1] * (1.0 - places[:, 1]), 0.0 * places[:, 0]], axis=1)


def turning(places: Array) -> Array:
    found = np.zeros(places.shape)
    found[:, 0], found[:, 1] = np.sin(3.0 * places[:, 1]), np.cos(5.0 * places[:, 0])
    return found


CASES: dict[str, Callable[[], Case]] = {
    "duct": lambda: (
        box2d(9, 6, kind="triangle", perturb=0.2),
        [],
        {**WALLS, "xmin": Inflow(stream), "xmax": Outflow()},
    ),
    "periodic": lambda: (
        box3d(5, 4, 4, perturb=0.1),
        [("xmin", "xmax"), ("zmax", "zmin")],
        {"ymin": NoSlip(), "ymax": Symmetry()},
    ),
    "tetrahedra": lambda: (
        box3d(4, 3, 3, kind="tetra", perturb=0.2),
        [],
        {"xmin": Inflow((0.5, 0.0, 0.0)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry(), "zmin": Symmetry(),
         "zmax": NoSlip()},
    ),
    "rings": lambda: (box2d(7, 2), [("xmin", "xmax"), ("ymin", "ymax")], {}),
}


def volumes_of(comm: Comm, case: Case) -> ControlVolumes:
    mesh, periodic, _ = case
    if comm.size == 1:
        return control_volumes(mesh, periodic)
    return shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), periodic)


@dataclass(frozen=True)
class Gathered(PressureMethod):
    """One rank solves for all."""

    def solver(self, flow: PressureEquation, stop: Stop, preconditioner: Preconditioner) -> GatheredSolver:
        return GatheredSolver(flow.poisson, flow.b, flow.phi, groups=1, device="cpu:1", preconditioner=preconditioner,
                              stop=stop, nullspace="constant" if flow.floating else "none")  # fmt: skip


def advanced(
    comm: Comm,
    name: str,
    scheme: ProjectionScheme | None = None,
    device: str = "cpu",
    pressure: PressureMethod | None = None,
    schedule: fl.Schedule | None = None,
) -> tuple[Array, Array, Array, FlowState, float]:
    """Return the numbers of this rank's cells, their velocity and pressure after some steps, and what all know."""
    case = CASES[name]()
    choices: dict[str, Any] = {"threads": 1} if device == "cpu" else {}
    context = fl.Context(device, comm=comm, tuning=False, schedule=schedule, **choices)
    flow = Incompressible(
        context, volumes_of(comm, case), 0.01, case[2], stop=Stop(rtol=1e-10), scheme=scheme,
        model=Wale() if name == "periodic" else None, pressure=pressure,
    )  # fmt: skip
    flow.initialise(turning)
    for _ in range(3):
        flow.step(0.02)
    part = flow.cells.part
    numbers = np.arange(flow.cells.size) if part is None else part.numbers[: part.owned]
    return numbers, flow.velocity(), flow.pressure(), flow.state(), flow.stable_step()


def whole(found: Sequence[tuple[Array, Array, Array, FlowState, float]]) -> tuple[Array, Array]:
    order = np.argsort(np.concatenate([item[0] for item in found]))
    return tuple(np.concatenate([item[k] for item in found])[order] for k in (1, 2))  # type: ignore[return-value]


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("ranks", [2, 3])
def test_steps_of_one_rank(name: str, ranks: int) -> None:
    """All that differs is the order in which sums of the pressure solver are formed."""
    alone = run_threads(1, lambda comm: advanced(comm, name))
    found = run_threads(ranks, lambda comm: advanced(comm, name))
    for mine, wanted in zip(whole(found), whole(alone), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=0, atol=1e-8)
    for item in found:
        assert item[3].kinetic_energy == pytest.approx(alone[0][3].kinetic_energy, rel=1e-10)
        assert item[3].imbalance < 1e-8
        assert item[4] == pytest.approx(alone[0][4], rel=1e-8)
        assert item[3].kinetic_energy == found[0][3].kinetic_energy


@pytest.mark.parametrize("name", ["duct", pytest.param("periodic", marks=pytest.mark.long)])
def test_same_bits_on_any_ranks(name: str) -> None:
    """Stages with solves for the pressure, whose sums do not depend on the ranks then."""
    exact = fl.Schedule(deterministic="global")
    alone = run_threads(1, lambda comm: advanced(comm, name, RungeKutta(), schedule=exact))
    found = run_threads(3, lambda comm: advanced(comm, name, RungeKutta(), schedule=exact))
    for mine, wanted in zip(whole(found), whole(alone), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    assert {item[3].kinetic_energy for item in found} == {alone[0][3].kinetic_energy}


@pytest.mark.parametrize("name", list(CASES))
def test_rows_of_ranks_are_those_of_the_whole(name: str) -> None:
    """Divergence and Laplacian of a field, cell by cell."""
    case = CASES[name]()
    one = control_volumes(case[0], case[1])
    want = Operators(one).laplacian @ np.sin(one.centres @ np.arange(1.0, 1.0 + one.dimension))

    def local(comm: Comm) -> tuple[Array, Array]:
        cv = volumes_of(comm, case)
        values = Operators(cv).laplacian @ np.sin(cv.centres @ np.arange(1.0, 1.0 + cv.dimension))
        assert cv.shared.cells.owned + cv.shared.cells.halo == cv.cells
        return cv.shared.cells.numbers[: cv.owned], values

    for numbers, values in run_threads(4, local):
        np.testing.assert_array_equal(values, want[numbers])


def test_control_volumes_of_other_ranks() -> None:
    def wrong(comm: Comm) -> None:
        Incompressible(fl.Context("cpu", comm=comm, threads=1), control_volumes(box2d(3, 3)), 0.1)

    with pytest.raises(SolverError, match="2 ranks: make the control volumes with"):
        run_threads(2, wrong)


def test_periodic_patches_that_differ() -> None:
    def wrong(comm: Comm) -> None:
        mesh = box2d(4, 5)
        shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, maps=FLOW_MAPS), [("xmin", "ymin")])

    with pytest.raises(MeshError, match="'xmin' and 'ymin' have 5 and 4 faces"):
        run_threads(2, wrong)


def test_processes() -> None:
    """The same with MPI."""
    done = mpiexec(
        2,
        """
        import numpy as np
        from fluxloom.comm.base import SelfComm
        from tests.parallel.test_incompressible_ranks import advanced

        for name in ("duct", "rings"):
            alone, mine = advanced(SelfComm(), name), advanced(comm, name)
            assert mine[0].size < alone[0].size
            assert np.allclose(mine[1], alone[1][mine[0]], rtol=0, atol=1e-8)
        print("agrees")
        """,
    )
    assert done.stdout.count("agrees") == 2


def test_pressure_on_one_device_for_all_ranks() -> None:
    """Ranks gather the right-hand side, their master solves, and scatters the pressure."""
    wanted = whole(run_threads(1, lambda comm: advanced(comm, "duct")))

    found = whole(run_threads(3, lambda comm: advanced(comm, "duct", pressure=Gathered())))
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, right, rtol=0, atol=1e-8)
