"""One run, from a checked case to its files: refused before anything changes, or ended with a status that is true."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fluxloom.app.balance import built
from fluxloom.app.case_errors import placed
from fluxloom.app.cli.console import Advance, show_error, table
from fluxloom.app.cli.listening import Listening, say
from fluxloom.app.crew import crew_of, place_of
from fluxloom.app.job_output import JobOutput
from fluxloom.app.job_record import first_record
from fluxloom.app.loading import rebuilt
from fluxloom.app.request import Request
from fluxloom.app.schedules import parse_schedule
from fluxloom.app.system import asked_commit
from fluxloom.comm.base import Comm
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.core.status import Outcome, RunStatus
from fluxloom.device.bandwidth import available_memory
from fluxloom.dsl.context import Context
from fluxloom.dsl.schedule import Schedule
from fluxloom.mesh.rows import together
from fluxloom.run.checkpoint import Resumed, RunCheckpoint
from fluxloom.run.failure import APART
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.guards import Guards
from fluxloom.run.interruption import leaving_by_signal
from fluxloom.run.march import March, Silent, march
from fluxloom.run.results.earlier import Earlier, digests_of_inputs, examine
from fluxloom.run.results.folder import CHECKPOINT, ResultFolder, known_results
from fluxloom.run.results.tables import ResidualLog

if TYPE_CHECKING:
    from fluxloom.dsl.hybrid import TimedComm

__all__ = ["Job"]


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
        needed = estimate.output if self.case.output.fields else 0
        together(self.comm, lambda: self.folder.open(request.command, needed))
        try:
            earlier = self._examine()
            if earlier.over is not None:
                return self._over(earlier, earlier.over)
            return self._run(earlier, estimate)
        finally:
            self.folder.close(refused=not self._begun)

    def _examine(self) -> Earlier:
        """Return what lies in the folder; the same on every rank."""
        path, case = self.request.directory, self.case.model_dump(mode="json")
        inputs = digests_of_inputs(case) if self.first else {}
        self._inputs = inputs
        found = together(
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
        crew = crew_of(context)
        on = repr(context) if timed is None else f"{self.comm.size} ranks: {crew.device_name}"
        self._tell(f"building {self.case.case.name}: {estimate.cells:,} cells on {on}")
        with placed(request.file), activity("building", self.case.case.name):
            made = built(request.application, self.case, context)
        if made.flow.chain is not None and context.device.native:
            made.flow.chain.build()
        tuned = self._tuned(made) if run.tune == "startup" else []
        log, guards = ResidualLog(), Guards(self.case.guards.value, made, context)
        saver = RunCheckpoint(
            self.case.checkpoint.value, self.case.model_dump(), made, context, request.directory,
            {"residuals": log}, self._tell,
        )
        goes_on = earlier.goes_on and self.case.checkpoint.resume
        resumed = saver.resume(
            (earlier.record or {}).get("run"), allow_changes=request.allow_changes,
            rebuild=lambda tables: rebuilt(tables, context),
        ) if goes_on else None  # fmt: skip
        guards.begin(made.flow.steps, made.flow.time if made.flow.steps else None)
        record = first_record(request, context, made, crew, commit(), self._tell)
        record |= {"tuning": tuned} if tuned else {}
        if context.schedule.deterministic == "global" and (divided := self.case.divided):
            self._tell(f"deterministic=global: the bits will depend on the number of ranks: {divided}")
        self._greet(earlier, resumed)
        # Only now: what is wrong with the case, the device or the checkpoint costs nobody the results that were there.
        self._begin(made, record, earlier, resumed)
        saver.run, saver.inputs = record["run"], self._inputs
        record["setup_seconds"] = time.perf_counter() - begin
        if self.case.output.residual and self.first:
            log.begin(self.folder / "residual.csv", self.folder.lose)
        if timed is not None:
            timed.waited = 0.0
        end = self._march(made, log, record, saver, guards, resumed)
        waited = timed.waited if timed is not None else None
        output = JobOutput(self.comm, request, self.folder, context, pictures)
        output.finish(made, log, end, record, guards=guards, saver=saver, waited=waited, earlier=self._replaced)
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
        from fluxloom.dsl.hybrid import TimedComm

        return TimedComm(self.comm)

    def _tuned(self, made: FlowRun[Any]) -> list[dict[str, Any]]:
        """Tune the loops, print a table of what was chosen, and return it for the record."""
        from fluxloom.app.startup import STARTUP_HEADINGS, tune_at_start

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

    def _begin(self, made: FlowRun[Any], record: dict[str, Any], earlier: Earlier, resumed: Resumed | None) -> None:
        """Take the folder over: from here on results are written."""
        self._begun = True
        before = earlier.record or {}
        if resumed is not None:
            self.folder.written = [name for name in before.get("files", ()) if isinstance(name, str)]
        self._replaced = tuple(name for name in earlier.files if name not in self.folder.written)
        goes_on = resumed is not None or not before
        record["inputs"] = self._inputs
        record["run"] = before.get("run") if goes_on and before.get("run") else self.comm.broadcast(uuid.uuid4().hex)
        record["process"] = os.getpid()
        if self._replaced:
            record["earlier_files"] = list(self._replaced)
        self.folder.remove_orphans()
        self.folder.write_record(record | {"status": "running", "files": self.folder.written})
        made.begin(self.folder)

    # ------------------------------------------------------------------------------------- marching
    def _march(
        self, made: FlowRun[Any], log: ResidualLog, record: dict[str, Any], saver: RunCheckpoint, guards: Guards,
        resumed: Resumed | None,
    ) -> March:  # fmt: skip
        """Do the steps, with progress on the first rank; what ends the run without a result is recorded."""
        run, updates = self.case.run, made.flow.updates
        first = made.flow.steps

        def do(progress: Any) -> March:
            """Do the steps."""
            return march(
                made, run.iterations, log, progress, self.comm, first=first, asked=self.request.asked,
                guards=guards, saver=saver,
            )  # fmt: skip

        def broken(status: RunStatus, reason: str, *, apart: bool = False) -> None:
            """Record how the run ended without a result."""
            steps = log.iterations[-1] if log.iterations else 0
            found = record | Outcome(status, reason).record() | {"iterations": steps, "files": self.folder.written}
            if apart:
                self._witness(found)
            else:
                self.folder.write_record(found)

        try:
            if not self.first:
                return do(Silent())
            with Advance(run.iterations, run.report_every, updates) as progress:
                return do(_FromFirstStep(progress, self.ear))
        except (KeyboardInterrupt, SystemExit):
            broken(RunStatus.INTERRUPTED, "interrupted in the middle of a step")
            raise
        except FluxloomError as error:
            error.exit_code = 1  # the run has begun: it is not refused
            diverged = isinstance(error, SolverError)
            broken(RunStatus.DIVERGED if diverged else RunStatus.INTERRUPTED, str(error), apart=_apart(error))
            raise
        except BaseException as error:
            broken(RunStatus.INTERRUPTED, f"{type(error).__name__}: {error}", apart=_apart(error))
            raise
        finally:
            log.close()

    def _witness(self, found: dict[str, Any]) -> None:
        """Write the record unless another rank has: the first one may wait for what will not come."""
        folder = ResultFolder(self.request.directory)
        before = folder.record() or {}
        if before.get("run") == found["run"] and before.get("status") == "running":
            folder.write_record(found | {"files": known_results(self.request.directory)})

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


def _apart(error: BaseException) -> bool:
    """Whether only this rank knows of an error."""
    return APART in getattr(error, "__notes__", ())
