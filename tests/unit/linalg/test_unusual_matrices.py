"""Matrices of whole numbers, without couplings, without rows, or with values that are no numbers; dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom.core.errors import DatError, SolverError
from fluxloom.linalg import (
    SSOR,
    ApproximateInverse,
    BiCGStab,
    Chebyshev,
    ConjugateGradient,
    DampedJacobi,
    Jacobi,
    SmoothedAggregation,
    SparseMatrix,
    Status,
    Stop,
)
from fluxloom.linalg.krylov.method import Krylov

METHODS: list[type[Krylov]] = [ConjugateGradient, BiCGStab]
RECIPES: dict[str, Any] = {
    "none": None, "jacobi": Jacobi(), "ssor": SSOR(), "chebyshev": Chebyshev(), "damped": DampedJacobi(3),
    "inverse": ApproximateInverse(), "aggregation": SmoothedAggregation(),
}  # fmt: skip
BUILT = [name for name in RECIPES if name not in ("none", "jacobi", "ssor")]


def line(n: int, dtype: type = float) -> Any:
    """Return the negative second difference."""
    one = np.ones(n - 1, dtype)
    return sparse.csr_array(sparse.diags_array([-one, 2 * np.ones(n, dtype), -one], offsets=[-1, 0, 1], dtype=dtype))


def solve(method: type[Krylov], a: Any, recipe: str) -> tuple[Any, Status]:
    """Return the solution for a right-hand side of ones."""
    if recipe == "aggregation":
        pytest.importorskip("pyamg")
    ctx = fl.Context("cpu", tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, a)
    b, x = ctx.dat(matrix.rows, np.ones(a.shape[0]), "b"), ctx.dat(matrix.rows, np.zeros(a.shape[0]), "x")
    return x, method(matrix, b, x, preconditioner=RECIPES[recipe]).solve()


@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("method", METHODS)
def test_whole_numbers(method: type[Krylov], dtype: type, recipe: str) -> None:
    x, status = solve(method, line(7, dtype), recipe)
    assert status.converged
    np.testing.assert_allclose(x.read(), np.linalg.solve(line(7).toarray(), np.ones(7)), rtol=1e-7)


UNCOUPLED = {
    "identity": sparse.eye_array(8).tocsr(),
    "many rows": sparse.csr_array(sparse.diags_array(1.0 + np.arange(700) % 3)),
    "one row": sparse.csr_array([[3.0]]),
    "one that differs": sparse.csr_array(sparse.block_diag([sparse.eye_array(5), [[4.0]]])),
    "some fixed": sparse.csr_array(sparse.block_diag([line(30), sparse.eye_array(5)])),
}


@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("matrix", list(UNCOUPLED))
@pytest.mark.parametrize("method", METHODS)
def test_rows_without_couplings(method: type[Krylov], matrix: str, recipe: str) -> None:
    a = UNCOUPLED[matrix]
    x, status = solve(method, a, recipe)
    assert status.converged
    np.testing.assert_allclose(a @ x.read(), 1.0, atol=1e-6)


@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("method", METHODS)
def test_no_rows(method: type[Krylov], recipe: str) -> None:
    x, status = solve(method, sparse.csr_array((0, 0)), recipe)
    assert (status.converged, status.iterations, x.read().size) == (True, 0, 0)


def test_couplings_that_are_left_out_are_told() -> None:
    pytest.importorskip("pyamg")
    ctx = fl.Context("cpu", tuning=False)
    with pytest.raises(SolverError, match=r"too few are coupled; give a smaller theta= \(now 0.9\), or take Chebyshev"):
        SmoothedAggregation(theta=0.9).build(SparseMatrix.from_scipy(ctx, line(50)))


@pytest.mark.parametrize("recipe", BUILT)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_with_values_that_are_no_numbers_are_named(value: float, recipe: str) -> None:
    a = line(8).tolil()
    a[3, 4] = value
    with pytest.raises(SolverError, match=f"the matrix has {value} in row 3, column 4; 1 entries"):
        solve(ConjugateGradient, a.tocsr(), recipe)


@pytest.mark.parametrize("recipe", ["jacobi", "ssor"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_diagonals_that_are_no_numbers_are_named(value: float, recipe: str) -> None:
    a = line(8).tolil()
    a[5, 5] = value
    with pytest.raises(SolverError, match=f"the diagonal of row 5 is {value}"):
        solve(ConjugateGradient, a.tocsr(), recipe)


@pytest.mark.parametrize("recipe", ["aggregation", "inverse", "chebyshev"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [12, 30])
def test_constants_that_hide_the_right_hand_side(n: int, method: type[Krylov], recipe: str) -> None:
    a = line(n).tolil()
    a[0, 0] = a[n - 1, n - 1] = 1.0  # no solution: the iterates grow, beyond 1e16 a 1 is lost in their differences
    _, status = solve(method, sparse.csr_array(a), recipe)
    assert not status.converged
    assert "nullspace='constant'" in status.hint


def test_exact_solutions_are_solutions() -> None:
    ctx = fl.Context("cpu", tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, line(4))
    b, x = ctx.dat(matrix.rows, np.ones(4), "b"), ctx.dat(matrix.rows, np.array([2.0, 3.0, 3.0, 2.0]), "x")
    status = ConjugateGradient(matrix, b, x).solve()
    assert (status.converged, status.iterations, status.relative) == (True, 0, 0.0)


def test_dense_matrices() -> None:
    ctx = fl.Context("cpu", tuning=False)
    dense = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    made = SparseMatrix.from_scipy(ctx, dense)
    assert made.entries == 3
    np.testing.assert_array_equal(made.to_scipy().toarray(), dense)
    with pytest.raises(DatError, match="masked array: fill the masked values"):
        SparseMatrix.from_scipy(ctx, np.ma.array(dense, mask=dense == 1.0))
    for wrong in (np.ones(3), [[1.0], [1.0, 2.0]], "matrix", None, np.eye(2) * 1j):
        with pytest.raises(DatError, match=r"real numbers of shape \(rows, columns\), are wanted"):
            SparseMatrix.from_scipy(ctx, wrong)


@pytest.mark.parametrize("choices", [{"rtol": True}, {"atol": False}, {"iterations": True}])
def test_truth_values_are_no_tolerances(choices: dict[str, Any]) -> None:
    with pytest.raises(SolverError, match=r"Stop: .* number of at least 0, not (True|False)"):
        Stop(**choices)
