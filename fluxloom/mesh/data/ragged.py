"""Tables whose rows differ in length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError

__all__ = ["FloatArray", "IntArray", "Ragged", "narrowed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


def narrowed(numbers: npt.NDArray[Any]) -> IntArray:
    """Return numbers of nodes with 32 bits; those beyond become the last one, which no mesh has.

    A plain conversion takes 2^32 + 5 for 5.
    """
    ends = np.iinfo(np.int32)
    if numbers.dtype == np.int32:
        return numbers
    if np.can_cast(numbers.dtype, np.int32) or not numbers.size:
        return numbers.astype(np.int32)
    low = numbers if numbers.dtype.kind == "u" else np.maximum(numbers, ends.min)
    return np.minimum(low, ends.max).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Ragged:
    """A table whose rows differ in length, in compressed sparse row form.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Row ``i`` is ``indices[offsets[i]:offsets[i + 1]]``.
    indices : (offsets[n],) int32
        The entries of all rows.
    """

    offsets: npt.NDArray[np.int64]
    indices: IntArray

    @classmethod
    def from_table(cls, table: npt.NDArray[np.integer]) -> Ragged:
        """Wrap a table of shape ``(n, k)`` (no copy of an int32 C-ordered table)."""
        n, k = table.shape
        flat = np.ascontiguousarray(table, dtype=np.int32).reshape(-1)
        return cls(np.arange(n + 1, dtype=np.int64) * k, flat)

    @classmethod
    def from_padded(cls, table: IntArray) -> Ragged:
        """Convert a table of shape ``(n, k)`` padded with -1 at the end of its rows."""
        valid = table >= 0
        if valid.all():
            return cls.from_table(table)
        counts = valid.sum(axis=1)
        return cls.from_counts(counts, table[valid])

    @classmethod
    def from_counts(cls, counts: npt.NDArray[np.integer], indices: npt.NDArray[np.integer]) -> Ragged:
        """Build from the row lengths and the concatenated rows."""
        offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        return cls(offsets, np.ascontiguousarray(narrowed(indices)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> IntArray:
        if row < 0:
            row += len(self)
        return self.indices[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[IntArray]:
        return (self[row] for row in range(len(self)))

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Row lengths, shape ``(n,)``."""
        return np.diff(self.offsets)

    @property
    def arity(self) -> int | None:
        """The common row length, or None when rows differ (or there are none)."""
        if len(self) == 0:
            return None
        width = int(self.offsets[1] - self.offsets[0])
        regular = self.offsets[-1] == width * len(self) and bool((np.diff(self.offsets) == width).all())
        return width if regular else None

    @property
    def table(self) -> IntArray:
        """The rows as a plain ``(n, arity)`` view.

        Raises
        ------
        MeshError
            When rows differ in length; use ``offsets`` and ``indices`` instead.
        """
        width = self.arity
        if width is None:
            if len(self) == 0:
                return self.indices.reshape(0, 0)
            raise MeshError("these rows differ in length: use .offsets and .indices, or .padded()")
        return self.indices.reshape(-1, width)

    def padded(self, fill: int = -1, width: int = 0) -> IntArray:
        """Return a copy filled with ``fill`` after the end of each row, ``(n, longest)`` or at least ``width`` wide."""
        counts = self.counts
        width = max(width, int(counts.max(initial=0)))
        out = np.full((len(self), width), fill, dtype=np.int32)
        out[np.arange(width) < counts[:, None]] = self.indices
        return out

    def head(self, count: int) -> Ragged:
        """Return the first rows."""
        return Ragged(self.offsets[: count + 1], self.indices[: self.offsets[count]])

    def take(self, rows: npt.NDArray[np.integer]) -> Ragged:
        """Return the given rows, in the given order."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        counts = self.counts[rows]
        result = Ragged.from_counts(counts, np.empty(0, dtype=np.int32))
        shift = np.repeat(self.offsets[rows] - result.offsets[:-1], counts)
        return Ragged(result.offsets, self.indices[np.arange(result.offsets[-1]) + shift])

    def by_width(self, most: int | None = None) -> Iterator[tuple[npt.NDArray[np.intp], IntArray]]:
        """Yield rows of one length and their entries ``(rows, length)``, the shortest first, ``most`` at a time."""
        counts = self.counts
        for width in np.unique(counts).tolist():
            rows = np.flatnonzero(counts == width)
            step = most or rows.size
            for start in range(0, rows.size, step):
                some = rows[start : start + step]
                yield some, self.indices[self.offsets[some][:, None] + np.arange(width)]

    @property
    def ahead(self) -> npt.NDArray[np.int64]:
        """The place of the entry behind each one in its row, behind the last one the first: the way round faces."""
        places = np.arange(1, self.indices.size + 1)
        places[self.offsets[1:] - 1] = self.offsets[:-1]
        return places
