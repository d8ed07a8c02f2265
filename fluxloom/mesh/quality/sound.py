"""Refusing meshes whose cells do not fill space once: turned over, crossed, with hanging nodes, over each other.

Hanging nodes are nodes of some cells in the middle of a face of another cell, which does not know them.

What a face between two cells says does not depend on how programs number nodes: cells that go round it in different
ways have volumes of one sign, cells that go round it in the same way have volumes of different signs. Where neither
holds, one of the two lies on the side of the other, however its nodes are turned afterwards. So this is looked at
before any cell is turned round.

A cell that is seen as a whole from the mean of its nodes (`fluxloom.mesh.geometry.metrics.cell_measures`) does not
cross itself; of the others, which are few, every edge is tried against every face. Those that pass are concave: control
volumes may be, elements not (`fluxloom.mesh.geometry.jacobians`). Parts of a mesh that share no face are left then
(`fluxloom.mesh.quality.surface`).

The faces on either side of such a place have no neighbours, so they are found among those of the boundary. A face is
tried if it is in no patch, or if the boundary touches itself at all its corners; else its side of the boundary is a
wall that someone asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import FOLDABLE, element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData
from fluxloom.mesh.data.ragged import Ragged
from fluxloom.mesh.data.whole import coordinates, fail_cell
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity, half_faces, pair_keys
from fluxloom.mesh.geometry.metrics import cell_measures, corners_of, extents, face_geometry, in_chunks
from fluxloom.mesh.quality.surface import Surface, linked_parts, require_no_overlaps

__all__ = [
    "fail_over", "fit_links", "hanging", "hidden_cells", "require_mendable", "require_no_hanging", "require_positive",
    "require_sides", "require_sized", "require_sound", "require_sound_cells", "require_unfolded", "turned_over",
]  # fmt: skip

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEAR = 1e-6
"""A node is on a face when it is no further from it than this times the size of the face."""

_CHUNK = 1 << 13


def require_no_hanging(surface: Surface) -> None:
    """Raise `MeshError` for a mesh with hanging nodes, naming the first one and the cell whose face it is on."""
    rows = surface.rows[_suspects(surface)[surface.rows]]
    if not rows.size:
        return
    faces, nodes = hanging(surface.points, surface.faces.take(rows), surface.nodes)
    if faces.size:
        face, node = int(rows[faces[0]]), int(nodes[0])
        corners = ", ".join(str(int(surface.numbers[k])) for k in surface.faces[face])
        at = coordinates(surface.points[node])
        raise MeshError(
            f"{surface.locate(int(surface.cells[face]))}: hanging node: node {int(surface.numbers[node])} at {at} "
            f"lies on its face with the nodes {corners}, and is none of them ({np.unique(nodes).size} such nodes); "
            "divide the cell there, or make it a polygon or polyhedron that has the node"
        )


def hanging(points: FloatArray, faces: Ragged, nodes: IntArray) -> tuple[Index, IntArray]:
    """Return pairs of a face and a node that lies on it and is no corner of it.

    Parameters
    ----------
    points : (n, d)
        Coordinates.
    faces
        Faces with two nodes or more.
    nodes
        Those that are tried.
    """
    from scipy.spatial import KDTree

    tree, found = KDTree(points[nodes]), [np.empty((2, 0), dtype=np.int64)]
    for some, table in faces.by_width(_CHUNK):
        corners = points[table]
        middle = corners.mean(axis=1)
        reach = np.linalg.norm(corners - middle[:, None], axis=2).max(axis=1)
        near = tree.query_ball_point(middle, reach)
        face = np.repeat(np.arange(some.size), [len(item) for item in near])
        node = nodes[np.concatenate([*near, []]).astype(np.int64)]
        own = (table[face] == node[:, None]).any(axis=1)
        face, node = face[~own], node[~own]
        on = _on_face(corners[face], points[node], reach[face])
        found.append(np.stack([some[face[on]], node[on]]).astype(np.int64))
    pairs = np.concatenate(found, axis=1)
    return pairs[0], pairs[1].astype(np.int32)


def _suspects(surface: Surface) -> Mask:
    """Return which boundary faces are in no patch, or have corners at all of which the boundary touches itself."""
    faces, chosen = surface.faces, surface.free
    touching = _touching(faces, len(surface.points))
    if touching.any() and len(faces):
        chosen = chosen | np.logical_and.reduceat(touching[faces.indices], faces.offsets[:-1])
    return chosen


def _touching(faces: Ragged, n_points: int) -> Mask:
    """Return the nodes at which the boundary is not one sheet, ``(n_points,)``."""
    if not len(faces) or faces.arity == 2:
        return np.bincount(faces.indices, minlength=n_points) > 2
    here, ahead = np.arange(faces.indices.size), faces.ahead
    start, end = faces.indices, faces.indices[ahead]
    key = pair_keys(np.stack([start, end], axis=1), n_points)
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    first, second = order[same], order[same + 1]  # one edge seen from two faces; the corners at its ends hang together
    across = start[first] != start[second]
    left = np.concatenate([here[first], ahead[first]])
    other = [np.where(across, ahead[second], here[second]), np.where(across, here[second], ahead[second])]
    sheet = linked_parts(here.size, left, np.concatenate(other))
    node = np.empty(int(sheet.max()) + 1, dtype=np.int64)
    node[sheet] = start
    found = np.bincount(node, minlength=n_points) > 1
    crowded = order[same[1:][same[1:] == same[:-1] + 1]]  # an edge of three faces or more
    found[start[crowded]] = found[end[crowded]] = True
    return found


def _on_face(corners: FloatArray, place: FloatArray, size: FloatArray) -> Mask:
    """Return which places ``(m, d)`` lie on the face with the corners ``(m, k, d)`` beside them, away from corners."""
    away = np.linalg.norm(corners - place[:, None], axis=2).min(axis=1, initial=np.inf) > _NEAR * size
    width, found = corners.shape[1], np.zeros(len(place), dtype=bool)
    if width == 2:
        return away & _on_line(corners[:, 0], corners[:, 1], place, size)
    middle = corners.mean(axis=1)
    for k in range(width):
        a, b = corners[:, k] - middle, corners[:, (k + 1) % width] - middle
        normal = np.cross(a, b)
        square = np.einsum("ij,ij->i", normal, normal)
        way = place - middle
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.einsum("ij,ij->i", np.cross(way, b), normal) / square
            second = np.einsum("ij,ij->i", np.cross(a, way), normal) / square
            height = np.abs(np.einsum("ij,ij->i", way, normal)) / np.sqrt(square)
        within = (first > -_NEAR) & (second > -_NEAR) & (first + second < 1.0 + _NEAR)
        found |= within & (height < _NEAR * size)
    return away & found


def _on_line(start: FloatArray, end: FloatArray, place: FloatArray, size: FloatArray) -> Mask:
    along, way = end - start, place - start
    share = np.einsum("ij,ij->i", along, way) / np.einsum("ij,ij->i", along, along)
    off = np.linalg.norm(way - share[:, None] * along, axis=1)
    return (share > 0.0) & (share < 1.0) & (off < _NEAR * size)


_PART = {2: 1e-9, 3: 1e-2}
"""A part of a cell counts as negative below this times the volume: far above round-off, and above what the middle of a
warped face may stick through the face on the other side of a thin cell."""

_ROUND = 1e-9

_FLAT = 1e-15
"""A cell is flat when its volume is below this times the cube (square) of its extent: a few rounding errors."""


def require_sound(mesh: MeshData, links: Connectivity, volumes: FloatArray, parts: FloatArray) -> Surface:
    """Refuse a mesh with cells turned over, crossed by themselves or lying over others, and with hanging nodes.

    Parameters
    ----------
    mesh, links
        The mesh and its connectivity; cells may be of either orientation.
    volumes, parts
        Of its cells, from `fluxloom.mesh.geometry.metrics.cell_measures`.

    Returns
    -------
    Surface
        The boundary.

    Raises
    ------
    MeshError
        Naming the first such cell, its place and how many there are.
    """
    require_sized(mesh, volumes)
    require_unfolded(mesh, links.interior_cells, links.alike, volumes)
    require_sound_cells(mesh, volumes, parts)
    surface = Surface.of(mesh, links, volumes)
    require_no_hanging(surface)
    require_no_overlaps(surface)
    return surface


def fit_links(mesh: MeshData) -> Connectivity:
    """Return the connectivity of a mesh, which is refused unless it is sound and its cells have positive volumes."""
    links = connectivity(mesh)
    volumes, _, parts = cell_measures(mesh)
    require_sound(mesh, links, volumes, parts)
    require_positive(mesh, volumes)
    return links


def require_mendable(mesh: MeshData, volumes: FloatArray) -> None:
    """Refuse a mesh with cells that lie over their neighbours, which would do so if they were turned round too."""
    half = half_faces(mesh)
    if not half.groups:
        links = connectivity(replace(mesh, patches={}), half)
        require_unfolded(mesh, links.interior_cells, links.alike, volumes)


def require_positive(mesh: MeshData, volumes: FloatArray, of: str = "cells") -> None:
    """Refuse cells without a positive volume: control volumes divide by it; ``of`` says which ones these are."""
    wrong = np.flatnonzero(~(volumes > 0.0))
    if wrong.size:
        word = "area" if mesh.dimension == 2 else "volume"
        fail_cell(
            mesh, int(wrong[0]),
            f"inverted: its {word} is {volumes[wrong[0]]:.6g} ({wrong.size} of {volumes.size} {of}); number its nodes "
            "anticlockwise (VTK order): fluxloom.mesh.quality.orient does, and reading with orient=True",
        )  # fmt: skip


def turned_over(pairs: npt.NDArray[np.integer], alike: Index, volumes: FloatArray) -> Index:
    """Return the faces whose two cells lie on one side of it.

    Parameters
    ----------
    pairs : (faces, 2)
        The cells.
    alike
        Faces that both cells go round in the same way.
    volumes : (cells,)
        Their signed volumes.
    """
    negative = volumes < 0.0
    if not negative.any():
        return alike
    same = np.zeros(len(pairs), dtype=bool)
    same[alike] = True
    return np.flatnonzero(same == (negative[pairs[:, 0]] == negative[pairs[:, 1]]))


def require_unfolded(mesh: MeshData, pairs: npt.NDArray[np.integer], alike: Index, volumes: FloatArray) -> None:
    """Refuse a mesh with cells that lie on the side of their neighbours; parameters are those of `turned_over`."""
    faces = turned_over(pairs, alike, volumes)
    if not faces.size:
        return
    both = pairs[faces]
    count = np.bincount(both.reshape(-1), minlength=mesh.n_cells)
    total = np.bincount(pairs.reshape(-1), minlength=mesh.n_cells)
    cell = int(np.argmax(count / np.maximum(total, 1)))  # all its faces are wrong, few of the cells beside it
    other = both[(both == cell).any(axis=1)][0]
    beside = int(other[1] if other[0] == cell else other[0])
    name = mesh.locate_cell(beside).removeprefix(f"{mesh.source.path}:").strip()
    fail_over(mesh, cell, name, faces.size)


def fail_over(mesh: MeshData, cell: int, beside: str, count: int) -> NoReturn:
    """Raise `MeshError` for a cell that lies over its neighbour.

    Parameters
    ----------
    mesh, cell
        The cell.
    beside
        What messages call the neighbour.
    count
        Number of such faces.
    """
    fail_cell(
        mesh, cell,
        f"inverted: it lies over its neighbour, {beside}, on the same side of the face between them ({count} such "
        "faces), however it is turned: a node is beyond the cells round it; move it back, or remesh there",
    )  # fmt: skip


def hidden_cells(dimension: int, volumes: FloatArray, parts: FloatArray) -> Index:
    """Return the cells of positive volume that are not seen as a whole from the mean of their nodes."""
    return np.flatnonzero((parts < -_PART[dimension] * volumes) & (volumes > 0.0))


def require_sound_cells(mesh: MeshData, volumes: FloatArray, parts: FloatArray) -> None:
    """Refuse cells that cross themselves; parameters are those of `require_sound`."""
    hidden = [hidden_cells(mesh.dimension, volumes, parts)]
    ranges = [mesh.cell_ranges.get(kind) for kind in FOLDABLE]
    for numbers in (*ranges, range(mesh.n_elements, mesh.n_cells)):  # `crossed` tells these from thin, warped cells
        if numbers:
            least, volume = parts[numbers.start : numbers.stop], volumes[numbers.start : numbers.stop]
            hidden.append(numbers.start + np.flatnonzero((least < _ROUND * volume) & (volume > 0.0)))
    doubtful = np.unique(np.concatenate(hidden))
    if not doubtful.size:
        return
    from fluxloom.mesh.quality.crossings import crossed

    found = doubtful[crossed(mesh, doubtful)]
    if found.size:
        fail_cell(
            mesh, int(found[0]),
            f"tangled: its sides cross each other ({found.size} such cells); put its nodes in order or move them apart",
        )  # fmt: skip


def require_sides(mesh: MeshData) -> None:
    """Refuse elements with an edge without a length, and polyhedra with a side without an area.

    Programs leave such cells at axes and poles, where a side of a block is a line. Nothing goes through such a side,
    and no direction is normal to it.
    """
    columns = np.ascontiguousarray(mesh.points.T)
    for name, numbers in mesh.cell_ranges.items():
        block = mesh.cells[name]
        found = np.zeros(len(block), dtype=bool)

        def piece(start: int, stop: int, name: str = name, block: IntArray = block, found: Mask = found) -> None:
            corners = corners_of(columns, block[start:stop])
            for a, b in element(name).edges:
                found[start:stop] |= (corners[:, a] == corners[:, b]).all(axis=0)

        in_chunks(len(block), piece)
        if found.any():
            row = int(np.argmax(found))
            pairs = ((block[row, a], block[row, b]) for a, b in element(name).edges)
            first, second = next((a, b) for a, b in pairs if (mesh.points[a] == mesh.points[b]).all())
            names = f"{mesh.source.name_of(int(first))} and {mesh.source.name_of(int(second))}"
            fail_cell(
                mesh, numbers.start + row,
                f"degenerate: its nodes {names} are in one place ({int(found.sum())} such cells); move them apart, or "
                "make them one node and use the element type that has it once",
            )  # fmt: skip
    if mesh.polyhedra is not None:
        areas = np.linalg.norm(face_geometry(mesh.points, mesh.polyhedra.faces)[0], axis=1)
        size = extents(mesh)[mesh.n_elements :][mesh.polyhedra.owners]
        flat = np.flatnonzero(areas <= _FLAT * size**2)
        if flat.size:
            cells = np.unique(mesh.polyhedra.owners[flat])
            fail_cell(
                mesh, mesh.n_elements + int(cells[0]),
                f"degenerate: it has a face without an area ({cells.size} such cells); remove the face, or move its "
                "nodes apart",
            )  # fmt: skip


def require_sized(mesh: MeshData, volumes: FloatArray) -> None:
    """Refuse cells with sides without a size, or without a volume."""
    require_sides(mesh)
    flat = np.flatnonzero(~(np.abs(volumes) > _FLAT * extents(mesh) ** mesh.dimension))
    if flat.size:
        word = "area" if mesh.dimension == 2 else "volume"
        message = f"degenerate: its {word} is {volumes[flat[0]]:.3g} ({flat.size} such cells); remesh there"
        fail_cell(mesh, int(flat[0]), message)
