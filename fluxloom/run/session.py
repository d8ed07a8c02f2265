"""One run of a flow in a folder: refused before anything changes there, or ended with a status that is true.

In this order, on all ranks alike: `Session.resume` gives the flow the state of a checkpoint, `begin` takes the folder
over, `march` makes the steps, `save` takes the last checkpoint, `finish` writes what is left. What the case, the device
or a checkpoint has wrong is heard before `begin`, and costs nobody the results that were there.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.core.status import Outcome, RunStatus
from fluxloom.run.checkpoint import Every, Resumed, RunCheckpoint
from fluxloom.run.failure import APART, all_or_none
from fluxloom.run.flow_run import FlowRun, gathered
from fluxloom.run.guards import Guards
from fluxloom.run.march import March, Progress, march
from fluxloom.run.results.files import ResidualLog, fields_name, write_fields
from fluxloom.run.results.results import CHECKPOINT, Earlier, ResultFolder, known_results
from fluxloom.run.watch import GuardLimits

if TYPE_CHECKING:
    from fluxloom.run.start import Rebuild

__all__ = ["Output", "Session", "Settings"]


@dataclass(frozen=True)
class Output:
    """What a run writes.

    Attributes
    ----------
    format
        Of the fields at the end: a name of `fluxloom.mesh.io.output_format`; ``"auto"`` is VTKHDF where h5py is
        installed, else VTU; ``"none"``: there is no such file.
    pictures
        Whether pictures are drawn.
    residual
        Whether ``residual.csv`` is written.
    fields
        Which fields at the end: names, and formulas with a name (`fluxloom.run.fields.Fields.chosen`); empty: those of
        the flow.
    """

    format: str = "auto"
    pictures: bool = True
    residual: bool = True
    fields: Sequence[str] = ()


Rows = tuple[tuple[str, str], ...]
_ENDLESS = 10**9


@dataclass(frozen=True)
class Settings:
    """How a flow is run.

    Attributes
    ----------
    iterations
        Steps of the flow, at most; 0: until a goal of the run is met.
    asked
        Whether the user asked for just so many; else they are a limit beside the goals of the run.
    every
        When checkpoints are taken.
    limits
        What guards hold the flow to.
    output
        What is written.
    case
        What the flow was made of, as JSON has it.
    directory
        Where results go, on every rank; None: nothing is written.
    allow_changes
        Whether the run goes on from a checkpoint of another case on the same mesh, see `RunCheckpoint.resume`.
    rebuild
        Makes the run that such a checkpoint is of, as `fluxloom.run.start.Start` takes it.
    """

    iterations: int
    asked: bool = False
    every: Every = field(default_factory=Every)
    limits: GuardLimits = field(default_factory=GuardLimits)
    output: Output = field(default_factory=Output)
    case: Mapping[str, Any] = field(default_factory=dict)
    directory: Path | None = None
    allow_changes: bool = False
    rebuild: Rebuild | None = None


class Session:
    """One run of a flow. On several ranks all methods are collective, and rank 0 writes.

    Parameters
    ----------
    run
        A flow with its monitors, in its initial state.
    settings
        How it is run.
    folder
        Where results go; the caller opens it, and closes it at the end.
    tell
        Hears lines for the user.

    Attributes
    ----------
    tell
        Tells the user a line, on rank 0.
    begun
        Whether the folder has been taken over.
    residuals
        Of all steps.

    Raises
    ------
    CaseError
        When there is no field that is to be written.
    """

    def __init__(
        self, run: FlowRun[Any], settings: Settings, folder: ResultFolder, tell: Callable[[str], None]
    ) -> None:
        self.run, self.settings, self.folder, self.tell = run, settings, folder, tell
        try:
            run.fields().chosen(settings.output.fields)
        except SolverError as error:
            raise CaseError(f"output.fields: {error}") from None
        self.comm, self.first = run.flow.context.comm, run.flow.context.comm.rank == 0
        self.residuals, self.begun = ResidualLog(), False
        self.guards = Guards(settings.limits, run, run.flow.context)
        self.checkpoint = None if settings.directory is None else RunCheckpoint(
            settings.every, settings.case, run, run.flow.context, settings.directory,
            {"residuals": self.residuals}, tell,
        )  # fmt: skip
        self.resumed: Resumed | None = None
        self._replaced: tuple[str, ...] = ()

    def resume(self, earlier: Earlier, *, wanted: bool = True) -> Resumed | None:
        """Go on from the last checkpoint where that is wanted; let guards see the flow as it begins.

        Raises
        ------
        CheckpointError
            When no checkpoint can be read, or it is of another case.
        CaseError
            When the flow is not sound as it begins.
        """
        if earlier.goes_on and wanted and self.checkpoint is not None:
            self.resumed = self.checkpoint.resume(
                (earlier.record or {}).get("run"), allow_changes=self.settings.allow_changes,
                rebuild=self.settings.rebuild,
            )  # fmt: skip
        flow = self.run.flow
        self.guards.begin(flow.steps, flow.time if flow.steps else None)
        return self.resumed

    def begin(self, record: dict[str, Any], earlier: Earlier) -> None:
        """Take the folder over: from here on results are written."""
        self.begun = True
        folder, before, resumed = self.folder, earlier.record or {}, self.resumed
        if resumed is not None:
            folder.written = [name for name in before.get("files", ()) if isinstance(name, str)]
        self._replaced = tuple(name for name in earlier.files if name not in folder.written)
        goes_on = resumed is not None or not before
        record["run"] = before.get("run") if goes_on and before.get("run") else self.comm.broadcast(uuid.uuid4().hex)
        record["process"] = os.getpid()
        if self._replaced:
            record["earlier_files"] = list(self._replaced)
        folder.remove_orphans()
        folder.write_record(record | {"status": "running", "files": folder.written})
        if self.checkpoint is not None:
            self.checkpoint.run, self.checkpoint.inputs = str(record["run"]), record.get("inputs", {})
        self.run.begin(folder)
        if self.settings.output.residual and folder.here:
            self.residuals.begin(folder / "residual.csv", folder.lose)

    # ------------------------------------------------------------------------------------- marching
    def march(self, record: Mapping[str, Any], progress: Progress | None = None) -> March:
        """Make the steps; what ends the run without a result is recorded, and raised."""
        try:
            return march(
                self.run, self.settings.iterations or _ENDLESS, self.residuals, progress, self.comm,
                first=self.run.flow.steps, asked=self.settings.asked, guards=self.guards, saver=self.checkpoint,
            )  # fmt: skip
        except (KeyboardInterrupt, SystemExit):
            self._broken(record, RunStatus.INTERRUPTED, "interrupted in the middle of a step")
            raise
        except FluxloomError as error:
            error.exit_code = 1  # the run has begun: it is not refused
            status = RunStatus.DIVERGED if isinstance(error, SolverError) else RunStatus.INTERRUPTED
            self._broken(record, status, str(error), error)
            raise
        except BaseException as error:
            self._broken(record, RunStatus.INTERRUPTED, f"{type(error).__name__}: {error}", error)
            raise
        finally:
            self.residuals.close()

    def _broken(
        self, record: Mapping[str, Any], status: RunStatus, reason: str, error: BaseException | None = None
    ) -> None:
        """Record how the run ended without a result."""
        steps = self.residuals.iterations[-1] if self.residuals.iterations else 0
        found = {**record, **Outcome(status, reason).record(), "iterations": steps, "files": self.folder.written}
        if APART not in getattr(error, "__notes__", ()):
            self.folder.write_record(found)
        elif (path := self.settings.directory) is not None:
            # only this rank knows; unless another one has written: the first one may wait for what will not come
            folder = ResultFolder(path)
            before = folder.record() or {}
            if before.get("run") == found["run"] and before.get("status") == "running":
                folder.write_record(found | {"files": known_results(path)})

    # ------------------------------------------------------------------------------------- its end
    def save(self, end: March) -> str:
        """Take the last checkpoint where it is wanted, before the last samples; return its name, empty for none."""
        self.folder.good = end.status is not RunStatus.DIVERGED
        every = self.settings.every
        wanted = end.status is RunStatus.INTERRUPTED or every.steps or every.pause
        return self.checkpoint.save() if self.checkpoint is not None and self.folder.good and wanted else ""

    def finish(self, end: March, record: dict[str, Any], saved: str = "", copy_gbs: float = 0.0) -> Rows:
        """Write every file that is left, then the record; return the summary.

        Parameters
        ----------
        end
            How the steps ended.
        record
            Of the run, which gets what was found.
        saved
            The last checkpoint.
        copy_gbs
            Copy bandwidth of all ranks together, with which the speed of the flow is compared; 0: it is not known.
        """
        run, folder, residuals, good = self.run, self.folder, self.residuals, self.folder.good
        keep = self.keep(end)
        if residuals.values and self.settings.output.residual and folder.here and "residual.csv" not in folder.lost:
            folder.written = [*dict.fromkeys([*folder.written, "residual.csv"])]
        pictures = self.settings.output.pictures and good
        keep(lambda: run.finish(pictures=pictures))  # takes the last samples: they are fields
        self._write_fields(end, keep)
        if folder.here and (folder / CHECKPOINT).exists():
            folder.written = [*dict.fromkeys([*folder.written, CHECKPOINT])]
        summary: Rows = tuple(run.summary()) if end.steps and good else ()
        summary += tuple(self.guards.summary())
        if summary and copy_gbs:
            summary += tuple(run.flow.bound(copy_gbs))
        record |= end.outcome.record() | {
            "iterations": end.steps, "time": run.flow.time, "seconds": end.seconds,
            "ms_per_iteration": 1e3 * end.seconds_per_step if end.iterations else None,
            "residual": end.residual if end.iterations else (residuals.values[-1] if residuals.values else None),
            "results": dict(summary), "guards": self.guards.record(), "checkpoint": saved or None,
            "pictures": [vars(picture) for picture in run.pictures],
        }  # fmt: skip
        if end.status.complete and not folder.lost:
            folder.remove_earlier(self._replaced)
            record.pop("earlier_files", None)
        record |= {"files": folder.written, "lost": dict(folder.lost)}
        folder.write_record(record)
        return summary

    def keep(self, end: March) -> Callable[[Callable[[], Any]], Any]:
        """Return what does something collective behind the last step.

        Behind a step that failed on one rank the others may be elsewhere: then all do it, or none does and it is None.
        """
        if end.status is RunStatus.DIVERGED:
            return lambda action: all_or_none(self.comm, action)
        return lambda action: action()

    def _write_fields(self, end: March, keep: Callable[[Callable[[], Any]], Any]) -> None:
        """Write the fields at the end, and draw them and the residual."""
        folder, run, output = self.folder, self.run, self.settings.output
        name = fields_name(output.format, folder.stem)
        shown = list(run.pictures) if output.pictures and folder.good else []
        if (folder.good and not end.steps) or not (name or output.pictures):
            return
        every, apart = run.fields(), [] if name and not output.fields else [picture.field for picture in shown]
        written = every.chosen(output.fields) if name else {}
        drawn = every.chosen(list(dict.fromkeys(apart))) if apart else {}  # by a name that may be of a formula there
        whole = keep(lambda: [gathered(self.comm, run.flow.part, one) for one in (written, drawn)])
        if whole is None and folder.here:
            folder.lose(name, "the values of the other ranks did not come")
        if not folder.here:
            self.comm.rest()
            return
        if whole is not None and any(whole):
            fields, seen = whole[0], {**whole[0], **whole[1]}
            nodal = bool(run.flow.points)
            mesh, time = run.mesh(), run.flow.time
            if name:
                with folder.attempt(name):
                    write_fields(
                        folder / name, mesh, fields, format=output.format, nodal=nodal, time=time,
                        units=every.chosen(output.fields).units,
                    )  # fmt: skip
            for picture in shown:
                with folder.attempt(f"{picture.field}.png"):
                    from fluxloom.run.pictures import draw_field

                    path = folder / f"{picture.field}.png"
                    draw_field(path, mesh, seen[picture.field], picture, nodal=nodal)
        log = self.residuals
        if output.pictures and len(log.values) > 1:
            with folder.attempt("residual.png"):
                from fluxloom.run.pictures import draw_residual

                title = f"{run.name}: residual"
                draw_residual(folder / "residual.png", np.array(log.iterations), np.array(log.values), title)
        self.comm.rest()
