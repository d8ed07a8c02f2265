"""What is left of a run: the last checkpoint, fields, tables, pictures, the record and the summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fluxloom.app.cli.console import facts, messages, output, table
from fluxloom.app.rank_loops import EXCHANGE_HEADINGS, ExchangeRow, exchange_rows, exchanges_of, rows_of_ranks, spread
from fluxloom.app.request import Request
from fluxloom.app.summary import HEADINGS, LEFT, LoopRow, overall
from fluxloom.comm.base import Comm
from fluxloom.core.errors import FluxloomError
from fluxloom.core.status import RunStatus
from fluxloom.device.bandwidth import Bandwidth
from fluxloom.device.measured import measured_bandwidth
from fluxloom.dsl.context import Context
from fluxloom.dsl.identity import unique
from fluxloom.run.checkpoint import RunCheckpoint
from fluxloom.run.failure import all_or_none
from fluxloom.run.files import fields_name, write_fields
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.gathering import gathered
from fluxloom.run.guards import Guards
from fluxloom.run.march import March
from fluxloom.run.results.folder import CHECKPOINT, RECORD, ResultFolder
from fluxloom.run.results.tables import ResidualLog

__all__ = ["JobOutput"]

_FEW = 2

Rows = Sequence[tuple[str, str]]


class JobOutput:
    """Writes what is left of a run. On several ranks all methods are collective, and rank 0 writes."""

    def __init__(
        self, comm: Comm, request: Request, folder: ResultFolder, context: Context, pictures: bool
    ) -> None:
        self.comm, self.request, self.case = comm, request, request.case
        self.folder, self.context, self.pictures = folder, context, pictures

    def finish(
        self, run: FlowRun[Any], log: ResidualLog, end: March, record: dict[str, Any], *, guards: Guards,
        saver: RunCheckpoint, waited: float | None, earlier: Sequence[str],
    ) -> None:  # fmt: skip
        """Write every result file, then the record; print the summary."""
        folder, good = self.folder, end.status is not RunStatus.DIVERGED
        folder.good = good
        saved = ""
        if good and (end.status is RunStatus.INTERRUPTED or self.case.checkpoint.every or self.case.checkpoint.seconds):
            saved = saver.save()  # before the last samples, which a run that goes on does not have
        keep = all_or_none if not good else _all  # behind a step that failed on one rank the others may be elsewhere
        hurry = self.comm.size > 1 and end.status is RunStatus.INTERRUPTED
        loops = keep(self.comm, lambda: self._loops(run, hurry=hurry)) or _Loops(0.0, 0.0, 0.0, [], [])
        if log.values and self.case.output.residual and folder.here and "residual.csv" not in folder.lost:
            folder.written = [*dict.fromkeys([*folder.written, "residual.csv"])]
        keep(self.comm, lambda: run.finish(pictures=self.pictures and good))  # takes the last samples: they are fields
        self._write_fields(run, log, end, keep)
        if folder.here and (folder / CHECKPOINT).exists():
            folder.written = [*dict.fromkeys([*folder.written, CHECKPOINT])]
        summary: tuple[tuple[str, str], ...] = tuple(run.summary()) if end.steps and good else ()
        summary += tuple(guards.summary())
        if summary and loops.copy:
            summary += tuple(run.flow.bound(loops.copy))
        record |= end.outcome.record() | {
            "iterations": end.steps, "time": run.flow.time, "seconds": end.seconds,
            "ms_per_iteration": 1e3 * end.seconds_per_step if end.iterations else None,
            "residual": end.residual if end.iterations else (log.values[-1] if log.values else None),
            "results": dict(summary), "guards": guards.record(), "checkpoint": saved or None,
            "pictures": [vars(picture) for picture in run.pictures],
        }  # fmt: skip
        record |= loops.record()
        if waited is not None:
            share = waited / end.seconds if end.seconds else 0.0
            record["waiting"] = spread(self.comm, {"seconds": waited, "share": share})
            record["exchanges"] = [row.record() for row in loops.exchanges]
            record["transport_seconds"] = self.context.transport_seconds
        if end.status.complete and not folder.lost:
            folder.remove_earlier(earlier)
            record.pop("earlier_files", None)
        record |= {"files": folder.written, "lost": dict(folder.lost)}
        folder.write_record(record)
        if self.comm.rank == 0:
            self._show(end, summary, record, loops, saved)

    # ----------------------------------------------------------------------------------------- files
    def _write_fields(self, run: FlowRun[Any], log: ResidualLog, end: March, keep: Callable[..., Any]) -> None:
        """Write the fields at the end, and draw them and the residual."""
        folder = self.folder
        drawn = self.pictures and folder.good
        name = fields_name(self.case.output.format, folder.stem)
        shown = list(run.pictures) if drawn else []
        if (folder.good and not end.steps) or not (name or self.pictures):
            return
        fields: Mapping[str, Any] | None = {}
        if name or shown:
            fields = keep(self.comm, lambda: gathered(self.comm, run.flow.part, run.fields()))
        if fields is None and folder.here:
            folder.lose(name, "the values of the other ranks did not come")
        if not folder.here:
            self.comm.rest()
            return
        if fields:
            nodal = bool(run.flow.points)
            mesh, time = run.mesh(), run.flow.time
            if name:
                with folder.attempt(name):
                    write_fields(folder / name, mesh, fields, format=self.case.output.format, nodal=nodal, time=time)
            for picture in shown:
                with folder.attempt(f"{picture.field}.png"):
                    from fluxloom.run.pictures import draw_field

                    path = folder / f"{picture.field}.png"
                    draw_field(path, mesh, fields[picture.field], picture, nodal=nodal)
        if self.pictures and len(log.values) > 1:
            with folder.attempt("residual.png"):
                from fluxloom.run.pictures import draw_residual

                title = f"{self.case.case.name}: residual"
                draw_residual(folder / "residual.png", np.array(log.iterations), np.array(log.values), title)
        self.comm.rest()

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
        folder = self.folder
        lines = [("case", self.case.case.name), ("status", str(end.outcome))]
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
