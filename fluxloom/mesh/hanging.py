"""Hanging nodes: nodes of some cells in the middle of a face of another cell, which does not know them.

The faces on either side of such a place have no neighbours, so they are found among those of the boundary. A face is
tried if it is in no patch, or if the boundary touches itself at all its corners; else its side of the boundary is a
wall that someone asked for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.face_pairs import pair_keys
from fluxloom.mesh.linked import linked_parts
from fluxloom.mesh.mesh import FloatArray, IntArray
from fluxloom.mesh.ragged import Ragged
from fluxloom.mesh.surface import Surface
from fluxloom.mesh.whole import coordinates

__all__ = ["hanging", "require_no_hanging"]

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
