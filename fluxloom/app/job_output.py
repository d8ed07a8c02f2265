"""What is left of a run: the last checkpoint, fields, tables, pictures, the record and the summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fluxloom.app.cli.console import facts, messages, output, table
from fluxloom.app.crew import Crew
from fluxloom.app.request import Request
from fluxloom.app.summary import (
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
from fluxloom.app.system import fluxloom_version, package_version, python_version
from fluxloom.comm.base import Comm
from fluxloom.core.errors import FluxloomError
from fluxloom.core.status import RunStatus
from fluxloom.device.bandwidth import Bandwidth, measured_bandwidth
from fluxloom.dsl.context import Context
from fluxloom.dsl.runtime import unique
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import March
from fluxloom.run.results.folder import RECORD
from fluxloom.run.session import Session

__all__ = ["JobOutput", "first_record"]

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
    request: Request, context: Context, run: FlowRun[Any], crew: Crew, commit: str, tell: Callable[[str], object]
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
        "device": crew.device,
        "device_name": crew.device_name,
        "threads": context.threads,
        "gpus": crew.gpus,
        "ranks": context.comm.size,
        "cells": run.flow.cells,
    }
    if (report := run.flow.partition) is not None:
        cells = next(found for found in report.sets if found.name == report.on)
        shares = [owned / cells.total for owned in cells.owned]
        tell(f"{report.on} divided by {report.method}: {', '.join(f'{100 * s:.2f} %' for s in shares)}")
        record |= {"crew": crew.record(), "shares": shares, "partition": asdict(report)}
    return record
