r"""Rings of quads round an airfoil of the NACA four-digit family: a conformal map of the outside of a circle.

The thickness is that of the family, extended to the place ``e > 1`` where it vanishes, which is a sharp edge without a
change of shape elsewhere (Vassberg and Jameson, sec. II), and shortened to a chord of 1,

.. math:: y = \frac{5 t}{e} (0.2969 \sqrt{s} - 0.1260 s - 0.3516 s^2 + 0.2843 s^3 - 0.1015 s^4), \quad s = e x

Others keep the extended chord ``e`` and refer forces to the one before, 1: so do Vassberg and Jameson. In that measure
coefficients are greater by ``e``, and `NacaProfile.family_chord` is what forces here refer to instead of 1.

Kármán and Trefftz's map opens the edge, of angle ``tau``: with ``n = 2 - tau / pi``

.. math:: \frac{z - z_1}{z - z_0} = \left( \frac{\zeta - \zeta_1}{\zeta - \zeta_0} \right)^n

and leaves nearly a circle, which Theodorsen's method maps to one, ``zeta - c = Z exp(sum_k a_k Z^-k)``. Lines of the
mesh are those of polar coordinates there, so they cross at right angles.

References
----------
J. C. Vassberg, A. Jameson: *In pursuit of grid convergence for two-dimensional Euler solutions*. J. Aircraft 47, 2010.
T. Theodorsen, I. E. Garrick: *General potential theory of arbitrary wing sections*. NACA Report 452, 1933.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData, MeshSource, PatchFaces
from fluxloom.mesh.generate.boxes import ring_quads

__all__ = ["AirfoilMap", "NacaProfile", "naca_mesh"]

Array = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complexfloating[Any, Any]]

_HALF = (0.2969, -0.1260, -0.3516, 0.2843, -0.1015)
"""Of the square root, and of the powers 1 to 4, for a thickness of 0.2."""
_SAMPLES = 4097
_MODES = 2048
_ROUNDS, _FOUND = 200, 1e-13
_GROWTH = (0.5, 2.0)


@dataclass(frozen=True)
class NacaProfile:
    """An airfoil of the four-digit family with a sharp trailing edge, from (0, 0) to (1, 0).

    Attributes
    ----------
    thickness
        Over the chord; of the whole family's formula, before it is shortened.
    camber, place
        Of the mean line: its height, and where it is highest.

    Raises
    ------
    MeshError
        If a number is out of range.
    """

    thickness: float = 0.12
    camber: float = 0.0
    place: float = 0.0

    def __post_init__(self) -> None:
        if not (0.01 <= self.thickness <= 0.4 and 0.0 <= self.camber <= 0.09):
            raise MeshError(
                f"an airfoil has a thickness from 0.01 to 0.4 and a camber up to 0.09, not {self.thickness:g} and "
                f"{self.camber:g}"
            )
        if self.camber and not 0.1 <= self.place <= 0.9:
            raise MeshError(f"an airfoil has its camber at a place from 0.1 to 0.9, not {self.place:g}")

    @classmethod
    def named(cls, digits: str) -> NacaProfile:
        """Return the airfoil of four digits: camber and its place in hundredths and tenths, thickness in hundredths.

        Raises
        ------
        MeshError
            If there are none.
        """
        if len(digits) != 4 or not (digits.isascii() and digits.isdigit()):
            raise MeshError(f'an airfoil of the family has four digits, as "0012", not {digits!r}')
        return cls(int(digits[2:]) / 100.0, int(digits[0]) / 100.0, int(digits[1]) / 10.0)

    def points(self, t: Array) -> Complex:
        """Return places ``x + i y``: 0 is the trailing edge, then the upper side, 1/2 the nose, the lower side, 1."""
        near = np.pi * np.minimum(t, 1.0 - t)  # so that both sides are alike to the last bit
        x, half = np.cos(near) ** 2, np.where(t < 0.5, 1.0, -1.0) * self._half(near)
        if not self.camber:
            return x + 1j * half
        m, p = self.camber, self.place
        ahead = x < p
        size = np.where(ahead, p, 1.0 - p) ** 2
        mean = m / size * np.where(ahead, 2.0 * p * x - x * x, 1.0 - 2.0 * p + 2.0 * p * x - x * x)
        slope = 2.0 * m / size * (p - x)
        way = (1.0 + 1j * slope) / np.sqrt(1.0 + slope**2)
        return x + 1j * mean + 1j * half * way

    def _half(self, near: Array) -> Array:
        r"""Return half the thickness at :math:`x = \cos^2` of angles, a quarter of a turn from the edge to the nose.

        It is a polynomial of :math:`r = \sqrt{e x}` with the factors :math:`r` and :math:`\sqrt{e} - r`, which is
        :math:`\sqrt{e} (1 - x) / (1 + \sqrt{x})`: without rounding at both ends, of which the map takes roots.
        """
        end, (root, first, *powers) = _extension(), _HALF
        r, size = np.sqrt(end) * np.cos(near), np.sqrt(end) * np.sin(near) ** 2 / (1.0 + np.cos(near))
        terms = [c for power in reversed(powers) for c in (power, 0.0)]
        rest, _ = np.polydiv([*terms, first, root], [-1.0, np.sqrt(end)])
        return 5.0 * self.thickness / end * r * size * np.polyval(rest, r)

    @property
    def edge_angle(self) -> float:
        """Angle between both sides at the trailing edge, radians."""
        end = _extension()
        root, *powers = _HALF
        slope = 0.5 * root / np.sqrt(end) + sum(k * c * end ** (k - 1) for k, c in enumerate(powers, 1))
        return 2.0 * float(np.arctan(-5.0 * self.thickness * slope))

    @property
    def family_chord(self) -> float:
        """Chord of the family, with its blunt edge, of which the extended one is 1: ``1 / e``."""
        return 1.0 / _extension()

    @property
    def nose_radius(self) -> float:
        """Radius of curvature at the leading edge."""
        return 0.5 * (5.0 * self.thickness * _HALF[0]) ** 2 / _extension()


def _extension() -> float:
    """Return the place behind 1 where the thickness vanishes."""
    root, *powers = _HALF

    def half(s: float) -> float:
        return root * np.sqrt(s) + sum(c * s**k for k, c in enumerate(powers, 1))

    return _root(half, 1.0, 1.05)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is 0."""
    from scipy.optimize import brentq

    found: Any = brentq(function, low, high, xtol=1e-15)
    return float(found)


