"""Implicit steps of compressible flow on several ranks: the steady state is that of one rank."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.compressible.boundary import BoundaryCondition, PressureOutlet, SlipWall, TotalInlet
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh import box2d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme

Array = np.ndarray
SIDES: dict[str, BoundaryCondition] = {
    "xmin": TotalInlet(lambda x: 1.2 + 0.1 * x[:, 1], 1.0, direction=(1.0, 0.0)), "xmax": PressureOutlet(1.0),
    "ymin": SlipWall(), "ymax": SlipWall(),
}  # fmt: skip


def converge(context: fl.Context, volumes: ControlVolumes, wavefront: bool) -> tuple[Array, list[float], Array]:
    """Return the states of the owned cells, the norms, and the cells of each colour on this rank."""
    flow = CompressibleFlow(context, volumes, SIDES, Gas(constant=1.0), CompressibleScheme(limiter=None))
    flow.start((1.0, 0.3, 0.0, 1.0))
    steps = SteadySteps(flow, Implicit(cfl=10.0, switch=0.1, sweeps=2, wavefront=wavefront))
    norms = steps.solve(1e-11, 40)
    return flow.states(), norms, np.array([colour.size for colour in steps.sweeps.colours])


@pytest.mark.long
@pytest.mark.parametrize("wavefront", [False, True])
def test_two_ranks_find_the_steady_state_of_one(wavefront: bool) -> None:
    mesh = box2d(8, 5, (2.0, 1.0), perturb=0.1)
    want, norms, _ = converge(fl.Context("cpu", threads=1, tuning=False), control_volumes(mesh), wavefront)
    assert norms[-1] <= 1e-11 * norms[0]

    def local(comm: Comm) -> tuple[Array, Array, list[float], Array]:
        volumes = shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS))
        context = fl.Context("cpu", comm=comm, threads=1, tuning=False)
        states, norms, colours = converge(context, volumes, wavefront)
        return volumes.shared.cells.numbers[: volumes.owned], states, norms, colours

    found = run_threads(2, local)
    assert found[0][2] == found[1][2]
    assert found[0][2][-1] <= 1e-11 * found[0][2][0]
    assert found[0][3].size == found[1][3].size
    numbers = np.concatenate([item[0] for item in found])
    np.testing.assert_array_equal(np.sort(numbers), np.arange(len(want)))
    np.testing.assert_allclose(np.concatenate([item[1] for item in found]), want[numbers], atol=1e-9)
    assert sum(item[3].sum() for item in found) == len(want)
    np.testing.assert_allclose(found[0][2][0], norms[0], rtol=1e-10)
