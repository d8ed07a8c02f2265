"""Conjugate gradients and BiCGStab: SciPy's results, how they end, and several systems at once."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

import fluxloom as fl
from fluxloom.codegen.unit import generate
from fluxloom.core.errors import SolverError
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.linalg import ConjugateGradient, Jacobi, SparseMatrix, Status, Stop
from fluxloom.linalg.krylov.bicgstab import BiCGStab
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.operators import Operator, Preconditioner, Step
from fluxloom.linalg.precond.jacobi import Diagonal
from tests.golden.fake import FakeItems

METHODS: dict[str, type[Krylov]] = {"cg": ConjugateGradient, "bicgstab": BiCGStab}
REASONS = ("iterations", "breakdown", "not finite")


def line(n: int, low: float, middle: float, high: float) -> sparse.csr_array:
    """Return a matrix with three diagonals."""
    parts = [np.full(n - 1, low), np.full(n, middle), np.full(n - 1, high)]
    return sparse.csr_array(sparse.diags_array(parts, offsets=[-1, 0, 1]))


def laplacian(n: int = 12) -> sparse.csr_array:
    """Return the negative Laplacian of a square with Dirichlet boundaries, scaled so that Jacobi matters."""
    one, same = line(n, -1.0, 2.0, -1.0), sparse.eye_array(n)
    scale = sparse.diags_array(1.0 + 0.5 * (np.arange(n * n) % 3))
    return sparse.csr_array(scale @ (sparse.kron(one, same) + sparse.kron(same, one)) @ scale)


def neumann(n: int = 12) -> sparse.csr_array:
    """Return the negative Laplacian of a square without Dirichlet boundaries: constants are its null space."""
    one, same = sparse.lil_array(line(n, -1.0, 2.0, -1.0)), sparse.eye_array(n)
    one[0, 0] = one[n - 1, n - 1] = 1.0
    return sparse.csr_array(sparse.kron(one, same) + sparse.kron(same, one))


def convection(n: int = 12, speed: float = 1.5) -> sparse.csr_array:
    """Return diffusion and upwind convection in a square: not symmetric, and no multiple of a normal matrix."""
    one, same = line(n, -1.0 - speed, 2.0 + speed, -1.0), sparse.eye_array(n)
    scale = sparse.diags_array(1.0 + np.arange(n * n) % 5)
    return sparse.csr_array(scale @ (sparse.kron(one, same) + sparse.kron(same, line(n, -1.2, 2.2, -1.0))))


MATRICES = {"cg": laplacian, "bicgstab": convection}


@dataclass(frozen=True)
class Unfolded:
    """Jacobi's preconditioner that solvers take for one that is not diagonal."""

    def build(self, matrix: Operator) -> Unfolded.Built:
        """Return it."""
        return Unfolded.Built(Jacobi().build(matrix))

    class Built:
        """One that counts how often loops are asked for."""

        diagonal = None

        def __init__(self, jacobi: Diagonal) -> None:
            self.jacobi, self.applied = jacobi, 0

        def apply(self, r: fl.Dat, z: fl.Dat) -> Sequence[Step]:
            """Return ``z = D r``."""
            self.applied += 1
            return self.jacobi.apply(r, z)


RECIPES = {"none": None, "jacobi": Jacobi(), "unfolded": Unfolded()}


