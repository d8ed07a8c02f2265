"""Krylov methods on several ranks: the iterations and the solution of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.linalg import Jacobi, SparseMatrix, Status, Stop, distributed_matrix
from tests.parallel.launch import mpiexec
from tests.unit.linalg.test_krylov import MATRICES, METHODS, RECIPES, neumann, random

STOP = Stop(rtol=1e-8)


def share(comm: Comm, n: int) -> np.ndarray:
    """Return the rows of a rank, in no order."""
    return np.random.default_rng(2).permutation(n)[comm.rank :: comm.size]


def solved(
    comm: Comm, method: str, a: Any, b: np.ndarray, *, device: str = "cpu", reorder: bool = False, **choices: Any
) -> tuple[np.ndarray, np.ndarray, Status]:
    """Return the rows of this rank, its part of the solution, and what came of it."""
    context = fl.Context(device, comm=comm, tuning=False, **({"threads": 1} if device == "cpu" else {}))
    mine = share(comm, a.shape[0])
    matrix = distributed_matrix(context, a[mine], rows=mine, reorder=reorder)
    part = matrix.rows.part
    numbers = np.arange(a.shape[0]) if part is None else part.numbers[: part.owned]
    given, x = context.dat(matrix.rows, b[numbers], "b"), context.dat(matrix.rows, shape=b.shape[1:], name="x")
    status = METHODS[method](matrix, given, x, stop=STOP, **choices).solve()
    return numbers, x.read(), status


def together(ranks: int, method: str, a: Any, b: np.ndarray, **choices: Any) -> tuple[np.ndarray, Status]:
    """Return the whole solution, and what all ranks say came of it."""
    found = run_threads(ranks, lambda comm: solved(comm, method, a, b, **choices))
    out = np.full_like(b, np.nan)
    for numbers, values, status in found:
        out[numbers] = values
        np.testing.assert_array_equal(status.history, found[0][2].history)
        assert (status.reason, status.iterations) == (found[0][2].reason, found[0][2].iterations)
    return out, found[0][2]


def alone(method: str, a: Any, b: np.ndarray, **choices: Any) -> tuple[np.ndarray, Status]:
    """Return what a rank that has no others makes of the whole matrix."""
    context = fl.Context("cpu", threads=1, tuning=False)
    matrix = SparseMatrix.from_scipy(context, a)
    x = context.dat(matrix.rows, shape=b.shape[1:], name="x")
    status = METHODS[method](matrix, context.dat(matrix.rows, b, "b"), x, stop=STOP, **choices).solve()
    return x.read(), status


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long), 3])
@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("method", list(METHODS))
def test_iterations_of_one_rank(method: str, recipe: str, ranks: int) -> None:
    a = MATRICES[method](10)
    b = random(100)
    want, status = alone(method, a, b, preconditioner=RECIPES[recipe])
    x, other = together(ranks, method, a, b, preconditioner=RECIPES[recipe])
    assert other.converged
    assert other.iterations == status.iterations
    np.testing.assert_allclose(x, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("method", "ranks"), [("cg", 1), ("cg", 2), ("bicgstab", 2)])
def test_several_systems_in_rows_that_are_reordered(method: str, ranks: int) -> None:
    a = MATRICES[method](10)
    b = random(100, 3)
    want, status = alone(method, a, b, preconditioner=Jacobi())
    x, other = together(ranks, method, a, b, preconditioner=Jacobi(), reorder=True)
    np.testing.assert_array_equal(other.each, status.each)
    np.testing.assert_allclose(x, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", list(METHODS))
def test_mean_of_all_ranks(method: str) -> None:
    a, b = neumann(8), random(64) + 3.0
    x, status = together(3, method, a, b, nullspace="constant")
    assert status.converged
    assert abs(x.mean()) < 1e-12
    assert np.linalg.norm(b - b.mean() - a @ x) < 1e-7 * np.linalg.norm(b)


@pytest.mark.opencl
def test_ranks_on_work_items() -> None:
    a, b = MATRICES["cg"](6), random(36)
    want, status = alone("cg", a, b, preconditioner=Jacobi())
    x, other = together(2, "cg", a, b, preconditioner=Jacobi(), device="opencl", interval=2)
    assert other.iterations == status.iterations
    np.testing.assert_allclose(x, want, rtol=1e-6, atol=1e-8)


def test_a_zero_diagonal_is_said_on_every_rank() -> None:
    a = MATRICES["cg"](4).tolil()
    a[9, 9] = 0.0

    def run(comm: Comm) -> str:
        with pytest.raises(SolverError, match=r"the diagonal of row 9 is 0\.0; 1 rows") as caught:
            solved(comm, "cg", a.tocsr(), random(16), preconditioner=Jacobi())
        return str(caught.value)

    assert len(set(run_threads(3, run))) == 1


@pytest.mark.mpi
def test_processes(launcher: object) -> None:
    done = mpiexec(
        2,
        """
        from tests.parallel.test_krylov_ranks import alone, solved
        from tests.unit.linalg.test_krylov import MATRICES, random
        from fluxloom.linalg import Jacobi
        import numpy as np

        for method, matrix in MATRICES.items():
            a, b = matrix(10), random(100)
            want, status = alone(method, a, b, preconditioner=Jacobi())
            numbers, x, other = solved(comm, method, a, b, preconditioner=Jacobi())
            assert numbers.size == 50 and other.converged, other
            assert other.iterations == status.iterations, (other.iterations, status.iterations)
            assert np.allclose(x, want[numbers], rtol=1e-6, atol=1e-8)
            if comm.rank == 0:
                print(method, other.reason)
        """,
    )
    assert done.stdout.split() == ["cg", "converged", "bicgstab", "converged"]
