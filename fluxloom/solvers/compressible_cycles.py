"""How cycles of multigrid for a compressible flow are made."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.graph.agglomerate import Grouping
from fluxloom.solvers.compressible_shares import Following

__all__ = ["CYCLES", "SMOOTHERS", "Multigrid"]

CYCLES = {"V": 1, "W": 2}
"""How often each level visits the next coarser one."""

SMOOTHERS = ("sweeps", "stages")
"""Implicit stages solved by sweeps, and explicit ones."""


@dataclass(frozen=True)
class Multigrid:
    """How multigrid is done.

    Attributes
    ----------
    levels
        Coarse levels, at most: fewer, where groups would be too few.
    cycle
        ``"V"``: each level visits the next coarser one once; ``"W"``: twice, which is less robust.
    before, after
        Steps of the level before and after that.
    smoother
        What steps are: ``"sweeps"``: implicit stages (`fluxloom.solvers.compressible_smoothers`); ``"stages"``:
        explicit ones, which need less memory and many times as many cycles; those of the flow are those of its
        scheme, for which ``time="rk5"`` with ``cfl`` about 1 is meant.
    cfl, sweeps
        Of implicit stages on all levels: the CFL number, and forward and backward sweeps in a stage.
    coarse_cfl
        Of explicit stages on the coarse levels, whose fluxes are of first order: five made for such (``"rk5-first"``).
    smoothing
        Sweeps of Jacobi through the corrections from a coarser level: W cycles may want two where the lines of a mesh
        meet in very unequal cells.
    change
        Part of themselves by which a correction makes density and pressure fall at most.
    recall
        Cycles whose changes are kept, to mix the states after a cycle such that their residual is least
        (`fluxloom.solvers.compressible_mixing`): where there is no limiter, or its shares stay, and no turbulence.
        0: none.
    start
        Cycles on each coarse level before the first one of the next finer level, from the coarsest level on (full
        multigrid); 0: the cycles start on the flow itself.
    walls
        Patches where the fronts of groups start; see `fluxloom.fv.agglomeration`.
    grouping
        How cells are grouped; see there.
    settle, follow, freeze, patience
        Of a scheme with a limiter: parts of the largest residual so far at which the shares of slopes begin to follow
        the states slowly, by a part ``follow`` in a cycle, and at which they stay from then on; cycles without a lower
        residual, after which they stay as well. ``settle = 0``: they come from the states all the time. See
        `fluxloom.solvers.compressible_shares`.

    Raises
    ------
    SolverError
        If a name is unknown or a number out of range.
    """

    levels: int = 4
    cycle: str = "V"
    before: int = 1
    after: int = 1
    smoother: str = "sweeps"
    cfl: float = 50.0
    sweeps: int = 2
    coarse_cfl: float = 2.5
    smoothing: int = 0
    change: float = 0.5
    recall: int = 8
    start: int = 0
    walls: tuple[str, ...] = ()
    grouping: Grouping | None = None
    settle: float = 0.1
    follow: float = 0.3
    freeze: float = 1e-4
    patience: int = 200

    def __post_init__(self) -> None:
        for name, given, known in (("cycle", self.cycle, CYCLES), ("smoother", self.smoother, SMOOTHERS)):
            if given not in known:
                raise SolverError(
                    f"Multigrid: {name} {given!r} is unknown{did_you_mean(given, known)} ({', '.join(known)})"
                )
        for name in ("levels", "before", "after", "sweeps", "smoothing", "recall", "start"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
                raise SolverError(f"Multigrid: {name} is a whole number of at least 0, not {value!r}")
        if self.before + self.after == 0:
            raise SolverError("Multigrid: before and after are both 0: each level needs a step, set one of them to 1")
        if self.sweeps == 0:
            raise SolverError("Multigrid: sweeps is 0: an implicit stage needs one, give at least 1")
        for name, most in (("cfl", inf), ("coarse_cfl", inf), ("change", 1.0)):
            value = getattr(self, name)
            if not (isfinite(value) and 0.0 < value < most):
                wanted = "above 0" if most == inf else f"between 0 and {most:g}"
                raise SolverError(f"Multigrid: {name}: a number {wanted} is wanted, not {value!r}")
        _ = self.following

    @property
    def following(self) -> Following:
        """When shares of slopes follow the states slowly, and when they stay."""
        return Following(self.settle, self.follow, self.freeze, self.patience)
