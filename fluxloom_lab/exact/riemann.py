"""The exact solution of Riemann's problem for a perfect gas, to compare with.

References
----------
E. F. Toro: *Riemann Solvers and Numerical Methods for Fluid Dynamics*, 3rd ed., Springer 2009, ch. 4.
G. A. Sod: *A survey of several finite difference methods for systems of nonlinear hyperbolic conservation laws*. J.
Comput. Phys. 27, 1978.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fluxloom.core.errors import SolverError

__all__ = ["SOD", "RiemannProblem"]

Array = npt.NDArray[np.float64]
State = tuple[float, float, float]
"""Density, velocity, pressure."""


@dataclass(frozen=True)
class RiemannProblem:
    """Gas in two states, left and right of x = 0, that is set free at t = 0.

    Attributes
    ----------
    left, right
        Density, velocity and pressure; densities and pressures above 0.
    gamma
        Ratio of specific heats, above 1.

    Raises
    ------
    SolverError
        For other values, and for states that flow apart so fast that a vacuum opens between them.
    """

    left: State
    right: State
    gamma: float = 1.4

    def __post_init__(self) -> None:
        values = [*self.left, *self.right, self.gamma]
        if not all(isfinite(v) for v in values) or min(self.left[0], self.left[2], self.right[0], self.right[2]) <= 0:
            raise SolverError(f"states of density, velocity and pressure are wanted, not {self.left} and {self.right}")
        if self.gamma <= 1.0:
            raise SolverError(f"gamma: a number above 1 is wanted, not {self.gamma!r}")
        apart = 2.0 / (self.gamma - 1.0) * (self._sound(self.left) + self._sound(self.right))
        if self.right[1] - self.left[1] >= apart:
            raise SolverError(f"{self.left} and {self.right} flow apart faster than the gas expands: a vacuum opens")

    def _sound(self, state: State) -> float:
        return sqrt(self.gamma * state[2] / state[0])

    def _change(self, p: float, state: State) -> float:
        """Return by how much a wave to a pressure changes the velocity (Toro, eq. 4.6 and 4.7)."""
        rho, _, p0 = state
        g = self.gamma
        if p > p0:
            return (p - p0) * sqrt(2.0 / ((g + 1.0) * rho) / (p + (g - 1.0) / (g + 1.0) * p0))
        return 2.0 * self._sound(state) / (g - 1.0) * ((p / p0) ** ((g - 1.0) / (2.0 * g)) - 1.0)

    @cached_property
    def pressure(self) -> float:
        """Between the waves, ``p*``."""
        jump = self.right[1] - self.left[1]

        def excess(p: float) -> float:
            return self._change(p, self.left) + self._change(p, self.right) + jump

        low = high = max(self.left[2], self.right[2])
        while excess(low) > 0.0:
            low *= 0.1
        while excess(high) < 0.0:
            high *= 10.0
        if low == high:
            return high
        root: Any = brentq(excess, low, high, xtol=1e-300)
        return float(root)

    @cached_property
    def velocity(self) -> float:
        """Of the contact, ``u*``."""
        p = self.pressure
        return 0.5 * (self.left[1] + self.right[1] + self._change(p, self.right) - self._change(p, self.left))

    def density(self, state: State) -> float:
        """Return the density between a state's wave and the contact."""
        ratio, g = self.pressure / state[2], self.gamma
        if ratio > 1.0:
            small = (g - 1.0) / (g + 1.0)
            return state[0] * (ratio + small) / (small * ratio + 1.0)
        return state[0] * ratio ** (1.0 / g)

    def waves(self) -> tuple[float, float, float, float, float]:
        """Return the speeds of both edges of the left wave, the contact, and both edges of the right wave.

        The edges of a shock are the same.
        """
        (first, second), (last, fourth) = self._edges(self.left, -1.0), self._edges(self.right, 1.0)
        return -first, -second, self.velocity, fourth, last

    def _edges(self, state: State, sign: float) -> tuple[float, float]:
        """Return the speeds, away from the contact, of the outer and the inner edge of a wave."""
        g, ratio, outward = self.gamma, self.pressure / state[2], sign * state[1]
        a = self._sound(state)
        if ratio > 1.0:
            speed = outward + a * sqrt((g + 1.0) / (2.0 * g) * ratio + (g - 1.0) / (2.0 * g))
            return speed, speed
        return outward + a, sign * self.velocity + a * ratio ** ((g - 1.0) / (2.0 * g))

    def at(self, speeds: npt.ArrayLike) -> Array:
        """Return density, velocity and pressure, ``(n, 3)``, where ``x / t`` is each of ``(n,)`` speeds."""
        s = np.atleast_1d(np.asarray(speeds, dtype=np.float64))
        out = np.empty((*s.shape, 3))
        first = s < self.velocity
        for state, sign, here in ((self.left, -1.0, first), (self.right, 1.0, ~first)):
            out[here] = self._beside(state, sign, sign * s[here])
        return out

    def _beside(self, state: State, sign: float, outward: Array) -> Array:
        """Return the solution on one side of the contact; speeds are positive away from it."""
        g, (rho, u, p) = self.gamma, state
        outer, inner = self._edges(state, sign)
        out = np.tile(np.array([self.density(state), self.velocity, self.pressure]), (outward.size, 1))
        out[outward >= outer] = state
        fan = (outward > inner) & (outward < outer)
        a = self._sound(state)
        part = 2.0 / (g + 1.0) + (g - 1.0) / (g + 1.0) / a * (outward[fan] - sign * u)
        out[fan, 0] = rho * part ** (2.0 / (g - 1.0))
        out[fan, 1] = sign * (2.0 / (g + 1.0)) * (-a + 0.5 * (g - 1.0) * sign * u + outward[fan])
        out[fan, 2] = p * part ** (2.0 * g / (g - 1.0))
        return out


SOD = RiemannProblem((1.0, 0.0, 1.0), (0.125, 0.0, 0.1))
"""Sod's shock tube."""
