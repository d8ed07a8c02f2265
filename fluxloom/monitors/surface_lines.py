"""Lines on surfaces: the patches of a plane mesh, and planes that cut patches in three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.mesh.geometry import face_geometry
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.ragged import Ragged

__all__ = ["SurfaceCut", "check_cut", "cut_patches", "neighbours_in_plane", "sign_changes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_NOTHING = 1e-9
"""Of the largest value: below it there is none."""
_SAME = 1e-6
"""How far the centre of a face may be from its partner, as a part of the square root of its area, or of its length."""


@dataclass(frozen=True, eq=False)
class SurfaceCut:
    """Where a plane cuts the faces of patches in three dimensions.

    Attributes
    ----------
    places : (m, 3)
        Middles of the lines in which it cuts them.
    face : (m,)
        Which faces these are, in the order of the values.
    pairs : (k, 2)
        Rows whose lines have an end in common.
    """

    places: Array
    face: Index
    pairs: Index


def cut_patches(mesh: MeshData, patches: Sequence[str], centres: Array, axis: int, station: float) -> SurfaceCut:
    """Return where the plane ``x[axis] = station`` cuts the faces of some patches.

    Parameters
    ----------
    mesh
        In three dimensions.
    patches
        Names.
    centres : (n, 3)
        Of the faces, in the order of the values, as `fluxloom.run.measures.Surface.faces` has them.
    axis, station
        0, 1 or 2, and where.

    Raises
    ------
    SolverError
        In two dimensions, if the plane misses all faces, or the centres are not those of the faces.
    """
    check_cut(mesh, patches, axis, station)
    from fluxloom.mesh.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    partner = _partners(faces, nodes, centres)
    owner = np.repeat(np.arange(len(faces)), faces.counts)
    after = np.arange(1, owner.size + 1)
    after[faces.offsets[1:] - 1] = faces.offsets[:-1]
    here, there = nodes[faces.indices], nodes[faces.indices[after]]
    below = here[:, axis] < station
    crossed = np.flatnonzero(below != (there[:, axis] < station))
    part = (station - here[crossed, axis]) / (there[crossed, axis] - here[crossed, axis])
    points = here[crossed] + part[:, None] * (there[crossed] - here[crossed])
    cut, first, counts = np.unique(owner[crossed], return_index=True, return_counts=True)
    total = np.add.reduceat(points, first, axis=0)
    ends = np.sort(np.stack([faces.indices[crossed], faces.indices[after[crossed]]], axis=1), axis=1)
    edges = np.unique(ends, axis=0, return_inverse=True)[1].reshape(-1)
    rows = np.searchsorted(cut, owner[crossed])
    return SurfaceCut(total / counts[:, None], partner[cut], _sharing(edges, rows))


def check_cut(mesh: MeshData, patches: Sequence[str], axis: int, station: float) -> None:
    """Raise `SolverError` in two dimensions, or if the plane ``x[axis] = station`` misses all faces of the patches."""
    if mesh.dimension != 3 or axis not in range(3):
        raise SolverError(f"a cut: an axis of three dimensions is wanted, not {axis!r} in {mesh.dimension}")
    from fluxloom.mesh.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    below = nodes[faces.indices, axis] < station
    if below.all() or not below.any():
        low, high = nodes[:, axis].min(), nodes[:, axis].max()
        raise SolverError(
            f"a cut at {'xyz'[axis]} = {station:g} misses {', '.join(patches)}: {low:.6g} to {high:.6g} there"
        )


def neighbours_in_plane(mesh: MeshData, patches: Sequence[str], centres: Array) -> Index:
    """Return pairs of rows of values along patches of a plane mesh that are next to each other, ``(k, 2)``.

    Parameters
    ----------
    mesh
        In two dimensions.
    patches
        Names.
    centres : (n, 2)
        Of the faces, in the order of the values; or of their nodes, where values are at these.

    Raises
    ------
    SolverError
        If the centres are neither those of the faces nor their nodes.
    """
    from scipy.spatial import KDTree

    from fluxloom.mesh.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    two = faces.indices.reshape(-1, 2)
    if len(centres) != len(faces) or not _close(faces, nodes, centres):
        used, place = np.unique(two, return_inverse=True)
        away, row = KDTree(centres).query(nodes[used])
        length = np.linalg.norm(nodes[two[:, 1]] - nodes[two[:, 0]], axis=1).min()
        if len(centres) != used.size or (away > _SAME * length).any():
            raise SolverError("the values along a surface are neither those of its faces nor those of its nodes")
        return np.asarray(row)[place.reshape(-1, 2)].astype(np.int64)
    partner = _partners(faces, nodes, centres)
    return _sharing(two.ravel().astype(np.int64), np.repeat(partner, 2))


def _nearest(faces: Ragged, nodes: Array, centres: Array) -> tuple[Array, Index, Array]:
    """Return of each face how far the nearest centre is, which one that is, and the size of the face."""
    from scipy.spatial import KDTree

    areas, middles = face_geometry(nodes, faces)
    distance, partner = KDTree(centres).query(middles)
    size = np.linalg.norm(areas, axis=1) ** (1.0 / (nodes.shape[1] - 1))
    return np.asarray(distance), np.asarray(partner).astype(np.int64), size


def _close(faces: Ragged, nodes: Array, centres: Array) -> bool:
    distance, _, size = _nearest(faces, nodes, centres)
    return not (distance > _SAME * size).any()


def _partners(faces: Ragged, nodes: Array, centres: Array) -> Index:
    """Return which centre is that of each face; raise `SolverError` where there is none."""
    distance, partner, size = _nearest(faces, nodes, centres)
    if len(centres) != len(faces) or (distance > _SAME * size).any():
        raise SolverError("a cut: the values are not those of the faces of these patches")
    return partner


def _sharing(ends: Index, rows: Index) -> Index:
    """Return pairs of rows that have an end in common, each once; of ends of more than two rows the neighbours."""
    order = np.argsort(ends, kind="stable")
    ends, rows = ends[order], rows[order]
    same = np.flatnonzero(ends[1:] == ends[:-1])
    return np.stack([rows[same], rows[same + 1]], axis=1)


def sign_changes(
    places: Array, shear: Array, pairs: Index, along: Array
) -> tuple[Array, npt.NDArray[np.bool_]]:  # fmt: skip
    """Return where the shear along lines points at the same place from both sides, or away from it.

    Ordered along a direction; and whether it points away. Between neighbours the shear along the line from one to the
    other is linear. A row where it is 0 is such a place, if it points there, or away, in both beside it. What points
    nowhere, as on a wall across the shear, is none.

    Parameters
    ----------
    places : (n, d)
        Of the values.
    shear : (n, d)
        Where it is not finite there is no place.
    pairs : (k, 2)
        Rows that are next to each other.
    along : (d,)
        Direction.
    """
    size = np.linalg.norm(shear, axis=1)
    most = size[np.isfinite(size)].max(initial=0.0)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ways = places[both[:, 1]] - places[both[:, 0]]
    toward = np.einsum("kd,kd->k", shear[both[:, 0]], ways) / np.linalg.norm(ways, axis=1)
    toward[~(np.abs(toward) > _NOTHING * most)] = 0.0
    a, b = toward[: len(pairs)], toward[len(pairs) :]
    found = np.flatnonzero(a * b > 0.0)
    first, last = pairs[found].T
    at = places[first] + (a / np.where(a + b == 0.0, 1.0, a + b))[found, None] * (places[last] - places[first])
    least, highest = np.zeros((2, len(places)))
    np.minimum.at(least, both[:, 1], toward)
    np.maximum.at(highest, both[:, 1], toward)
    still = np.flatnonzero((np.bincount(both[:, 1], toward == 0.0, len(places)) == 0) & (size <= _NOTHING * most))
    still = still[(np.bincount(both[:, 1], minlength=len(places)) > 1)[still] & (least * highest == 0.0)[still]]
    at, away = np.concatenate([at, places[still]]), np.concatenate([a[found] < 0.0, highest[still] == 0.0])
    order = np.argsort(at @ along, kind="stable")
    return at[order], away[order]
