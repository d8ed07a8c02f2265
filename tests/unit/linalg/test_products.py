"""Products of a matrix with several vectors, with a dot product beside them, and residuals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom.core.errors import LoopError
from fluxloom.linalg import SparseMatrix

DEVICES = ["reference", "cpu", pytest.param("opencl", marks=pytest.mark.opencl)]
SHAPES = {"one": (), "three": (3,)}
LAYOUTS = {"csr": fl.CSR(), "sliced": fl.SlicedELL(4)}


@pytest.fixture(scope="module")
def contexts() -> dict[str, fl.Context]:
    """Contexts that are there already; that of OpenCL is made by the first test that is not skipped."""
    return {"cpu": fl.Context("cpu", threads=2, tuning=False), "reference": fl.Context("reference")}


def context_of(contexts: dict[str, fl.Context], device: str) -> fl.Context:
    if device not in contexts:
        contexts[device] = fl.Context(device, tuning=False)
    return contexts[device]


def sample(rows: int = 50, columns: int = 50) -> sparse.csr_array:
    """Return a matrix with rows of many lengths, one of them empty."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.15)
    dense[3], dense[9] = 0.0, 1.0
    return sparse.csr_array(dense)


def values(n: int, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, *shape))


@pytest.mark.parametrize("store", list(LAYOUTS))
@pytest.mark.parametrize("several", list(SHAPES))
@pytest.mark.parametrize("device", DEVICES)
def test_all_products(contexts: dict[str, fl.Context], device: str, several: str, store: str) -> None:
    ctx, a, shape = context_of(contexts, device), sample(), SHAPES[several]
    matrix = SparseMatrix.from_scipy(ctx, a, layout=LAYOUTS[store])
    given, right = values(50, shape, 1), values(50, shape, 2)
    x, b = ctx.dat(matrix.columns, given, "x"), ctx.dat(matrix.rows, right, "b")
    y, r = (ctx.dat(matrix.rows, np.full((50, *shape), np.nan), name) for name in "yr")
    result = ctx.scalar(np.full(shape, 2.0), "result")
    matrix.product(x, y)()
    np.testing.assert_allclose(y.read(), a @ given, rtol=1e-12, atol=1e-13)
    y.write(np.full((50, *shape), np.nan))
    matrix.product_dot(x, y, result)()
    np.testing.assert_allclose(y.read(), a @ given, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(result.value, 2.0 + (given * (a @ given)).sum(axis=0), rtol=1e-12)
    matrix.residual(x, b, r)()
    np.testing.assert_allclose(r.read(), right - a @ given, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("several", list(SHAPES))
def test_single_precision_sums_in_double(contexts: dict[str, fl.Context], several: str) -> None:
    ctx, a, shape = contexts["cpu"], sample(), SHAPES[several]
    matrix = SparseMatrix.from_scipy(ctx, a, dtype="float32")
    given = values(50, shape, 1).astype(np.float32)
    x, y = ctx.dat(matrix.columns, given, "x"), ctx.dat(matrix.rows, shape=shape, dtype="float32", name="y")
    result = ctx.scalar(np.zeros(shape), "result", dtype="float64")
    matrix.product_dot(x, y, result)()
    want = a.astype(np.float32).astype(float) @ given.astype(float)
    np.testing.assert_allclose(y.read(), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result.value, (given * want).sum(axis=0), rtol=1e-6, atol=1e-6)


def test_several_vectors_of_a_matrix_that_is_not_square(contexts: dict[str, fl.Context]) -> None:
    ctx, a = contexts["cpu"], sample(30, 20)
    matrix = SparseMatrix.from_scipy(ctx, a)
    given, right = values(20, (2,), 1), values(30, (2,), 2)
    x, b = ctx.dat(matrix.columns, given, "x"), ctx.dat(matrix.rows, right, "b")
    y, r = ctx.dat(matrix.rows, shape=(2,), name="y"), ctx.dat(matrix.rows, shape=(2,), name="r")
    matrix.product(x, y)()
    matrix.residual(x, b, r)()
    np.testing.assert_allclose(y.read(), a @ given, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(r.read(), right - a @ given, rtol=1e-12, atol=1e-13)
    with pytest.raises(LoopError, match="a square one is wanted"):
        matrix.product_dot(x, y, ctx.scalar(np.zeros(2), "result"))


def test_vectors_that_do_not_fit(contexts: dict[str, fl.Context]) -> None:
    ctx = contexts["reference"]
    matrix = SparseMatrix.from_scipy(ctx, sample())
    one, three = ctx.dat(matrix.rows, name="one"), ctx.dat(matrix.rows, shape=(3,), name="three")
    square, result = ctx.dat(matrix.rows, shape=(2, 2), name="square"), ctx.scalar(0.0, "result")
    with pytest.raises(LoopError, match=r"'one' has shape \(\) and 'three' \(3,\)"):
        matrix.product(one, three)
    with pytest.raises(LoopError, match=r"give both \(\) or \(n,\)"):
        matrix.product(square, ctx.dat(matrix.rows, shape=(2, 2)))
    with pytest.raises(LoopError, match="x and y are both 'one'"):
        matrix.product_dot(one, one, result)
    with pytest.raises(LoopError, match="x and y are both 'three'"):
        matrix.residual(three, ctx.dat(matrix.rows, shape=(3,)), three)
