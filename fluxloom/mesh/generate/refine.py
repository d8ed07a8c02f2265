"""Uniform refinement: every cell of a mesh divided into cells of half its size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import distinct
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces
from fluxloom.mesh.data.whole import check_range
from fluxloom.mesh.generate.refine_cells import CHILDREN, Division
from fluxloom.mesh.geometry.connectivity import pair_keys, places_of

__all__ = ["refine"]

Index = npt.NDArray[np.int64]

_MOST = 2**31
"""Points or cells that numbers of 32 bits count."""


def refine(mesh: MeshData, times: int = 1) -> MeshData:
    """Divide every cell of a mesh uniformly.

    Edges are cut at their midpoints and faces with four nodes at the mean of them, by both of their cells alike, so a
    conforming mesh stays one. A triangle or quad becomes 4 cells of its type, a tetrahedron, prism or hexahedron 8, a
    pyramid 6 pyramids and 4 tetrahedra. Nothing is moved to a curved surface: new points lie on the chords.

    Parameters
    ----------
    mesh
        Cells of any type and mixture; each face of a patch a face of a cell.
    times
        How often; each time the number of cells grows by 4 in two dimensions, by 8 in three, of pyramids by 10.

    Returns
    -------
    MeshData
        The points of ``mesh``, then midpoints of edges, means of faces and of hexahedra. The children of a cell follow
        one another, in the order of the cells; tetrahedra of pyramids are in the block of tetrahedra, which is added
        when there is none. Patches have their names, and the children of their faces in the same way. For no times,
        ``mesh`` itself.

    Raises
    ------
    MeshError
        For times below zero, more than 2**31 points or cells, cells that are not of the dimension of the mesh, node
        numbers out of range, and faces of patches that are no faces of cells.

    Notes
    -----
    Volumes of cells with plane faces add up to that of their parent. Of the points of one level, those of an edge, face
    or hexahedron are numbered in the order of its lowest corner, edge or of the cells; renumber for more locality.

    References
    ----------
    J. Bey: Tetrahedral grid refinement, Computing 55, 1995, section 2; see `fluxloom.mesh.generate.refine_cells`.
    """
    if times < 0:
        raise MeshError(f"a mesh cannot be refined {times} times; give 0 or more")
    _require_room(mesh, times)
    path = mesh.source.path
    for _ in range(times):
        fine = _refined(mesh)
        mesh = MeshData(fine.points, fine.cells, fine.patches, MeshSource(f"{path} (refined)"))
    return mesh


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Distinct unordered pairs of numbers below ``base``, ascending; a pair is ``smaller * base + larger`` here."""

    keys: Index
    base: int

    @classmethod
    def of(cls, tables: Iterable[npt.NDArray[np.integer]], base: int) -> _Pairs:
        """Return those of some tables ``(..., 2)``."""
        keys = [pair_keys(table, base).reshape(-1) for table in tables]
        return cls(distinct(np.concatenate(keys)) if keys else np.empty(0, dtype=np.int64), base)

    def __len__(self) -> int:
        return self.keys.size

    def numbers(self, pairs: npt.NDArray[np.integer]) -> Index:
        """Return the number of each pair of a table ``(..., 2)``; -1 for one that is not there."""
        return places_of(pair_keys(pairs, self.base), self.keys)

    def middles(self, points: FloatArray) -> FloatArray:
        """Return the points in the middle of those with the numbers of each pair, ``(n, d)``."""
        low, high = np.divmod(self.keys, max(self.base, 1))
        return 0.5 * (points[low] + points[high])


@dataclass(frozen=True, eq=False)
class _NewPoints:
    """The points that a refinement adds behind the ``first`` ones: of edges, of faces with four nodes, of hexahedra.

    A face with four nodes is known by two opposite edges, the one with the lowest number of its four and the other one:
    together they have its nodes, and the middle between their midpoints is the mean of the nodes.
    """

    first: int
    edges: _Pairs
    faces: _Pairs

    @classmethod
    def of(cls, mesh: MeshData) -> _NewPoints:
        """Return those of a mesh."""
        blocks = [(Division.of(name), block) for name, block in mesh.cells.items()]
        edges = _Pairs.of((block[:, way.edges] for way, block in blocks), mesh.n_points)
        faces = (_opposite(way, edges.numbers(block[:, way.edges])) for way, block in blocks if way.loops)
        return cls(mesh.n_points, edges, _Pairs.of(faces, len(edges)))

    @property
    def centres(self) -> int:
        """Number of the first point that is the mean of a hexahedron."""
        return self.first + len(self.edges) + len(self.faces)

    def table(self, way: Division, block: IntArray) -> IntArray:
        """Return the points of cells or faces ``(m, k)`` in the order of `Division`, -1 where there is none."""
        edges = self.edges.numbers(block[:, way.edges])
        columns = [block, _from(self.first, edges)]
        if way.loops:
            faces = self.faces.numbers(_opposite(way, edges))
            columns.append(_from(self.first + len(self.edges), faces))
        if way.has_centre:
            columns.append((self.centres + np.arange(len(block), dtype=np.int64))[:, None])
        return np.concatenate([part.astype(np.int32, copy=False) for part in columns], axis=1)

    def points(self, mesh: MeshData) -> FloatArray:
        """Return the coordinates of all points, the old ones too."""
        middles = self.edges.middles(mesh.points)
        parts = [mesh.points, middles, self.faces.middles(middles)]
        parts += [_means(mesh.points, block) for name, block in mesh.cells.items() if Division.of(name).has_centre]
        return np.concatenate(parts)


