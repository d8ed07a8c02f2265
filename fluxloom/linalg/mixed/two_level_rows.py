"""Rows of a matrix in two levels: groups of ranks, and the ranks of each group.

References
----------
The portable algebraic CFD thesis (TermoFluids): section 1.4.3, a part of the mesh for each GPU that is divided among
the processes tied to it; section 3.4, rows that need nothing of other groups for the GPU, those at the interface, and
as many more as the balance says, for the cores of its host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import RowExchange
from fluxloom.core.errors import SolverError
from fluxloom.graph.partition import partition_kway
from fluxloom.linalg.mixed.rows import check_shares

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["GroupRows", "group_colours", "nested_parts", "spread_rows"]

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Rows that a rank has after those of its group have been divided anew.

    Attributes
    ----------
    rows
        ``(owned, total)`` with global columns, in compressed rows.
    numbers
        Global number of each, int64.
    inner
        How many rows of the whole group meet columns of the group alone.
    """

    rows: csr_array
    numbers: Index
    inner: int


def group_colours(ranks: int, groups: int | Sequence[int]) -> tuple[int, ...]:
    """Return the group of each rank: consecutive ranks in groups of about equal size, or as given.

    Raises
    ------
    SolverError
        If there are more groups than ranks, none, or not one number a rank.
    """
    if isinstance(groups, int | np.integer):
        if not 1 <= groups <= ranks:
            raise SolverError(f"{groups} groups of {ranks} ranks: at least one rank a group, and at least one group")
        return tuple(rank * int(groups) // ranks for rank in range(ranks))
    found = tuple(int(colour) for colour in groups)
    if len(found) != ranks or min(found) < 0:
        raise SolverError(f"groups {list(found)}: give the number of the group, from 0, of each of {ranks} ranks")
    return found


def nested_parts(offsets: npt.ArrayLike, neighbours: npt.ArrayLike, groups: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the rank of each vertex of a graph that is cut into groups, each of which is cut among its ranks.

    The cuts between groups are those that messages of the solver cross: they are made first, and short.

    Parameters
    ----------
    offsets, neighbours
        The graph by compressed rows, symmetric; loops are left out.
    groups
        Number of ranks of each group: groups get as much of the graph as they have ranks, ranks equal parts.

    Raises
    ------
    SolverError
        If a group has no ranks.
    DatError, DeviceUnavailable
        As `fluxloom.graph.partition.partition_kway`.
    """
    from scipy.sparse import csr_array

    sizes = [int(size) for size in groups]
    if not sizes or min(sizes) < 1:
        raise SolverError(f"groups of {sizes} ranks: at least one rank each, and at least one group")
    starts = np.asarray(offsets, dtype=np.int64)
    ends = np.asarray(neighbours, dtype=np.int32)
    whole = csr_array((np.ones(ends.size, dtype=np.int8), ends, starts), shape=(starts.size - 1, starts.size - 1))
    group = _cut(whole, [float(size) for size in sizes])
    rank = np.zeros(group.size, dtype=np.int32)
    for number, size in enumerate(sizes):
        mine = np.flatnonzero(group == number)
        rank[mine] = sum(sizes[:number]) + _cut(whole[mine][:, mine], [1.0] * size)
    return rank


def _cut(graph: csr_array, shares: Sequence[float]) -> npt.NDArray[np.int32]:
    from scipy.sparse import csr_array

    coo = graph.tocoo()
    kept = coo.row != coo.col
    plain = csr_array((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=graph.shape)
    return partition_kway(plain.indptr.astype(np.int64), plain.indices.astype(np.int32), shares)


def spread_rows(
    group: Comm, rows: Any, numbers: Index, shares: Sequence[float], *, inner_first: bool = True
) -> GroupRows:
    """Divide the rows of a group of ranks among them anew. Collective in the group.

    Rows that meet columns of the group alone come first, then those at the interface to other groups; both ascend. The
    ranks get consecutive ones of these, and the first of several ranks inner ones only: the interface is the
    least load of the others. With a GPU for the first rank and shares ``(1, 0)`` it has all inner rows, and the
    other rank, which talks to other groups, the interface.

    Parameters
    ----------
    group
        Its ranks.
    rows
        Those of this rank, ``(owned, total)`` with global columns: a SciPy sparse array or matrix.
    numbers
        Global number of each.
    shares
        Part of the rows of each rank of the group.
    inner_first
        Otherwise the rows ascend, whatever they meet, and the shares are met exactly.

    Raises
    ------
    SolverError
        If the shares do not fit the ranks or do not sum to 1.
    """
    wanted = check_shares(shares, group.size)
    own = rows.tocsr()
    every = group.allgather(np.asarray(numbers, dtype=np.int64))
    known = np.sort(np.concatenate(every))
    inner = _inside(own, known)
    marks = np.concatenate(group.allgather(inner))
    whole = np.concatenate(every)
    order = np.lexsort((whole, ~marks)) if inner_first else np.argsort(whole, kind="stable")
    count = int(np.count_nonzero(marks))
    ends = np.rint(np.cumsum(wanted) * whole.size).astype(np.int64)
    ends[-1] = whole.size
    if group.size > 1 and inner_first:
        ends[0] = min(int(ends[0]), count)
    target = np.empty(whole.size, dtype=np.int64)
    target[order] = np.searchsorted(ends, np.arange(whole.size), side="right")
    first = sum(found.size for found in every[: group.rank])
    return _sent(group, own, np.asarray(numbers, dtype=np.int64), target[first : first + own.shape[0]], count)


def _inside(own: Any, known: Index) -> npt.NDArray[np.bool_]:
    """Return of each row whether all its columns are among some, which ascend."""
    if not known.size:
        return np.zeros(own.shape[0], dtype=bool)
    place = np.minimum(np.searchsorted(known, own.indices), known.size - 1)
    outside = np.concatenate([[0], np.cumsum(known[place] != own.indices)])[own.indptr]
    return np.diff(outside) == 0


def _sent(group: Comm, own: Any, numbers: Index, target: Index, inner: int) -> GroupRows:
    """Send each row to its rank; return those that come, ascending by what the senders had. Collective."""
    from scipy.sparse import csr_array

    lengths = np.diff(own.indptr).astype(np.int64)
    got, sizes = map(RowExchange(group, target).forward, (numbers, lengths))
    entries = RowExchange(group, np.repeat(target, lengths))
    columns, values = entries.forward(own.indices.astype(np.int64)), entries.forward(own.data.astype(np.float64))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return GroupRows(csr_array((values, columns, offsets), shape=(got.size, own.shape[1])), got, inner)
