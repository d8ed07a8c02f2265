"""A perfect gas: its constants, how viscous it is, and its relations: isentropic flow, shocks, expansions.

With the Mach number ``M`` and the ratio of specific heats ``gamma``; angles are in degrees.

References
----------
Ames Research Staff: *Equations, tables, and charts for compressible flow*. NACA report 1135, 1953.
J. D. Anderson: *Modern Compressible Flow*, 3rd ed., McGraw-Hill 2003, ch. 3 to 5.
W. Sutherland: *The viscosity of gases and molecular force*. Phil. Mag. 36, 1893.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from math import asin, atan, cos, degrees, isfinite, radians, sin, tan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy, require_strategy
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import sqrt

__all__ = [
    "ConstantViscosity", "Gas", "Shock", "Sutherland", "ViscosityLaw", "area_ratio", "bisect", "check_gamma",
    "check_positive", "mach_of_area_ratio", "mach_of_pressure_ratio", "mach_of_turning", "most_turning",
    "normal_shock", "oblique_shock", "plane_states", "prandtl_meyer", "sutherland", "sutherland_weighted",
    "total_pressure_ratio", "total_temperature_ratio", "viscous",
]  # fmt: skip

@func
def sutherland_weighted(temperature, mu0, t0, s):
    """Return the viscosity at a temperature, times ``T + S``: ``mu_0 (T / T_0)^(3/2) (T_0 + S)``."""
    ratio = temperature * (1.0 / t0)
    return mu0 * ratio * sqrt(ratio) * (t0 + s)


@func
def sutherland(temperature, mu0, t0, s):
    """Return the viscosity at a temperature, ``mu = mu_0 (T / T_0)^(3/2) (T_0 + S) / (T + S)`` (Sutherland 1893)."""
    return sutherland_weighted(temperature, mu0, t0, s) / (temperature + s)


@func
def viscous(u, gradients, heat, n, f, mu, conductivity, d):
    """Write the viscous flux ``F_v = (0, tau n, u . tau n + kappa dT/dn)``.

    ``tau = mu (grad u + grad u^T - 2/3 div u I)``; ``gradients`` has ``d u_i / d x_j`` at ``d i + j``, ``heat`` is
    ``grad T``, ``conductivity`` is ``kappa``.
    """
    spread = 0.0
    for k in range(d):
        spread += gradients[d * k + k]
    flow = 0.0
    work = 0.0
    for i in range(d):
        force = -2.0 / 3.0 * spread * n[i]
        for j in range(d):
            force += (gradients[d * i + j] + gradients[d * j + i]) * n[j]
        f[1 + i] = mu * force
        work += mu * force * u[i]
        flow += heat[i] * n[i]
    f[0] = 0.0
    f[1 + d] = work + conductivity * flow


Array = npt.NDArray[np.float64]


class ViscosityLaw(Strategy, what="viscosity", group="fluxloom.viscosities"):
    """How viscous a gas is at a temperature.

    A member is a frozen dataclass whose ``__call__`` is a ``@func`` that returns the dynamic viscosity, Pa s, at a
    temperature, K.
    """

    if TYPE_CHECKING:  # a member has to have it: that of the family would be a wrong formula

        def __call__(self, temperature: Any) -> Any: ...  # noqa: D102

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures, on the host: ``mu_i = mu(T_i)``."""
        return np.vectorize(self, otypes=[float])(temperature)

    @func
    def both(self, first, second):
        """Return the viscosities at two temperatures, ``(mu_1, mu_2) = (mu(T_1), mu(T_2))``."""
        return self(first), self(second)


