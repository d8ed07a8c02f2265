"""The boundary of a mesh by itself, and cells that lie over others without sharing a face with them.

On it hanging nodes and parts that lie over each other are looked for.

Of a mesh that is divided among ranks each rank has all of it, which is little beside the cells, and tries some faces.

A point is in as many cells as the boundary of the mesh winds round it. That number is counted on a ray, which the
ray leaves through once more often than it comes in where the point is in one cell. Points are taken just within the
boundary, where one part of a mesh enters another: beside the middle of each boundary face, and each of its nodes.

Simplices of the boundary are found by their size: of each size (a power of two) they are listed under the squares of a
lattice across the ray, which has that size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, Ragged
from fluxloom.mesh.data.whole import coordinates
from fluxloom.mesh.geometry.connectivity import Connectivity

__all__ = ["Surface", "linked_parts", "require_no_overlaps", "tell_unnamed"]


def linked_parts(count: int, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the number of the part that each of some elements is in, from 0, ``(count,)``.

    Parameters
    ----------
    count
        Number of elements.
    first, second
        Pairs of elements that hang together.
    """
    from scipy.sparse import coo_array  # takes longer to import than all of this package
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)


Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Surface:
    """Boundary faces, their points, and what is known of the cells behind them.

    Attributes
    ----------
    points : (n, d)
        Coordinates; more than those of the faces may be there.
    numbers : (n,)
        What messages call the points.
    faces
        Face to points.
    cells, free, outward, middles : (faces,), (faces,), (faces,), (faces, d)
        The cell behind each face, whether it is in no patch, whether its nodes turn anticlockwise seen from outside,
        and the mean of the nodes of its cell.
    rows
        The faces that this rank tries.
    locate
        Words for a cell.
    find
        Words for another cell that has a place, beside the cell given; empty where it is not known.
    """

    points: FloatArray
    numbers: npt.NDArray[np.integer]
    faces: Ragged
    cells: Index
    free: Mask
    outward: Mask
    middles: FloatArray
    rows: Index
    locate: Callable[[int], str]
    find: Callable[[int, FloatArray], str]

    @classmethod
    def of(cls, mesh: MeshData, links: Connectivity, volumes: FloatArray) -> Surface:
        """Return the boundary of a mesh on one rank.

        Parameters
        ----------
        mesh, links
            The mesh and its connectivity.
        volumes : (cells,)
            Their signed volumes.
        """
        cells = links.boundary_cells.astype(np.int64)
        nodes = links.cell_nodes.take(cells)
        middles = np.empty((0, mesh.dimension))
        if cells.size:
            middles = np.add.reduceat(mesh.points[nodes.indices], nodes.offsets[:-1]) / nodes.counts[:, None]
        return cls(
            mesh.points, np.arange(mesh.n_points), links.boundary_nodes, cells, links.boundary_patch < 0,
            volumes[cells] >= 0.0, middles, np.arange(cells.size), mesh.locate_cell,
            lambda cell, place: _beside(mesh, cell, place),
        )  # fmt: skip

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.points.shape[1]

    @property
    def nodes(self) -> IntArray:
        """The points of the faces, ascending."""
        return np.unique(self.faces.indices)


def tell_unnamed(surface: Surface) -> None:
    """Say where a closed part of the boundary is in no patch while others are: a hole that nobody may have asked for.

    What takes a mesh without asking for patches lets nothing through there, as through a wall.
    """
    if surface.free.all() or not surface.free.any():
        return
    faces = surface.faces
    beside = _beside_each_other(faces, surface.dimension)
    part = linked_parts(len(faces), *beside.T)
    named = np.zeros(int(part.max()) + 1, dtype=bool)
    named[part[~surface.free]] = True
    unnamed = np.flatnonzero(~named[part])
    if unnamed.size:
        face = int(unnamed[0])
        at = coordinates(surface.points[faces[face]].mean(axis=0))
        warn(
            f"{surface.locate(int(surface.cells[face]))}: {unnamed.size} boundary faces, the first one at {at}, "
            "bound a hole or a part of the mesh of which none is in a patch, so that nothing goes through them; put "
            "them into a patch, or look for cells that are missing or do not fit their neighbours there"
        )


