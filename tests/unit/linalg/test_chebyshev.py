"""Polynomials in D^-1 A: what they are, that they are symmetric, the bound of the spectrum, devices and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom import Chain
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.linalg import ConjugateGradient, Jacobi, SparseMatrix, Stop, distributed_matrix
from fluxloom.linalg.matrix.local_rows import LocalRows
from fluxloom.linalg.precond.chebyshev import Chebyshev, DampedJacobi, Polynomial, inverse_diagonal, like

RECIPES = {
    "one": Chebyshev(1),
    "two": Chebyshev(2),
    "three": Chebyshev(3, ratio=10.0),
    "six": Chebyshev(6),
    "jacobi": DampedJacobi(1),
    "sweeps": DampedJacobi(4, weight=1.0),
}


def laplacian(*sizes: int) -> sparse.csr_array:
    """Return the Laplacian of a grid with Dirichlet boundaries, 2 d on the diagonal."""
    total = sparse.csr_array((1, 1))
    for n in sizes:
        line = sparse.diags_array([-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
        total = sparse.kron(total, sparse.eye_array(n)) + sparse.kron(sparse.eye_array(total.shape[0]), line)
    return sparse.csr_array(total)


def varied(n: int = 12) -> sparse.csr_array:
    """Return a symmetric positive definite matrix with an uneven diagonal."""
    weight = sparse.diags_array(np.random.default_rng(5).uniform(0.5, 3.0, n * n))
    return sparse.csr_array(weight @ (laplacian(n, n) + 0.05 * sparse.eye_array(n * n)) @ weight)


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=2, tuning=False)


def applied(matrix: SparseMatrix, built: Any, r: np.ndarray) -> np.ndarray:
    """Return ``B r``."""
    context = matrix.rows.context
    given, z = context.dat(matrix.rows, r, "r"), context.dat(matrix.rows, np.full_like(r, np.nan), "z")
    Chain(built.apply(given, z))()
    np.testing.assert_array_equal(given.read(), r)
    return z.read()


def error_polynomial(recipe: Any, eigenvalues: np.ndarray, bound: float) -> np.ndarray:
    """Return what the error is multiplied by: a closed formula."""
    if isinstance(recipe, DampedJacobi):
        return (1.0 - recipe.weight / bound * eigenvalues) ** recipe.sweeps
    low = bound / recipe.ratio
    t = np.polynomial.Chebyshev.basis(recipe.degree)
    return t((bound + low - 2.0 * eigenvalues) / (bound - low)) / t((bound + low) / (bound - low))


@pytest.mark.parametrize("kind", RECIPES)
def test_is_the_polynomial(ctx: fl.Context, kind: str) -> None:
    """``I - B A`` has the eigenvalues that theory says, and a smoother multiplies an error by them too."""
    a, recipe = varied(), RECIPES[kind]
    matrix = SparseMatrix.from_scipy(ctx, a)
    built = recipe.build(matrix)
    root = np.sqrt(a.diagonal())
    values, vectors = np.linalg.eigh(a.toarray() / root[:, None] / root[None, :])
    bound = LocalRows.of(matrix).spectrum(1.0 / a.diagonal())[1]
    factor = error_polynomial(recipe, values, bound)
    exact = np.random.default_rng(1).random(a.shape[0])

    def left(x: np.ndarray) -> np.ndarray:
        return (vectors @ (factor * (vectors.T @ (root * x)))) / root

    np.testing.assert_allclose(exact - applied(matrix, built, a @ exact), left(exact), atol=1e-12)
    guess = np.random.default_rng(2).random(a.shape[0])
    r, z = ctx.dat(matrix.rows, a @ exact), ctx.dat(matrix.rows, guess)
    other = like(z, "other")
    Chain(built.again(r, z, other))()
    result = z if built.steps % 2 == 0 else other
    np.testing.assert_allclose(exact - result.read(), left(exact - guess), atol=1e-12)


@pytest.mark.parametrize("kind", RECIPES)
def test_symmetric_and_positive(ctx: fl.Context, kind: str) -> None:
    matrix = SparseMatrix.from_scipy(ctx, varied())
    built = RECIPES[kind].build(matrix)
    x, y = np.random.default_rng(3).normal(size=(2, matrix.rows.size))
    bx, by = applied(matrix, built, x), applied(matrix, built, y)
    assert abs(x @ by - y @ bx) <= 1e-12 * abs(x @ by)
    assert x @ bx > 0
    assert (built.diagonal is not None) == (built.steps == 1)


@pytest.mark.parametrize("kind", ["two", "six", "sweeps"])
def test_several_systems(ctx: fl.Context, kind: str) -> None:
    matrix = SparseMatrix.from_scipy(ctx, varied())
    built = RECIPES[kind].build(matrix)
    r = np.random.default_rng(4).random((matrix.rows.size, 3))
    together = applied(matrix, built, r)
    for k in range(3):
        np.testing.assert_allclose(together[:, k], applied(matrix, built, r[:, k].copy()), rtol=1e-13)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl)])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_devices_agree(ctx: fl.Context, device: str, shape: tuple[int, ...]) -> None:
    a = varied(6)
    r = np.random.default_rng(6).random((36, *shape))
    found = []
    for context in (ctx, fl.Context(device, tuning=False)):
        matrix = SparseMatrix.from_scipy(context, a, layout=fl.SlicedELL(8))
        found.append(applied(matrix, Chebyshev(4).build(matrix), r))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_fewer_iterations_than_jacobi(ctx: fl.Context) -> None:
    matrix = SparseMatrix.from_scipy(ctx, laplacian(32, 32))
    b = ctx.dat(matrix.rows, np.random.default_rng(7).random(1024))
    made = []
    for recipe in (Jacobi(), Chebyshev(4)):
        x = ctx.dat(matrix.rows)
        made.append(ConjugateGradient(matrix, b, x, preconditioner=recipe, stop=Stop(rtol=1e-8)).solve().iterations)
    assert made[1] < 0.4 * made[0]


@pytest.mark.parametrize("matrix", [laplacian(16, 16), laplacian(9, 8, 7), varied()], ids=["2d", "3d", "varied"])
def test_bound_of_the_spectrum(matrix: sparse.csr_array) -> None:
    """The estimate is from below, within 10 %; the bound is above the largest eigenvalue."""
    rows, root = LocalRows(SelfComm(), matrix), np.sqrt(matrix.diagonal())
    largest = np.linalg.eigvalsh(matrix.toarray() / root[:, None] / root[None, :])[-1]
    estimate, bound = rows.spectrum(inverse_diagonal(rows, "test"))
    assert 0.9 * largest <= estimate <= (1 + 1e-12) * largest
    assert (1 - 1e-12) * largest <= bound <= 1.1 * estimate


def test_spectrum_of_little() -> None:
    """Lanczos ends early where the space is exhausted."""
    found = LocalRows(SelfComm(), sparse.csr_array(np.diag([2.0, 2.0]))).spectrum(np.array([0.5, 0.5]))
    np.testing.assert_allclose(found, (1.0, 1.0), rtol=1e-14)
    assert LocalRows(SelfComm(), sparse.csr_array((0, 0))).spectrum(np.zeros(0)) == (1.0, 1.0)


def test_largest_by_hand(ctx: fl.Context) -> None:
    matrix = SparseMatrix.from_scipy(ctx, laplacian(8, 8))
    built = Chebyshev(1, ratio=3.0, largest=2.0).build(matrix)
    assert isinstance(built, Polynomial)
    np.testing.assert_allclose(built.inverse.read(), 0.25 / (4.0 / 3.0))  # theta = (2/3 + 2) / 2


def on_ranks(a: sparse.csr_array, ranks: int) -> np.ndarray:
    """Return ``B r`` of several ranks that have their rows in no order, put together."""
    owner = np.random.default_rng(8).integers(0, ranks, a.shape[0])
    r = np.random.default_rng(9).random(a.shape[0])

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        mine = np.flatnonzero(owner == comm.rank)
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        matrix = distributed_matrix(context, a[mine], rows=mine)
        part = matrix.rows.part
        numbers = mine if part is None else part.numbers[: part.owned]
        return numbers, applied(matrix, Chebyshev(3, largest=2.0).build(matrix), r[numbers])

    out = np.empty_like(r)
    for numbers, values in run_threads(ranks, run):
        out[numbers] = values
    return out


def test_ranks_have_the_bits_of_one() -> None:
    a = varied()
    assert on_ranks(a, 3).tobytes() == on_ranks(a, 1).tobytes()


def test_ranks_estimate_the_same() -> None:
    a = laplacian(10, 10)

    def run(comm: Comm) -> tuple[float, float]:
        rows = LocalRows(comm, a[np.array_split(np.arange(100), comm.size)[comm.rank]])
        return rows.spectrum(inverse_diagonal(rows, "test"))

    alone, several = run(SelfComm()), run_threads(3, run)
    assert len(set(several)) == 1
    np.testing.assert_allclose(several[0], alone, rtol=1e-10)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Chebyshev(0), "degree is a whole number, at least 1, not 0"),
        (lambda: Chebyshev(2.5), "degree"),
        (lambda: Chebyshev(True), "degree"),
        (lambda: Chebyshev(2, ratio=1.0), "ratio is a number above 1"),
        (lambda: Chebyshev(2, ratio="4"), "ratio"),
        (lambda: Chebyshev(2, largest=-1.0), "largest"),
        (lambda: DampedJacobi(0), "sweeps"),
        (lambda: DampedJacobi(1, weight=2.0), "weight is a number between 0 and 2"),
    ],
)
def test_wrong_choices(make: Any, what: str) -> None:
    with pytest.raises(SolverError, match=what):
        make()


def test_wrong_matrices(ctx: fl.Context) -> None:
    with pytest.raises(SolverError, match=r"row 0 is -4\.0; all must be positive"):
        Chebyshev().build(SparseMatrix.from_scipy(ctx, sparse.csr_array(-laplacian(4, 4))))
    with pytest.raises(SolverError, match="Chebyshev: a square SparseMatrix is wanted"):
        Chebyshev().build(SparseMatrix.from_scipy(ctx, sparse.csr_array(np.ones((2, 3)))))

    def run(comm: Comm) -> None:
        a = sparse.csr_array(np.diag([1.0, 1.0, 0.0, 1.0]))[2 * comm.rank : 2 * comm.rank + 2]
        Chebyshev().build(distributed_matrix(fl.Context("cpu", comm=comm), a))

    with pytest.raises(SolverError, match="rank 1: Chebyshev: the diagonal of row 0 is 0"):
        run_threads(2, run)
