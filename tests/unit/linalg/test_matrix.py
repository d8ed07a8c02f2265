"""Sparse matrices: made from arrays and from SciPy, multiplied, given back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom import Inc, Read
from fluxloom.core.errors import DatError, LoopError
from fluxloom.linalg import SparseMatrix, spmv

LAYOUTS = {"csr": fl.CSR(), "ell": fl.ELL(), "ell-row": fl.ELL(column_major=False), "sliced": fl.SlicedELL(4)}
DEVICES = ("cpu", "reference")


def sample(rows: int = 60, columns: int = 40, seed: int = 0) -> sparse.csr_array:
    """Return a matrix with a few empty rows and one long one."""
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, columns)) * (rng.random((rows, columns)) < 0.15)
    dense[3] = 0.0
    dense[7] = rng.random(columns)
    return sparse.csr_array(dense)


def multiply(matrix: SparseMatrix, x: np.ndarray) -> np.ndarray:
    given = matrix.columns.context.dat(matrix.columns, x, "x")
    result = matrix.rows.context.dat(matrix.rows, np.full(matrix.rows.size, np.nan), "y")
    matrix.product(given, result)()
    return result.read()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_product_and_back(device: str, layout: str) -> None:
    a = sample()
    matrix = SparseMatrix.from_scipy(fl.Context(device), a, layout=LAYOUTS[layout])
    x = np.random.default_rng(1).random(40)
    np.testing.assert_allclose(multiply(matrix, x), a @ x, rtol=1e-14)
    back = matrix.to_scipy()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(back, part), getattr(a, part))
    assert back.shape == matrix.shape == a.shape
    assert matrix.entries == a.nnz
    assert matrix.layout == LAYOUTS[layout]
    assert matrix.padding == 1.0 if layout == "csr" else matrix.padding > 1.0


@pytest.mark.parametrize("form", ["coo", "csc", "bsr", "dok", "lil", "dia"])
def test_every_scipy_format(form: str) -> None:
    a = sample(30, 30)
    matrix = SparseMatrix.from_scipy(fl.Context("reference"), a.asformat(form))
    assert abs(matrix.to_scipy() - a).max() == 0.0


def test_square_matrices_have_one_set() -> None:
    ctx = fl.Context("cpu")
    square, wide = SparseMatrix.from_scipy(ctx, sample(30, 30)), SparseMatrix.from_scipy(ctx, sample(30, 40))
    assert square.rows is square.columns
    assert wide.rows is not wide.columns
    a, x = sample(30, 30), ctx.dat(square.rows, np.arange(30.0))
    y, z = ctx.dat(square.rows), ctx.dat(square.rows)
    square.product(x, y)()
    square.product(y, z)()
    np.testing.assert_allclose(z.read(), a @ (a @ np.arange(30.0)), rtol=1e-14)


def test_sets_that_are_there_already() -> None:
    ctx = fl.Context("cpu")
    nodes, cells = ctx.set(60, "nodes"), ctx.set(40, "cells")
    matrix = SparseMatrix.from_scipy(ctx, sample(), rows=nodes, columns=cells)
    assert (matrix.rows, matrix.columns) == (nodes, cells)
    with pytest.raises(DatError, match="60 rows"):
        SparseMatrix.from_scipy(ctx, sample(), rows=cells)
    with pytest.raises(DatError, match="40 columns"):
        SparseMatrix.from_scipy(ctx, sample(), columns=nodes)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_storage_type(dtype: str) -> None:
    ctx, a = fl.Context("cpu"), sample()
    matrix = SparseMatrix.from_scipy(ctx, a, dtype=dtype)
    x, y = ctx.dat(matrix.columns, np.ones(40), dtype=dtype), ctx.dat(matrix.rows, dtype=dtype)
    matrix.product(x, y)()
    np.testing.assert_allclose(y.read(), a @ np.ones(40), rtol=1e-5 if dtype == "float32" else 1e-14)


def test_from_csr() -> None:
    ctx = fl.Context("cpu")
    matrix = SparseMatrix.from_csr(ctx, [0, 2, 2, 3], [0, 1, 2], [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(multiply(matrix, np.array([1.0, 10.0, 100.0])), [32.0, 0.0, 400.0])
    wide = SparseMatrix.from_csr(ctx, [0, 1], [4], [2.0], columns=5)
    np.testing.assert_array_equal(multiply(wide, np.arange(5.0)), [8.0])
    assert "matrix" in repr(wide)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (3, 3)])
def test_nothing_stored(shape: tuple[int, int]) -> None:
    matrix = SparseMatrix.from_scipy(fl.Context("cpu"), sparse.csr_array(shape))
    assert multiply(matrix, np.ones(shape[1])).tolist() == [0.0] * shape[0]
    assert matrix.padding == 1.0


def test_a_loop_fills_the_values() -> None:
    @fl.kernel
    def assemble(k: Read, a: Inc):
        a[0] += k[0]
        a[1] -= k[0]

    ctx = fl.Context("cpu")
    matrix = SparseMatrix.from_csr(ctx, [0, 2, 4], [0, 1, 0, 1], np.zeros(4), layout=fl.ELL())
    edges = ctx.set(2, "edges")
    to_entries = ctx.map(edges, matrix.pattern.entries, [[0, 1], [3, 2]], "to_entries")
    fl.Loop(assemble, edges, ctx.dat(edges, np.array([2.0, 5.0])), matrix.values[to_entries])()
    np.testing.assert_array_equal(matrix.to_scipy().toarray(), [[2.0, -2.0], [-5.0, 5.0]])


def test_matrix_of_a_map_and_values() -> None:
    ctx = fl.Context("reference")
    nodes = ctx.set(3, "nodes")
    pattern = ctx.ragged(nodes, nodes, [0, 1, 2, 3], [2, 1, 0], "flip")
    matrix = SparseMatrix(pattern, ctx.dat(pattern.entries, np.ones(3)))
    np.testing.assert_array_equal(multiply(matrix, np.arange(3.0)), [2.0, 1.0, 0.0])
    assert spmv.name == "spmv"
    with pytest.raises(DatError, match="not on its entries"):
        SparseMatrix(pattern, ctx.dat(nodes))
    with pytest.raises(DatError, match="give scalars"):
        SparseMatrix(pattern, ctx.dat(pattern.entries, shape=(2, 2)))


def test_what_does_not_fit() -> None:
    ctx = fl.Context("cpu")
    matrix = SparseMatrix.from_scipy(ctx, sample())
    square = SparseMatrix.from_scipy(ctx, sample(30, 30))
    x, y = ctx.dat(matrix.columns), ctx.dat(matrix.rows)
    with pytest.raises(LoopError):
        matrix.product(y, x)
    same = ctx.dat(square.rows, name="same")
    with pytest.raises(LoopError, match="x and y are both 'same'"):
        square.product(same, same)
    with pytest.raises(DatError, match="complex"):
        SparseMatrix.from_scipy(ctx, sample() * 1j)
    with pytest.raises(DatError, match="offsets"):
        SparseMatrix.from_csr(ctx, [0, 2], [0], [1.0])


def test_schedule_reaches_the_loop() -> None:
    ctx = fl.Context("cpu", threads=2)
    matrix = SparseMatrix.from_scipy(ctx, sample())
    x, y = ctx.dat(matrix.columns), ctx.dat(matrix.rows)
    assert matrix.product(x, y, fl.Schedule(threads=1)).schedule.threads == 1
    assert matrix.product(x, y).name == "matrix.product"
