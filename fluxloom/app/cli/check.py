"""``fluxloom check``: read a case file, build everything a run would need, and stop before the first step."""

from __future__ import annotations

from typing import Annotated

import typer

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel, load_case
from fluxloom.app.cli.console import CaseArgument, DeviceOption, ThreadsOption, facts, messages
from fluxloom.app.files import vtk_name
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
    estimate = application.estimate(model)
    context = Context(model.run.device, threads=model.run.threads)
    free = processor().memory
    facts(_rows(model, application.title, estimate, context, free))
    if estimate.memory > free:
        raise CaseError(
            f"{case}: the case needs about {_size(estimate.memory)} of memory and {_size(free)} are free; "
            "choose a coarser mesh or a larger machine"
        )
    if build if build is not None else estimate.cells <= BUILD_BELOW:
        runner = application.build(model, context)
        rows = [(f"{'loops':<14}", ", ".join(f"{loop.name} ({loop.strategy})" for loop in runner.loops))]
        if runner.chain is not None and context.device.native:
            first, *more = runner.chain.describe().splitlines()
            rows += [("chain", first.partition(": ")[2]), *(("", line.strip()) for line in more)]
        facts(rows)
    messages().print(f"{case}: correct", style="green", soft_wrap=True, markup=False)


def _rows(
    case: CaseModel, title: str, estimate: Estimate, context: Context, free: int
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
        ("memory", f"about {_size(estimate.memory)} ({_size(free)} free)"),
        ("output", f"{case.directory}: {', '.join(files)} (about {_size(estimate.output if name else 0)})"),
    ]
    return rows


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{max(1, count // 2**20)} MiB"
