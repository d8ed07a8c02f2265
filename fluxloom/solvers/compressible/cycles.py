"""How steps towards a steady compressible flow are made: implicit ones, and cycles of multigrid.

Of cycles, which levels they visit, and what smooths on these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy, require_strategy
from fluxloom.fv.time_schemes import RK5First
from fluxloom.graph.agglomerate import Grouping

if TYPE_CHECKING:
    from fluxloom.solvers.compressible.flow import CompressibleFlow
    from fluxloom.solvers.compressible.limiter_freezing import LimiterFreezing
    from fluxloom.solvers.compressible.scheme import CompressibleScheme

__all__ = [
    "Cycle", "ExplicitSmoother", "Implicit", "ImplicitSmoother", "ImplicitStep", "LevelSmoother", "LevelSteps",
    "Multigrid", "VCycle", "WCycle",
]  # fmt: skip

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
        with the CFL number that was given. 1: all steps are Newton's. So are those after the limiter values stay.
    tolerance
        Part of the right-hand side at which GMRES ends.
    change
        Part of themselves by which density and pressure change at most in a step; a cell with more takes less of it.
    relax_below, relaxation, freeze_below, patience
        Of a scheme with a limiter: parts of the largest residual so far at which the limiter values begin to follow
        the states slowly, by a part ``relaxation`` in a step, and at which they stay from then on; steps without a
        lower residual, after which they stay as well. ``relax_below = 0``: they come from the states all the time. See
        `fluxloom.solvers.compressible.limiter_freezing`.
    wavefront
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
    relax_below: float = 0.1
    relaxation: float = 0.3
    freeze_below: float = 1e-8
    patience: int = 200
    wavefront: bool = False

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
        if not isinstance(self.wavefront, bool):
            raise SolverError(f"Implicit: wavefront is true or false, not {self.wavefront!r}")
        if self.cfl_max < self.cfl:
            raise SolverError(f"Implicit: cfl_max ({self.cfl_max:g}) is less than cfl ({self.cfl:g})")
        _ = self.following

    @property
    def following(self) -> LimiterFreezing:
        """When limiter values follow the states slowly, and when they stay."""
        from fluxloom.solvers.compressible.limiter_freezing import LimiterFreezing

        return LimiterFreezing(self.relax_below, self.relaxation, self.freeze_below, self.patience)


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
        How far the limiter values followed the states: 1 all the way; 0: they stayed as they were.
    """

    norms: Array
    total: float
    cfl: float
    share: float
    products: int = 0
    rest: float = 0.0
    live: float = 1.0


class Cycle(Strategy, what="cycle", group="fluxloom.multigrid_cycles"):
    """How often each level visits the next coarser one."""

    visits: ClassVar[int] = 1


@dataclass(frozen=True)
class VCycle(Cycle, name="V"):
    """Each level visits the next coarser one once."""


@dataclass(frozen=True)
class WCycle(Cycle, name="W"):
    """Each level visits the next coarser one twice, which is less robust."""

    visits = 2


class LevelSteps(Protocol):
    """Makes steps of a level."""

    def step(self) -> None:
        """Make a step."""
        ...

    def set_cfl(self, part: float) -> None:
        """Take a part of the CFL number from here on."""
        ...


class LevelSmoother(Strategy, what="smoother", group="fluxloom.compressible_smoothers"):
    """What the steps of all levels are: a member is a frozen dataclass with its numbers, and a method `build`."""

    explicit: ClassVar[bool] = False
    """Whether steps of the flow itself are those of its scheme."""

    def build(self, level: CompressibleFlow) -> LevelSteps:
        """Return what makes the steps of a level."""
        raise NotImplementedError(f"{type(self).__name__} has to define build(level)")

    def coarse_scheme(self, scheme: CompressibleScheme) -> CompressibleScheme:
        """Return the scheme of the coarse levels, whose fluxes are of first order, for that of the flow."""
        return replace(scheme, order=1, time=RK5First())

    def advice(self) -> str:
        """Return which of its numbers to lower when a solution is lost, as case files call them."""
        return ""


