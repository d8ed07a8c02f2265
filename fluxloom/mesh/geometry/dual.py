"""The dual of a mesh: a cell about each of its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import face_name
from fluxloom.mesh.data.mesh import IntArray, MeshData, MeshSource, PatchFaces, Polyhedra, turned_rows
from fluxloom.mesh.data.ragged import Ragged
from fluxloom.mesh.geometry.connectivity import Connectivity, HalfFaces, connectivity, half_faces, pair_keys
from fluxloom.mesh.geometry.metrics import geometry

__all__ = ["dual"]

Index = npt.NDArray[np.int64]


def dual(mesh: MeshData) -> MeshData:
    """Return the dual of a mesh: polygons or polyhedra about its points.

    Corners of the new cells are the centroids of the old ones. In three dimensions an edge becomes the face whose
    corners are the centroids of the cells around it; in two, an edge becomes that between the centroids of its cells.
    At the boundary the centres of faces and of edges and the points themselves are corners too, so that the boundary
    and its patches stay where they are. Of tetrahedra, polyhedra with some fourteen faces; of a Delaunay mesh they are
    near to Voronoi's.

    Parameters
    ----------
    mesh
        Any mesh in which the cells around each point hang together by their faces.

    Returns
    -------
    MeshData
        As many cells as ``mesh`` has points that cells use; in three dimensions in their order.

    Raises
    ------
    MeshError
        When the cells around an edge or a point do not hang together by their faces, or for polyhedra that are open.

    References
    ----------
    T. J. Barth: Aspects of unstructured grids and finite-volume solvers for the Euler and Navier-Stokes equations, VKI
    lecture series 1994-05 (centroid duals, beside those of medians and of Dirichlet).
    """
    half = half_faces(mesh)
    links = connectivity(mesh, half)
    return _plane(mesh, half, links) if mesh.dimension == 2 else _solid(mesh, half, links)


@dataclass(frozen=True, eq=False)
class _Fans:
    """Cells around edges or points: each of them is entered through a face and left through another one.

    Attributes
    ----------
    about
        What each record is about, ascending from 0, none left out.
    cell, entry, exit
        Of each record: the cell, and the half faces through which the walk comes in and goes out, seen from it.
    """

    about: Index
    cell: Index
    entry: Index
    exit: Index

    def starts(self, twins: Index) -> Index:
        """Return the record where the walk about each begins: at the boundary, where there is one."""
        order = np.lexsort((twins[self.entry] >= 0, self.about))
        first = np.ones(order.size, dtype=bool)
        first[1:] = self.about[order[1:]] != self.about[order[:-1]]
        return order[first]

    def following(self, twins: Index) -> Index:
        """Return the record that follows each one, -1 at the boundary."""
        count = int(self.about[-1]) + 1
        keys = self.entry * count + self.about
        order = np.argsort(keys)
        behind = twins[self.exit]
        wanted = behind * count + self.about
        spot = np.minimum(np.searchsorted(keys, wanted, sorter=order), order.size - 1)
        return np.where(behind >= 0, order[spot], -1)

    def walks(self, path: str, twins: Index) -> tuple[Ragged, Index, Index]:
        """Return the cells around each in their order, and the faces of the boundary where it begins and ends, or -1.

        Raises
        ------
        MeshError
            If a walk does not come through all cells.
        """
        begin, after = self.starts(twins), self.following(twins)
        current, rows = begin.copy(), np.arange(begin.size)
        who, cells, last = [rows], [self.cell[begin]], begin.copy()
        while rows.size:
            current = after[current]
            going = (current >= 0) & (current != begin[rows])
            rows, current = rows[going], current[going]
            last[rows] = current
            who.append(rows)
            cells.append(self.cell[current])
        counts = np.bincount(np.concatenate(who), minlength=begin.size)
        if (counts != np.bincount(self.about)).any():
            raise MeshError(f"{path}: the cells around a point or an edge do not hang together by their faces")
        order = np.argsort(np.concatenate(who), kind="stable")
        around = Ragged.from_counts(counts, np.concatenate(cells)[order])
        first, final = self.entry[begin], self.exit[last]
        return around, np.where(twins[first] < 0, first, -1), np.where(twins[final] < 0, final, -1)


def _sides(half: HalfFaces) -> tuple[Index, Index, Index]:
    """Return the sides of all half faces: the half face, the node where it begins and where it ends."""
    rows = Ragged.from_padded(half.nodes)
    start = rows.indices.astype(np.int64)
    return np.repeat(np.arange(len(rows)), rows.counts), start, start[rows.ahead]


def _joined(parts: list[tuple[Index, Index, Index]], count: int) -> Ragged:
    """Return rows of what parts hold: the row, the place in it, the entry."""
    row, place, entry = (np.concatenate([part[k] for part in parts]) for k in range(3))
    order = np.lexsort((place, row))
    return Ragged.from_counts(np.bincount(row, minlength=count), entry[order])


def _ringed(around: Ragged, ends: tuple[tuple[int, Index], ...]) -> Ragged:
    """Return the cells of each walk, and before (-1) or behind (1, 2, ...) them other nodes where they are not -1."""
    rows = np.repeat(np.arange(len(around)), around.counts)
    parts = [(rows, np.zeros(rows.size, dtype=np.int64), around.indices.astype(np.int64))]
    for place, nodes in ends:
        there = np.flatnonzero(nodes >= 0)
        parts.append((there, np.full(there.size, place), nodes[there]))
    return _joined(parts, len(around))


# ------------------------------------------------------------------------------------------ two dimensions
def _plane(mesh: MeshData, half: HalfFaces, links: Connectivity) -> MeshData:
    """Return polygons: about each point the centroids of its cells, anticlockwise."""
    leaving = half.nodes[:, 0].astype(np.int64)
    cells = half.cells.astype(np.int64)
    going, coming = np.lexsort((leaving, cells)), np.lexsort((half.nodes[:, 1], cells))
    used, about = np.unique(leaving[going], return_inverse=True)
    order = np.argsort(about, kind="stable")
    fans = _Fans(about[order], cells[going][order], going[order], coming[order])
    around, first, last = fans.walks(mesh.source.path, half.twins)
    number, outer = _boundary_numbers(mesh, links)
    edge = used[first >= 0]
    corner = np.full(mesh.n_points, -1)
    corner[edge] = mesh.n_cells + links.n_boundary + np.arange(edge.size)
    loops = _ringed(around, ((-2, corner[used]), (-1, _at(number, first)), (1, _at(number, last))))
    terms = geometry(mesh, links)
    points = np.concatenate([terms.cell_centroids, terms.boundary_centres, mesh.points[edge]])
    blocks = {face_name(table.shape[1]): table for _, table in loops.by_width()}
    middle = mesh.n_cells + np.arange(links.n_boundary)
    ends = corner[links.boundary_nodes.table]
    lines = np.stack([ends[:, 0], middle, middle, ends[:, 1]], axis=1).reshape(-1, 2).astype(np.int32)
    patches = {name: PatchFaces({"line": lines[2 * p.start : 2 * p.stop]}) for name, p in outer.items()}
    return MeshData(points, blocks, patches, MeshSource(f"{mesh.source.path} (dual)"))


def _boundary_numbers(mesh: MeshData, links: Connectivity) -> tuple[Index, dict[str, range]]:
    """Return what the centre of each half face on the boundary is called, and the boundary faces of the patches."""
    number = links.cell_faces.indices.astype(np.int64) - links.n_interior
    return np.where(number >= 0, mesh.n_cells + number, -1), links.patches


def _at(number: Index, faces: Index) -> Index:
    return np.where(faces >= 0, number[faces], -1)


# ------------------------------------------------------------------------------------------ three dimensions
def _solid(mesh: MeshData, half: HalfFaces, links: Connectivity) -> MeshData:
    """Return polyhedra: about each point a face for each of its edges, and what is on the boundary."""
    face, start, end = _sides(half)
    keys, edge = np.unique(pair_keys(np.stack([start, end], axis=1), mesh.n_points), return_inverse=True)
    fans = _around_edges(mesh.source.path, half, face, edge, start < end)
    around, first, last = fans.walks(mesh.source.path, half.twins)
    number, outer = _boundary_numbers(mesh, links)
    border = np.flatnonzero(first >= 0)
    middle = np.full(keys.size, -1)
    middle[border] = mesh.n_cells + links.n_boundary + np.arange(border.size)
    loops = _ringed(around, ((-1, _at(number, first)), (1, _at(number, last)), (2, middle)))
    low, high = np.divmod(keys, mesh.n_points)
    outside = np.flatnonzero(half.twins[face] < 0)
    corners = np.unique(start[outside])
    own = np.full(mesh.n_points, -1)
    own[corners] = mesh.n_cells + links.n_boundary + border.size + np.arange(corners.size)
    before = _before(face)
    quads = np.stack([own[start], middle[edge], _at(number, face), middle[edge[before]]], axis=1)[outside]
    terms = geometry(mesh, links)
    centres = 0.5 * (mesh.points[low[border]] + mesh.points[high[border]])
    points = np.concatenate([terms.cell_centroids, terms.boundary_centres, centres, mesh.points[corners]])
    cells = _assembled(loops, low, high, start[outside], quads)
    patches = _patches(outer, number[face[outside]] - mesh.n_cells, quads)
    return MeshData(points, {}, patches, MeshSource(f"{mesh.source.path} (dual)"), cells)


def _around_edges(path: str, half: HalfFaces, face: Index, edge: Index, up: npt.NDArray[np.bool_]) -> _Fans:
    """Return the cells around each edge: entered through the face that goes down along it, left through the other."""
    cell = half.cells[face].astype(np.int64)
    order = np.lexsort((up, cell, edge))
    pairs = order[: order.size // 2 * 2].reshape(-1, 2)
    same = (cell[pairs[:, 0]] == cell[pairs[:, 1]]) & (edge[pairs[:, 0]] == edge[pairs[:, 1]])
    if order.size % 2 or not (same & ~up[pairs[:, 0]] & up[pairs[:, 1]]).all():
        raise MeshError(f"{path}: the faces of a cell do not close; run fluxloom mesh check for its number")
    return _Fans(edge[pairs[:, 0]], cell[pairs[:, 0]], face[pairs[:, 0]], face[pairs[:, 1]])


def _before(face: Index) -> Index:
    """Return which side comes before each one in its face."""
    before = np.arange(-1, face.size - 1)
    first = np.flatnonzero(np.concatenate([[True], face[1:] != face[:-1]]))
    before[first] = np.append(first[1:], face.size) - 1
    return before


def _assembled(loops: Ragged, low: Index, high: Index, corner: Index, quads: Index) -> Polyhedra:
    """Return the polyhedra about all points that have faces: of edges, seen from both ends, and of the boundary."""
    back = turned_rows(loops, np.ones(len(loops), dtype=bool))
    outer = Ragged.from_table(quads)
    every = Ragged.from_counts(
        np.concatenate([loops.counts, back.counts, outer.counts]),
        np.concatenate([loops.indices, back.indices, outer.indices]),
    )
    owner = np.concatenate([low, high, corner])
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner)
    return Polyhedra(np.concatenate([[0], np.cumsum(counts[counts > 0])]), every.take(order))


def _patches(outer: dict[str, range], face: Index, quads: Index) -> dict[str, PatchFaces]:
    """Return the parts of the boundary faces of each patch."""
    found: dict[str, PatchFaces] = {}
    for name, span in outer.items():
        mine = (face >= span.start) & (face < span.stop)
        table: IntArray = quads[mine].astype(np.int32)
        found[name] = PatchFaces({"quad": table})
    return found
