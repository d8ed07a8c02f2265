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
from fluxloom.graph.csr import Csr, target_graph
from fluxloom.graph.inverse import inverse_map
from fluxloom.graph.lookup import index_numbers
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
    pattern, diagonal = _with_diagonal(target_graph(cells, rows))
    row = np.repeat(np.arange(rows, dtype=np.int64), np.diff(pattern.offsets))
    entries = index_numbers(row * rows + pattern.indices)
    n = cells.shape[1]
    table = np.empty((len(cells), n, n), dtype=np.int32)
    for i in range(n):  # a row of all cells at a time: the numbers of all pairs would be twice as large as the table
        table[:, i] = entries.find(cells[:, i, None].astype(np.int64) * rows + cells)
    return CellEntries(pattern.offsets, pattern.indices, table.reshape(len(cells), n * n), diagonal)


def _with_diagonal(graph: Csr) -> tuple[Csr, Indices]:
    """Return rows with an entry on the diagonal among the others, and where that is."""
    count = graph.offsets.size - 1
    row = np.repeat(np.arange(count, dtype=np.int64), np.diff(graph.offsets))
    right = graph.indices > row
    lower = np.bincount(row[~right], minlength=count)
    offsets = graph.offsets + np.arange(count + 1)
    if offsets[-1] >= _MOST:
        raise _too_many(int(offsets[-1]))
    diagonal = (offsets[:-1] + lower).astype(np.int32)
    indices = np.empty(offsets[-1], dtype=np.int32)
    indices[diagonal] = np.arange(count, dtype=np.int32)
    indices[np.arange(row.size) + row + right] = graph.indices
    return Csr(offsets, indices), diagonal


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
