"""Velocities in tables of case files: of the start, of what flows in, of walls that slide or turn; for all solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from fluxloom.app.cases.expressions import formula_check
from fluxloom.app.cases.flow_volumes import check_length
from fluxloom.app.cases.start_tables import StartTable
from fluxloom.app.tables import Table
from fluxloom.app.value_keys import AtStart, Given, GivenVector, StartVector
from fluxloom.core.errors import CaseError
from fluxloom.values.value import Value, value_of

__all__ = [
    "VELOCITY_KEYS", "Listed", "StartVelocityTable", "VelocityTable", "WallVelocityTable", "velocity_values",
]  # fmt: skip

VELOCITY_KEYS = ("velocity_x", "velocity_y", "velocity_z")

InTime = Annotated[str, AfterValidator(formula_check("t"))]

_AXES = 3


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, int | float | str) and not isinstance(given, bool) else given


Listed = Annotated[list[float], BeforeValidator(_listed)]
"""Numbers, or one alone."""
ListedInTime = Annotated[list[float | InTime], BeforeValidator(_listed)]
"""Numbers or formulas in t, or one alone."""


class VelocityTable(Table):
    """A velocity.

    Attributes
    ----------
    velocity
        A value a dimension: numbers, formulas in x, y, z and t, or tables.
    velocity_x, velocity_y, velocity_z
        Instead; zero by default.
    """

    velocity: GivenVector = Field(default=[])
    velocity_x: Given = 0.0
    velocity_y: Given = 0.0
    velocity_z: Given = 0.0

    def given_velocity(self) -> list[str]:
        """Return the keys of the velocity that are given; raise `ValueError` where they say it twice."""
        return _once(self, [*self.changed(("velocity",)), *self.changed(VELOCITY_KEYS)])


class StartVelocityTable(StartTable):
    """The velocity of ``[initial]``.

    Attributes
    ----------
    velocity
        A value a dimension: numbers, formulas in x, y and z, or tables.
    velocity_x, velocity_y, velocity_z
        Instead; zero by default.
    """

    velocity: StartVector = Field(default=[])
    velocity_x: AtStart = 0.0
    velocity_y: AtStart = 0.0
    velocity_z: AtStart = 0.0

    def given_velocity(self) -> list[str]:
        """Return the keys of the velocity that are given; raise `ValueError` where they say it twice."""
        return _once(self, [*self.changed(("velocity",)), *self.changed(VELOCITY_KEYS)])


def velocity_texts(table: Table, key: str, d: int) -> tuple[str, ...]:
    """Return the formulas of a velocity, ``(d,)`` of them; those of a spin are ``omega x (x - centre)``.

    Raises
    ------
    CaseError
        If there are more than dimensions, or a spin does not fit them.
    """
    for name in table.changed(VELOCITY_KEYS[d:]):
        raise CaseError(f"{key}.{name}: the mesh has {d} dimensions; leave it out")
    if not isinstance(table, MotionTable) or not table.spin:
        return tuple(getattr(table, name) or "0" for name in VELOCITY_KEYS[:d])
    if len(table.spin) > 1 and d < _AXES:
        raise CaseError(f"{key}.spin: a mesh with {d} dimensions turns about z alone: one number is wanted")
    if table.spin_centre and len(table.spin_centre) != d:
        raise CaseError(f"{key}.spin_centre: {d} numbers are wanted, not {len(table.spin_centre)}")
    about = [0.0, 0.0, *table.spin] if len(table.spin) == 1 else table.spin
    at = [*(table.spin_centre or [0.0] * d), 0.0][:_AXES]
    arms = [f"({name} - ({place!r}))" if k < d else "0" for k, (name, place) in enumerate(zip("xyz", at, strict=True))]
    rates = [f"({rate})" if isinstance(rate, str) else f"({rate!r})" for rate in about]
    turned = [
        f"{rates[(k + 1) % 3]} * {arms[(k + 2) % 3]} - {rates[(k + 2) % 3]} * {arms[(k + 1) % 3]}" for k in range(_AXES)
    ]
    return tuple(turned[:d])


def velocity_values(table: Table, key: str, d: int) -> tuple[Value, ...]:
    """Return the components of the velocity of a table as values in space and time.

    Raises
    ------
    CaseError
        As `velocity_texts`; for a formula in z on a mesh of two dimensions.
    """
    return tuple(value_of(one) for one in velocity_texts(table, key, d))
