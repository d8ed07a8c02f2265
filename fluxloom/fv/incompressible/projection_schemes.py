r"""Explicit time schemes of incompressible flow, whose stages each end with a pressure that takes the divergence away.

Two forms, of the solver on any mesh (`ProjectionScheme`) and of that on a staggered grid (`StaggeredTimeScheme`), which
keeps the rates of one stage for the next: with ``H`` the rate of change without the pressure,

.. math:: u^* = c\, u^n + (1 - c)\, (u + \Delta t\, H(u_e)), \qquad
          u^* = u + \Delta t\, (\beta H + \beta' H_{\text{before}})

References
----------
C.-W. Shu, S. Osher: *Efficient implementation of essentially non-oscillatory shock-capturing schemes*. J. Comput. Phys.
77, 1988, eq. 2.18.
A. A. Wray: *Very low storage time-advancement schemes*. NASA Ames, 1986.
H. Le, P. Moin: *An improvement of fractional step methods for the incompressible Navier-Stokes equations*. J. Comput.
Phys. 92, 1991.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import Strategy

__all__ = ["AdamsBashforth", "ProjectionScheme", "RungeKutta", "StaggeredTimeScheme", "Wray", "check_shares"]

_NOW = (8.0 / 15.0, 5.0 / 12.0, 3.0 / 4.0)
_BEFORE = (0.0, -17.0 / 60.0, -5.0 / 12.0)
_PROJECTIONS = ("stage", "step")


class ProjectionScheme(Strategy, what="time scheme", group="fluxloom.projection_schemes"):
    """A scheme of flow on any mesh; a member is a frozen dataclass that says the shares of its stages."""

    @property
    def shares(self) -> tuple[float, ...]:
        """``c`` of each stage, which is one of Euler's: the first is 0, the others less than 1."""
        raise NotImplementedError(f"{type(self).__name__} has no shares: give it the property")

    extrapolates: ClassVar[bool] = False
    """Whether ``u_e`` is the velocity half a step ahead, from that of the step before; of one stage alone."""
    longer: ClassVar[float] = 1.0
    """How many times the limits of the step of Adams-Bashforth those of the scheme are."""
    fading: ClassVar[float] = 1.0
    """Part of its rate at which what is carried on at faces fades, in runs towards a steady flow."""


class StaggeredTimeScheme(Strategy, what="time scheme", group="fluxloom.staggered_time_schemes"):
    """A scheme of flow on a staggered grid; a member is a frozen dataclass that says the weights of its stages."""

    def stages(self, ratio: float) -> tuple[tuple[float, float, float], ...]:
        """Return length and weights of the rates now and before of each stage, as parts of the step.

        Parameters
        ----------
        ratio
            Half of this step over the last one; 0 for the first.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define stages(ratio)")

    @property
    def once(self) -> bool:
        """Whether the pressure is solved for in the last stage alone; the others see that of the step before."""
        return False

    @property
    def limits(self) -> tuple[float, float]:
        """Default bounds of ``dt max sum |u| / dx`` and of ``nu dt sum 1 / dx^2``."""
        raise NotImplementedError(f"{type(self).__name__} has no limits: give it the property")


@dataclass(frozen=True)
class AdamsBashforth(ProjectionScheme, StaggeredTimeScheme, name="adams-bashforth"):
    """Adams and Bashforth's, of second order: one pressure solve a step; steps may change their lengths."""

    @property
    def shares(self) -> tuple[float, ...]:
        """One stage, ``c = 0``."""
        return (0.0,)

    extrapolates = True

    def stages(self, ratio: float) -> tuple[tuple[float, float, float], ...]:
        """Return one, ``u* = u + dt ((1 + r) H - r H_before)``, ``r`` is the ratio."""
        return ((1.0, 1.0 + ratio, -ratio),)

    @property
    def limits(self) -> tuple[float, float]:
        """Of the step."""
        return 0.3, 0.2


@dataclass(frozen=True)
class RungeKutta(ProjectionScheme, name="runge-kutta"):
    """Shu and Osher's, of third order: three pressure solves a step, and steps about three times as long."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Three, ``u = u_s + c (u_0 - u_s)``: Shu and Osher's."""
        return 0.0, 0.75, 1.0 / 3.0

    longer = 3.0
    fading = 0.5


@dataclass(frozen=True)
class Wray(StaggeredTimeScheme, name="runge-kutta"):
    """Wray's method of Runge and Kutta, of third order and low storage.

    Attributes
    ----------
    projection
        ``"stage"`` makes each of the three stages free of divergence; ``"step"`` only the last one, the others see the
        pressure of the step before (Le and Moin): one pressure solve a step, and second order.

    Raises
    ------
    SolverError
        For another projection.
    """

    projection: Literal["stage", "step"] = "stage"

    def __post_init__(self) -> None:
        if self.projection not in _PROJECTIONS:
            hint = did_you_mean(str(self.projection), _PROJECTIONS)
            raise SolverError(f"projection: {self.projection!r} is none{hint} ({', '.join(_PROJECTIONS)})")

    def stages(self, ratio: float) -> tuple[tuple[float, float, float], ...]:
        """Return three, ``u* = u + dt (now H + before H_before)``, whatever the step before."""
        return tuple((now + before, now, before) for now, before in zip(_NOW, _BEFORE, strict=True))

    @property
    def once(self) -> bool:
        """Whether the pressure is solved for once."""
        return self.projection == "step"

    @property
    def limits(self) -> tuple[float, float]:
        """Of the step."""
        return 1.2, 0.5


def check_shares(scheme: ProjectionScheme) -> None:
    """Raise `SolverError` unless the stages of a scheme are some."""
    shares, name = scheme.shares, type(scheme).__name__
    if not shares or shares[0] != 0.0 or not all(0.0 <= share < 1.0 for share in shares):
        raise SolverError(f"scheme: {name}: shares begin with 0 and are less than 1, not {shares}")
    if scheme.extrapolates and len(shares) > 1:
        raise SolverError(f"scheme: {name}: a scheme that extrapolates has one stage, not {len(shares)}")
