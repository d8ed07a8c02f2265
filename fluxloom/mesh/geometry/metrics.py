r"""Cell volumes and centroids, face area vectors and centres, in two and three dimensions.

The triangles of warped faces have more than their mean normal.

A face with four nodes or more is taken as the triangles about the mean of its nodes; both cells of a face use
the same triangles, so cells fill space without gaps and the area vectors of a cell add up to zero (to
round-off) however warped its faces are.

A velocity whose components are ``U_k = (u_k, du_k / dx_1, du_k / dx_2, du_k / dx_3)`` at the centre of a face, and a
quantity ``q`` alike, pass with

.. math:: \int u q \cdot dS = \sum_k U_k^T \left(\sum_t A_{tk} \overline{y y^T}^t\right) q, \qquad y = (1, x - c)

through the triangles ``t`` of the face, whose area vectors differ where it is warped. The part with the mean normal,
``A_k diag(1, C)`` with the second moments ``C`` of `fluxloom.mesh.geometry.metrics.face_moments`, is all that there is
in plane faces; the rest is told here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.processors import available_processors
from fluxloom.mesh.data.elements import ElementType, element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, Polyhedra, Ragged
from fluxloom.mesh.geometry.connectivity import Connectivity

__all__ = [
    "TENSOR", "Geometry", "cell_geometry", "cell_measures", "closure", "corners_of", "extents", "face_geometry",
    "face_moments", "face_warps", "geometry", "in_chunks",
]  # fmt: skip

Columns = tuple[FloatArray, ...]
"""The components of vectors, each an array of its own."""

_CHUNK = 1 << 13
"""Cells or faces at a time: what is in between stays in the cache."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """Metric terms of a mesh of dimension ``d`` (areas stand for volumes, lengths for areas when d = 2).

    Attributes
    ----------
    cell_volumes : (n_cells,) float64
        Signed; positive for a well-oriented cell.
    cell_centroids : (n_cells, d) float64
        Centroids.
    cell_parts : (n_cells,) float64
        The smallest part of each cell, see `cell_measures`.
    face_normals : (n_interior, d) float64
        Area vectors, from the owner to the neighbour.
    face_centres : (n_interior, d) float64
        Centroids of the faces.
    boundary_normals, boundary_centres : (n_boundary, d) float64
        The same of the boundary faces, outward.
    """

    cell_volumes: FloatArray
    cell_centroids: FloatArray
    cell_parts: FloatArray
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
        Its connectivity, ``fluxloom.mesh.geometry.connectivity.connectivity``.
    """
    volumes, centroids, parts = cell_measures(mesh)
    normals, centres = face_geometry(mesh.points, links.interior_nodes)
    boundary_normals, boundary_centres = face_geometry(mesh.points, links.boundary_nodes)
    return Geometry(volumes, centroids, parts, normals, centres, boundary_normals, boundary_centres)


def cell_geometry(mesh: MeshData) -> tuple[FloatArray, FloatArray]:
    """Return signed cell volumes ``(n_cells,)`` and centroids ``(n_cells, d)``: the first of `cell_measures`."""
    return cell_measures(mesh)[:2]


