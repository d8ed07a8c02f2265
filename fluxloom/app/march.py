"""Advance a runner: residuals, progress, a stop when the solution is lost, results kept on interruption."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Runner
from fluxloom.app.files import ResidualLog
from fluxloom.core.errors import SolverError

__all__ = ["March", "Progress", "Silent", "first_bad_cell", "march"]

_WARM = 2


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


def march(runner: Runner, iterations: int, log: ResidualLog, progress: Progress | None = None) -> March:
    """Run iterations until all are done, the user interrupts, or the residual is not finite.

    Returns
    -------
    March
        With the status; a lost solution is reported there, so that the caller can keep the files first.
    """
    told = progress if progress is not None else Silent()
    residual, done, seconds, warm = float("nan"), 0, 0.0, 0.0

    def end(status: str, error: str = "") -> March:
        pace = (seconds - warm) / (done - _WARM) if done > _WARM else seconds / max(1, done)
        return March(done, seconds, residual, status, error, pace)

    start = time.perf_counter()
    try:
        for number in range(1, iterations + 1):
            runner.advance()
            residual = runner.residual()
            seconds = time.perf_counter() - start
            done = number
            warm = seconds if number == _WARM else warm
            log.add(number, residual, seconds)
            told.advanced(number, residual, seconds)
            if not isfinite(residual):
                return end("failed", _lost(runner, number, residual))
    except KeyboardInterrupt:
        return end("interrupted")
    except SolverError as error:
        return end("failed", str(error))
    return end("finished")


def _lost(runner: Runner, iteration: int, residual: float) -> str:
    """Return the message of a lost solution."""
    bad = first_bad_cell(runner.fields())
    place = ""
    if bad is not None:
        name, cell, count = bad
        at = _position(runner, cell)
        place = f"; the first cell without a finite {name} is {cell}{at} ({count:,} of {runner.cells:,} cells)"
    return f"iteration {iteration}: the residual is {residual}{place}; {runner.advice()}"


def _position(runner: Runner, cell: int) -> str:
    """Return the centre of a cell in words."""
    mesh = runner.mesh()
    for name, numbers in mesh.cell_ranges.items():
        if cell in numbers:
            centre = mesh.points[mesh.cells[name][cell - numbers.start]].mean(axis=0)
            return f" at ({', '.join(f'{value:.4g}' for value in centre)})"
    return ""


def first_bad_cell(fields: Mapping[str, npt.NDArray[Any]]) -> tuple[str, int, int] | None:
    """Return field, first cell and number of cells with a NaN or infinity; None when all are finite."""
    for name, values in fields.items():
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not finite.all():
            return name, int(np.argmin(finite)), int((~finite).sum())
    return None
