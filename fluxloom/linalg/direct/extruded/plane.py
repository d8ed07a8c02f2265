"""The matrix of an extruded mesh, as it is given, and its rows on this rank, checked."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import RowExchange
from fluxloom.linalg.direct.extruded.frequencies import Frequencies
from fluxloom.linalg.krylov.method import Nullspace
from fluxloom.linalg.matrix.local_rows import refuse

__all__ = ["ExtrudedMatrix", "Plane", "checked_plane", "is_singular"]

_SYMMETRIC = 1e-8
"""How much of ``sqrt(a_ii a_jj)`` two entries may differ that are to be the same."""

_SINGULAR = 1e-8
"""Sums of rows that are smaller, compared with the diagonal, are taken for zero."""


@dataclass(frozen=True, eq=False)
class ExtrudedMatrix:
    """``-L`` of a plane mesh that is repeated at equal distances, periodically; see `.solver`.

    Attributes
    ----------
    plane
        ``-L_2d``, a symmetric positive semidefinite matrix of SciPy; on several ranks the rows of this rank,
        ``(owned, total)`` with global columns.
    areas : (owned,)
        The diagonal ``Omega`` (areas of the plane cells), positive.
    planes, spacing
        ``N``, any number from 1 on, and ``Delta``.
    rows : (owned,)
        On several ranks, the global number of each row; by default ranks have consecutive ones.
    """

    plane: Any
    areas: npt.ArrayLike
    _: KW_ONLY
    planes: int
    spacing: float
    rows: npt.ArrayLike | None = None

    @property
    def frequencies(self) -> Frequencies:
        """Those of the periodic direction, which are refused where there are none."""
        return Frequencies(self.planes, self.spacing)


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows of the plane matrix.

    Attributes
    ----------
    matrix
        ``(owned, total)`` with global columns.
    areas, numbers : (owned,)
        The diagonal beside it, and the global number of each row.
    total
        Rows of all ranks.
    """

    matrix: csr_array
    areas: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]
    total: int


def checked_plane(comm: Comm, given: ExtrudedMatrix, name: str) -> Plane:
    """Return the rows of this rank. Collective.

    Raises
    ------
    SolverError
        On every rank, if on one of them the matrix is none, not square, not symmetric, or has a diagonal that is
        negative, or areas are missing or not positive.
    """
    plane, rows = given.plane, given.rows
    refuse(comm, "" if hasattr(plane, "tocsr") and getattr(plane, "ndim", 0) == 2 else
           f"{name}: plane is a sparse matrix of SciPy, not {type(plane).__name__}")  # fmt: skip
    matrix: Any = csr_array(plane.tocsr(), copy=True)
    matrix.sum_duplicates()
    values = np.asarray(given.areas, dtype=np.float64)
    owned = matrix.shape[0]
    counts = comm.allgather(owned)
    first, total = sum(counts[: comm.rank]), sum(counts)
    numbers = np.arange(first, first + owned) if rows is None else np.asarray(rows)
    refuse(comm, _misfit(matrix, values, numbers, total, name))
    numbers = numbers.astype(np.int64)
    whole = np.sort(np.concatenate(comm.allgather(numbers)))
    refuse(comm, "" if np.array_equal(whole, np.arange(total)) else
           f"{name}: rows: each of {total} rows belongs to one rank")  # fmt: skip
    diagonal = _whole_diagonal(comm, matrix, numbers, total)
    refuse(comm, _unsymmetric(comm, matrix, numbers, diagonal, name))
    return Plane(matrix, values, numbers, total)


def _misfit(matrix: Any, areas: npt.NDArray[np.float64], numbers: npt.NDArray[Any], total: int, name: str) -> str:
    """Return what is wrong with shapes and numbers, or an empty string."""
    owned, width = matrix.shape
    if width != total or not total:
        return f"{name}: plane has {width} columns and {total} rows: a square matrix is wanted"
    if np.iscomplexobj(matrix.data) or not np.isfinite(matrix.data).all():
        return f"{name}: plane has entries that are not finite real numbers"
    if areas.shape != (owned,):
        return f"{name}: areas: one number for each of {owned} rows is wanted, not an array of shape {areas.shape}"
    if not (np.isfinite(areas) & (areas > 0)).all():
        return f"{name}: areas: positive numbers are wanted; that of row {int(np.argmin(areas > 0))} is not"
    if numbers.shape != (owned,) or not np.issubdtype(numbers.dtype, np.integer):
        return f"{name}: rows: one whole number for each of {owned} rows is wanted"
    return ""


def _whole_diagonal(comm: Comm, matrix: Any, numbers: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.float64]:
    """Return the diagonal of all rows."""
    own = np.asarray(matrix[np.arange(numbers.size), numbers]).ravel() if numbers.size else np.zeros(0)
    mine = np.zeros(total)
    mine[numbers] = own
    return comm.reduce(mine, "sum")


def _unsymmetric(
    comm: Comm, matrix: Any, numbers: npt.NDArray[np.int64], diagonal: npt.NDArray[np.float64], name: str
) -> str:
    """Return what is wrong with the values, or an empty string. Collective."""
    entries = matrix.tocoo()
    i, j = numbers[entries.row], entries.col.astype(np.int64)
    owner = np.zeros(diagonal.size, dtype=np.int64)
    owner[numbers] = comm.rank
    owner = comm.reduce(owner, "sum")
    row, column, value = map(RowExchange(comm, owner[j]).forward, (j, i, entries.data))
    place = np.empty(diagonal.size, dtype=np.int64)
    place[numbers] = np.arange(numbers.size)
    apart = (matrix - csr_array((value, (place[row], column)), shape=matrix.shape)).tocoo()
    if (low := np.flatnonzero(diagonal < 0)).size:
        return (
            f"{name}: the diagonal of row {low[0]} is {diagonal[low[0]]:.3g}: give -L, which is positive semidefinite"
        )
    size = np.sqrt(diagonal)
    limit = _SYMMETRIC * size[numbers[apart.row]] * size[apart.col]
    if (bad := np.flatnonzero(~(np.abs(apart.data) <= limit))).size:
        at, to = int(numbers[apart.row[bad[0]]]), int(apart.col[bad[0]])
        return f"{name}: plane is not symmetric: its entries ({at}, {to}) and ({to}, {at}) differ"
    return ""


def is_singular(comm: Comm, plane: Plane) -> Nullspace:
    """Return ``"constant"`` if all sums of rows vanish, else ``"none"``. Collective."""
    sums = np.abs(np.asarray(plane.matrix.sum(axis=1)).ravel())
    scale = np.asarray(abs(plane.matrix).sum(axis=1)).ravel()
    most = comm.reduce(np.array([sums.max(initial=0.0), scale.max(initial=0.0)]), "max")
    return "constant" if most[0] <= _SINGULAR * most[1] else "none"
