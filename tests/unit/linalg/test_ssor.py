"""Relaxation by colours: against the dense formula, iterations, devices, many ranks, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom import Chain
from fluxloom.codegen.unit import generate
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, LoopError, SolverError
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.ranks.decompose import Link, decompose
from fluxloom.graph.colour_rows import colour_rows
from fluxloom.graph.csr import Csr
from fluxloom.linalg import SparseMatrix, distributed_matrix
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.precond.approximate_inverse import ApproximateInverse
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.precond.ssor import SSOR, ColouredRelaxation
from fluxloom_lab.problems.matrices import GENERATORS
from tests.golden.fake import FakeItems
from tests.unit.linalg.test_approximate_inverse import irregular, laplacian, solve
from tests.unit.linalg.test_rings import Rows, scattered, slices, unsymmetric

Array = npt.NDArray[np.float64]


def colours_of(a: Any) -> npt.NDArray[np.int32]:
    return colour_rows(Csr(a.indptr.astype(np.int64), a.indices.astype(np.int32))).colours


def dense_inverse(a: Any, sweeps: int, omega: float) -> Array:
    """Return the operator of some sweeps, from their definition, with rows in the order of colours."""
    order = np.argsort(colours_of(a), kind="stable")
    dense = a.toarray()[np.ix_(order, order)]
    d, lower, upper = np.diag(np.diag(dense)), np.tril(dense, -1), np.triu(dense, 1)
    z, eye = np.zeros_like(dense), np.eye(len(dense))
    for _ in range(sweeps):
        z = np.linalg.solve(d / omega + lower, eye - (upper + (1.0 - 1.0 / omega) * d) @ z)
        z = np.linalg.solve(d / omega + upper, eye - (lower + (1.0 - 1.0 / omega) * d) @ z)
    back = np.empty_like(z)
    back[np.ix_(order, order)] = z
    return back


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("cpu", threads=2, tuning=False)


def applied(built: ColouredRelaxation, values: Array, dtype: str = "float64") -> Array:
    rows = built.lower.rows
    r = rows.context.dat(rows, values, "r", dtype=dtype)
    z = rows.context.dat(rows, np.full_like(values, np.nan), "z", dtype=dtype)  # what was in z must not matter
    Chain(built.apply(r, z))()
    return z.read()


CASES = {
    "lattice": lambda: laplacian(6, 5, 4),
    "irregular": lambda: irregular(600),
    "links": lambda: sparse.csr_array(abs(unsymmetric()) + sparse.diags_array(np.full(90, 8.0))),
    "diagonal": lambda: sparse.csr_array(sparse.diags_array(np.arange(1.0, 9.0))),
}


# ------------------------------------------------------------------------------------------ the operator


@pytest.mark.parametrize(("sweeps", "omega"), [(1, 1.0), (1, 1.3), (2, 1.3), (3, 0.7)])
@pytest.mark.parametrize("kind", list(CASES))
def test_sweeps_are_those_of_the_definition(context: fl.Context, kind: str, sweeps: int, omega: float) -> None:
    a = CASES[kind]()
    built = SSOR(sweeps=sweeps, omega=omega).build(SparseMatrix.from_scipy(context, a))
    values = np.random.default_rng(0).uniform(-1.0, 1.0, a.shape[0])
    want = dense_inverse(a, sweeps, omega) @ values
    np.testing.assert_allclose(applied(built, values), want, rtol=1e-11, atol=1e-13 * np.abs(want).max())
    assert built.diagonal is None


@pytest.mark.parametrize("omega", [1.0, 1.3])
def test_one_sweep_is_the_product_of_three_factors(omega: float) -> None:
    a = laplacian(6, 5)
    order = np.argsort(colours_of(a), kind="stable")
    dense = a.toarray()[np.ix_(order, order)]
    d = np.diag(np.diag(dense))
    lower, upper = d / omega + np.tril(dense, -1), d / omega + np.triu(dense, 1)
    m = omega / (2.0 - omega) * lower @ np.linalg.inv(d) @ upper
    np.testing.assert_allclose(dense_inverse(a, 1, omega)[np.ix_(order, order)] @ m, np.eye(30), atol=1e-12)


@pytest.mark.parametrize(("sweeps", "omega"), [(1, 1.0), (1, 1.3), (2, 1.6)])
def test_symmetric_and_positive(context: fl.Context, sweeps: int, omega: float) -> None:
    a = irregular()
    built = SSOR(sweeps=sweeps, omega=omega).build(SparseMatrix.from_scipy(context, a))
    size = np.sqrt(a.diagonal())
    x, y = (np.random.default_rng(seed).normal(size=a.shape[0]) * size for seed in (1, 2))
    bx, by = applied(built, x), applied(built, y)
    assert x @ bx > 0
    assert y @ by > 0
    assert x @ by == pytest.approx(y @ bx, rel=1e-10, abs=1e-12 * np.sqrt((x @ bx) * (y @ by)))


def test_passes_of_a_lattice(context: fl.Context) -> None:
    """Red and black: three loops, which read each entry once."""
    a = laplacian(10, 10)
    matrix = SparseMatrix.from_scipy(context, a)
    built = SSOR().build(matrix)
    r, z = context.dat(matrix.rows), context.dat(matrix.rows)
    assert len(built.apply(r, z)) == 3
    assert built.lower.entries + built.upper.entries == a.nnz - 100
    assert len(SSOR(sweeps=2).build(matrix).apply(r, z)) == 5


@pytest.mark.parametrize("systems", [(), (3,)])
@pytest.mark.parametrize("device", ["cpu", "reference", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_devices(device: str, systems: tuple[int, ...]) -> None:
    a = irregular(150)
    where = fl.Context(device, tuning=False)
    built = SSOR(sweeps=2, omega=1.2).build(SparseMatrix.from_scipy(where, a, layout=fl.SlicedELL(4)))
    assert built.lower.layout == built.upper.layout == fl.SlicedELL(4)
    values = np.random.default_rng(0).random((a.shape[0], *systems))
    want = dense_inverse(a, 2, 1.2) @ values
    np.testing.assert_allclose(applied(built, values), want, rtol=1e-11, atol=1e-13 * np.abs(want).max())


@pytest.mark.parametrize("systems", [(), (3,)])
def test_code_for_graphics_processors(context: fl.Context, systems: tuple[int, ...]) -> None:
    made = SSOR(sweeps=2).build(SparseMatrix.from_scipy(context, laplacian(4, 4)))
    fake = fl.Context(FakeItems("cuda"), tuning=False)
    rows = fake.set(16, "rows")
    found = (made.lower.to_scipy(), made.upper.to_scipy())
    lower, upper = (SparseMatrix.from_scipy(fake, m, rows=rows, columns=rows) for m in found)
    colours = [fake.subset(rows, colour.indices) for colour in made.colours]
    built = ColouredRelaxation(lower, upper, fake.dat(rows), colours, 2, 1.0)
    r, z = fake.dat(rows, shape=systems), fake.dat(rows, shape=systems)
    for step in built.apply(r, z):
        assert isinstance(step, fl.Loop)
        assert "__global__" in generate([step.group(Numbering())], "cuda").text


def test_colours_that_touch_are_refused(context: fl.Context) -> None:
    """In-place loops are safe because this is checked: here rows of both colours are in one set."""
    matrix = SparseMatrix.from_scipy(context, laplacian(4, 4))
    made = SSOR().build(matrix)
    mixed = context.subset(matrix.rows, np.arange(16) < 2)
    built = ColouredRelaxation(made.lower, made.upper, made.scale, [mixed, mixed], 1, 1.0)
    with pytest.raises(LoopError, match="where another element of the same loop writes it"):
        built.apply(context.dat(matrix.rows), context.dat(matrix.rows))


def test_storage_type_of_the_matrix(context: fl.Context) -> None:
    a = laplacian(5, 4)
    built = SSOR().build(SparseMatrix.from_scipy(context, a, dtype="float32"))
    assert built.lower.values.scalar.numpy == built.scale.scalar.numpy == np.float32
    values = np.random.default_rng(0).random(20)
    np.testing.assert_allclose(applied(built, values, "float32"), dense_inverse(a, 1, 1.0) @ values, rtol=1e-5)


def test_no_rows(context: fl.Context) -> None:
    built = SSOR().build(SparseMatrix.from_scipy(context, sparse.csr_array((0, 0))))
    assert applied(built, np.zeros(0)).size == 0


# ------------------------------------------------------------------------------------------ the colours


@pytest.mark.parametrize("kind", ["lattice", "links", "one-way", "star"])
def test_colours(kind: str) -> None:
    if kind == "star":  # more neighbours than there are bits in a word
        a = sparse.csr_array(np.ones((100, 100)))
    else:
        a = {"lattice": lambda: laplacian(8, 8), "links": lambda: GENERATORS["power_law"](2000, 3),
             "one-way": unsymmetric}[kind]()  # fmt: skip
    found = colour_rows(Csr(a.indptr.astype(np.int64), a.indices.astype(np.int32)))
    row = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    joined = row != a.indices
    assert (found.colours[row] != found.colours[a.indices])[joined].all()
    assert set(found.colours.tolist()) == set(range(found.n_colours))
    assert {"lattice": 2, "star": 100}.get(kind, found.n_colours) == found.n_colours


def test_colours_of_no_square_pattern() -> None:
    with pytest.raises(DatError, match=r"pattern.indices\[1\] is 2; the pattern has 2 rows"):
        colour_rows(Csr(np.array([0, 1, 2]), np.array([1, 2], dtype=np.int32)))


# ------------------------------------------------------------------------------------------ iterations


def test_fewer_iterations_than_jacobi_on_a_lattice(context: fl.Context) -> None:
    a = laplacian(24, 24, 24)
    jacobi, ssor = (solve(context, a, recipe)[0].require().iterations for recipe in (Jacobi(), SSOR()))
    assert ssor < 0.6 * jacobi


def test_fewer_iterations_than_jacobi_on_a_mesh(context: fl.Context) -> None:
    a = irregular(20000)
    counts = [solve(context, a, recipe)[0].require().iterations for recipe in (Jacobi(), SSOR(), SSOR(sweeps=2))]
    assert counts[1] < 0.6 * counts[0]
    assert counts[2] < 0.9 * counts[1]


def test_several_systems_at_once(context: fl.Context) -> None:
    assert solve(context, laplacian(12, 12), SSOR(), (2,))[0].converged


@pytest.mark.parametrize("recipe", [SSOR(), ApproximateInverse()])
def test_singular_matrix(context: fl.Context, recipe: Any) -> None:
    """The Laplacian with Neumann's boundaries: constants are in its null space."""
    dense = -np.abs(laplacian(20, 20).toarray())
    np.fill_diagonal(dense, 0.0)
    np.fill_diagonal(dense, -dense.sum(axis=1))
    matrix = SparseMatrix.from_scipy(context, sparse.csr_array(dense))
    rhs = np.random.default_rng(5).random(400)
    b, x = context.dat(matrix.rows, rhs), context.dat(matrix.rows, np.zeros(400))
    ConjugateGradient(matrix, b, x, preconditioner=recipe, nullspace="constant").solve().require()
    assert np.abs(dense @ x.read() - (rhs - rhs.mean())).max() < 1e-6
    assert abs(x.read().mean()) < 1e-12