@dataclass(frozen=True)
class Sutherland(ViscosityLaw, name="sutherland"):
    """``mu = mu_0 (T / T_0)^(3/2) (T_0 + S) / (T + S)``; of air by default (White, *Viscous Fluid Flow*).

    Attributes
    ----------
    mu0
        Viscosity at ``T_0``, Pa s.
    t0
        ``T_0``, K.
    s
        Sutherland's constant ``S``, K.
    """

    mu0: float = 1.716e-5
    t0: float = 273.15
    s: float = 110.4

    def __post_init__(self) -> None:
        _require_positive(self)

    @func
    def __call__(self, temperature):
        """Return the viscosity, ``mu = mu_0 (T / T_0)^(3/2) (T_0 + S) / (T + S)``."""
        return sutherland(temperature, self.mu0, self.t0, self.s)

    @func
    def both(self, first, second):
        """Return the viscosities at two temperatures, with one division for both.

        ``mu_1 = mu_0 (T_1 / T_0)^(3/2) (T_0 + S) (T_2 + S) / ((T_1 + S) (T_2 + S))``, and ``mu_2`` likewise.
        """
        once = 1.0 / ((first + self.s) * (second + self.s))
        mu_first = sutherland_weighted(first, self.mu0, self.t0, self.s) * ((second + self.s) * once)
        mu_second = sutherland_weighted(second, self.mu0, self.t0, self.s) * ((first + self.s) * once)
        return mu_first, mu_second

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures, ``mu = mu_0 (T / T_0)^(3/2) (T_0 + S) / (T + S)``."""
        ratio = temperature / self.t0
        return self.mu0 * ratio**1.5 * (self.t0 + self.s) / (temperature + self.s)


@dataclass(frozen=True)
class ConstantViscosity(ViscosityLaw, name="constant"):
    """The same viscosity everywhere.

    Attributes
    ----------
    mu
        Pa s.
    """

    mu: float

    def __post_init__(self) -> None:
        _require_positive(self)

    @func
    def __call__(self, temperature):
        """Return the viscosity, ``mu(T) = mu``."""
        return self.mu

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures, ``mu(T) = mu``."""
        return self.mu * np.ones_like(temperature)


def _require_positive(law: Sutherland | ConstantViscosity) -> None:
    for field in fields(law):
        value = getattr(law, field.name)
        if not (isfinite(value) and value > 0.0):
            raise SolverError(f"{field.name}: a number above 0 is wanted, not {value!r}")


@dataclass(frozen=True)
class Gas:
    """A perfect gas, ``p = rho R T``.

    Attributes
    ----------
    gamma
        Ratio of the specific heats.
    constant
        Gas constant ``R`` of ``p = rho R T``, J/(kg K).
    prandtl, prandtl_turbulent
        Laminar and turbulent Prandtl number.
    viscosity
        Law of the dynamic viscosity; None: the Euler equations, without viscous terms.

    Raises
    ------
    SolverError
        If a number is not positive, or ``gamma`` not above 1.
    """

    gamma: float = 1.4
    constant: float = 287.05
    prandtl: float = 0.72
    prandtl_turbulent: float = 0.9
    viscosity: ViscosityLaw | None = None

    def __post_init__(self) -> None:
        for field in fields(self)[:4]:
            value = getattr(self, field.name)
            if not (isfinite(value) and value > (1.0 if field.name == "gamma" else 0.0)):
                least = "above 1" if field.name == "gamma" else "above 0"
                raise SolverError(f"{field.name}: a number {least} is wanted, not {value!r}")
        require_strategy("viscosity", self.viscosity, ViscosityLaw, optional=True)

    def sound(self, w: Array) -> Array:
        """Return the speed of sound of primitive states ``(n, d + 2)``."""
        return np.sqrt(self.gamma * w[:, -1] / w[:, 0])

    def temperature(self, w: Array) -> Array:
        """Return the temperature of primitive states ``(n, d + 2)``, K."""
        return w[:, -1] / (w[:, 0] * self.constant)

    def conserved(self, w: Array) -> Array:
        """Return ``(rho, rho u, rho E)`` of primitive states ``(n, d + 2)``."""
        out = w * w[:, :1]
        out[:, 0] = w[:, 0]
        out[:, -1] = w[:, -1] / (self.gamma - 1.0) + 0.5 * w[:, 0] * (w[:, 1:-1] ** 2).sum(axis=1)
        return out


_HALVINGS = 80
"""Of an interval: more than the digits of a double and those of its exponent that matter here."""


