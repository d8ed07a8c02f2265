"""Boundary conditions of incompressible flow, and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import is_ours
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.given import (
    ConditionTable,
    FaceCondition,
    Given,
    PatchPlaces,
    condition_table,
    moves,
    rows_of,
    sliding,
)
from fluxloom.kernel.frontend import func
from fluxloom.values.value import has_values

__all__ = ["Boundary", "FlowConditions", "Inflow", "NoSlip", "Outflow", "Symmetry", "given_gradients", "moving_walls"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_STEP = 1e-2
"""Of differences, as a part of the root of the area of a face."""
_NOTHING = 1e-9
"""Part of a velocity that is round-off."""


class Boundary(FaceCondition, what="boundary condition", group="fluxloom.incompressible_boundaries"):
    """What happens at a patch; a member is a frozen dataclass.

    Either `rows` gives the velocity there, or a ``__call__`` that is a ``@func`` makes it of that of the cell behind.
    It returns one component, of the number ``given`` that `rows` has for it, the component ``inside`` of the velocity
    behind, that of the outward unit ``normal``, and what comes ``through``, the velocity behind times the normal.
    """

    if TYPE_CHECKING:  # a member that gives the velocity has none

        def __call__(self, given: Any, inside: Any, normal: Any, through: Any) -> Any: ...  # noqa: D102

    open: ClassVar[bool] = False
    """Whether the pressure is zero there; elsewhere it is that of the cell behind, and a formula lets nothing pass."""
    mirror: ClassVar[bool] = False
    """Whether the flow goes on beyond it, mirrored."""
    wall: ClassVar[bool] = False
    """Whether nothing passes."""


@dataclass(frozen=True)
class NoSlip(Boundary):
    """A wall, at rest or sliding along itself.

    Attributes
    ----------
    velocity
        Of the wall, ``(d,)`` numbers, or values as `fluxloom.fv.given.Given` has them, of which what is along the
        normals of its faces is left out; at rest by default.
    """

    velocity: Given = ()
    wall = True

    @property
    def prescribed(self) -> Given | None:
        """Its velocity."""
        return self.velocity

    @property
    def moves(self) -> bool:
        """Whether it is not at rest."""
        return moves(self.velocity)

    def rows(self, faces: PatchPlaces) -> Array:
        """Return the velocity of each face."""
        if not np.size(self.velocity):  # pyright: ignore[reportArgumentType]
            return np.zeros_like(faces.places)
        found = faces.vectors(self.velocity)
        numbers = not (callable(self.velocity) or has_values(self.velocity))
        return found if numbers else sliding(faces.what, found, faces.areas)


def moving_walls(boundaries: Mapping[str, Any], patches: Iterable[str]) -> list[str]:
    """Return those of some patches that are walls which move."""
    return [name for name in patches if isinstance(wall := boundaries.get(name), NoSlip) and wall.moves]


@dataclass(frozen=True)
class Inflow(Boundary):
    """A prescribed velocity.

    Attributes
    ----------
    velocity
        ``(d,)`` numbers or values, see `fluxloom.fv.given.Given`, or a function of the places ``(n, d)``, or of these
        and a time, that returns ``(n, d)``.
    """

    velocity: Given

    @property
    def prescribed(self) -> Given | None:
        """The velocity."""
        return self.velocity

    def rows(self, faces: PatchPlaces) -> Array:
        """Return the velocity of each face."""
        return faces.vectors(self.velocity)


@dataclass(frozen=True)
class Outlet(Boundary):
    """The formula of outflows: the velocity is that of the cell behind."""

    open = True

    @func
    def __call__(self, given, inside, normal, through):
        """Return that of the cell behind, ``u_b = u``."""
        return inside


@dataclass(frozen=True)
class Outflow(Boundary):
    """The pressure is given, the velocity that of the cell behind.

    Attributes
    ----------
    pressure
        Kinematic: a number or a value, see `fluxloom.fv.given.Given`; zero by default.
    """

    pressure: Given = 0.0
    open = True

    @property
    def formula(self) -> Boundary:
        """That of all outflows: what the pressure is there is no matter of the velocity."""
        return Outlet()


@dataclass(frozen=True)
class Symmetry(Boundary):
    """Nothing passes, nothing changes along the normal: a plane of symmetry, or a wall without friction."""

    mirror = True
    wall = True

    @func
    def __call__(self, given, inside, normal, through):
        """Return what is along the face, ``u_b = u - (u . n) n``."""
        return inside - through * normal


@dataclass(frozen=True, eq=False)
class FlowConditions(ConditionTable):
    """What happens to the velocity at boundary elements; ``given`` is ``(n, d)``."""

    formulas: tuple[Boundary, ...]

    @classmethod
    def of(cls, volumes: ControlVolumes, boundaries: Mapping[str, Boundary]) -> FlowConditions:
        """Return those of some boundaries, see `condition_table`; formulas of others are tried."""
        for name, one in boundaries.items():
            if isinstance(one, Boundary) and one.formula is None and (one.open or one.mirror):
                raise SolverError(f"patch {name!r}: {type(one).__name__} is open, or mirrors: give it a formula")
        known = "NoSlip(), Inflow(...), Outflow() or Symmetry()"
        found = condition_table("", volumes, boundaries, Boundary, known, volumes.dimension)
        for k, formula in enumerate(found.formulas):
            if not (is_ours(formula) or formula.open) and (found.kinds == k).any():
                face = int(np.flatnonzero(found.kinds == k)[0])
                _try_closed(formula, found.given[face], volumes.normals[volumes.interior + face])
        return cls(found.formulas, found.kinds, found.given, found.varies)

    @property
    def open(self) -> Mask:
        """Elements at which the pressure is zero, ``(n,)``."""
        return self.where(formula.open for formula in self.formulas)

    @property
    def mirrored(self) -> Mask:
        """Elements beyond which the flow goes on, mirrored, ``(n,)``."""
        return self.where(formula.mirror for formula in self.formulas)


def _try_closed(formula: Boundary, given: Array, normal: Array) -> None:
    """Raise `SolverError` where a formula lets the flow pass a boundary that is not open."""
    inside = np.array([0.7, -0.4, 0.2])[: normal.size]
    through = float(inside @ normal)
    at = [float(formula(g, u, n, through)) for g, u, n in zip(given, inside, normal, strict=True)]
    if not abs(float(np.dot(at, normal))) <= _NOTHING:
        raise SolverError(
            f"{type(formula).__name__}: of the velocity {inside.tolist()} behind a face with the normal "
            f"{normal.tolist()} it makes {at}, which passes: return what is along the face, or say open = True"
        )


def given_gradients(volumes: ControlVolumes, boundaries: Mapping[str, Boundary], chosen: Index) -> Array:
    """Return the derivatives of velocities that are given, ``du_k / dx_n``, ``(boundary elements, d, d)``.

    Central differences, of some boundary elements ``(m,)``, numbers from 0 on; zero elsewhere. They are exact for
    linear and quadratic functions of the place.
    """
    d, cells = volumes.dimension, volumes.cells
    found = np.zeros((volumes.elements - cells, d, d))
    for name, elements in volumes.patches.items():
        mine = chosen[(chosen >= elements.start - cells) & (chosen < elements.stop - cells)]
        if boundaries[name].formula is not None or not mine.size:
            continue
        outer = volumes.interior + mine
        centres, step = volumes.centres[cells + mine], _STEP * np.sqrt(volumes.area[outer])
        for n in range(d):
            away = np.zeros_like(centres)
            away[:, n] = step
            ends = [
                rows_of(boundaries[name], PatchPlaces(
                    f"patch {name!r}", centres + way, volumes.areas[outer], volumes.spacing[outer]), d)
                for way in (away, -away)
            ]  # fmt: skip
            found[mine, :, n] = (ends[0] - ends[1]) / (2.0 * step)[:, None]
    return found
