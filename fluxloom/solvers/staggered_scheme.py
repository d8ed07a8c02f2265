"""How time advances in flow on a staggered grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fluxloom.core.errors import SolverError

__all__ = ["BEFORE", "NOW", "StaggeredScheme"]

NOW = (8.0 / 15.0, 5.0 / 12.0, 3.0 / 4.0)
BEFORE = (0.0, -17.0 / 60.0, -5.0 / 12.0)
"""Weights of the rates of a stage and of those of the stage before, in the method of A. A. Wray (NASA Ames, 1986)."""


@dataclass(frozen=True)
class StaggeredScheme:
    """How time advances.

    Attributes
    ----------
    time
        ``"adams-bashforth"``, or ``"runge-kutta"``.
    projection
        Of Runge-Kutta: ``"stage"`` makes each stage free of divergence; ``"step"`` only the last one, the others see
        the pressure of the step before.
    """

    time: Literal["adams-bashforth", "runge-kutta"] = "adams-bashforth"
    projection: Literal["stage", "step"] = "stage"

    def __post_init__(self) -> None:
        if self.projection == "step" and self.time == "adams-bashforth":
            raise SolverError('projection = "step" is of "runge-kutta": Adams-Bashforth has one stage')

    @property
    def limits(self) -> tuple[float, float]:
        """Default bounds of ``dt max sum |u| / dx`` and of ``nu dt sum 1 / dx^2``."""
        return (0.3, 0.2) if self.time == "adams-bashforth" else (1.2, 0.5)
