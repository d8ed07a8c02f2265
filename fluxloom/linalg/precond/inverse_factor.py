"""The factor of a sparse approximate inverse, row by row: small dense systems, solved many at a time.

References
----------
L. Yu. Kolotilina, A. Yu. Yeremin, "Factorized sparse approximate inverse preconditionings I", SIAM J. Matrix Anal.
Appl. 14 (1993) 45-58. E. Chow, "A priori sparsity patterns for parallel sparse approximate inverse
preconditioners", SIAM J. Sci. Comput. 21 (2000) 1804-1822.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import Places, RowExchange
from fluxloom.core.processors import available_processors
from fluxloom.dsl.declare.maps import entries_of
from fluxloom.linalg.matrix.local_rows import refuse
from fluxloom.linalg.matrix.ring_rows import Rings, find_rings

__all__ = ["inverse_factor"]

Index = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

_CHUNK = 2**21
"""Numbers in the dense blocks that are solved at once."""

_SYMMETRIC = 1e-8
"""By how much ``a_ij`` and ``a_ji`` may differ, over ``sqrt(a_ii a_jj)``."""

_NAME = "ApproximateInverse"


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a matrix that a rank knows, in the order of their global numbers.

    Attributes
    ----------
    plan
        Where they come from.
    numbers
        Global number of each, ascending.
    place
        Place of each local number of the plan.
    matrix
        Square; rows of the last ring are empty.
    own
        The rows of this rank, in the order in which they were given.
    """

    plan: Rings
    numbers: Index
    place: Index
    matrix: csr_array
    own: Index


def inverse_factor(
    comm: Comm, given: csr_array, numbers: Index, level: int, drop: float
) -> tuple[csr_array, csr_array]:
    """Return the rows of ``G`` and of its transpose that a rank owns, with global columns, ascending. Collective.

    ``G`` is lower triangular in the global numbers of the rows, with the pattern of the lower triangle of the
    ``level``-th power of the matrix without small entries. Row ``i`` with the pattern ``J``, ``i`` the last of it, is
    ``y / sqrt(y_i)`` with ``A[J, J] y = e_i``, so that the diagonal of ``G A G^T`` is one. Every row has the
    same bits on any number of ranks.

    Parameters
    ----------
    comm
        The ranks.
    given
        The rows of this rank, ``(owned, total)``, with global columns.
    numbers
        Their global numbers.
    level, drop
        See `fluxloom.linalg.precond.approximate_inverse.ApproximateInverse`.

    Raises
    ------
    SolverError
        On every rank, if the matrix is not symmetric and positive definite; names a row.
    """
    rows = _known(find_rings(comm, given, level + 1, numbers))
    refuse(comm, _problem(rows))
    pattern = _pattern(rows, level, drop)
    values, problem = _solve(_lower(rows), pattern, rows)
    refuse(comm, problem)
    shape = rows.own.size, rows.plan.total
    factor = csr_array((values, rows.numbers[pattern.indices], pattern.indptr), shape=shape)
    return factor, _transposed(comm, rows, pattern, values, shape)


