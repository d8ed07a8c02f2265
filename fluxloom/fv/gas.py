"""A perfect gas: its constants, and how viscous it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy, require_strategy
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import sqrt

__all__ = ["ConstantViscosity", "Gas", "Sutherland", "ViscosityLaw", "sutherland", "sutherland_weighted", "viscous"]


@func
def sutherland_weighted(temperature, mu0, t0, s):
    """Return the viscosity at a temperature, times ``T + S``."""
    ratio = temperature * (1.0 / t0)
    return mu0 * ratio * sqrt(ratio) * (t0 + s)


@func
def sutherland(temperature, mu0, t0, s):
    """Return the viscosity at a temperature."""
    return sutherland_weighted(temperature, mu0, t0, s) / (temperature + s)


@func
def viscous(u, slopes, heat, n, f, mu, conductivity, d):
    """Write ``F_v``, ``(d + 2,)``, for a velocity, its gradient ``d u_i / d x_j`` at ``d i + j``, and ``grad T``."""
    spread = 0.0
    for k in range(d):
        spread += slopes[d * k + k]
    flow = 0.0
    work = 0.0
    for i in range(d):
        force = -2.0 / 3.0 * spread * n[i]
        for j in range(d):
            force += (slopes[d * i + j] + slopes[d * j + i]) * n[j]
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
        """Return the viscosity at temperatures, on the host."""
        return np.vectorize(self, otypes=[float])(temperature)

    @func
    def both(self, first, second):
        """Return the viscosities at two temperatures."""
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
        """Return the viscosity."""
        return sutherland(temperature, self.mu0, self.t0, self.s)

    @func
    def both(self, first, second):
        """Return the viscosities at two temperatures, with one division for both."""
        once = 1.0 / ((first + self.s) * (second + self.s))
        mu_first = sutherland_weighted(first, self.mu0, self.t0, self.s) * ((second + self.s) * once)
        mu_second = sutherland_weighted(second, self.mu0, self.t0, self.s) * ((first + self.s) * once)
        return mu_first, mu_second

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures."""
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
        """Return the viscosity."""
        return self.mu

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures."""
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
