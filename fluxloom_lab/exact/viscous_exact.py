r"""Exact solutions of viscous flow, to compare with: a boundary layer, and Couette's flow with heat.

``state`` gives primitive states ``w = (rho, u_1 ... u_d, p)``, ``(n, d + 2)``, at points ``(n, d)`` in two or three
dimensions; there is no velocity along the third coordinate.

References
----------
H. Blasius: *Grenzschichten in Flüssigkeiten mit kleiner Reibung*. Z. Math. Phys. 56, 1908.
K. Töpfer: *Bemerkung zu dem Aufsatz von H. Blasius*. Z. Math. Phys. 60, 1912.
F. M. White: *Viscous Fluid Flow*, 3rd ed., McGraw-Hill 2006, sec. 3-2 and 4-3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import Gas, check_positive, plane_states

__all__ = ["Blasius", "BoundaryLayer", "Couette", "blasius"]

Array = npt.NDArray[np.float64]

_FAR = 9.0
"""Edge of a boundary layer in the variable of Töpfer; there is no difference from the far flow at it."""


@dataclass(frozen=True, eq=False)
class Blasius:
    """The similar profile of a boundary layer: ``f''' + f f'' / 2 = 0``, ``f = f' = 0`` at 0, ``f' = 1`` far away.

    Attributes
    ----------
    curvature
        ``f''(0)``, 0.332057.
    displacement
        Limit of ``eta - f``, 1.720788.
    table
        ``f`` and its derivatives in the variable of Töpfer.
    """

    curvature: float
    displacement: float
    table: Any

    @property
    def momentum(self) -> float:
        """Integral of ``f' (1 - f')``, which is ``2 f''(0)``: 0.664115."""
        return 2.0 * self.curvature

    def __call__(self, eta: npt.ArrayLike) -> tuple[Array, Array]:
        """Return ``f`` and ``f'`` at ``eta = y sqrt(U / (nu x))``, at least 0."""
        eta = np.asarray(eta, dtype=np.float64)
        scale = self.curvature ** (1.0 / 3.0)
        inner = self.table(np.minimum(scale * eta, _FAR).ravel())
        f = scale * inner[0].reshape(eta.shape) + np.maximum(eta - _FAR / scale, 0.0)
        return f, scale**2 * inner[1].reshape(eta.shape)


def blasius() -> Blasius:
    """Return the profile of Blasius, by SciPy's integration to round-off.

    The equation keeps its form when lengths are multiplied and ``f`` divided by a number, so the solution with
    ``f''(0) = 1`` has to be scaled only, not shot for (Töpfer).
    """
    from scipy.integrate import solve_ivp

    def slope(_: float, f: Array) -> Array:
        return np.array([f[1], f[2], -0.5 * f[0] * f[2]])

    found: Any = solve_ivp(slope, (0.0, _FAR), [0.0, 0.0, 1.0], "DOP853", dense_output=True, rtol=1e-13, atol=1e-15)
    f, slope_far = float(found.y[0, -1]), float(found.y[1, -1])
    scale = 1.0 / sqrt(slope_far)
    return Blasius(scale**3, _FAR / scale - scale * f, found.sol)


@dataclass(frozen=True)
class BoundaryLayer:
    r"""The laminar boundary layer of a flat plate, from the first axis at 0, without a gradient of pressure (Blasius).

    .. math:: u = U f'(\eta), \quad v = \frac{1}{2} \sqrt{\frac{\nu U}{x}} (\eta f' - f), \quad
              \eta = y \sqrt{\frac{U}{\nu x}}, \quad c_f = \frac{2 f''(0)}{\sqrt{Re_x}}

    It is the limit of large Reynolds and small Mach numbers; density and pressure are constant.

    Attributes
    ----------
    speed, density, pressure
        Of the flow far from the plate.
    viscosity
        Dynamic.
    """

    speed: float
    viscosity: float
    density: float = 1.0
    pressure: float = 1.0

    def __post_init__(self) -> None:
        check_positive(**vars(self))

    @cached_property
    def profile(self) -> Blasius:
        """The similar profile."""
        return blasius()

    def reynolds(self, x: npt.ArrayLike) -> Array:
        """Return ``Re_x`` at distances from the leading edge."""
        return self.density * self.speed / self.viscosity * np.asarray(x, dtype=np.float64)

    def friction(self, x: npt.ArrayLike) -> Array:
        """Return ``c_f`` at distances from the leading edge: 0.664115 over the root of ``Re_x``."""
        return 2.0 * self.profile.curvature / np.sqrt(self.reynolds(x))

    def displacement(self, x: npt.ArrayLike) -> Array:
        """Return the displacement thickness, ``1.720788 x / sqrt(Re_x)``."""
        return self.profile.displacement * np.asarray(x, dtype=np.float64) / np.sqrt(self.reynolds(x))

    def state(self, points: Array) -> Array:
        """Return primitive states ``(n, d + 2)`` at points ``(n, d)`` with ``x > 0`` and ``y >= 0``.

        Raises
        ------
        SolverError
            For points elsewhere.
        """
        points = np.asarray(points, dtype=np.float64)
        x, y = points[:, 0], points[:, 1]
        if not ((x > 0.0) & (y >= 0.0)).all():
            raise SolverError("a boundary layer has states behind the leading edge and above the plate: x > 0, y >= 0")
        unit = np.sqrt(self.viscosity * x / (self.density * self.speed))
        f, slope = self.profile(y / unit)
        v = 0.5 * self.speed * unit / x * (y / unit * slope - f)
        return plane_states(points, np.full_like(x, self.density), (self.speed * slope, v), self.pressure)


@dataclass(frozen=True)
class Couette:
    r"""Flow between a wall at ``y`` = 0 at rest and one at ``height`` that moves along the first axis, both isothermal.

    .. math:: u = U s, \quad T = T_0 + (T_1 - T_0) s + \frac{Pr\, U^2}{2 c_p} s (1 - s), \quad s = y / h

    for a constant viscosity, whatever it is, and a constant pressure (White, sec. 3-2): exact for the compressible
    equations.

    Attributes
    ----------
    speed
        ``U``.
    height
        ``h``.
    temperatures
        ``T_0``, ``T_1``: of the wall at rest and of the one that moves.
    pressure
        Everywhere.
    gas
        Its ratio of specific heats, gas constant and Prandtl number.

    Raises
    ------
    SolverError
        For values that are not above 0.
    """

    speed: float
    height: float = 1.0
    temperatures: tuple[float, float] = (300.0, 300.0)
    pressure: float = 101325.0
    gas: Gas = field(default_factory=Gas)

    def __post_init__(self) -> None:
        low, high = self.temperatures
        check_positive(height=self.height, temperature=min(low, high), pressure=self.pressure)

    def temperature(self, y: npt.ArrayLike) -> Array:
        """Return ``T`` at distances from the wall at rest."""
        s = np.asarray(y, dtype=np.float64) / self.height
        low, high = self.temperatures
        heat = self.gas.gamma * self.gas.constant / (self.gas.gamma - 1.0)
        return low + (high - low) * s + 0.5 * self.gas.prandtl * self.speed**2 / heat * s * (1.0 - s)

    def state(self, points: Array) -> Array:
        """Return primitive states ``(n, d + 2)`` at points ``(n, d)``."""
        points = np.asarray(points, dtype=np.float64)
        y = points[:, 1]
        density = self.pressure / (self.gas.constant * self.temperature(y))
        return plane_states(points, density, (self.speed * y / self.height, np.zeros_like(y)), self.pressure)