def _refined(mesh: MeshData) -> MeshData:
    """Return a mesh refined once."""
    _check_nodes(mesh)
    new = _NewPoints.of(mesh)
    own = sum(len(block) for name, block in mesh.cells.items() if Division.of(name).has_centre)
    if (total := new.centres + own) > _MOST:
        raise MeshError(f"{mesh.source.path}: refined, it has {total:,} points; at most {_MOST:,} can be numbered")
    points = new.points(mesh)
    cells: dict[str, list[IntArray]] = {name: [] for name in mesh.cells}
    for name, block in mesh.cells.items():
        way = Division.of(name)
        for child, nodes in way.children(new.table(way, block), mesh.points):
            if len(nodes) or child == name:
                cells.setdefault(child, []).append(nodes)
    patches = {name: _patch(mesh, new, name, patch) for name, patch in mesh.patches.items()}
    return MeshData(points, {name: _joined(parts) for name, parts in cells.items()}, patches)


def _patch(mesh: MeshData, new: _NewPoints, name: str, patch: PatchFaces) -> PatchFaces:
    """Return the faces of a patch, divided."""
    blocks: dict[str, IntArray] = {}
    for kind, block in patch.blocks.items():
        way = Division.of(kind)
        table = new.table(way, block)
        if (stray := np.flatnonzero((table < 0).any(axis=1))).size:
            nodes = ", ".join(str(node) for node in block[stray[0]])
            raise MeshError(
                f"{mesh.source.path}: patch {name!r}, {kind} {stray[0]} with the nodes {nodes} is not a face of any "
                f"cell ({stray.size} such faces); remove it from the patch"
            )
        for child, faces in way.children(table, mesh.points):
            blocks[child] = faces
    return PatchFaces(blocks)


def _require_room(mesh: MeshData, times: int) -> None:
    """Raise `MeshError` before more cells are made than can be numbered; the points are counted as they come."""
    counts = {name: len(block) for name, block in mesh.cells.items()}
    for done in range(times):
        total: dict[str, int] = {}
        for name, count in counts.items():
            for child, children in CHILDREN.get(name, {}).items():
                total[child] = total.get(child, 0) + count * children
        if (cells := sum(total.values())) > _MOST:
            most = f"at most {_MOST:,} can be numbered, refine {done} times"
            raise MeshError(f"{mesh.source.path}: refined {done + 1} times, it has {cells:,} cells; {most}")
        counts = total


def _check_nodes(mesh: MeshData) -> None:
    """Raise `MeshError` for cells and faces of the wrong dimension and for node numbers out of range."""
    mesh.require_elements("refinement")
    patches = [(f"patch {name!r}", patch.blocks, mesh.dimension - 1) for name, patch in mesh.patches.items()]
    for what, blocks, dimension in (("cells", mesh.cells, mesh.dimension), *patches):
        for name in blocks:
            if Division.of(name).kind.dimension != dimension:
                raise MeshError(f"{mesh.source.path}: {what}: a {name} in a mesh of {mesh.dimension} dimensions")
    check_range(mesh)


def _opposite(way: Division, edges: Index) -> Index:
    """Return the pair of opposite edges that has the lowest, ``(m, loops, 2)``, given the edges of cells."""
    a, b, c, d = (edges[:, way.loop_edges[:, k]] for k in range(4))
    first = np.minimum(a, c) < np.minimum(b, d)
    return np.stack([np.where(first, a, b), np.where(first, c, d)], axis=-1)


def _from(first: int, numbers: Index) -> Index:
    """Return numbers counted from ``first``; -1 stays."""
    return np.where(numbers >= 0, numbers + first, -1)


def _means(points: FloatArray, block: IntArray) -> FloatArray:
    """Return the mean of the nodes of each cell, ``(m, d)``; column by column, which needs no ``(m, k, d)``."""
    total = points[block[:, 0]]
    for column in range(1, block.shape[1]):
        total += points[block[:, column]]
    return total / block.shape[1]


def _joined(parts: list[IntArray]) -> IntArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
