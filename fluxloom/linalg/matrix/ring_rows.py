"""Rows of a distributed matrix that a rank needs for several products with one exchange.

The rings of a rank: what its rows reach in 1, 2, ... steps along the entries. Sources: see
`fluxloom.linalg.matrix.rings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import Places, distinct, stable_order
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.directory import Directory, by_rank
from fluxloom.dsl.declare.maps import entries_of

__all__ = ["Index", "Rings", "agree", "fetch", "find_rings"]

Index = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rings:
    """What a rank stores of a distributed matrix, in local numbers ``owned | ring 1 | ... | ring R``.

    Parameters
    ----------
    numbers
        int64, ``(stored,)``: global row of each local one. A ring is in the order of the owners, then ascending.
    ends
        ``R + 1`` numbers: how many rows there are up to each ring; ``ends[0]`` are owned.
    offsets, indices, values
        Compressed rows ``0 ... ends[R - 1] - 1`` with local columns, the entries of each in the order in which its
        owner has them. Of the last ring only the values of vectors are needed.
    total
        Rows of all ranks together.
    send, receive
        By rank, where there are any: local numbers of the owned values that it needs, and of those that come
        from it, in the same order on both sides.
    """

    numbers: Index
    ends: tuple[int, ...]
    offsets: Index
    indices: Index
    values: Reals
    total: int
    send: dict[int, Index]
    receive: dict[int, Index]

    @property
    def rings(self) -> int:
        """Number of rings."""
        return len(self.ends) - 1

    @property
    def owned(self) -> int:
        """Rows of this rank."""
        return self.ends[0]

    @property
    def redundancy(self) -> float:
        """Entries that all products together visit, divided by those of owned rows alone, ``sum_k n_k / (rings n)``."""
        own = int(self.offsets[self.owned])
        visited = sum(int(self.offsets[end]) for end in self.ends[:-1])
        return visited / (self.rings * own) if own else 1.0

    @cached_property
    def inner(self) -> npt.NDArray[np.bool_]:
        """Of each owned row, whether all its columns are owned: its product needs no message."""
        outside = np.concatenate([[0], np.cumsum(self.indices[: self.offsets[self.owned]] >= self.owned)])
        bounds = outside[self.offsets[: self.owned + 1]]
        return np.diff(bounds) == 0


def find_rings(comm: Comm, matrix: Any, rings: int, rows: npt.ArrayLike | None = None) -> Rings:
    """Return what each rank has to store for ``rings`` products with one exchange. Collective.

    Rows are asked from their owners, ring by ring; memory is that of the rows stored, and ``total / ranks``
    numbers that say who owns what.

    Parameters
    ----------
    comm
        The ranks.
    matrix
        The rows of this rank, ``(owned, total)`` with global columns: a SciPy sparse array or matrix.
    rings
        How many, at least 1; the same on every rank.
    rows
        Global number of each row. By default ranks have consecutive rows in their order.

    Raises
    ------
    DatError
        On every rank, if on one of them the rows, columns or values do not fit; it names the rank.
    """
    fits = hasattr(matrix, "tocsr")
    agree(comm, "" if fits else f"the matrix is of type {type(matrix).__name__}; give a sparse one of SciPy")
    own = matrix.tocsr()
    offsets, columns = own.indptr.astype(np.int64), own.indices.astype(np.int64)
    counts = comm.allgather(own.shape[0])
    first = sum(counts[: comm.rank])
    given = np.arange(first, first + own.shape[0]) if rows is None else np.asarray(rows)
    agree(comm, _problem(own, given, columns, sum(counts), rings), ("rings", rings))
    numbers, values = given.astype(np.int64), own.data.astype(np.float64)
    directory, own_places = _directory(comm, numbers, sum(counts)), Places(numbers)
    found = ([np.diff(offsets)], [columns], [values])
    stored, ends, wanted = numbers, [numbers.size], [np.zeros(0, dtype=np.int64) for _ in range(comm.size)]
    owners = [np.full(numbers.size, comm.rank, dtype=np.int32)]
    for ring in range(1, rings + 1):
        new = _others(found[1][-1], stored)
        owner = directory.find(new)
        order = stable_order(owner, comm.size)
        new = new[order]
        pieces = [new[piece] for piece in by_rank(owner, comm.size)]
        asked = [own_places.of(q) for q in comm.exchange(pieces)]
        wanted = [np.concatenate(pair) for pair in zip(wanted, asked, strict=True)]
        stored, owners = np.concatenate([stored, new]), [*owners, owner[order]]
        ends.append(stored.size)
        if ring < rings:
            for collected, part in zip(found, fetch(comm, asked, (offsets, columns, values)), strict=True):
                collected.append(part)
    lengths, columns, values = (np.concatenate(pieces) for pieces in found)
    halo = np.concatenate(owners)[numbers.size :]
    return Rings(
        numbers=stored,
        ends=tuple(ends),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        indices=Places(stored).of(columns),
        values=values,
        total=sum(counts),
        send={rank: places for rank, places in enumerate(wanted) if places.size},
        receive={int(rank): numbers.size + np.flatnonzero(halo == rank) for rank in np.unique(halo)},
    )


# ------------------------------------------------------------------------------------------ the parts


def _directory(comm: Comm, numbers: Index, total: int) -> Directory:
    """Return who owns which row; ranks answer for blocks of even size. Collective.

    Raises
    ------
    DatError
        On every rank, if some row is not that of one rank.
    """
    width = max(1, -(-total // comm.size))
    starts = np.minimum(np.arange(comm.size + 1) * width, total)
    arrived = comm.exchange([numbers[numbers // width == rank] for rank in range(comm.size)])
    first = int(starts[comm.rank])
    here = np.concatenate(arrived) - first
    owner = np.zeros(int(starts[comm.rank + 1]) - first, dtype=np.int32)
    owner[here] = np.repeat(np.arange(comm.size, dtype=np.int32), [found.size for found in arrived])
    seen = np.bincount(here, minlength=owner.size)
    wrong = np.flatnonzero(seen != 1)
    why = f"{seen[wrong[0]]} ranks have row {first + wrong[0]}; each row belongs to one" if wrong.size else ""
    agree(comm, why)
    return Directory(comm, starts, owner)


def _others(asked: Index, stored: Index) -> Index:
    """Return the distinct numbers that are not stored, ascending."""
    if stored.size and int(stored.max()) - int(stored.min()) + 1 == stored.size:  # different, and without gaps
        asked = asked[(asked < stored.min()) | (asked > stored.max())]
    return np.setdiff1d(distinct(asked), stored, assume_unique=True) if asked.size else asked


def fetch(comm: Comm, asked: Sequence[Index], rows: tuple[Index, Index, Reals]) -> tuple[Index, Index, Reals]:
    """Return lengths, columns and values of rows of other ranks.

    Collective; ``asked`` are the places of those that each rank wants from here.
    """
    offsets, columns, values = rows
    lengths = [offsets[q + 1] - offsets[q] for q in asked]
    entries = [entries_of(offsets[q], n) for q, n in zip(asked, lengths, strict=True)]
    return (
        np.concatenate(comm.exchange(lengths)),
        np.concatenate(comm.exchange([columns[e] for e in entries])),
        np.concatenate(comm.exchange([values[e] for e in entries])),
    )


def _problem(own: Any, rows: npt.NDArray[Any], columns: Index, total: int, rings: int) -> str:
    """Return what is wrong with the rows of this rank, or an empty string."""
    if not isinstance(rings, int | np.integer) or rings < 1:
        return f"{rings} rings; give at least 1, a whole number"
    if own.shape[1] != total:
        return f"the matrix has {own.shape[1]} columns, but all ranks together have {total} rows; give global columns"
    if rows.shape != (own.shape[0],) or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        return f"row numbers of shape {rows.shape} and type {rows.dtype} for {own.shape[0]} rows; give one integer each"
    if np.iscomplexobj(own.data):
        return f"the values are {own.data.dtype}; only real ones can be multiplied"
    for what, found in (("row", rows), ("column", columns)):
        if found.size and (found.min() < 0 or found.max() >= total):
            return f"{what} {found.min() if found.min() < 0 else found.max()} is outside 0 ... {total - 1}"
    return ""


def agree(comm: Comm, problem: str, same: tuple[str, object] = ("", 0)) -> None:
    """Raise `DatError` on every rank if one of them has a problem, or a number that is not that of the others."""
    found = comm.allgather((problem, same[1]))
    for rank, (text, number) in enumerate(found):
        if text or number != found[0][1]:
            why = text or f"{number} {same[0]}, but {found[0][1]} on rank 0; give the same everywhere"
            raise DatError(f"distributed matrix, rank {rank}: {why}")
