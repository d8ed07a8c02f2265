"""Cell volumes and centroids, face area vectors and centres, in two and three dimensions.

A face with four nodes is taken as the four triangles about the mean of its nodes; both cells of a face use
the same triangles, so cells fill space without gaps and the area vectors of a cell add up to zero (to
round-off) however warped its faces are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.elements import ElementType, element
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData, Ragged

__all__ = ["Geometry", "cell_geometry", "closure", "face_geometry", "geometry"]

_CHUNK = 1 << 17


@dataclass(frozen=True, eq=False)
class Geometry:
    """Metric terms of a mesh of dimension ``d`` (areas stand for volumes, lengths for areas when d = 2).

    Attributes
    ----------
    cell_volumes : (n_cells,) float64
        Signed; positive for a well-oriented cell.
    cell_centroids : (n_cells, d) float64
        Centroids.
    face_normals : (n_interior, d) float64
        Area vectors, from the owner to the neighbour.
    face_centres : (n_interior, d) float64
        Centroids of the faces.
    boundary_normals, boundary_centres : (n_boundary, d) float64
        The same of the boundary faces, outward.
    """

    cell_volumes: FloatArray
    cell_centroids: FloatArray
    face_normals: FloatArray
    face_centres: FloatArray
    boundary_normals: FloatArray
    boundary_centres: FloatArray


def geometry(mesh: MeshData, links: Connectivity) -> Geometry:
    """Return all metric terms of a mesh.

    Parameters
    ----------
    mesh
        The mesh.
    links
        Its connectivity, ``mesh.connectivity()``.
    """
    volumes, centroids = cell_geometry(mesh)
    normals, centres = face_geometry(mesh.points, links.interior_nodes)
    boundary_normals, boundary_centres = face_geometry(mesh.points, links.boundary_nodes)
    return Geometry(volumes, centroids, normals, centres, boundary_normals, boundary_centres)


def cell_geometry(mesh: MeshData) -> tuple[FloatArray, FloatArray]:
    """Return signed cell volumes ``(n_cells,)`` and centroids ``(n_cells, d)`` in global cell order.

    In 2D the volume is ``1/2 sum (p_k - p_0) x (p_k+1 - p_0)``; in 3D the sum over the triangles of the
    cell's outward faces of the tetrahedra they span with the mean of the cell's nodes.  The centroid is
    the volume-weighted mean of the simplices' centroids (the mean of the nodes where the volume is zero).
    """
    volumes = np.empty(mesh.n_cells)
    centroids = np.empty((mesh.n_cells, mesh.dimension))
    measure = _polygon if mesh.dimension == 2 else _polyhedron
    for name, numbers in mesh.cell_ranges.items():
        kind, block = element(name), mesh.cells[name]

        def piece(start: int, stop: int, kind: ElementType = kind, block: IntArray = block, first: int = numbers.start):
            part = slice(first + start, first + stop)
            volumes[part], centroids[part] = measure(mesh.points[block[start:stop]], kind)

        _in_chunks(len(block), piece)
    return volumes, centroids


def face_geometry(points: FloatArray, faces: Ragged) -> tuple[FloatArray, FloatArray]:
    """Return area vectors and centres of faces.

    Parameters
    ----------
    points : (n, d) float64
        Coordinates.
    faces
        Face to nodes; two nodes in 2D, three or four in 3D, turning anticlockwise seen from the head of the normal.

    Returns
    -------
    normals, centres : (n_faces, d) float64
        The 2D normal of the edge (a, b) is ``(b_y - a_y, a_x - b_x)``; the 3D one is ``1/2 sum p_k x p_k+1``.
    """
    normals = np.empty((len(faces), points.shape[1]))
    centres = np.empty_like(normals)
    counts = faces.counts
    for width in (2, 3, 4):
        rows = np.flatnonzero(counts == width)

        def piece(start: int, stop: int, rows: npt.NDArray[np.intp] = rows, width: int = width) -> None:
            part = rows[start:stop]
            nodes: IntArray = faces.indices[faces.offsets[part][:, None] + np.arange(width)]
            normals[part], centres[part] = _face(points[nodes])

        _in_chunks(len(rows), piece)
    return normals, centres


def closure(mesh: MeshData, links: Connectivity, terms: Geometry) -> FloatArray:
    """Return the sum of outward area vectors of every cell, ``(n_cells, d)``; zero up to round-off."""
    total = np.zeros((mesh.n_cells, mesh.dimension))
    owner, neighbour = links.interior_cells[:, 0], links.interior_cells[:, 1]
    for axis in range(mesh.dimension):
        normal = terms.face_normals[:, axis]
        total[:, axis] += np.bincount(owner, normal, minlength=mesh.n_cells)
        total[:, axis] -= np.bincount(neighbour, normal, minlength=mesh.n_cells)
        outer = terms.boundary_normals[:, axis]
        total[:, axis] += np.bincount(links.boundary_cells, outer, minlength=mesh.n_cells)
    return total


def _in_chunks(n: int, piece: Callable[[int, int], None]) -> None:
    """Do something for ranges that bound the temporary memory; NumPy lets threads work side by side."""
    ranges = [(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    if len(ranges) < 2:
        for start, stop in ranges:
            piece(start, stop)
        return
    with ThreadPoolExecutor(min(len(ranges), os.cpu_count() or 1)) as threads:
        list(threads.map(lambda bounds: piece(*bounds), ranges))


def _cross2(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _polygon(corners: FloatArray, kind: ElementType) -> tuple[FloatArray, FloatArray]:
    """Return signed areas and centroids of polygons ``(m, k, 2)``."""
    origin = corners.mean(axis=1)
    local = corners - origin[:, None]
    area = np.zeros(len(corners))
    moment = np.zeros((len(corners), 2))
    for a, b in kind.edges:
        twice = _cross2(local[:, a], local[:, b])
        area += 0.5 * twice
        moment += (twice / 6.0)[:, None] * (local[:, a] + local[:, b])
    return area, origin + _ratio(moment, area)


def _polyhedron(corners: FloatArray, kind: ElementType) -> tuple[FloatArray, FloatArray]:
    """Return signed volumes and centroids of cells ``(m, k, 3)``."""
    origin = corners.mean(axis=1)
    local = corners - origin[:, None]
    volume = np.zeros(len(corners))
    moment = np.zeros((len(corners), 3))
    for face in kind.faces:
        for a, b, c in _triangles(local[:, list(face)]):
            six = np.einsum("ij,ij->i", a, np.cross(b, c))
            volume += six / 6.0
            moment += (six / 24.0)[:, None] * (a + b + c)
    return volume, origin + _ratio(moment, volume)


def _triangles(corners: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield the triangles of a face: itself, or the four about the mean of a quad's nodes."""
    if corners.shape[1] == 3:
        yield corners[:, 0], corners[:, 1], corners[:, 2]
        return
    middle = corners.mean(axis=1)
    for k in range(4):
        yield middle, corners[:, k], corners[:, (k + 1) % 4]


def _face(corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return area vectors and centres of faces with equally many nodes, ``(m, k, d)``."""
    middle = corners.mean(axis=1)
    if corners.shape[2] == 2:
        along = corners[:, 1] - corners[:, 0]
        return np.stack([along[:, 1], -along[:, 0]], axis=1), middle
    if corners.shape[1] == 3:
        return 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), middle
    normal = 0.5 * np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    weight = np.zeros(len(corners))
    moment = np.zeros_like(normal)
    for a, b, c in _triangles(corners):
        area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
        weight += area
        moment += area[:, None] * ((b - a) + (c - a)) / 3.0
    return normal, middle + _ratio(moment, weight)


def _ratio(moment: FloatArray, weight: FloatArray) -> FloatArray:
    """Return ``moment / weight``, zero where the weight is zero."""
    safe = np.where(weight == 0.0, 1.0, weight)
    return np.where((weight == 0.0)[:, None], 0.0, moment / safe[:, None])
