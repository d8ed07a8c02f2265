"""Rows of tables that are spread over the ranks: which rank has a row, sending rows there, asking for rows.

A table of ``total`` rows is held in *slices*: consecutive rows, in the order of the ranks. Rows are told apart by
their global number. All functions with a communicator are collective.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import FluxloomError

__all__ = ["Post", "before", "block_starts", "compress", "distinct", "fetch", "owner_of", "place", "together"]

Result = TypeVar("Result")
Numbers = npt.NDArray[np.integer[Any]]
Rows = npt.NDArray[Any]


def block_starts(total: int, ranks: int) -> npt.NDArray[np.int64]:
    """Return where the slices of equal length begin, and the end: ``(ranks + 1,)``."""
    return total * np.arange(ranks + 1, dtype=np.int64) // ranks


def owner_of(numbers: Numbers, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the rank whose slice has each row."""
    return np.searchsorted(starts, numbers, side="right") - 1


def before(comm: Comm, count: int) -> tuple[int, int]:
    """Return how many elements the lower ranks have, and how many all have, when this one has ``count``."""
    counts = comm.allgather(int(count))
    return sum(counts[: comm.rank]), sum(counts)


def compress(numbers: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the distinct numbers, ascending, and the position of each number among them (of the same shape)."""
    flat = numbers.reshape(-1)
    if not flat.size:
        return np.empty(0, dtype=np.int64), np.empty(numbers.shape, dtype=np.int32)
    low, span = int(flat.min()), int(flat.max()) - int(flat.min()) + 1
    if span > 8 * flat.size:
        distinct, position = np.unique(flat, return_inverse=True)
        return distinct.astype(np.int64), position.astype(np.int32).reshape(numbers.shape)
    met = np.zeros(span, dtype=bool)
    met[flat - low] = True
    position = np.cumsum(met, dtype=np.int32)
    position -= 1
    return np.flatnonzero(met) + low, position[flat - low].reshape(numbers.shape)


def distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct numbers, ascending; sorting is many times faster than the hashing of ``numpy.unique``."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


class Post:
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
        self._order = np.argsort(owner, kind="stable")
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


def fetch(comm: Comm, rows: Rows, starts: npt.NDArray[np.int64], numbers: Numbers) -> Rows:
    """Return rows by their global numbers.

    Parameters
    ----------
    comm
        The ranks.
    rows
        This rank's slice of the table.
    starts : (ranks + 1,) int64
        Where the slices begin.
    numbers : (n,) integers
        The rows this rank wants.
    """
    post = Post(comm, owner_of(numbers, starts))
    asked = post.forward(numbers.astype(np.int64, copy=False))
    return post.back(rows[asked - starts[comm.rank]])


def place(comm: Comm, numbers: Numbers, rows: Rows, starts: npt.NDArray[np.int64]) -> Rows:
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
    post = Post(comm, owner_of(numbers, starts))
    where = post.forward(numbers.astype(np.int64, copy=False)) - starts[comm.rank]
    came = post.forward(rows)
    out = np.empty((int(starts[comm.rank + 1] - starts[comm.rank]), *came.shape[1:]), dtype=came.dtype)
    out[where] = came
    return out


def together(comm: Comm, action: Callable[[], Result]) -> Result:
    """Do something that may fail on this rank alone; an error of one rank is raised on all.

    ``action`` must not be collective. Where several ranks fail, the error is that of the lowest.

    Raises
    ------
    FluxloomError
        What ``action`` raised on some rank, with the same type and message.
    """
    result, failed = None, None
    try:
        result = action()
    except FluxloomError as error:
        failed = error
    reasons = comm.allgather(None if failed is None else (type(failed), str(failed)))
    first = next((reason for reason in reasons if reason is not None), None)
    if first is not None:
        kind, text = first
        raise kind(text) from failed
    return result  # type: ignore[return-value]
