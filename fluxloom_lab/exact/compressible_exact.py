r"""Exact solutions of compressible flow without viscosity, to compare with: a vortex, and a corner.

Each is a frozen dataclass whose ``state`` gives primitive states ``w = (rho, u_1 ... u_d, p)``, ``(n, d + 2)``, at
points ``(n, d)`` in two or three dimensions; there is no velocity along the third coordinate. See
`ringleb` beside this module for a transonic flow, `nozzle` for one with a shock, `riemann` for one in time,
`viscous_exact` for viscous flow, and `manufactured` for what needs a source.

References
----------
C.-W. Shu: *Essentially non-oscillatory and weighted essentially non-oscillatory schemes for hyperbolic conservation
laws*. NASA/CR-97-206253, 1997.
F. D. Witherden, A. M. Farrington, P. E. Vincent: *PyFR: an open source framework for solving advection-diffusion type
problems on streaming architectures using the flux reconstruction approach*. Comput. Phys. Commun. 185, 2014.
J. D. Anderson: *Modern Compressible Flow*, 3rd ed., McGraw-Hill 2003, sec. 4.14.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import asin, degrees, pi, radians, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import (
    Shock,
    check_gamma,
    check_positive,
    mach_of_turning,
    oblique_shock,
    plane_states,
    prandtl_meyer,
    total_pressure_ratio,
    total_temperature_ratio,
)

__all__ = ["Corner", "Vortex"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Vortex:
    r"""A vortex that moves with a uniform flow in a periodic box: exact for the Euler equations, everywhere smooth.

    In units of the mean density and speed, with ``r`` from the centre,

    .. math:: u = U + \frac{S}{2 \pi R} e^f (y, -x), \quad
              \rho^{\gamma - 1} = 1 - \frac{(\gamma - 1) S^2 M^2}{8 \pi^2} e^{2 f}, \quad
              p = \frac{\rho^\gamma}{\gamma M^2}, \quad f = \frac{1 - r^2}{2 R^2}

    (Shu; in this form Witherden et al.). In a box of size ``L`` the solution is periodic up to
    :math:`\exp(-L^2 / 8 R^2)`.

    Attributes
    ----------
    strength, mach, radius
        ``S``, ``M`` of the mean flow, and ``R``.
    direction
        Of the mean flow, in degrees from the first axis.
    box
        Lengths of the box in the plane.
    centre
        Place at ``t`` = 0.
    gamma
        Ratio of specific heats.

    Raises
    ------
    SolverError
        For a vortex so strong that its centre has no density, and values that are not above 0.
    """

    strength: float = 13.5
    mach: float = 0.4
    radius: float = 1.5
    direction: float = 90.0
    box: tuple[float, float] = (20.0, 20.0)
    centre: tuple[float, float] = (0.0, 0.0)
    gamma: float = 1.4

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_positive(mach=self.mach, radius=self.radius, width=self.box[0], height=self.box[1])
        if not self._loss(1.0 / self.radius**2) < 1.0:
            what = f"a vortex of strength {self.strength:g} at Mach {self.mach:g}"
            raise SolverError(f"{what} has a vacuum in its middle: make it weaker or slower")

    def _loss(self, exponent: Any) -> Any:
        return (self.gamma - 1.0) * (self.strength * self.mach / pi) ** 2 / 8.0 * np.exp(exponent)

    @property
    def mean_velocity(self) -> tuple[float, float]:
        """Of the flow around the vortex; its size is 1."""
        turned = radians(self.direction)
        return float(np.cos(turned)), float(np.sin(turned))

    def state(self, points: Array, t: float = 0.0) -> Array:
        """Return primitive states ``(n, d + 2)`` at points ``(n, d)`` and a time."""
        points = np.asarray(points, dtype=np.float64)
        mean = self.mean_velocity
        away = []
        for k in range(2):
            way = points[:, k] - self.centre[k] - mean[k] * t
            away.append(way - self.box[k] * np.round(way / self.box[k]))
        x, y = away
        f = 0.5 * (1.0 - x * x - y * y) / self.radius**2
        turn = self.strength / (2.0 * pi * self.radius) * np.exp(f)
        density = (1.0 - self._loss(2.0 * f)) ** (1.0 / (self.gamma - 1.0))
        pressure = density**self.gamma / (self.gamma * self.mach**2)
        return plane_states(points, density, (mean[0] + turn * y, mean[1] - turn * x), pressure)


@dataclass(frozen=True)
class Corner:
    """Supersonic flow along the first axis over a wall that turns at a place: a shock, or a fan of Prandtl and Meyer.

    The flow is above the wall.

    Attributes
    ----------
    mach
        Of the flow before the corner, above 1.
    angle
        By which the wall rises, in degrees: above 0 there is the weak shock of `oblique_shock`, below 0 a fan.
    density, pressure
        Before the corner.
    corner
        Its place.
    gamma
        Ratio of specific heats.

    Raises
    ------
    SolverError
        If the shock is detached, the flow not supersonic, or its expansion ends in a vacuum.
    """

    mach: float
    angle: float
    density: float = 1.4
    pressure: float = 1.0
    corner: tuple[float, float] = (0.0, 0.0)
    gamma: float = 1.4

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_positive(density=self.density, pressure=self.pressure)
        check_positive(mach_behind=self.mach_behind)  # which has errors of its own

    @cached_property
    def shock(self) -> Shock:
        """Of a wall that rises; see `oblique_shock`."""
        return oblique_shock(self.mach, self.angle, self.gamma)

    @cached_property
    def mach_behind(self) -> float:
        """Mach number along the wall behind the corner."""
        if self.angle < 0.0:
            return float(mach_of_turning(prandtl_meyer(self.mach, self.gamma) - self.angle, self.gamma))
        return self.shock.mach

    def state(self, points: Array) -> Array:
        """Return primitive states ``(n, d + 2)`` at points ``(n, d)``; what they are below the wall has no meaning."""
        points = np.asarray(points, dtype=np.float64)
        ray = np.degrees(np.arctan2(points[:, 1] - self.corner[1], points[:, 0] - self.corner[0]))
        ray = np.where(ray < self.angle - 90.0, 180.0, ray)  # before the corner, on the wall to round-off
        mach, turned, density, pressure = self._compressed(ray) if self.angle >= 0.0 else self._expanded(ray)
        speed = mach * np.sqrt(self.gamma * pressure / density)
        way = np.radians(turned)
        return plane_states(points, density, (speed * np.cos(way), speed * np.sin(way)), pressure)

    def _compressed(self, ray: Array) -> tuple[Array, Array, Array, Array]:
        """Return Mach number, direction, density and pressure on rays before and behind the shock."""
        found, behind = self.shock, ray < self.shock.angle
        return (
            np.where(behind, found.mach, self.mach),
            np.where(behind, self.angle, 0.0),
            self.density * np.where(behind, found.density, 1.0),
            self.pressure * np.where(behind, found.pressure, 1.0),
        )

    def _expanded(self, ray: Array) -> tuple[Array, Array, Array, Array]:
        """Return them around a fan, in which a ray is a Mach line: its angle is ``mu - (nu - nu_1)``.

        ``mu - nu`` is a right angle less ``sqrt(k) arctan sqrt((M^2 - 1) / k)``, which gives ``M``.
        """
        nu, k = float(prandtl_meyer(self.mach, self.gamma)), sqrt((self.gamma + 1.0) / (self.gamma - 1.0))
        last = degrees(asin(1.0 / self.mach_behind)) + self.angle
        first = degrees(asin(1.0 / self.mach))
        inside = np.radians(90.0 + nu - np.clip(ray, last, first)) / k
        mach = np.where(
            ray >= first, self.mach, np.where(ray <= last, self.mach_behind, np.hypot(1.0, k * np.tan(inside)))
        )
        turned = np.where(ray >= first, 0.0, np.where(ray <= last, self.angle, nu - prandtl_meyer(mach, self.gamma)))
        cooled = total_temperature_ratio(self.mach, self.gamma) / total_temperature_ratio(mach, self.gamma)
        lowered = total_pressure_ratio(self.mach, self.gamma) / total_pressure_ratio(mach, self.gamma)
        return mach, turned, self.density * lowered / cooled, self.pressure * lowered