def cell_measures(mesh: MeshData) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signed cell volumes, centroids and smallest parts in global cell order.

    In 2D the volume is ``1/2 sum (p_k - p_0) x (p_k+1 - p_0)``; in 3D the sum over the triangles of the
    cell's outward faces of the tetrahedra they span with the mean of the cell's nodes.  The centroid is
    the volume-weighted mean of the simplices' centroids (the mean of the nodes where the volume is zero).

    Returns
    -------
    volumes : (n_cells,)
    centroids : (n_cells, d)
    parts : (n_cells,)
        The smallest signed volume of these simplices. Where it is positive, the cell is seen as a whole from the mean
        of its nodes, so that its faces do not cross each other.
    """
    volumes, parts = np.empty(mesh.n_cells), np.empty(mesh.n_cells)
    centroids = np.empty((mesh.n_cells, mesh.dimension))
    measure = _polygon if mesh.dimension == 2 else _polyhedron
    columns = np.ascontiguousarray(mesh.points.T)
    for name, numbers in mesh.cell_ranges.items():
        kind, block = element(name), mesh.cells[name]

        def piece(start: int, stop: int, kind: ElementType = kind, block: IntArray = block, first: int = numbers.start):
            part = slice(first + start, first + stop)
            volumes[part], centroid, parts[part] = measure(corners_of(columns, block[start:stop]), kind)
            for axis, values in enumerate(centroid):
                centroids[part, axis] = values

        in_chunks(len(block), piece)
    if mesh.polyhedra is not None:
        part = slice(mesh.n_elements, mesh.n_cells)
        volumes[part], centroids[part], parts[part] = _general(columns, mesh.polyhedra)
    return volumes, centroids, parts


def extents(mesh: MeshData) -> FloatArray:
    """Return the longest side of the bounding box of each cell, ``(n_cells,)``."""
    longest, columns = np.zeros(mesh.n_cells), np.ascontiguousarray(mesh.points.T)
    for name, numbers in mesh.cell_ranges.items():

        def piece(start: int, stop: int, block: IntArray = mesh.cells[name], first: int = numbers.start) -> None:
            corners = corners_of(columns, block[start:stop])
            longest[first + start : first + stop] = np.ptp(corners, axis=1).max(axis=0)

        in_chunks(len(numbers), piece)
    if mesh.polyhedra is not None:
        faces, starts = mesh.polyhedra.faces, mesh.polyhedra.faces.offsets[mesh.polyhedra.offsets[:-1]]
        values = columns[:, faces.indices]
        sides = np.maximum.reduceat(values, starts, axis=1) - np.minimum.reduceat(values, starts, axis=1)
        longest[mesh.n_elements :] = sides.max(axis=0)
    return longest


def face_geometry(points: FloatArray, faces: Ragged) -> tuple[FloatArray, FloatArray]:
    """Return area vectors and centres of faces.

    Parameters
    ----------
    points : (n, d) float64
        Coordinates.
    faces
        Face to nodes; two nodes in 2D, three or more in 3D, turning anticlockwise seen from the head of the normal.

    Returns
    -------
    normals, centres : (n_faces, d) float64
        The 2D normal of the edge (a, b) is ``(b_y - a_y, a_x - b_x)``; the 3D one is ``1/2 sum p_k x p_k+1``.
    """
    normals = np.empty((len(faces), points.shape[1]))
    centres = np.empty_like(normals)
    columns, counts = np.ascontiguousarray(points.T), faces.counts
    for width in np.unique(counts).tolist():
        whole = bool((counts == width).all())
        rows = None if whole else np.flatnonzero(counts == width)

        def piece(start: int, stop: int, rows: npt.NDArray[np.intp] | None = rows, width: int = width) -> None:
            part = slice(start, stop) if rows is None else rows[start:stop]
            if rows is None:
                nodes = faces.indices[start * width : stop * width].reshape(-1, width)
            else:
                nodes = faces.indices[faces.offsets[part][:, None] + np.arange(width)]
            normal, centre = _face(corners_of(columns, nodes))
            for axis in range(points.shape[1]):
                normals[part, axis], centres[part, axis] = normal[axis], centre[axis]

        in_chunks(len(faces) if rows is None else rows.size, piece)
    return normals, centres


def face_moments(points: FloatArray, faces: Ragged) -> FloatArray:
    """Return the second moments of faces about their centres, per area, ``(n_faces, d, d)``.

    The mean of ``(x - c) (x - c)^T``: with it the integral of a product of two linear functions over a face is exact.
    Parameters are those of `face_geometry`.
    """
    d, counts, owner = points.shape[1], faces.counts, np.repeat(np.arange(len(faces)), faces.counts)
    _, centres = face_geometry(points, faces)
    place = points[faces.indices[: faces.offsets[-1]]] - centres[owner]
    found = np.zeros((len(faces), d, d))
    if d == 2:
        np.add.at(found, owner, place[:, :, None] * place[:, None, :] / 6.0)
        return found
    other = place[faces.ahead]
    area, both = np.linalg.norm(np.cross(place, other), axis=1), place + other
    terms = sum(v[:, :, None] * v[:, None, :] for v in (place, other, both))
    np.add.at(found, owner, terms * area[:, None, None] / 12.0)
    return found / np.bincount(owner, area, minlength=counts.size)[:, None, None]


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


def in_chunks(n: int, piece: Callable[[int, int], None]) -> None:
    """Do something for ranges that bound the temporary memory; NumPy lets threads work side by side."""
    ranges = [(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    if len(ranges) < 2:
        for start, stop in ranges:
            piece(start, stop)
        return
    with ThreadPoolExecutor(min(len(ranges), available_processors())) as threads:
        list(threads.map(lambda bounds: piece(*bounds), ranges))


def corners_of(columns: FloatArray, nodes: IntArray) -> FloatArray:
    """Return the coordinates ``(d, k, m)`` of nodes ``(m, k)``, given those of all points ``(d, n)``."""
    return columns[:, nodes.T.astype(np.intp)]


def _mean(corners: FloatArray) -> FloatArray:
    """Return the mean of the corners ``(d, k, m)``, one added to the other: the same bits however many there are."""
    total = corners[:, 0].copy()
    for k in range(1, corners.shape[1]):
        total += corners[:, k]
    return total / corners.shape[1]


def _cross(a: FloatArray | Columns, b: FloatArray | Columns) -> Columns:
    """Return the vector product in three dimensions; in two, its one component."""
    if len(a) == 2:
        return (a[0] * b[1] - a[1] * b[0],)
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def _dot(a: FloatArray | Columns, b: FloatArray | Columns) -> FloatArray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _polygon(corners: FloatArray, kind: ElementType) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signed areas, centroids ``(2, m)`` and smallest parts of polygons ``(2, k, m)``."""
    origin = _mean(corners)
    local = corners - origin[:, None]
    area, moment, least = np.zeros(corners.shape[2]), np.zeros_like(origin), np.full(corners.shape[2], np.inf)
    for a, b in kind.edges:
        (twice,) = _cross(local[:, a], local[:, b])
        area += 0.5 * twice
        np.minimum(least, twice, out=least)
        moment += (twice / 6.0) * (local[:, a] + local[:, b])
    return area, origin + _ratio(moment, area), 0.5 * least


