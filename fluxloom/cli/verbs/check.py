"""``fluxloom check``: read a case file, build what a run builds, no more, and stop before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from fluxloom.cases.files.application import Application, Estimate, built
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.errors import placed
from fluxloom.cases.files.keys import key_tables
from fluxloom.cases.files.loading import load_application, load_case
from fluxloom.cli.console import (
    CaseArgument,
    DeviceOption,
    Listening,
    SetOption,
    ThreadsOption,
    facts,
    messages,
    output,
    table,
)
from fluxloom.cli.runs.request import check_directory, check_ranks, missing_packages
from fluxloom.cli.runs.startup import check_tunable
from fluxloom.comm import SelfComm
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import available_memory
from fluxloom.dsl.context import Context
from fluxloom.machine.ranks import RankSpec, parse, starts_ranks
from fluxloom.machine.system import processor
from fluxloom.run.results.files import fields_name

__all__ = ["NAME", "command"]

NAME = "check"
BUILD_BELOW = 1_000_000
"""Cells up to which the mesh and the loops are built too."""


def command(
    case: CaseArgument,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    settings: SetOption = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="List the keys that a case file (or a solver, by its name) may have.")
    ] = False,
    build: Annotated[
        bool | None,
        typer.Option("--build/--no-build", help="Build mesh and loops too.", show_default="up to a million cells"),
    ] = None,
) -> None:
    """Check a case file without running it, and say what a run would take."""
    with Listening():
        if keys:
            _list_keys(load_application(case))
            return
        model, application = load_case(case, settings or ())
        model = model.with_run(device=device, threads=threads, ranks="" if device is not None else None)
        with placed(str(case)):
            estimate = application.estimate(model)
        context = _context(str(case), model, application, threads)
        rooms = _rooms(context)
        facts(_rows(model, application.title, estimate, context, rooms))
        for room in rooms:
            if estimate.memory > room.bytes:
                raise CaseError(
                    f"{case}: the case needs about {_size(estimate.memory)} of memory and {room}; "
                    f"choose a coarser mesh or a larger {room.where}"
                )
        check_directory(model.directory, estimate.output if model.output.writes_fields else 0)
        whole = build if build is not None else estimate.cells <= BUILD_BELOW
        facts(_built(str(case), model, application, context) if whole else [_unchecked(estimate.cells)])
    text = "correct" if whole else "correct, as far as it was checked"
    messages().print(f"{case}: {text}", style="green", soft_wrap=True, markup=False)


def _list_keys(application: Application) -> None:
    """Print the tables of a solver's case files."""
    for found in key_tables(application.model):
        rows = [(key.name, key.values.replace("`", ""), key.default or "needed", key.text) for key in found.keys]
        table(f"[{found.path}] {found.text}", ("key", "values", "default", "what it is"), rows, left=(0, 1, 2, 3))
        output().print()


def _context(file: str, case: CaseModel, application: Application, threads: int | None) -> Context:
    """Return what a run computes on, of several ranks what the first one does, once all of them can be had."""
    specs = parse(case.run.ranks) if case.run.ranks else ()
    check_ranks(file, case, application, len(specs), threads)
    starts_ranks(SelfComm(), case.run.ranks)
    for spec in {(spec.device, spec.threads): spec for spec in specs[1:]}.values():
        Context(spec.device, threads=spec.threads)
    run = case.run
    place = specs[0] if specs else RankSpec(run.device, run.threads)
    return Context(place.device, threads=place.threads, transport=run.transport, overlap=run.overlap)


def _built(file: str, case: CaseModel, application: Application, context: Context) -> list[tuple[str, str]]:
    """Build what a run builds and describe it."""
    with placed(file), activity("building", case.case.name):
        run = built(application, case, context)
    flow = run.flow
    if case.run.tune == "startup":
        check_tunable(flow, application.name)
    rows = [(f"{'loops':<14}", ", ".join(f"{loop.name} ({loop.strategy})" for loop in flow.loops))]
    if flow.chain is not None and context.device.native:
        first, *more = flow.chain.describe().splitlines()
        rows += [("chain", first.partition(": ")[2]), *(("", line.strip()) for line in more)]
    return rows + list(run.choices())


def _unchecked(cells: int) -> tuple[str, str]:
    """Return what is not checked where nothing is built."""
    limit = f"above {BUILD_BELOW:,} cells " if cells > BUILD_BELOW else ""
    return (
        f"{'not checked':<14}",
        f"{limit}no mesh is built: patches and their conditions, formulas, bodies, initial values, loops; "
        "--build checks them",
    )


@dataclass(frozen=True)
class _Room:
    """Memory that a case has to fit into: of which machine, how much, and whether all of that is free."""

    where: str
    bytes: int
    free: bool = True

    def __str__(self) -> str:
        return f"{_size(self.bytes)} are {'free' if self.free else 'there'} on the {self.where}"


def _rooms(context: Context) -> list[_Room]:
    """Return the memory of the machine, where meshes are built, and that of the device, where it has its own."""
    rooms = [_Room("machine", processor().memory)]
    device = context.device
    free, total = (0, 0) if device.shared else device.memory()
    if free or total:
        rooms.append(_Room(f"device {device.name}", free or total, bool(free)))
    return rooms


def _rows(
    case: CaseModel, title: str, estimate: Estimate, context: Context, rooms: list[_Room]
) -> list[tuple[str, str]]:
    name = fields_name(case.output.format)
    files = [text for text, wanted in (("residual.csv", case.output.residual), (name, name),
                                       ("pictures", case.output.picture), ("run.json", True)) if wanted]  # fmt: skip
    rows = [
        ("case", case.case.name),
        ("solver", f"{case.case.solver}: {title}"),
        *estimate.rows,
        ("iterations", f"{case.run.iterations:,}" if case.run.iterations else f"until time.end = {case.end:g}"),
        ("device", f"{context.device.name}: {context.device.describe()}"),
        ("schedule", f"{case.run.schedule}, {'fused' if case.run.fused else 'not fused'}"),
        ("memory", f"about {_size(estimate.memory)} ({', '.join(str(room) for room in rooms)})"),
        ("output", f"{case.directory}: {', '.join(files)} (about {_size(estimate.output if name else 0)})"),
        *(("missing", text) for text in missing_packages(case)),
    ]
    if context.device.shared and estimate.memory > (free := available_memory()) > 0:
        rows.append(("warning", f"{_size(free)} of the memory are free now, and a run needs more"))
    return rows


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{max(1, count // 2**20)} MiB"
