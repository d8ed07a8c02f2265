"""Rows of tables that are spread over the ranks: which rank has a row, sending rows there, asking for rows.

A table of ``total`` rows is held in *slices*: consecutive rows, in the order of the ranks. Rows are told apart by
their global number. All functions with a communicator are collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import CommError

__all__ = [
    "CHUNK", "Places", "RowExchange", "before", "block_starts", "compress", "distinct", "fetch", "fetch_pieces",
    "from_first", "owner_of", "place", "place_in", "spans", "stable_order", "take", "to_first",
]  # fmt: skip

Index = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer[Any]]
Rows = npt.NDArray[Any]

CHUNK = 1 << 18
"""Entries that are worked on at a time, so that intermediate arrays stay in the caches."""


def spans(bounds: Numbers) -> list[slice]:
    """Return the ranges between successive bounds."""
    return [slice(int(begin), int(end)) for begin, end in pairwise(bounds)]


def distinct(numbers: Index) -> Index:
    """Return the distinct numbers, ascending; sorting is many times faster than the hashing of ``numpy.unique``."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def compress(numbers: Numbers) -> tuple[Index, npt.NDArray[np.int32]]:
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


def take(rows: Rows, places: Numbers, out: Rows | None = None) -> Rows:
    """Return rows by their places, ``rows[places]``; this is several times faster for short rows."""
    found = np.empty((places.size, *rows.shape[1:]), dtype=rows.dtype) if out is None else out
    for begin in range(0, places.size, CHUNK):
        piece = slice(begin, begin + CHUNK)
        np.take(rows, places[piece], axis=0, out=found[piece], mode="clip")
    return found


def stable_order(owner: Numbers, ranks: int) -> Index:
    """Return the places of elements in the order of their owners, ascending for each owner."""
    # NumPy sorts 16-bit integers by counting
    return np.argsort(owner.astype(np.uint16) if ranks < 2**16 else owner, kind="stable")


class Places:
    """Where global numbers are among some, in any order."""

    def __init__(self, numbers: Index) -> None:
        self._order = None if (numbers[1:] > numbers[:-1]).all() else np.argsort(numbers, kind="stable")
        self._sorted = numbers if self._order is None else numbers[self._order]

    def of(self, asked: Numbers) -> Index:
        """Return the places of numbers that are there."""
        found = place_in(self._sorted, asked)
        return found if self._order is None else self._order[found]


def place_in(numbers: Index, asked: Numbers) -> Index:
    """Return the places of numbers among ascending ones; those that follow each other need no search."""
    if numbers.size and numbers[-1] - numbers[0] == numbers.size - 1:
        return asked - numbers[0]
    return np.searchsorted(numbers, asked)


# ------------------------------------------------------------------------------------------ slices
def block_starts(total: int, ranks: int) -> Index:
    """Return where the slices of equal length begin, and the end: ``(ranks + 1,)``."""
    return total * np.arange(ranks + 1, dtype=np.int64) // ranks


def owner_of(numbers: Numbers, starts: Index) -> Index:
    """Return the rank whose slice has each row."""
    return np.searchsorted(starts, numbers, side="right") - 1


def before(comm: Comm, count: int) -> tuple[int, int]:
    """Return how many elements the lower ranks have, and how many all have, when this one has ``count``."""
    counts = comm.allgather(int(count))
    return sum(counts[: comm.rank]), sum(counts)


def fetch(comm: Comm, rows: Rows, starts: Index, numbers: Numbers) -> Rows:
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

    Raises
    ------
    CommError
        On a rank that wants a row which no rank has, or whose slice is shorter than ``starts`` says.
    """
    expected, last = int(starts[comm.rank + 1] - starts[comm.rank]), int(numbers.max(initial=0))
    if len(rows) < expected or last >= max(1, starts[-1]):
        raise CommError(
            f"rank {comm.rank} holds {len(rows)} of {expected} rows of a table, and wants row {last} of {starts[-1]}: "
            "the slices of the ranks are not those of one table"
        )
    found = np.empty((numbers.size, *rows.shape[1:]), dtype=rows.dtype)
    for piece, values in fetch_pieces(comm, rows, starts, numbers, CHUNK):
        found[piece] = values
    return found


def fetch_pieces(
    comm: Comm,
    rows: Rows,
    starts: Index,
    numbers: Numbers,
    size: int,
    *,
    absent: int | None = None,
) -> Iterator[tuple[slice, Rows]]:
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


def place(comm: Comm, numbers: Numbers, rows: Rows, starts: Index) -> Rows:
    """Bring rows that are anywhere into slices.

    Parameters
    ----------
    comm
        The ranks.
    numbers : (n,) integers
        Global number of each of this rank's rows; each number is that of one row of one rank.
    rows : (n, ...)
        The rows.
    starts : (ranks + 1,) int64
        Where the slices begin.

    Returns
    -------
    array
        This rank's slice.
    """
    post = RowExchange(comm, owner_of(numbers, starts))
    where = post.forward(numbers.astype(np.int64, copy=False)) - starts[comm.rank]
    came = post.forward(rows)
    out = np.empty((int(starts[comm.rank + 1] - starts[comm.rank]), *came.shape[1:]), dtype=came.dtype)
    out[where] = came
    return out


# ------------------------------------------------------------------------------------------ messages
class RowExchange:
    """Rows on their way to other ranks, and the answers on their way back.

    Parameters
    ----------
    comm
        The ranks.
    owner : (n,) integers
        The rank that each of this rank's rows goes to.
    """

    def __init__(self, comm: Comm, owner: Numbers) -> None:
        self._comm = comm
        self._order = stable_order(owner, comm.size)
        self._cuts = np.searchsorted(owner[self._order], np.arange(1, comm.size))
        self._received: list[int] = []

    def forward(self, rows: Rows) -> Rows:
        """Send the rows, ``(n, ...)``; return those that came, rank by rank, each rank's in its own order."""
        found = self._comm.exchange(np.split(rows[self._order], self._cuts))
        self._received = [len(part) for part in found]
        return np.concatenate(found)

    def back(self, answers: Rows) -> Rows:
        """Return one answer for each row that came last; get those for the rows that were sent, in their order."""
        found = np.concatenate(self._comm.exchange(np.split(answers, np.cumsum(self._received)[:-1])))
        out = np.empty_like(found)
        out[self._order] = found
        return out


def to_first(comm: Comm, rows: Rows) -> list[Rows]:
    """Return the rows of each rank on rank 0, and empty arrays elsewhere."""
    own = np.ascontiguousarray(rows)
    return comm.exchange([own, *[own[:0]] * (comm.size - 1)])


def from_first(comm: Comm, rows: Sequence[Rows] | None, like: Rows) -> Rows:
    """Return this rank's rows of those that rank 0 gives, one array a rank; ``like`` has rows of their type."""
    return comm.exchange([like[:0]] * comm.size if rows is None or comm.rank else list(rows))[0]
