"""Meshes as NumPy arrays: points, blocks of cells, polyhedra, and named patches of boundary faces.

Of polyhedra each has its own list of faces, turning anticlockwise seen from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.data.elements import ELEMENTS, element
from fluxloom.mesh.data.ragged import FloatArray, IntArray, Ragged, narrowed

__all__ = [
    "FloatArray", "IntArray", "MeshData", "MeshSource", "PatchFaces", "Polyhedra", "Ragged", "no_mask", "turned_rows",
    "unknown_patch",
]  # fmt: skip

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Polyhedra:
    """Polyhedra by their faces.

    A face between two cells is listed by both, with the same nodes turning the other way.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Faces of polyhedron ``i`` are ``offsets[i] ... offsets[i + 1] - 1``.
    faces
        Face to nodes, three or more, outward.

    Raises
    ------
    MeshError
        For offsets that do not fit the faces, a polyhedron without faces, and a face with fewer than three nodes.
    """

    offsets: Index
    faces: Ragged

    def __post_init__(self) -> None:
        if self.offsets.ndim != 1 or not self.offsets.size or self.offsets[0] or self.offsets[-1] != len(self.faces):
            raise MeshError(f"polyhedra: the offsets have to ascend from 0 to {len(self.faces)}, the number of faces")
        if len(self) and int(np.diff(self.offsets).min()) < 1:
            raise MeshError(f"polyhedra: polyhedron {int(np.diff(self.offsets).argmin())} has no faces")
        if len(self.faces) and int(self.faces.counts.min()) < 3:
            face = int(self.faces.counts.argmin())
            raise MeshError(f"polyhedra: face {face} has {self.faces[face].size} nodes; a face has 3 or more")

    def __len__(self) -> int:
        return self.offsets.size - 1

    @property
    def owners(self) -> Index:
        """Which polyhedron has each face, ``(faces,)``."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @classmethod
    def joined(cls, parts: Sequence[Polyhedra]) -> Polyhedra:
        """Return several as one, in their order."""
        sizes, faces = [np.diff(part.offsets) for part in parts], [part.faces for part in parts]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        counts = np.concatenate([rows.counts for rows in faces])
        return cls(offsets, Ragged.from_counts(counts, np.concatenate([rows.indices for rows in faces])))

    def take(self, rows: npt.NDArray[np.integer]) -> Polyhedra:
        """Return some polyhedra, in the given order."""
        table = Ragged(self.offsets, np.arange(len(self.faces), dtype=np.int32)).take(rows)
        return Polyhedra(table.offsets, self.faces.take(table.indices))

    def renamed(self, numbers: npt.NDArray[np.integer]) -> Polyhedra:
        """Return them with ``numbers[node]`` in place of each node."""
        return Polyhedra(self.offsets, Ragged(self.faces.offsets, numbers[self.faces.indices].astype(np.int32)))

    def turned(self, chosen: npt.NDArray[np.bool_]) -> Polyhedra:
        """Return them with the faces of those chosen, ``(n,)``, turning the other way."""
        return Polyhedra(self.offsets, turned_rows(self.faces, chosen[self.owners]))

    def nodes(self) -> Ragged:
        """Return polyhedron -> its nodes, ascending."""
        owner, last = np.repeat(self.owners, self.faces.counts), int(self.faces.indices.max(initial=0)) + 1
        keys = np.sort(owner * last + self.faces.indices, kind="stable")  # in the order of their owners already
        once = keys[np.diff(keys, prepend=-1) > 0]
        return Ragged.from_counts(np.bincount(once // last, minlength=len(self)), once % last)

    def sides(self) -> tuple[Index, IntArray, IntArray]:
        """Return the sides of all faces, face by face: which polyhedron, from which node, to which."""
        rows, nodes = self.faces, self.faces.indices
        return np.repeat(self.owners, rows.counts), nodes, nodes[rows.ahead]

    def open(self) -> Index:
        """Return the polyhedra whose faces do not close: a side is not met once in each direction."""
        owner, start, end = self.sides()
        low, high = np.minimum(start, end), np.maximum(start, end)
        if _in_pairs(owner, low, high, start < end):
            return np.empty(0, dtype=np.int64)
        order = np.lexsort((high, low, owner))
        owner, low, high, up = owner[order], low[order], high[order], (start < end)[order]
        edge = np.ones(order.size, dtype=bool)
        edge[1:] = (owner[1:] != owner[:-1]) | (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        number = np.cumsum(edge) - 1
        count, ups = np.bincount(number), np.bincount(number, up)
        return np.unique(owner[edge][(count != 2) | (ups != 1)])


def _in_pairs(owner: Index, low: IntArray, high: IntArray, up: npt.NDArray[np.bool_]) -> bool:
    """Return whether sides come in pairs, one up and one down; False where that cannot be told by one sort."""
    if owner.size % 2:
        return False
    last = np.uint64(int(high.max(initial=0)) + 1)
    mixed = (low.astype(np.uint64) * last + high.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    keys = (owner.astype(np.uint64) << np.uint64(32)) | (mixed >> np.uint64(32))
    order = np.argsort(keys, kind="stable")  # sides are in the order of their owners already
    keys, (one, two) = keys[order], (order[0::2], order[1::2])
    same = (owner[one] == owner[two]) & (low[one] == low[two]) & (high[one] == high[two]) & (up[one] != up[two])
    return bool(same.all() and (keys[1:-1:2] != keys[2::2]).all())


def turned_rows(rows: Ragged, chosen: npt.NDArray[np.bool_]) -> Ragged:
    """Return a table with the entries of those rows chosen in the opposite order."""
    place = np.arange(rows.indices.size)
    back = np.repeat(rows.offsets[:-1] + rows.offsets[1:] - 1, rows.counts) - place
    return Ragged(rows.offsets, rows.indices[np.where(np.repeat(chosen, rows.counts), back, place)])


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
        Element type to node numbers, ``(m, k)`` int32, ordered as in `fluxloom.mesh.data.elements`.
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
        For arrays of the wrong shape and for unknown element types; call `fluxloom.mesh.quality.check` for the rest.
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
