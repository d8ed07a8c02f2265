"""Storage of ragged maps: CSR, ELL, sliced ELL, and the door for others. Logical numbering is always row after row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.spec import RowCode
from fluxloom.core.errors import DatError

__all__ = ["CSR", "ELL", "Offsets", "Placement", "RaggedLayout", "RaggedStore", "SlicedELL"]

Offsets = npt.NDArray[np.int64]

@dataclass(frozen=True, eq=False)
class Placement:
    """Where a layout puts the entries of some rows.

    Attributes
    ----------
    start
        int64: first place of each row, or of each slice when the slices are column-major; what generated code has as
        ``{row}_start``.
    places
        Number of places, padding included.
    position
        int64, ``(entries,)``: the place of each entry, row after row; None when places are in order.
    table
        int64: what the code of a layout (`RowCode`) reads as ``{table}``.
    lanes
        Work items that share a usual row on a GPU, a power of two of at most 32; 0: as a rule chooses.
    """

    start: Offsets
    places: int
    position: Offsets | None = None
    table: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    lanes: int = 0


class RaggedLayout(ABC):
    """How the entries of a ragged map are stored: where they lie, and how generated code finds them.

    A layout is a frozen dataclass: `place` puts the entries of rows into places, and `code`, which has to say the same,
    is C text by which kernels on all devices find them. Loops, reductions and NumPy see entries row after row, whatever
    their layout is. Nothing else has to know a layout: ``ctx.ragged(..., layout=Mine())`` is enough. So that
    `fluxloom.linalg.matrix.layouts.fastest_layouts` tries it too, its package declares an entry point of the group
    ``fluxloom.matrix_formats``.
    """

    @abstractmethod
    def place(self, offsets: Offsets) -> Placement:
        """Return where the entries of some rows go; those of row ``r`` are ``offsets[r] ... offsets[r + 1] - 1``.

        Raises
        ------
        DatError
            If the layout cannot store them.
        """

    def code(self) -> RowCode | None:
        """Return how entries are found; None for the layouts of this module, which code generation knows."""
        return None


@dataclass(frozen=True)
class CSR(RaggedLayout):
    """Rows one after the other, no padding."""

    def place(self, offsets: Offsets) -> Placement:
        """Leave all entries where they are."""
        return Placement(offsets, int(offsets[-1]))


@dataclass(frozen=True)
class ELL(RaggedLayout):
    """Every row padded to the longest one; column-major puts entry ``j`` of all rows side by side."""

    column_major: bool = True

    def place(self, offsets: Offsets) -> Placement:
        """Pad the rows."""
        return _sliced(offsets, max(1, offsets.size - 1), self.column_major)


@dataclass(frozen=True)
class SlicedELL(RaggedLayout):
    """ELL in slices of ``slice`` rows, each padded to its own longest row."""

    slice: int = 8
    column_major: bool = True

    def __post_init__(self) -> None:
        if self.slice < 1:
            raise DatError(f"SlicedELL(slice={self.slice}): a slice has at least one row")

    def place(self, offsets: Offsets) -> Placement:
        """Pad the rows of each slice."""
        return _sliced(offsets, self.slice, self.column_major)


def _sliced(offsets: Offsets, slice_rows: int, column: bool) -> Placement:
    rows = offsets.size - 1
    row, length = np.arange(rows), np.diff(offsets)
    slices, lane = np.divmod(row, slice_rows)
    width = np.maximum.reduceat(length, row[::slice_rows]) if rows else row
    bounds = np.concatenate([[0], np.cumsum(width * slice_rows)])
    begin, step = bounds[slices] + (lane if column else lane * width[slices]), slice_rows if column else 1
    position = np.arange(offsets[-1])
    position *= step
    position += np.repeat(begin - step * offsets[:-1], length)
    return Placement(np.ascontiguousarray(bounds[:-1]) if column else begin, int(bounds[-1]), position)


class RaggedStore:
    """Where the entries of a ragged map are in memory.

    Attributes
    ----------
    start
        First place of each row, or of each slice when the slices are column-major.
    table, lanes
        See `Placement`.
    length
        Entries of each row, int32.
    index
        Target of each place, int32; padding repeats target 0 and is never read by a loop.
    position
        Place of each logical entry, or None when places are in order.
    """

    def __init__(self, offsets: Offsets, indices: npt.NDArray[np.int32], layout: RaggedLayout) -> None:
        self.layout = layout
        self.entries = int(offsets[-1])
        self.rows = offsets.size - 1
        self.length = np.diff(offsets).astype(np.int32)
        placed = layout.place(offsets)
        self.start, self.places, self.lanes = placed.start, placed.places, placed.lanes
        self.table = np.ascontiguousarray(placed.table, dtype=np.int64)
        self.position: npt.NDArray[np.int32] | None = None
        self.index = indices
        if placed.position is None:
            return
        if self.places >= 2**31:
            raise DatError(f"{layout} needs {self.places} places, more than 2**31: use CSR or shorter slices")
        if layout.code() is not None:
            _require_places(placed, layout, self.entries)
        self.position = placed.position.astype(np.int32)
        self.index = np.zeros(self.places, dtype=np.int32)
        self.index[placed.position] = indices

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
    def slice(self) -> int:
        """Rows a slice; 0 for one slice of all rows, 1 where rows lie by themselves."""
        if isinstance(self.layout, ELL):
            return 0
        return self.layout.slice if isinstance(self.layout, SlicedELL) else 1


def _require_places(placed: Placement, layout: RaggedLayout, entries: int) -> None:
    """Raise `DatError` unless each entry has a place of its own."""
    position = placed.position
    assert position is not None
    inside = position.size == entries and bool(((position >= 0) & (position < placed.places)).all())
    if not inside or np.bincount(position, minlength=1).max() > 1:
        raise DatError(f"{layout}: place() has to give each of {entries} entries a place of its own, < {placed.places}")
