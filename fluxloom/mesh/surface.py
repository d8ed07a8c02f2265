"""The boundary of a mesh by itself: what is looked at for hanging nodes and for parts that lie over each other.

Of a mesh that is divided among ranks each rank has all of it, which is little beside the cells, and tries some faces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData, Ragged
from fluxloom.mesh.whole import coordinates

__all__ = ["Surface", "linked_parts", "tell_unnamed"]


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
