"""Extruded meshes on several ranks: parts of the plane, teams for frequencies, and the solution of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.linalg import ApproximateInverse, Status, Stop
from fluxloom.linalg.direct.extruded.batch import Batch, PlaneGradients
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
from fluxloom.linalg.direct.extruded.tuning import ExtrudedTuning, Trial
from fluxloom_lab.strategies.sparse_factors import SparseFactors
from tests.parallel.launch import mpiexec
from tests.unit.linalg.test_krylov import laplacian, neumann

SIDE, PLANES = 7, 9
STOP = Stop(rtol=1e-10)
AREAS = 0.5 + np.random.default_rng(5).random(SIDE * SIDE)
RIGHT = np.random.default_rng(1).standard_normal((SIDE * SIDE, PLANES))


def share(comm: Comm, mixed: bool) -> np.ndarray:
    """Return the rows of a rank: consecutive, or from everywhere and in no order."""
    if mixed:
        return np.random.default_rng(2).permutation(SIDE * SIDE)[comm.rank :: comm.size]
    return np.array_split(np.arange(SIDE * SIDE), comm.size)[comm.rank]


def made(
    comm: Comm, plane: Any, groups: int, mixed: bool = False, kind: type[ExtrudedPoisson] = ExtrudedPoisson,
    **choices: Any,
) -> tuple[np.ndarray, ExtrudedPoisson]:  # fmt: skip
    """Return the rows of this rank, and a solver with its right-hand side."""
    context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
    rows = share(comm, mixed)
    given: dict[str, Any] = {"stop": STOP} | choices
    matrix = ExtrudedMatrix(plane[rows], AREAS[rows], planes=PLANES, spacing=0.3, rows=rows)
    solver = kind(context, matrix, groups=groups, **given)
    solver.b.write(RIGHT[rows])
    return rows, solver


def solved(comm: Comm, plane: Any, groups: int, mixed: bool = False, **choices: Any) -> tuple[Any, Any, Status]:
    rows, solver = made(comm, plane, groups, mixed, **choices)
    solver.solve()
    solver.x.write(np.ones((rows.size, PLANES)))
    status = solver.solve()
    assert solver.verify().residual == pytest.approx(status.residual, rel=0.01)
    return rows, solver.x.read(), status


def together(ranks: int, *arguments: Any, **choices: Any) -> tuple[np.ndarray, Status]:
    """Return the whole solution, and what all ranks say came of it."""
    found = run_threads(ranks, lambda comm: solved(comm, *arguments, **choices))
    out = np.full((SIDE * SIDE, PLANES), np.nan)
    for rows, values, status in found:
        out[rows] = values
        np.testing.assert_array_equal(status.each, found[0][2].each)
        assert (status.reason, status.residual) == (found[0][2].reason, found[0][2].residual)
    return out, found[0][2]


@pytest.mark.parametrize(
    ("ranks", "groups", "mixed"),
    [(2, 2, True), (4, 2, True),
     *(pytest.param(*case, marks=pytest.mark.long)
       for case in ((2, 1, False), (3, 1, True), (3, 3, False), (4, 1, False), (4, 4, False)))],
)
def test_solution_of_one_rank(ranks: int, groups: int, mixed: bool) -> None:
    plane = neumann(SIDE)
    want, status = together(1, plane, 1)
    x, other = together(ranks, plane, groups, mixed)
    assert other.converged
    np.testing.assert_array_equal(other.each, status.each)
    np.testing.assert_allclose(x, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("ranks", "groups"), [(2, 2), pytest.param(4, 2, marks=pytest.mark.long)])
def test_other_preconditioners(ranks: int, groups: int) -> None:
    plane = laplacian(SIDE)
    want, status = together(1, plane, 1, preconditioner=ApproximateInverse())
    x, other = together(ranks, plane, groups, method=PlaneGradients(ApproximateInverse()))
    np.testing.assert_array_equal(other.each, status.each)
    np.testing.assert_allclose(x, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("ranks", "groups"), [(1, 1), (2, 1), (3, 1), (4, 2), (2, 2)])
@pytest.mark.parametrize("make", [laplacian, neumann])
def test_direct_as_conjugate_gradients(make: Any, ranks: int, groups: int) -> None:
    want, _ = together(1, make(SIDE), 1, stop=Stop(rtol=1e-13))
    x, status = together(ranks, make(SIDE), groups, True, method=SparseFactors())
    assert status.converged
    assert status.relative < 1e-13
    np.testing.assert_allclose(x, want, rtol=1e-9, atol=1e-11)


def test_cells_in_an_order_of_their_own() -> None:
    plane = laplacian(SIDE)
    want, _ = together(1, plane, 1)

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        rows, plain = made(comm, plane, 2)
        context = plain.context
        order = np.random.default_rng(comm.rank).permutation(rows.size * PLANES).reshape(rows.size, PLANES)
        first = sum(comm.allgather(order.size)[: comm.rank])
        cells = local_set(context, order.size, "cells", first + np.arange(order.size))
        scattered = np.empty(order.size)
        scattered[order] = RIGHT[rows]
        b, x = context.dat(cells, scattered, "b"), context.dat(cells, name="x", shape=())
        matrix = ExtrudedMatrix(plane[rows], AREAS[rows], planes=PLANES, spacing=0.3, rows=rows)
        solver = ExtrudedPoisson(context, matrix, groups=2, b=b, x=x, order=order, stop=STOP)
        for _ in range(2):
            assert solver.solve().converged
        return rows, x.read()[order]

    for rows, values in run_threads(4, run):
        np.testing.assert_allclose(values, want[rows], rtol=1e-6, atol=1e-8)


def test_frequencies_given_by_hand() -> None:
    plane = laplacian(SIDE)
    want, _ = together(1, plane, 1)

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        rows, solver = made(comm, plane, 2)
        with pytest.raises(SolverError, match=r"5 frequencies cannot be divided at \[0, 5, 5\]"):
            solver.divide([0, 5, 5])
        solver.solve()
        for bounds in ([0, 1, 5], [0, 4, 5]):
            solver.divide(bounds)
            mine = range(bounds[comm.rank % 2], bounds[comm.rank % 2 + 1])
            assert [k for batch in solver.batches for k in batch.members] == list(mine)
            assert solver.solve().iterations == 0  # what was found stays found
        solver.x.write(np.zeros((rows.size, PLANES)))
        assert solver.solve().converged
        return rows, solver.x.read()

    for rows, values in run_threads(2, run):
        np.testing.assert_allclose(values, want[rows], rtol=1e-6, atol=1e-8)


class SlowTeam(ExtrudedPoisson):
    """A solver whose first team takes ten times as long."""

    def _timed(self, batch: Batch, share: float, checked: bool) -> Status:
        status = super()._timed(batch, share, checked)
        batch.seconds = len(batch.members) * (10.0 if self.teams.team == 0 else 1.0)
        return status


def test_work_leaves_a_slow_team() -> None:
    def run(comm: Comm) -> tuple[list[Trial], tuple[int, ...], np.ndarray, np.ndarray]:
        tuning = ExtrudedTuning(solves=1, tolerance=0.2)
        rows, solver = made(comm, laplacian(SIDE), 2, kind=SlowTeam, method=PlaneGradients(tuning=tuning))
        for _ in range(30):
            assert solver.solve().converged
            if solver.tuned:
                break
        assert solver.tuned
        return solver.trace, tuple(solver.bounds), rows, solver.x.read()

    found = run_threads(4, run)
    assert all(trace == found[0][0] and bounds == found[0][1] for trace, bounds, *_ in found)
    trace, bounds, *_ = found[0]
    assert trace[0].division.bounds == (0, 2, 5)
    assert bounds == (0, 1, 5)
    assert min(trial.imbalance for trial in trace) < trace[0].imbalance
    want, _ = together(1, laplacian(SIDE), 1)
    for _, _, rows, values in found:
        np.testing.assert_allclose(values, want[rows], rtol=1e-6, atol=1e-8)


def test_wrong_input_is_said_on_every_rank() -> None:
    def run(comm: Comm) -> list[str]:
        said = []
        plane = laplacian(SIDE).tolil()
        plane[3, 4] += 1.0
        for given, groups in ((plane.tocsr(), 1), (laplacian(SIDE), 2), (laplacian(SIDE)[:, :-1], 3)):
            with pytest.raises(SolverError) as caught:
                made(comm, given, groups)
            said.append(str(caught.value))
        return said

    found = run_threads(3, run)
    assert all(said == found[0] for said in found)
    assert "plane is not symmetric" in found[0][0]
    assert "3 ranks cannot be divided into 2 teams" in found[0][1]
    assert "49 rows" in found[0][2]


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "groups"), [(2, (1, 2)), pytest.param(4, (1, 2, 4), marks=pytest.mark.long)])
def test_processes(launcher: object, ranks: int, groups: tuple[int, ...]) -> None:
    done = mpiexec(
        ranks,
        """
        from tests.parallel.test_extruded_ranks import RIGHT, solved, together
        from tests.unit.linalg.test_krylov import neumann
        import sys
        import numpy as np

        want, _ = together(1, neumann(7), 1)
        for groups in map(int, sys.argv[1:]):
            rows, x, status = solved(comm, neumann(7), groups, True)
            assert status.converged and np.allclose(x, want[rows], rtol=1e-8, atol=1e-10)
            if comm.rank == 0:
                print(groups, status.reason)
        """,
        *groups,
    )
    assert done.stdout.split() == [word for count in groups for word in (str(count), "converged")]
