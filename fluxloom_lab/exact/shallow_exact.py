"""Exact solutions of the shallow-water equations, to compare with.

References
----------
A. Ritter: *Die Fortpflanzung der Wasserwellen*. Z. Ver. Dtsch. Ing. 36, 1892.
J. J. Stoker: *Water waves*. Interscience, 1957, sec. 10.8.
W. C. Thacker: *Some exact solutions to the nonlinear shallow-water wave equations*. J. Fluid Mech. 107, 1981.
O. Delestre et al.: *SWASHES: a compilation of shallow water analytic solutions*. Int. J. Numer. Methods Fluids
72, 2013, sec. 4.1 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fluxloom.core.errors import SolverError

__all__ = ["DamBreak", "ParabolicBasin", "solitary_runup"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DamBreak:
    """Water at rest of depth ``left`` for x < 0 and ``right`` for x > 0, set free at t = 0.

    Stoker's solution; Ritter's where ``right`` is 0.

    Attributes
    ----------
    left, right
        Depths, ``left > right >= 0``.
    gravity
        Metres per second squared.

    Raises
    ------
    SolverError
        For other depths.
    """

    left: float
    right: float = 0.0
    gravity: float = 9.81

    def __post_init__(self) -> None:
        if not self.left > self.right >= 0.0:
            raise SolverError(f"a dam break needs left > right >= 0, got {self.left} and {self.right}")

    @property
    def middle(self) -> tuple[float, float]:
        """Depth and velocity between rarefaction and shock; of a dry bed ``(0, 2 c)``."""
        g, cl = self.gravity, sqrt(self.gravity * self.left)
        if self.right == 0.0:
            return 0.0, 2.0 * cl

        def gap(h: float) -> float:
            behind = 2.0 * (cl - sqrt(g * h))
            return behind - (h - self.right) * sqrt(0.5 * g * (1.0 / h + 1.0 / self.right))

        depth: Any = brentq(gap, self.right, self.left, xtol=1e-15 * self.left, rtol=1e-14)  # pyright: ignore
        depth = float(depth)
        return depth, 2.0 * (cl - sqrt(g * depth))

    @property
    def front(self) -> float:
        """Speed of the shock, or of the tip of the water on a dry bed."""
        depth, speed = self.middle
        return speed if self.right == 0.0 else depth * speed / (depth - self.right)

    def __call__(self, x: FloatArray, t: float) -> tuple[FloatArray, FloatArray]:
        """Return depth and velocity at positions ``x`` and a time ``t > 0``."""
        g, cl = self.gravity, sqrt(self.gravity * self.left)
        depth, speed = self.middle
        place = np.asarray(x, dtype=np.float64) / t
        c = (2.0 * cl - place) / 3.0
        inner = place < speed - sqrt(g * depth)
        h = np.where(inner, c * c / g, depth)
        u = np.where(inner, 2.0 / 3.0 * (cl + place), speed)
        ahead, behind = place >= self.front, place <= -cl
        h = np.where(behind, self.left, np.where(ahead, self.right, h))
        return h, np.where(ahead | behind, 0.0, u)


@dataclass(frozen=True)
class ParabolicBasin:
    """Water that swings in a paraboloid of revolution, its surface a plane (Thacker's planar solution).

    Attributes
    ----------
    radius
        Of the shore of the water at rest.
    depth
        In the middle.
    swing
        Distance from the middle at which the centre of the water circles, below ``radius``.
    gravity
        Metres per second squared.
    """

    radius: float = 1.0
    depth: float = 0.1
    swing: float = 0.5
    gravity: float = 9.81

    @property
    def frequency(self) -> float:
        """Angular frequency of the motion."""
        return sqrt(2.0 * self.gravity * self.depth) / self.radius

    @property
    def period(self) -> float:
        """Time of a revolution."""
        return 2.0 * pi / self.frequency

    def bed(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the bed elevation; the surface at rest is zero."""
        return self.depth * ((x * x + y * y) / self.radius**2 - 1.0)

    def surface(self, x: FloatArray, y: FloatArray, t: float) -> FloatArray:
        """Return the elevation of the plane of the surface."""
        a, s, w = self.radius, self.swing, self.frequency
        return s * self.depth / a**2 * (2.0 * x * np.cos(w * t) + 2.0 * y * np.sin(w * t) - s)

    def velocity(self, t: float) -> tuple[float, float]:
        """Return the velocity, the same everywhere in the water."""
        s, w = self.swing, self.frequency
        return -s * w * float(np.sin(w * t)), s * w * float(np.cos(w * t))


def solitary_runup(height: float, slope: float) -> float:
    """Return the run-up of a solitary wave that does not break: ``2.831 sqrt(cot b) (H/d)^(5/4)``.

    C. E. Synolakis: *The runup of solitary waves*. J. Fluid Mech. 185, 1987, eq. 4.3; for waves that do not break,
    ``H/d < 0.818 (cot b)^(-10/9)``.

    Parameters
    ----------
    height
        Of the wave, as a part of the depth.
    slope
        ``cot b``, horizontal over vertical.
    """
    return 2.831 * sqrt(slope) * height**1.25
