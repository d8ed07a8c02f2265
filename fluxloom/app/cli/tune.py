"""``fluxloom tune``: measure schedules of the loops of a case and remember the fastest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxloom.app.application import Application
from fluxloom.app.case import CaseModel, load_case
from fluxloom.app.cli.codegen import select
from fluxloom.app.cli.console import DeviceOption, ThreadsOption, messages, output, table
from fluxloom.app.files import atomic
from fluxloom.app.schedules import schedule_text
from fluxloom.app.search import search
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.tuning import TuningFile

__all__ = ["NAME", "command"]

NAME = "tune"
_SLOWER = 1.03


def command(
    case: Annotated[Path | None, typer.Argument(metavar="CASE", help="Case file.", show_default=False)] = None,
    loop: Annotated[
        str | None, typer.Option("--loop", metavar="NAME", help="Only this loop.", show_default=False)
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    show: Annotated[bool, typer.Option("--show", help="Only list what is recorded.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Record the fastest loops even when the whole iteration is slower.")
    ] = False,
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
    old = records.path.read_text(encoding="utf-8") if records.path.exists() else None
    told, rows = messages(), []
    for item in select(runner.loops, loop):
        before, best = search(item, lambda line: told.print(line, soft_wrap=True, markup=False))
        rows.append(_row(item.name, before.schedule, before.seconds, best.schedule, best.seconds))
    table("", ("loop", "before", "ms", "now", "ms", "gain"), rows, left=(0, 1, 3))
    untuned, tuned = (_iteration(model, application, use) for use in (False, True))
    output().print(f"whole iteration: {1e3 * untuned:.4f} ms -> {1e3 * tuned:.4f} ms")
    if tuned > _SLOWER * untuned and not keep:
        _restore(records, old)
        output().print("the tuned loops are slower together (they may not fuse): nothing was recorded; see --keep")
    else:
        output().print(f"recorded in {records.path}", soft_wrap=True, markup=False)


def _iteration(case: CaseModel, application: Application, tuning: bool) -> float:
    """Return the best time of an iteration of a new runner, with or without what is recorded."""
    context = Context(case.run.device, threads=case.run.threads, tuning=tuning)
    runner = application.build(case, context)
    for _ in range(3):
        runner.advance()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < 1.0 and len(times) < 100):
        start = time.perf_counter()
        runner.advance()
        times.append(time.perf_counter() - start)
    return min(times)


def _restore(records: TuningFile, old: str | None) -> None:
    """Put the tuning file back as it was."""
    if old is None:
        records.clear()
        return
    with atomic(records.path) as temporary:
        temporary.write_text(old, encoding="utf-8")


def _row(name: str, was: Schedule, before: float | None, now: Schedule, after: float | None) -> list[str]:
    gain = f"{before / after:.2f}" if before and after else "-"
    return [name, schedule_text(was), _milliseconds(before), schedule_text(now), _milliseconds(after), gain]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.4f}"


def _show(records: TuningFile) -> None:
    """Print what is recorded."""
    entries: dict[str, Any] = records.entries()
    rows: list[list[str]] = []
    for key, entry in sorted(entries.items()):
        schedule = schedule_text(Schedule(**entry["schedule"]))
        rows.append([str(entry.get("loop", "?")), schedule, _milliseconds(entry.get("seconds")), key])
    if rows:
        table(str(records.path), ("loop", "schedule", "ms", "key"), rows, left=(0, 1, 3))
    else:
        output().print(f"{records.path}: nothing recorded", soft_wrap=True, markup=False)