class AirfoilMap:
    """The map between the outside of the unit circle and that of an airfoil; the trailing edge is at 1.

    Parameters
    ----------
    profile
        The airfoil.

    Attributes
    ----------
    series
        ``a_k`` of the module, from ``a_0`` on.

    Raises
    ------
    MeshError
        If there is none: the airfoil is too thin, or its camber too large.
    """

    def __init__(self, profile: NacaProfile) -> None:
        from scipy.interpolate import CubicSpline

        self.profile = profile
        self.power = 2.0 - profile.edge_angle / np.pi
        nose = profile.points(np.array([0.5]))[0]
        inward = np.exp(1j * np.arctan(2.0 * profile.camber / profile.place)) if profile.camber else 1.0
        self.inner = complex(nose + 0.5 * profile.nose_radius * inward)
        self.far = (1.0 - self.inner) / (2.0 * self.power)
        t = np.linspace(0.0, 1.0, _SAMPLES)
        opened = self._opened(profile.points(t))
        self.centre = complex(opened[:-1].mean())
        away = opened - self.centre
        angle = np.unwrap(np.angle(away))
        if not (np.diff(angle) > 0).all():
            raise MeshError(f"{profile}: rings cannot be laid round it; make it thicker, or its camber smaller")
        self._size = CubicSpline(angle, np.log(np.abs(away)))
        self._place = CubicSpline(angle, t)
        self._turn(angle[0])

    def _opened(self, z: Complex) -> Complex:
        """Return places near a circle of places outside the airfoil, or on it."""
        ratio = (z - 1.0) / (z - self.inner)
        w = np.abs(ratio) ** (1.0 / self.power) * np.exp(1j * np.angle(ratio) / self.power)
        return self.far * (1.0 + w) / (1.0 - w)

    def _turn(self, edge: float) -> None:
        """Find the series, and the angle ``phi`` on the curve for angles ``theta`` on the circle, by iteration."""
        from scipy.interpolate import CubicSpline

        theta = 2.0 * np.pi * np.arange(_MODES) / _MODES
        order = np.arange(_MODES // 2)
        phi = theta + edge
        for _ in range(_ROUNDS):
            found = np.fft.rfft(self._size(edge + np.mod(phi - edge, 2.0 * np.pi)))[:-1] / _MODES
            found[1:] *= 2.0
            series = found.conj()  # a_k = A_k + i B_k of A_k cos k theta + B_k sin k theta
            other = np.fft.irfft(np.append(1j * np.where(order > 0, found, 0.0) * 0.5, 0.0), _MODES) * _MODES
            shift = edge - other[0]
            new = theta + other + shift
            change, phi = np.abs(new - phi).max(), new
            if change < _FOUND:
                break
        else:
            raise MeshError(f"{self.profile}: no map to a circle was found; make it thinner, or its camber smaller")
        series[0] = series[0].real + 1j * shift
        self.series = series
        self._edge = edge
        lag = phi - theta
        self._lag = CubicSpline(np.append(theta, 2.0 * np.pi), np.append(lag, lag[0]), bc_type="periodic")

    @property
    def scale(self) -> float:
        """Size of ``dz / dZ`` far away."""
        return float(np.exp(self.series[0].real))

    @property
    def turn(self) -> float:
        """Angle of ``dz / dZ`` far away."""
        return float(self.series[0].imag)

    def on_wall(self, theta: Array) -> Complex:
        """Return places on the airfoil."""
        phi = theta + self._lag(theta)
        t = np.clip(self._place(self._edge + np.mod(phi - self._edge, 2.0 * np.pi)), 0.0, 1.0)
        t[theta == 0.0] = 0.0
        return self.profile.points(t)

    def outside(self, theta: Array, radius: float) -> Complex:
        """Return the places of a circle of some radius above 1."""
        inverse = np.exp(-1j * theta) / radius
        total = np.zeros_like(inverse)
        for a in self.series[::-1]:
            total = total * inverse + a
        zeta = self.centre + np.exp(total) / inverse
        ratio = (zeta - self.far) / (zeta + self.far)
        w = np.abs(ratio) ** self.power * np.exp(1j * np.angle(ratio) * self.power)
        return (1.0 - w * self.inner) / (1.0 - w)


def naca_mesh(
    profile: NacaProfile | str = "0012", around: int = 128, outward: int = 64, reach: float = 30.0, first: float = 1.0
) -> MeshData:
    """Mesh the outside of an airfoil with rings of quads.

    Parameters
    ----------
    profile
        The airfoil, or its four digits.
    around, outward
        Quads round the airfoil, an even number, and rings.
    reach
        Radius of the last ring, in chords, at least 2.
    first
        Thickness of the first ring over the width of its quads; those outside grow by a constant factor.

    Returns
    -------
    MeshData
        With the patches ``airfoil`` and ``far_field``.

    Raises
    ------
    MeshError
        If a number is out of range, or rings would grow by more than a factor of 2.
    """
    if around < 16 or around % 2 or outward < 4:
        raise MeshError(
            f"rings round an airfoil need an even number of at least 16 quads around and 4 outward, not {around} and "
            f"{outward}"
        )
    if not (2.0 <= reach <= 1e4 and 0.0 < first <= 10.0):
        raise MeshError(f"rings round an airfoil: reach is 2 to 10000, first up to 10, not {reach:g} and {first:g}")
    mapped = AirfoilMap(NacaProfile.named(profile) if isinstance(profile, str) else profile)
    theta = 2.0 * np.pi * np.arange(around) / around
    rings = _rings(np.log(reach / mapped.scale), first * theta[1], outward)
    circles = [mapped.on_wall(theta)]
    with activity("rings round the airfoil", total=outward) as work:
        for r in rings[1:]:
            circles.append(mapped.outside(theta, float(np.exp(r))))
            work.step()
    places = np.concatenate(circles if mapped.profile.camber else [_mirrored(circle) for circle in circles])
    levels = np.arange(places.size, dtype=np.int32).reshape(-1, around)
    here, after = levels[[0, -1]], np.roll(levels[[0, -1]], -1, axis=1)
    patches = {
        "airfoil": PatchFaces({"line": np.stack([after[0], here[0]], axis=1)}),
        "far_field": PatchFaces({"line": np.stack([here[1], after[1]], axis=1)}),
    }
    points = np.stack([places.real, places.imag], axis=1).astype(np.float64)
    return MeshData(points, {"quad": ring_quads(levels)}, patches, MeshSource("<naca>"))


def _mirrored(circle: Complex) -> Complex:
    """Return places round a symmetric airfoil, of which the lower ones are mirror images of the upper ones."""
    upper = circle[: circle.size // 2 + 1].copy()
    upper[[0, -1]] = upper[[0, -1]].real
    return np.concatenate([upper, upper[-2:0:-1].conj()])


def _rings(whole: float, step: float, count: int) -> Array:
    """Return logarithms of radii from 0 to ``whole``; steps begin with ``step`` and grow by a constant factor."""

    def excess(growth: float) -> float:
        return step * float((growth ** np.arange(count)).sum()) - whole

    low, high = _GROWTH
    if excess(low) > 0.0 or excess(high) < 0.0:
        way = "fewer" if excess(low) > 0.0 else "more"
        raise MeshError(f"{count} rings do not lead from the airfoil to the end: take {way}, or change first")
    sizes = _root(excess, low, high) ** np.arange(count)
    return np.append(0.0, whole * np.cumsum(sizes) / sizes.sum())