@dataclass(frozen=True)
class ImplicitSmoother(LevelSmoother, name="sweeps"):
    """Implicit stages solved by sweeps (`fluxloom.solvers.compressible.smoothers`).

    Attributes
    ----------
    cfl
        The CFL number on all levels; the step of each cell is as in `CompressibleScheme`.
    sweeps
        Forward and backward sweeps of each stage.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    cfl: float = 50.0
    sweeps: int = 2

    def __post_init__(self) -> None:
        _positive("ImplicitSmoother: cfl", self.cfl)
        _count("ImplicitSmoother: sweeps", self.sweeps)
        if self.sweeps == 0:
            raise SolverError("ImplicitSmoother: sweeps is 0: an implicit stage needs one, give at least 1")

    def build(self, level: CompressibleFlow) -> LevelSteps:
        """Return what makes the steps of a level."""
        from fluxloom.solvers.compressible.smoothers import ImplicitStages

        return ImplicitStages(level, self.cfl, self.sweeps)

    def advice(self) -> str:
        """Return its CFL number."""
        return f"multigrid.smoother.cfl (now {self.cfl:g})"


@dataclass(frozen=True)
class ExplicitSmoother(LevelSmoother, name="stages"):
    """Explicit stages, which need less memory and many times as many cycles.

    Those of the flow are those of its scheme, for which ``time="rk5"`` with ``cfl`` about 1 is meant; on coarse levels
    they are the five that are made for fluxes of first order (``"rk5-first"``).

    Attributes
    ----------
    coarse_cfl
        The CFL number on the coarse levels.

    Raises
    ------
    SolverError
        If it is out of range.
    """

    coarse_cfl: float = 2.5

    explicit = True

    def __post_init__(self) -> None:
        _positive("ExplicitSmoother: coarse_cfl", self.coarse_cfl)

    def build(self, level: CompressibleFlow) -> LevelSteps:
        """Return what makes the steps of a level."""
        from fluxloom.solvers.compressible.smoothers import Stages

        return Stages(level)

    def coarse_scheme(self, scheme: CompressibleScheme) -> CompressibleScheme:
        """Return the scheme of the coarse levels, with their CFL number."""
        return replace(super().coarse_scheme(scheme), cfl=self.coarse_cfl)

    def advice(self) -> str:
        """Return both CFL numbers."""
        return f"time.cfl or multigrid.smoother.coarse_cfl (now {self.coarse_cfl:g})"


def _positive(what: str, value: float) -> None:
    if not (isfinite(value) and value > 0.0):
        raise SolverError(f"{what}: a number above 0 is wanted, not {value!r}")


def _count(what: str, value: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise SolverError(f"{what} is a whole number of at least 0, not {value!r}")


@dataclass(frozen=True)
class Multigrid:
    """How multigrid is done.

    Attributes
    ----------
    levels
        Coarse levels, at most: fewer, where groups would be too few.
    cycle
        How often each level visits the next coarser one.
    before, after
        Steps of the level before and after that.
    smoother
        What the steps of all levels are.
    smoothing
        Sweeps of Jacobi through the corrections from a coarser level: W cycles may want two where the lines of a mesh
        meet in very unequal cells.
    change
        Part of themselves by which a correction makes density and pressure fall at most.
    recall
        Cycles whose changes are kept, to mix the states after a cycle such that their residual is least
        (`fluxloom.solvers.compressible.mixing`): where there is no limiter, or its shares stay, and no turbulence.
        0: none.
    start
        Cycles on each coarse level before the first one of the next finer level, from the coarsest level on (full
        multigrid); 0: the cycles start on the flow itself.
    walls
        Patches where the fronts of groups start; see `fluxloom.fv.geometry.agglomeration`.
    grouping
        How cells are grouped; see there.
    relax_below, relaxation, freeze_below, patience
        Of a scheme with a limiter: parts of the largest residual so far at which the limiter values begin to follow
        the states slowly, by a part ``relaxation`` in a cycle, and at which they stay from then on; cycles without a
        lower residual, after which they stay as well. ``relax_below = 0``: they come from the states all the time. See
        `fluxloom.solvers.compressible.limiter_freezing`.

    Raises
    ------
    SolverError
        If a choice is none or a number out of range.
    """

    levels: int = 4
    cycle: Cycle = VCycle()
    before: int = 1
    after: int = 1
    smoother: LevelSmoother = ImplicitSmoother()
    smoothing: int = 0
    change: float = 0.5
    recall: int = 8
    start: int = 0
    walls: tuple[str, ...] = ()
    grouping: Grouping | None = None
    relax_below: float = 0.1
    relaxation: float = 0.3
    freeze_below: float = 1e-4
    patience: int = 200

    def __post_init__(self) -> None:
        require_strategy("Multigrid: cycle", self.cycle, Cycle)
        require_strategy("Multigrid: smoother", self.smoother, LevelSmoother)
        for name in ("levels", "before", "after", "smoothing", "recall", "start"):
            _count(f"Multigrid: {name}", getattr(self, name))
        if self.before + self.after == 0:
            raise SolverError("Multigrid: before and after are both 0: each level needs a step, set one of them to 1")
        if not (isfinite(self.change) and 0.0 < self.change < 1.0):
            raise SolverError(f"Multigrid: change: a number between 0 and 1 is wanted, not {self.change!r}")
        _ = self.following

    @property
    def following(self) -> LimiterFreezing:
        """When limiter values follow the states slowly, and when they stay."""
        from fluxloom.solvers.compressible.limiter_freezing import LimiterFreezing

        return LimiterFreezing(self.relax_below, self.relaxation, self.freeze_below, self.patience)
