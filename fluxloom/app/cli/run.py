"""``fluxloom run``: build a case, advance it, write what it found."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fluxloom.app.checks import check_ranks
from fluxloom.app.cli.console import (
    CaseArgument,
    CheckLoopsOption,
    DeviceOption,
    FusedOption,
    OutputOption,
    RanksOption,
    ScheduleOption,
    Session,
    ThreadsOption,
    TransportOption,
    output,
)
from fluxloom.app.crew import require_one, starts_ranks
from fluxloom.app.job import Job
from fluxloom.app.loading import load_case
from fluxloom.app.ranks import start
from fluxloom.app.request import Request
from fluxloom.comm import detect, ending_together

NAME = "run"


def command(
    session: typer.Context,
    case: CaseArgument,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    ranks: RanksOption = None, transport: TransportOption = None,
    schedule: ScheduleOption = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations", "-n", min=1, metavar="N", show_default=False,
            help="Steps to run, counted from the beginning of the flow.",
        ),
    ] = None,
    out: OutputOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin anew and replace the results that are in the directory.")
    ] = False,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Go on from the checkpoint with a case that differs, on the same mesh; what is new begins now.",
        ),
    ] = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no pictures.")] = False,
    fused: FusedOption = None,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Measure the time of each loop, and the memory bandwidth to compare it with."),
    ] = False,
    python_profile: Annotated[
        bool, typer.Option("--python-profile", help="Print where the Python time went.")
    ] = False,
    check_loops: CheckLoopsOption = None,
) -> None:
    """Run a case file and write its results; options go before what the file says.

    The same command again goes on from the last checkpoint, or says that the run is at its end; --overwrite begins
    anew. Exit status: 0 converged or end reached, 1 not converged or diverged, 2 refused, 3 outputs lost, 130 and 143
    interrupted by a signal.
    """
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
        check_ranks(str(case), model, application, len(specs) or comm.size, threads)
        if specs:
            status = start(specs, words.arguments)
        else:
            request = Request(
                model, application, str(case), words.command, model.directory if out is None else out,
                pictures=model.output.picture and not no_picture, profile=profile, overwrite=overwrite,
                allow_changes=allow_changes,
                asked=iterations is not None,
            )  # fmt: skip
            job = Job(comm, request)
            status = _profiled(job) if python_profile else job.run()
    if status:
        raise typer.Exit(status)


def _profiled(job: Job) -> int:
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