def check_gamma(gamma: float) -> None:
    """Raise `SolverError` unless a ratio of specific heats is a number above 1."""
    if not (isfinite(gamma) and gamma > 1.0):
        raise SolverError(f"gamma: a number above 1 is wanted, not {gamma!r}")


def check_positive(**values: float) -> None:
    """Raise `SolverError` unless all values are finite and above 0."""
    for name, value in values.items():
        if not (isfinite(value) and value > 0.0):
            raise SolverError(f"{name}: a number above 0 is wanted, not {value!r}")


def plane_states(points: Array, density: Array, velocity: tuple[Array, Array], pressure: Array | float) -> Array:
    """Return primitive states ``(n, d + 2)`` at points ``(n, d)`` of a flow in the plane of the first two axes."""
    found = np.zeros((len(points), points.shape[1] + 2))
    found[:, 0], found[:, 1], found[:, 2] = density, *velocity
    found[:, -1] = pressure
    return found


def bisect(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return where an array function changes its sign, ``f(x) = 0``, between two arrays at which it has different ones.

    Parameters
    ----------
    function
        Of an array, element by element.
    low, high : (n,)
        Ends of the intervals.
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    rising = function(low) <= 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        right = (function(middle) <= 0.0) == rising
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return 0.5 * (low + high)


class Shock(NamedTuple):
    """What a shock does.

    Attributes
    ----------
    angle
        Between the shock and the flow before it, in degrees.
    pressure, density
        Ratios, behind to before.
    mach
        Mach number behind.
    total_pressure
        Ratio, behind to before.
    """

    angle: float
    pressure: float
    density: float
    mach: float
    total_pressure: float


# ------------------------------------------------------------------------------------------------- isentropic


def total_temperature_ratio(mach: npt.ArrayLike, gamma: float = 1.4) -> Array:
    r"""Return :math:`T_0 / T = 1 + \frac{\gamma - 1}{2} M^2` (NACA 1135, eq. 43)."""
    mach = np.asarray(mach, dtype=np.float64)
    return 1.0 + 0.5 * (gamma - 1.0) * mach * mach


def total_pressure_ratio(mach: npt.ArrayLike, gamma: float = 1.4) -> Array:
    r"""Return :math:`p_0 / p = (T_0 / T)^{\gamma / (\gamma - 1)}` (NACA 1135, eq. 44)."""
    return total_temperature_ratio(mach, gamma) ** (gamma / (gamma - 1.0))


def mach_of_pressure_ratio(ratio: npt.ArrayLike, gamma: float = 1.4) -> Array:
    """Return the Mach number at which ``p_0 / p`` is ``ratio``, at least 1.

    Raises
    ------
    SolverError
        For a smaller ratio.
    """
    ratio = np.asarray(ratio, dtype=np.float64)
    if not (ratio >= 1.0).all():
        raise SolverError(f"a total pressure is at least the pressure, got the ratio {float(np.min(ratio))}")
    return np.sqrt(2.0 / (gamma - 1.0) * (ratio ** ((gamma - 1.0) / gamma) - 1.0))


def area_ratio(mach: npt.ArrayLike, gamma: float = 1.4) -> Array:
    r"""Return the area of a stream tube over that at ``M = 1`` (NACA 1135, eq. 80).

    .. math:: A / A^* = \left(\frac{2}{\gamma + 1} \frac{T_0}{T}\right)^{(\gamma + 1) / 2 (\gamma - 1)} / M
    """
    ratio = 2.0 / (gamma + 1.0) * total_temperature_ratio(mach, gamma)
    return ratio ** (0.5 * (gamma + 1.0) / (gamma - 1.0)) / np.asarray(mach, dtype=np.float64)


def mach_of_area_ratio(ratio: npt.ArrayLike, supersonic: npt.ArrayLike, gamma: float = 1.4) -> Array:
    """Return the Mach number at which ``A / A*`` is ``ratio``, of the branch above or below 1.

    Parameters
    ----------
    ratio : (n,)
        At least 1, to round-off.
    supersonic : (n,) or one
        Which branch.
    gamma
        Ratio of specific heats.

    Raises
    ------
    SolverError
        For a ratio below 1: so much mass does not pass.
    """
    check_gamma(gamma)
    given = np.asarray(ratio, dtype=np.float64)
    if not (given >= 1.0 - 1e-12).all():
        raise SolverError(f"an area is at least that of sonic flow, got the ratio {float(np.min(given))}")
    wanted, fast = np.broadcast_arrays(np.maximum(given, 1.0), np.asarray(supersonic, dtype=np.bool_))
    # A / A* is more than c M^(2 / (gamma - 1)), and than its factor at rest over M: one bound for each branch
    power = 0.5 * (gamma + 1.0) / (gamma - 1.0)
    slow = (2.0 / (gamma + 1.0)) ** power / wanted
    reach = np.exp(0.5 * (gamma - 1.0) * (np.log(wanted) + power * np.log((gamma + 1.0) / (gamma - 1.0))))
    low, high = np.where(fast, 1.0, 0.5 * slow), np.where(fast, reach + 1.0, 1.0)
    return bisect(lambda mach: np.log(area_ratio(mach, gamma) / wanted), low, high)


# --------------------------------------------------------------------------------------------------- supersonic


def prandtl_meyer(mach: npt.ArrayLike, gamma: float = 1.4) -> Array:
    r"""Return the angle by which sonic flow turns to reach a Mach number, in degrees (NACA 1135, eq. 171c).

    .. math:: \nu = \sqrt{k} \arctan \sqrt{(M^2 - 1) / k} - \arctan \sqrt{M^2 - 1}, \quad
              k = \frac{\gamma + 1}{\gamma - 1}

    Raises
    ------
    SolverError
        Below Mach 1.
    """
    check_gamma(gamma)
    mach = np.asarray(mach, dtype=np.float64)
    if not (mach >= 1.0).all():
        raise SolverError(f"a supersonic Mach number is wanted, not {float(np.min(mach))}")
    k, root = (gamma + 1.0) / (gamma - 1.0), np.sqrt(mach * mach - 1.0)
    return np.degrees(math.sqrt(k) * np.arctan(root / math.sqrt(k)) - np.arctan(root))


def mach_of_turning(turning: npt.ArrayLike, gamma: float = 1.4) -> Array:
    """Return the Mach number with an angle of Prandtl and Meyer, in degrees: the inverse of `prandtl_meyer`.

    ``nu = k t - arctan(k tan t)`` is solved for ``t``, then ``M^2 = 1 + (k tan t)^2``,
    ``k^2 = (gamma + 1) / (gamma - 1)``.

    Raises
    ------
    SolverError
        For an angle below 0, or not below that of a vacuum.
    """
    check_gamma(gamma)
    turning = np.asarray(turning, dtype=np.float64)
    k = math.sqrt((gamma + 1.0) / (gamma - 1.0))
    most = 90.0 * (k - 1.0)
    if not ((turning >= 0.0) & (turning < most)).all():
        raise SolverError(f"an angle of Prandtl and Meyer is at least 0 and below {most:.4f} degrees, got {turning}")

    def excess(t: Array) -> Array:
        """How much larger the angle is where ``t = arctan sqrt((M^2 - 1) / k)``, which is bounded for all ``M``."""
        return np.degrees(k * t - np.arctan(k * np.tan(t))) - turning

    t = bisect(excess, np.zeros_like(turning), np.full_like(turning, 0.5 * np.pi))
    return np.sqrt(1.0 + (k * np.tan(t)) ** 2)


def normal_shock(mach: float, gamma: float = 1.4) -> Shock:
    """Return what a shock across the flow does (NACA 1135, eq. 93 to 99).

    Raises
    ------
    SolverError
        Below Mach 1.
    """
    return _shock(mach, 90.0, 0.0, gamma)


def oblique_shock(mach: float, angle: float, gamma: float = 1.4) -> Shock:
    r"""Return the weak shock that turns the flow by an angle.

    The angle ``beta`` of the shock is the smaller root of (NACA 1135, eq. 139a)

    .. math:: \tan\theta = 2 \cot\beta \frac{M^2 \sin^2\beta - 1}{M^2 (\gamma + \cos 2\beta) + 2}

    Parameters
    ----------
    mach
        Before the shock, above 1.
    angle
        ``theta``, in degrees; 0 has the Mach wave for an answer.
    gamma
        Ratio of specific heats.

    Raises
    ------
    SolverError
        Below Mach 1, for a negative angle, and for one at which the shock detaches.
    """
    steepest, most = most_turning(mach, gamma)
    if not 0.0 <= angle <= most:
        raise SolverError(
            f"an attached shock turns a flow of Mach {mach:g} by 0 to {most:.4f} degrees, not by {angle!r}: take a "
            "smaller angle, or a larger Mach number"
        )
    low, high, turned = asin(1.0 / mach), radians(steepest), radians(angle)
    if _turning(mach, low, gamma) >= turned:  # to round-off
        return _shock(mach, degrees(low), angle, gamma)
    if _turning(mach, high, gamma) <= turned:
        return _shock(mach, steepest, angle, gamma)
    from scipy.optimize import brentq  # late: most of what is here needs no SciPy

    found: Any = brentq(lambda beta: _turning(mach, beta, gamma) - turned, low, high, xtol=1e-15, rtol=1e-15)  # pyright: ignore
    return _shock(mach, degrees(float(found)), angle, gamma)


def most_turning(mach: float, gamma: float = 1.4) -> tuple[float, float]:
    r"""Return the angle of the shock that turns the flow most, and by how much, in degrees.

    .. math:: \sin^2\beta = \frac{1}{\gamma M^2} \left[\frac{\gamma + 1}{4} M^2 - 1 +
              \sqrt{(\gamma + 1) \left(1 + \frac{\gamma - 1}{2} M^2 + \frac{\gamma + 1}{16} M^4\right)}\right]

    (NACA 1135, eq. 168).

    Raises
    ------
    SolverError
        Below Mach 1.
    """
    check_gamma(gamma)
    _check_supersonic(mach)
    m2 = mach * mach
    root = math.sqrt((gamma + 1.0) * (1.0 + 0.5 * (gamma - 1.0) * m2 + (gamma + 1.0) / 16.0 * m2 * m2))
    square = (0.25 * (gamma + 1.0) * m2 - 1.0 + root) / (gamma * m2)
    beta = asin(math.sqrt(min(square, 1.0)))
    return degrees(beta), degrees(_turning(mach, beta, gamma))


def _check_supersonic(mach: float) -> None:
    if not (isfinite(mach) and mach >= 1.0):
        raise SolverError(f"a supersonic Mach number is wanted, not {mach!r}")


def _turning(mach: float, beta: float, gamma: float) -> float:
    """Return by how much a shock turns the flow; radians."""
    m2, s2 = mach * mach, sin(beta) ** 2
    return atan(2.0 / tan(beta) * (m2 * s2 - 1.0) / (m2 * (gamma + cos(2.0 * beta)) + 2.0))


def _shock(mach: float, beta: float, turning: float, gamma: float) -> Shock:
    """Return the ratios across a shock from the Mach number normal to it (NACA 1135, eq. 93 to 99)."""
    check_gamma(gamma)
    _check_supersonic(mach)
    gradient = 1.0 if beta == 90.0 else sin(radians(beta))
    n2 = max((mach * gradient) ** 2, 1.0)
    pressure = 1.0 + 2.0 * gamma / (gamma + 1.0) * (n2 - 1.0)
    density = (gamma + 1.0) * n2 / ((gamma - 1.0) * n2 + 2.0)
    behind = math.sqrt((1.0 + 0.5 * (gamma - 1.0) * n2) / (gamma * n2 - 0.5 * (gamma - 1.0)))
    after = behind / (1.0 if beta == 90.0 else sin(radians(beta - turning)))
    total = density ** (gamma / (gamma - 1.0)) * pressure ** (-1.0 / (gamma - 1.0))
    return Shock(beta, pressure, density, after, total)
