"""The step of three kernels on several ranks."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.incompressible.eddy_viscosity import Wale
from fluxloom.linalg import Stop
from fluxloom.linalg.krylov.three_kernels import KernelCalls
from fluxloom.solvers.algebraic.step import ITERATION, AlgebraicStep
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.problems.box_volumes import periodic_box_volumes
from tests.parallel.test_incompressible_ranks import CASES, turning, volumes_of

Array = np.ndarray
Found = tuple[Array, Array, Array, Array, dict[str, KernelCalls]]


def advanced(comm: Comm, name: str) -> Found:
    """Return the numbers of this rank's cells, velocities of both solvers, the pressure, and the counts."""
    context = fl.Context("cpu", comm=comm, threads=1, tuning=False)
    if name == "box":
        volumes, boundaries = periodic_box_volumes((5, 4, 4), (1.0, 1.0, 1.0), comm), {}
    else:
        case = CASES[name]()
        volumes, boundaries = volumes_of(comm, case), case[2]
    model = None if name == "duct" else Wale()
    flow = Incompressible(context, volumes, 0.01, boundaries, stop=Stop(rtol=1e-10), model=model)
    flow.initialise(turning)
    step = AlgebraicStep(flow)
    for dt in (0.02, 0.01):
        step.step(dt)
        flow.step(dt)
    part = flow.cells.part
    numbers = np.arange(flow.cells.size) if part is None else part.numbers[: part.owned]
    return numbers, step.velocity(), flow.velocity(), step.pressure(), step.counts


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("duct", 2), *(pytest.param(*case, marks=pytest.mark.long) for case in (("periodic", 3), ("box", 4)))],
)
def test_steps_of_one_rank(name: str, ranks: int) -> None:
    alone = run_threads(1, lambda comm: advanced(comm, name))[0]
    found = run_threads(ranks, lambda comm: advanced(comm, name))
    assert sum(item[0].size for item in found) == alone[0].size
    for numbers, mine, fused, pressure, counts in found:
        np.testing.assert_allclose(mine, fused, rtol=0, atol=1e-8)
        np.testing.assert_allclose(mine, alone[1][numbers], rtol=0, atol=1e-8)
        np.testing.assert_allclose(pressure, alone[3][numbers], rtol=0, atol=1e-7)
        same = [key for key in counts if key != ITERATION]
        assert {key: counts[key] for key in same} == {key: alone[4][key] for key in same}
