"""Storage of ragged maps: CSR, ELL, sliced ELL. Logical numbering is always row after row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError

__all__ = ["CSR", "ELL", "RaggedLayout", "RaggedStore", "SlicedELL"]


@dataclass(frozen=True)
class CSR:
    """Rows one after the other, no padding."""


@dataclass(frozen=True)
class ELL:
    """Every row padded to the longest one; column-major puts entry ``j`` of all rows side by side."""

    column_major: bool = True


@dataclass(frozen=True)
class SlicedELL:
    """ELL in slices of ``slice`` rows, each padded to its own longest row."""

    slice: int = 8
    column_major: bool = True

    def __post_init__(self) -> None:
        if self.slice < 1:
            raise DatError(f"SlicedELL(slice={self.slice}): a slice has at least one row")


RaggedLayout = CSR | ELL | SlicedELL


class RaggedStore:
    """Where the entries of a ragged map are in memory.

    Attributes
    ----------
    start
        First place of each row, or of each slice when the slices are column-major.
    length
        Entries of each row, int32.
    index
        Target of each place, int32; padding repeats target 0 and is never read by a loop.
    position
        Place of each logical entry, or None when places are in order.
    """

    def __init__(self, offsets: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], layout: RaggedLayout) -> None:
        self.layout = layout
        self.entries = int(offsets[-1])
        self.rows = offsets.size - 1
        self.length = np.diff(offsets).astype(np.int32)
        self.position: npt.NDArray[np.int32] | None
        if isinstance(layout, CSR):
            self.start, self.places, self.position, self.index = offsets, self.entries, None, indices
            return
        slice_rows = layout.slice if isinstance(layout, SlicedELL) else max(1, self.rows)
        places = self._positions(offsets, slice_rows, layout.column_major)
        if self.places >= 2**31:
            raise DatError(f"{layout} needs {self.places} places, more than 2**31: use CSR or shorter slices")
        self.position = places.astype(np.int32)
        self.index = np.zeros(self.places, dtype=np.int32)
        self.index[places] = indices

    def _positions(self, offsets: npt.NDArray[np.int64], slice_rows: int, column: bool) -> npt.NDArray[np.int64]:
        n_slices = -(-self.rows // slice_rows) if self.rows else 0
        width = np.zeros(n_slices, dtype=np.int64)
        row = np.arange(self.rows)
        np.maximum.at(width, row // slice_rows, self.length)
        bounds = np.concatenate([[0], np.cumsum(width * slice_rows)])
        self.places = int(bounds[-1])
        rows = np.repeat(row, self.length)
        j = np.arange(self.entries) - offsets[:-1][rows]
        first, lane = bounds[rows // slice_rows], rows % slice_rows
        if column:
            self.start = np.ascontiguousarray(bounds[:-1])
            return first + j * slice_rows + lane
        self.start = bounds[row // slice_rows] + (row % slice_rows) * width[row // slice_rows]
        return first + lane * width[rows // slice_rows] + j

    @cached_property
    def start32(self) -> npt.NDArray[np.int32]:
        """The places where rows or slices start, in 32 bits."""
        return self.start.astype(np.int32)

    @property
    def column_major(self) -> bool:
        """Whether neighbouring places belong to neighbouring rows."""
        return not isinstance(self.layout, CSR) and self.layout.column_major

    @property
    def slice(self) -> int:
        """Rows a slice; 0 for one slice of all rows, 1 for CSR."""
        if isinstance(self.layout, CSR):
            return 1
        return self.layout.slice if isinstance(self.layout, SlicedELL) else 0
