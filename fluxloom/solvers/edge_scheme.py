"""Choices of the discretisation of flow on edges."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean

__all__ = ["EdgeScheme"]

Array = npt.NDArray[np.float64]

_CHOICES = MappingProxyType({
    "convection": ("skew-symmetric", "advective"), "stress": ("laplacian", "full"),
    "subscales": ("quasi-static", "tracked"),
})  # fmt: skip


@dataclass(frozen=True)
class EdgeScheme:
    """Choices of the discretisation.

    Attributes
    ----------
    convection
        ``"skew-symmetric"``, which leaves the kinetic energy alone, or ``"advective"``, that of Codina and Folch.
    stress
        ``"laplacian"``: ``nu grad u``; ``"full"``: ``nu (grad u + grad u^T)``, for viscosities that vary.
    dynamic, viscous, convective
        ``tau = 1 / (dynamic / dt + viscous nu / h^2 + convective |u| / h)`` with ``h = M^(1/d)``.
    pressure
        Factor of ``tau`` in the equation of the pressure.
    subscales
        Of the pressure: ``"quasi-static"``, those of ``tau`` at once; ``"tracked"``, with a memory in time instead of
        ``dynamic / dt`` (`fluxloom.fe.edge_subscales`), for second order in time on a mesh that stays as it is,
        together with ``dynamic = 0``. Flow alone.

    Raises
    ------
    SolverError
        If a choice is none.
    """

    convection: Literal["skew-symmetric", "advective"] = "skew-symmetric"
    stress: Literal["laplacian", "full"] = "laplacian"
    dynamic: float = 1.0
    viscous: float = 4.0
    convective: float = 2.0
    pressure: float = 1.0
    subscales: Literal["quasi-static", "tracked"] = "quasi-static"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise SolverError(f"{name}: no {value!r}{did_you_mean(str(value), allowed)}: {allowed}")
        for name in ("dynamic", "viscous", "convective", "pressure"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0.0 <= float(value) < float("inf"):
                raise SolverError(f"{name}: a number of at least 0 is wanted, not {value!r}")
        if not self.dynamic + self.viscous + self.convective > 0.0:
            raise SolverError("dynamic, viscous, convective: one of them is above 0, or tau is infinite")
        if self.subscales == "tracked" and not self.pressure > 0.0:
            raise SolverError('pressure: a number above 0 is wanted with subscales = "tracked"')

    def check_bounded(self, viscosity: Array, speed: Array, what: str) -> None:
        """Raise `SolverError` where ``tau`` has no bound: with ``dynamic = 0``, at points where nothing moves.

        Parameters
        ----------
        viscosity, speed : (n,)
            Of points; the speed that they have at least.
        what
            What the viscosity is called.
        """
        slowest = self.viscous * viscosity + self.convective * speed
        if self.dynamic == 0.0 and not (slowest > 0.0).all():
            raise SolverError(
                f"{what}: tau has no bound with dynamic = 0 where {what} and velocity are 0; give a {what} above 0 or "
                "take dynamic = 1"
            )

    @property
    def transposed(self) -> int:
        """Whether the transposed gradient is in the stress."""
        return int(self.stress == "full")

    @property
    def times(self) -> dict[str, float]:
        """The constants of ``tau``."""
        return {"dynamic": self.dynamic, "viscous": self.viscous, "convective": self.convective}
