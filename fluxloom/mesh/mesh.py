"""Meshes as NumPy arrays: points, blocks of cells, polyhedra, and named patches of boundary faces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.elements import ELEMENTS, element
from fluxloom.mesh.polyhedra import Polyhedra
from fluxloom.mesh.ragged import FloatArray, IntArray, Ragged, narrowed

__all__ = ["FloatArray", "IntArray", "MeshData", "MeshSource", "PatchFaces", "Ragged", "no_mask", "unknown_patch"]


@dataclass(frozen=True, eq=False)
class PatchFaces:
    """The boundary faces of one patch.

    Attributes
    ----------
    blocks
        Face type (``"line"``, ``"triangle"``, ``"quad"``, ``"polygon5"`` ...) to node numbers ``(m, k)`` int32.
    """

    blocks: Mapping[str, IntArray]

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    @property
    def width(self) -> int:
        """The most nodes of a face."""
        return max((block.shape[1] for block in self.blocks.values()), default=0)

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
    point_numbers
        What messages call the points; None: by their own numbers.
    """

    path: str = "<arrays>"
    first_line: int = 0
    cell_numbers: Mapping[str, npt.NDArray[np.integer]] = field(default_factory=dict)
    point_numbers: npt.NDArray[np.integer] | None = None

    def name_of(self, point: int) -> int:
        """Return what messages call a point."""
        return point if self.point_numbers is None else int(self.point_numbers[point])


@dataclass(frozen=True, eq=False)
class MeshData:
    """An unstructured mesh in two or three dimensions, as NumPy arrays.

    Cells are numbered globally: block after block, in the order of ``cells``, then the polyhedra.

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
    polyhedra
        Cells of three dimensions that are none of the elements. (Polygons of a plane mesh are elements of the types
        ``"polygon5"``, ``"polygon6"`` and so on.)

    Raises
    ------
    MeshError
        For arrays of the wrong shape and for unknown element types; call `fluxloom.mesh.check` for the rest.
    """

    points: FloatArray
    cells: Mapping[str, IntArray]
    patches: Mapping[str, PatchFaces] = field(default_factory=dict)
    source: MeshSource = field(default_factory=MeshSource)
    polyhedra: Polyhedra | None = None

    def __post_init__(self) -> None:
        if self.polyhedra is not None and not len(self.polyhedra):
            object.__setattr__(self, "polyhedra", None)
        no_mask(self.points, "points")
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
        return self.n_elements + (0 if self.polyhedra is None else len(self.polyhedra))

    @property
    def n_elements(self) -> int:
        """Number of cells in blocks: all but polyhedra, whose numbers begin here."""
        return sum(len(block) for block in self.cells.values())

    @property
    def cell_counts(self) -> dict[str, int]:
        """Number of cells of each type, ``"polyhedron"`` the last one."""
        found = {name: len(block) for name, block in self.cells.items()}
        return found if self.polyhedra is None else found | {"polyhedron": len(self.polyhedra)}

    @property
    def cell_ranges(self) -> dict[str, range]:
        """Global cell numbers of each block; those of polyhedra follow."""
        ranges: dict[str, range] = {}
        start = 0
        for name, block in self.cells.items():
            ranges[name] = range(start, start + len(block))
            start += len(block)
        return ranges

    def used_points(self) -> npt.NDArray[np.bool_]:
        """Return which points some cell has, ``(n_points,)``."""
        used = np.zeros(self.n_points, dtype=bool)
        for block in self.cells.values():
            used[block] = True
        if self.polyhedra is not None:
            used[self.polyhedra.faces.indices] = True
        return used

    def cell_nodes(self) -> Ragged:
        """Return cell -> nodes, in global cell order; of polyhedra ascending."""
        blocks, more = list(self.cells.values()), self.polyhedra
        if len(blocks) == 1 and more is None:
            return Ragged.from_table(blocks[0])
        sizes = [np.full(len(block), block.shape[1], dtype=np.int64) for block in blocks]
        flat = [block.reshape(-1) for block in blocks]
        if more is not None:
            nodes = more.nodes()
            sizes, flat = [*sizes, nodes.counts], [*flat, nodes.indices]
        if not sizes:
            return Ragged(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
        return Ragged.from_counts(np.concatenate(sizes), np.concatenate(flat))

    def patch(self, name: str) -> PatchFaces:
        """Return one patch.

        Raises
        ------
        MeshError
            When there is no such patch; the message lists those there are.
        """
        if name not in self.patches:
            raise unknown_patch(self.source.path, name, self.patches)
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
        if self.n_elements <= cell < self.n_cells:
            listed = self.source.cell_numbers.get("polyhedron")
            number = cell if listed is None else int(listed[cell - self.n_elements])
            return f"{self.source.path}: polyhedron element {number}"
        raise MeshError(f"{self.source.path}: there is no cell {cell} (cells: {self.n_cells})")

    def with_points(self, points: FloatArray) -> MeshData:
        """Return the same mesh with other coordinates (for instance moved or scaled)."""
        return replace(self, points=points)

    def require_names(self, what: str, good: Callable[[str], bool]) -> None:
        """Raise `MeshError` for the name of a patch that a file cannot keep.

        Parameters
        ----------
        what
            The kind of file.
        good
            Whether a name comes back as it is.
        """
        for name in self.patches:
            if not good(name):
                raise MeshError(f"{self.source.path}: the patch {name!r} cannot be called so in {what}; rename it")

    def require_elements(self, what: str) -> None:
        """Raise `MeshError` when there are polyhedra, or polygons with more than four nodes.

        Parameters
        ----------
        what
            What cannot be done with them.
        """
        kinds = [*self.cells, *(kind for faces in self.patches.values() for kind in faces.blocks)]
        found = next((kind for kind in kinds if kind not in ELEMENTS), "" if self.polyhedra is None else "polyhedron")
        if found:
            known = "triangles, quads, tetrahedra, pyramids, prisms and hexahedra"
            raise MeshError(f"{self.source.path}: {what} is there for {known} alone, and the mesh has a {found}")


def unknown_patch(path: str, name: str, known: Collection[str], what: str = "no patch {}") -> MeshError:
    """Return the error for the name of a patch that is not among those known; ``what`` says what is wrong with it."""
    hint, names = did_you_mean(name, known), ", ".join(known) or "none"
    return MeshError(f"{path}: {what.format(repr(name))}{hint} (patches: {names})")


def no_mask(values: npt.ArrayLike, what: str) -> None:
    """Refuse arrays of `numpy.ma` with masked values: NumPy would take what lies below the mask."""
    if isinstance(values, np.ma.MaskedArray) and (count := int(np.ma.count_masked(values))):
        raise MeshError(f"{what}: {count} values are masked; fill them, values.filled(...)")


def _block(name: str, array: npt.NDArray[np.integer], what: str) -> IntArray:
    """Return one block of elements as a checked C-ordered int32 table."""
    kind = element(name)
    no_mask(array, f"{what}: {name}")
    block = np.asarray(array)
    if block.size == 0:
        block = block.reshape(0, kind.n_nodes)
    if block.ndim != 2 or block.shape[1] != kind.n_nodes:
        raise MeshError(f"{what}: a block of {name} must have shape (m, {kind.n_nodes}), got {block.shape}")
    if not np.issubdtype(block.dtype, np.integer) and block.size:
        raise MeshError(f"{what}: node numbers of {name} must be integers, got {block.dtype}")
    return np.ascontiguousarray(narrowed(block))
