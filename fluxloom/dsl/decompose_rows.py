"""Rows of tables of which every rank holds a slice: asking for them by number, in few passes over large arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm

__all__ = ["CHUNK", "Array", "Numbers", "compress", "distinct", "fetch", "fetch_pieces", "lay_out", "spans", "take"]

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
