"""A perfect gas: its constants, and how viscous it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["ConstantViscosity", "Gas", "Sutherland"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sutherland:
    """``mu = mu_0 (T / T_0)^(3/2) (T_0 + S) / (T + S)``, Pa s; of air by default (White, *Viscous Fluid Flow*)."""

    mu0: float = 1.716e-5
    t0: float = 273.15
    s: float = 110.4

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures."""
        ratio = temperature / self.t0
        return self.mu0 * ratio**1.5 * (self.t0 + self.s) / (temperature + self.s)


@dataclass(frozen=True)
class ConstantViscosity:
    """The same viscosity ``mu`` everywhere, Pa s."""

    mu: float

    def at(self, temperature: Array | float) -> Array | float:
        """Return the viscosity at temperatures."""
        return self.mu * np.ones_like(temperature)


@dataclass(frozen=True)
class Gas:
    """A perfect gas, ``p = rho R T``.

    Attributes
    ----------
    gamma
        Ratio of the specific heats.
    constant
        ``R``, J/kg/K.
    prandtl, prandtl_turbulent
        Laminar and turbulent Prandtl number.
    viscosity
        None: no viscous terms.

    Raises
    ------
    SolverError
        If a number is not positive, or ``gamma`` not above 1.
    """

    gamma: float = 1.4
    constant: float = 287.05
    prandtl: float = 0.72
    prandtl_turbulent: float = 0.9
    viscosity: Sutherland | ConstantViscosity | None = None

    def __post_init__(self) -> None:
        for field in fields(self)[:4]:
            value = getattr(self, field.name)
            if not (isfinite(value) and value > (1.0 if field.name == "gamma" else 0.0)):
                least = "above 1" if field.name == "gamma" else "positive"
                raise SolverError(f"gas: {field.name} is {least}, not {value!r}")
        for field in fields(self.viscosity) if self.viscosity is not None else ():
            value = getattr(self.viscosity, field.name)
            if not (isfinite(value) and value > 0.0):
                raise SolverError(f"gas: {field.name} of the viscosity is positive, not {value!r}")

    def molecular(self) -> dict[str, Any]:
        """Return what kernels take for the viscosity.

        Raises
        ------
        SolverError
            If there is none.
        """
        if self.viscosity is None:
            raise SolverError("gas: it has no viscosity")
        if isinstance(self.viscosity, Sutherland):
            return {"law": 1, "mu0": self.viscosity.mu0, "t0": self.viscosity.t0, "s": self.viscosity.s}
        return {"law": 0, "mu0": self.viscosity.mu, "t0": 1.0, "s": 1.0}

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
