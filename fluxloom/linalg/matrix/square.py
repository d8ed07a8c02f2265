"""What preconditioners are built from: the rows of a square matrix that a rank owns, in the numbers of all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import Places
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.sets import Grid, Set
from fluxloom.linalg.matrix.local_rows import refuse_strange
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Operator, instead

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["global_rows", "local_matrix", "numbers_of", "real_type", "square", "stored_places"]

Index = npt.NDArray[np.int64]


def square(matrix: Operator, name: str) -> SparseMatrix:
    """Return a square matrix as it is.

    Raises
    ------
    SolverError
        If it is no `SparseMatrix`, not square, or, on several ranks, one on a lattice.
    """
    if not isinstance(matrix, SparseMatrix) or matrix.rows is not matrix.columns:
        raise SolverError(f"{name}: a square SparseMatrix is wanted, not {instead(matrix)}")
    if matrix.rows.part is not None and isinstance(matrix.rows, Grid):
        raise SolverError(
            f"{name}: on several ranks the rows lie on {matrix.rows}; make a matrix by distributed_matrix"
        )
    return matrix


def real_type(matrix: SparseMatrix) -> np.dtype[Any]:
    """Return the type in which a preconditioner of a matrix is stored: its own; of whole numbers that of the device."""
    stored = matrix.values.scalar
    if stored.floating:
        return stored.numpy
    return np.dtype(np.float32 if matrix.rows.context.device.refuses_double else np.float64)


def numbers_of(rows: Set) -> Index:
    """Return the number of each stored row among those of all ranks, those that this rank owns first."""
    return np.arange(rows.size, dtype=np.int64) if rows.part is None else rows.part.numbers


def global_rows(matrix: SparseMatrix) -> csr_array:
    """Return the rows of this rank, ``(owned, total)``, with the numbers of all ranks for columns."""
    from scipy.sparse import csr_array

    offsets, local, stored = matrix.owned()
    values = stored.astype(np.float64)
    refuse_strange(matrix, values)
    return csr_array((values, numbers_of(matrix.columns)[local], offsets), shape=(matrix.rows.size, matrix.rows.total))


def stored_places(rows: Set, numbers: Index) -> Index:
    """Return where rows of all ranks are stored on this one; -1 for those that are not."""
    known = numbers_of(rows)
    order = np.argsort(known, kind="stable")
    if not known.size:
        return np.full(numbers.size, -1, dtype=np.int64)
    place = order[np.minimum(np.searchsorted(known, numbers, sorter=order), known.size - 1)]
    return np.where(known[place] == numbers, place, -1)


def local_matrix(
    own: Any, numbers: Index, rows: Set, like: SparseMatrix, name: str, layout: RaggedLayout | None = None
) -> SparseMatrix:
    """Return a matrix over rows that exist already. Collective.

    Parameters
    ----------
    own
        The rows of this rank, ``(owned, total)``, with global columns, which are all stored here. Entries keep their
        order.
    numbers
        Global number of each.
    rows
        The set of rows and columns, in any order.
    like
        The matrix whose storage type is taken.
    """
    turned = own[Places(numbers).of(numbers_of(rows)[: rows.size])]
    return SparseMatrix.from_csr(
        rows.context, turned.indptr, stored_places(rows, turned.indices.astype(np.int64)), turned.data,
        rows=rows, columns=rows, layout=layout, dtype=real_type(like), name=name,
    )  # fmt: skip