class Wrapped:
    """A matrix of which solvers know only its products."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self.inner, self.rows = matrix, matrix.rows

    def product(self, x: fl.Dat, y: fl.Dat) -> Step:
        """Return ``y = A x``."""
        return self.inner.product(x, y)

    def product_dot(self, x: fl.Dat, y: fl.Dat, result: fl.Global) -> Step:
        """Return ``y = A x``, ``result += x . y``."""
        return self.inner.product_dot(x, y, result)

    def residual(self, x: fl.Dat, b: fl.Dat, r: fl.Dat) -> Step:
        """Return ``r = b - A x``."""
        return self.inner.residual(x, b, r)


def solver(
    method: str, a: Any, b: Any, x: Any = None, *, context: fl.Context | None = None, dtype: str = "float64",
    **choices: Any,
) -> Krylov:  # fmt: skip
    """Return a solver with dats of its own."""
    ctx = context if context is not None else fl.Context("cpu", threads=1, tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, a, dtype=dtype)
    given = np.asarray(b, dtype=dtype)
    start = np.zeros_like(given) if x is None else np.asarray(x, dtype=dtype)
    return METHODS[method](matrix, ctx.dat(matrix.rows, given, "b"), ctx.dat(matrix.rows, start, "x"), **choices)


def solve(method: str, a: Any, b: Any, x: Any = None, **choices: Any) -> tuple[np.ndarray, Status]:
    """Return the solution and what came of it."""
    made = solver(method, a, b, x, **choices)
    status = made.solve()
    return made.x.read(), status


def random(n: int, *more: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, *more))


# --------------------------------------------------------------------------------------- against SciPy


@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("method", list(METHODS))
def test_against_scipy(method: str, recipe: str) -> None:
    a = MATRICES[method]()
    b = random(a.shape[0])
    inverse = None if recipe == "none" else sparse.diags_array(1.0 / a.diagonal())
    count = [0]

    def called(_x: np.ndarray) -> None:
        count[0] += 1

    theirs = linalg.cg if method == "cg" else linalg.bicgstab
    want, info = theirs(a, b, rtol=1e-9, M=inverse, callback=called)
    assert info == 0
    x, status = solve(method, a, b, preconditioner=RECIPES[recipe], stop=Stop(rtol=1e-9))
    assert status.converged
    assert status.reason == "converged"
    assert abs(status.iterations - count[0]) <= 1
    assert np.linalg.norm(x - want) < 1e-6 * np.linalg.norm(want)
    assert np.linalg.norm(x - linalg.spsolve(a.tocsc(), b)) < 1e-6 * np.linalg.norm(want)
    assert status.norm == pytest.approx(np.linalg.norm(b))
    assert status.residual == pytest.approx(np.linalg.norm(b - a @ x), rel=1e-3)
    assert status.history.size == status.iterations + 1
    assert status.history[0] == pytest.approx(np.linalg.norm(b))


def test_conjugate_gradients_need_symmetry_and_bicgstab_does_not() -> None:
    a = convection()
    b = random(a.shape[0])
    stop = Stop(rtol=1e-9, iterations=80)
    assert solve("bicgstab", a, b, stop=stop)[1].converged
    assert not solve("cg", a, b, stop=stop)[1].converged


def test_loops_of_a_preconditioner_are_made_once_a_pair_of_vectors() -> None:
    for method, times in (("cg", 1), ("bicgstab", 2)):
        made = solver(method, MATRICES[method](4), random(16), preconditioner=Unfolded(), interval=4)
        assert isinstance(made.preconditioner, Unfolded.Built)
        assert made.preconditioner.applied == times


@pytest.mark.parametrize("method", list(METHODS))
def test_an_operator_that_is_no_matrix(method: str) -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    a = MATRICES[method](8)
    matrix = SparseMatrix.from_scipy(ctx, a)
    ready, found = Jacobi().build(matrix), []
    for operator in (matrix, Wrapped(matrix)):
        b, x = ctx.dat(matrix.rows, random(64), "b"), ctx.dat(matrix.rows, name="x")
        status = METHODS[method](operator, b, x, preconditioner=ready).solve().require()
        found.append((status.iterations, x.read()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-7, atol=1e-9)


# ---------------------------------------------------------------------------------- iterations in chains


@pytest.mark.parametrize("recipe", ["none", "jacobi"])
@pytest.mark.parametrize("method", list(METHODS))
def test_how_many_iterations_a_chain_has_does_not_matter(method: str, recipe: str) -> None:
    a = MATRICES[method](9)
    b = random(81)
    found = [solve(method, a, b, preconditioner=RECIPES[recipe], interval=k) for k in (2, 4, 8)]
    (x, status), others = found[0], found[1:]
    assert status.converged
    assert status.iterations > 8
    for y, other in others:
        assert other.iterations == status.iterations
        assert y.tobytes() == x.tobytes()
        np.testing.assert_array_equal(other.history, status.history)


@pytest.mark.parametrize("method", list(METHODS))
def test_new_values_of_the_right_hand_side_and_of_the_matrix(method: str) -> None:
    a = MATRICES[method](6)
    b = random(36)
    made = solver(method, a, b)
    made.solve().require()
    assert made.solve().iterations == 0  # from the solution
    made.given.write(2.0 * b)
    assert made.matrix.rows is made.x.set
    matrix: Any = made.matrix
    matrix.values.write(4.0 * matrix.values.read())
    status = made.solve().require()
    assert status.iterations > 3
    np.testing.assert_allclose(made.x.read(), linalg.spsolve(a.tocsc(), b) / 2.0, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", list(METHODS))
def test_iterations_run_out(method: str) -> None:
    _, status = solve(method, MATRICES[method](), random(144), stop=Stop(rtol=1e-10, iterations=4), interval=2)
    assert (status.converged, status.reason, status.iterations) == (False, "iterations", 4)
    with pytest.raises(SolverError, match=r"pressure: not converged after 4 iterations.*Stop\(iterations=...\)"):
        status.require("pressure")
    _, none = solve(method, MATRICES[method](), random(144), stop=Stop(iterations=0))
    assert (none.reason, none.iterations) == ("iterations", 0)


# --------------------------------------------------------------------------------------- nothing to do


@pytest.mark.parametrize("recipe", list(RECIPES))
@pytest.mark.parametrize("method", list(METHODS))
def test_zero_right_hand_side_and_solution_as_guess(method: str, recipe: str) -> None:
    a = MATRICES[method](5)
    made = solver(method, a, np.zeros(25), preconditioner=RECIPES[recipe])
    status = made.solve()
    assert (status.converged, status.iterations, status.residual, status.relative) == (True, 0, 0.0, 0.0)
    assert not made.x.read().any()
    made.body()  # a chain that goes on after the end changes nothing
    assert not made.x.read().any()
    want = np.arange(25.0)
    made.given.write(a @ want)
    made.x.write(want)
    status = made.solve()
    assert (status.converged, status.iterations) == (True, 0)
    assert made.x.read().tobytes() == want.tobytes()


# ------------------------------------------------------------------------------------- how solvers fail


def test_zero_diagonal() -> None:
    a = laplacian(3).tolil()
    a[4, 4] = 0.0
    with pytest.raises(SolverError, match=r"the diagonal of row 4 is 0\.0; 1 rows"):
        solver("cg", a.tocsr(), np.ones(9), preconditioner=Jacobi())


def test_direction_without_energy_breaks_conjugate_gradients_down() -> None:
    x, status = solve("cg", sparse.diags_array([1.0, -1.0]), [1.0, 1.0])
    assert (status.converged, status.reason, status.iterations) == (False, "breakdown", 0)
    assert not x.any()
    with pytest.raises(SolverError, match="symmetric matrix and preconditioner, both positive definite"):
        status.require()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", list(METHODS))
def test_an_indefinite_matrix_is_never_passed_over_in_silence(method: str, seed: int) -> None:
    a = random(24, 24, seed=seed)
    a = sparse.csr_array(a + a.T)
    b = random(24, seed=seed + 9)
    x, status = solve(method, a, b, stop=Stop(rtol=1e-6, iterations=20))
    true = np.linalg.norm(b - a @ x)
    assert np.isfinite(x).all()
    assert status.reason in REASONS or true <= 1e-5 * status.norm


BREAKDOWNS = {
    "(r', v)": ([[0, 1], [-1, 0]], [1, 0], 0, [0, 0], 1.0),
    "(t, s)": ([[1, -1, 0], [1, 0, -1], [0, 1, 0]], [1, 0, 0], 1, [1, 0, 0], 1.0),
    "(r', r)": ([[-1, -1, -1], [-1, -1, 0], [1, -1, -1]], [1, 0, 0], 1, None, 1.0),
    "A p": ([[0, 1], [0, 1]], [1, 0], 0, [0, 0], 1.0),
}
"""Matrix, right-hand side, iterations made, solution and residual where each division by zero is."""


def with_ones(a: Any, b: Any, context: fl.Context, interval: int) -> Krylov:
    """Return BiCGStab with a diagonal preconditioner that is the identity."""
    matrix = SparseMatrix.from_scipy(context, sparse.csr_array(np.array(a, dtype=float)))
    ones = Diagonal(context.dat(matrix.rows, np.ones(len(b)), "ones"))
    given, x = context.dat(matrix.rows, np.array(b, dtype=float), "b"), context.dat(matrix.rows, name="x")
    return BiCGStab(matrix, given, x, preconditioner=ones, interval=interval, check_every=0)


@pytest.mark.parametrize(("recipe", "interval"), [("none", 2), ("none", 8), ("unit", 2)])
@pytest.mark.parametrize("what", list(BREAKDOWNS))
def test_breakdowns_of_bicgstab(what: str, recipe: str, interval: int) -> None:
    a, b, iterations, want, residual = BREAKDOWNS[what]
    if recipe == "unit":
        made = with_ones(a, b, fl.Context("cpu", threads=1, tuning=False), interval)
    else:
        made = solver("bicgstab", sparse.csr_array(np.array(a, dtype=float)), b, interval=interval, check_every=0)
    status = made.solve()
    x = made.x.read()
    assert (status.converged, status.reason, status.iterations) == (False, "breakdown", iterations)
    assert status.residual == pytest.approx(residual)
    assert np.linalg.norm(np.array(b) - np.array(a) @ x) == pytest.approx(residual)
    if want is not None:
        np.testing.assert_allclose(x, want, atol=1e-15)
    made.body()
    assert made.x.read().tobytes() == x.tobytes()


@pytest.mark.parametrize("interval", [2, 4])
def test_equal_residuals_are_no_breakdown(interval: int) -> None:
    """A point source at the free end of a rod: ``|r|`` is exactly 1 until the last of ``n`` iterations."""
    n = 14
    a = line(n, -1.0, 2.0, -1.0).tolil()
    a[0, 0] = 1.0
    b = np.zeros(n)
    b[0] = 1.0
    x, status = solve("cg", a.tocsr(), b, interval=interval)
    assert (status.converged, status.iterations) == (True, n)
    np.testing.assert_array_equal(status.history[:-1], np.ones(n))
    np.testing.assert_allclose(x, np.arange(n, 0.0, -1.0), rtol=1e-12)


def test_the_half_step_may_end_it() -> None:
    """``s`` is zero: nothing is left to project."""
    x, status = solve("bicgstab", 4.0 * sparse.eye_array(7), np.arange(7.0))
    assert (status.converged, status.iterations, status.residual) == (True, 1, 0.0)
    np.testing.assert_array_equal(x, np.arange(7.0) / 4.0)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
@pytest.mark.parametrize("method", list(METHODS))
def test_units_do_not_matter(method: str, scale: float) -> None:
    a = MATRICES[method](6)
    b = random(36)
    x, status = solve(method, a, b)
    y, other = solve(method, a, scale * b)
    assert other.converged
    assert abs(other.iterations - status.iterations) <= 1
    np.testing.assert_allclose(y / scale, x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("method", list(METHODS))
def test_what_is_not_finite(method: str, bad: float) -> None:
    a, b = MATRICES[method](5), np.ones(25)
    b[7] = bad
    status = solve(method, a, b)[1]
    assert (status.converged, status.reason, status.iterations) == (False, "not finite", 0)
    status = solve(method, a, np.ones(25), b)[1]
    assert (status.converged, status.reason) == (False, "not finite")
    with pytest.raises(SolverError, match="NaN or infinity"):
        status.require()
    a.data[3] = bad
    assert solve(method, a, np.ones(25), np.ones(25))[1].reason == "not finite"


@pytest.mark.parametrize("method", list(METHODS))
def test_constant_null_space(method: str) -> None:
    a = neumann()
    n = a.shape[0]
    b, start = random(n) + 5.0, random(n, seed=1) + 3.0
    choices: dict[str, Any] = {"preconditioner": Jacobi(), "stop": Stop(rtol=1e-9)}
    x, status = solve(method, a, b, start, nullspace="constant", **choices)
    assert status.converged
    assert abs(x.mean()) < 1e-12
    assert np.linalg.norm(b - b.mean() - a @ x) < 1e-8 * np.linalg.norm(b)
    assert not solve(method, a, b, **choices)[1].converged  # b is not in the range


@dataclass(frozen=True)
class Bare(Preconditioner):
    """A preconditioner whose author misspelt the method."""

    def built(self, matrix: Operator, /) -> Any:
        return None


@dataclass(frozen=True)
class Unbuilt(Preconditioner):
    """A preconditioner whose author forgot to return it."""

    def build(self, matrix: Operator, /) -> Any:
        pass


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "stop": ({"stop": 1e-6}, "stop is a Stop"),
    "nullspace": ({"nullspace": "linear"}, "nullspace is 'none' or 'constant', not 'linear'"),
    "odd": ({"interval": 3}, "interval is an even number of iterations, not 3"),
    "negative": ({"interval": -2}, "interval is an even number"),
    "fraction": ({"interval": 2.0}, "interval is an even number"),
    "text": ({"preconditioner": "jacobi"}, r"such as Jacobi\(\) is wanted, not 'jacobi'"),
    "class": ({"preconditioner": Jacobi}, r"such as Jacobi\(\) is wanted"),
    "no build": ({"preconditioner": Bare()}, r"Bare \(test_krylov.py:\d+\) has no method build\(matrix\)"),
    "nothing": ({"preconditioner": Unbuilt()},
                r"Unbuilt.build \(test_krylov.py:\d+\) returned None: an object with an attribute `diagonal`"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(WRONG))
@pytest.mark.parametrize("method", list(METHODS))
def test_wrong_choices(method: str, what: str) -> None:
    choices, message = WRONG[what]
    with pytest.raises(SolverError, match=message) as caught:
        solver(method, laplacian(2), np.ones(4), name="flow", **choices)
    assert str(caught.value).startswith("flow: ")


@pytest.mark.parametrize("method", list(METHODS))
def test_wrong_vectors(method: str) -> None:
    ctx = fl.Context("reference")
    matrix, make = SparseMatrix.from_scipy(ctx, laplacian(2)), METHODS[method]
    b, x = ctx.dat(matrix.rows, name="b"), ctx.dat(matrix.rows, name="x")
    elsewhere, whole = ctx.dat(ctx.set(4, "other"), name="far"), ctx.dat(matrix.rows, np.arange(4), "whole")
    wide, square = ctx.dat(matrix.rows, shape=(3,)), ctx.dat(matrix.rows, shape=(2, 2))
    given: list[tuple[tuple[Any, Any, Any], str]] = [
        ((laplacian(2), b, x), "a matrix is wanted"), ((matrix, np.ones(4), x), "b: a dat is wanted, not ndarray"),
        ((matrix, b, None), "x: a dat is wanted"), ((matrix, b, b), "b and x are both 'b'"),
        ((matrix, elsewhere, x), "'far'.* is on"), ((matrix, b, wide), r"x \(3,\)"),
        ((matrix, square, ctx.dat(matrix.rows, shape=(2, 2))), "give both"),
        ((matrix, b, whole), "'whole'.* has type int64: give real numbers"),
    ]  # fmt: skip
    for arguments, message in given:
        with pytest.raises(SolverError, match=message):
            make(*arguments)


# ------------------------------------------------------------------------------ several systems, storage


@pytest.mark.parametrize("recipe", ["none", "jacobi", pytest.param("unfolded", marks=pytest.mark.long)])
@pytest.mark.parametrize("method", list(METHODS))
def test_several_systems_are_as_many_single_ones(method: str, recipe: str) -> None:
    a = MATRICES[method](8)
    b = random(64, 3)
    b[:, 1] = a @ np.ones(64)
    start = np.stack([np.zeros(64), np.ones(64), random(64, seed=4)], axis=1)
    x, status = solve(method, a, b, start, preconditioner=RECIPES[recipe])
    assert status.converged
    assert status.each[1] == 0  # the solution is the guess
    np.testing.assert_array_equal(x[:, 1], 1.0)
    for k in range(3):
        alone, single = solve(method, a, b[:, k], start[:, k], preconditioner=RECIPES[recipe])
        assert status.each[k] == single.iterations
        np.testing.assert_allclose(x[:, k], alone, rtol=1e-7, atol=1e-9)
    assert status.iterations == status.each.max()


@pytest.mark.parametrize("method", list(METHODS))
def test_a_system_that_breaks_down_leaves_the_others_alone(method: str) -> None:
    a = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    b = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    x, status = solve(method, a, b)
    assert (status.converged, status.reason) == (False, "breakdown")
    np.testing.assert_array_equal(x, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.0]])


@pytest.mark.parametrize("method", list(METHODS))
def test_single_precision(method: str) -> None:
    a = MATRICES[method](8)
    b = random(64)
    x, status = solve(method, a, b, dtype="float32", stop=Stop(rtol=1e-5), preconditioner=Jacobi())
    assert status.converged
    assert x.dtype == np.float32
    assert np.linalg.norm(b - a @ x) < 1e-4 * np.linalg.norm(b)
    want = solve(method, a, b, stop=Stop(rtol=1e-5), preconditioner=Jacobi())[1]
    assert abs(status.iterations - want.iterations) <= 3


# ------------------------------------------------------------------------------------------------ devices


OPENCL = (("cg", "jacobi"), ("bicgstab", "jacobi"))
"""What always runs there: compiling takes seconds."""


def everywhere() -> list[Any]:
    """Return each method with each recipe on the reference device and through OpenCL."""
    out = []
    for method in METHODS:
        for recipe in RECIPES:
            marks = [pytest.mark.opencl] + ([] if (method, recipe) in OPENCL else [pytest.mark.long])
            out += [(method, recipe, "reference"), pytest.param(method, recipe, "opencl", marks=marks)]
    return out


@pytest.mark.parametrize(("method", "recipe", "device"), everywhere())
def test_devices_agree(method: str, recipe: str, device: str) -> None:
    a = MATRICES[method](5)
    b = random(25, 3) if method == "cg" else random(25)
    choices: dict[str, Any] = {"preconditioner": RECIPES[recipe], "interval": 2, "stop": Stop(rtol=1e-6)}
    want, status = solve(method, a, b, **choices)
    x, other = solve(method, a, b, context=fl.Context(device, tuning=False), **choices)
    assert other.converged
    np.testing.assert_array_equal(other.each, status.each)
    np.testing.assert_allclose(x, want, rtol=1e-6, atol=1e-7)


@pytest.mark.opencl
def test_breakdown_on_work_items() -> None:
    a, b, iterations, *_ = BREAKDOWNS["(t, s)"]
    made = with_ones(a, b, fl.Context("opencl", tuning=False), 2)
    status = made.solve()
    assert (status.reason, status.iterations) == ("breakdown", iterations)


def cuda_text(shape: tuple[int, ...]) -> str:
    """Return the loops of every method as CUDA."""
    ctx = fl.Context(FakeItems("cuda"), tuning=False)
    groups = []
    for method in METHODS:
        for recipe in RECIPES.values():
            matrix = SparseMatrix.from_scipy(ctx, MATRICES[method](4))
            b, x = ctx.dat(matrix.rows, shape=shape, name="b"), ctx.dat(matrix.rows, shape=shape, name="x")
            made = METHODS[method](matrix, b, x, preconditioner=recipe, nullspace="constant", interval=2)
            assert made.end is not None
            loops = [*made.start.loops, *made.body.loops, *made.end.loops]
            groups += [loop.group(Numbering()) for loop in loops]
    return generate([replace(g, symbol=f"{g.symbol}_{k}") for k, g in enumerate(groups)], "cuda").text


@pytest.mark.parametrize("shape", [(), (3,)])
def test_cuda_is_generated(shape: tuple[int, ...]) -> None:
    text = cuda_text(shape)
    for name in ("spmv_project", "half", "advance", "turn", "begin_diagonal", "shifted"):
        assert re.search(rf"__global__ [^\n]*{name}", text), name


@pytest.mark.nvcc
@pytest.mark.long
@pytest.mark.parametrize("shape", [(), (3,)])
def test_cuda_compiles(tmp_path: Path, shape: tuple[int, ...]) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    source = tmp_path / "krylov.cu"
    source.write_text(cuda_text(shape))
    command = [nvcc, "-arch=sm_90", "-std=c++17", "-cubin", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def test_threads_and_layouts() -> None:
    a = convection(16)
    b = random(256)
    want, status = solve("bicgstab", a, b, preconditioner=Jacobi())
    ctx = fl.Context("cpu", threads=2, tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, a, layout=fl.SlicedELL(8))
    x = ctx.dat(matrix.rows, name="x")
    other = BiCGStab(matrix, ctx.dat(matrix.rows, b, "b"), x, preconditioner=Jacobi()).solve()
    assert abs(other.iterations - status.iterations) <= 1
    np.testing.assert_allclose(x.read(), want, rtol=1e-5, atol=1e-7)
