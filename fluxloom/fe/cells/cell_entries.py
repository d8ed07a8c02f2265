"""Which entries of a sparse matrix the ``n^2`` numbers of each cell belong to: two rules, one table.

With *shared* entries the contributions of all cells to a pair of degrees of freedom meet in one entry, the usual
sparse matrix. With *own* entries each contribution keeps a place for itself: the row of a degree of freedom holds, for
one cell after the other, the ``n`` columns of that cell. Columns occur several times then, a product adds them up, and
nobody waits for a neighbour while the entries are filled: the lazy ELLPACK of the source, with the place of each cell
in a row fixed beforehand instead of counted at run time.

Source: I. Z. Reguly, PhD thesis, Pazmany Peter Catholic University 2014, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.csr import pair_entries
from fluxloom.graph.inverse import inverse_map
from fluxloom.graph.native import Indices, Offsets

__all__ = ["CellEntries", "own_entries", "shared_entries"]

_MOST = 2**31


@dataclass(frozen=True, eq=False)
class CellEntries:
    """Rows of columns, and where a cell finds its pairs.

    Attributes
    ----------
    offsets : (rows + 1,) int64
        First entry of each row.
    indices : (entries,) int32
        Column of each entry.
    table : (cells, n^2) int32
        Entry of the pair ``i``, ``j`` of degrees of freedom of a cell at ``n i + j``.
    diagonal : (rows,) int32
        An entry of each row on the diagonal; of own entries the first of them.
    """

    offsets: Offsets
    indices: Indices
    table: Indices
    diagonal: Indices


def shared_entries(cells: Indices, rows: int) -> CellEntries:
    """Return entries in which the contributions of all cells to a pair meet; columns ascend in each row.

    Parameters
    ----------
    cells : (cells, n) int32
        Degrees of freedom of each cell.
    rows
        Their number.

    Raises
    ------
    DatError
        If the table does not fit, or there are 2^31 entries or more.
    """
    found = pair_entries(cells, rows)
    return CellEntries(found.graph.offsets, found.graph.indices, found.table, found.diagonal)


def own_entries(cells: Indices, rows: int) -> CellEntries:
    """Return entries of which each has one contribution: the columns of one cell after those of the other.

    Parameters
    ----------
    cells : (cells, n) int32
        Degrees of freedom of each cell, each at most once in a cell.
    rows
        Their number.

    Raises
    ------
    DatError
        If the table does not fit, or there are 2^31 entries or more.
    """
    count, n = cells.shape
    if count * n * n >= _MOST:
        raise _too_many(count * n * n)
    inverse = inverse_map(cells, rows)  # pairs of a row in the order of cells: a pair has n entries
    leg = inverse.leg.astype(np.int64)
    first = np.empty((count, n), dtype=np.int32)
    first[inverse.element, leg] = n * np.arange(count * n)
    table = first[:, :, None] + np.arange(n, dtype=np.int32)
    offsets = n * inverse.offsets
    pairs = np.minimum(inverse.offsets[:-1], max(0, leg.size - 1))
    diagonal = n * pairs + (leg[pairs] if leg.size else 0)
    return CellEntries(
        offsets, cells[inverse.element].reshape(-1), table.reshape(count, n * n), diagonal.astype(np.int32)
    )


def _too_many(entries: int) -> DatError:
    return DatError(
        f"cells -> entries: the matrix has {entries} entries, and their numbers have 31 bits: take LocalMatrices or "
        "MatrixFree, or divide the mesh among ranks"
    )
