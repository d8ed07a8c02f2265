r"""Exact lift of an airfoil in a gas without friction and shocks: the full potential equation, in the conformal plane.

Flow that comes uniform from far away, is slower than sound everywhere and leaves the sharp edge smoothly has no
vorticity and one entropy, so the Euler equations are those of a potential,

.. math:: \nabla \cdot (\rho \nabla \varphi) = 0, \quad
          \rho = \Big(1 + \tfrac{\gamma - 1}{2} M^2 (1 - |\nabla \varphi|^2)\Big)^{1 / (\gamma - 1)}

with speed and density of the stream as units. Angles stay in a conformal map, so in ``s = log |Z|`` and ``theta`` of
the plane where the airfoil is the unit circle the equation is the same, with speeds over the size of the map's slope.
There it is differenced on squares, with second order and steps ``2 sinh(h / 2)`` and ``2 sin(h / 2)`` for the width
``h``, which are exact for ``exp(s) cos(theta)``, that is for a uniform stream and for gas of constant density past the
circle; rounds of Poisson's equation solve it. The circulation is the one that leaves no speed at the edge (Kutta); the
far end has the potential of the stream and of a compressible vortex. The force on the body is that of Joukowski,
:math:`L = \rho_\infty U \Gamma`, at any Mach number below that of the first shock.

References
----------
L. Bers: *Mathematical Aspects of Subsonic and Transonic Gas Dynamics*. Wiley 1958 (such a flow exists, and is one).
F. Bauer, P. Garabedian, D. Korn: *A Theory of Supercritical Wing Sections*. Springer 1972 (the equation in the
conformal plane).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.mesh.generate.naca import AirfoilMap, NacaProfile

__all__ = ["PotentialLift", "map_slope", "potential_lift"]

Array = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complexfloating[Any, Any]]

_ROUNDS, _FOUND = 200, 1e-10


@dataclass(frozen=True)
class PotentialLift:
    """Lift of an airfoil.

    Attributes
    ----------
    lift
        Its coefficient, with the chord 1.
    mach
        The largest Mach number in the flow.
    rounds
        How many were made.
    """

    lift: float
    mach: float
    rounds: int


def potential_lift(
    profile: NacaProfile, mach: float, alpha: float, around: int = 128, reach: float = 1e4, gamma: float = 1.4
) -> PotentialLift:
    """Return the lift of an airfoil in a stream, with an error that falls with the square of ``1 / around``.

    Parameters
    ----------
    profile
        The airfoil.
    mach, alpha
        Mach number of the stream, and its angle, degrees.
    around
        Squares round the airfoil.
    reach
        Radius of the end, in chords.
    gamma
        Ratio of the specific heats.

    Raises
    ------
    SolverError
        If the flow is not slower than sound everywhere.
    """
    if not (0.0 < mach < 1.0 and around >= 16 and around % 2 == 0):
        raise SolverError(
            f"potential flow: a Mach number between 0 and 1 and an even number of at least 16 squares around are "
            f"wanted, not {mach:g} and {around}"
        )
    plane = _Plane(profile, mach, np.radians(alpha), around, reach)
    heat, phi, before = 0.5 * (gamma - 1.0) * mach * mach, np.zeros(plane.shape), np.inf
    for k in range(1, _ROUNDS + 1):
        turn = plane.circulate(phi)
        defect, fastest = plane.defect(phi, turn, heat, 1.0 / (gamma - 1.0))
        if not np.isfinite(defect).all():
            break
        if abs(turn - before) <= _FOUND:
            local = mach * float(np.sqrt(fastest / (1.0 + heat * (1.0 - fastest))))
            if local >= 1.0:
                break
            return PotentialLift(2.0 * turn, local, k)
        phi, before = phi + plane.poisson(-defect), turn
    raise SolverError(f"potential flow: at Mach {mach:g} it is not slower than sound everywhere; take a lower one")


def map_slope(found: AirfoilMap, circle: Complex) -> Complex:
    """Return ``dz / dZ`` at places ``Z``, outside the unit circle or on it; 0 at 1, where the trailing edge is."""
    total, change = np.zeros_like(circle), np.zeros_like(circle)
    for k in range(len(found.series) - 1, -1, -1):
        total, change = total / circle + found.series[k], change / circle - k * found.series[k]
    zeta = found.centre + circle * np.exp(total)
    away = zeta + found.far
    ratio = (zeta - found.far) / away
    w = np.abs(ratio) ** found.power * np.exp(1j * np.angle(ratio) * found.power)
    lower = found.power * np.abs(ratio) ** (found.power - 1.0) * np.exp(1j * np.angle(ratio) * (found.power - 1.0))
    opened = lower * 2.0 * found.far / away**2 * (1.0 - found.inner) / (1.0 - w) ** 2
    return opened * np.exp(total) * (1.0 + change)


class _Plane:
    """Squares of the conformal plane, of width ``h``; rings ``i`` from the airfoil on, rays ``j`` from the edge on."""

    def __init__(self, profile: NacaProfile, mach: float, alpha: float, around: int, reach: float) -> None:
        found = AirfoilMap(profile)
        h = 2.0 * np.pi / around
        half = 0.5 * h
        self._steps, self._round = (2.0 * np.sinh(half), 2.0 * np.sin(half)), 2.0 * np.sin(h)
        rings = round(np.log(reach / found.scale) / h)
        self.shape = (rings + 1, around)
        s: Array = h * np.arange(rings + 1.0)
        theta: Array = h * np.arange(float(around))
        self._outward = self._slope(found, s[:-1] + half, theta)
        self._along = self._slope(found, s, theta + half)
        circle = np.exp(s[:, None] + 1j * (theta - alpha + found.turn))
        self._uniform = found.scale * np.real(circle + 1.0 / circle)
        end = found.outside(theta, float(np.exp(s[-1]))) * np.exp(-1j * alpha)
        self._stream = np.real(end) - self._uniform[-1]
        angle = np.angle(end)
        squeezed = np.arctan2(np.sqrt(1.0 - mach * mach) * np.sin(angle), np.cos(angle))
        self._vortex = np.unwrap(squeezed) - theta
        self._vortex -= self._vortex.mean()

    @staticmethod
    def _slope(found: AirfoilMap, s: Array, theta: Array) -> Array:
        circle = np.exp(s[:, None] + 1j * theta)
        return np.abs(map_slope(found, circle) * circle)

    def circulate(self, phi: Array) -> float:
        """Return the circulation over the speed with which the speed at the edge is 0; set the far end for it."""
        wall = self._uniform[0] + phi[0]
        turn = float(2.0 * np.pi * (wall[1] - wall[-1]) / self._round)
        phi[-1] = self._stream - turn / (2.0 * np.pi) * self._vortex
        return turn

    def defect(self, phi: Array, turn: float, heat: float, power: float) -> tuple[Array, float]:
        """Return what flows out of the squares round the nodes over their sizes, and the largest square of a speed."""
        whole, (outward, around) = self._uniform + phi, self._steps
        out = np.diff(whole, axis=0) / outward
        along = (np.roll(whole, -1, 1) - whole) / around - turn / (2.0 * np.pi)
        mean = 0.5 * (along + np.roll(along, 1, 1))
        across = np.concatenate([np.zeros_like(out[:1]), 0.5 * (out[1:] + out[:-1]), out[-1:]])
        first = (out**2 + (0.5 * (mean[1:] + mean[:-1])) ** 2) / self._outward**2
        second = (along**2 + (0.5 * (across + np.roll(across, -1, 1))) ** 2) / self._along**2
        with np.errstate(invalid="ignore"):
            out *= (1.0 + heat * (1.0 - first)) ** power
            along *= (1.0 + heat * (1.0 - second)) ** power
        found = (along - np.roll(along, 1, 1)) / around
        found[0] *= 0.5
        found[:-1] += out / outward
        found[1:] -= out / outward
        found[-1] = 0.0
        return found, float(max(first.max(), second.max()))

    def poisson(self, defect: Array) -> Array:
        """Return the potential, 0 at the far end, whose `defect` in gas of constant density is given."""
        outward, around = self._steps
        right = np.fft.rfft(defect[:-1] * outward**2, axis=1)
        wave = (2.0 - 2.0 * np.cos(2.0 * np.pi / self.shape[1] * np.arange(right.shape[1]))) * (outward / around) ** 2
        ahead = np.empty(right.shape)
        pivot = -(1.0 + 0.5 * wave)
        ahead[0], right[0] = 1.0 / pivot, right[0] / pivot
        for i in range(1, len(right)):
            pivot = -(2.0 + wave) - ahead[i - 1]
            ahead[i], right[i] = 1.0 / pivot, (right[i] - right[i - 1]) / pivot
        for i in range(len(right) - 2, -1, -1):
            right[i] -= ahead[i] * right[i + 1]
        return np.concatenate([np.fft.irfft(right, self.shape[1], axis=1), np.zeros((1, self.shape[1]))])
