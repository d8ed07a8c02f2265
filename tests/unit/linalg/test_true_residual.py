"""What solvers call converged is converged: residuals of the solution itself, whatever the size of the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.linalg import GMRES, SSOR, BiCGStab, Chebyshev, ConjugateGradient, Jacobi, SparseMatrix, Status, Stop
from fluxloom.linalg.krylov.method import Krylov

METHODS: dict[str, type[Krylov]] = {"cg": ConjugateGradient, "bicgstab": BiCGStab, "gmres": GMRES}
RECIPES: dict[str, Any] = {"none": None, "jacobi": Jacobi(), "ssor": SSOR(), "chebyshev": Chebyshev()}


def line(n: int, end: float = 2.0) -> sparse.csr_array:
    """Return the negative second difference; ``end`` in the corners: 1 fixes no value."""
    middle = np.full(n, 2.0)
    middle[[0, -1]] = end
    one = np.full(n - 1, -1.0)
    return sparse.csr_array(sparse.diags_array([one, middle, one], offsets=[-1, 0, 1]))


def solve(
    method: str, a: Any, b: Any, *, dtype: str = "float64", start: Any = None, device: str = "cpu", **choices: Any
) -> tuple[Any, Status, Any]:  # fmt: skip
    """Return the solution, what came of it, and ``|b - A x| / |b|`` of each system in long numbers."""
    ctx = fl.Context(device, tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, a, dtype=dtype)
    given = np.asarray(b, dtype=dtype)
    x = ctx.dat(matrix.rows, np.zeros_like(given) if start is None else np.asarray(start, dtype), "x")
    status = METHODS[method](matrix, ctx.dat(matrix.rows, given, "b"), x, **choices).solve()
    found, known = x.read().astype(np.longdouble), given.astype(np.longdouble)
    left = known - matrix.to_scipy().toarray().astype(np.longdouble) @ found
    size = (known**2).sum(axis=0)
    return x.read(), status, np.sqrt((left**2).sum(axis=0) / np.where(size > 0, size, 1.0))


@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("recipe", ["none", "jacobi"])
@pytest.mark.parametrize("method", list(METHODS))
def test_single_precision_is_not_called_more_exact_than_it_is(method: str, recipe: str, rtol: float) -> None:
    b = np.random.default_rng(1).random(100)
    stop = Stop(rtol=rtol, iterations=4000)
    _, status, true = solve(method, line(100), b, dtype="float32", stop=stop, preconditioner=RECIPES[recipe])
    assert status.converged == (true <= rtol)
    assert status.relative == pytest.approx(float(true), rel=1e-3)
    if rtol == 1e-7:
        assert status.reason in ("stagnated", "iterations")
        assert true < 1e-2


def test_stagnation_is_told() -> None:
    b = np.random.default_rng(1).random(400)
    _, status, _ = solve("cg", line(400), b, dtype="float32", stop=Stop(rtol=1e-6, iterations=4000))
    assert status.reason == "stagnated"
    with pytest.raises(SolverError, match="falls no further: ask for less with Stop"):
        status.require()


def test_a_restart_goes_below_the_rounding_of_the_recurrence() -> None:
    from fluxloom_lab.problems.matrices import lattice_laplacian

    b = np.random.default_rng(1).random(1024)
    stop = Stop(rtol=2e-5, iterations=4000)
    _, once, true = solve("cg", lattice_laplacian((32, 32)), b, dtype="float32", stop=stop, check_every=0)
    assert once.converged
    assert true > 2e-5  # the recurrence alone says so, and is wrong
    _, status, true = solve("cg", lattice_laplacian((32, 32)), b, dtype="float32", stop=stop)
    assert status.converged
    assert true <= 2e-5
    assert status.iterations > once.iterations
    assert status.history.size == status.iterations + 1


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("method", list(METHODS))
def test_without_a_fixed_value_a_null_space_is_asked_for(method: str, device: str) -> None:
    b = 1.0 + 0.1 * np.random.default_rng(0).random(20)
    _, status, _ = solve(method, line(20, 1.0), b, device=device, stop=Stop(iterations=60))
    assert not status.converged
    with pytest.raises(SolverError, match=r"constants are in the null space.*give nullspace='constant'"):
        status.require()
    x, status, _ = solve(method, line(20, 1.0), b, device=device, nullspace="constant", stop=Stop(iterations=200))
    assert status.converged
    np.testing.assert_allclose(line(20, 1.0) @ x, b - b.mean(), atol=1e-6)


SIZES = [("float32", 1e-23), ("float32", 1e-36), ("float32", 1e25), ("float64", 1e-165), ("float64", 1e-290),
         ("float64", 1e180)]  # fmt: skip


@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_squares_may_leave_the_range(dtype: str, size: float, method: str, recipe: str) -> None:
    b = np.full(20, size)
    choices: dict[str, Any] = {"stop": Stop(rtol=3e-5), "preconditioner": RECIPES[recipe]}
    x, status, true = solve(method, line(20), b, dtype=dtype, **choices)
    assert status.converged
    assert status.iterations > 3
    assert true <= 3e-5
    assert status.norm == pytest.approx(size * 20**0.5, rel=1e-6)
    one, same, _ = solve(method, line(20), np.ones(20), dtype=dtype, **choices)
    assert abs(status.iterations - same.iterations) <= 1
    np.testing.assert_allclose(x / size, one, rtol=1e-3)


@pytest.mark.parametrize("method", ["cg", "bicgstab"])
def test_systems_of_all_sizes_at_once(method: str) -> None:
    b = np.ones((20, 4)) * [1e-165, 1.0, 1e170, 0.0]
    x, status, true = solve(method, line(20), b, stop=Stop(rtol=1e-9))
    assert status.converged
    assert (true[:3] <= 1e-9).all()
    assert not x[:, 3].any()
    assert status.each[3] == 0


@pytest.mark.parametrize("method", list(METHODS))
def test_guesses_and_tolerances_of_another_size(method: str) -> None:
    small = np.full(20, 1e-25)
    _, status, true = solve(method, line(20), small, dtype="float32", stop=Stop(rtol=0.0, atol=1e-29))
    assert status.converged
    assert true * 20**0.5 * 1e-25 <= 1e-29
    _, status, _ = solve(method, line(20), small, dtype="float32", stop=Stop(rtol=0.0, atol=1e-20))
    assert (status.converged, status.iterations) == (True, 0)
    _, status, true = solve(method, line(20), np.ones(20), start=np.full(20, 1e160), stop=Stop(iterations=5000))
    assert status.converged
    assert true <= 1e-8


@pytest.mark.parametrize("recipe", ["none", "jacobi"])
@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e-25), ("float32", 1e20), ("float64", 1e-170)])
@pytest.mark.parametrize("method", list(METHODS))
def test_matrices_of_another_size(method: str, dtype: str, size: float, recipe: str) -> None:
    choices: dict[str, Any] = {"dtype": dtype, "stop": Stop(rtol=3e-5), "preconditioner": RECIPES[recipe]}
    _, status, true = solve(method, line(20) * size, np.ones(20), **choices)
    if (method, size, recipe) == ("gmres", 1e20, "none"):  # squares of products of unit vectors are beyond the range
        assert status.reason == "stagnated"
        return
    assert status.converged
    assert true <= 3e-5


def test_a_breakdown_of_bicgstab_is_gone_on_from() -> None:
    a, b = np.array([[-1.0, -1.0, -1.0], [-1.0, -1.0, 0.0], [1.0, -1.0, -1.0]]), [1.0, 0.0, 0.0]
    _, status, _ = solve("bicgstab", sparse.csr_array(a), b, check_every=0)
    assert status.reason == "breakdown"
    x, status, _ = solve("bicgstab", sparse.csr_array(a), b)
    assert status.converged
    np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-8)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-6)])
@pytest.mark.parametrize("nullspace", ["none", "constant"])
@pytest.mark.parametrize("method", list(METHODS))
def test_a_solution_is_verified_behind_its_solve(method: str, nullspace: Any, dtype: str, rtol: float) -> None:
    """The residual is that of the solution, which stays as it is."""
    ctx, a = fl.Context("cpu", tuning=False), line(200, 1.0 if nullspace == "constant" else 2.0)
    matrix = SparseMatrix.from_scipy(ctx, a, dtype=dtype)
    given = np.random.default_rng(1).random(200).astype(dtype)
    x = ctx.dat(matrix.rows, np.zeros_like(given), "x")
    solver = METHODS[method](matrix, ctx.dat(matrix.rows, given, "b"), x, stop=Stop(rtol=rtol, iterations=4000),
                             nullspace=nullspace, check_every=0)  # fmt: skip
    said, found = solver.solve(), x.read()
    status = solver.verify()
    np.testing.assert_array_equal(x.read(), found)
    right = given.astype(np.longdouble) - (given.mean(dtype=np.float64) if nullspace == "constant" else 0.0)
    left = np.linalg.norm((right - matrix.to_scipy().toarray() @ found.astype(np.longdouble)).astype(float))
    assert status.residual == pytest.approx(left, rel=0.02)
    assert status.converged == (left <= rtol * status.norm)
    assert status.iterations == 0
    if (method, dtype, nullspace) == ("cg", "float32", "none"):
        assert (said.converged, status.converged) == (True, False)  # the recurrence was ahead


def test_only_some_solves_are_checked() -> None:
    ctx = fl.Context("cpu", tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, line(400), dtype="float32")
    b = ctx.dat(matrix.rows, np.random.default_rng(1).random(400).astype(np.float32), "b")
    x = ctx.dat(matrix.rows, np.zeros(400, np.float32), "x")
    solver = ConjugateGradient(matrix, b, x, stop=Stop(rtol=1e-6, iterations=4000), check_every=3)
    reasons = []
    for _ in range(6):
        x.write(0.0)
        reasons.append(solver.solve().reason)
    assert reasons == ["converged", "converged", "stagnated"] * 2
    with pytest.raises(SolverError, match="check_every is a whole number, at least 0"):
        ConjugateGradient(matrix, b, x, check_every=-1)