def _beside_each_other(faces: Ragged, dimension: int) -> Index:
    """Return pairs of faces that share an edge, in the plane a node, which no other face has, ``(n, 2)``."""
    start = faces.indices
    end = start[faces.ahead] if dimension == 3 else start
    order = np.lexsort((np.minimum(start, end), np.maximum(start, end)))
    low, high = np.minimum(start, end)[order], np.maximum(start, end)[order]
    first = np.append(np.flatnonzero(np.diff(low, prepend=-1) | np.diff(high, prepend=-1)), order.size)
    two = first[:-1][np.diff(first) == 2]
    face = np.repeat(np.arange(len(faces)), faces.counts)
    return np.stack([face[order[two]], face[order[two + 1]]], axis=1)


def _beside(mesh: MeshData, cell: int, place: FloatArray) -> str:
    """Return words for the nearest cell but one whose box has a place."""
    other, nearest = cell, np.inf
    for kind, numbers in mesh.cell_ranges.items():
        corners = mesh.points[mesh.cells[kind]]
        inside = ((corners.min(axis=1) <= place) & (corners.max(axis=1) >= place)).all(axis=1)
        away = np.where(inside, np.linalg.norm(corners.mean(axis=1) - place, axis=1), np.inf)
        if numbers.start <= cell < numbers.stop:
            away[cell - numbers.start] = np.inf
        if len(away) and away.min() < nearest:
            other, nearest = numbers.start + int(np.argmin(away)), float(away.min())
    return "" if other == cell else mesh.locate_cell(other).removeprefix(f"{mesh.source.path}:").strip()


_DEPTH = 0.1
"""How deep points are taken, in sizes of a face: arcs that are divided in two ways may lie over each other as deep as
their sagittas, and no mesh is refused for that."""

_PART = (0.1, 0.5)
"""The least and the largest part of the way to the middle of the cell."""

_FINEST = 24
"""Simplices smaller than the mesh over two to this power are taken for that size."""

_PAIRS = 1 << 19

_TURN = {
    2: ((0.8137, 0.5813), (-0.5813, 0.8137)),
    3: ((0.6531, 0.5477, 0.5231), (-0.7571, 0.4523, 0.4717), (0.0217, -0.7041, 0.7097)),
}
"""The direction of the ray and those across it, roughly at right angles: no faces of usual meshes lie along them."""


def require_no_overlaps(surface: Surface) -> None:
    """Refuse a mesh with cells that lie over others with which they share no face.

    Cells that share a face do not lie over each other.

    Raises
    ------
    MeshError
        Naming the first such cell, its place, one that it lies over, and how many there are.
    """
    if not surface.rows.size:
        return
    cells, places = _within(surface)
    deep = _depths(_simplices(surface), places @ np.array(_TURN[surface.dimension]).T) > 1
    if deep.any():
        cell, place = int(cells[deep].min()), places[deep][np.argmin(cells[deep])]
        raise MeshError(
            f"{surface.locate(cell)} at {coordinates(place)}: overlapping: it lies over "
            f"{surface.find(cell, place) or 'others'}, with which it shares no face ({np.unique(cells[deep]).size} "
            "such cells); move the parts of the mesh apart, or remove what is there twice"
        )


def _within(surface: Surface) -> tuple[Index, FloatArray]:
    """Return points near the boundary ``(n, d)``, and the cells in which they are."""
    faces, cells, middle = surface.faces.take(surface.rows), surface.cells[surface.rows], surface.middles[surface.rows]
    corners = surface.points[faces.indices]
    first = faces.offsets[:-1]
    face = np.add.reduceat(corners, first) / faces.counts[:, None]
    size = np.maximum.reduceat(np.linalg.norm(corners - np.repeat(face, faces.counts, axis=0), axis=1), first)
    away = np.linalg.norm(middle - face, axis=1)
    part = np.clip(_DEPTH * size / np.where(away > 0.0, away, 1.0), *_PART)[:, None]
    of = np.repeat(np.arange(cells.size), faces.counts)
    _, once = np.unique(faces.indices, return_index=True)
    of = of[once]
    beside = corners[once] + _DEPTH * (face[of] - corners[once])
    points = np.concatenate([face + part * (middle - face), beside + part[of] * (middle[of] - beside)])
    return np.concatenate([cells, cells[of]]), points