def _polyhedron(corners: FloatArray, kind: ElementType) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signed volumes, centroids ``(3, m)`` and smallest parts of cells ``(3, k, m)``."""
    origin = _mean(corners)
    local = corners - origin[:, None]
    six, moment, least = np.zeros(corners.shape[2]), np.zeros_like(origin), np.full(corners.shape[2], np.inf)
    for face in kind.faces:
        volume, first, part = _pyramids([local[:, node] for node in face])
        six += volume
        moment += first
        np.minimum(least, part, out=least)
    return six / 6.0, origin + _ratio(moment, 4.0 * six), least / 6.0


def _general(columns: FloatArray, cells: Polyhedra) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what `cell_measures` does for polyhedra, given the coordinates of all points ``(3, n)``."""
    faces, owners, firsts = cells.faces, cells.owners, cells.offsets[:-1]
    middles = np.add.reduceat(columns[:, faces.indices], faces.offsets[:-1], axis=1) / faces.counts
    origin = np.add.reduceat(middles, firsts, axis=1) / np.diff(cells.offsets)
    six, moment, least = np.empty(len(faces)), np.empty((3, len(faces))), np.empty(len(faces))
    for part, nodes in faces.by_width(_CHUNK):
        corners = corners_of(columns, nodes)
        corners -= origin[:, owners[part]][:, None]
        six[part], moment[:, part], least[part] = _pyramids([corners[:, k] for k in range(nodes.shape[1])])
    six, moment = np.add.reduceat(six, firsts), np.add.reduceat(moment, firsts, axis=1)
    return six / 6.0, (origin + _ratio(moment, 4.0 * six)).T, np.minimum.reduceat(least, firsts) / 6.0


