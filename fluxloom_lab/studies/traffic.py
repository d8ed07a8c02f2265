"""What the product of a sparse matrix with a vector moves, counted in four ways.

Source: I. Z. Reguly, "Algorithms for unstructured grids on parallel heterogeneous hardware", PhD thesis,
Pázmány Péter Catholic University, Budapest, 2014, section 4.5 (bandwidth metrics).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import FluxloomError

__all__ = ["INDEX_BYTES", "LINE_BYTES", "Traffic", "block_bounds", "distinct_lines", "minimum_bytes", "product_traffic"]

LINE_BYTES = 128
"""Bytes of a cache line."""

INDEX_BYTES = 4
"""Bytes of an index or offset; the source counts four for both, whatever the program stores."""

_CHUNK = 1 << 22

IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Traffic:
    """Operations and bytes of one product ``y = A x`` in compressed rows; ``v`` is the size of a value.

    Attributes
    ----------
    flops
        Two an entry.
    effective
        What the instructions ask for: every entry reads a value of the matrix, one of ``x`` and an index, every
        row an offset and writes one of ``y``: ``entries (2 v + 4) + rows (v + 4)``.
    minimum
        Every array once: ``entries (v + 4) + rows (v + 4) + columns v``.
    worst
        A whole line for each of those accesses: ``128 (3 entries + 2 rows)``, which is 32 times effective for
        ``v = 4`` as in the source.
    caching
        128 times the distinct lines that each block of rows touches, where a block caches all it touches and
        blocks share nothing.
    """

    flops: int
    effective: int
    minimum: int
    worst: int
    caching: int

    def gbs(self, seconds: float) -> dict[str, float]:
        """Return the bandwidths by name for a product that took so long; a gigabyte is 1e9 bytes."""
        names = ("effective", "minimum", "worst", "caching")
        return {name: getattr(self, name) / seconds / 1e9 if seconds > 0 else 0.0 for name in names}

    def gflops(self, seconds: float) -> float:
        """Return 1e9 operations a second for a product that took so long."""
        return self.flops / seconds / 1e9 if seconds > 0 else 0.0


def product_traffic(
    offsets: IntArray,
    indices: IntArray,
    columns: int | None = None,
    *,
    value_bytes: int = 8,
    block: int | IntArray = 32,
) -> Traffic:
    """Return the traffic of a product.

    Parameters
    ----------
    offsets : (rows + 1,)
        Start of each row.
    indices : (entries,)
        Column of each entry.
    columns
        Columns; None: as many as rows.
    value_bytes
        Size of a value of the matrix and of the vectors.
    block
        Rows that share a cache: a number for blocks of equal size, or the bounds ``0 ... rows`` of each.

    Raises
    ------
    FluxloomError
        If the blocks do not cover the rows.
    """
    rows, entries = offsets.size - 1, int(offsets[-1])
    width = rows if columns is None else columns
    pair = value_bytes + INDEX_BYTES
    return Traffic(
        flops=2 * entries,
        effective=entries * (pair + value_bytes) + rows * pair,
        minimum=minimum_bytes(rows, entries, width, value_bytes),
        worst=LINE_BYTES * (3 * entries + 2 * rows),
        caching=LINE_BYTES * _lines(offsets, indices, block_bounds(block, rows), value_bytes),
    )


def minimum_bytes(rows: int, entries: int, columns: int, value_bytes: int = 8) -> int:
    """Return the bytes of every array of a product once: ``entries (v + 4) + rows (v + 4) + columns v``."""
    pair = value_bytes + INDEX_BYTES
    return entries * pair + rows * pair + columns * value_bytes


def block_bounds(block: int | IntArray, rows: int) -> npt.NDArray[np.int64]:
    """Return the row at which each block starts, and the number of rows at the end.

    Raises
    ------
    FluxloomError
        If a block has no row, or the blocks do not begin at 0 and end at ``rows``.
    """
    if isinstance(block, int | np.integer):
        if block < 1:
            raise FluxloomError(f"blocks of {block} rows; a block has at least one")
        return np.append(np.arange(0, rows, block, dtype=np.int64), rows)
    bounds = np.asarray(block, dtype=np.int64)
    if bounds.size < 1 or bounds[0] != 0 or bounds[-1] != rows or (np.diff(bounds) <= 0).any():
        raise FluxloomError(f"bounds of blocks must rise from 0 to the number of rows, {rows}")
    return bounds


def distinct_lines(
    offsets: IntArray, indices: IntArray, bounds: npt.NDArray[np.int64], per_line: int
) -> npt.NDArray[np.int64]:
    """Return how many distinct lines of ``x`` each block of rows touches, with ``per_line`` values a line.

    Works on some millions of entries at a time, so that it needs little memory beside the matrix.
    """
    first = np.asarray(offsets)[bounds].astype(np.int64)
    found = np.zeros(bounds.size - 1, dtype=np.int64)
    for low, high in _chunks(first):
        lines = indices[first[low] : first[high]] // per_line
        width = int(lines.max(initial=0)) + 1
        counts = np.diff(first[low : high + 1])
        small = np.int32 if (high - low) * width < 2**31 else np.int64
        keys = np.repeat(np.arange(high - low, dtype=small) * small(width), counts)
        keys += lines.astype(small, copy=False)
        keys.sort()
        new = np.ones(keys.size, dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        found[low:high] = np.bincount(keys[new] // width, minlength=high - low)
    return found


def _chunks(first: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of blocks with a few million entries each, or one block that has more."""
    low, last = 0, first.size - 1
    while low < last:
        high = int(np.searchsorted(first, first[low] + _CHUNK, side="right")) - 1
        high = min(last, max(low + 1, high))
        yield low, high
        low = high


def _lines(offsets: IntArray, indices: IntArray, bounds: npt.NDArray[np.int64], value_bytes: int) -> int:
    """Return the lines that all blocks touch in the five arrays of the product, each aligned to a line."""
    first = np.asarray(offsets)[bounds].astype(np.int64)
    streams = (
        (first[:-1], first[1:], value_bytes),  # values of the matrix
        (first[:-1], first[1:], INDEX_BYTES),  # columns
        (bounds[:-1], bounds[1:] + 1, INDEX_BYTES),  # offsets: one more than rows
        (bounds[:-1], bounds[1:], value_bytes),  # y
    )
    total = sum(_spanned(low * size, high * size) for low, high, size in streams)
    return total + int(distinct_lines(offsets, indices, bounds, max(1, LINE_BYTES // value_bytes)).sum())


def _spanned(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]) -> int:
    """Return the lines that ranges of bytes touch, each range counted by itself."""
    touched = (high - 1) // LINE_BYTES - low // LINE_BYTES + 1
    return int(touched[high > low].sum())