def _simplices(surface: Surface) -> FloatArray:
    """Return the boundary as segments or triangles ``(corner, axis, n)``, in the frame of the ray."""
    faces, width = surface.faces, surface.dimension
    found: list[IntArray] = []
    for rows, table in faces.by_width():
        count = table.shape[1]
        table[~surface.outward[rows]] = table[~surface.outward[rows], ::-1]
        found += [table[:, [0, k, k + 1][-width:]] for k in range(1, max(2, count - 1))] if width == 3 else [table]
    turned = surface.points @ np.array(_TURN[width]).T
    return np.ascontiguousarray(np.moveaxis(turned[np.concatenate(found)], 0, 2))


def _depths(simplices: FloatArray, points: FloatArray) -> Index:
    """Return how often the boundary winds round points."""
    depths = np.zeros(len(points), dtype=np.int64)
    low, high = simplices[:, 1:].min(axis=0), simplices[:, 1:].max(axis=0)
    start = low.min(axis=1)
    whole = float((high.max(axis=1) - start).max()) * 1.001 or 1.0
    with np.errstate(divide="ignore"):
        level = np.clip(-np.log2((high - low).max(axis=0) / whole), 0, _FINEST).astype(np.int64)
    for fine in np.unique(level).tolist():
        rows, size = np.flatnonzero(level == fine), whole / 2.0**fine

        def square(places: FloatArray, size: float = size) -> Index:
            return np.floor((places - start[:, None]) / size).astype(np.int64)

        ends = square(low[:, rows]), square(high[:, rows])
        keys, owners = [], []
        for corner in np.ndindex((2,) * len(start)):  # none is longer than a square: it is in two along an axis at most
            at = np.stack([ends[end][axis] for axis, end in enumerate(corner)])
            new = np.ones(rows.size, dtype=bool)
            for axis in np.flatnonzero(corner):
                new &= ends[1][axis] > ends[0][axis]
            keys.append(_key(at[:, new]))
            owners.append(rows[new])
        key, owner = np.concatenate(keys), np.concatenate(owners)
        order = np.argsort(key)
        key, owner = key[order], owner[order]
        asked = _key(square(points[:, 1:].T))
        begin, end = np.searchsorted(key, asked, "left"), np.searchsorted(key, asked, "right")
        depths += _counted(simplices, points, owner, begin, end - begin)
    return depths


def _key(squares: Index) -> Index:
    """Return one number for squares ``(axis, n)``."""
    return squares[0] if len(squares) == 1 else (squares[0] << (_FINEST + 2)) + squares[1]


def _counted(simplices: FloatArray, points: FloatArray, owner: Index, begin: Index, count: Index) -> Index:
    """Return how often rays of points leave through ``owner[begin : begin + count]``, less how often they come in."""
    depths, some = np.zeros(len(points), dtype=np.int64), np.flatnonzero(count)
    some = some[np.argsort(begin[some])]
    ends = np.cumsum(count[some])
    for cut in np.split(some, np.searchsorted(ends, np.arange(_PAIRS, ends[-1], _PAIRS))) if some.size else ():
        if not cut.size:
            continue
        many = count[cut]
        first = np.cumsum(many) - many
        chosen = owner[np.arange(first[-1] + many[-1]) + np.repeat(begin[cut] - first, many)]
        away = np.repeat(points[cut].T, many, axis=1)
        depths[cut] = np.add.reduceat(_through(simplices[:, :, chosen] - away), first).astype(np.int64)
    return depths


def _through(corners: FloatArray) -> FloatArray:
    """Return 1 where the ray from the origin goes out through a simplex ``(corner, axis, n)``, -1 where in, else 0.

    Weights of neighbours are opposite numbers, to the last bit, so that no ray goes between them.
    """
    ray, across = corners[:, 0], corners[:, 1:]
    if len(corners) == 2:
        weights = np.stack([across[1, 0], -across[0, 0]])
    else:
        pairs = ((1, 2), (2, 0), (0, 1))
        weights = np.stack([across[a, 0] * across[b, 1] - across[a, 1] * across[b, 0] for a, b in pairs])
    positive = weights >= 0.0
    hit = positive.all(axis=0) | ~positive.any(axis=0)
    total = weights.sum(axis=0)
    ahead = (weights * ray).sum(axis=0) * np.sign(total) > 0.0
    return np.where(hit & ahead, np.sign(total), 0.0)
