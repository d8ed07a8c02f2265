"""Choices of the discretisation of flow on edges."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy, require_strategy
from fluxloom.solvers.edges.subscales import QuasiStatic, Subscales

__all__ = [
    "Advective", "Convection", "EdgeScheme", "FullStress", "Laplacian", "SkewSymmetric", "SuitedStress",
    "ViscousStress",
]  # fmt: skip

Array = npt.NDArray[np.float64]


class Convection(Strategy, what="form of convection", group="fluxloom.edge_convections"):
    """A form of the convective term, ``(u . grad) u + skew u div u``; a member is a frozen dataclass with ``skew``."""

    skew: float
    """What is added of ``u div u``, which is zero but for what the mesh does not resolve."""


@dataclass(frozen=True)
class SkewSymmetric(Convection, name="skew-symmetric"):
    """It leaves the kinetic energy alone."""

    skew = 0.5


@dataclass(frozen=True)
class Advective(Convection, name="advective"):
    """That of Codina and Folch."""

    skew = 0.0


class ViscousStress(Strategy, what="viscous stress", group="fluxloom.edge_stresses"):
    """A form of the viscous stress, ``nu (grad u + transposed grad u^T)``; a member is a frozen dataclass with it."""

    transposed: int
    """0 or 1."""


@dataclass(frozen=True)
class Laplacian(ViscousStress, name="laplacian"):
    """``nu grad u``."""

    transposed = 0


@dataclass(frozen=True)
class FullStress(ViscousStress, name="full"):
    """``nu (grad u + grad u^T)``, for viscosities that vary."""

    transposed = 1


@dataclass(frozen=True)
class SuitedStress(ViscousStress, name="auto"):
    """That of `FullStress` where the viscosity is given in space, else that of `Laplacian`, which is the same there."""

    transposed = 0


@dataclass(frozen=True)
class EdgeScheme:
    """Choices of the discretisation.

    Attributes
    ----------
    convection
        `SkewSymmetric`, which leaves the kinetic energy alone, or `Advective`, that of Codina and Folch.
    stress
        `Laplacian`: ``nu grad u``; `FullStress`: ``nu (grad u + grad u^T)``, for viscosities that vary; or
        `SuitedStress`, the latter where the viscosity is given in space.
    dynamic, viscous, convective
        ``tau = 1 / (dynamic / dt + viscous nu / h^2 + convective |u| / h)`` with ``h = M^(1/d)``.
    pressure
        Factor of ``tau`` in the equation of the pressure.
    subscales
        Of the pressure: `QuasiStatic`, those of ``tau`` at once; `Tracked`, with a memory in time instead of ``dynamic
        / dt``, for second order in time on a mesh that stays as it is, together with ``dynamic = 0``. Flow alone.

    Raises
    ------
    SolverError
        If a choice is none.
    """

    convection: Convection = SkewSymmetric()
    stress: ViscousStress = SuitedStress()
    dynamic: float = 1.0
    viscous: float = 4.0
    convective: float = 2.0
    pressure: float = 1.0
    subscales: Subscales = QuasiStatic()

    def __post_init__(self) -> None:
        require_strategy("convection", self.convection, Convection)
        require_strategy("subscales", self.subscales, Subscales)
        require_strategy("stress", self.stress, ViscousStress)
        for name in ("dynamic", "viscous", "convective", "pressure"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0.0 <= float(value) < float("inf"):
                raise SolverError(f"{name}: a number of at least 0 is wanted, not {value!r}")
        if not self.dynamic + self.viscous + self.convective > 0.0:
            raise SolverError("dynamic, viscous, convective: one of them is above 0, or tau is infinite")
        self.subscales.check(self.pressure)

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
    def times(self) -> dict[str, float]:
        """The constants of ``tau``."""
        return {"dynamic": self.dynamic, "viscous": self.viscous, "convective": self.convective}
