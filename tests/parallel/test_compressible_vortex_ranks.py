"""The vortex in the far field of an airfoil on several ranks: one lift for all of them."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.compressible.free_stream import FreeStream, PointVortex
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme

MESH = naca_mesh("0012", 16, 8, 4.0)
STREAM = FreeStream.at_angles(0.5, 1.0, 1.0, 4.0, dimension=2)


def run(comm: Comm) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Make some steps; return numbers and states of the cells of this rank, and the circulation."""
    volumes = control_volumes(MESH) if comm.size == 1 else shared_volumes(
        distribute_mesh(as_slice(comm, MESH), comm, method="rcb", maps=FLOW_MAPS))  # fmt: skip
    far = FarField(STREAM, vortex=PointVortex(["airfoil"]))
    flow = CompressibleFlow(fl.Context("cpu", comm=comm, tuning=False, threads=1), volumes,
                            {"airfoil": SlipWall(), "far_field": far}, Gas(constant=1.0),
                            CompressibleScheme(limiter=None, time=RK5(), cfl=2.0))  # fmt: skip
    flow.start(STREAM.state(flow.gas, 2))
    flow.iterate(10)
    balance = flow._balance
    assert balance is not None
    numbers = volumes.shared.cells.numbers
    return numbers[: volumes.owned], flow.states(), balance.vortices.circulations()


@pytest.mark.parametrize("ranks", [2])
def test_states_of_one_rank(ranks: int) -> None:
    ((_, whole, one),) = run_threads(1, run)
    assert one["far_field"] > 0.02
    for numbers, states, circulation in run_threads(ranks, run):
        assert circulation == pytest.approx(one, rel=1e-12)
        np.testing.assert_allclose(states, whole[numbers], rtol=1e-12, atol=1e-14)
