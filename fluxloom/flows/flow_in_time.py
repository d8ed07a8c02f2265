"""Flows that go in time by steps of a given length, or of one that is stable: their steps, and when they end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from fluxloom.core.errors import Divergence, PreconditionerError, SolverError
from fluxloom.core.status import Goal
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.flows.flow_plan import StepLengths, check_bounded
from fluxloom.linalg.status import Status
from fluxloom.run.flow import Flow, HistoryPanel, Section, Until
from fluxloom.run.results.reports import merged_reports
from fluxloom.run.start import Start
from fluxloom.solvers.incompressible.types import FlowState

if TYPE_CHECKING:
    from fluxloom.run.stall import Stall

__all__ = ["FlowInTime"]

_CLOSE = 1e-9
_OF_TOLERANCE = 1e3
"""Times the tolerance of the pressure, below which the residual is made by it."""
_STRETCHED = 20
"""Steps before the end that are equal, where each is chosen anew."""
_SHORTER = 0.95
"""Of a given step, at least, where all are made equal."""
_ROUNDING = 1e-13


class _Solver(Protocol):
    """A solver of flow, or of what flow carries, in time."""

    context: Context
    dimension: int
    time: float
    steps: int
    dt: float

    def step(self, dt: float) -> Status | None:
        """Advance by ``dt``; return what the solver of the pressure says, None where there is none."""
        ...

    def state(self) -> object:
        """Return what the flow does now."""
        ...

    def check_next(self) -> None:
        """Let what the next step solves by iterations end with the residual of the solution itself."""
        ...

    def verify(self) -> Status | None:
        """Return what the last solution is by the residual of itself, None where there is none. Collective."""
        ...


class _Measure(Protocol):
    """What measures how fast the velocity changes, as `fluxloom.flows.flow_change.Change` does."""

    @property
    def chain(self) -> Chain:
        """What measures."""
        ...

    def measured(self, dt: float) -> float:
        """Return it for a step of ``dt`` that has just been made."""
        ...

    def begin(self) -> None:
        """Measure the next step from what there is now."""
        ...


class FlowInTime(Flow):
    """What flows that go in time have in common; a solver's own adds what it alone knows.

    Parameters
    ----------
    solver
        In its initial state.
    change
        Measures the residual.
    lengths
        Of the steps.
    """

    remembers = ("_iterations", "_largest", "_last", "_residual")

    place, unknown, section = "cell", "u", "speed"
    """Where values of fields are; what the residual is of; the field of which sections through a volume are drawn."""

    solves, table = "the pressure", "pressure"
    """What is solved by iterations, and the table of the case that says how."""

    losses = MappingProxyType({"decay": "kinetic_energy"})
    curves: Sequence[HistoryPanel] = (HistoryPanel("kinetic energy", ("kinetic_energy",)),)
    """Panels of ``history.png``."""

    def __init__(self, solver: _Solver, change: _Measure, lengths: StepLengths) -> None:
        self._flow, self.lengths, self._change, self.context = solver, lengths, change, solver.context
        self._iterations, self._last, self._residual = 0, 0, float("nan")
        self._largest = 0.0
        self._unsolved = False
        """Whether the residual is that of a steady state, but the pressure behind it is not solved."""

    # ----------------------------------------------------------------------- what solvers say themselves
    def _take(self, start: Start) -> None:
        """Take the state of another result."""
        raise SolverError(f"{type(self).__name__}: this flow cannot start from another result")

    def _largest_step(self) -> float:
        """Return the largest stable step."""
        raise NotImplementedError

    def _bounded(self) -> bool:
        """Return whether there is a largest stable step. Collective."""
        return True

    def _before(self, dt: float) -> None:
        """Do what comes before a step."""

    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        """What the solver of the pressure runs."""
        return ()

    def start_from(self, start: Start) -> None:
        """Start from another result; what it takes of it says the flow."""
        self._take(start)
        self._flow.time, self._flow.steps = start.clock
        self._change.begin()

    # ------------------------------------------------------------------------------------- advance
    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self._flow.dimension

    def check_end(self, until: Until) -> None:
        """Raise `SolverError` where the largest stable step is wanted, and there is none for the flow at its start."""
        if not self.lengths.dt:
            check_bounded(self._bounded())

    @property
    def steps(self) -> int:
        """Steps since the flow began."""
        return self._flow.steps

    @property
    def time(self) -> float:
        """Of the flow."""
        return self._flow.time

    def _steady_below(self, until: Until) -> float:
        """Return the residual of a steady state: a part of the largest so far, or what rounding makes of it."""
        speed, dt = getattr(self._change, "speed", 0.0), self._flow.dt
        return max(until.steady * self._largest, _ROUNDING * speed / dt if dt else 0.0)

    def _next_step(self, until: Until) -> float:
        """Return the length of the next step.

        In time all steps of a given length are made equal such that a whole number of them hits the end, of others the
        last ones, by a twentieth at most; where that is too little the last two share what is left. A run towards a
        steady state goes past the end. Where a monitor stops steps, it is as an end of those that are not given.
        """
        given = self.lengths.dt
        dt = given or self._largest_step()
        left = until.time - self._flow.time if until.time and not until.steady else math.inf
        if not given:
            left = min(left, until.stop - self._flow.time)
        if math.isinf(left) or (not given and left > _STRETCHED * dt):
            return dt
        count = max(1, math.ceil(left / dt * (1.0 - _CLOSE)))
        fits = abs(left / dt - count) <= _CLOSE * count
        if left >= 2.0 * dt and (fits or left < _SHORTER * dt * count):
            return dt
        return dt if fits and count > 2 else left / count

    def check_next(self) -> None:
        """Let the pressure of the next step be solved to a residual of its own, as that of a run's last step."""
        self._flow.check_next()

    def unsolved(self) -> str:
        """Return what the residual of the last pressure itself lacks, in words; empty: nothing. Collective."""
        status = self._flow.verify()
        if status is None or status.converged:
            return ""
        return f"{self.solves} of the last step has not converged, |r|/|b| = {status.relative:.2e}"

    def advance(self, until: Until) -> float:
        """Advance by one step; return the root mean square of ``du/dt`` over the volume.

        Raises
        ------
        SolverError
            If the velocity is not finite, or the pressure does not converge.
        """
        flow = self._flow
        dt = self._next_step(until)
        self._before(dt)
        ends = 0.0 < until.time <= (flow.time + dt) * (1.0 + _CLOSE)
        if ends or self._unsolved:
            self.check_next()
        try:
            status = flow.step(dt)
        except SolverError as error:  # maybe on this rank alone: nothing that needs the others
            self._residual = float("nan")
            if isinstance(error, PreconditionerError):
                raise
            if isinstance(error, Divergence):
                raise error.with_more(f": {self.advice()}") from None
            raise SolverError(f"{error}: {self.advice()}") from None
        if status is not None:
            self._solved(status)
        self._residual = self._change.measured(flow.dt)
        self._largest = max(self._largest, self._residual)
        steady = until.steady and self._residual <= self._steady_below(until)
        self._unsolved = bool(steady and self.unsolved())
        return self._residual

    def _solved(self, status: Status) -> None:
        """Count the iterations of the pressure; raise `SolverError` where they have not converged."""
        if not status.converged:
            raise SolverError(
                f"step {self._flow.steps}: {self.solves} has not converged, |r|/|b| = {status.relative:.2e} after "
                f"{status.iterations:,} iterations ({status.reason}); raise {self.table}.iterations or "
                f"{self.table}.rtol, or choose another {self.table}.preconditioner"
            )
        self._last = status.iterations
        self._iterations += status.iterations

    def why_stalled(self, found: Stall) -> str:
        """Return that the tolerance of the pressure is what is left, where it is.

        A step ends with a divergence of ``rtol`` of what the pressure took away; what that does to ``du/dt`` was below
        a thousand times ``rtol`` of the largest ``du/dt`` wherever it was looked at.
        """
        rtol = self._tolerance
        if not rtol or found.lowest > _OF_TOLERANCE * rtol * self._largest:
            return ""
        return f"limited by pressure.rtol = {rtol:g}: lower it"

    @property
    def _tolerance(self) -> float:
        """Of the solver of the pressure, relative; 0: it has none."""
        return 0.0

    # --------------------------------------------------------------------------------------- results
    def goals(self, until: Until) -> Sequence[Goal]:
        """Return the end and the residual, relative to its largest value, that the case names."""
        time, residual = self._flow.time, self._residual
        ends = [Goal("time.end", "time", until.time, time, until.time <= time * (1.0 + _CLOSE))] if until.time else []
        if not until.steady:
            return ends
        scale, below = self._largest or 1.0, self._steady_below(until)
        met = residual <= below and not self._unsolved
        if until.steady * scale < residual <= below:  # a flow that begins as the steady one: its largest is round-off
            return [*ends, Goal("time.steady", "du/dt, which is round-off,", below, residual, met)]
        return [*ends, Goal("time.steady", "residual", until.steady, residual / scale, met, scale)]

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return what is drawn over time."""
        return "time", self.curves

    def sections(self, name: str) -> Sequence[Section]:
        """Return one field, across y and z."""
        title = f"{self.section.capitalize()}: {name}, time {self._flow.time:.6g}"
        return [Section(self.section, title, self.section)]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of the iterations of the pressure those of one."""
        pressure = {id(loop) for chain in self._pressure_chains for loop in chain.loops}
        kept: list[Loop] = []
        names: set[str] = set()
        for loop in unique(loop for chain in self.chains for loop in chain.loops):
            if id(loop) in pressure and loop.name in names:
                continue
            names.add(loop.name)
            kept.append(loop)
        return kept

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self.chains)

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return time, steps, sums and the residual."""
        over = any(goal.met for goal in self.goals(until))
        end = f" of {until.time:.6g}" if until.time and not over else ""
        return (
            ("time", f"{self._flow.time:.6g}{end}, the last step {self._flow.dt:.3g}"),
            ("steps", f"{self._flow.steps:,}"),
            *self._sums(),
            ("residual", f"{self._residual:.6e} (root mean square of d{self.unknown}/dt)"),
            *self._rows(),
        )

    def _sums(self) -> Sequence[tuple[str, str]]:
        """Return rows of the summary: energy, the imbalance of mass, the iterations of the pressure."""
        state = self._flow.state()
        assert isinstance(state, FlowState)
        mean = self._iterations / max(1, state.steps)
        return (
            ("kinetic energy", f"{state.kinetic_energy:.9g}"),
            ("imbalance", f"{state.imbalance:.2e} at most in a {self.place}"),
            ("pressure", f"{self._last:,} iterations in the last step, {mean:.1f} on average"),
        )

    def _rows(self) -> Sequence[tuple[str, str]]:
        """Return rows of the summary that a solver adds."""
        return ()
