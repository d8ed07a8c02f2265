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
from fluxloom.core.errors import FluxloomError, MeshError
from fluxloom.dsl.declare.directory import compress, distinct, stable_order
from fluxloom.dsl.declare.directory import fetch as fetch_rows

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


def fetch(comm: Comm, rows: Rows, starts: npt.NDArray[np.int64], numbers: Numbers) -> Rows:
    """Return rows by their global numbers, see `fluxloom.dsl.declare.directory.fetch`.

    Raises
    ------
    MeshError
        On a rank that wants a row which no rank has, or whose slice is shorter than ``starts`` says.
    """
    expected, last = int(starts[comm.rank + 1] - starts[comm.rank]), int(numbers.max(initial=0))
    if len(rows) < expected or last >= max(1, starts[-1]):
        raise MeshError(
            f"rank {comm.rank} holds {len(rows)} of {expected} rows of a table, and wants row {last} of {starts[-1]}: "
            "the slices of the ranks are not those of one mesh"
        )
    return fetch_rows(comm, rows, starts, numbers)


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
