"""Matrices on several ranks: plain loops, only vectors travel, the bits of one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Loop, Read
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError
from fluxloom.linalg import SparseMatrix, distributed_matrix
from tests.unit.linalg.test_rings import MATRICES, Rows, scattered, slices

STORES = {"csr": fl.CSR(), "sliced": fl.SlicedELL(8), "ell": fl.ELL()}


@fl.kernel
def shift(y: Read, x: RW):
    """``x = y + x / 4``"""
    x[0] = y[0] + 0.25 * x[0]


def steps(matrix: SparseMatrix, x: fl.Dat) -> fl.Dat:
    """Apply ``x <- A x + x / 4`` four times."""
    y = matrix.rows.context.dat(matrix.rows)
    chain = Chain([matrix.product(x, y), Loop(shift, matrix.rows, y, x)])
    for _ in range(4):
        chain()
    return x


def together(matrix: Any, rows: Rows, given: bool, store: Any, device: Any = "cpu") -> np.ndarray:
    """Return what the ranks have of the result, put together."""
    start = np.random.default_rng(1).random(matrix.shape[0])

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        context = fl.Context(device, threads=1, comm=comm, tuning=False)
        mine = rows[comm.rank]
        found = distributed_matrix(context, matrix[mine], rows=mine if given else None, layout=store)
        part = found.rows.part
        numbers = np.arange(matrix.shape[0]) if part is None else part.numbers[: part.owned]
        if part is not None:
            assert np.array_equal(np.sort(numbers), np.sort(mine))
            inner = found.pattern.indices[: found.pattern.offsets[part.inside]]
            assert inner.max(initial=-1) < part.owned
        x = steps(found, context.dat(found.rows, start[numbers]))
        return numbers, x.read()

    out = np.empty_like(start)
    for numbers, values in run_threads(len(rows), run):
        out[numbers] = values
    return out


def alone(matrix: Any, store: Any) -> np.ndarray:
    context = fl.Context("cpu", threads=1, tuning=False)
    found = SparseMatrix.from_scipy(context, matrix, layout=store)
    return steps(found, context.dat(found.rows, np.random.default_rng(1).random(matrix.shape[0]))).read()


@pytest.mark.usefixtures("uncontracted")
@pytest.mark.parametrize(("ranks", "store"), [(1, "csr"), (2, "sliced"), (3, "csr"), (7, "ell")])
@pytest.mark.parametrize("kind", MATRICES)
def test_bits_of_one_rank(kind: str, ranks: int, store: str) -> None:
    matrix = MATRICES[kind]()
    want = alone(matrix, STORES[store])
    dense = matrix.toarray()
    x = np.random.default_rng(1).random(matrix.shape[0])
    for _ in range(4):
        x = dense @ x + 0.25 * x
    assert np.allclose(want, x, rtol=1e-12, atol=1e-14)
    assert together(matrix, slices(matrix.shape[0], ranks), False, STORES[store]).tobytes() == want.tobytes()
    if ranks > 1:
        assert together(matrix, scattered(matrix.shape[0], ranks), True, STORES[store]).tobytes() == want.tobytes()


@pytest.mark.opencl
def test_another_device() -> None:
    matrix = MATRICES["mesh"]()
    got = together(matrix, slices(matrix.shape[0], 2), False, fl.SlicedELL(8), "opencl")
    assert np.allclose(got, alone(matrix, fl.SlicedELL(8)), rtol=1e-13)


def test_wrong_rows_are_said_on_every_rank() -> None:
    def run(comm: Comm) -> None:
        matrix = MATRICES["unsymmetric"]()
        mine = np.arange(45) + 44 * comm.rank
        distributed_matrix(fl.Context("cpu", comm=comm), matrix[mine], rows=mine)

    with pytest.raises(DatError, match="2 ranks have row 44"):
        run_threads(2, run)
