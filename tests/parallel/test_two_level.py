"""Gather, solve, scatter: ranks that let one device a group solve get the solution, and all the same status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError, FluxloomError, SolverError
from fluxloom.dsl.declare.parts import Part
from fluxloom.graph.partition import cut_edges
from fluxloom.linalg import BiCGStab, ConjugateGradient, Jacobi, Status, Stop, distributed_matrix
from fluxloom.linalg.mixed.two_level import GatheredSolver, GatherTimes
from fluxloom.linalg.mixed.two_level_rows import GroupRows, group_colours, nested_parts, spread_rows
from fluxloom_lab.problems.matrices import lattice_laplacian, tet_dual
from tests.parallel.launch import mpiexec
from tests.parallel.test_krylov_ranks import alone, share
from tests.unit.linalg.test_krylov import MATRICES, neumann, random

STOP = Stop(rtol=1e-9)


def gathered(
    comm: Comm, a: Any, b: np.ndarray, *, plain: bool = False, **choices: Any
) -> tuple[np.ndarray, np.ndarray, Status, GatherTimes]:
    """Return the rows of this rank, its part of the solution, what came of it, and the times."""
    context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
    mine = share(comm, a.shape[0])
    matrix = distributed_matrix(context, a[mine], rows=mine)
    part = matrix.rows.part
    numbers = np.arange(a.shape[0]) if part is None else part.numbers[: part.owned]
    given, x = context.dat(matrix.rows, b[numbers], "b"), context.dat(matrix.rows, shape=b.shape[1:], name="x")
    choices = {"device": "cpu:1", "preconditioner": Jacobi(), "stop": STOP} | choices
    solver = GatheredSolver(a[numbers] if plain else matrix, given, x, **choices)
    assert (solver.solver is None) == (solver.masters is None) == (solver.group.rank > 0)
    status = solver.solve()
    again = solver.solve()
    assert again.iterations == 0, "it does not start from x"
    assert solver.times.calls == 2
    assert solver.verify().residual == again.residual
    given.write(0.5 * b[numbers])
    assert not solver.verify().converged
    solver.solve().require()
    doubled = x.read()
    given.write(b[numbers])
    solver.solve().require()
    np.testing.assert_allclose(x.read(), 2.0 * doubled, rtol=1e-5, atol=1e-6)
    return numbers, x.read(), status, solver.times


@pytest.mark.parametrize(
    ("ranks", "groups", "plain"),
    [(1, 1, False), (3, 1, False), (4, 2, False), (3, 3, True), (5, (0, 1, 0, 1, 1), True)],
)
def test_solution_of_one_rank(ranks: int, groups: int | Sequence[int], plain: bool) -> None:
    a, b = MATRICES["cg"](14), random(196)
    want, status = alone("cg", a, b, preconditioner=Jacobi())
    found = run_threads(ranks, lambda comm: gathered(comm, a, b, groups=groups, plain=plain))
    for numbers, x, its, times in found:
        np.testing.assert_allclose(x, want[numbers], rtol=1e-5, atol=1e-7)
        assert its.converged
        np.testing.assert_array_equal(its.history, found[0][2].history)
        assert times.calls == 4
        assert min(times.gather, times.solve, times.scatter) > 0
        assert times.overhead == pytest.approx((times.gather + times.scatter) / times.solve)
    assert abs(found[0][2].iterations - status.iterations) <= 6  # to 1e-9 instead of 1e-8


@pytest.mark.parametrize("rest", [False, True])
def test_other_method_several_systems(rest: bool) -> None:
    a, b = MATRICES["bicgstab"](10), random(100, 3)
    found = run_threads(3, lambda comm: gathered(comm, a, b, groups=1, method=BiCGStab, rest=rest, reorder=True))
    x = np.empty_like(b)
    for numbers, values, _, _ in found:
        x[numbers] = values
    np.testing.assert_allclose(a @ x, b, atol=1e-6)


def test_null_space_across_masters() -> None:
    a, b = neumann(10), random(100)
    b -= b.mean()

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray, Status]:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        mine = np.arange(100)[comm.rank :: comm.size]
        matrix = distributed_matrix(context, a[mine], rows=mine)
        assert matrix.rows.part is not None
        numbers = matrix.rows.part.numbers[: matrix.rows.size]
        x = context.dat(matrix.rows, name="x")
        solver = GatheredSolver(
            matrix, context.dat(matrix.rows, b[numbers], "b"), x, groups=2, device=["cpu:1", "cpu:1"],
            nullspace="constant", stop=STOP,
        )  # fmt: skip
        status = solver.solve().require()
        return numbers, x.read(), status

    x = np.empty(100)
    for numbers, values, _ in run_threads(4, run):
        x[numbers] = values
    np.testing.assert_allclose(a @ x, b, atol=1e-7)
    assert abs(x.mean()) < 1e-12


@pytest.mark.opencl
def test_master_with_work_items() -> None:
    a, b = MATRICES["cg"](10), random(100)
    want, _ = alone("cg", a, b, preconditioner=Jacobi())
    for numbers, x, _, _ in run_threads(3, lambda comm: gathered(comm, a, b, device="opencl")):
        np.testing.assert_allclose(x, want[numbers], rtol=1e-5, atol=1e-7)


def test_context_of_the_callers_making() -> None:
    a, b = MATRICES["cg"](8), random(64)

    def make(masters: Comm) -> fl.Context:
        return fl.Context("cpu", threads=1, comm=masters, schedule=fl.Schedule(deterministic="global"))

    def wrong(_masters: Comm) -> fl.Context:
        return fl.Context("cpu", threads=1)

    want, _ = alone("cg", a, b, preconditioner=Jacobi())
    for numbers, x, _, _ in run_threads(2, lambda comm: gathered(comm, a, b, device=make, groups=2)):
        np.testing.assert_allclose(x, want[numbers], rtol=1e-5, atol=1e-7)
    with pytest.raises(SolverError, match="not a context with the communicator it got"):
        run_threads(2, lambda comm: gathered(comm, a, b, device=wrong, groups=2))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"groups": 3}, "3 groups of 2 ranks"),
        ({"groups": 0}, "0 groups of 2 ranks"),
        ({"groups": (0,)}, r"groups \[0\]: give the number of the group"),
        ({"groups": (0, -1)}, "from 0, of each of 2 ranks"),
        ({"device": "cup"}, "did you mean 'cpu'"),
        ({"device": ["cpu", "cpu"]}, "2 devices for 1 groups"),
        ({"matrix": 7}, "not int"),
        ({"matrix": lattice_laplacian((8, 8))}, r"rows of shape \(64, 64\) for 32 of 64 rows"),
        ({"same": True}, "two dats of one shape"),
        ({"preconditioner": 3}, "a preconditioner such as"),
    ],
)
def test_wrong_arguments(choices: dict[str, Any], message: str) -> None:
    """All ranks say the same, or end because of the one that does."""

    def run(comm: Comm) -> None:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        first = 32 * comm.rank
        given: dict[str, Any] = {"matrix": lattice_laplacian((8, 8), range(first, first + 32))} | choices
        rows = context.set(Part(0, 32, 32, 32, 32, np.arange(first, first + 32), 64), "rows")
        b, x = context.dat(rows, name="b"), context.dat(rows, name="x")
        x = b if given.pop("same", False) else x
        GatheredSolver(given.pop("matrix"), b, x, **given)

    with pytest.raises(FluxloomError, match=message):
        run_threads(2, run)


def test_a_master_that_cannot_solve_tells_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    a = MATRICES["cg"](6)

    def fails(_self: ConjugateGradient) -> Status:
        raise SolverError("no memory left")

    def run(comm: Comm) -> str:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        mine = np.arange(36)[comm.rank :: 2]
        matrix = distributed_matrix(context, a[mine], rows=mine)
        solver = GatheredSolver(matrix, context.dat(matrix.rows, name="b"), context.dat(matrix.rows, name="x"))
        monkeypatch.setattr(ConjugateGradient, "solve", fails)
        with pytest.raises(SolverError, match="gathered solver: no memory left") as caught:
            solver.solve()
        return str(caught.value)

    assert len(set(run_threads(2, run))) == 1


# ------------------------------------------------------------------------------------------ rows of groups


def spread(comm: Comm, a: Any, groups: int, shares: Sequence[float], **choices: Any) -> tuple[GroupRows, int]:
    group = comm.split(group_colours(comm.size, groups)[comm.rank], comm.rank)
    assert group is not None
    n = a.shape[0]
    mine = np.arange(comm.rank * n // comm.size, (comm.rank + 1) * n // comm.size)
    return spread_rows(group, a[mine], mine, shares, **choices), group.rank


@pytest.mark.parametrize(("shares", "inner_first"), [((1.0, 0.0), True), ((0.3, 0.7), True), ((1.0, 0.0), False)])
def test_first_rank_has_inner_rows_only(shares: tuple[float, float], inner_first: bool) -> None:
    """The interface to other groups is the least load of the ranks behind the first one."""
    a = lattice_laplacian((20, 10))
    found = run_threads(4, lambda comm: spread(comm, a, 2, shares, inner_first=inner_first))
    whole = np.sort(np.concatenate([part.numbers for part, _ in found]))
    np.testing.assert_array_equal(whole, np.arange(200))
    for number, (part, rank) in enumerate(found):
        assert abs(part.rows - a[part.numbers]).sum() == 0
        assert part.inner == 90
        if inner_first and rank == 0:
            group = np.arange(100) + 100 * (number // 2)
            assert np.isin(part.rows.indices, group).all()
            assert part.numbers.size == min(90, round(100 * shares[0]))
    if not inner_first:
        assert [part.numbers.size for part, _ in found] == [100, 0, 100, 0]


def test_iterations_do_not_depend_on_the_division() -> None:
    """Conjugate gradients on rows that were divided anew in each group: as on one rank."""
    a, b = MATRICES["cg"](12), random(144)
    want, status = alone("cg", a, b, preconditioner=Jacobi())

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray, int]:
        part, _ = spread(comm, a, 2, (0.8, 0.2))
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        matrix = distributed_matrix(context, part.rows, rows=part.numbers)
        assert matrix.rows.part is not None
        numbers = matrix.rows.part.numbers[: matrix.rows.size]
        x = context.dat(matrix.rows, name="x")
        given = context.dat(matrix.rows, b[numbers], "b")
        its = ConjugateGradient(matrix, given, x, preconditioner=Jacobi(), stop=Stop(rtol=1e-8)).solve()
        return numbers, x.read(), its.iterations

    for numbers, x, iterations in run_threads(4, run):
        np.testing.assert_allclose(x, want[numbers], rtol=1e-5, atol=1e-7)
        assert iterations == status.iterations


def test_shares_of_a_group_that_do_not_sum() -> None:
    with pytest.raises((SolverError, CommError), match="which sum to 1"):
        run_threads(2, lambda comm: spread(comm, lattice_laplacian((4, 4)), 1, (0.5, 0.4)))


@pytest.mark.parametrize(
    ("ranks", "groups", "want"), [(5, 2, (0, 0, 0, 1, 1)), (4, 4, (0, 1, 2, 3)), (2, (1, 0), (1, 0))]
)
def test_colours(ranks: int, groups: int | Sequence[int], want: tuple[int, ...]) -> None:
    assert group_colours(ranks, groups) == want


def test_parts_in_two_levels() -> None:
    """Groups by their ranks, equal parts in each, and no more edges cut between groups than METIS cuts at once."""
    pytest.importorskip("pymetis")
    a = tet_dual(15_000)
    rank = nested_parts(a.indptr, a.indices, [2, 1, 3])
    counts = np.bincount(rank, minlength=6)
    np.testing.assert_allclose(counts, rank.size / 6, rtol=0.06)
    group = np.array([0, 0, 1, 2, 2, 2], dtype=np.int32)[rank]
    offsets, ends = a.indptr.astype(np.int64), a.indices.astype(np.int32)
    assert cut_edges(offsets, ends, group) < 0.6 * cut_edges(offsets, ends, rank)
    with pytest.raises(SolverError, match="at least one rank each"):
        nested_parts(a.indptr, a.indices, [2, 0])


@pytest.mark.mpi
def test_processes(launcher: object) -> None:
    done = mpiexec(
        4,
        """
        from tests.parallel.test_krylov_ranks import alone
        from tests.parallel.test_two_level import gathered
        from tests.unit.linalg.test_krylov import MATRICES, random
        from fluxloom.linalg import Jacobi
        import numpy as np

        a, b = MATRICES["cg"](10), random(100)
        want, _ = alone("cg", a, b, preconditioner=Jacobi())
        numbers, x, status, times = gathered(comm, a, b, groups=2)
        assert status.converged and times.calls == 4
        assert np.allclose(x, want[numbers], rtol=1e-5, atol=1e-7)
        if comm.rank == 0:
            print(status.reason)
        """,
    )
    assert done.stdout.split() == ["converged"]
