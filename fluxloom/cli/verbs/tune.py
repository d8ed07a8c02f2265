"""``fluxloom tune``: measure schedules of the loops of a case and remember the fastest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluxloom.cases.files.application import built
from fluxloom.cases.files.errors import placed
from fluxloom.cases.files.loading import load_case
from fluxloom.cli.console import DeviceOption, Listening, SetOption, ThreadsOption, messages, output, table
from fluxloom.cli.verbs.codegen import select
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.tuning import LoopTuning, TuneReport, TuningFile, schedule_words
from fluxloom.dsl.tune.search import tune

__all__ = ["NAME", "command"]

NAME = "tune"


def command(
    case: Annotated[
        Path | None,
        typer.Argument(metavar="CASE", help="Case file, or a solver's name for its default case.", show_default=False),
    ] = None,
    loop: Annotated[
        str | None,
        typer.Option("--loop", metavar="NAME", help="Only this loop, not the fused whole.", show_default=False),
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="Search: sweep, screen, hill_climb or tabu.")
    ] = "sweep",
    budget: Annotated[int, typer.Option("--budget", min=1, metavar="N", help="Candidates a loop, at most.")] = 64,
    show: Annotated[bool, typer.Option("--show", help="Only list what is recorded.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Forget what is recorded (with --loop: of it).")] = False,
    settings: SetOption = None,
) -> None:
    """Find the fastest schedule of each loop of a case, on its own data; later runs use it."""
    records = TuningFile()
    if clear:
        records.clear(loop)
        messages().print(f"{records.path}: cleared", soft_wrap=True, markup=False)
    if show:
        _show(records)
    if case is None and not (clear or show):
        raise CaseError("name a case file to tune, or use --show or --clear")
    if case is None or show:
        return
    if not records.enabled:
        raise CaseError("FLUXLOOM_TUNING=off forbids recording; unset it to tune")
    with Listening() as ear:
        model, application = load_case(case, settings or ())
        model = model.with_run(device=device, threads=threads)
        with placed(str(case)), activity("building", model.case.name):
            flow = built(application, model, Context(model.run.device, threads=model.run.threads, tuning=False)).flow
        chain = flow.chain
        target = chain if loop is None and chain is not None else select(flow.loops, loop)
        ear.tell(f"measuring {flow.cells:,} cells; this takes a while on large meshes")
        report = tune(target, method=method, budget=budget, tell=ear.tell)
    _report(report)


def _report(report: TuneReport) -> None:
    """Print what was found."""
    rows: list[list[str]] = []
    for item in report.results:
        was, now = schedule_words(item.before), _words(item)
        tried = str(len(item.rows))
        rows.append([item.name, tried, was, _milliseconds(item.before_seconds), now, _milliseconds(item.seconds),
                     f"{item.gain:.2f}"])  # fmt: skip
    table("", ("loop", "tried", "before", "ms", "now", "ms", "gain"), rows, left=(0, 2, 4))
    for note in report.notes:
        output().print(note, soft_wrap=True, markup=False)
    output().print(f"recorded in {report.path}" if report.path else "not recorded", soft_wrap=True, markup=False)


def _words(item: LoopTuning) -> str:
    """Return the schedule in force now; of a chain that is better not fused, what that means."""
    notes = [row.note for row in item.rows if row.schedule == item.best == Schedule()]
    return (notes[0] if notes else "") or schedule_words(item.best)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4f}"


def _show(records: TuningFile) -> None:
    """Print what is recorded."""
    rows = [[row.loop, schedule_words(row.schedule), _milliseconds(row.seconds), row.key] for row in records.show()]
    if rows:
        table(str(records.path), ("loop", "schedule", "ms", "key"), rows, left=(0, 1, 3))
    else:
        output().print(f"{records.path}: nothing recorded", soft_wrap=True, markup=False)
