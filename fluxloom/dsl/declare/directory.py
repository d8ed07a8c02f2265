"""Sets of which every rank holds a slice: links between them, who owns what, and rows that are asked for by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import DatError

__all__ = [
    "CHUNK", "Array", "Directory", "Link", "Numbers", "Owners", "agree", "by_rank", "compress", "distinct",
    "even_owner", "fetch", "fetch_pieces", "lay_out", "links_of", "mixed_rows", "number_type", "places_by_rank",
    "spans", "stable_order", "take",
]  # fmt: skip

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]

CHUNK = 1 << 18
"""Entries that are worked on at a time, so that intermediate arrays stay in the caches."""


def spans(bounds: npt.NDArray[np.integer[Any]]) -> list[slice]:
    """Return the ranges between successive bounds."""
    return [slice(int(begin), int(end)) for begin, end in pairwise(bounds)]


def distinct(numbers: Numbers) -> Numbers:
    """Return the distinct numbers, ascending; sorting is many times faster than the hashing of ``numpy.unique``."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def compress(numbers: npt.NDArray[np.integer[Any]]) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """Return the distinct numbers, ascending, and the position of each number among them (of the same shape)."""
    flat = numbers.reshape(-1)
    if not flat.size:
        return np.empty(0, dtype=np.int64), np.empty(numbers.shape, dtype=np.int32)
    low, span = int(flat.min()), int(flat.max()) - int(flat.min()) + 1
    if span > 8 * flat.size:
        different, position = np.unique(flat, return_inverse=True)
        return different.astype(np.int64), position.astype(np.int32).reshape(numbers.shape)
    met = np.zeros(span, dtype=bool)
    met[flat - low] = True
    position = np.cumsum(met, dtype=np.int32)
    position -= 1
    return np.flatnonzero(met) + low, position[flat - low].reshape(numbers.shape)


def take(rows: Array, places: npt.NDArray[np.integer[Any]], out: Array | None = None) -> Array:
    """Return rows by their places, ``rows[places]``; this is several times faster for short rows."""
    found = np.empty((places.size, *rows.shape[1:]), dtype=rows.dtype) if out is None else out
    for begin in range(0, places.size, CHUNK):
        piece = slice(begin, begin + CHUNK)
        np.take(rows, places[piece], axis=0, out=found[piece], mode="clip")
    return found


def lay_out(found: Sequence[Array], rank: int, count: int, out: Array) -> Array:
    """Write what came from the other ranks to ``out``, rank by rank; return the place of this rank's ``count`` rows."""
    before = sum(len(rows) for rows in found[:rank])
    if before:
        out[:before] = np.concatenate(found[:rank])
    if len(out) > before + count:
        out[before + count :] = np.concatenate(found[rank + 1 :])
    return out[before : before + count]


def fetch(comm: Comm, rows: Array, starts: Numbers, numbers: npt.NDArray[np.integer[Any]]) -> Array:
    """Return rows by their global numbers. Collective.

    Rows of this rank's slice are not sent anywhere; each of the others is asked for once.

    Parameters
    ----------
    comm
        The ranks.
    rows
        This rank's slice of the table, ``(starts[rank + 1] - starts[rank], ...)``.
    starts : (ranks + 1,) int64
        Where the slices begin.
    numbers : (n,) integers
        The rows this rank wants.
    """
    found = np.empty((numbers.size, *rows.shape[1:]), dtype=rows.dtype)
    for piece, values in fetch_pieces(comm, rows, starts, numbers, CHUNK):
        found[piece] = values
    return found


def fetch_pieces(
    comm: Comm,
    rows: Array,
    starts: Numbers,
    numbers: npt.NDArray[np.integer[Any]],
    size: int,
    *,
    absent: int | None = None,
) -> Iterator[tuple[slice, Array]]:
    """Yield rows by their global numbers as `fetch` returns them, ``size`` at a time. Every rank has to iterate.

    Parameters
    ----------
    comm, rows, starts, numbers
        As for `fetch`.
    size
        Numbers a piece; the last may be smaller.
    absent
        What there is for negative numbers; without it there are none of these.

    Yields
    ------
    piece, values
        Which of the numbers, and their rows.
    """
    first, count = int(starts[comm.rank]), int(starts[comm.rank + 1] - starts[comm.rank])
    pieces = [slice(begin, min(begin + size, numbers.size)) for begin in range(0, numbers.size, size)]
    away = [np.zeros(0, dtype=np.int64)]
    for piece in pieces:
        # what lies below the slice is a huge unsigned number
        outside = (numbers[piece].astype(np.int64) - first).view(np.uint64) >= count
        away.append(piece.start + np.flatnonzero(outside & (numbers[piece] >= 0)))
    spots = np.concatenate(away)
    wanted, place = compress(numbers[spots])
    questions = comm.exchange([wanted[part] for part in spans(np.searchsorted(wanted, starts))])
    answers = np.concatenate(comm.exchange([rows[asked - first] for asked in questions]))
    bounds = np.searchsorted(spots, [piece.start for piece in pieces] + [numbers.size])
    for piece, part in zip(pieces, spans(bounds), strict=True):
        values = np.empty((piece.stop - piece.start, *rows.shape[1:]), dtype=rows.dtype)
        if count:
            np.take(rows, numbers[piece].astype(np.int64) - first, axis=0, out=values, mode="clip")
        if absent is not None:
            values[numbers[piece] < 0] = absent
        values[spots[part] - piece.start] = answers[place[part]]
        yield piece, values


