"""The factorised approximate inverse: its rows against dense ones, iterations, many ranks, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom import Chain, Loop
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.linalg import SparseMatrix, distributed_matrix
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.precond.approximate_inverse import ApproximateInverse, FactorisedInverse
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import Status
from fluxloom_lab.problems.matrices import GENERATORS
from tests.unit.linalg.test_rings import Rows, scattered, slices

Array = npt.NDArray[np.float64]


def laplacian(*shape: int) -> sparse.csr_array:
    """Return the Laplacian on a lattice with Dirichlet boundaries."""
    total = sparse.csr_array((1, 1))
    for n in shape:
        line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
        total = sparse.kron(total, sparse.eye_array(n)) + sparse.kron(sparse.eye_array(total.shape[0]), line)
    return sparse.csr_array(total)


def irregular(entries: int = 3000) -> sparse.csr_array:
    """Return the Laplacian of a triangulation, rows and columns scaled: numbers of very different size."""
    a = GENERATORS["laplacian2d"](entries, 1)
    scale = sparse.diags_array(10.0 ** np.random.default_rng(0).uniform(-2.0, 2.0, a.shape[0]))
    a = sparse.csr_array(scale @ a @ scale)
    return sparse.csr_array((a + a.T) / 2.0)


def reference(a: Any, level: int = 1, drop: float = 0.0) -> Array:
    """Return the factor, row by row from its definition."""
    dense = a.toarray()
    size = np.sqrt(np.diag(dense))
    near = (np.abs(dense) >= drop * np.outer(size, size)) & (dense != 0.0)
    pattern = np.linalg.matrix_power(near.astype(np.int64), level) > 0
    factor = np.zeros_like(dense)
    for i in range(len(dense)):
        j = np.flatnonzero(pattern[i, : i + 1])
        y = np.linalg.solve(dense[np.ix_(j, j)], np.eye(j.size)[-1])
        factor[i, j] = y / np.sqrt(y[-1])
    return factor


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("cpu", threads=2, tuning=False)


def solve(context: fl.Context, a: Any, preconditioner: Any, systems: tuple[int, ...] = ()) -> tuple[Status, Array]:
    matrix = SparseMatrix.from_scipy(context, a)
    b = context.dat(matrix.rows, np.random.default_rng(5).random((a.shape[0], *systems)), "b")
    x = context.dat(matrix.rows, np.zeros((a.shape[0], *systems)), "x")
    status = ConjugateGradient(matrix, b, x, preconditioner=preconditioner).solve()
    assert np.abs(a @ x.read() - b.read()).max() <= 1e-6 * np.abs(b.read()).max() * np.sqrt(a.shape[0])
    return status, x.read()


# ------------------------------------------------------------------------------------------ the factor


@pytest.mark.parametrize(("level", "drop"), [(1, 0.0), (2, 0.0), (3, 0.0), (1, 0.15), (2, 0.15)])
@pytest.mark.parametrize("kind", ["lattice", "irregular"])
def test_factor_is_that_of_the_definition(context: fl.Context, kind: str, level: int, drop: float) -> None:
    a = laplacian(6, 5, 4) * 0.5 if kind == "lattice" else irregular(900)
    built = ApproximateInverse(level=level, drop=drop).build(SparseMatrix.from_scipy(context, a))
    factor = built.factor.to_scipy().toarray()
    want = reference(a, level, drop)
    scale = np.abs(want).max(axis=1, keepdims=True)
    np.testing.assert_allclose(factor / scale, want / scale, atol=1e-13)
    assert np.array_equal(factor, np.tril(factor))
    np.testing.assert_array_equal(built.transposed.to_scipy().toarray(), factor.T)
    np.testing.assert_allclose(np.diag(factor @ a.toarray() @ factor.T), 1.0, atol=1e-12)
    assert built.diagonal is None


def test_drop_takes_entries_out_of_the_pattern(context: fl.Context) -> None:
    matrix = SparseMatrix.from_scipy(context, irregular())
    entries = [ApproximateInverse(drop=drop).build(matrix).factor.entries for drop in (0.0, 0.15, 0.99)]
    assert entries[0] > entries[1] > entries[2] == matrix.rows.size


def test_layout_of_the_factors(context: fl.Context) -> None:
    matrix = SparseMatrix.from_scipy(context, irregular(900), layout=fl.SlicedELL(8))
    built = ApproximateInverse(layout=fl.ELL()).build(matrix)
    assert built.factor.layout == built.transposed.layout == fl.ELL()
    assert ApproximateInverse().build(matrix).factor.layout == fl.CSR()


def applied(built: FactorisedInverse, context: fl.Context, values: Array, dtype: str = "float64") -> Array:
    rows = built.factor.rows
    r = context.dat(rows, values, "r", dtype=dtype)
    z = context.dat(rows, np.full_like(values, np.nan), "z", dtype=dtype)
    steps = built.apply(r, z)
    assert all(isinstance(step, Loop) for step in steps)
    Chain(steps)()
    return z.read()


@pytest.mark.parametrize("systems", [(), (3,)])
@pytest.mark.parametrize("device", ["cpu", "reference", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_devices(device: str, systems: tuple[int, ...]) -> None:
    a = laplacian(5, 4)
    where = fl.Context(device, tuning=False)
    built = ApproximateInverse().build(SparseMatrix.from_scipy(where, a))
    values = np.random.default_rng(0).random((20, *systems))
    factor = reference(a)
    np.testing.assert_allclose(applied(built, where, values), factor.T @ (factor @ values), rtol=1e-13)


def test_storage_type_of_the_matrix(context: fl.Context) -> None:
    a = laplacian(5, 4)
    built = ApproximateInverse().build(SparseMatrix.from_scipy(context, a, dtype="float32"))
    assert built.factor.values.scalar.numpy == np.float32
    values, factor = np.random.default_rng(0).random(20), reference(a)
    found = applied(built, context, values, "float32")
    np.testing.assert_allclose(found, factor.T @ (factor @ values), rtol=1e-5)


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_rows(context: fl.Context, n: int) -> None:
    built = ApproximateInverse(level=2).build(SparseMatrix.from_scipy(context, sparse.csr_array(np.full((n, n), 4.0))))
    np.testing.assert_array_equal(built.factor.to_scipy().toarray(), np.full((n, n), 0.5))


# ------------------------------------------------------------------------------------------ iterations


@pytest.mark.parametrize("kind", ["lattice", "irregular"])
def test_fewer_iterations_than_jacobi(context: fl.Context, kind: str) -> None:
    a = laplacian(24, 24, 24) if kind == "lattice" else irregular(20000)
    recipes = (Jacobi(), ApproximateInverse(), ApproximateInverse(level=2))
    counts = [solve(context, a, recipe)[0].require().iterations for recipe in recipes]
    assert counts[1] < 0.7 * counts[0]
    assert counts[2] < 0.9 * counts[1]


def test_several_systems_at_once(context: fl.Context) -> None:
    a = laplacian(12, 12)
    status, x = solve(context, a, ApproximateInverse(), (2,))
    assert status.converged
    assert x.shape == (144, 2)


# ---------------------------------------------------------------------------------------- many ranks


def on_ranks(a: Any, rows: Rows, given: bool, recipe: ApproximateInverse) -> tuple[set[int], Array, Array]:
    """Return the numbers of iterations, the solution and the dense factor, put together."""
    rhs = np.random.default_rng(5).random(a.shape[0])

    def run(comm: Comm) -> Any:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        mine = rows[comm.rank]
        matrix = distributed_matrix(context, a[mine], rows=mine if given else None)
        numbers = np.arange(a.shape[0]) if matrix.rows.part is None else matrix.rows.part.numbers
        own = numbers[: matrix.rows.size]
        b, x = context.dat(matrix.rows, rhs[own], "b"), context.dat(matrix.rows, np.zeros(own.size), "x")
        solver = ConjugateGradient(matrix, b, x, preconditioner=recipe)
        status = solver.solve().require()
        built: Any = solver.preconditioner
        if not given:  # a second level reaches rows of other ranks that the matrix does not
            assert (built.factor.rows is matrix.rows) == (recipe.level == 1 or len(rows) == 1)
        part = built.factor.rows.part
        stored = np.arange(a.shape[0]) if part is None else part.numbers
        dense = np.zeros(a.shape)
        pattern, values = built.factor.pattern, built.factor.values.read()
        row = np.repeat(stored[: built.factor.rows.size], np.diff(pattern.offsets))
        dense[row, stored[pattern.indices]] = values
        return status.iterations, own, x.read(), dense

    found = run_threads(len(rows), run)
    x = np.empty(a.shape[0])
    for _, own, values, _ in found:
        x[own] = values
    return {count for count, *_ in found}, x, sum(dense for *_, dense in found)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_have_the_factor_of_one(ranks: int, level: int) -> None:
    a, recipe = irregular(2000), ApproximateInverse(level=level, drop=0.02)
    counts, x, factor = on_ranks(a, slices(a.shape[0], 1), False, recipe)
    for given in (False, True):
        rows = scattered(a.shape[0], ranks) if given else slices(a.shape[0], ranks)
        more, y, other = on_ranks(a, rows, given, recipe)
        assert more == counts
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-13 * np.abs(x).max())
        np.testing.assert_array_equal(other, factor)


# ------------------------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"level": 0}, "level is a whole number, at least 1, not 0"),
        ({"level": 1.5}, "level is a whole number"),
        ({"level": True}, "level is a whole number"),
        ({"drop": -0.1}, "drop is a number of at least 0 and below 1, not -0.1"),
        ({"drop": 1.0}, "drop is a number"),
        ({"drop": float("nan")}, "drop is a number"),
        ({"drop": "small"}, "drop is a number"),
        ({"layout": "ell"}, r"layout is CSR\(\), ELL\(\) or SlicedELL\(\), not 'ell'"),
    ],
)
def test_wrong_choices(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        ApproximateInverse(**choices)


def wrong(kind: str) -> Any:
    dense = laplacian(4, 4).toarray()
    match kind:
        case "indefinite":
            dense[7, 3] = dense[3, 7] = -9.0
        case "singular":
            dense[[3, 3, 7, 7], [3, 7, 3, 7]] = 1.0
        case "diagonal":
            dense[7, 7] = 0.0
        case "unsymmetric":
            dense[7, 3] = -0.5
        case "infinite":
            dense[7, 7] = np.inf
    return sparse.csr_array(dense)


MESSAGES = {
    "indefinite": "not positive definite: neither is its block of row 7",
    "singular": "not positive definite: neither is its block of row 7",
    "diagonal": r"the diagonal of row 7 is 0\.0",
    "unsymmetric": r"not symmetric: the entries \(3, 7\) and \(7, 3\) differ by 0\.5",
    "infinite": "inf in row 7, column 7",
}


@pytest.mark.parametrize("kind", list(MESSAGES))
def test_wrong_matrices(context: fl.Context, kind: str) -> None:
    with pytest.raises(SolverError, match=MESSAGES[kind]):
        ApproximateInverse().build(SparseMatrix.from_scipy(context, wrong(kind)))


@pytest.mark.parametrize("kind", list(MESSAGES))
def test_wrong_matrices_are_refused_on_every_rank(kind: str) -> None:
    def run(comm: Comm) -> str:
        matrix = distributed_matrix(fl.Context("cpu", comm=comm), wrong(kind)[np.arange(8) + 8 * comm.rank])
        with pytest.raises(SolverError, match=MESSAGES[kind]) as caught:
            ApproximateInverse(level=2 if kind == "diagonal" else 1).build(matrix)
        return str(caught.value)

    assert len(set(run_threads(2, run))) == 1


def test_other_choices_on_another_rank() -> None:
    def run(comm: Comm) -> None:
        matrix = distributed_matrix(fl.Context("cpu", comm=comm), laplacian(4, 4)[np.arange(8) + 8 * comm.rank])
        ApproximateInverse(level=1 + comm.rank).build(matrix)

    with pytest.raises(SolverError, match="level and drop are not the same on every rank"):
        run_threads(2, run)


def test_no_square_sparse_matrix(context: fl.Context) -> None:
    with pytest.raises(SolverError, match="a square SparseMatrix is wanted"):
        ApproximateInverse().build(SparseMatrix.from_scipy(context, sparse.csr_array(np.ones((3, 2)))))
