"""The order of the rows of a sparse matrix: groups, rows of equal length side by side, a narrow band.

Rows of equal length next to each other need little padding in sliced formats, and threads that work side by side end
together. A narrow band keeps what neighbouring rows read close together in memory.

References
----------
E. Cuthill, J. McKee: Reducing the bandwidth of sparse symmetric matrices, *Proc. 24th National Conference ACM* (1969)
157-172. A. George, J. W.-H. Liu: *Computer Solution of Large Sparse Positive Definite Systems*, Prentice-Hall 1981,
chapter 4 (the reverse order).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["permuted", "reorder"]

Index = npt.NDArray[np.int64]


def reorder(matrix: Any, *, groups: npt.ArrayLike | None = None, lengths: bool = True, band: bool = True) -> Index:
    """Return an order of the rows: by group, in it by number of entries, and among equals by Cuthill and McKee.

    One reverse Cuthill-McKee order is made of the whole graph, that of ``A + A^T``. The rows of a group, or those of
    one length in it, follow each other as they do there, so that each sweeps the mesh in the same direction.

    Parameters
    ----------
    matrix
        ``(n, m)``, ``m >= n``: a sparse array or matrix of SciPy. Columns from ``n`` on are those of a halo: they
        count as entries of a row and have no place in the order.
    groups : (n,) integers
        Group of each row, ascending in the result: 0 for inner rows and 1 for those at an interface. By default
        all rows are one group.
    lengths
        Whether rows with many entries come first, and so those at a boundary last. The band is then one of each
        length, not one of the matrix.
    band
        Whether equals are in reverse Cuthill-McKee order; otherwise they stay in the order that they have.

    Returns
    -------
    order : (n,) int64
        Old number of each new row: ``order[new] = old``.

    Raises
    ------
    SolverError
        If the matrix is not sparse or has fewer columns than rows, or there is not one group a row.
    """
    rows, n, columns = _compressed(matrix)
    if columns < n:
        raise SolverError(f"reorder: a matrix of shape ({n}, {columns}) has rows without a column of their own")
    keys = [np.arange(n, dtype=np.int64)]
    if band and n:
        keys[0][_cuthill_mckee(rows, n)] = np.arange(n)
    if lengths:
        keys.append(-np.diff(rows.indptr).astype(np.int64))
    if groups is not None:
        keys.append(_groups(groups, n))
    return np.lexsort(keys).astype(np.int64)


def permuted(matrix: Any, order: npt.ArrayLike) -> csr_array:
    """Return a square matrix with rows and columns in another order, columns ascending in each row.

    Row ``i`` and column ``i`` of the result are row and column ``order[i]``; ``permuted(A, order) @ x[order]`` is
    ``(A @ x)[order]``, up to the order of sums.

    Parameters
    ----------
    matrix
        ``(n, n)``: a sparse array or matrix of SciPy.
    order : (n,) integers
        A permutation, such as that of `reorder`.

    Raises
    ------
    SolverError
        If the matrix is not sparse or not square, or the order is no permutation of its rows.
    """
    from scipy.sparse import csr_array

    rows, n, columns = _compressed(matrix)
    if columns != n:
        raise SolverError(f"permuted: a square matrix is wanted, not one of shape ({n}, {columns})")
    chosen = np.asarray(order) if n else np.zeros(np.shape(order), dtype=np.int64)
    if chosen.shape != (n,) or not np.issubdtype(chosen.dtype, np.integer):
        raise SolverError(f"permuted: order has shape {chosen.shape} and type {chosen.dtype}; give {n} integers")
    if not np.array_equal(np.sort(chosen), np.arange(n)):
        raise SolverError(f"permuted: order is no permutation of 0 ... {n - 1}")
    place = np.empty(n, dtype=rows.indices.dtype)
    place[chosen] = np.arange(n)
    moved = rows[chosen]
    result = csr_array((moved.data, place[moved.indices], moved.indptr), shape=(n, n))
    result.sort_indices()
    return result


def _cuthill_mckee(rows: csr_array, n: int) -> npt.NDArray[np.int32]:
    """Return the reverse Cuthill-McKee order of the graph of the first ``n`` columns and its transpose."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    graph = rows[:, :n]
    graph.data = np.ones(graph.nnz, dtype=np.int32)
    return reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True)


def _compressed(matrix: Any) -> tuple[csr_array, int, int]:
    """Return a matrix in compressed rows, and its shape."""
    from scipy.sparse import csr_array

    if not hasattr(matrix, "tocsr"):
        raise SolverError(f"a sparse array or matrix of SciPy is wanted, not {type(matrix).__name__}")
    height, width = matrix.shape
    return csr_array(matrix.tocsr()), height, width


def _groups(groups: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    given = np.asarray(groups)
    if given.shape != (n,) or not (np.issubdtype(given.dtype, np.integer) or given.dtype == np.bool_):
        raise SolverError(f"reorder: groups has shape {given.shape} and type {given.dtype}; give {n} integers")
    return given
