"""``fluxloom run``: build a case, advance it, write what it found."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxloom.app.application import Application, Runner
from fluxloom.app.bench.base import device_name
from fluxloom.app.case import CaseModel, load_case
from fluxloom.app.cli.console import (
    Advance,
    CaseArgument,
    DeviceOption,
    FusedOption,
    OutputOption,
    ScheduleOption,
    Session,
    ThreadsOption,
    facts,
    messages,
    output,
    table,
)
from fluxloom.app.files import ResidualLog, prepare_directory, vtk_name, write_json, write_vtk
from fluxloom.app.march import March, march
from fluxloom.app.pictures import draw_field, draw_residual
from fluxloom.app.summary import HEADINGS, LEFT, LoopRow, loop_rows, overall
from fluxloom.app.system import commit, fluxloom_version, package_version, python_version
from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.device.bandwidth import Bandwidth, meter_for
from fluxloom.dsl.context import Context

NAME = "run"
_FEW = 2


def command(
    session: typer.Context,
    case: CaseArgument,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
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
    model, application = load_case(case)
    model = model.with_run(device=device, threads=threads, schedule=schedule, iterations=iterations, fused=fused)
    directory = out if out is not None else model.directory
    pictures = model.output.picture and not no_picture
    command_line = session.obj.command if isinstance(session.obj, Session) else ""
    job = _Job(model, application, directory, pictures, command_line, str(case), profile)
    status = _profiled(job) if python_profile else job.run()
    if status:
        raise typer.Exit(status)


class _Job:
    """One run, from the checked case to the files."""

    def __init__(
        self, case: CaseModel, application: Application, directory: Path, pictures: bool, command: str, file: str,
        profile: bool,
    ) -> None:  # fmt: skip
        self.case, self.application, self.directory = case, application, directory
        self.pictures, self.command, self.file, self.profile = pictures, command, file, profile
        self.written: list[str] = []

    def run(self) -> int:
        """Run and return the exit status."""
        run = self.case.run
        estimate = self.application.estimate(self.case)
        prepare_directory(self.directory, estimate.output if self.case.output.vtk != "none" else 0)
        start = time.perf_counter()
        context = Context(run.device, threads=run.threads)
        context.profile = self.profile
        messages().print(f"building {self.case.case.name}: {estimate.cells:,} cells on {context!r}", soft_wrap=True)
        runner = self.application.build(self.case, context)
        if runner.chain is not None and context.device.native:
            runner.chain.build()
        record = self._record(context, runner)
        record["setup_seconds"] = time.perf_counter() - start
        write_json(self.directory / "run.json", record | {"status": "running"})
        log = ResidualLog(self.directory / "residual.csv" if self.case.output.residual else None)
        try:
            with Advance(run.iterations, run.report_every) as progress:
                end = march(runner, run.iterations, log, progress)
        finally:
            log.close()
        rows = self._finish(runner, context, log, end, record)
        self._show(runner, context, end, rows)
        if end.status == "failed":
            raise SolverError(f"{end.error}\nresults so far: {self.directory}")
        return 130 if end.status == "interrupted" else 0

    def _record(self, context: Context, runner: Runner) -> dict[str, Any]:
        """Return what is known before the first iteration."""
        packages = {name: package_version(name) for name in ("numpy", "scipy", "h5py")}
        versions = {"fluxloom": fluxloom_version(), "python": python_version()}
        return {
            "case": self.case.model_dump(),
            "file": self.file,
            "command": self.command,
            "commit": commit(),
            "versions": versions | {name: text for name, text in packages.items() if text},
            "device": context.device.name,
            "device_name": device_name(context),
            "threads": context.threads,
            "cells": runner.cells,
        }

    def _finish(
        self, runner: Runner, context: Context, log: ResidualLog, end: March, record: dict[str, Any]
    ) -> list[LoopRow]:
        """Write every result file and return the rows of the summary."""
        reports = list(runner.reports())
        bandwidth = _bandwidth(context)
        rows = loop_rows(reports, bandwidth.copy_gbs if bandwidth else 0.0)
        if log.values and self.case.output.residual:
            self.written.append("residual.csv")
        problems = self._write_fields(runner, end)
        if self.pictures and end.iterations:
            problems += self._draw(runner, log, end)
        moved, seconds = overall(reports)
        record |= {
            "status": end.status, "error": end.error, "iterations": end.iterations, "seconds": end.seconds,
            "ms_per_iteration": 1e3 * end.pace if end.iterations else None,
            "residual": end.residual,
            "results": dict(runner.summary()) if end.status != "failed" else {},
            "copy_gbs": bandwidth.copy_gbs if bandwidth else None,
            "useful_gbs": moved / seconds / 1e9 if seconds else None,
            "loops": [row.record() | {"colours": row.colours, "lanes": row.lanes, "block": row.block,
                                      "vectorised": row.vectorised} for row in rows],
            "pictures": [vars(picture) for picture in runner.pictures],
            "files": self.written,
        }  # fmt: skip
        write_json(self.directory / "run.json", record)
        self.written.append("run.json")
        for problem in problems:
            messages().print(f"warning: {problem}", style="yellow", soft_wrap=True, markup=False)
        return rows

    def _write_fields(self, runner: Runner, end: March) -> list[str]:
        """Write the final fields; return what went wrong, for the other results are still worth having."""
        name = vtk_name(self.case.output.vtk)
        if not name or not end.iterations:
            return []
        try:
            write_vtk(self.directory / name, runner.mesh(), runner.fields())
        except FluxloomError as error:
            return [str(error)]
        self.written.append(name)
        return []

    def _draw(self, runner: Runner, log: ResidualLog, end: March) -> list[str]:
        """Draw the pictures; return what went wrong."""
        problems: list[str] = []
        mesh, fields = runner.mesh(), runner.fields()
        shown = [] if end.status == "failed" else list(runner.pictures)
        try:
            for picture in shown:
                draw_field(self.directory / f"{picture.field}.png", mesh, fields[picture.field], picture)
                self.written.append(f"{picture.field}.png")
            if len(log.values) > 1:
                import numpy as np

                title = f"{self.case.case.name}: residual"
                draw_residual(
                    self.directory / "residual.png", np.array(log.iterations), np.array(log.values), title
                )
                self.written.append("residual.png")
        except FluxloomError as error:
            problems.append(str(error))
        return problems

    def _show(self, runner: Runner, context: Context, end: March, rows: list[LoopRow]) -> None:
        """Print the results."""
        if end.iterations:
            copy = next((r.useful_gbs / r.percent_of_copy * 100 for r in rows if r.percent_of_copy and r.useful_gbs), 0)
            title = f"loops (copy {copy:.1f} GB/s, measured in this run)" if copy else "loops"
            often = max(row.calls for row in rows) if rows else 0
            shown = [row for row in rows if row.calls > _FEW or often < 10 * _FEW]  # the first iteration runs unfused
            table(title, HEADINGS, [row.cells(simd=not context.device.items) for row in shown], left=LEFT)
            if context.device.native and not self.profile and rows and not any(row.seconds for row in rows):
                text = f"the device {context.device.name} keeps no times of loops unless it is asked to: add --profile"
                output().print(text, soft_wrap=True, markup=False)
        if end.status == "failed":
            return
        pace = f"{1e3 * end.pace:.4g} ms/iteration" if end.iterations else "none finished"
        facts(
            [
                ("case", self.case.case.name),
                ("iterations", f"{end.iterations:,} in {end.seconds:.2f} s ({pace}), {end.status}"),
                *(runner.summary() if end.iterations else ()),
                ("files", f"{self.directory}: {', '.join(self.written)}"),
            ]
        )


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
    """Run under Python's profiler and print the ten dearest functions."""
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    try:
        return profiler.runcall(job.run)
    finally:
        output().print("\nPython profile (ten largest own times):", style="bold")
        sys.stdout.flush()
        pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(10)


__all__ = ["NAME", "command"]
