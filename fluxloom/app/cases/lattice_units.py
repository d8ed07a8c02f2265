"""Units of case files of lattice Boltzmann flow, and those of the lattice: cells, steps, density one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.core.errors import CaseError

__all__ = ["FASTEST", "SOUND", "Units", "units_of"]

Array = npt.NDArray[np.float64]

SOUND = 1.0 / sqrt(3.0)
"""Speed of sound on the lattice."""

FASTEST = 0.3
"""Largest Mach number: beyond it the flow is not weakly compressible."""

_VELOCITY = 0.05


@dataclass(frozen=True)
class Units:
    """What a cell and a step are.

    Attributes
    ----------
    dx, dt
        Size of a cell, length of a step.
    lower
        The lower corner of the box, x first.
    density
        Of the fluid.
    viscosity
        Kinematic, of the case.
    velocity, length
        Of reference.
    """

    dx: float
    dt: float
    lower: tuple[float, ...]
    density: float
    viscosity: float
    velocity: float
    length: float

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return len(self.lower)

    @property
    def speed(self) -> float:
        """A cell a step."""
        return self.dx / self.dt

    @property
    def force(self) -> float:
        """The force of one on the lattice; in the plane a unit of depth."""
        return self.density * self.dx ** (self.dimension + 1) / self.dt**2

    @property
    def lattice_viscosity(self) -> float:
        """In cells squared a step."""
        return self.viscosity * self.dt / self.dx**2

    @property
    def relaxation(self) -> float:
        """Relaxation time of the stresses, in steps."""
        return 3.0 * self.lattice_viscosity + 0.5

    @property
    def mach(self) -> float:
        """Mach number of the reference velocity."""
        return self.velocity / self.speed / SOUND

    def place(self, point: Sequence[float]) -> tuple[float, ...]:
        """Return a point as the lattice has it: slowest axis first, the centre of the first cell at zero."""
        return tuple((x - low) / self.dx - 0.5 for x, low in zip(point, self.lower, strict=True))[::-1]

    def points(self, places: Array) -> tuple[Array, ...]:
        """Return x, y and z of places ``(n, d)`` on the lattice."""
        return tuple((places[:, -1 - k] + 0.5) * self.dx + low for k, low in enumerate(self.lower))

    def vector(self, values: Sequence[float], scale: float) -> tuple[float, ...]:
        """Return components divided by a scale, slowest axis first; zeros for none."""
        return tuple(value / scale for value in values)[::-1] or (0.0,) * self.dimension

    def excess(self, pressure: Array) -> Array:
        """Return the density less one for a kinematic pressure."""
        return 3.0 * pressure / self.speed**2


def units_of(case: LatticeCase) -> Units:
    """Return the units of a case.

    Raises
    ------
    CaseError
        If the reference velocity is too fast for the lattice.
    """
    reference, time, dx = case.reference, case.time, case.mesh.cell
    dt = time.dt or (time.lattice_velocity or time.mach * SOUND or _VELOCITY) * dx / reference.velocity
    viscosity = case.fluid.viscosity or reference.velocity * reference.length / case.fluid.reynolds
    units = Units(dx, dt, case.mesh.lower, case.fluid.density, viscosity, reference.velocity, reference.length)
    if units.mach > FASTEST:
        raise CaseError(
            f"time: the Mach number of the reference velocity is {units.mach:.3g}, and the lattice takes {FASTEST} at "
            f"most: lower time.lattice_velocity (now {units.velocity / units.speed:.3g}), time.mach or time.dt"
        )
    return units
