r"""Sectors: patches of which one is the other, turned about an axis, as the sides of a passage of a blade row.

Vectors turn with the way across such a side: a cell has beyond it the *image* of its partner, with

.. math:: x' = c + T (x - c), \quad u' = T u, \quad (\nabla q)' = T \nabla q, \quad (\nabla u)' = T \nabla u\, T^T.

So each face of both patches keeps an element of its own, placed at the centroid of the image, and a solver writes there
what the partner has, turned (`fluxloom.fv.sector_kernels`). Both faces find the same flux in their own axes: what
leaves one side enters the other to round-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.fv.control_volumes import ControlVolumes, Turned

__all__ = ["Sector", "sector_volumes", "turn"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_FIT = 1e-6
"""How far a face may be from its turned partner, as a part of the distance between the patches."""


@dataclass(frozen=True)
class Sector:
    """Two patches, the second of which is the first one turned about an axis; the angle is found.

    Attributes
    ----------
    first, second
        Names of the patches.
    axis
        Direction of the axis, of any length above 0; in two dimensions it is ``z``.
    centre
        A place on it.

    Raises
    ------
    MeshError
        If a number is not finite, or the axis has no direction.
    """

    first: str
    second: str
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    centre: Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if len(self.axis) != 3 or len(self.centre) not in (2, 3):
            raise MeshError(f"sector: an axis of 3 numbers and a centre of 2 or 3 are wanted, not {self}")
        if not np.isfinite([*self.axis, *self.centre]).all() or not any(self.axis):
            raise MeshError(f"sector: finite numbers, and an axis with a direction, are wanted, not {self}")

    def origin(self, dimension: int) -> Array:
        """Return the place on the axis, ``(d,)``."""
        found = np.zeros(dimension)
        given = np.asarray(self.centre, dtype=np.float64)[:dimension]
        found[: given.size] = given
        return found

    def direction(self) -> Array:
        """Return the axis as a unit vector, ``(3,)``."""
        axis = np.asarray(self.axis, dtype=np.float64)
        return axis / np.linalg.norm(axis)


def turn(axis: Array, angle: float, dimension: int) -> Array:
    """Return the matrix ``(d, d)`` that turns by an angle about a unit vector ``(3,)`` (Rodrigues)."""
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    whole = np.eye(3) + np.sin(angle) * cross + 2.0 * np.sin(0.5 * angle) ** 2 * (cross @ cross)
    return whole[:dimension, :dimension]


def sector_volumes(volumes: ControlVolumes, sectors: Sequence[Sector]) -> ControlVolumes:
    """Return control volumes whose patches are joined by rotations; these are no boundaries any more.

    Parameters
    ----------
    volumes
        With the patches as boundaries, of one rank.
    sectors
        Pairs of patches with as many faces each, that match node by node.

    Raises
    ------
    MeshError
        If a patch does not exist or is used twice, if faces do not match, or on several ranks.
    """
    if volumes.shared is not None:
        raise MeshError(
            "sectors: patches that are joined by a rotation run on one rank alone: start fewer ranks, or join patches "
            "that are one another's translation"
        )
    _check_names(volumes, sectors)
    images = [image for sector in sectors for image in _images(volumes, sector)]
    centres, arms, areas = volumes.centres.copy(), volumes.arms.copy(), volumes.areas.copy()
    for image in images:
        faces = image.elements - volumes.cells + volumes.interior
        centres[image.elements], arms[faces], areas[faces] = image.centres, image.arms, image.areas
    ways = centres[volumes.faces[:, 1]] - centres[volumes.faces[:, 0]]
    ways[volumes.wrapped.faces] += volumes.wrapped.shift
    spacing = np.abs(np.einsum("ij,ij->i", areas, ways)) / np.linalg.norm(areas, axis=1)
    turned = Turned(
        np.concatenate([image.elements for image in images]),
        np.concatenate([image.partners for image in images]),
        np.repeat(np.arange(len(images)), [image.elements.size for image in images]),
        np.stack([image.rotation for image in images]),
    )
    used = {name for sector in sectors for name in (sector.first, sector.second)}
    patches = {name: span for name, span in volumes.patches.items() if name not in used}
    return replace(
        volumes, centres=centres, arms=arms, areas=areas, spacing=spacing, patches=patches, turned=turned
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Images:
    """The elements of one side: the cells whose images they are, and their geometry."""

    elements: Index
    partners: Index
    rotation: Array
    centres: Array
    arms: Array
    areas: Array


def _check_names(volumes: ControlVolumes, sectors: Sequence[Sector]) -> None:
    seen: set[str] = set()
    if not sectors:
        raise MeshError("sectors: at least one pair of patches is wanted")
    for name in (name for sector in sectors for name in (sector.first, sector.second)):
        if name not in volumes.patches:
            known = ", ".join(volumes.patches) or "none"
            raise MeshError(f"sectors: no patch {name!r}{did_you_mean(name, volumes.patches)} (patches: {known})")
        if name in seen:
            raise MeshError(f"sectors: the patch {name!r} is named twice")
        seen.add(name)


def _images(volumes: ControlVolumes, sector: Sector) -> tuple[_Images, _Images]:
    """Return what is beyond both sides of a sector. The geometry of the faces is that of the first side."""
    d, origin = volumes.dimension, sector.origin(volumes.dimension)
    first, second, rotation = _matched(volumes, sector)
    offset = volumes.interior - volumes.cells
    faces, cells = volumes.centres[first], volumes.centres[: volumes.cells]
    areas, behind, ahead = volumes.areas[first + offset], *(volumes.faces[s + offset, 0] for s in (first, second))
    there = origin + (faces - origin) @ rotation.T
    sides = []
    for elements, own, partner, matrix, middles, area in (
        (first, behind, ahead, rotation.T, faces, areas),
        (second, ahead, behind, rotation, there, -areas @ rotation.T),
    ):
        images = origin + (cells[partner] - origin) @ matrix.T
        sides.append(_Images(elements, partner, matrix.reshape(d, d), images, middles - cells[own], area))
    return sides[0], sides[1]


def _matched(volumes: ControlVolumes, sector: Sector) -> tuple[Index, Index, Array]:
    """Return the elements of the first patch, those of the second in the same order, and the rotation between them."""
    from scipy.spatial import KDTree

    d, origin = volumes.dimension, sector.origin(volumes.dimension)
    axis = sector.direction() if d == 3 else np.array([0.0, 0.0, 1.0])
    spans = volumes.patches[sector.first], volumes.patches[sector.second]
    first, second = (np.arange(span.start, span.stop) for span in spans)
    what = f"sectors: the patches {sector.first!r} and {sector.second!r}"
    if first.size != second.size or not first.size:
        raise MeshError(f"{what} have {first.size} and {second.size} faces; as many are wanted")
    angle, reach = _angle(volumes, (first, second), axis, origin)
    rotation = turn(axis, angle, d)
    moved = origin + (volumes.centres[first] - origin) @ rotation.T
    distance, partner = KDTree(volumes.centres[second]).query(moved)
    if not distance.max() <= _FIT * reach or np.unique(partner).size != partner.size:
        raise MeshError(
            f"{what}: turned by {np.degrees(angle):.6g} degrees about {sector.axis} at {sector.centre} a face is "
            f"{distance.max():.3g} away from its partner; the faces on both sides have to be alike: look at axis and "
            "centre"
        )
    second = second[partner]
    offset = volumes.interior - volumes.cells
    opposite = np.linalg.norm(volumes.areas[first + offset] @ rotation.T + volumes.areas[second + offset], axis=1)
    if (opposite > 1e3 * _FIT * volumes.area[first + offset]).any():
        raise MeshError(f"{what}: faces that belong together have different areas or directions")
    return first, second, rotation


def _angle(volumes: ControlVolumes, sides: tuple[Index, Index], axis: Array, origin: Array) -> tuple[float, float]:
    """Return the angle from one patch to another about an axis, and how far apart they are."""
    d, offset = volumes.dimension, volumes.interior - volumes.cells
    arms = np.zeros((2, 3))
    for arm, side in zip(arms, sides, strict=True):
        arm[:d] = np.average(volumes.centres[side], axis=0, weights=volumes.area[side + offset]) - origin
    reach = float(np.linalg.norm(arms[1] - arms[0]))
    arms -= (arms @ axis)[:, None] * axis
    sine, cosine = np.cross(arms[0], arms[1]) @ axis, arms[0] @ arms[1]
    return float(np.arctan2(sine, cosine)), reach