def _known(plan: Rings) -> _Rows:
    order = np.argsort(plan.numbers, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    row = np.repeat(place[: plan.offsets.size - 1], np.diff(plan.offsets))
    matrix = csr_array((plan.values, (row, place[plan.indices])), shape=(order.size, order.size))
    return _Rows(plan, plan.numbers[order], place, matrix, place[: plan.owned])


def _problem(rows: _Rows) -> str:
    """Return what is wrong with the matrix, or an empty string."""
    diagonal = rows.matrix.diagonal()
    if (bad := np.flatnonzero(~((diagonal[rows.own] > 0) & np.isfinite(diagonal[rows.own])))).size:
        row = rows.own[bad[0]]
        return (
            f"{_NAME}: the diagonal of row {rows.numbers[row]} is {diagonal[row]}; a symmetric positive definite "
            "matrix is wanted"
        )
    size = np.sqrt(np.abs(diagonal))
    apart = (rows.matrix[rows.own] - rows.matrix.T.tocsr()[rows.own]).tocoo()
    i, j = rows.own[apart.row], apart.col
    if (bad := np.flatnonzero(~(np.abs(apart.data) <= _SYMMETRIC * size[i] * size[j]))).size:
        at, to = (int(rows.numbers[k[bad[0]]]) for k in (i, j))
        return (
            f"{_NAME}: the matrix is not symmetric: the entries ({at}, {to}) and ({to}, {at}) differ by "
            f"{abs(apart.data[bad[0]]):.3g}; a symmetric positive definite matrix is wanted"
        )
    return ""


def _pattern(rows: _Rows, level: int, drop: float) -> csr_array:
    """Return the pattern of the own rows of the factor, columns in places of `_Rows`, ascending."""
    complete = np.zeros(rows.numbers.size, dtype=bool)
    complete[rows.place[: rows.plan.ends[level - 1]]] = True
    size = np.sqrt(np.abs(rows.matrix.diagonal()))
    entries = rows.matrix.tocoo()
    i, j = entries.row, entries.col
    kept = complete[i] & ((i == j) | (np.abs(entries.data) >= drop * size[i] * size[j]))
    # Truth values, as sums of ones might vanish.
    near = csr_array((np.ones(np.count_nonzero(kept), dtype=bool), (i[kept], j[kept])), shape=rows.matrix.shape)
    reached = near[rows.own]
    for _ in range(level - 1):
        reached = reached @ near
    found = reached.tocoo()
    i, j = found.row, found.col
    lower = j <= rows.own[i]
    pattern = csr_array((np.ones(np.count_nonzero(lower), dtype=bool), (i[lower], j[lower])), shape=reached.shape)
    pattern.sort_indices()
    return pattern


# ------------------------------------------------------------------------------------------ the rows


def _lower(rows: _Rows) -> csr_array:
    """Return the lower triangle."""
    entries = rows.matrix.tocoo()
    kept = entries.col <= entries.row
    place = (entries.row[kept], entries.col[kept])
    return csr_array((entries.data[kept], place), shape=(rows.numbers.size, rows.numbers.size))


def _solve(lower: csr_array, pattern: csr_array, rows: _Rows) -> tuple[Reals, str]:
    """Return the entries of the factor, and what is wrong, if anything is. Rows of one length are solved at once."""
    starts, lengths = pattern.indptr[:-1].astype(np.int64), np.diff(pattern.indptr)
    values = np.empty(pattern.nnz)
    pieces: list[Index] = []
    for length in np.unique(lengths):
        same = np.flatnonzero(lengths == length)
        step = max(1, _CHUNK // int(length) ** 2)
        pieces += [same[first : first + step] for first in range(0, same.size, step)]

    def solve(some: Index) -> str:
        length = int(lengths[some[0]])
        entries = starts[some][:, None] + np.arange(length)
        values[entries], bad = _solve_blocks(_blocks(lower, pattern.indices[entries].astype(np.int64)))
        return "" if bad < 0 else (
            f"{_NAME}: the matrix is not positive definite: neither is its block of row "
            f"{rows.numbers[rows.own[some[bad]]]} and the {length - 1} rows before it that it reaches"
        )  # fmt: skip

    if len(pieces) < 2:
        problems = [solve(some) for some in pieces]
    else:
        count = min(len(pieces), available_processors())
        with ThreadPoolExecutor(count) as threads:  # NumPy lets them work side by side
            problems = list(threads.map(solve, pieces))
    return values, next((problem for problem in problems if problem), "")


def _blocks(lower: csr_array, columns: Index) -> Reals:
    """Return the dense blocks ``A[J, J]``, ``(n, m, m)``, for the rows of ``columns`` ``(n, m)``, which ascend."""
    count, length = columns.shape
    size = lower.indptr.size - 1
    blocks = np.zeros((count * length, length))
    rows = columns.ravel()
    starts = lower.indptr[rows].astype(np.int64)
    lengths = lower.indptr[rows + 1] - starts
    entries = entries_of(starts, lengths)
    at = np.repeat(np.arange(rows.size), lengths)
    # Each block's columns are keys of their own range: the places of all are one search.
    keys = (np.arange(count)[:, None] * size + columns).ravel()
    wanted = at // length * size + lower.indices[entries]
    to = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    met = np.flatnonzero(keys[to] == wanted)
    at, to, found = at[met], to[met], lower.data[entries[met]]
    blocks[at, to % length] = found
    blocks[to, at % length] = found
    return blocks.reshape(count, length, length)


def _solve_blocks(blocks: Reals) -> tuple[Reals, int]:
    """Return ``y / sqrt(y_last)`` with ``A y = e_last`` of each block, and the first that is not positive, or -1."""
    last = np.zeros((*blocks.shape[:2], 1))
    last[:, -1] = 1.0
    try:
        y = np.linalg.solve(blocks, last)[..., 0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return last[..., 0], int(np.argmin(np.linalg.eigvalsh(blocks)[:, 0]))
    wrong = np.flatnonzero(~((y[:, -1] > 0) & np.isfinite(y).all(axis=1)))
    if wrong.size:
        return y, int(wrong[0])
    return y / np.sqrt(y[:, -1:]), -1


# ------------------------------------------------------------------------------------- the transpose


def _transposed(comm: Comm, rows: _Rows, pattern: csr_array, values: Reals, shape: tuple[int, int]) -> csr_array:
    """Return the own rows of the transpose: entries travel to the owners of their columns. Collective."""
    owner = np.full(rows.numbers.size, comm.rank)
    for rank, places in rows.plan.receive.items():
        owner[rows.place[places]] = rank
    row = rows.numbers[np.repeat(rows.own, np.diff(pattern.indptr))]
    column, to = rows.numbers[pattern.indices], owner[pattern.indices]
    i, j, g = map(RowExchange(comm, to).forward, (column, row, values))
    own = rows.numbers[rows.own]
    found = csr_array((g, (Places(own).of(i), j)), shape=shape)
    found.sort_indices()
    return found
