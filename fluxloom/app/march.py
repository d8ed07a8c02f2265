"""Advance a runner: residuals, progress, a stop when the solution is lost, results kept on interruption."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Ending, Nodal, Runner
from fluxloom.app.files import ResidualLog
from fluxloom.app.gathering import find_lost
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import LoopCheckError, SolverError

__all__ = ["March", "Progress", "Silent", "march"]

_WARM = 2
_SAME_SIGNAL = 1.0
"""Seconds in which signals count as one."""

_GRACE = 20.0
"""Seconds that an interrupted iteration may still take; batch systems kill a job not much later."""


class Progress(Protocol):
    """Hears how a run advances."""

    def advanced(self, iteration: int, residual: float, seconds: float) -> None:
        """Take note of a finished iteration; ``seconds`` is the time since the first began."""
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
    iterations
        Finished iterations.
    seconds
        Time they took.
    residual
        Of the last one.
    status
        ``"finished"``, ``"interrupted"`` or ``"failed"``.
    error
        Why it failed.
    pace
        Seconds of an iteration, without the first two, which may compile.
    """

    iterations: int
    seconds: float
    residual: float
    status: str
    error: str = ""
    pace: float = 0.0


@dataclass
class _Way:
    """What is behind a run; ``warm`` are the seconds of the first two iterations."""

    done: int = 0
    seconds: float = 0.0
    residual: float = float("nan")
    warm: float = 0.0

    def note(self, residual: float, seconds: float) -> None:
        """Take note of an iteration, and of the seconds since the first began."""
        self.done, self.residual, self.seconds = self.done + 1, residual, seconds
        if self.done == _WARM:
            self.warm = seconds

    def end(self, status: str, error: str = "") -> March:
        """Return how the run ended."""
        later = self.done - _WARM
        pace = (self.seconds - self.warm) / later if later > 0 else self.seconds / max(1, self.done)
        return March(self.done, self.seconds, self.residual, status, error, pace)


class _Interruption:
    """Whether somebody wants the run to end: a signal is remembered, and all ranks stop behind the same iteration.

    Stopping at once would leave half an iteration in the fields. A second signal does, if it comes later than what a
    launcher makes of the first, and so does an iteration that does not end.
    """

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._since = 0.0
        self._timer = threading.Timer(_GRACE, _thread.interrupt_main)
        self._timer.daemon = True
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: object) -> None:
        now = time.monotonic()
        if self._since and now - self._since > _SAME_SIGNAL:
            raise KeyboardInterrupt
        if not self._since:
            self._since = now
            self._timer.start()

    def agreed(self) -> bool:
        """Whether a rank was interrupted; the same on every rank, which all have to ask."""
        if self._comm.size == 1:
            return self._since > 0
        return bool(self._comm.reduce(np.array([self._since]), "max")[0])


def march(
    runner: Runner, iterations: int, log: ResidualLog, progress: Progress | None = None, comm: Comm | None = None
) -> March:
    """Run iterations until all are done, the user interrupts, or the residual is not finite. Collective.

    A runner that is an `Ending` may be done earlier.

    Parameters
    ----------
    runner
        What advances.
    iterations
        How many, at most.
    log
        Takes the residuals.
    progress
        Hears of every iteration.
    comm
        The ranks; a rank alone by default.

    Returns
    -------
    March
        With the status; a lost solution is reported there, so that the caller can keep the files first.

    Raises
    ------
    SolverError
        On several ranks, what the runner raises: the others may not know of it.
    KeyboardInterrupt
        After a second interruption: the fields are in the middle of an iteration.
    """
    told, ranks = progress if progress is not None else Silent(), comm if comm is not None else SelfComm()
    way, start = _Way(), time.perf_counter()
    try:
        with _Interruption(ranks) as interruption:
            for number in range(1, iterations + 1):
                runner.advance()
                residual = runner.residual()
                seconds = time.perf_counter() - start
                way.note(residual, seconds)
                log.add(number, residual, seconds)
                told.advanced(number, residual, seconds)
                if not isfinite(residual):
                    return way.end("failed", _lost(runner, number, residual, ranks))
                if isinstance(runner, Ending) and runner.finished:
                    return way.end("finished")
                if number < iterations and interruption.agreed():
                    return way.end("interrupted")
    except SolverError as error:
        if isinstance(error, LoopCheckError):
            error.args = (f"{error}\n    in iteration {way.done + 1}",)
        if ranks.size > 1:
            raise
        return way.end("failed", str(error))
    return way.end("finished")


def _lost(runner: Runner, iteration: int, residual: float, comm: Comm) -> str:
    """Return the message of a lost solution; where the cell or the point is, only rank 0 says."""
    bad = find_lost(comm, runner.part, runner.fields())
    place = ""
    if bad is not None:
        name, number, count = bad
        at = _position(runner, number) if comm.rank == 0 else ""
        what, total = ("point", runner.points) if isinstance(runner, Nodal) else ("cell", runner.cells)
        place = f"; the first {what} without a finite {name} is {number}{at} ({count:,} of {total:,} {what}s)"
    return f"iteration {iteration}: the residual is {residual}{place}; {runner.advice()}"


def _position(runner: Runner, number: int) -> str:
    """Return the place of a point, or the centre of a cell, in words."""
    mesh = runner.mesh()
    if isinstance(runner, Nodal):
        return _words(mesh.points[number])
    for name, numbers in mesh.cell_ranges.items():
        if number in numbers:
            return _words(mesh.points[mesh.cells[name][number - numbers.start]].mean(axis=0))
    return ""


def _words(place: npt.NDArray[np.float64]) -> str:
    return f" at ({', '.join(f'{value:.4g}' for value in place)})"