@pytest.mark.parametrize("recipe", [SSOR(), ApproximateInverse(level=2)])
def test_rows_in_an_order_of_their_own(context: fl.Context, recipe: Any) -> None:
    a = irregular(3000)
    matrix = distributed_matrix(context, a, reorder=True)
    part = matrix.rows.part
    assert part is not None
    rhs = np.random.default_rng(5).random(a.shape[0])
    b, x = context.dat(matrix.rows, rhs[part.numbers]), context.dat(matrix.rows, np.zeros(a.shape[0]))
    status = ConjugateGradient(matrix, b, x, preconditioner=recipe).solve().require()
    assert np.abs(a[part.numbers][:, part.numbers] @ x.read() - rhs[part.numbers]).max() < 1e-6
    if not isinstance(recipe, SSOR):  # lower is lower in the numbers of the matrix that was given
        assert status.iterations == solve(context, a, recipe)[0].iterations


# ---------------------------------------------------------------------------------------- many ranks


def on_ranks(a: Any, rows: Rows) -> tuple[int, Array, Array]:
    """Return the iterations, the operator applied to a vector, and how many exchanges that took."""
    rhs = np.random.default_rng(5).random(a.shape[0])

    def run(comm: Comm) -> Any:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        mine = rows[comm.rank]
        matrix = distributed_matrix(context, a[mine], rows=mine)
        own = mine if matrix.rows.part is None else matrix.rows.part.numbers[: matrix.rows.size]
        b, x = context.dat(matrix.rows, rhs[own], "b"), context.dat(matrix.rows, np.zeros(own.size), "x")
        solver = ConjugateGradient(matrix, b, x, preconditioner=SSOR())
        status = solver.solve().require()
        built: Any = solver.preconditioner
        z = context.dat(matrix.rows)
        chain = Chain(built.apply(b, z))
        chain()
        assert not chain.exchanges()
        block = a[own][:, own]
        return status.iterations, own, x.read(), z.read(), dense_inverse(sparse.csr_array(block), 1, 1.0) @ rhs[own]

    found = run_threads(len(rows), run)
    x = np.empty(a.shape[0])
    for _, own, values, z, want in found:
        x[own] = values
        np.testing.assert_allclose(z, want, rtol=1e-11, atol=1e-12 * np.abs(want).max(initial=0.0))
    assert len({count for count, *_ in found}) == 1
    return found[0][0], x, rhs


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_block_jacobi_between_ranks(context: fl.Context, ranks: int) -> None:
    a = GENERATORS["laplacian2d"](3000, 1)
    jacobi = solve(context, a, Jacobi())[0].iterations
    count, x, rhs = on_ranks(a, slices(a.shape[0], ranks))
    assert count < jacobi
    assert np.abs(a @ x - rhs).max() < 1e-6


