r"""Explicit Runge-Kutta schemes in the form of Shu and Osher.

A stage leads from the states ``U`` of the stage before, and those ``U_0`` at the start of the step, to

.. math:: a U_0 + b U + c\, \Delta t\, R(U) / V

References
----------
C.-W. Shu, S. Osher: *Efficient implementation of essentially non-oscillatory shock-capturing schemes*. J. Comput. Phys.
77, 1988.
B. van Leer, C.-H. Tai, K. G. Powell: *Design of optimally smoothing multi-stage schemes for the Euler equations*. AIAA
89-1933.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.strategies import Strategy

__all__ = ["RK2", "RK5", "SSPRK3", "RK5First", "Stages", "TimeScheme"]

Stages = tuple[tuple[float, float, float], ...]
"""``(a, b, c)`` of each stage."""


class TimeScheme(Strategy, what="time scheme", group="fluxloom.time_schemes"):
    """An explicit scheme; a member is a frozen dataclass that says its stages and its largest CFL number."""

    @property
    def stages(self) -> Stages:
        """``(a, b, c)`` of each stage, ``U = a U_start + b U + c dt R / V``."""
        raise NotImplementedError(f"{type(self).__name__} has no stages: give it the property")

    @property
    def largest_cfl(self) -> float:
        """CFL number up to which upwind fluxes of second order are stable."""
        raise NotImplementedError(f"{type(self).__name__} has no largest_cfl: give it the property")


@dataclass(frozen=True)
class RK2(TimeScheme, name="rk2"):
    """The midpoint rule, of second order."""

    @property
    def stages(self) -> Stages:
        """Two, ``U* = U_0 + dt R_0 / (2 V)``, ``U = U_0 + dt R* / V``."""
        return ((1.0, 0.0, 0.5), (1.0, 0.0, 1.0))

    @property
    def largest_cfl(self) -> float:
        """Of the step."""
        return 0.8


@dataclass(frozen=True)
class SSPRK3(TimeScheme, name="ssp-rk3"):
    """Shu and Osher's, of third order, which adds no oscillation."""

    @property
    def stages(self) -> Stages:
        """Three, ``U = a U_0 + (1 - a) U + c dt R / V``, ``a = (1, 3/4, 1/3)``, ``c = (1, 1/4, 2/3)``."""
        return ((1.0, 0.0, 1.0), (0.75, 0.25, 0.25), (1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0))

    @property
    def largest_cfl(self) -> float:
        """Of the step."""
        return 0.8


@dataclass(frozen=True)
class RK5(TimeScheme, name="rk5"):
    """Five stages that damp fast, for steady flow with upwind fluxes of second order (van Leer et al.)."""

    @property
    def stages(self) -> Stages:
        """Five, ``U_k = U_0 + c_k dt R_{k-1} / V``."""
        return tuple((1.0, 0.0, c) for c in (0.0695, 0.1602, 0.2898, 0.5060, 1.0))

    @property
    def largest_cfl(self) -> float:
        """Of the step."""
        return 2.5


@dataclass(frozen=True)
class RK5First(TimeScheme, name="rk5-first"):
    """`RK5` for fluxes of first order."""

    @property
    def stages(self) -> Stages:
        """Five, ``U_k = U_0 + c_k dt R_{k-1} / V``."""
        return tuple((1.0, 0.0, c) for c in (0.0533, 0.1263, 0.2375, 0.4414, 1.0))

    @property
    def largest_cfl(self) -> float:
        """Of the step."""
        return 2.5
