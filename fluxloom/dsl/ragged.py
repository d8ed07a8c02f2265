"""Storage of ragged maps: CSR, ELL, sliced ELL, row-grouped CSR. Logical numbering is always row after row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.device.base import Device

__all__ = ["CSR", "ELL", "RaggedLayout", "RaggedStore", "RowGroupedCSR", "SlicedELL", "slices_for"]

_ENTRY_BYTES = 12
"""Bytes of an entry that the automatic chunk assumes: a double and its column."""

_USUAL = 2.0
"""Rows longer than so many times the mean of their group have more chunks, not longer ones."""

_MOST_LANES = 32


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


@dataclass(frozen=True)
class RowGroupedCSR:
    """Rows cut into chunks, the chunks of a group of rows interleaved: one work item a chunk.

    The chunks of ``group`` neighbouring rows lie side by side: the first entry of each, then the second of each and
    so on. Every row is padded to whole chunks of its group; what a row adds up to is the sum of its chunks. Entry
    ``j`` of row ``r`` in a group of ``N`` chunks of ``C`` entries is at ``start(r) + j // C + (j % C) N``. A chunk of
    one entry makes it `CSR`, one as long as the longest row `SlicedELL` by columns.

    Parameters
    ----------
    group
        Rows a group.
    chunk
        Entries a chunk; 0: chosen for each group, such that its usual rows (those up to twice the mean) have as many
        chunks as work items share a row of the map by `fluxloom.perf.ragged.measured_rule`, and longer rows more.

    Notes
    -----
    Source: T. Oberhuber, A. Suzuki, J. Vacata, "New row-grouped CSR format for storing the sparse matrices on GPU
    with implementation in CUDA", Acta Technica 56 (2011), with adaptive chunks by M. Heller, T. Oberhuber (2012).
    """

    group: int = 32
    chunk: int = 0

    def __post_init__(self) -> None:
        if self.group < 1 or self.chunk < 0:
            raise DatError(f"{self}: a group has at least one row, a chunk at least one entry (0: chosen)")


RaggedLayout = CSR | ELL | SlicedELL | RowGroupedCSR


def slices_for(device: Device) -> SlicedELL:
    """Return slices of as many rows as a device handles side by side: the items of a warp, the lanes of a pack."""
    return SlicedELL(32 if device.items else 8)


class RaggedStore:
    """Where the entries of a ragged map are in memory.

    Attributes
    ----------
    start
        First place of each row, or of each slice when the slices are column-major.
    chunk
        Of a row-grouped store, three numbers a group: ``ceil(2**32 / C)``, ``C`` and ``N``, where ``C`` is the entries
        of a chunk and ``N`` the chunks of the group, int64; else empty.
    chunks
        Chunks of a usual row, a power of two of at most 32; 0 without chunks.
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
        self.chunk, self.chunks = np.zeros((0, 3), dtype=np.int64), 0
        if isinstance(layout, CSR):
            self.start, self.places, self.position, self.index = offsets, self.entries, None, indices
            return
        if isinstance(layout, RowGroupedCSR):
            places = self._chunked(offsets, layout)
        else:
            slice_rows = layout.slice if isinstance(layout, SlicedELL) else max(1, self.rows)
            places = self._positions(offsets, slice_rows, layout.column_major)
        if self.places >= 2**31:
            raise DatError(f"{layout} needs {self.places} places, more than 2**31: use CSR or shorter slices")
        self.position = places.astype(np.int32)
        self.index = np.zeros(self.places, dtype=np.int32)
        self.index[places] = indices

    def _positions(self, offsets: npt.NDArray[np.int64], slice_rows: int, column: bool) -> npt.NDArray[np.int64]:
        row = np.arange(self.rows)
        slices, lane = np.divmod(row, slice_rows)
        width = np.maximum.reduceat(self.length, row[::slice_rows]).astype(np.int64) if self.rows else row
        bounds = np.concatenate([[0], np.cumsum(width * slice_rows)])
        self.places = int(bounds[-1])
        begin, step = bounds[slices] + (lane if column else lane * width[slices]), slice_rows if column else 1
        self.start = np.ascontiguousarray(bounds[:-1]) if column else begin
        places = np.arange(self.entries)
        places *= step
        places += np.repeat(begin - step * offsets[:-1], self.length)
        return places

    def _chunked(self, offsets: npt.NDArray[np.int64], layout: RowGroupedCSR) -> npt.NDArray[np.int64]:
        """Return the place of each entry of rows in chunks."""
        group = np.arange(self.rows) // layout.group
        size = self._chunk_sizes(group, layout)
        per_row = -(-self.length.astype(np.int64) // size[group])
        number = np.bincount(group, per_row, size.size).astype(np.int64)
        if self.rows and int((self.length * size[group]).max()) >= 2**32:
            raise DatError(f"{layout}: chunks of {size.max()} entries, a row of {self.length.max()}: use short chunks")
        self.chunk = np.stack([-(-(2**32) // size), size, number], axis=1)
        if per_row.any():
            usual = float(np.log2(per_row[per_row > 0].mean()))
            self.chunks = min(_MOST_LANES, 1 << max(0, round(usual)))
        bounds = np.concatenate([[0], np.cumsum(number * size)])
        self.places = int(bounds[-1])
        before = np.concatenate([[0], np.cumsum(per_row)])
        first = before[np.arange(size.size) * layout.group]  # chunks before the group
        self.start = bounds[group] + before[:-1] - first[group]
        rows = np.repeat(np.arange(self.rows), self.length)
        j = np.arange(self.entries) - offsets[:-1][rows]
        chunk, deep = np.divmod(j, size[group[rows]])
        return self.start[rows] + chunk + deep * number[group[rows]]

    def _chunk_sizes(self, group: npt.NDArray[np.int64], layout: RowGroupedCSR) -> npt.NDArray[np.int64]:
        """Return the entries of a chunk of each group."""
        groups = -(-self.rows // layout.group) if self.rows else 0
        if layout.chunk:
            return np.full(groups, layout.chunk, dtype=np.int64)
        from fluxloom.perf.ragged import measured_rule

        share = measured_rule(self.rows, self.entries, _ENTRY_BYTES).lanes
        filled = np.maximum(1, np.bincount(group[self.length > 0], minlength=groups))
        mean = np.bincount(group, self.length, groups) / filled
        usual = np.where(self.length <= _USUAL * mean[group], self.length, 0).astype(np.int64)
        longest = np.zeros(groups, dtype=np.int64)
        np.maximum.at(longest, group, usual)
        return np.maximum(1, -(-longest // share))

    @cached_property
    def start32(self) -> npt.NDArray[np.int32]:
        """The places where rows or slices start, in 32 bits."""
        return self.start.astype(np.int32)

    @cached_property
    def short(self) -> bool:
        """Whether a byte holds the length of every row: of sparse matrices of low order 5 % of what a product reads."""
        return int(self.length.max(initial=0)) < 2**8

    @cached_property
    def length8(self) -> npt.NDArray[np.uint8]:
        """The entries of each row in 8 bits, of a store with ``short`` rows."""
        return self.length.astype(np.uint8)

    @property
    def column_major(self) -> bool:
        """Whether neighbouring places belong to neighbouring rows."""
        return isinstance(self.layout, ELL | SlicedELL) and self.layout.column_major

    @property
    def group(self) -> int:
        """Rows a group whose chunks are interleaved; 0: rows are not cut into chunks."""
        return self.layout.group if isinstance(self.layout, RowGroupedCSR) else 0

    @property
    def slice(self) -> int:
        """Rows a slice; 0 for one slice of all rows, 1 for CSR and for rows in chunks."""
        if isinstance(self.layout, CSR | RowGroupedCSR):
            return 1
        return self.layout.slice if isinstance(self.layout, SlicedELL) else 0
