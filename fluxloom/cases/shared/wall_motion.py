"""Velocities in tables of case files: at the start, of what flows in, of walls that slide or turn; of all solvers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fluxloom.cases.files.strategy_tables import (
    AtStart,
    GivenOrNone,
    GivenVector,
    StartVector,
    Table,
    Vector,
    formula_check,
)
from fluxloom.cases.shared.mesh import check_length
from fluxloom.cases.shared.start_tables import StartTable
from fluxloom.core.errors import CaseError
from fluxloom.values.value import Formula, Value

__all__ = ["VELOCITY_KEYS", "Listed", "StartVelocityTable", "VelocityTable", "WallVelocityTable", "velocity_values"]

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
    """A table with a velocity, which is given once.

    Attributes
    ----------
    velocity
        A value a dimension: numbers, formulas in x, y, z and t, or tables.
    velocity_x, velocity_y, velocity_z
        Instead of ``velocity``, component by component; those that are left out are zero.
    """

    ways: ClassVar[tuple[str, ...]] = ("velocity", *VELOCITY_KEYS)
    """Keys that give it."""

    velocity: GivenVector = Field(default=[])
    velocity_x: GivenOrNone = None
    velocity_y: GivenOrNone = None
    velocity_z: GivenOrNone = None

    def given_velocity(self) -> list[str]:
        """Return the keys by which it is given."""
        return self.changed(self.ways)

    @model_validator(mode="after")
    def _one_velocity(self) -> VelocityTable:
        given = self.given_velocity()
        if whole := next((key for key in ("velocity", "spin") if key in given and len(given) > 1), ""):
            raise ValueError(f"give only one of {whole} and {next(key for key in given if key != whole)}")
        return self


class StartVelocityTable(VelocityTable, StartTable):
    """``[initial]`` of a solver whose flow starts with a velocity.

    Attributes
    ----------
    velocity
        A value a dimension: numbers, formulas in x, y and z, or tables.
    """

    velocity: StartVector = Field(default=[])
    velocity_x: AtStart = None
    velocity_y: AtStart = None
    velocity_z: AtStart = None


class WallVelocityTable(VelocityTable):
    """The velocity of a table ``[boundary.PATCH]``.

    Attributes
    ----------
    velocity
        Of a wall that moves along itself, or of what flows in, a value a dimension: numbers, formulas in x, y, z and t,
        or tables.
    spin
        Instead of ``velocity``, angular velocity of a wall that turns, rad/s: a number or a formula in t, about z, or
        in three dimensions one about each axis.
    spin_centre
        A place on the axis; the origin by default.
    """

    ways = ("velocity", *VELOCITY_KEYS, "spin")

    spin: ListedInTime = Field(default=[])
    spin_centre: Vector = Field(default=[])

    @model_validator(mode="after")
    def _sound_spin(self) -> WallVelocityTable:
        if self.spin and len(self.spin) not in (1, _AXES):
            raise ValueError(f"spin: a number, or one about each of three axes is wanted, not {len(self.spin)}")
        if self.spin_centre and not self.spin:
            raise ValueError("spin_centre is there but spin is not: give it, or leave spin_centre out")
        return self

    def check_velocity(self, kind: str, inflow: str) -> None:
        """Raise `ValueError` unless it fits the type of a boundary, of which ``inflow`` needs one and walls may."""
        given = self.given_velocity()
        if given and kind not in ("wall", inflow):
            raise ValueError(f'type = "{kind}" has no {given[0]}')
        if kind == inflow and self.spin:
            raise ValueError('spin is of type = "wall": give velocity = [...], or components as velocity_x')
        if kind == inflow and not given:
            raise ValueError("give velocity = [...], or components as velocity_x")


def velocity_values(table: VelocityTable, key: str, d: int) -> tuple[float | Value, ...]:
    """Return the velocity of a table, ``(d,)`` numbers or values in space and time; empty: none is given.

    That of a spin is ``omega x (x - centre)``.

    Parameters
    ----------
    table, key
        The table, and what it is called in the file.
    d
        Dimensions of the mesh.

    Raises
    ------
    CaseError
        If it has others than as many components, or a spin does not fit them.
    """
    check_length(f"{key}.velocity", len(table.velocity), d)
    for name in table.changed(VELOCITY_KEYS[d:]):
        raise CaseError(f"{key}.{name}: the mesh has {d} dimensions; leave it out")
    if isinstance(table, WallVelocityTable) and table.spin:
        return _turning(table, key, d)
    if table.velocity or not table.given_velocity():
        return tuple(table.velocity)
    parts = [getattr(table, name) for name in VELOCITY_KEYS[:d]]
    return tuple(0.0 if part is None else part for part in parts)


def _turning(table: WallVelocityTable, key: str, d: int) -> tuple[Value, ...]:
    """Return the velocity of a spin."""
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
    return tuple(Formula(text) for text in turned[:d])
