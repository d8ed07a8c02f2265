"""Advance a run: residuals, progress, guards, checkpoints, and an end with its status."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import LoopCheckError, PreconditionerError, SolverError
from fluxloom.core.status import Goal, Outcome, RunStatus
from fluxloom.run.failure import Interruption, all_or_none, first_failure
from fluxloom.run.flow import Flow
from fluxloom.run.flow_run import FlowRun, find_lost
from fluxloom.run.guards import Guards, Violation
from fluxloom.run.results.files import ResidualLog

__all__ = ["March", "Progress", "Saver", "Silent", "march"]

_WARM = 2

class Progress(Protocol):
    """Hears how a run advances."""

    def advanced(self, iteration: int, residual: float, seconds: float) -> None:
        """Take note of a finished iteration; ``seconds`` is the time since the first began."""
        ...


class Saver(Protocol):
    """Takes checkpoints."""

    def due(self, steps: int) -> bool:
        """Take note of a step; return whether one is due behind it. Collective."""
        ...

    def save(self) -> object:
        """Take one. Collective."""
        ...


class Silent:
    """Hears and says nothing."""

    def advanced(self, iteration: int, residual: float, seconds: float) -> None:
        """Take note of nothing."""


@dataclass(frozen=True)
class March:
    """How a run ended.

    Attributes
    ----------
    steps
        Of the flow, from its beginning.
    iterations
        Steps made here.
    seconds
        Time they took.
    residual
        Of the last one.
    outcome
        How it ended, and why.
    seconds_per_step
        Without the first two steps, which may compile.
    """

    steps: int
    iterations: int
    seconds: float
    residual: float
    outcome: Outcome
    seconds_per_step: float = 0.0

    @property
    def status(self) -> RunStatus:
        """How it ended, in a word."""
        return self.outcome.status


@dataclass
class _Way:
    """What is behind a run; ``warm`` are the seconds of the first two steps."""

    first: int = 0
    done: int = 0
    seconds: float = 0.0
    residual: float = float("nan")
    warm: float = 0.0

    @property
    def steps(self) -> int:
        """Steps of the flow, from its beginning."""
        return self.first + self.done

    def note(self, residual: float, seconds: float) -> None:
        """Take note of a step, and of the seconds since the first began."""
        self.done, self.residual, self.seconds = self.done + 1, residual, seconds
        if self.done == _WARM:
            self.warm = seconds

    def end(self, outcome: Outcome) -> March:
        """Return how the run ended."""
        later = self.done - _WARM
        pace = (self.seconds - self.warm) / later if later > 0 else self.seconds / max(1, self.done)
        return March(self.steps, self.done, self.seconds, self.residual, outcome, pace)


def march(
    run: FlowRun[Any], iterations: int, log: ResidualLog, progress: Progress | None = None, comm: Comm | None = None, *,
    first: int = 0, asked: bool = False, guards: Guards | None = None, saver: Saver | None = None,
) -> March:  # fmt: skip
    """Run steps until all are done, a goal is met, the user interrupts, or the solution is lost. Collective.

    Parameters
    ----------
    run
        What advances.
    iterations
        Steps, at most, counted from the beginning of the flow.
    log
        Takes the residuals.
    progress
        Hears of every step.
    comm
        The ranks; a rank alone by default.
    first
        Steps made before, of a run that goes on.
    asked
        Whether the user asked for just so many steps; else they are a limit beside the goals of the case.
    guards, saver
        Look at every step, and take checkpoints.

    Returns
    -------
    March
        With the outcome; a lost solution is reported there, so that the caller can keep the files first.

    Raises
    ------
    Exception
        What the run raises, if it is no `SolverError`; what one rank raises, all do.
    KeyboardInterrupt
        After a second interruption: the fields are in the middle of a step.
    """
    flow = run.flow
    told, ranks = progress if progress is not None else Silent(), comm if comm is not None else SelfComm()
    way, start = _Way(first), time.perf_counter()
    before = log.seconds[-1] if log.seconds else 0.0
    try:
        with Interruption(ranks) as interruption:
            over = first > 0 and run.finished  # of a run that goes on: nothing is left to do
            for number in () if over else range(first + 1, iterations + 1):
                if number == iterations:
                    flow.check_next()
                run.advance()
                residual = run.residual()
                seconds = time.perf_counter() - start
                way.note(residual, seconds)
                log.add(number, residual, before + seconds)
                told.advanced(number, residual, seconds)
                if guards is not None and (found := guards.stepped(number, flow.time, residual)) is not None:
                    return way.end(_diverged(found))
                if not isfinite(residual):
                    return way.end(Outcome(RunStatus.DIVERGED, _lost(run, number, residual, ranks)))
                due = saver is not None and saver.due(number)  # hears of every step, the last one too
                if run.finished:
                    break
                if saver is not None and due:
                    if guards is not None and (found := guards.look(number, flow.time)) is not None:
                        return way.end(_diverged(found))
                    saver.save()
                if number < iterations and (caught := interruption.agreed()):
                    left = flow.unsolved()
                    reason = f"{signal.Signals(caught).name} after {number:,} steps{left and f': {left}'}"
                    return way.end(Outcome(RunStatus.INTERRUPTED, reason, signal=caught))
            found = guards.look(way.steps, flow.time, last=True) if guards is not None and way.done else None
            if found is not None:
                return way.end(_diverged(found))
    except Exception as error:
        failed, steps = first_failure(ranks, error, way.steps)
        if not isinstance(failed, SolverError):
            if failed is error:
                raise
            raise failed from None
        way.done = steps - first
        return way.end(_failed(failed, steps + 1, flow, guards, ranks))
    return way.end(_judged(run, way.steps, iterations, log.values, asked=asked))


def _failed(error: SolverError, step: int, flow: Flow, guards: Guards | None, ranks: Comm) -> Outcome:
    """Return how a run ended whose step has raised an error."""
    says_all = isinstance(error, LoopCheckError | PreconditionerError)
    if guards is not None and not says_all:

        def caught() -> Violation:
            """Return what the fields show."""
            flow.failed()
            return guards.caught(error, step, flow.time)

        if (found := all_or_none(ranks, caught)) is not None:
            return _diverged(found)
    return Outcome(RunStatus.DIVERGED, f"step {step}: {error}")


def _diverged(found: Violation) -> Outcome:
    return Outcome(RunStatus.DIVERGED, found.message.removeprefix("diverged "), details=found.record())


def _judged(run: FlowRun[Any], steps: int, iterations: int, residuals: list[float], *, asked: bool) -> Outcome:
    """Return how a run ended that nothing disturbed.

    A target of convergence that is met comes first; then a time, but of a case that names a target it is a limit, as
    the number of steps is, unless the user asked for just so many.
    """
    goals = run.goals()
    targets, times = [goal for goal in goals if goal.target], [goal for goal in goals if not goal.target]
    count = Goal("run.iterations", "steps", iterations, steps, steps >= iterations)
    missed = "; ".join(str(goal) for goal in goals if not goal.met)
    if found := next((goal for goal in targets if goal.met), None):
        return Outcome(RunStatus.CONVERGED, f"{found} after {steps:,} steps", found)
    limit = next((goal for goal in [*times, count] if goal.met), count)
    if targets and not (asked and limit is count):
        from fluxloom.run.stall import unconverged

        steady = [goal for goal in run.flow.goals(run.until) if goal.target]
        told = [unconverged([value / goal.scale for value in residuals], goal.wanted, run.flow) for goal in steady[:1]]
        told += [f"{goal} after {steps:,} steps" for goal in targets if goal not in steady]
        return Outcome(RunStatus.NOT_CONVERGED, "; ".join(told), limit)
    if limit is count and missed and not asked:
        return Outcome(RunStatus.NOT_CONVERGED, f"{missed} after {steps:,} steps: raise run.iterations", limit)
    return Outcome(RunStatus.END_REACHED, f"{limit}" + (f"; target not met: {missed}" if missed else ""), limit)


def _lost(run: FlowRun[Any], iteration: int, residual: float, comm: Comm) -> str:
    """Return the message of a lost solution; where the cell or the point is, only rank 0 says."""
    bad = find_lost(comm, run.flow.part, run.fields())
    place = ""
    if bad is not None:
        name, number, count = bad
        at = _position(run, number) if comm.rank == 0 else ""
        what, total = ("point", run.flow.points) if run.flow.points else ("cell", run.flow.cells)
        place = f"; the first {what} without a finite {name} is {number}{at} ({count:,} of {total:,} {what}s)"
    return f"step {iteration}: the residual is {residual}{place}; {run.flow.advice()}"


def _position(run: FlowRun[Any], number: int) -> str:
    """Return the place of a point, or the centre of a cell, in words."""
    mesh = run.mesh()
    if run.flow.points:
        return _words(mesh.points[number])
    for name, numbers in mesh.cell_ranges.items():
        if number in numbers:
            return _words(mesh.points[mesh.cells[name][number - numbers.start]].mean(axis=0))
    return ""


def _words(place: npt.NDArray[np.float64]) -> str:
    return f" at ({', '.join(f'{value:.4g}' for value in place)})"
