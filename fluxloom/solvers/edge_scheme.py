"""Choices of the discretisation of flow on edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fluxloom.core.errors import SolverError, did_you_mean

__all__ = ["EdgeScheme"]


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

    def __post_init__(self) -> None:
        for name, allowed in (("convection", ("skew-symmetric", "advective")), ("stress", ("laplacian", "full"))):
            value = getattr(self, name)
            if value not in allowed:
                raise SolverError(f"{name}: no {value!r}{did_you_mean(str(value), allowed)}: {allowed}")
        for name in ("dynamic", "viscous", "convective", "pressure"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise SolverError(f"{name}: a number of at least 0 is wanted, not {getattr(self, name)!r}")
        if not self.dynamic + self.viscous + self.convective > 0.0:
            raise SolverError("dynamic, viscous, convective: one of them is above 0, or tau is infinite")

    @property
    def transposed(self) -> int:
        """Whether the transposed gradient is in the stress."""
        return int(self.stress == "full")

    @property
    def times(self) -> dict[str, float]:
        """The constants of ``tau``."""
        return {"dynamic": self.dynamic, "viscous": self.viscous, "convective": self.convective}
