"""Compressible flow on several ranks: the states of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SlipWall
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.mesh import MeshData, box2d, box3d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme


def flow_of(comm: Comm, mesh: MeshData, turbulent: bool, grade: str | None = None) -> CompressibleFlow:
    """Return a flow over a wall, periodic in one direction: turbulent with friction, or without both."""
    periodic = [("xmin", "xmax")]
    volumes = control_volumes(mesh, periodic) if comm.size == 1 else shared_volumes(
        distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), periodic)  # fmt: skip
    stream = [1.0, 0.4, *[0.0] * (mesh.dimension - 1), 1.0]
    sides: dict[str, Any] = {name: FarField(stream, turbulence=0.02) for name in volumes.patches}
    sides["ymin"] = NoSlipWall() if turbulent else SlipWall()
    context = fl.Context("cpu", comm=comm, tuning=False, threads=1, schedule=fl.Schedule(deterministic=grade))
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.01) if turbulent else None)
    scheme = CompressibleScheme(turbulence=SpalartAllmaras() if turbulent else None)
    flow = CompressibleFlow(context, volumes, sides, gas, scheme, volumes.centres[: volumes.cells, 1].copy())
    bump = lambda x: 1.0 + 0.2 * np.exp(-20.0 * ((x - 0.5) ** 2).sum(axis=1))  # noqa: E731
    last = np.full((1, int(turbulent)), 0.02)
    flow.start(
        lambda x: np.column_stack([bump(x), np.tile(stream[1:-1], (len(x), 1)), bump(x), last.repeat(len(x), 0)])
    )
    return flow


def run(
    comm: Comm, mesh: MeshData, turbulent: bool, grade: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return numbers and states of the cells of this rank, residuals and time."""
    flow = flow_of(comm, mesh, turbulent, grade)
    for _ in range(3):
        flow.advance()
    flow.iterate(2)
    shared = flow.volumes.shared
    number = shared.cells.numbers[: shared.cells.owned]
    return number, flow.states(), flow.residuals().norms, flow.time


LONG = [pytest.param(kind, True, 3, grade, marks=pytest.mark.long)
        for kind in ("triangle", "prism") for grade in (None, "global")]  # fmt: skip


@pytest.mark.parametrize(("kind", "turbulent", "ranks", "grade"), [("triangle", False, 2, "global"), *LONG])
def test_states_of_one_rank(kind: str, turbulent: bool, ranks: int, grade: str | None) -> None:
    mesh = box2d(8, 6, kind=kind, perturb=0.15) if kind == "triangle" else box3d(5, 4, 3, kind=kind)
    alone = run_threads(1, lambda comm: run(comm, mesh, turbulent, grade))[0]
    found = run_threads(ranks, lambda comm: run(comm, mesh, turbulent, grade))
    together = np.empty_like(alone[1])
    for number, states, norms, time in found:
        together[number] = states
        np.testing.assert_allclose(norms, alone[2], rtol=1e-12)
        assert time == alone[3]
    part = 0.0 if grade == "global" else 1.0
    np.testing.assert_allclose(together, alone[1], rtol=part * 1e-12, atol=part * 1e-14)


def test_every_rank_hears_of_a_state_that_is_not_finite() -> None:
    mesh = box2d(8, 6)

    def work(comm: Comm) -> str:
        flow = flow_of(comm, mesh, False)
        values = flow.w.read().copy()
        if comm.rank == 0:
            values[0] = np.nan
        flow.w.write(values)
        with pytest.raises(SolverError, match="is not finite") as found:
            flow.advance()
        return str(found.value)

    first, second = run_threads(2, work)
    assert first == second