def test_a_rank_without_rows() -> None:
    """Ranks have different numbers of colours, and the first has none."""
    a = irregular(900)
    rows = scattered(a.shape[0], 3)
    assert rows[0].size == 0
    count, x, rhs = on_ranks(a, rows)
    assert np.abs(a @ x - rhs).max() < 1e-6
    assert count > 1


@pytest.mark.parametrize("covers", [False, True])
@pytest.mark.parametrize("recipe", [SSOR(), ApproximateInverse(), ApproximateInverse(level=2)])
def test_matrix_on_the_cells_of_a_mesh(context: fl.Context, recipe: Any, covers: bool) -> None:
    """Rows that other ranks' rows lead to are in the execute halo; the matrix may have them or not."""
    a = laplacian(9, 8)
    table = np.full((72, 5), -1)
    for row in range(72):
        found = a.indices[a.indptr[row] : a.indptr[row + 1]]
        table[row, : found.size] = found
    rhs = np.random.default_rng(5).random(72)

    def run(comm: Comm) -> Any:
        mine = slice(36 * comm.rank, 36 * comm.rank + 36)
        parts = decompose(comm, {"cells": 72}, {"near": Link("cells", "cells", table[mine])}, on="cells")
        where = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        cells = where.set(parts.parts["cells"], "cells")
        part = parts.parts["cells"]
        assert part.executed > part.owned
        rows = parts.table("near")[: cells.executed if covers else cells.size]
        offsets = np.concatenate([[0], np.cumsum((rows >= 0).sum(axis=1))])
        pattern = where.ragged(cells, cells, offsets, rows[rows >= 0])
        own = np.repeat(np.arange(cells.size), np.diff(offsets[: cells.size + 1]))
        columns = part.numbers[pattern.indices[: offsets[cells.size]]]
        values = a.toarray()[part.numbers[own], columns]
        matrix = SparseMatrix(pattern, where.dat(pattern.entries, values))
        numbers = part.numbers[: cells.size]
        b, x = where.dat(cells, rhs[numbers]), where.dat(cells, np.zeros(cells.size))
        status = ConjugateGradient(matrix, b, x, preconditioner=recipe).solve().require()
        return status.iterations, numbers, x.read()

    found = run_threads(2, run)
    x = np.empty(72)
    for _, numbers, values in found:
        x[numbers] = values
    assert np.abs(a @ x - rhs).max() < 1e-6
    if not isinstance(recipe, SSOR):
        assert found[0][0] == solve(context, a, recipe)[0].iterations


