"""Boundaries of flow on edges: what they do to velocity and pressure at the points of the patches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fv.given import PatchPlaces, changes, rows_of
from fluxloom.fv.incompressible.boundary import Boundary, Outflow, Symmetry

__all__ = ["EdgeBoundary", "EdgePatch", "WallLaw", "edge_boundary"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_CHANGES = 1e200
"""Added to the speed of what changes in time: it is faster than all that stays."""
_SAME = 0.2
"""Sine of the angle below which the normals of two patches are one."""


@dataclass(frozen=True)
class WallLaw:
    """A wall whose layer the mesh does not resolve: nothing passes, Spalding's law of the wall gives the shear.

    Attributes
    ----------
    distance
        From the wall, at which the velocity of the points of the wall is taken to be; m.
    kappa, constant
        Of the law: ``u+ = ln(y+) / kappa + constant`` far from the wall.

    References
    ----------
    D. B. Spalding, Journal of Applied Mechanics 28 (1961) 455-458.
    """

    distance: float
    kappa: float = 0.41
    constant: float = 5.0

    def __post_init__(self) -> None:
        for name in ("distance", "kappa", "constant"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0.0 < float(value) < float("inf"):
                raise SolverError(f"WallLaw: {name} is a positive number, not {value!r}")


EdgePatch = Boundary | WallLaw
"""Of conditions with a formula `Outflow` and `Symmetry` alone."""


@dataclass(frozen=True, eq=False)
class EdgeBoundary:
    """What holds at points of the boundary.

    Attributes
    ----------
    points : (k,)
        Where the velocity is not free.
    projection : (k, d, d)
        ``u = P u + given`` there: 0 where the velocity is given, ``1 - n n^T`` where it slides.
    given : (k, d)
        See `projection`.
    outlet : (n,) bool
        Points, of all, whose pressure is given.
    mirrors : (m,)
        Points in planes of symmetry.
    normals : (m, d, d)
        Unit normals of the planes there, perpendicular to each other, as many as there are; the rest is 0.
    images : (n,)
        How many times as much as is there a point has around it, with what is beyond these planes: 1, 2, 4 or 8.
    through
        ``integral u . n dA`` of the given velocities, and ``integral |u| dA`` of those that flow in.
    prescribed
        The patches at which the velocity is given.
    varying
        Of those whose velocity changes in time: where it is theirs, ``(k,)`` points each.
    """

    points: Index
    projection: Array
    given: Array
    outlet: npt.NDArray[np.bool_]
    mirrors: Index
    normals: Array
    images: Array
    through: tuple[float, float]
    prescribed: tuple[str, ...]
    varying: Mapping[str, Index]


def edge_boundary(
    patches: Mapping[str, PatchPoints], places: Array, boundaries: Mapping[str, EdgePatch]
) -> EdgeBoundary:
    """Return what the boundaries of all patches do to the points.

    Where patches meet, a given velocity goes before sliding, and the slower one of two given velocities before the
    other, one that stays before one that changes in time: an inflow or a lid does not move the wall beside it. Where
    two patches slide whose normals differ, the velocity is along both.

    Parameters
    ----------
    patches
        Points, areas and faces of each.
    places : (n, d)
        Of the points; m.
    boundaries
        Of each patch.

    Raises
    ------
    SolverError
        If a patch has no boundary, a boundary no patch, or a velocity does not fit.
    """
    for name in boundaries:
        if name not in patches:
            known = ", ".join(patches) or "none"
            raise SolverError(f"boundaries: no patch {name!r}{did_you_mean(name, patches)} (patches: {known})")
    n, d = places.shape
    held, given, speed = np.zeros(n, dtype=bool), np.zeros((n, d)), np.full(n, np.inf)
    outlet, normals = np.zeros(n, dtype=bool), np.zeros((n, d, d))
    rank, net, size = np.zeros(n, dtype=np.int64), 0.0, 0.0
    owner, names, changing = np.full(n, -1), list(patches), list[str]()
    planes, mirrored = np.zeros((n, d, d)), np.zeros(n, dtype=np.int64)
    for name, patch in patches.items():
        boundary = boundaries.get(name)
        points = patch.points
        if isinstance(boundary, Outflow):
            outlet[points] = True
        elif isinstance(boundary, Symmetry | WallLaw):
            _slide(normals, rank, points, patch.areas)
            if isinstance(boundary, Symmetry):
                _slide(planes, mirrored, points, patch.areas)
        elif isinstance(boundary, Boundary) and boundary.formula is None:
            faces = PatchPlaces(f"patch {name!r}", places[points], patch.areas, np.zeros(len(points)))
            values = rows_of(boundary, faces, d)
            new = np.linalg.norm(values, axis=1)
            if changes(boundary.prescribed):
                changing.append(name)
                new = new + _CHANGES
            slower = new < speed[points]
            held[points] = True
            given[points[slower]], speed[points[slower]] = values[slower], new[slower]
            owner[points[slower]] = names.index(name)
        else:
            wanted = "NoSlip(), WallLaw(...), Inflow(...), Outflow() or Symmetry()"
            raise SolverError(f"patch {name!r} has no boundary: give {wanted}, not {boundary!r}")
    prescribed = tuple(
        name for name in patches if isinstance(one := boundaries[name], Boundary) and one.formula is None
    )  # fmt: skip
    for name, patch in patches.items():
        if name in prescribed:
            net += float(np.einsum("ka,ka->", given[patch.points], patch.areas))
            size += float(np.linalg.norm(given[patch.points], axis=1) @ patch.size)
    projection = np.eye(d) - np.einsum("nka,nkb->nab", normals, normals)
    projection[held] = 0.0
    points, mirrors = np.flatnonzero(held | (rank > 0)), np.flatnonzero(mirrored)
    return EdgeBoundary(
        points, projection[points], given[points], outlet, mirrors, planes[mirrors],
        np.exp2(mirrored.astype(np.float64)), (net, size), prescribed,
        {name: np.flatnonzero(owner == names.index(name)) for name in changing},
    )  # fmt: skip


def _slide(normals: Array, rank: Index, points: npt.NDArray[np.int32], areas: Array) -> None:
    """Add the normals of a patch to those that its points have, less what they have in common."""
    d = areas.shape[1]
    new = areas / np.linalg.norm(areas, axis=1)[:, None]
    own = normals[points]
    new = new - np.einsum("kma,kmb,kb->ka", own, own, new)
    size = np.linalg.norm(new, axis=1)
    more = (size > _SAME) & (rank[points] < d)
    chosen = points[more]
    normals[chosen, rank[chosen]] = new[more] / size[more][:, None]
    rank[chosen] += 1
