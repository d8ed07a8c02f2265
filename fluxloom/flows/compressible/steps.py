"""How a compressible flow makes its steps: explicit in time or towards a steady flow, implicit, multigrid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import ceil, inf, nan
from typing import Any, Protocol

from fluxloom.core.errors import MeshError, SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.run.flow import Until
from fluxloom.run.results.reports import executables
from fluxloom.solvers.compressible.cycles import Implicit, ImplicitStep, Multigrid
from fluxloom.solvers.compressible.flow import FOREVER, CompressibleFlow

__all__ = ["Explicit", "ImplicitRun", "LocalRun", "MultigridRun", "StepResult", "Steps", "TimeRun", "steps_of"]

_CLOSE, _WHOLE = 1e-12, 1e-9

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class StepResult:
    """What a step did.

    Attributes
    ----------
    norm
        Of the residual.
    clipped_faces, clipped_cells
        States at faces and in cells that were not positive, as in `fluxloom.solvers.compressible.flow.Residuals`.
    """

    norm: float
    clipped_faces: int = 0
    clipped_cells: int = 0


@dataclass(frozen=True)
class Explicit:
    """Explicit steps, by the stages of ``scheme.time``.

    Attributes
    ----------
    cfl
        ``dt = 2 cfl V / sum A (|u_n| + c)``.
    local
        Whether each cell has a step of its own, towards a steady flow; else all have the same, in time.
    cfl_start, ramp
        The CFL number grows by equal amounts, from ``cfl_start`` to ``cfl`` in ``ramp`` steps; 0: it is ``cfl``.
    dt
        Length of all steps in time; 0: ``cfl`` chooses them. The way to the end has equal steps, no longer than this.
        One that is longer than ``cfl`` allows is refused, and ends the run where it comes to be so.

    Raises
    ------
    SolverError
        If a number is out of range, or only one of ``cfl_start`` and ``ramp`` is given.
    """

    cfl: float = 0.8
    local: bool = False
    cfl_start: float = 0.0
    ramp: int = 0
    dt: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.dt < inf:
            raise SolverError(f"dt: a number of at least 0 is wanted, not {self.dt!r}")
        if self.dt and (self.local or self.ramp):
            what = "ramp: their CFL number does not grow" if self.ramp else "local: each cell has a step of its own"
            raise SolverError(f"dt is the length of all steps in time, and there is {what}; give only one of them")
        if not 0.0 < self.cfl < inf:
            raise SolverError(f"cfl: a number above 0 is wanted, not {self.cfl!r}")
        if self.ramp < 0 or self.cfl_start < 0.0:
            raise SolverError(f"ramp and cfl_start are at least 0, not {self.ramp!r} and {self.cfl_start!r}")
        if bool(self.ramp) != bool(self.cfl_start):
            given, missing = ("ramp", "cfl_start") if self.ramp else ("cfl_start", "ramp")
            raise SolverError(f"{given} is there but {missing} is not: give both, or neither")
        if self.cfl_start > self.cfl:
            raise SolverError(f"cfl_start ({self.cfl_start:g}) is more than cfl ({self.cfl:g}), to which it grows")

    def at(self, step: int) -> float:
        """Return the CFL number of a step; the first one has the number 0.

        ``cfl_start + (cfl - cfl_start) step / ramp`` before ``ramp``.
        """
        return self.cfl_start + (self.cfl - self.cfl_start) * step / self.ramp if step < self.ramp else self.cfl


class Steps(Protocol):
    """Makes the steps of a flow. All methods are collective.

    Attributes
    ----------
    measure
        What the norm of the residual is of, in words.
    explicit
        Whether steps are explicit ones: their CFL number has a limit, and stages clip states.
    steady
        Whether steps lead towards a steady flow: there is no time.
    """

    measure: str
    explicit: bool
    steady: bool

    def begin(self) -> float:
        """Look at the states at the start; return the norm of their residual, 0 if only a step finds it."""
        ...

    def step(self, until: Until) -> StepResult:
        """Make a step, in time not beyond an end; of a length that is free not beyond a stop either.

        Raises
        ------
        SolverError
            If a state is not finite, or the step cannot be made.
        """
        ...

    def columns(self) -> dict[str, float]:
        """Return columns of ``history.csv``, always the same ones."""
        ...

    def summary(self) -> Rows:
        """Return rows of the summary."""
        ...

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        ...

    def stalled(self) -> str:
        """Return why the residual gets no lower, and what to change; empty: it is not known."""
        ...

    @property
    def parts(self) -> Sequence[Chain | Loop]:
        """What it calls."""
        ...

    @property
    def looked(self) -> Dat:
        """The states whose residual was found last."""
        ...


class LocalRun:
    """Explicit steps towards a steady flow, each cell with its own."""

    measure = "balance of mass, over that of the first step"
    explicit = steady = True

    def __init__(self, flow: CompressibleFlow, how: Explicit) -> None:
        self.flow, self.how = flow, how

    def begin(self) -> float:
        """Return 0: the norm is that of the last stage of a step."""
        return 0.0

    def step(self, until: Until) -> StepResult:
        """Make a step."""
        _pace(self.flow, self.how)
        self.flow.iterate()
        return _taken(self.flow)

    def columns(self) -> dict[str, float]:
        """Return the CFL number, where it grows."""
        return {"cfl": self.flow.cfl} if self.how.ramp else {}

    def summary(self) -> Rows:
        """Return nothing."""
        return ()

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        grow = "" if self.how.ramp else ", let it grow (time.ramp)"
        return f"lower time.cfl (now {self.flow.cfl:g}){grow}, or take scheme.order = 1 for the first steps"

    def stalled(self) -> str:
        """Return that limiters cycle, where one is live."""
        if not self.flow.limiting or self.flow.frozen:
            return ""
        return (
            f"limiter cycles: the values of {strategy_name(self.flow.scheme.limiter)} change with each step; take "
            'time.integrator = "implicit", which freezes them, or scheme.limiter = "none" where there are no shocks'
        )

    @property
    def parts(self) -> Sequence[Chain | Loop]:
        """The chain of a step."""
        return [self.flow.iteration, *self.flow.positivity.chains]

    @property
    def looked(self) -> Dat:
        """Those that the last stage began with."""
        return self.flow.last


class TimeRun(LocalRun):
    """Explicit steps in time, of one length for all cells; the last two are equal and hit the end."""

    steady = False
    remembers = ("length",)

    def __init__(self, flow: CompressibleFlow, how: Explicit) -> None:
        super().__init__(flow, how)
        self.length = 0.0

    def step(self, until: Until) -> StepResult:
        """Make a step."""
        flow, last, dt = self.flow, self.length, self.how.dt
        end = until.time if dt else until.next
        left = end - flow.time if 0.0 < end < inf else FOREVER
        _pace(flow, self.how)
        if dt:
            count = max(1, ceil(left / dt * (1.0 - _WHOLE))) if left < FOREVER else 0
            self.length = flow.advance(left / count if count else dt, given=True)
        else:
            whole = not last or left <= last * (1.0 + _CLOSE) or left >= 2.0 * last
            self.length = flow.advance(left if whole else 0.5 * left)
        if 0.0 < end < inf and abs(end - flow.time) <= _CLOSE * end:
            flow.time = end
        return _taken(flow)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return f"lower time.dt (now {self.how.dt:g})" if self.how.dt else super().advice()

    def summary(self) -> Rows:
        """Return the length of the last step."""
        return (("last step", f"{self.length:.3g}"),)

    @property
    def parts(self) -> Sequence[Chain | Loop]:
        """The chains before and after the length of a step is known."""
        return [self.flow.before, self.flow.after, *self.flow.positivity.chains]


class ImplicitRun:
    """Implicit steps; see `fluxloom.solvers.compressible.implicit`."""

    measure = "all equations, over that of the start"
    explicit, steady = False, True
    remembers = ("_products", "_refused", "memory")

    def __init__(self, flow: CompressibleFlow, implicit: Implicit) -> None:
        from fluxloom.solvers.compressible.implicit import SteadySteps

        self.flow, self.steps = flow, SteadySteps(flow, implicit)
        self._last: ImplicitStep | None = None
        self._products, self._refused = 0, 0
        self._names = [field.name for field in fields(ImplicitStep) if field.name not in ("norms", "total")]

    @property
    def memory(self) -> dict[str, Any] | None:
        """What is known of the last step; None before the first."""
        return None if self._last is None else dict(vars(self._last))

    @memory.setter
    def memory(self, memory: dict[str, Any] | None) -> None:
        """Take back what a checkpoint has kept."""
        self._last = None if memory is None else ImplicitStep(**memory)

    def begin(self) -> float:
        """Return the norm of the residual at the start, of all components over their sizes."""
        return self.steps.begin().total

    def step(self, until: Until) -> StepResult:
        """Make a step, or try one."""
        last = self._last = self.steps.step()
        self._products += last.products
        self._refused += last.share == 0.0
        return _taken(self.flow, last.total)

    def columns(self) -> dict[str, float]:
        """Return what `ImplicitStep` says of the last step, one number after the other; NaN before the first."""
        return {name: float(getattr(self._last, name, nan)) for name in self._names}

    def summary(self) -> Rows:
        """Return the CFL number of the next step, and all products of GMRES."""
        refused = f", {self._refused:,} refused" if self._refused else ""
        return (("implicit", f"CFL number {self.steps.cfl:.4g}, {self._products:,} products of GMRES in all{refused}"),)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        how = self.steps.implicit
        return f"lower implicit.cfl (now {how.cfl:g}) or implicit.growth (now {how.growth:g})"

    def stalled(self) -> str:
        """Return what holds the CFL number, or that limiters cycle."""
        how, steps = self.steps.implicit, self.steps
        if how.krylov == 0:
            return f"CFL held at {steps.cfl:.4g} by implicit.krylov = 0: sweeps alone do not get further"
        if not steps.newton:
            return (
                f"CFL held at {steps.cfl:.4g} by implicit.switch = {how.switch:g}: the residual has not fallen to "
                "that part of its largest value, from which on steps are Newton's; take implicit.switch = 1"
            )
        last = self._last
        if last is not None and steps.cfl < how.cfl_max and last.rest > how.tolerance:
            return (
                f"CFL held at {steps.cfl:.4g}, as GMRES left {last.rest:.2g} of a step's residual with "
                f"implicit.krylov = {how.krylov}: take more vectors, or a larger implicit.sweeps_max"
            )
        if steps.cfl < how.cfl:
            return f"CFL held at {steps.cfl:.4g}, as {self._refused:,} steps were refused and GMRES stayed short"
        if self.flow.limiting and steps.shares.weight > 0.0:
            name = strategy_name(self.flow.scheme.limiter)
            return f"limiter cycles: the values of {name} still change; lower implicit.patience"
        return ""

    @property
    def parts(self) -> Sequence[Chain | Loop]:
        """All chains and loops of the steps, without those of explicit ones."""
        return executables(self.steps, without=(CompressibleFlow,))

    @property
    def looked(self) -> Dat:
        """Those that were tried."""
        return self.steps.trial


class MultigridRun:
    """Cycles of multigrid; see `fluxloom.solvers.compressible.multigrid`."""

    measure = "mass, momentum and energy, over that of the start"
    explicit, steady = False, True
    remembers = ("_lessened",)

    def __init__(self, flow: CompressibleFlow, multigrid: Multigrid) -> None:
        from fluxloom.solvers.compressible.multigrid import MultigridSteps

        self.flow, self.steps = flow, MultigridSteps(flow, multigrid)
        self._lessened = 0

    def begin(self) -> float:
        """Make the cycles on coarse levels that are wanted before; return the norm of the residual before them."""
        found = self.steps.total()
        self.steps.start()
        return found

    def step(self, until: Until) -> StepResult:
        """Make a cycle."""
        total = self.steps.step()
        self._lessened += self.steps.lessened()
        return _taken(self.flow, total)

    def columns(self) -> dict[str, float]:
        """Return the part of the CFL numbers that were given, in the next cycle."""
        return {"cfl_part": self.steps.part}

    def summary(self) -> Rows:
        """Return the cells of the levels, how many corrections were made smaller, and how many cycles refused."""
        counts = [level.volumes.total for level in self.steps.levels]
        text = f"levels of {', '.join(f'{count:,}' for count in counts)} cells"
        text += f"; {self._lessened:,} corrections made smaller" if self._lessened else ""
        return (("multigrid", text + (f"; {self.steps.refused:,} cycles refused" if self.steps.refused else "")),)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        how = self.steps.multigrid
        numbers = [how.smoother.advice(), *([] if how.smoother.explicit else [f"multigrid.levels (now {how.levels})"])]
        return f"lower {', or '.join(text for text in numbers if text)}"

    def stalled(self) -> str:
        """Return that the CFL numbers are held low."""
        if self.steps.part >= 1.0:
            return ""
        return f"CFL held at {self.steps.part:.3g} of what was given, as {self.steps.refused:,} cycles were refused"

    @property
    def parts(self) -> Sequence[Chain | Loop]:
        """The chains of the levels, and those between them."""
        return executables(*self.steps.levels) + executables(self.steps, without=(CompressibleFlow,))

    @property
    def looked(self) -> Dat:
        """Those of the flow."""
        return self.flow.w


def steps_of(flow: CompressibleFlow, how: Explicit | Implicit | Multigrid) -> Steps:
    """Return what advances a flow. Collective.

    Raises
    ------
    SolverError
        If the flow cannot be advanced so.
    """
    if isinstance(how, Explicit):
        return LocalRun(flow, how) if how.local else TimeRun(flow, how)
    if isinstance(how, Implicit):
        return ImplicitRun(flow, how)
    if not isinstance(how, Multigrid):
        raise SolverError(f"steps: Explicit, Implicit or Multigrid is wanted, not {how!r}")
    if flow.volumes.turned is not None:
        raise SolverError(
            "steps: cells at sides that are joined by a rotation (sectors) are not fused to coarse ones; take Implicit "
            "or Explicit"
        )
    try:
        return MultigridRun(flow, how)
    except (SolverError, MeshError) as error:
        raise SolverError(f"multigrid: {str(error).removeprefix('multigrid: ')}") from None


def _pace(flow: CompressibleFlow, how: Explicit) -> None:
    if flow.steps <= how.ramp and how.ramp:
        flow.set_cfl(how.at(flow.steps))


def _taken(flow: CompressibleFlow, norm: float | None = None) -> StepResult:
    """Return what a step did; without a norm that of the balance of mass in its last stage."""
    found = flow.residuals()
    return StepResult(float(found.norms[0]) if norm is None else norm, found.clipped_faces, found.clipped_cells)