# ------------------------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"sweeps": 0}, "sweeps is a whole number, at least 1, not 0"),
        ({"sweeps": 1.5}, "sweeps is a whole number"),
        ({"sweeps": True}, "sweeps is a whole number"),
        ({"omega": 0.0}, "omega is a number above 0 and below 2, not 0.0"),
        ({"omega": 2.0}, "omega is a number"),
        ({"omega": float("nan")}, "omega is a number"),
        ({"omega": "1"}, "omega is a number"),
    ],
)
def test_wrong_choices(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        SSOR(**choices)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_no_diagonal(context: fl.Context, value: float) -> None:
    dense = laplacian(4, 4).toarray()
    dense[5, 5] = value
    a = sparse.csr_array(dense)
    with pytest.raises(SolverError, match=f"the diagonal of row 5 is {value}; 1 rows are like that"):
        SSOR().build(SparseMatrix.from_scipy(context, a))

    def run(comm: Comm) -> None:
        SSOR().build(distributed_matrix(fl.Context("cpu", comm=comm), a[np.arange(8) + 8 * comm.rank]))

    with pytest.raises(SolverError, match=f"the diagonal of row 5 is {value}"):
        run_threads(2, run)


def test_no_square_sparse_matrix(context: fl.Context) -> None:
    with pytest.raises(SolverError, match="a square SparseMatrix is wanted"):
        SSOR().build(SparseMatrix.from_scipy(context, sparse.csr_array(np.ones((3, 2)))))
