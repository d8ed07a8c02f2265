"""Physical units of a lattice Boltzmann flow, and those of the lattice: cells, steps, density one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["FASTEST", "SOUND", "Units"]

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
        Kinematic.
    velocity, length
        Of reference: of the Reynolds number, of coefficients, and of the length of steps.

    Raises
    ------
    SolverError
        For what is not positive, or a reference velocity that is too fast for the lattice.
    """

    dx: float
    dt: float
    lower: tuple[float, ...]
    density: float
    viscosity: float
    velocity: float
    length: float

    def __post_init__(self) -> None:
        for name in ("dx", "dt", "density", "viscosity", "velocity", "length"):
            if not 0.0 < getattr(self, name) < inf:
                found = getattr(self, name)
                raise SolverError(f"units of a lattice: {name} has to be positive and finite, not {found!r}")
        if len(self.lower) not in (2, 3):
            raise SolverError(f"units of a lattice: lower is a point in 2 or 3 dimensions, not {self.lower!r}")
        if self.mach > FASTEST:
            raise SolverError(
                f"the Mach number of the reference velocity is {self.mach:.3g}, and the lattice takes {FASTEST} at "
                f"most: lower time.lattice_velocity (now {self.velocity / self.speed:.3g}), time.mach or time.dt"
            )

    @classmethod
    def of(
        cls, dx: float, *, viscosity: float = 0.0, reynolds: float = 0.0, velocity: float = 1.0, length: float = 1.0,
        density: float = 1.0, lower: Sequence[float] = (0.0, 0.0), lattice_velocity: float = 0.0, mach: float = 0.0,
        dt: float = 0.0,
    ) -> Units:  # fmt: skip
        """Return units from the numbers that a flow is described by.

        Parameters
        ----------
        viscosity, reynolds
            One of them; the Reynolds number is ``velocity length / viscosity``.
        lattice_velocity, mach, dt
            One of them at most: cells that the reference velocity passes in a step, by default 0.05; its Mach number;
            or the length of a step. Errors of compressibility go with the square of the Mach number.

        Raises
        ------
        SolverError
            Where not just one of two is given, and as the class.
        """
        if bool(viscosity) == bool(reynolds):
            raise SolverError("units of a lattice: give one of viscosity and reynolds, above 0")
        if sum(map(bool, (lattice_velocity, mach, dt))) > 1:
            raise SolverError("units of a lattice: give only one of lattice_velocity, mach and dt")
        step = dt or (lattice_velocity or mach * SOUND or _VELOCITY) * dx / velocity
        return cls(dx, step, tuple(lower), density, viscosity or velocity * length / reynolds, velocity, length)

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return len(self.lower)

    @property
    def speed(self) -> float:
        """A cell a step, ``U = dx / dt``."""
        return self.dx / self.dt

    @property
    def force(self) -> float:
        """The force of one on the lattice, ``rho dx^(d+1) / dt^2``; in the plane a unit of depth."""
        return self.density * self.dx ** (self.dimension + 1) / self.dt**2

    @property
    def lattice_viscosity(self) -> float:
        """In cells squared a step, ``nu dt / dx^2``."""
        return self.viscosity * self.dt / self.dx**2

    @property
    def relaxation(self) -> float:
        """Relaxation time of the stresses, in steps, ``tau = 3 nu + 1/2``."""
        return 3.0 * self.lattice_viscosity + 0.5

    @property
    def mach(self) -> float:
        """Mach number of the reference velocity, ``u / (U c_s)``."""
        return self.velocity / self.speed / SOUND

    def place(self, point: Sequence[float]) -> tuple[float, ...]:
        """Return a point as the lattice has it, slowest axis first, ``(x - low) / dx - 1/2``: cells begin at 0."""
        return tuple((x - low) / self.dx - 0.5 for x, low in zip(point, self.lower, strict=True))[::-1]

    def points(self, places: Array) -> tuple[Array, ...]:
        """Return x, y and z of places ``(n, d)`` on the lattice, ``(i + 1/2) dx + low``."""
        return tuple((places[:, -1 - k] + 0.5) * self.dx + low for k, low in enumerate(self.lower))

    def __str__(self) -> str:
        reynolds = self.velocity * self.length / self.viscosity
        return (
            f"Re {reynolds:.5g}, velocity {self.velocity / self.speed:.4g} cells a step (Mach {self.mach:.3g}), "
            f"viscosity {self.lattice_viscosity:.4g}, relaxation time {self.relaxation:.5g}, "
            f"{self.length / self.dx:.4g} cells across the reference length"
        )

    def vector(self, values: Sequence[float], scale: float) -> tuple[float, ...]:
        """Return components divided by a scale, ``q / scale``, slowest axis first; zeros for none."""
        return tuple(value / scale for value in values)[::-1] or (0.0,) * self.dimension

    def excess(self, pressure: Any) -> Any:
        """Return the density less one for a kinematic pressure, ``rho - 1 = 3 p / U^2``."""
        return 3.0 * pressure / self.speed**2
