"""What happens at the sides of a lattice Boltzmann flow, in physical units, x first.

On the lattice each is a condition of `fluxloom.lbm.boundaries`, whose documentation says how it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.flows.lattice.given.units import FASTEST, SOUND, Units
from fluxloom.flows.naming import KeyedError, named
from fluxloom.lbm import boundaries as lbm
from fluxloom.lbm.boundaries.in_time import InTime
from fluxloom.lbm.boundaries.openings import AntiBounceBack, PressureScheme, RegularisedCells, VelocityScheme
from fluxloom.values.value import Value, value_of, vector_of

__all__ = [
    "Given", "Inflow", "NoSlip", "Outflow", "Pressure", "PressureSide", "Side", "Slip", "Sponge", "Velocity",
    "VelocityInTime", "density_at", "vector", "velocity_at",
]  # fmt: skip

Array = npt.NDArray[np.float64]

Given: TypeAlias = float | str | Value | Callable[..., npt.ArrayLike]
"""A number, a formula in x, y, z and t, a table (`fluxloom.values.tables`), or a function of places ``(n, d)``, or of
places and a time, that returns ``(n,)``."""

Velocity: TypeAlias = Sequence[Given] | Callable[..., npt.ArrayLike]
"""One a dimension; or a function of places, or of places and a time, that returns ``(n, d)``."""

Pressure: TypeAlias = Given
"""Over that of density one, divided by the density."""


class Side(Protocol):
    """What happens at a side of the box."""

    def on_lattice(self, units: Units, key: str) -> lbm.Condition | lbm.Sponge:
        """Return the condition in cells and steps; ``key`` is what errors call it.

        Raises
        ------
        SolverError
            If it does not fit the dimensions, or a velocity is too fast for the lattice.
        """
        ...


@dataclass(frozen=True)
class NoSlip:
    """A wall, half a cell beyond the outermost cells; its force is measured.

    Attributes
    ----------
    velocity
        Along itself; empty: at rest.
    torque
        Whether the torque of the flow is measured too.
    """

    velocity: Velocity = ()
    torque: bool = False

    def on_lattice(self, units: Units, key: str) -> lbm.Condition:
        """Return the condition in cells and steps."""
        moves = len_of(self.velocity) > 0
        center = (-0.5,) * units.dimension if self.torque else None  # the lower corner of the box
        return lbm.Wall(velocity_at(self.velocity, units, key) if moves else None, measure=True, center=center)


@dataclass(frozen=True)
class Slip:
    """A plane of symmetry."""

    def on_lattice(self, units: Units, key: str) -> lbm.Condition:
        """Return the condition in cells and steps."""
        return lbm.Slip()


@dataclass(frozen=True)
class Inflow:
    """A side through which fluid flows with a known velocity.

    Attributes
    ----------
    velocity
        Of the fluid.
    scheme
        As in `fluxloom.lbm.boundaries.Velocity`.
    ramp
        The time in which it grows from zero, smoothly; 0: it is there from the first step.
    """

    velocity: Velocity
    scheme: VelocityScheme = RegularisedCells()
    ramp: float = 0.0

    def on_lattice(self, units: Units, key: str) -> lbm.Condition:
        """Return the condition in cells and steps."""
        steps = max(1, round(self.ramp / units.dt)) if self.ramp else 0
        return lbm.Velocity(velocity_at(self.velocity, units, key), self.scheme, steps)


@dataclass(frozen=True)
class PressureSide:
    """A side on which the pressure is known.

    Attributes
    ----------
    pressure
        Over that of density one, divided by the density. One number is that in the middle of the side: under a uniform
        force it goes on along the side as in fluid at rest.
    scheme
        As in `fluxloom.lbm.boundaries.Pressure`.
    """

    pressure: Pressure = 0.0
    scheme: PressureScheme = AntiBounceBack()

    def on_lattice(self, units: Units, key: str) -> lbm.Condition:
        """Return the condition in cells and steps."""
        return lbm.Pressure(density_at(self.pressure, units, key), self.scheme)


@dataclass(frozen=True)
class Outflow:
    """A side through which fluid leaves, convective."""

    def on_lattice(self, units: Units, key: str) -> lbm.Condition:
        """Return the condition in cells and steps."""
        return lbm.Outflow()


@dataclass(frozen=True)
class Sponge:
    """A side, and a layer along it in which waves and vortices fade.

    Attributes
    ----------
    side
        What happens at the side itself.
    width
        Of the layer.
    strength
        Share of the distance to the state given that is made good in a step, at the side itself.
    velocity
        To which the flow is drawn; empty: only the pressure is, to that of density one, and vortices do not fade.
    """

    side: Side
    width: float
    strength: float = 0.1
    velocity: Sequence[float] = ()

    def on_lattice(self, units: Units, key: str) -> lbm.Sponge:
        """Return the condition in cells and steps."""
        side = self.side.on_lattice(units, key)
        with named(f"{key}.sponge"):
            if isinstance(side, lbm.Sponge):
                raise SolverError("a side has one sponge; give a wider one")
            velocity = vector("velocity", self.velocity, units, units.speed) if len(self.velocity) else None
            return lbm.Sponge(side, self.width / units.dx, self.strength, velocity=velocity)


def vector(name: str, values: Sequence[float], units: Units, scale: float) -> tuple[float, ...]:
    """Return components divided by a scale, slowest axis first; zeros for none."""
    if len(values) not in (0, units.dimension):
        raise KeyedError(name, f"{units.dimension} numbers are wanted, one a dimension, not {len(values)}")
    return units.vector(values, scale)


def velocity_at(given: Velocity, units: Units, key: str) -> tuple[float, ...] | InTime:
    """Return a velocity on the lattice: a number an axis, slowest first, or values in space and time."""
    if not len_of(given):
        return units.vector((), units.speed)
    values = vector_of(given, units.dimension, f"{key}.velocity")
    if not any(value.in_space or value.in_time for value in values):
        nowhere = np.zeros((1, units.dimension))
        numbers = [float(value.at(nowhere, 0.0, f"{key}.velocity")[0]) for value in values]
        found = units.vector(numbers, units.speed)
        slow(np.array(found), key)
        return found
    return VelocityInTime(values, key, units.dx, units.dt, units.lower, 1.0, units.speed)


def len_of(given: Velocity) -> int:
    """Return the number of components of a velocity; of a function 1."""
    return len(given) if isinstance(given, Sequence) else 1


class VelocityInTime(InTime):
    """A velocity in space and time, which is not too fast."""

    def at(self, positions: Array, time: float) -> Array:
        """Return it on the lattice."""
        return slow(super().at(positions, time), self.name)


def density_at(given: Pressure, units: Units, key: str) -> float | InTime:
    """Return the density that a pressure means, ``rho = 1 + 3 p / U^2``: a number, or values in space and time."""
    value = value_of(given, f"{key}.pressure")
    if not (value.in_space or value.in_time):
        return 1.0 + units.excess(float(value.at(np.zeros((1, units.dimension)), 0.0, f"{key}.pressure")[0]))
    return InTime((value,), f"{key}.pressure", units.dx, units.dt, units.lower, 3.0, units.speed**2, 1.0)


def slow(velocity: Array, key: str) -> Array:
    """Return velocities on the lattice; ``key`` is what errors call them.

    Raises
    ------
    SolverError
        If one is too fast for it.
    """
    most = float(np.linalg.norm(velocity, axis=-1).max(initial=0.0)) / SOUND
    if most > FASTEST:
        raise KeyedError(
            key, f"the velocity has a Mach number of {most:.3g}, and the lattice takes {FASTEST} at most: lower "
            "time.lattice_velocity"
        )  # fmt: skip
    return velocity
