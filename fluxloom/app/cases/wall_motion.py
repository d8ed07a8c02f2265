"""Velocities of walls that turn or slide: keys that tables of boundaries of all solvers have in common."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BeforeValidator, Field

from fluxloom.app.strategy_tables import Table, formula_check
from fluxloom.core.errors import CaseError
from fluxloom.values.value import Value, value_of

__all__ = [
    "VELOCITY_KEYS", "Listed", "MotionTable", "velocity_texts", "velocity_values",
]  # fmt: skip

Array = npt.NDArray[np.float64]

VELOCITY_KEYS = ("velocity_x", "velocity_y", "velocity_z")

InSpace = Annotated[str, AfterValidator(formula_check("x", "y", "z"))]
InSpaceAndTime = Annotated[str, AfterValidator(formula_check("x", "y", "z", "t"))]
InTime = Annotated[str, AfterValidator(formula_check("t"))]

_AXES = 3


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, int | float | str) and not isinstance(given, bool) else given


Listed = Annotated[list[float], BeforeValidator(_listed)]
"""Numbers, or one alone."""
ListedInTime = Annotated[list[float | InTime], BeforeValidator(_listed)]
"""Numbers or formulas in t, or one alone."""


class MotionTable(Table):
    """How a wall of a table ``[boundary.PATCH]`` moves along itself.

    Attributes
    ----------
    velocity_x, velocity_y, velocity_z
        Formulas in x, y, z and t; zero by default.
    spin
        Angular velocity of a wall that turns, rad/s: a number or a formula in t, about z, or in three dimensions one
        about each axis.
    spin_centre
        A place on the axis; the origin by default.
    """

    velocity_x: InSpaceAndTime = ""
    velocity_y: InSpaceAndTime = ""
    velocity_z: InSpaceAndTime = ""
    spin: ListedInTime = Field(default=[])
    spin_centre: Annotated[list[float], Field(max_length=3)] = Field(default=[])

    def motion(self) -> tuple[str, ...]:
        """Return the keys that are given, but for ``velocity``; raise `ValueError` where they do not fit each other."""
        formulas = tuple(self.changed(VELOCITY_KEYS))
        if self.spin and len(self.spin) not in (1, _AXES):
            raise ValueError(f"spin: a number, or one about each of three axes is wanted, not {len(self.spin)}")
        if self.spin_centre and not self.spin:
            raise ValueError("spin_centre is there but spin is not: give it, or leave spin_centre out")
        if self.spin and formulas:
            raise ValueError(f"give only one of spin and {formulas[0]}")
        return (*formulas, *(("spin",) if self.spin else ()))


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
