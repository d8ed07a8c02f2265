"""``fluxloom run``: build a case, advance it, write what it found."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from fluxloom.app.application import Application, Bounded, Nodal, Runner, Tunable, Updating, Writer
from fluxloom.app.case import CaseModel
from fluxloom.app.case_errors import placed
from fluxloom.app.checkpoint import RunCheckpoint
from fluxloom.app.cli.console import (
    Advance,
    CaseArgument,
    DeviceOption,
    FusedOption,
    OutputOption,
    RanksOption,
    ScheduleOption,
    Session,
    ThreadsOption,
    TransportOption,
    facts,
    messages,
    output,
    show_error,
    table,
)
from fluxloom.app.crew import Crew, crew_of, place_of, require_one, starts_ranks
from fluxloom.app.files import ResidualLog, clear_directory, prepare_directory, vtk_name, write_json, write_vtk
from fluxloom.app.gathering import gathered
from fluxloom.app.loading import load_case
from fluxloom.app.march import March, Silent, march
from fluxloom.app.pictures import draw_field, draw_residual
from fluxloom.app.rank_loops import EXCHANGE_HEADINGS, ExchangeRow, exchange_rows, exchanges_of, rows_of_ranks, spread
from fluxloom.app.ranks import start
from fluxloom.app.startup import STARTUP_HEADINGS, tune_at_start
from fluxloom.app.summary import HEADINGS, LEFT, LoopRow, overall
from fluxloom.app.system import commit, fluxloom_version, package_version, python_version
from fluxloom.comm import detect, ending_together
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError, SolverError
from fluxloom.device.bandwidth import Bandwidth, available_memory, meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.hybrid import TimedComm
from fluxloom.dsl.identity import unique
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import together

NAME = "run"
_FEW = 2


def command(
    session: typer.Context,
    case: CaseArgument,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    ranks: RanksOption = None,
    transport: TransportOption = None,
    schedule: ScheduleOption = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", "-n", min=1, metavar="N", help="Iterations to run.", show_default=False),
    ] = None,
    out: OutputOption = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no pictures.")] = False,
    fused: FusedOption = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Measure the time of each loop on GPUs too, where it costs something.")
    ] = False,
    python_profile: Annotated[
        bool, typer.Option("--python-profile", help="Print where the Python time went.")
    ] = False,
) -> None:
    """Run a case file and write its results; options go before what the file says."""
    words = session.obj if isinstance(session.obj, Session) else Session()
    with ending_together(detect()) as comm:
        require_one(ranks, device, threads)
        ranks = "" if device is not None else ranks  # then those of the file do not count
        model, application = load_case(case)
        model = model.with_run(
            device=device, threads=threads, schedule=schedule, iterations=iterations, fused=fused, ranks=ranks,
            transport=transport,
        )  # fmt: skip
        specs = starts_ranks(comm, model.run.ranks)
        _check_ranks(str(case), model, application, len(specs) or comm.size, threads)
        if specs:
            status = start(specs, words.arguments)
        else:
            directory = out if out is not None else model.directory
            pictures = model.output.picture and not no_picture
            job = _Job(comm, model, application, directory, pictures, words.command, str(case), profile)
            status = _profiled(job) if python_profile else job.run()
    if status:
        raise typer.Exit(status)


def _check_ranks(file: str, model: CaseModel, application: Application, ranks: int, threads: int | None) -> None:
    """Raise `CaseError` where a case cannot run on its ranks; ``threads`` are those of the command line."""
    if threads is not None and model.run.ranks:
        raise CaseError(
            f"--threads does not count where {file} says ranks = {model.run.ranks!r}: write the threads behind the "
            "colon, as in cpu:2*4, or give --device too"
        )
    if ranks > 1 and not getattr(application, "ranked", False):
        raise CaseError(f"the solver {application.name} does not run on several ranks")
    given = model.partition.given
    if ranks > 1 and given is not None and len(given) != ranks:
        raise CaseError(f"{file}: partition.shares: {len(given)} numbers for {ranks} ranks: give one a rank")


class _Job:
    """One run, from the checked case to the files. On several ranks all methods are collective, and rank 0 writes."""

    def __init__(
        self, comm: Comm, case: CaseModel, application: Application, directory: Path, pictures: bool, command: str,
        file: str, profile: bool,
    ) -> None:  # fmt: skip
        self.comm, self.first = comm, comm.rank == 0
        self.case, self.application, self.directory = case, application, directory
        self.pictures, self.command, self.file, self.profile = pictures, command, file, profile
        self.written: list[str] = []
        self.done = 0

    def run(self) -> int:
        """Run and return the exit status, the same on every rank."""
        run = self.case.run
        with placed(self.file):
            estimate = self.application.estimate(self.case)
        needed = estimate.output if self.case.output.vtk != "none" else 0
        together(self.comm, lambda: prepare_directory(self.directory, needed) if self.first else None)
        begin = time.perf_counter()
        place = place_of(self.comm, run.device, run.threads, run.ranks)
        timed = TimedComm(self.comm) if self.comm.size > 1 else None
        context = Context(
            place.device, threads=place.threads, comm=timed or self.comm, transport=run.transport, overlap=run.overlap
        )
        context.profile = self.profile
        self._check_memory(context, estimate.memory)
        crew = crew_of(context)
        on = repr(context) if timed is None else f"{self.comm.size} ranks: {crew.device_name}"
        self._tell(f"building {self.case.case.name}: {estimate.cells:,} cells on {on}")
        with placed(self.file):
            runner = self.application.build(self.case, context)
        if runner.chain is not None and context.device.native:
            runner.chain.build()
        tuned = tune_at_start(runner, self.application.name, self._tell) if run.tune == "startup" else []
        record = self._record(context, runner, crew)
        if tuned:
            record["tuning"] = [row.record() for row in tuned]
            table("tuned before the first step", STARTUP_HEADINGS, [row.cells() for row in tuned], left=(0, 2))
        log = ResidualLog(self.directory / "residual.csv" if self.case.output.residual and self.first else None)
        # MERGE: state begins here
        self.checkpoint = RunCheckpoint(
            self.case.checkpoint, self.case, runner, context, self.directory, {"log": log}, self._tell
        )
        if (resumed := self.checkpoint.resume()) is not None:
            self.done = resumed.steps
            self._tell("\n".join(resumed.lines))
        # MERGE: state ends here
        # Only now: what is wrong with the case or the device costs nobody the results that were there.
        if resumed is None:
            together(self.comm, lambda: clear_directory(self.directory) if self.first else None)
        if isinstance(runner, Writer):
            runner.begin(self.directory)
        record["setup_seconds"] = time.perf_counter() - begin
        self._write_record(record | {"status": "running"})
        log.begin()
        if timed is not None:
            timed.waited = 0.0
        try:
            end = self._march(runner, log)
        except KeyboardInterrupt:
            self._write_record(record | {"status": "interrupted", "iterations": len(log.values)})
            raise
        except FluxloomError as error:
            with contextlib.suppress(FluxloomError):  # the disk may be full
                self._write_record(record | {"status": "failed", "error": str(error), "iterations": len(log.values)})
            raise
        finally:
            log.close()
        waited = timed.waited if timed is not None else None
        if end.status != "failed" and self.case.checkpoint.every + self.case.checkpoint.seconds:  # MERGE: state
            self.written += [name for name in [self.checkpoint.save()] if name]
        whole = self._finish(runner, context, log, end, record, waited)
        if end.status != "failed":
            return 130 if end.status == "interrupted" else 0 if whole else 2
        lost = SolverError(f"{end.error}\nresults so far: {self.directory}")
        if self.comm.size == 1:
            raise lost
        if self.first:
            show_error(lost)
        return 2

    def _march(self, runner: Runner, log: ResidualLog) -> March:
        """Do the iterations, with progress on the first rank."""
        run, updates = self.case.run, runner.updates if isinstance(runner, Updating) else 0
        state: Any = {"first": self.done, "stepped": self.checkpoint.stepped}  # MERGE: state
        if not self.first:
            return march(runner, run.iterations, log, Silent(), self.comm, **state)
        with Advance(run.iterations, run.report_every, updates) as progress:
            return march(runner, run.iterations, log, progress, self.comm, **state)

    def _check_memory(self, context: Context, needed: int) -> None:
        """Raise `CaseError` where the memory of this machine cannot hold its part: systems end such a run unheard."""
        mine, free = needed * self.comm.local_size // self.comm.size, available_memory()
        if context.device.shared and mine > free > 0:
            raise CaseError(
                f"{self.file}: the case needs about {mine / 2**30:.1f} GiB of memory, {free / 2**30:.1f} GiB are free "
                "on this machine; choose a coarser mesh or more machines"
            )

    def _tell(self, line: str) -> None:
        if self.first:
            messages().print(line, soft_wrap=True, markup=False)

    def _write_record(self, record: dict[str, Any]) -> None:
        if self.first:
            write_json(self.directory / "run.json", record)

    def _write_end(self, record: dict[str, Any]) -> FluxloomError | None:
        """Write the last record; return what went wrong, for what else did is to be told all the same."""
        try:
            self._write_record(record)
        except FluxloomError as error:
            return error
        self.written.append("run.json")
        return None

    def _record(self, context: Context, runner: Runner, crew: Crew) -> dict[str, Any]:
        """Return what is known before the first iteration."""
        packages = {name: package_version(name) for name in ("numpy", "scipy", "h5py", "mpi4py")}
        versions = {"fluxloom": fluxloom_version(), "python": python_version()}
        record: dict[str, Any] = {
            "case": self.case.model_dump(),
            "file": self.file,
            "command": self.command,
            "commit": commit(),
            "versions": versions | {name: text for name, text in packages.items() if text},
            "device": crew.device,
            "device_name": crew.device_name,
            "threads": context.threads,
            "gpus": crew.gpus,
            "ranks": self.comm.size,
            "cells": runner.cells,
        }
        if (report := runner.partition) is not None:
            cells = next(found for found in report.sets if found.name == report.on)
            shares = [owned / cells.total for owned in cells.owned]
            self._tell(f"{report.on} divided by {report.method}: {', '.join(f'{100 * s:.2f} %' for s in shares)}")
            record |= {"crew": crew.record(), "shares": shares, "partition": asdict(report)}
        return record

    def _finish(
        self, runner: Runner, context: Context, log: ResidualLog, end: March, record: dict[str, Any],
        waited: float | None,
    ) -> bool:  # fmt: skip
        """Write every result file and print the summary; return whether all files are there, the same on every rank."""
        comm, reports = self.comm, list(runner.reports())
        # Launchers do not wait for long after an interruption.
        hurry = comm.size > 1 and end.status == "interrupted"
        if not hurry:
            self._tell("measuring the memory bandwidth, which the table is compared with")
        bandwidth = None if hurry else _bandwidth(context)
        mine, took = overall(reports)
        copy, moved = comm.reduce(np.array([bandwidth.copy_gbs if bandwidth else 0.0, mine]), "sum").tolist()
        seconds = comm.reduce(np.array([took]), "max").tolist()[0]
        rows = rows_of_ranks(comm, reports, copy)
        chains = runner.chains if isinstance(runner, Tunable) else [runner.chain] if runner.chain is not None else []
        exchanges = exchange_rows(comm, exchanges_of(unique(chains)))
        if log.values and self.case.output.residual:
            self.written.append("residual.csv")
        problems = self._write_fields(runner, log, end)
        if isinstance(runner, Writer):
            self.written += runner.finish(pictures=self.pictures and end.status != "failed")
        missing = [str(problem) for problem in problems if not isinstance(problem, DeviceUnavailable)]
        summary = tuple(runner.summary()) if end.iterations and end.status != "failed" else ()
        if summary and copy and isinstance(runner, Bounded):
            summary += tuple(runner.bound(copy))
        record |= {
            "status": end.status, "error": end.error or "; ".join(missing),
            "iterations": end.iterations, "seconds": end.seconds,
            "ms_per_iteration": 1e3 * end.pace if end.iterations else None,
            "residual": end.residual,
            "results": dict(summary),
            "copy_gbs": copy or None,
            "useful_gbs": moved / seconds / 1e9 if seconds else None,
            "loops": [row.record() | {"colours": row.colours, "lanes": row.lanes, "block": row.block,
                                      "vectorised": row.vectorised} for row in rows],
            "pictures": [vars(picture) for picture in runner.pictures],
            "files": self.written,
        }  # fmt: skip
        if waited is not None:
            share = waited / end.seconds if end.seconds else 0.0
            record["waiting"] = spread(comm, {"seconds": waited, "share": share})
            record["exchanges"] = [row.record() for row in exchanges]
            record["transport_seconds"] = context.transport_seconds
        if lost := self._write_end(record):
            problems.append(lost)
            missing.append(str(lost))
        for problem in problems:
            if isinstance(problem, DeviceUnavailable):  # a package that draws
                messages().print(f"warning: {problem}", style="yellow", soft_wrap=True, markup=False)
            else:
                show_error(problem)
        if self.first:
            self._show(context, end, rows, exchanges, summary, record)
        return not comm.reduce(np.array([len(missing)]), "max")[0]

    def _write_fields(self, runner: Runner, log: ResidualLog, end: March) -> list[FluxloomError]:
        """Write the final fields and draw; return what went wrong, for the other results are still worth having."""
        name = vtk_name(self.case.output.vtk)
        shown = list(runner.pictures) if self.pictures and end.status != "failed" else []
        if not end.iterations or not (name or self.pictures):
            return []
        fields = gathered(self.comm, runner.part, runner.fields()) if name or shown else {}
        if not self.first:
            return []
        problems: list[FluxloomError] = []
        try:
            if fields:
                mesh = runner.mesh()
                nodal = isinstance(runner, Nodal)
                problems += self._write_vtk(name, mesh, fields, nodal)
                for picture in shown:
                    path = self.directory / f"{picture.field}.png"
                    draw_field(path, mesh, fields[picture.field], picture, nodal=nodal)
                    self.written.append(f"{picture.field}.png")
            if self.pictures and len(log.values) > 1:
                title = f"{self.case.case.name}: residual"
                draw_residual(self.directory / "residual.png", np.array(log.iterations), np.array(log.values), title)
                self.written.append("residual.png")
        except FluxloomError as error:
            problems.append(error)
        return problems

    def _write_vtk(
        self, name: str, mesh: MeshData, fields: Mapping[str, npt.NDArray[Any]], nodal: bool
    ) -> list[FluxloomError]:
        """Write a file of fields, if it has a name; return what went wrong."""
        if not name:
            return []
        try:
            write_vtk(self.directory / name, mesh, fields, nodal=nodal)
        except FluxloomError as error:
            return [error]
        self.written.append(name)
        return []

    def _show(
        self, context: Context, end: March, rows: list[LoopRow], exchanges: list[ExchangeRow],
        summary: Sequence[tuple[str, str]], record: dict[str, Any],
    ) -> None:  # fmt: skip
        """Print the results."""
        if end.iterations:
            copy = next((r.useful_gbs / r.percent_of_copy * 100 for r in rows if r.percent_of_copy and r.useful_gbs), 0)
            title = f"loops (copy {copy:.1f} GB/s, measured in this run)" if copy else "loops"
            often = max(row.calls for row in rows) if rows else 0
            shown = [row for row in rows if row.calls > _FEW or often < 10 * _FEW]  # the first iteration runs unfused
            table(title, HEADINGS, [row.cells(simd=not context.device.items) for row in shown], left=LEFT)
            if exchanges:
                usual = [row for row in exchanges if row.calls > _FEW or often < 10 * _FEW]
                table("messages", EXCHANGE_HEADINGS, [row.cells() for row in usual], left=(0, 7))
            if context.device.native and not self.profile and rows and not any(row.seconds for row in rows):
                text = f"the device {context.device.name} keeps no times of loops unless it is asked to: add --profile"
                output().print(text, soft_wrap=True, markup=False)
        if end.status == "failed":
            return
        pace = f"{1e3 * end.pace:.4g} ms/iteration" if end.iterations else "none finished"
        lines = [("case", self.case.case.name)]
        if "waiting" in record:
            share = record["waiting"]["share"]
            text = f"{100 * share['mean']:.1f} % of the time for other ranks, at most {100 * share['max']:.1f} %"
            lines += [("ranks", f"{self.comm.size}: {record['device_name']}"), ("waiting", text)]
        lines.append(("iterations", f"{end.iterations:,} in {end.seconds:.2f} s ({pace}), {end.status}"))
        facts([*lines, *summary, ("files", f"{self.directory}: {', '.join(self.written)}")])


def _bandwidth(context: Context) -> Bandwidth | None:
    """Measure the memory bandwidth with the threads of the run; None where loops are not native."""
    if not context.device.native:
        return None
    try:
        return meter_for(context.device, context.threads).measure(3)
    except FluxloomError as error:
        messages().print(f"warning: the bandwidth was not measured: {error}", style="yellow", markup=False)
        return None


def _profiled(job: _Job) -> int:
    """Run under Python's profiler and print the ten dearest functions, of rank 0."""
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    try:
        return profiler.runcall(job.run)
    finally:
        if job.first:
            output().print("\nPython profile (ten largest own times):", style="bold")
            sys.stdout.flush()
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(10)


__all__ = ["NAME", "command"]
