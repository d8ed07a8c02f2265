"""``fluxloom check``: read a case file, build everything a run would need, and stop before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.case_errors import placed
from fluxloom.app.cli.console import CaseArgument, DeviceOption, ThreadsOption, facts, messages
from fluxloom.app.files import vtk_name
from fluxloom.app.loading import load_case
from fluxloom.app.system import processor
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context

__all__ = ["NAME", "command"]

NAME = "check"
BUILD_BELOW = 2_000_000
"""Cells up to which the mesh and the loops are built too."""


def command(
    case: CaseArgument,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    build: Annotated[
        bool | None,
        typer.Option("--build/--no-build", help="Build mesh and loops too.", show_default="below 2 M cells"),
    ] = None,
) -> None:
    """Check a case file without running it, and say what a run would take."""
    model, application = load_case(case)
    model = model.with_run(device=device, threads=threads)
    with placed(str(case)):
        estimate = application.estimate(model)
    context = Context(model.run.device, threads=model.run.threads)
    rooms = _rooms(context)
    facts(_rows(model, application.title, estimate, context, rooms))
    for room in rooms:
        if estimate.memory > room.bytes:
            raise CaseError(
                f"{case}: the case needs about {_size(estimate.memory)} of memory and {room}; "
                f"choose a coarser mesh or a larger {room.where}"
            )
    if build if build is not None else estimate.cells <= BUILD_BELOW:
        with placed(str(case)):
            runner = application.build(model, context)
        rows = [(f"{'loops':<14}", ", ".join(f"{loop.name} ({loop.strategy})" for loop in runner.loops))]
        if runner.chain is not None and context.device.native:
            first, *more = runner.chain.describe().splitlines()
            rows += [("chain", first.partition(": ")[2]), *(("", line.strip()) for line in more)]
        facts(rows)
    messages().print(f"{case}: correct", style="green", soft_wrap=True, markup=False)


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
    name = vtk_name(case.output.vtk)
    files = [text for text, wanted in (("residual.csv", case.output.residual), (name, name),
                                       ("pictures", case.output.picture), ("run.json", True)) if wanted]  # fmt: skip
    rows = [
        ("case", case.case.name),
        ("solver", f"{case.case.solver}: {title}"),
        *estimate.rows,
        ("iterations", f"{case.run.iterations:,}"),
        ("device", f"{context.device.name}: {context.device.describe()}"),
        ("schedule", f"{case.run.schedule}, {'fused' if case.run.fused else 'not fused'}"),
        ("memory", f"about {_size(estimate.memory)} ({', '.join(str(room) for room in rooms)})"),
        ("output", f"{case.directory}: {', '.join(files)} (about {_size(estimate.output if name else 0)})"),
    ]
    return rows


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{max(1, count // 2**20)} MiB"
