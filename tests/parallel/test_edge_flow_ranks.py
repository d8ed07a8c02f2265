"""Flow on edges on several ranks: the steps, forces and sums of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Smagorinsky
from fluxloom.linalg import Stop
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.edges.boundary import EdgePatch, WallLaw
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom_lab.problems.lid_cavity import lid_walls
from tests.parallel.launch import mpiexec

Array = npt.NDArray[np.float64]


def stream(x: Array) -> Array:
    found = np.zeros_like(x)
    found[:, 0] = 1.0 + x[:, 1]
    return found


def case_of(dimension: int) -> tuple[MeshData, dict[str, EdgePatch]]:
    """Return a cavity in the plane, whose pressure floats, and a duct in space with every other boundary."""
    if dimension == 2:
        mesh = box2d(9, 7, kind="triangle", perturb=0.2)
        return mesh, {**lid_walls(mesh.patches)}
    mesh = box3d(5, 4, 3, (2.0, 1.0, 1.0), kind="tetra", perturb=0.2)
    sides: dict[str, EdgePatch] = {"xmin": Inflow(stream), "xmax": Outflow(), "ymin": WallLaw(0.05), "ymax": NoSlip()}
    return mesh, {**sides, "zmin": Symmetry(), "zmax": Symmetry()}


def advanced(comm: Comm, dimension: int) -> dict[str, Any]:
    """Return what a rank knows after five steps."""
    return advanced_in(fl.Context("cpu", threads=1, tuning=False, comm=comm), dimension)


def advanced_in(context: fl.Context, dimension: int) -> dict[str, Any]:
    """Return what a rank knows after five steps in its context."""
    mesh, sides = case_of(dimension)
    comm = context.comm
    points = point_mesh(context, mesh if comm.rank == 0 else None, method="rcb")
    flow = EdgeFlow(
        points, 0.01, sides, force=(0.3, -0.2, 0.1)[:dimension], stop=Stop(rtol=1e-12),
        model=Smagorinsky() if dimension == 3 else None,
    )  # fmt: skip
    flow.initialise(lambda x: np.stack([np.sin(3.0 * x[:, -1]), *np.cos(2.0 * x[:, : dimension - 1]).T], axis=1))
    dt = comm.broadcast(min(flow.stable_step(0.5), 0.02))
    for _ in range(5):
        flow.step(dt)
    state = flow.state()
    return {
        "velocity": points.gather(flow.velocity()), "pressure": points.gather(flow.pressure()), "dt": dt,
        "force": flow.force("ymax"), "both": flow.force("ymin", "ymax"), "energy": state.kinetic_energy,
        "momentum": state.momentum, "imbalance": state.imbalance, "points": points.points.size,
    }  # fmt: skip


def alone(dimension: int) -> dict[str, Any]:
    return run_threads(1, lambda comm: advanced(comm, dimension))[0]


def check(found: list[dict[str, Any]], want: dict[str, Any]) -> None:
    """Check fields on rank 0, and what all ranks know, against one rank."""
    for name in ("velocity", "pressure"):
        assert np.abs(found[0][name] - want[name]).max() < 1e-10 * np.abs(want[name]).max(), name
    assert sum(piece["points"] for piece in found) == want["points"]
    for piece in found:
        for name in ("dt", "energy", "force", "both", "momentum"):
            assert piece[name] == pytest.approx(want[name], rel=1e-10, abs=1e-10), name
        assert piece["imbalance"] < 1e-9


LONG = [pytest.param(*pair, marks=pytest.mark.long) for pair in ((2, 4), (3, 2), (3, 4))]


@pytest.mark.parametrize(("dimension", "ranks"), [(2, 2), *LONG])
def test_ranks_are_one(dimension: int, ranks: int) -> None:
    """Fields, forces, energy and momentum do not depend on the number of ranks."""
    check(run_threads(ranks, lambda comm: advanced(comm, dimension)), alone(dimension))


def test_same_bits_on_any_ranks() -> None:
    """Sums of the solver for the pressure do not depend on the ranks, where all loops have that grade."""

    def work(comm: Comm) -> dict[str, Any]:
        schedule = fl.Schedule(deterministic="global")
        return advanced_in(fl.Context("cpu", threads=1, tuning=False, comm=comm, schedule=schedule), 2)

    found, want = run_threads(3, work)[0], run_threads(1, work)[0]
    for name in ("velocity", "pressure"):
        np.testing.assert_array_equal(found[name], want[name])


@pytest.mark.mpi
@pytest.mark.long
def test_processes(launcher: object) -> None:
    """Real ranks find what one does."""
    done = mpiexec(
        2,
        """
        from tests.parallel.test_edge_flow_ranks import advanced, alone, check

        for dimension in (2, 3):
            found = comm.allgather(advanced(comm, dimension))
            if comm.rank == 0:
                check(found, alone(dimension))
                print(dimension)
        """,
        timeout=240,
    )
    assert done.stdout.split() == ["2", "3"]
