"""A run of a case, from what is asked to what is left of it.

That is the last checkpoint, fields, tables, pictures, the record and the summary.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.cases.files.application import built
from fluxloom.cases.files.case import parse_schedule
from fluxloom.cases.files.errors import placed
from fluxloom.cases.files.loading import rebuilt
from fluxloom.cli.console import Advance, Listening, facts, messages, output, say, show_error, table
from fluxloom.cli.runs.request import Request
from fluxloom.cli.runs.summary import (
    EXCHANGE_HEADINGS,
    HEADINGS,
    LEFT,
    ExchangeRow,
    LoopRow,
    exchange_rows,
    exchanges_of,
    overall,
    rows_of_ranks,
    spread,
)
from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.core.status import RunStatus
from fluxloom.device.bandwidth import Bandwidth, available_memory, measured_bandwidth
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.machine.ranks import RankDevices, place_of, rank_devices_of
from fluxloom.machine.system import asked_commit, fluxloom_version, package_version, python_version
from fluxloom.run.checkpoint import Resumed
from fluxloom.run.failure import leaving_by_signal
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import March
from fluxloom.run.results.results import CHECKPOINT, RECORD, Earlier, ResultFolder, digests_of_inputs, examine
from fluxloom.run.session import Output, Session, Settings

if TYPE_CHECKING:
    from fluxloom.dsl.run.hybrid import TimedComm

__all__ = ["Job", "JobOutput", "first_record"]

_FEW = 2

Rows = Sequence[tuple[str, str]]


class JobOutput:
    """Ends a run, and prints what was found. On several ranks all methods are collective, and rank 0 prints."""

    def __init__(self, request: Request, session: Session, context: Context) -> None:
        self.request, self.session, self.context = request, session, context
        self.comm = context.comm

    def finish(self, end: March, record: dict[str, Any], waited: float | None) -> None:
        """Write every result file, then the record; print the summary."""
        session = self.session
        saved = session.save(end)
        hurry = self.comm.size > 1 and end.status is RunStatus.INTERRUPTED
        loops = session.keep(end)(lambda: self._loops(session.run, hurry=hurry)) or _Loops(0.0, 0.0, 0.0, [], [])
        record |= loops.record()
        if waited is not None:
            share = waited / end.seconds if end.seconds else 0.0
            record["waiting"] = spread(self.comm, {"seconds": waited, "share": share})
            record["exchanges"] = [row.record() for row in loops.exchanges]
            record["transport_seconds"] = self.context.transport_seconds
        summary = session.finish(end, record, saved, loops.copy)
        if self.comm.rank == 0:
            self._show(end, summary, record, loops, saved)

    # ----------------------------------------------------------------------------------------- loops
    def _loops(self, run: FlowRun[Any], *, hurry: bool) -> _Loops:
        """Return what the loops did; their share of the bandwidth where it is asked for, which takes seconds."""
        comm, reports = self.comm, list(run.flow.reports())
        bandwidth = None
        if self.request.profile and not hurry:  # launchers do not wait for long after an interruption
            if comm.rank == 0:
                messages().print("measuring the memory bandwidth, which the table of loops is compared with")
            bandwidth = _bandwidth(self.context)
        mine, took = overall(reports)
        copy, moved = comm.reduce(np.array([bandwidth.copy_gbs if bandwidth else 0.0, mine]), "sum").tolist()
        seconds = comm.reduce(np.array([took]), "max").tolist()[0]
        chains = run.flow.chains
        rows = rows_of_ranks(comm, reports, copy)
        return _Loops(copy, moved, seconds, rows, exchange_rows(comm, exchanges_of(unique(chains))))

    # --------------------------------------------------------------------------------------- summary
    def _show(self, end: March, summary: Rows, record: dict[str, Any], loops: _Loops, saved: str) -> None:
        """Print the results: the status first, the physics, then where the time went."""
        folder = self.session.folder
        lines = [("case", self.session.run.name), ("status", str(end.outcome))]
        if saved:
            lines.append(("checkpoint", f"saved at step {end.steps:,}: {saved}"))
        if "waiting" in record:
            share = record["waiting"]["share"]
            text = f"{100 * share['mean']:.1f} % of the time for other ranks, at most {100 * share['max']:.1f} %"
            lines += [("ranks", f"{self.comm.size}: {record['device_name']}"), ("waiting", text)]
        pace = f"{1e3 * end.seconds_per_step:.4g} ms/iteration" if end.iterations else "none made here"
        here = f" ({end.iterations:,} here)" if end.iterations != end.steps else ""
        lines.append(("iterations", f"{end.steps:,}{here} in {end.seconds:.2f} s ({pace})"))
        lines = [lines[1], lines[0], *lines[2:]]
        files = [("files", f"{self.request.directory}: {', '.join([*folder.written, RECORD])}")]
        if folder.lost:
            files.append(("outputs lost", "; ".join(f"{name}: {why}" for name, why in folder.lost.items())))
        facts([*lines, *summary, *files])
        if self.request.profile:
            loops.show(self.context)


class _Loops:
    """What the loops of a run did."""

    def __init__(
        self, copy: float, moved: float, seconds: float, rows: list[LoopRow], exchanges: list[ExchangeRow]
    ) -> None:
        self.copy, self.moved, self.seconds, self.rows, self.exchanges = copy, moved, seconds, rows, exchanges

    def record(self) -> dict[str, Any]:
        """Return it for ``run.json``."""
        return {
            "copy_gbs": self.copy or None,
            "useful_gbs": self.moved / self.seconds / 1e9 if self.seconds else None,
            "loops": [row.record() | {"colours": row.colours, "lanes": row.lanes, "block": row.block,
                                      "vectorised": row.vectorised} for row in self.rows],
        }  # fmt: skip

    def show(self, context: Context) -> None:
        """Print tables of loops and messages."""
        title = f"loops (copy {self.copy:.1f} GB/s, measured in this run)" if self.copy else "loops"
        often = max((row.calls for row in self.rows), default=0)
        shown = [row for row in self.rows if row.calls > _FEW or often < 10 * _FEW]  # the first step runs unfused
        table(title, HEADINGS, [row.cells(simd=not context.device.items) for row in shown], left=LEFT)
        if self.exchanges:
            usual = [row for row in self.exchanges if row.calls > _FEW or often < 10 * _FEW]
            table("messages", EXCHANGE_HEADINGS, [row.cells() for row in usual], left=(0, 7))
        if context.device.native and self.rows and not any(row.seconds for row in self.rows):
            output().print(f"the device {context.device.name} keeps no times of loops", soft_wrap=True, markup=False)


def _all(_: Comm, action: Callable[[], Any]) -> Any:
    return action()


def _bandwidth(context: Context) -> Bandwidth | None:
    """Return the memory bandwidth with the threads of the run; None where loops are not native.

    It is measured once a machine; by several ranks, which share the memory, all at the same time.
    """
    if not context.device.native:
        return None
    try:
        return measured_bandwidth(context.device, context.threads, fresh=context.comm.size > 1)
    except FluxloomError as error:
        messages().print(f"warning: the bandwidth was not measured: {error}", style="yellow", markup=False)
        return None


def first_record(
    request: Request, context: Context, run: FlowRun[Any], rank_devices: RankDevices, commit: str,
    tell: Callable[[str], object],
) -> dict[str, Any]:
    """Return the record of a run that is about to begin; says how the mesh is divided. Collective."""
    packages = {name: package_version(name) for name in ("numpy", "scipy", "h5py", "mpi4py")}
    versions = {"fluxloom": fluxloom_version(), "python": python_version()}
    record: dict[str, Any] = {
        "case": request.case.model_dump(mode="json"),
        "file": request.file,
        "command": request.command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": commit,
        "versions": versions | {name: text for name, text in packages.items() if text},
        "device": rank_devices.device,
        "device_name": rank_devices.device_name,
        "threads": context.threads,
        "gpus": rank_devices.gpus,
        "ranks": context.comm.size,
        "cells": run.flow.cells,
    }
    if (report := run.flow.partition) is not None:
        cells = next(found for found in report.sets if found.name == report.on)
        shares = [owned / cells.total for owned in cells.owned]
        tell(f"{report.on} divided by {report.method}: {', '.join(f'{100 * s:.2f} %' for s in shares)}")
        record |= {"crew": rank_devices.record(), "shares": shares, "partition": asdict(report)}
    return record


class _FromFirstStep:
    """Tells how far a run is from its first step on; until then what goes on is told by another one."""

    def __init__(self, progress: Advance, ear: Listening) -> None:
        self._progress, self._ear = progress, ear

    def advanced(self, iteration: int, residual: float, seconds: float) -> None:
        """Take note of a step."""
        self._ear.close()
        self._progress.advanced(iteration, residual, seconds)


class Job:
    """One run. On several ranks all methods are collective, and rank 0 writes."""

    def __init__(self, comm: Comm, request: Request) -> None:
        self.comm, self.request, self.case = comm, request, request.case
        self.first = comm.rank == 0
        self.ear = Listening(say if self.first else None)
        self.folder = ResultFolder(request.directory if self.first else None, self._tell)
        self._begun = False

    def run(self) -> int:
        """Run and return the exit status, the same on every rank."""
        with leaving_by_signal(), self.ear:
            return self._guarded()

    def _guarded(self) -> int:
        request = self.request
        with placed(request.file):
            estimate = request.application.estimate(self.case)
        needed = estimate.output if self.case.output.writes_fields else 0
        raise_on_all_ranks(self.comm, lambda: self.folder.open(request.command, needed))
        try:
            earlier = self._examine()
            if earlier.over is not None:
                self._begun = True  # no run needs the lock that a killed one may have left
                return self._over(earlier, earlier.over)
            return self._run(earlier, estimate)
        finally:
            self.folder.close(refused=not self._begun)

    def _examine(self) -> Earlier:
        """Return what lies in the folder; the same on every rank."""
        path, case = self.request.directory, self.case.model_dump(mode="json")
        inputs = digests_of_inputs(case) if self.first else {}
        self._inputs = inputs
        found = raise_on_all_ranks(
            self.comm,
            lambda: examine(
                self.folder, case | {"inputs": inputs}, overwrite=self.request.overwrite,
                resume=self.case.checkpoint.resume, has_checkpoint=lambda: (path / CHECKPOINT).exists(),
                allow_changes=self.request.allow_changes,
            ),
        )  # fmt: skip
        return self.comm.broadcast(found)

    def _over(self, earlier: Earlier, status: RunStatus) -> int:
        """Say that nothing is left to be done; a number of steps that is asked for now was not a target then."""
        record = earlier.record or {}
        if self.request.asked and status is RunStatus.NOT_CONVERGED and record.get("ended_by") == "run.iterations":
            status = RunStatus.END_REACHED
        reason = record.get("reason") or earlier.message
        self._tell(
            f"{self.case.case.name}: at its end already: {status}: {reason}; results in {self.request.directory}. "
            "Ask for more (run.iterations, time.end), or begin anew with --overwrite"
        )
        return status.exit_code

    def _run(self, earlier: Earlier, estimate: Any) -> int:
        request, run = self.request, self.case.run
        begin, commit = time.perf_counter(), asked_commit()
        pictures = self._can_draw()
        place = place_of(self.comm, run.device, run.threads, run.ranks)
        timed = self._timed()
        grade = Schedule(deterministic=parse_schedule(run.schedule).deterministic)  # the rest is the solver's to take
        context = Context(
            place.device, threads=place.threads, schedule=grade, comm=timed or self.comm, transport=run.transport,
            overlap=run.overlap,
        )  # fmt: skip
        context.profile = request.profile
        self._check_memory(context, estimate.memory)
        rank_devices = rank_devices_of(context)
        on = repr(context) if timed is None else f"{self.comm.size} ranks: {rank_devices.device_name}"
        self._tell(f"building {self.case.case.name}: {estimate.cells:,} cells on {on}")
        with placed(request.file), activity("building", self.case.case.name):
            made = built(request.application, self.case, context)
        if made.flow.chain is not None and context.device.native:
            made.flow.chain.build()
        tuned = self._tuned(made) if run.tune == "startup" else []
        output = Output(self.case.output.format, pictures, self.case.output.residual, self.case.output.fields)
        settings = Settings(
            run.iterations, request.asked, self.case.checkpoint.value, self.case.guards.value, output,
            self.case.model_dump(), request.directory, request.allow_changes, lambda tables: rebuilt(tables, context),
        )  # fmt: skip
        session = Session(made, settings, self.folder, self._tell)
        resumed = session.resume(earlier, wanted=self.case.checkpoint.resume)
        record = first_record(request, context, made, rank_devices, commit(), self._tell)
        record |= {"tuning": tuned} if tuned else {}
        record["inputs"] = self._inputs
        if context.schedule.deterministic == "global" and (divided := self.case.divided):
            self._tell(f"deterministic=global: the bits will depend on the number of ranks: {divided}")
        self._greet(earlier, resumed)
        # Only now: what is wrong with the case, the device or the checkpoint costs nobody the results that were there.
        self._begun = True
        session.begin(record, earlier)
        record["setup_seconds"] = time.perf_counter() - begin
        if timed is not None:
            timed.waited = 0.0
        end = self._march(session, record)
        JobOutput(request, session, context).finish(end, record, timed.waited if timed is not None else None)
        lost = bool(self.comm.broadcast(bool(self.folder.lost)))
        if end.status is RunStatus.DIVERGED and self.first:
            path = request.directory / CHECKPOINT
            where = f"last checkpoint: {path}" if path.exists() else "there is no checkpoint"
            show_error(SolverError(f"{end.outcome}\n{where}\nresults so far: {request.directory}"))
        return end.outcome.exit_code or (3 if lost else 0)

    # ------------------------------------------------------------------------------------- beginning
    def _timed(self) -> TimedComm | None:
        """Return the ranks with a clock for how long one waits for others; None for one rank."""
        if self.comm.size == 1:
            return None
        from fluxloom.dsl.run.hybrid import TimedComm

        return TimedComm(self.comm)

    def _tuned(self, made: FlowRun[Any]) -> list[dict[str, Any]]:
        """Tune the loops, print a table of what was chosen, and return it for the record."""
        from fluxloom.cli.runs.startup import STARTUP_HEADINGS, tune_at_start

        found = tune_at_start(made.flow, self.request.application.name, self._tell)
        if found and self.first:
            table("tuned before the first step", STARTUP_HEADINGS, [row.cells() for row in found], left=(0, 2))
        return [row.record() for row in found]

    def _can_draw(self) -> bool:
        """Whether pictures are wanted and can be drawn; what is missing is said once, before the first step."""
        missing = self.request.pictures and find_spec("matplotlib") is None
        if missing:
            self._tell("pictures are left out: they need matplotlib: pip install 'fluxloom[viz]'")
        return self.request.pictures and not missing

    def _greet(self, earlier: Earlier, resumed: Resumed | None) -> None:
        """Say whether the run goes on or begins, where there was one before."""
        if resumed is not None:
            for line in resumed.lines:
                self._tell(line)
        elif earlier.record is not None:
            why = "" if not earlier.goes_on else "there is no checkpoint to go on from: "
            self._tell(f"{why}the run begins anew; results of the run before ({earlier.message}) are replaced")

    def _march(self, session: Session, record: dict[str, Any]) -> March:
        """Do the steps, with progress on the first rank."""
        if not self.first:
            return session.march(record)
        run, updates = self.case.run, session.run.flow.updates
        with Advance(run.iterations, run.report_every, updates) as progress:
            return session.march(record, _FromFirstStep(progress, self.ear))

    # ------------------------------------------------------------------------------------- the rest
    def _check_memory(self, context: Context, needed: int) -> None:
        """Raise `CaseError` where the memory of this machine cannot hold its part: systems end such a run unheard."""
        mine, free = needed * self.comm.local_size // self.comm.size, available_memory()
        if context.device.shared and mine > free > 0:
            raise CaseError(
                f"{self.request.file}: the case needs about {mine / 2**30:.1f} GiB of memory, {free / 2**30:.1f} GiB "
                "are free on this machine; choose a coarser mesh or more machines"
            )

    def _tell(self, line: str) -> None:
        if self.first:
            with contextlib.suppress(OSError):
                self.ear.tell(line)
