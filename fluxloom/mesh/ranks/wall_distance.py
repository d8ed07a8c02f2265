"""The distance from cells to the nearest wall, exact for the faces of the mesh.

It is the least distance to segments in two dimensions, in three to triangles, and to the four triangles about the mean
of the nodes of a quad, as `fluxloom.mesh.geometry.metrics` cuts them. The nearest centre or node of a wall face may be
the width of the face away from a cell that lies on the wall, which no model of turbulence forgives. Walls are
transparent: the way to the nearest point may lead through a thin body. Images of walls across periodic patches are not
seen.

On several ranks each of them knows all faces of the walls, and looks for the nearest to its own cells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError
from fluxloom.core.processors import available_processors
from fluxloom.mesh.data.mesh import FloatArray, MeshData, Ragged, unknown_patch
from fluxloom.mesh.geometry.box_tree import BoxTree
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.geometry.simplices import Simplices, corners_of

if TYPE_CHECKING:
    from fluxloom.mesh.ranks.part import MeshPart

__all__ = ["WallFaces", "shared_wall_faces", "wall_distance", "wall_distance_of", "wall_faces"]

_BATCH = 1 << 14


class WallFaces(NamedTuple):
    """Faces of walls: what `wall_distance` takes behind the points.

    ``faces`` are rows of numbers of ``nodes``, which are coordinates ``(m, d)``.
    """

    faces: Ragged
    nodes: FloatArray


def wall_distance(points: npt.ArrayLike, faces: Ragged, nodes: FloatArray) -> FloatArray:
    """Return the distance from points to the nearest of some faces, ``(n,)``.

    The same bits for a point whatever the other points are, and however faces and their nodes are listed.

    Parameters
    ----------
    points : (n, d)
        Centroids of cells, for instance; two or three dimensions.
    faces
        Numbers of their nodes in turn: two in two dimensions, three or four in three.
    nodes : (m, d)
        Coordinates, in the unit of the points; the distance is in it too.

    Raises
    ------
    MeshError
        If there are no faces or faces of another kind, for numbers that are no nodes, for dimensions that do not fit,
        and for coordinates that are not finite.
    """
    where, nodes = np.asarray(points, dtype=np.float64), np.asarray(nodes, dtype=np.float64)
    _check(where, faces, nodes)
    tree = BoxTree.of(Simplices.of(corners_of(faces, nodes)))
    found = np.empty(len(where))

    def piece(start: int) -> None:
        batch = np.ascontiguousarray(where[start : start + _BATCH].T)
        found[start : start + _BATCH] = np.sqrt(tree.squared_distance(batch))
        work.step()

    starts = range(0, len(where), _BATCH)
    workers = max(1, min(len(starts), available_processors()))  # NumPy lets them work side by side
    whole = activity("wall distance", f"parts of {_BATCH:,} cells", total=len(starts))
    with whole as work, ThreadPoolExecutor(workers) as threads:
        list(threads.map(piece, starts))
    return found


def wall_distance_of(mesh: MeshData, patches: Sequence[str]) -> FloatArray:
    """Return the distance from the centroid of each cell to the nearest face of some patches, ``(n_cells,)``.

    Raises
    ------
    MeshError
        See `wall_faces` and `wall_distance`.
    """
    walls = wall_faces(mesh, patches)
    return wall_distance(cell_geometry(mesh)[1], *walls)


def wall_faces(mesh: MeshData, patches: Sequence[str]) -> WallFaces:
    """Return the faces of some patches of a mesh.

    Raises
    ------
    MeshError
        If a patch is not there, or none of them has a face.
    """
    _check_patches(mesh.source.path, patches, mesh.patches)
    width = max(mesh.patches[name].width for name in patches)
    rows = np.concatenate([mesh.patches[name].padded(width) for name in patches])
    return _walls(mesh.source.path, patches, rows, mesh.points)


def shared_wall_faces(part: MeshPart, patches: Sequence[str]) -> WallFaces:
    """Return the faces of some patches of a divided mesh, those of all ranks on every rank. Collective.

    Parameters
    ----------
    part
        Divided with the map ``boundary_nodes`` at least.
    patches
        Their names.

    Raises
    ------
    MeshError
        On every rank, if a patch is not there, or none of them has a face.
    """
    _check_patches(part.path, patches, part.patches)
    faces = part.part("boundary")
    mine = np.concatenate([part.patch(name) for name in patches])
    local = part.table("boundary_nodes")[mine]
    numbers = np.where(local < 0, -1, part.part("nodes").numbers[local])
    gathered: list[tuple[npt.NDArray[Any], ...]] = part.comm.allgather(
        (faces.numbers[mine], numbers, part.points[local])
    )
    order = np.argsort(np.concatenate([item[0] for item in gathered]))
    rows = np.concatenate([item[1] for item in gathered])[order]
    places = np.concatenate([item[2] for item in gathered])[order]
    used = rows >= 0
    _, first, number = np.unique(rows[used], return_index=True, return_inverse=True)
    rows[used] = number
    return _walls(part.path, patches, rows, places[used][first])


def _check_patches(path: str, patches: Sequence[str], known: Collection[str]) -> None:
    """Raise `MeshError` unless there are patches, and they are known."""
    if isinstance(patches, str) or not len(patches):
        raise MeshError(f"{path}: distance to the wall: a list of at least one patch is wanted, not {patches!r}")
    for name in patches:
        if name not in known:
            raise unknown_patch(path, name, known, "distance to the wall: no patch {}")


def _walls(path: str, patches: Sequence[str], rows: npt.NDArray[np.integer[Any]], nodes: FloatArray) -> WallFaces:
    """Return faces from rows padded with -1, with their own nodes alone."""
    if not len(rows):
        raise MeshError(
            f"{path}: distance to the wall: no faces in {', '.join(patches)}: name the patches of the walls"
        )
    used, number = np.unique(rows[rows >= 0], return_inverse=True)
    return WallFaces(Ragged.from_counts((rows >= 0).sum(axis=1), number), nodes[used])


def _check(points: FloatArray, faces: Ragged, nodes: FloatArray) -> None:
    """Raise `MeshError` unless points, faces and nodes fit."""
    if nodes.ndim != 2 or nodes.shape[1] not in (2, 3) or points.ndim != 2 or points.shape[1] != nodes.shape[1]:
        raise MeshError(
            f"distance to the wall: points {points.shape} and nodes {nodes.shape}; (n, 2) or (n, 3) are wanted"
        )
    if not len(faces):
        raise MeshError("distance to the wall: there are no faces: give those of at least one wall")
    plane, counts = nodes.shape[1] == 2, faces.counts
    if not (counts == 2 if plane else counts >= 3).all():
        found, wanted = np.unique(counts).tolist(), "2" if plane else "3 or more"
        raise MeshError(f"distance to the wall: faces with {found} nodes in {nodes.shape[1]} dimensions, not {wanted}")
    if faces.indices.min() < 0 or faces.indices.max() >= len(nodes):
        raise MeshError(
            f"distance to the wall: faces have node {faces.indices.max()} of {len(nodes)}: number them from 0"
        )
    if not (np.isfinite(points).all() and np.isfinite(nodes[faces.indices]).all()):
        raise MeshError("distance to the wall: a point or a node is not finite: check the coordinates of the mesh")
