"""Meshes as NumPy arrays: points, blocks of cells, and named patches of boundary faces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.elements import element

if TYPE_CHECKING:
    from fluxloom.mesh.connectivity import Connectivity

__all__ = ["FloatArray", "IntArray", "MeshData", "MeshSource", "PatchFaces", "Ragged"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


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
        return cls(offsets, np.ascontiguousarray(indices, dtype=np.int32))

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

    def padded(self, fill: int = -1) -> IntArray:
        """Return an ``(n, longest)`` copy filled with ``fill`` after the end of each row."""
        counts = self.counts
        width = int(counts.max(initial=0))
        out = np.full((len(self), width), fill, dtype=np.int32)
        out[np.arange(width) < counts[:, None]] = self.indices
        return out

    def take(self, rows: npt.NDArray[np.integer]) -> Ragged:
        """Return the given rows, in the given order."""
        counts = self.counts[rows]
        result = Ragged.from_counts(counts, np.empty(0, dtype=np.int32))
        shift = np.repeat(self.offsets[rows] - result.offsets[:-1], counts)
        return Ragged(result.offsets, self.indices[np.arange(result.offsets[-1]) + shift])


@dataclass(frozen=True, eq=False)
class PatchFaces:
    """The boundary faces of one patch.

    Attributes
    ----------
    blocks
        Face type (``"line"``, ``"triangle"``, ``"quad"``) to node numbers ``(m, k)`` int32.
    """

    blocks: Mapping[str, IntArray]

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    def nodes(self) -> IntArray:
        """Return the distinct nodes of the patch, ascending, int32."""
        parts = [block.reshape(-1) for block in self.blocks.values()]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int32)

    def padded(self, width: int) -> IntArray:
        """Return the faces, block by block, as ``(n, width)`` padded with -1."""
        out = np.full((len(self), width), -1, dtype=np.int32)
        start = 0
        for block in self.blocks.values():
            out[start : start + len(block), : block.shape[1]] = block
            start += len(block)
        return out


@dataclass(frozen=True, eq=False)
class MeshSource:
    """Where a mesh came from, so that a check can name the line of a broken element.

    Attributes
    ----------
    path
        The file, or a word such as ``"<box2d>"``.
    first_line
        Line of the first element, when element lines follow one another; else 0.
    cell_numbers
        Cell block to the positions of its cells in the file's list; absent when they are consecutive.
    """

    path: str = "<arrays>"
    first_line: int = 0
    cell_numbers: Mapping[str, IntArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class MeshData:
    """An unstructured mesh in two or three dimensions, as NumPy arrays.

    Cells are numbered globally: block after block, in the order of ``cells``.

    Attributes
    ----------
    points : (n_points, dimension) float64
        Coordinates.
    cells
        Element type to node numbers, ``(m, k)`` int32, ordered as in `fluxloom.mesh.elements`.
    patches
        Patch name to its boundary faces.
    source
        Where the mesh came from.

    Raises
    ------
    MeshError
        For arrays of the wrong shape and for unknown element types; call `fluxloom.mesh.check` for the rest.
    """

    points: FloatArray
    cells: Mapping[str, IntArray]
    patches: Mapping[str, PatchFaces] = field(default_factory=dict)
    source: MeshSource = field(default_factory=MeshSource)

    def __post_init__(self) -> None:
        points = np.ascontiguousarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] not in (2, 3):
            raise MeshError(f"points must have shape (n, 2) or (n, 3), got {points.shape}")
        object.__setattr__(self, "points", points)
        cells = {name: _block(name, array, "cells") for name, array in self.cells.items()}
        object.__setattr__(self, "cells", cells)
        patches: dict[str, PatchFaces] = {}
        for patch, faces in self.patches.items():
            blocks = faces.blocks if isinstance(faces, PatchFaces) else faces
            patches[patch] = PatchFaces({k: _block(k, v, f"patch {patch!r}") for k, v in blocks.items()})
        object.__setattr__(self, "patches", patches)

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.points.shape[1]

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def n_cells(self) -> int:
        """Number of cells of all types."""
        return sum(len(block) for block in self.cells.values())

    @property
    def cell_ranges(self) -> dict[str, range]:
        """Global cell numbers of each block."""
        ranges: dict[str, range] = {}
        start = 0
        for name, block in self.cells.items():
            ranges[name] = range(start, start + len(block))
            start += len(block)
        return ranges

    def cell_nodes(self) -> Ragged:
        """Return cell -> nodes over all blocks, in global cell order."""
        blocks = list(self.cells.values())
        if len(blocks) == 1:
            return Ragged.from_table(blocks[0])
        sizes = [np.full(len(block), block.shape[1], dtype=np.int64) for block in blocks]
        if not blocks:
            return Ragged(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
        return Ragged.from_counts(np.concatenate(sizes), np.concatenate([b.reshape(-1) for b in blocks]))

    def connectivity(self) -> Connectivity:
        """Return the derived connectivity (faces, owners, neighbours ...); computed on each call."""
        from fluxloom.mesh.connectivity import connectivity  # cycle: it builds on MeshData

        return connectivity(self)

    def patch(self, name: str) -> PatchFaces:
        """Return one patch.

        Raises
        ------
        MeshError
            When there is no such patch; the message lists those there are.
        """
        if name not in self.patches:
            known = ", ".join(self.patches) or "none"
            hint = did_you_mean(name, self.patches)
            raise MeshError(f"{self.source.path}: no patch {name!r}{hint} (patches: {known})")
        return self.patches[name]

    def locate_cell(self, cell: int) -> str:
        """Return ``"file:line: triangle 7 (element 12 of the file)"``-like words for a global cell number."""
        for name, numbers in self.cell_ranges.items():
            if cell in numbers:
                local = cell - numbers.start
                listed = self.source.cell_numbers.get(name)
                number = int(listed[local]) if listed is not None else cell
                where = self.source.path
                if self.source.first_line:
                    where += f":{self.source.first_line + number}"
                return f"{where}: {name} element {number}"
        raise MeshError(f"{self.source.path}: there is no cell {cell} (cells: {self.n_cells})")

    def with_points(self, points: FloatArray) -> MeshData:
        """Return the same mesh with other coordinates (for instance moved or scaled)."""
        return MeshData(points, self.cells, self.patches, self.source)


def _block(name: str, array: npt.NDArray[np.integer], what: str) -> IntArray:
    """Return one block of elements as a checked C-ordered int32 table."""
    kind = element(name)
    block = np.asarray(array)
    if block.size == 0:
        block = block.reshape(0, kind.n_nodes)
    if block.ndim != 2 or block.shape[1] != kind.n_nodes:
        raise MeshError(f"{what}: a block of {name} must have shape (m, {kind.n_nodes}), got {block.shape}")
    if not np.issubdtype(block.dtype, np.integer) and block.size:
        raise MeshError(f"{what}: node numbers of {name} must be integers, got {block.dtype}")
    return np.ascontiguousarray(block, dtype=np.int32)


def concatenate_blocks(blocks: Sequence[IntArray]) -> IntArray:
    """Return several ``(m, k)`` blocks of the same width as one."""
    return blocks[0] if len(blocks) == 1 else np.concatenate(list(blocks))
