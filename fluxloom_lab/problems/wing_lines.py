r"""The lines of a mesh that lead away from a wing, and from the sheet that its wake has: one family of curves.

Round an edge sheet of half span ``s`` and round its leading edge coordinates are

.. math:: x = x_l + c\,(\xi^2 - \eta^2 + o), \quad d = 2 c\,\xi \eta, \quad y = (s + u) \cos\theta, \quad
    z = \sqrt{u (u + 2 s)} \sin\theta, \quad u (u + 2 s \sin^2\theta) = d^2

with the distance ``d`` from the sheet: parabolas round the leading edge, and ellipses round the tip (P. M. Morse, H.
Feshbach: *Methods of Theoretical Physics*, McGraw-Hill 1953, sec. 5.1). The wing is ``eta`` over ``(xi, theta)``, and
lines go on from it with both of them; near the wing they are drawn to its normals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["AwayLines"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AwayLines:
    """Curves that begin at points of a wing and of its wake.

    Attributes
    ----------
    points, normals : (n, 3)
        Where they begin, ``z >= 0``, and the directions there.
    sheet : (n,)
        Half span of the sheet, not less than that of the point where ``z`` is above 0.
    along : (n,)
        Places along the chord, over it, where they begin.
    chord
        Of the wing.
    offset
        ``o``, about half the radius of the nose, over the chord.
    near : (n,)
        Length along which lines turn from the normals; 0: they do not begin with them.
    far
        ``eta`` at the ends.
    """

    points: Array
    normals: Array
    sheet: Array
    along: Array
    chord: float
    offset: float
    near: Array
    far: float

    def spread(self, count: int, first: float) -> tuple[Array, Array]:
        """Return parameters ``(n, count + 1)`` along the lines, ever farther apart from ``first`` on, and lengths."""
        low = self._start()[2]
        steps = np.concatenate([[0.0], np.geomspace(first, 1.0, count)])
        eta = low[:, None] + (self.far - low)[:, None] * steps
        places = self.at(eta)
        length = np.linalg.norm(np.diff(places, axis=1), axis=2)
        return eta, np.concatenate([np.zeros((len(eta), 1)), np.cumsum(length, axis=1)], axis=1)

    def at(self, eta: Array) -> Array:
        """Return the places with parameters ``(n, m)``, ``(n, m, 3)``."""
        theta, xi, low = self._start()
        here, base = self._base(theta, xi, low[:, None]), self._base(theta, xi, eta)
        base += self.points[:, None] - here  # rounding alone
        away = np.linalg.norm(base - self.points[:, None], axis=2)
        t = np.clip(away / np.maximum(self.near, 1e-300)[:, None], 0.0, 1.0)
        t = np.where(self.near[:, None] > 0.0, t * t * (3.0 - 2.0 * t), 1.0)[..., None]
        straight = self.points[:, None] + away[..., None] * self.normals[:, None]
        return t * base + (1.0 - t) * straight

    def _start(self) -> tuple[Array, Array, Array]:
        """Return ``theta``, ``xi`` and ``eta`` where the lines begin."""
        y, z = self.points[:, 1] / self.sheet, self.points[:, 2] / self.sheet
        wave = np.asarray(np.arccosh(y + 1j * z), dtype=np.complex128)
        theta, beyond = np.abs(wave.imag), self.sheet * 2.0 * np.sinh(0.5 * wave.real) ** 2
        away = np.sqrt(beyond * (beyond + 2.0 * self.sheet * np.sin(theta) ** 2))
        place = np.asarray(np.sqrt(self.along - self.offset + 1j * away / self.chord), dtype=np.complex128)
        return theta, place.real, place.imag

    def _base(self, theta: Array, xi: Array, eta: Array) -> Array:
        """Return the places of the coordinates, ``(n, m, 3)``."""
        sheet, xi = self.sheet[:, None], xi[:, None]
        sine, cosine = np.sin(theta)[:, None], np.cos(theta)[:, None]
        leading = self.points[:, 0] - self.chord * self.along
        away, half = 2.0 * self.chord * xi * eta, sheet * sine * sine
        beyond = away * away / np.maximum(np.hypot(half, away) + half, 1e-300)
        x = leading[:, None] + self.chord * (xi * xi - eta * eta + self.offset)
        z = np.sqrt(beyond * (beyond + 2.0 * sheet)) * sine
        return np.stack([x, (sheet + beyond) * cosine, z], axis=2)
