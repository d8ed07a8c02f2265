"""How implicit steps towards a steady compressible flow are made, and what one of them did."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

if TYPE_CHECKING:
    from fluxloom.solvers.compressible_shares import Following

__all__ = ["Implicit", "ImplicitStep"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Implicit:
    """How implicit steps are made.

    Attributes
    ----------
    cfl, cfl_max
        Of the first step, and at most; the step of each cell is as in `CompressibleScheme`.
    growth
        At most how much the CFL number grows from one step to the next.
    sweeps, sweeps_max
        Symmetric Gauss-Seidel sweeps through the linearised equations, in a step or a product of GMRES; more in a
        product, twice as many at a time up to ``sweeps_max``, where GMRES needs many vectors.
    krylov
        Vectors of GMRES in a step; 0: sweeps make all steps.
    switch
        Part of the largest residual so far, below which steps are Newton's with GMRES; before, the sweeps make them
        with the CFL number that was given. 1: all steps are Newton's. So are those after the shares of a limiter stay.
    tolerance
        Part of the right-hand side at which GMRES ends.
    change
        Part of themselves by which density and pressure change at most in a step; a cell with more takes less of it.
    settle, follow, freeze, patience
        Of a scheme with a limiter: parts of the largest residual so far at which the shares of slopes begin to follow
        the states slowly, by a part ``follow`` in a step, and at which they stay from then on; steps without a lower
        residual, after which they stay as well. ``settle = 0``: they come from the states all the time. See
        `fluxloom.solvers.compressible_shares`.
    fronts
        For turbulent flow with thin cells, in layers and wakes: one sweep in the order of fronts with approximate
        factors, which solves whole lines of cells, takes the place of `sweeps` through colours; the CFL number is that
        of a cube of each cell's volume; GMRES weighs the model's equation no more than the others together; increments
        that are too long are made shorter before a step is refused.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    cfl: float = 10.0
    cfl_max: float = 1e8
    growth: float = 2.0
    sweeps: int = 4
    krylov: int = 40
    switch: float = 1.0
    tolerance: float = 0.2
    change: float = 0.3
    sweeps_max: int = 16
    settle: float = 0.1
    follow: float = 0.3
    freeze: float = 1e-8
    patience: int = 200
    fronts: bool = False

    def __post_init__(self) -> None:
        for name, low, high in (("cfl", 0.0, 1e300), ("cfl_max", 0.0, 1e300), ("growth", 1.0, 1e3),
                                ("switch", 0.0, 1.0), ("tolerance", 0.0, 1.0), ("change", 0.0, 1.0)):  # fmt: skip
            value = getattr(self, name)
            if not (isfinite(value) and low < value <= high):
                raise SolverError(f"Implicit: {name}: above {low:g} and at most {high:g} is wanted, not {value!r}")
        for name, least in (("sweeps", 1), ("krylov", 0), ("sweeps_max", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise SolverError(f"Implicit: {name} is a whole number of at least {least}, not {value!r}")
        if not isinstance(self.fronts, bool):
            raise SolverError(f"Implicit: fronts is true or false, not {self.fronts!r}")
        if self.cfl_max < self.cfl:
            raise SolverError(f"Implicit: cfl_max ({self.cfl_max:g}) is less than cfl ({self.cfl:g})")
        _ = self.following

    @property
    def following(self) -> Following:
        """When shares of slopes follow the states slowly, and when they stay."""
        from fluxloom.solvers.compressible_shares import Following

        return Following(self.settle, self.follow, self.freeze, self.patience)


@dataclass(frozen=True)
class ImplicitStep:
    """What a step did.

    Attributes
    ----------
    norms : (nv,)
        Roots of the mean squares of ``R``, of mass, momentum and energy, after it.
    total
        The same of all components over their sizes: what falls to nothing.
    cfl
        Of the step.
    share
        The least that a cell took of its increments; 0: the step was refused.
    products
        Of GMRES; 0: sweeps alone.
    rest
        What GMRES left of the right-hand side.
    live
        How far the limiter's shares of slopes followed the states: 1 all the way; 0: they stayed as they were.
    """

    norms: Array
    total: float
    cfl: float
    share: float
    products: int = 0
    rest: float = 0.0
    live: float = 1.0
