"""``fluxloom tune``: measure schedules of the loops of a case and remember the fastest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fluxloom.app.case import load_case
from fluxloom.app.cli.codegen import select
from fluxloom.app.cli.console import DeviceOption, ThreadsOption, messages, output, table
from fluxloom.app.schedules import schedule_text
from fluxloom.app.search import search
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.tuning import TuningFile

__all__ = ["NAME", "command"]

NAME = "tune"


def command(
    case: Annotated[Path | None, typer.Argument(metavar="CASE", help="Case file.", show_default=False)] = None,
    loop: Annotated[
        str | None, typer.Option("--loop", metavar="NAME", help="Only this loop.", show_default=False)
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    show: Annotated[bool, typer.Option("--show", help="Only list what is recorded.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Forget what is recorded.")] = False,
) -> None:
    """Find the fastest schedule of each loop of a case, on its own data; later runs use it."""
    records = TuningFile()
    if clear:
        records.clear()
        messages().print(f"{records.path}: cleared", soft_wrap=True, markup=False)
    if show:
        _show(records)
    if case is None:
        if not (clear or show):
            raise CaseError("name a case file to tune, or use --show or --clear")
        return
    if show:
        return
    if not records.enabled:
        raise CaseError("FLUXLOOM_TUNING=off forbids recording; unset it to tune")
    model, application = load_case(case)
    model = model.with_run(device=device, threads=threads)
    context = Context(model.run.device, threads=model.run.threads, tuning=False)
    if not context.device.native:
        raise CaseError(f"the device {context.device.name} runs kernels as Python; there is nothing to tune")
    runner = application.build(model, context)
    runner.advance()
    told, rows = messages(), []
    for item in select(runner.loops, loop):
        before, best = search(item, lambda line: told.print(line, soft_wrap=True, markup=False))
        rows.append(_row(item.name, before.schedule, before.seconds, best.schedule, best.seconds))
    table("", ("loop", "before", "ms", "now", "ms", "gain"), rows, left=(0, 1, 3))
    output().print(f"recorded in {records.path}", soft_wrap=True, markup=False)


def _row(name: str, was: Schedule, before: float | None, now: Schedule, after: float | None) -> list[str]:
    gain = f"{before / after:.2f}" if before and after else "-"
    return [name, schedule_text(was), _milliseconds(before), schedule_text(now), _milliseconds(after), gain]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.4f}"


def _show(records: TuningFile) -> None:
    """Print what is recorded."""
    entries: dict[str, Any] = records.entries()
    rows = [
        [str(entry.get("loop", "?")), schedule_text(Schedule(**entry["schedule"])), _milliseconds(entry.get("seconds")), key]
        for key, entry in sorted(entries.items())
    ]
    if rows:
        table(str(records.path), ("loop", "schedule", "ms", "key"), rows, left=(0, 1, 3))
    else:
        output().print(f"{records.path}: nothing recorded", soft_wrap=True, markup=False)