Owners = npt.NDArray[np.int32]

_LARGEST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Link:
    """A table from one set to another, of which a rank holds some consecutive rows.

    Parameters
    ----------
    source, target
        Names of the sets.
    table
        Integers, ``(rows, arity)``: *global* numbers of the targets of the elements in this rank's slice of the
        source, which begins behind the slices of the ranks below. -1: no target.
    """

    source: str
    target: str
    table: Array


@dataclass(frozen=True, eq=False)
class Directory:
    """Who owns the elements of a set: each rank knows it for its slice, and answers for it.

    Parameters
    ----------
    comm
        The ranks.
    starts
        int64, ``(ranks + 1,)``: rank ``r`` holds the slice ``starts[r] ... starts[r + 1] - 1``.
    owner
        int32: owner of each element of this rank's slice.
    """

    comm: Comm
    starts: Numbers
    owner: Owners

    @property
    def first(self) -> int:
        """Global number of the first element of this rank's slice."""
        return int(self.starts[self.comm.rank])

    @property
    def total(self) -> int:
        """Elements of all ranks together."""
        return int(self.starts[-1])

    def split(self, numbers: Array) -> list[slice]:
        """Return for each rank which of some ascending numbers lie in its slice."""
        return spans(np.searchsorted(numbers, self.starts))

    def find(self, numbers: Numbers) -> Owners:
        """Return the owner of each of some elements. Collective.

        What lies in the slices of other ranks is asked for once.
        """
        return fetch(self.comm, self.owner, self.starts, numbers)

    def find_rows(self, table: Array) -> Iterator[tuple[slice, Owners]]:
        """Yield some rows of a table at a time, and the owners of their targets, -1 where there is none.

        Every rank has to iterate. What lies in the slices of other ranks is asked for once.
        """
        arity = table.shape[1]
        size = max(1, CHUNK // arity) * arity
        numbers = table.reshape(-1)
        for piece, owners in fetch_pieces(self.comm, self.owner, self.starts, numbers, size, absent=-1):
            yield slice(piece.start // arity, piece.stop // arity), owners.reshape(-1, arity)


def agree(comm: Comm, problem: str) -> None:
    """Raise the first rank's problem, if some rank has one, on every rank.

    Raises
    ------
    DatError
        With the rank and its text.
    """
    for rank, text in enumerate(comm.allgather(problem)):
        if text:
            raise DatError(f"rank {rank}: {text}" if comm.size > 1 else text)


def links_of(links: Mapping[str, Link], source: str) -> dict[str, Link]:
    """Return the links from a set."""
    return {name: link for name, link in links.items() if link.source == source}


def number_type(total: int) -> type[np.int32] | type[np.int64]:
    """Return the type in which global numbers of a set of this size travel."""
    return np.int32 if total <= _LARGEST else np.int64


def stable_order(owner: npt.NDArray[np.integer[Any]], ranks: int) -> Numbers:
    """Return the places of elements in the order of their owners, ascending for each owner."""
    # NumPy sorts 16-bit integers by counting
    return np.argsort(owner.astype(np.uint16) if ranks < 2**16 else owner, kind="stable")


def by_rank(owner: Owners, ranks: int) -> list[slice]:
    """Return for each rank which of some elements, in the order of their owners, it owns."""
    return spans(np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=ranks))]))


def places_by_rank(owner: Owners, ranks: int) -> list[Owners]:
    """Return for each rank which of some elements it owns, ascending; there are fewer than 2**31 elements."""
    from fluxloom.graph.colour import colour_permutation

    order, bounds = colour_permutation(owner, ranks)  # sorts by counting
    return [order[piece] for piece in spans(bounds)]


def even_owner(numbers: Numbers, total: int, shares: npt.NDArray[np.float64]) -> Owners:
    """Return the owner of elements that are dealt out in consecutive blocks, by shares."""
    ends = np.cumsum(shares)
    ends = ends[:-1] * total / ends[-1]
    return np.searchsorted(ends, numbers + 0.5, side="right").astype(np.int32)


def mixed_rows(columns: Sequence[Owners]) -> tuple[Owners, Numbers]:
    """Return the highest owner in each row of a table, given by its columns, and the rows that have several.

    -1 is nobody. Columns are compared one by one: reductions of short rows are slow.
    """
    highest = columns[0].copy()
    for column in columns[1:]:
        np.maximum(highest, column, out=highest)
    mixed = [np.zeros(0, dtype=np.int64)]
    for column in columns:
        other = np.flatnonzero(column != highest)
        mixed.append(other[column[other] >= 0])
    return highest, distinct(np.concatenate(mixed))
