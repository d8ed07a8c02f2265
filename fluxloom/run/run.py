"""Run a flow from a script: ``run(flow, Time(2.0), [History(), Forces("wing")], directory="results/wing")``."""

from __future__ import annotations

import signal
import sys
import time as clock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.advice import warn
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.core.status import RunStatus
from fluxloom.run.checkpoint import Every
from fluxloom.run.failure import leaving_by_signal
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import March, Progress
from fluxloom.run.monitor import Monitor
from fluxloom.run.result import Result
from fluxloom.run.results.results import CHECKPOINT, Earlier, ResultFolder, examine
from fluxloom.run.session import Output, Session, Settings
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits

__all__ = ["run"]

def run(
    flow: Flow, until: Until, monitors: Sequence[Monitor] = (), *,
    start: Start | Result | str | Path | None = None, checkpoint: Every | None = None,
    directory: str | Path | None = None, overwrite: bool = False, guards: GuardLimits | None = None,
    output: Output | None = None, name: str = "", tell: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> Result:  # fmt: skip
    """Advance a flow to an end, look at it on the way, and return what came of it. Collective on several ranks.

    The same script run again in the same directory goes on from its last checkpoint.

    Parameters
    ----------
    flow
        In its initial state.
    until
        `Time`, `Steps`, `Steady`, or several with ``|``.
    monitors
        What looks at the flow: forces, probes, the history, files of the fields.
    start
        The result of another run that the flow starts from, see `Flow.start_from`: its folder, a file, what `run` has
        returned, or a `Start`, which says more and is closed here. By default the flow begins as it is.
    checkpoint
        When checkpoints are taken, ``Every(minutes=10)``; they are in the directory. Without, one is where the run is
        interrupted.
    directory
        Where results go; None: nothing is written.
    overwrite
        Whether results that are in the directory are replaced.
    guards
        What ends the run as diverged; by default what guards hold every flow to.
    output
        What is written into the directory; by default the fields at the end and the residual, and no pictures.
    name
        Of the run, in titles; by default that of the directory.
    tell
        Hears lines for the user, ``print`` for one.
    progress
        Hears of every step.

    Returns
    -------
    Result
        With a status of ``converged``, ``end reached`` or ``not converged``; the last one is warned of.

    Raises
    ------
    SolverError
        When the flow is lost, after its files have been written: what is wrong, where and when; or when it cannot start
        from a result.
    CaseError
        When the directory holds other results, a checkpoint is wanted but no directory, or a monitor does not fit.
    KeyboardInterrupt
        When the user interrupts, after the checkpoint; ``SystemExit`` for another signal.
    """
    comm, where = flow.context.comm, None if directory is None else Path(directory)
    if checkpoint is not None and where is None:
        raise CaseError("run: checkpoints are written into a directory: give directory, or leave checkpoint out")
    name = name or (where.name if where is not None else type(flow).__name__.lower())
    initial = None if start is None else _started(flow, start)
    made = FlowRun(flow, name, until, monitors)
    case = _described(made) if initial is None else _described(made) | {"initial": initial}
    settings = Settings(
        until.steps, until.steps > 0 and not until.steady, checkpoint or Every(), guards or GuardLimits(),
        output or Output(pictures=False), case, where,
    )  # fmt: skip

    def told(line: str) -> None:
        """Tell the user, on rank 0."""
        if tell is not None and comm.rank == 0:
            tell(line)

    folder = ResultFolder(where if comm.rank == 0 else None, told)
    session = Session(made, settings, folder, told)
    with leaving_by_signal():
        raise_on_all_ranks(comm, lambda: folder.open(" ".join(sys.argv)))
        try:
            try:
                found = raise_on_all_ranks(comm, lambda: _examined(folder, case, overwrite=overwrite))
            except CaseError as error:
                raise CaseError(str(error)) from None  # what was tried on the way says nothing more
            return _ended(session, comm.broadcast(found), progress)
        finally:
            folder.close(refused=not session.begun)


def _started(flow: Flow, start: Start | Result | str | Path) -> dict[str, Any]:
    """Let a flow start from a result; return what the record has of it. Collective."""
    found = start if isinstance(start, Start) else Start(start, flow.context.comm)
    try:
        flow.start_from(found)
    finally:
        found.close()
    return found.description()


def _described(made: FlowRun[Any]) -> dict[str, Any]:
    """Return what a run is of, as the record has it."""
    flow, until = made.flow, made.until
    return {
        "case": {"name": made.name, "solver": type(flow).__name__}, "flow": dict(flow.made_of),
        "mesh": {"cells": flow.cells},
        "time": {"end": until.time, "steady": until.steady}, "run": {"iterations": until.steps},
    }  # fmt: skip


def _examined(folder: ResultFolder, case: dict[str, Any], *, overwrite: bool) -> Earlier:
    """Return what lies in the folder, from which the run goes on, or which it replaces."""

    def has_checkpoint() -> bool:
        """Whether there is a checkpoint."""
        return folder.here and (folder / CHECKPOINT).exists()

    found = examine(
        folder, case, overwrite=overwrite, resume=True, has_checkpoint=has_checkpoint, ways=("overwrite=True", "", "")
    )
    if found.over is not None and not has_checkpoint():
        raise CaseError(
            f"output directory {folder.path}: this run is at its end there already ({found.message}), and nothing has "
            "been changed. There is no checkpoint of it to return or to go on from: give overwrite=True to begin anew, "
            "another directory, or from the first start on checkpoint=Every(...)"
        )
    return found


def _ended(session: Session, earlier: Earlier, progress: Progress | None) -> Result:
    """Run, and return what came of it."""
    made, settings, begin = session.run, session.settings, clock.perf_counter()
    resumed = session.resume(earlier)
    comm = session.comm
    record: dict[str, Any] = {
        "case": dict(settings.case), "started": clock.strftime("%Y-%m-%dT%H:%M:%S%z"), "ranks": comm.size,
        "device": made.flow.context.device.describe(), "cells": made.flow.cells,
    }  # fmt: skip
    for line in () if resumed is None else resumed.lines:
        session.tell(line)
    session.begin(record, earlier)
    record["setup_seconds"] = clock.perf_counter() - begin
    end = session.march(record, progress)
    saved = session.save(end)
    summary = session.finish(end, record, saved)
    _leave(end)
    residuals = np.array(session.residuals.values)
    return Result(made, end, summary, residuals, settings.directory, tuple(session.folder.written))


def _leave(end: March) -> None:
    """Raise where the run has not come to an end of its own; warn where that is none that was wanted."""
    if end.outcome.signal == signal.SIGINT:
        raise KeyboardInterrupt(str(end.outcome))
    if end.outcome.signal:
        raise SystemExit(end.outcome.exit_code)
    if end.status is RunStatus.DIVERGED:
        raise SolverError(str(end.outcome))
    if end.status is RunStatus.NOT_CONVERGED:
        warn(str(end.outcome))
