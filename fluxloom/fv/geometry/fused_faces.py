"""The faces between groups of cells, and the boundary elements of groups: fine ones, added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.fv.geometry.volumes import ControlVolumes, Wrapped

__all__ = ["FusedFaces", "FusedPatches", "fused_faces", "fused_patches"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_FIT = 1e-6
"""How far shifts may be apart that are the same, as a part of the longest."""

_LEAST = 1e-13
"""Area that a face keeps whose fine faces look away from each other, as a part of their areas."""

_APART = 0.5
"""Boundary faces whose areas add up to less than this part of their size are parted by their directions."""


@dataclass(frozen=True, eq=False)
class FusedFaces:
    """Faces between two groups, ascending by first cell, second cell and periodic image.

    Attributes
    ----------
    first, second : (n,)
        Global numbers of the groups, ``first < second``.
    image : (n,)
        Row of ``shifts``, that leads from the second group to its image; row 0 is zero.
    shifts : (m, d)
        The same on all ranks.
    area : (n, d)
        Sum of the area vectors.
    centre : (n, d)
        Mean of the centres of the fine faces by area, beside the first group.
    wetted, conductance : (n,)
        Sums of the areas, and of areas over spacings.
    """

    first: Index
    second: Index
    image: Index
    shifts: Array
    area: Array
    centre: Array
    wetted: Array
    conductance: Array

    def ways(self, first: Array, second: Array) -> Array:
        """Return the ways from the first centres to the second ones or their images, ``(n, d)``."""
        return second - first + self.shifts[self.image]

    def areas(self, ways: Array) -> Array:
        """Return the area vectors, of faces that cancel ``LEAST |A| v / |v|`` along the way: each has a normal."""
        flat = np.flatnonzero(np.linalg.norm(self.area, axis=1) <= _LEAST * self.wetted)
        if not flat.size:
            return self.area
        found, way = self.area.copy(), ways[flat]
        length = np.linalg.norm(way, axis=1, keepdims=True)
        way = np.where(length > 0, way, np.eye(1, way.shape[1]))
        found[flat] = _LEAST * self.wetted[flat, None] * way / np.linalg.norm(way, axis=1, keepdims=True)
        return found

    def wrapped(self, order: Index) -> Wrapped:
        """Return which of the faces, in this order, lead to an image."""
        image = self.image[order]
        found = np.flatnonzero(image)
        return Wrapped(found, self.shifts[image[found]])


@dataclass(frozen=True, eq=False)
class FusedPatches:
    """Boundary elements of groups, ascending by patch and cell.

    Attributes
    ----------
    patch, cell : (n,)
        Number of the patch, and global number of the group.
    area, centre : (n, d)
        Sum of the area vectors, and mean of the centres by area.
    wetted, conductance : (n,)
        Sums of the areas, and of areas over spacings.
    place : (fine boundary elements,)
        The boundary element of each fine one.
    """

    patch: Index
    cell: Index
    area: Array
    centre: Array
    wetted: Array
    conductance: Array
    place: Index


def fused_faces(volumes: ControlVolumes, group: Index, wetted: Array) -> FusedFaces:
    """Return the faces between groups, with ``A = sum A_f``, ``x = sum |A_f| x_f / sum |A_f|``. Collective.

    Parameters
    ----------
    volumes
        The fine control volumes.
    group : (cells,)
        Global number of the group of each cell.
    wetted : (faces,)
        Areas of the fine faces.
    """
    pair = group[volumes.faces[: volumes.interior]]
    back = pair[:, 0] > pair[:, 1]
    wraps = volumes.wrapped.faces
    turned = np.where(back[wraps, None], -volumes.wrapped.shift, volumes.wrapped.shift)
    shifts = _shifts(turned, volumes.shared.comm)
    image = np.zeros(len(pair), dtype=np.int64)
    for k in range(1, len(shifts)):
        image[wraps[_near(turned, shifts[k], shifts)]] = k
    kept = np.flatnonzero(pair[:, 0] != pair[:, 1])
    low, high = pair[kept].min(axis=1), pair[kept].max(axis=1)
    order, starts, _ = _segments(low, high, image[kept])
    chosen, head = kept[order], order[starts]
    area = np.where(back[chosen, None], -volumes.areas[chosen], volumes.areas[chosen])
    centre = volumes.centres[volumes.faces[: volumes.interior, 0]] + volumes.arms[: volumes.interior]
    centre[wraps[back[wraps]]] += turned[back[wraps]]
    size = wetted[chosen]
    total, moment = np.add.reduceat(size, starts), np.add.reduceat(size[:, None] * centre[chosen], starts, axis=0)
    return FusedFaces(
        low[head], high[head], image[kept[head]], shifts, np.add.reduceat(area, starts, axis=0),
        moment / total[:, None], total, np.add.reduceat(volumes.area[chosen] / volumes.spacing[chosen], starts),
    )  # fmt: skip


def fused_patches(volumes: ControlVolumes, group: Index, wetted: Array, patch: Index) -> FusedPatches:
    """Return the boundary elements of groups, one for each patch: ``A = sum A_f``, ``x = sum |A_f| x_f / sum |A_f|``.

    Where a group has faces of a patch that look away from each other, such as both sides of a plate, they are parted by
    the axis that is nearest to their normals, so that no boundary element loses its area.

    Parameters
    ----------
    volumes, group, wetted
        As in `fused_faces`.
    patch : (boundary elements,)
        Number of the patch of each; ascending.
    """
    areas, sizes = volumes.areas[volumes.interior :], wetted[volumes.interior :]
    cell, centres = group[volumes.faces[volumes.interior :, 0]], volumes.centres[volumes.cells :]
    side = np.zeros(cell.size, dtype=np.int64)
    order, starts, place = _segments(patch, cell, side)
    whole, total = np.add.reduceat(areas[order], starts, axis=0), np.add.reduceat(sizes[order], starts)
    if (apart := np.linalg.norm(whole, axis=1) < _APART * total).any():
        chosen = np.flatnonzero(apart[place])
        axis = np.abs(areas[chosen]).argmax(axis=1)
        side[chosen] = 2 * axis + (areas[chosen, axis] > 0)
        order, starts, place = _segments(patch, cell, side)
        whole, total = np.add.reduceat(areas[order], starts, axis=0), np.add.reduceat(sizes[order], starts)
    moment, head = np.add.reduceat((sizes[:, None] * centres)[order], starts, axis=0), order[starts]
    conductance = np.add.reduceat((volumes.area / volumes.spacing)[volumes.interior :][order], starts)
    return FusedPatches(patch[head], cell[head], whole, moment / total[:, None], total, conductance, place)


def _segments(first: Index, second: Index, third: Index) -> tuple[Index, Index, Index]:
    """Sort by three keys; return the order, where new keys begin in it, and which of these each item has."""
    order = np.lexsort((third, second, first))
    new = np.ones(order.size, dtype=bool)
    new[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in (first, second, third)])
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return order, np.flatnonzero(new), place


def _shifts(vectors: Array, comm: Comm) -> Array:
    """Return the different ones among the vectors of all ranks, behind a zero. Collective."""
    found = _different(np.concatenate(comm.allgather(_different(vectors))))
    return np.concatenate([np.zeros((1, vectors.shape[1])), found])


def _different(vectors: Array) -> Array:
    """Return the different ones among some vectors."""
    found, left = [], vectors
    while len(left):
        found.append(left[0])
        left = left[~_near(left, left[0], vectors)]
    return np.array(found).reshape(-1, vectors.shape[1])


def _near(vectors: Array, other: Array, scale: Array) -> npt.NDArray[np.bool_]:
    """Return which vectors are one, as measured with the longest of some others."""
    return np.abs(vectors - other).max(axis=1) <= _FIT * np.abs(scale).max()
