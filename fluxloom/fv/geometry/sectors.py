r"""Sectors: patches of which one is the other, turned about an axis, as the sides of a passage of a blade row.

Vectors turn with the way across such a side: a cell has beyond it the *image* of its partner, with

.. math:: x' = c + T (x - c), \quad u' = T u, \quad (\nabla q)' = T \nabla q, \quad (\nabla u)' = T \nabla u\, T^T.

So each face of both patches keeps an element of its own, placed at the centroid of the image, and a solver writes there
what the partner has, turned (`fluxloom.fv.compressible.kernels`). Both faces find the same flux in their own axes: what
leaves one side enters the other to round-off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.fv.geometry.volume_tables import Beyond, CellTable, ImageTable, OuterTable, chain_tables, taken

__all__ = ["Images", "Sector", "Side", "check_sectors", "joined", "joined_sectors", "turn"]

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
        """Return the axis as a unit vector, ``e / |e|``, ``(3,)``."""
        axis = np.asarray(self.axis, dtype=np.float64)
        return axis / np.linalg.norm(axis)


def turn(axis: Array, angle: float, dimension: int) -> Array:
    """Return the matrix ``(d, d)`` that turns by an angle ``a`` about a unit vector ``e``, ``(3,)`` (Rodrigues).

    ``T = I + sin(a) K + 2 sin^2(a / 2) K^2`` with ``K v = e x v``.
    """
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    whole = np.eye(3) + np.sin(angle) * cross + 2.0 * np.sin(0.5 * angle) ** 2 * (cross @ cross)
    return whole[:dimension, :dimension]


def check_sectors(patches: Collection[str], sectors: Sequence[Sector]) -> set[str]:
    """Return the names of the patches of some sectors.

    Raises
    ------
    MeshError
        If a patch does not exist or is used twice.
    """
    seen: set[str] = set()
    for name in (name for sector in sectors for name in (sector.first, sector.second)):
        if name not in patches:
            known = ", ".join(patches) or "none"
            raise MeshError(f"sectors: no patch {name!r}{did_you_mean(name, patches)} (patches: {known})")
        if name in seen:
            raise MeshError(f"sectors: the patch {name!r} is named twice")
        seen.add(name)
    return seen


@dataclass(frozen=True, eq=False)
class Side:
    """The faces of a patch, all of them: area vectors, centres, and the centroids of the cells behind, ``(n, d)``."""

    areas: Array
    centres: Array
    behind: Array


@dataclass(frozen=True, eq=False)
class Images:
    """What is beyond the faces of a side.

    Attributes
    ----------
    places, partners : (n,)
        Faces of this side, and the faces of the other one behind which the cells are whose images they have.
    rotation : (d, d)
        What turns the vectors of a partner into those of its image.
    centres, arms, areas : (n, d)
        Centroids of the images; ways from the cells behind this side to their faces; area vectors of these.
    """

    places: Index
    partners: Index
    rotation: Array
    centres: Array
    arms: Array
    areas: Array


def joined(sector: Sector, first: Side, second: Side) -> tuple[Images, Images]:
    """Return what is beyond both sides of a sector. The geometry of the faces is that of the first side.

    Raises
    ------
    MeshError
        If the faces of one side are not those of the other, turned.
    """
    origin = sector.origin(first.areas.shape[1])
    order, rotation = _matched(sector, first, second)
    every = np.arange(order.size)
    there = origin + (first.centres - origin) @ rotation.T
    sides = []
    for places, partners, near, beyond, matrix, middles, area in (
        (every, order, first.behind, second.behind[order], rotation.T, first.centres, first.areas),
        (order, every, second.behind[order], first.behind, rotation, there, -first.areas @ rotation.T),
    ):
        images = origin + (beyond - origin) @ matrix.T
        sides.append(Images(places, partners, matrix, images, middles - near, area))
    return sides[0], sides[1]


def _matched(sector: Sector, first: Side, second: Side) -> tuple[Index, Array]:
    """Return the face of the second side of each one of the first, and the rotation between them."""
    from scipy.spatial import KDTree

    d = first.areas.shape[1]
    origin = sector.origin(d)
    axis = sector.direction() if d == 3 else np.array([0.0, 0.0, 1.0])
    what = f"sectors: the patches {sector.first!r} and {sector.second!r}"
    if len(first.areas) != len(second.areas) or not len(first.areas):
        raise MeshError(f"{what} have {len(first.areas)} and {len(second.areas)} faces; as many are wanted")
    size = np.sqrt(np.einsum("ij,ij->i", first.areas, first.areas))
    angle, reach = _angle((first, second), axis, origin)
    rotation = turn(axis, angle, d)
    moved = origin + (first.centres - origin) @ rotation.T
    distance, partner = KDTree(second.centres).query(moved)
    if not distance.max() <= _FIT * reach or np.unique(partner).size != partner.size:
        raise MeshError(
            f"{what}: turned by {np.degrees(angle):.6g} degrees about {sector.axis} at {sector.centre} a face is "
            f"{distance.max():.3g} away from its partner; the faces on both sides have to be alike: look at axis and "
            "centre"
        )
    opposite = np.linalg.norm(first.areas @ rotation.T + second.areas[partner], axis=1)
    if (opposite > 1e3 * _FIT * size).any():
        raise MeshError(f"{what}: faces that belong together have different areas or directions")
    return np.asarray(partner, dtype=np.int64), rotation


def _angle(sides: tuple[Side, Side], axis: Array, origin: Array) -> tuple[float, float]:
    """Return the angle from one side to another about an axis, and how far apart they are."""
    arms = np.zeros((2, 3))
    for arm, side in zip(arms, sides, strict=True):
        weights = np.sqrt(np.einsum("ij,ij->i", side.areas, side.areas))
        arm[: origin.size] = np.average(side.centres, axis=0, weights=weights) - origin
    reach = float(np.linalg.norm(arms[1] - arms[0]))
    arms -= (arms @ axis)[:, None] * axis
    sine, cosine = np.cross(arms[0], arms[1]) @ axis, arms[0] @ arms[1]
    return float(np.arctan2(sine, cosine)), reach


# ------------------------------------------------------------------------------------------ the sides of a mesh
def joined_sectors(
    comm: Comm, sectors: Sequence[Sector], patches: Mapping[str, range], outer: OuterTable, known: CellTable
) -> tuple[Beyond, OuterTable, CellTable]:
    """Return what is beyond the sides of sectors, boundary faces with their geometry, and the cells behind all sides.

    Faces of these patches are known to every rank while they are matched, as those of periodic ones are; so each finds
    the same partners and the same rotation as one rank alone. Collective.

    Parameters
    ----------
    comm
        The ranks.
    sectors, patches
        Pairs of patches, and patch to global numbers of boundary faces.
    outer
        Boundary faces of this rank's cells, ascending.
    known
        The cells behind them at least, ascending.

    Raises
    ------
    MeshError
        On every rank, if a patch does not exist or is used twice, or if faces do not match.
    """
    raise_on_all_ranks(comm, lambda: check_sectors(patches, sectors))
    faces, cells = _gathered(comm, sectors, patches, outer, known)
    centre, area = outer.centre.copy(), outer.area.copy()
    tables: list[ImageTable] = []
    rotations: list[Array] = []
    for sector in sectors:
        spans = [patches[name] for name in (sector.first, sector.second)]
        rows = [np.arange(*np.searchsorted(faces.number, (span.start, span.stop))) for span in spans]
        first, second = (Side(faces.area[row], faces.centre[row], cells.centre[row]) for row in rows)
        for side, found in enumerate(raise_on_all_ranks(comm, lambda s=sector, a=first, b=second: joined(s, a, b))):
            own, partner = rows[side][found.places], rows[1 - side][found.partners]
            mine = np.flatnonzero(cells.owner[own] == comm.rank)
            number = faces.number[own[mine]]
            place = np.searchsorted(outer.number, number)
            centre[place], area[place] = found.centres[mine], found.areas[mine]
            which = np.full(mine.size, len(rotations))
            tables.append(ImageTable(number, cells.number[partner[mine]], which, found.arms[mine]))
            rotations.append(found.rotation)
    beyond = Beyond(chain_tables(tables), np.stack(rotations))
    return beyond, replace(outer, area=area, centre=centre), cells


def _gathered(
    comm: Comm, sectors: Sequence[Sector], patches: Mapping[str, range], outer: OuterTable, known: CellTable
) -> tuple[OuterTable, CellTable]:
    """Return the faces of all ranks in the patches of sectors, ascending, and the cell behind each."""
    kept = np.zeros(outer.number.size, dtype=bool)
    for span in (patches[name] for sector in sectors for name in (sector.first, sector.second)):
        kept |= (outer.number >= span.start) & (outer.number < span.stop)
    mine = taken(outer, np.flatnonzero(kept))
    items = comm.allgather((mine, taken(known, known.place(mine.cell))))
    faces, cells = chain_tables([item[0] for item in items]), chain_tables([item[1] for item in items])
    order = np.argsort(faces.number)
    return taken(faces, order), taken(cells, order)
