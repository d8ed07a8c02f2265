"""``fluxloom run``: build a case, advance it, write what it found."""

from __future__ import annotations

from typing import Annotated

import typer

from fluxloom.cases.files.loading import load_case
from fluxloom.cli.console import (
    CaseArgument,
    CheckLoopsOption,
    DeviceOption,
    OutputOption,
    RanksOption,
    SetOption,
    ThreadsOption,
    invocation,
)
from fluxloom.cli.runs.job import Job
from fluxloom.cli.runs.request import Request, check_ranks
from fluxloom.comm import detect, ending_together
from fluxloom.machine.ranks import require_one, start, starts_ranks

NAME = "run"


def command(
    case: CaseArgument,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    ranks: RanksOption = None,
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
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Measure the time of each loop, and the memory bandwidth to compare it with."),
    ] = False,
    check_loops: CheckLoopsOption = None,
    settings: SetOption = None,
) -> None:
    """Run a case file and write its results; options go before what the file says.

    The same command again goes on from the last checkpoint, or says that the run is at its end; --overwrite begins
    anew. Exit status: 0 converged or end reached, 1 not converged or diverged, 2 refused, 3 outputs lost, 130 and 143
    interrupted by a signal.
    """
    with ending_together(detect()) as comm:
        require_one(ranks, device, threads)
        ranks = "" if device is not None else ranks  # then those of the file do not count
        steps = () if iterations is None else (f"run.iterations={iterations}",)  # of a file that names no end too
        model, application = load_case(case, (*(settings or ()), *steps))
        model = model.with_run(device=device, threads=threads, ranks=ranks)
        specs = starts_ranks(comm, model.run.ranks)
        check_ranks(str(case), model, application, len(specs) or comm.size, threads)
        if specs:
            status = start(specs, invocation().arguments)
        else:
            request = Request(
                model, application, str(case), invocation().command, model.directory if out is None else out,
                pictures=model.output.picture and not no_picture, profile=profile, overwrite=overwrite,
                allow_changes=allow_changes,
                asked=iterations is not None,
            )  # fmt: skip
            status = Job(comm, request).run()
    if status:
        raise typer.Exit(status)


__all__ = ["NAME", "command"]
