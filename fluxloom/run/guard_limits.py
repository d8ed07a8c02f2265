"""What guards hold a flow to."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fluxloom.core.errors import SolverError

__all__ = ["GuardLimits"]


@dataclass(frozen=True)
class GuardLimits:
    """What ends a run as diverged. Numbers that are 0, and ``false``, switch a guard off.

    Attributes
    ----------
    every
        Steps between two looks at the flow; 0: as the solver chooses, such that they cost less than 1 %.
    finite
        Whether all values have to be finite.
    positive
        Whether density, pressure and depth have to be.
    balance
        Part of the mass (of gas, of water) that may appear or vanish: what boundaries let through is counted.
    growth
        How many times what the start, boundaries and forces give the energy may be.
    scalar
        How many times what the start, boundaries and sources give the largest value of a scalar may be.
    viscosity
        How many times the viscosity the eddy viscosity, and the variable of its model, may be.
    residual
        How many times its lowest value so far, or 1e-10 of the first one, the residual of a steady run may be.
    clipped, clipped_steps
        Part of the states of a step towards a steady flow that may be clipped, in so many steps one after the other.
    courant
        How many times the largest stable step a step may be.
    mach
        Of fluid and bodies on a lattice.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    every: int = 0
    finite: bool = True
    positive: bool = True
    balance: float = 1e-4
    growth: float = 1e4
    scalar: float = 3.0
    viscosity: float = 1e7
    residual: float = 1e6
    clipped: float = 0.05
    clipped_steps: int = 100
    courant: float = 8.0
    mach: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 1 if field.name == "clipped_steps" else 0
            if not getattr(self, field.name) >= least:
                raise SolverError(f"{field.name}: at least {least} is wanted, not {getattr(self, field.name)!r}")
        if self.clipped > 1:
            raise SolverError(f"clipped: a part of the states is wanted, at most 1, not {self.clipped!r}")
