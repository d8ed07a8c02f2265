"""The lid-driven cavity of tetrahedra, for solvers with values at points: where which is given, what is compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.data.ragged import IntArray
from fluxloom_lab.problems.lid_cavity import LID

__all__ = ["MIDDLE", "Profiles", "TetraCavity", "profile_points"]

Array = npt.NDArray[np.float64]

MIDDLE = "middle"
"""The patch in the middle of the lid in `TetraCavity.divided`."""

SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")
SAMPLES = 40
"""Points on each centre line, in the middle of equal intervals."""

_MIDDLE = 0.25
_ROUND = 1e-9


@dataclass(frozen=True)
class Profiles:
    """What flows in the cavity are compared by.

    Attributes
    ----------
    u, v : (n,)
        x velocity at (1/2, y, 1/2), y velocity at (x, 1/2, 1/2), at the points of `profile_points`.
    drag
        Force on the lid along x, by friction alone, for a density of 1; negative, as the fluid holds the lid back. It
        grows without bound as the mesh becomes finer, as the velocity jumps at the rim.
    middle_drag
        The same on the triangles of `TetraCavity.in_the_middle`, away from the rim.
    """

    u: Array
    v: Array
    drag: float
    middle_drag: float

    def differences(self, other: Profiles) -> dict[str, float]:
        """Return how far others are from these: largest and root mean square difference of both profiles, and drags."""
        apart = {"u": other.u - self.u, "v": other.v - self.v}
        found = {f"{name}_max": float(np.abs(values).max()) for name, values in apart.items()}
        found |= {f"{name}_l2": float(np.sqrt(np.mean(values**2))) for name, values in apart.items()}
        found["drag_percent"] = 100.0 * (other.drag / self.drag - 1.0)
        return found | {"middle_drag_percent": 100.0 * (other.middle_drag / self.middle_drag - 1.0)}


def profile_points(samples: int = SAMPLES) -> Array:
    """Return the points of the two lines, first that along y, then that along x, ``(2 n, 3)``."""
    along = (np.arange(samples) + 0.5) / samples
    points = np.full((2, samples, 3), 0.5)
    points[0, :, 1], points[1, :, 0] = along, along
    return points.reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class TetraCavity:
    """The unit cube of tetrahedra under a lid.

    Points on the lid move, but for those on its rim, which rest as all other walls do: nothing flows through the walls
    beside the lid. The pressure is nothing at one point, that nearest to the corner (0, 0, 0).

    Parameters
    ----------
    mesh
        Of tetrahedra alone, with patches ``xmin`` to ``zmax``.

    Raises
    ------
    CaseError
        If it has other cells or patches, is not the unit cube, or too coarse.
    """

    mesh: MeshData

    def __post_init__(self) -> None:
        mesh, path = self.mesh, self.mesh.source.path
        if set(mesh.cells) != {"tetra"} or mesh.polyhedra is not None:
            found = ", ".join(mesh.cell_counts)
            raise CaseError(f"{path}: the cavity wants a mesh of tetrahedra alone, this one has: {found}")
        if set(mesh.patches) != set(SIDES):
            found = ", ".join(mesh.patches) or "none"
            raise CaseError(f"{path}: the cavity wants the patches {', '.join(SIDES)}, this mesh has: {found}")
        bounds = np.array([mesh.points.min(axis=0), mesh.points.max(axis=0)])
        if not np.allclose(bounds, [[0.0] * 3, [1.0] * 3], atol=_ROUND):
            raise CaseError(f"{path}: the cavity is the unit cube, this mesh goes from {bounds[0]} to {bounds[1]}")
        inner = self.in_the_middle(mesh.patch(LID).blocks["triangle"])
        if not (inner.any() and len(self._middle_points())):
            raise CaseError(f"{path}: the mesh is too coarse: the lid has no triangle or point in its middle")

    @property
    def cells(self) -> IntArray:
        """Points of the tetrahedra, ``(n, 4)``."""
        return self.mesh.cells["tetra"]

    def faces(self) -> IntArray:
        """Return the points of all boundary triangles, side by side, ``(m, 3)``."""
        return np.concatenate([self.mesh.patches[side].blocks["triangle"] for side in SIDES])

    @cached_property
    def moving(self) -> IntArray:
        """Points that move with the lid, ascending."""
        return np.setdiff1d(self.mesh.patch(LID).nodes(), self.resting)

    @cached_property
    def resting(self) -> IntArray:
        """Points at rest, the rim of the lid among them, ascending."""
        return np.unique(np.concatenate([self.mesh.patch(side).nodes() for side in SIDES if side != LID]))

    @cached_property
    def pinned(self) -> int:
        """The point where the pressure is nothing."""
        return int(np.argmin(np.einsum("nd,nd->n", self.mesh.points, self.mesh.points)))

    def in_the_middle(self, triangles: IntArray) -> npt.NDArray[np.bool_]:
        """Return which triangles of the lid have their centre in the square of half its sides in its middle."""
        centres = self.mesh.points[triangles].mean(axis=1)
        return (np.abs(centres[:, [0, 2]] - 0.5) < _MIDDLE).all(axis=1)

    def divided(self) -> MeshData:
        """Return the mesh with the triangles in the middle of the lid as a patch of their own, `MIDDLE`."""
        lid = self.mesh.patch(LID).blocks["triangle"]
        inner = self.in_the_middle(lid)
        parts = {LID: PatchFaces({"triangle": lid[~inner]}), MIDDLE: PatchFaces({"triangle": lid[inner]})}
        return replace(self.mesh, patches={**self.mesh.patches, **parts})

    def step(self, courant: float) -> float:
        """Return ``courant`` times the cube root of the mean volume of a cell, for the lid's velocity of 1."""
        return courant * len(self.cells) ** (-1.0 / 3.0)

    def profiles(self, velocity: Array, viscosity: float) -> Profiles:
        """Return what a flow with values at the points is compared by, linear in each tetrahedron.

        ::

            F = -nu sum A (grad u + grad u^T) n

        over the triangles of the lid, with the outward normal ``n`` and the slopes of the tetrahedron behind each.

        Parameters
        ----------
        velocity : (points, 3)
        viscosity
            Kinematic.

        Raises
        ------
        CaseError
            If a point of the lines is in no tetrahedron.
        """
        found, shares = self._located(profile_points())
        along_y, along_x = np.split(np.einsum("nk,nkd->nd", shares, velocity[self.cells[found]]), 2)
        behind, triangles, areas = self._behind_the_lid()
        corners, values = self.mesh.points[self.cells[behind]], velocity[self.cells[behind]]
        slope = np.linalg.solve(corners[:, 1:] - corners[:, :1], values[:, 1:] - values[:, :1])
        drag = -viscosity * (slope[:, 1, 0] + slope[:, 0, 1]) * areas
        middle = float(drag[self.in_the_middle(triangles)].sum())
        return Profiles(along_y[:, 0], along_x[:, 1], float(drag.sum()), middle)

    def held(self, reaction: Array) -> tuple[float, float]:
        """Return the forces along x that hold the lid and its middle, of the forces at the points of a finite element.

        ::

            F = sum R_i,   F_middle = A_middle sum R_i / sum A_i

        over the points that move, and over those in the middle, each with a third of the triangles of the lid about
        it. These are consistent with the equations, and of higher order than the slopes that `profiles` has.

        Parameters
        ----------
        reaction : (points, 3)
        """
        _, triangles, areas = self._behind_the_lid()
        share = np.bincount(triangles.reshape(-1), np.repeat(areas / 3.0, 3), minlength=self.mesh.n_points)
        area, middle = areas[self.in_the_middle(triangles)].sum(), self._middle_points()
        force = area * reaction[middle, 0].sum() / share[middle].sum()
        return float(reaction[self.moving, 0].sum()), float(force)

    def _middle_points(self) -> IntArray:
        """Return the points in the middle of the lid."""
        places = self.mesh.points[self.moving]
        return self.moving[(np.abs(places[:, [0, 2]] - 0.5) < _MIDDLE).all(axis=1)]

    def _located(self, places: Array) -> tuple[IntArray, Array]:
        """Return the tetrahedron that each place is in, and its barycentric coordinates."""
        points = self.mesh.points
        lower, upper = points[self.cells].min(axis=1), points[self.cells].max(axis=1)
        chosen, shares = np.empty(len(places), dtype=np.int32), np.empty((len(places), 4))
        for k, place in enumerate(places):
            near = np.flatnonzero(((lower <= place + _ROUND) & (upper >= place - _ROUND)).all(axis=1))
            corners = points[self.cells[near]]
            edges = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
            inner = np.linalg.solve(edges, (place - corners[:, 0])[..., None])[..., 0]
            every = np.concatenate([1.0 - inner.sum(axis=1, keepdims=True), inner], axis=1)
            best = int(np.argmax(every.min(axis=1))) if len(near) else -1
            if best < 0 or every[best].min() < -_ROUND:
                raise CaseError(f"{self.mesh.source.path}: the point {place} is in no tetrahedron of the mesh")
            chosen[k], shares[k] = near[best], every[best]
        return chosen, shares

    def _behind_the_lid(self) -> tuple[npt.NDArray[np.int64], IntArray, Array]:
        """Return the tetrahedra behind the lid, their triangles there, and the areas of these."""
        on_lid = np.zeros(self.mesh.n_points, dtype=bool)
        on_lid[self.mesh.patch(LID).nodes()] = True
        behind = np.flatnonzero(on_lid[self.cells].sum(axis=1) == 3)
        rows = self.cells[behind]
        triangles = rows[on_lid[rows]].reshape(-1, 3)
        a, b, c = self.mesh.points[triangles].transpose(1, 0, 2)
        return behind, triangles, 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