def _pyramids(loop: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the tetrahedra over the triangles of a face add, with the origin as their apex.

    Parameters
    ----------
    loop
        Nodes of the face, ``(3, m)`` each.

    Returns
    -------
    volume : (m,)
        Six times their volume.
    moment : (3, m)
        Twenty-four times their first moment: six times the volume of each, times the sum of its three corners.
    least : (m,)
        Six times the smallest volume of one.
    """
    if len(loop) == 3:
        a, b, c = loop
        volume = _dot(a, _cross(b, c))
        return volume, volume * (a + b + c), volume
    middle = sum(loop[1:], loop[0]) / len(loop)
    parts = [_dot(middle, _cross(a, b)) for a, b in zip(loop, [*loop[1:], loop[0]], strict=True)]
    volume = sum(parts[1:], parts[0])
    moment = volume * middle
    for k, node in enumerate(loop):
        moment += (parts[k] + parts[k - 1]) * node
    least = parts[0]
    for other in parts[1:]:
        least = np.minimum(least, other)
    return volume, moment, least


def _face(corners: FloatArray) -> tuple[FloatArray | Columns, FloatArray]:
    """Return area vectors and centres ``(d, m)`` of faces with equally many nodes, ``(d, k, m)``."""
    middle = _mean(corners)
    if len(corners) == 2:
        along = corners[:, 1] - corners[:, 0]
        return (along[1], -along[0]), middle
    width = corners.shape[1]
    if width == 3:
        twice = _cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        return tuple(0.5 * component for component in twice), middle
    local = corners - middle[:, None]
    normal, moment, weight = np.zeros_like(middle), np.zeros_like(middle), np.zeros(corners.shape[2])
    for k in range(width):
        a, b = local[:, k], local[:, (k + 1) % width]
        twice = _cross(a, b)
        for axis in range(3):
            normal[axis] += twice[axis]
        size = np.sqrt(_dot(twice, twice))
        weight += size
        moment += size * (a + b)
    return 0.5 * normal, middle + _ratio(moment, 3.0 * weight)


def _ratio(moment: FloatArray, weight: FloatArray) -> FloatArray:
    """Return ``moment / weight``, zero where the weight is zero."""
    return np.where(weight == 0.0, 0.0, moment / np.where(weight == 0.0, 1.0, weight))


Rows = npt.NDArray[np.intp]

TENSOR = 27
"""Numbers of a face: nine for each component ``k``, ``sum A_tk y_n``, then ``sum A_tk y_n y_m`` less ``A_k C_nm``."""

WARPS = TENSOR + 1
"""These, and behind them how far nodes are from the plane through the mean of all along the mean normal, at most."""

_PLANE = 1e-9
"""Distance of a node from the plane of its face, as a part of the root of the area, that is none."""

_UPPER = np.triu_indices(3)


def face_warps(points: FloatArray, faces: Ragged) -> tuple[Rows, FloatArray]:
    """Return which faces are warped, ``(m,)``, and what their triangles have beside the mean normal, ``(m, 28)``.

    Faces that are plane, but not seen as a whole from the mean of their nodes, are among them: their centre is not
    their centroid. Parameters are those of `fluxloom.mesh.geometry.metrics.face_geometry`.
    """
    found: list[tuple[Rows, FloatArray]] = []
    counts = faces.counts
    if points.shape[1] == 3:
        for width in np.unique(counts[counts > 3]).tolist():
            rows = np.flatnonzero(counts == width)

            def piece(start: int, stop: int, rows: Rows = rows, width: int = width) -> None:
                chosen = rows[start:stop]
                found.append(_warped(points, faces, chosen, width))

            in_chunks(rows.size, piece)
    if not found:
        return np.empty(0, dtype=np.intp), np.empty((0, WARPS))
    rows, tensors = np.concatenate([item[0] for item in found]), np.concatenate([item[1] for item in found])
    order = np.argsort(rows)
    return rows[order], tensors[order]


def _warped(points: FloatArray, faces: Ragged, rows: Rows, width: int) -> tuple[Rows, FloatArray]:
    """Return which of some faces with equally many nodes are warped, and their tensors."""
    nodes = faces.indices[faces.offsets[rows][:, None] + np.arange(width)]
    corners = points[nodes]
    middle = corners.mean(axis=1, keepdims=True)
    local = corners - middle
    areas = 0.5 * np.cross(local, np.roll(local, -1, axis=1))
    area = areas.sum(axis=1)
    size = np.sqrt(np.einsum("fi,fi->f", area, area))
    height = np.abs(np.einsum("fni,fi->fn", local, area)).max(axis=1)
    hidden = np.einsum("fni,fi->fn", areas, area).min(axis=1)
    warped = np.flatnonzero((height > _PLANE * size**1.5) | (hidden < -_PLANE * size**2))
    if not warped.size:
        return rows[:0], np.empty((0, WARPS))
    some = Ragged(np.arange(warped.size + 1) * width, nodes[warped].reshape(-1))
    _, centres = face_geometry(points, some)
    apex = middle[warped, 0] - centres
    first = corners[warped] - centres[:, None]
    second = np.roll(first, -1, axis=1)
    three = np.stack([np.broadcast_to(apex[:, None], first.shape), first, second], axis=2)
    total = three.sum(axis=2)
    products = (np.einsum("ftvn,ftvm->ftnm", three, three) + total[..., :, None] * total[..., None, :]) / 12.0
    once = np.einsum("ftk,ftn->fkn", areas[warped], total / 3.0)
    twice = np.einsum("ftk,ftnm->fknm", areas[warped], products)
    twice -= area[warped][:, :, None, None] * face_moments(points, some)[:, None]
    tensors = np.concatenate([once, twice[:, :, _UPPER[0], _UPPER[1]]], axis=2)
    away = height[warped] / size[warped]
    return rows[warped], np.concatenate([tensors.reshape(-1, TENSOR), away[:, None]], axis=1)
