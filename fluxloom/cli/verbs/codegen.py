"""``fluxloom codegen``: print the generated source of the loops of a case, or of a loop in a module."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fluxloom.cases.files.application import built
from fluxloom.cases.files.errors import placed
from fluxloom.cases.files.loading import load_case
from fluxloom.cli.console import DeviceOption, Listening, ScheduleOption, ThreadsOption, messages
from fluxloom.codegen.language.dialect import DIALECTS
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError, did_you_mean
from fluxloom.device.text import TextDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.plan.tuning import schedule_words
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel

__all__ = ["NAME", "command"]

NAME = "codegen"


def command(
    what: Annotated[
        str,
        typer.Argument(metavar="CASE|MODULE:NAME", help="Case file or solver, or a kernel or loop in a module."),
    ],
    loop: Annotated[
        str | None, typer.Option("--loop", metavar="NAME", help="Only this loop.", show_default=False)
    ] = None,
    chain: Annotated[bool, typer.Option("--chain", help="The fused form of one iteration.")] = False,
    device: DeviceOption = None,
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", metavar="NAME", help="Language, for no device in particular: c, cuda or opencl.",
                     show_default=False),
    ] = None,
    threads: ThreadsOption = None,
    schedule: ScheduleOption = None,
) -> None:
    """Print the source that is generated for the loops of a case or for an object of a module.

    Nothing is compiled or run: a device that is not here is replaced by its language.
    """
    module, colon, name = what.partition(":")
    if colon and not Path(what).exists():
        typer.echo(_object_source(module, name, device or "cpu", dialect))
        return
    with Listening():
        model, application = load_case(what)
        model = model.with_run(device=device, threads=threads, schedule=schedule)
        context = _context(model.run.device, dialect, model.run.threads, blind=getattr(application, "blind", False))
        with placed(what), activity("building", model.case.name):
            flow = built(application, model, context).flow
        if chain and flow.chain is None:
            raise CaseError(f"{what}: the solver {model.case.solver} has no chain of loops")
        text = flow.chain.source if chain and flow.chain is not None else ""
    if chain:
        typer.echo(text)
        return
    for chosen in select(flow.loops, loop):
        typer.echo(f"/* ---- {chosen.name}: {schedule_words(chosen.schedule)} ---- */")
        typer.echo(chosen.source)


def _context(device: str, dialect: str | None, threads: int = 0, *, blind: bool = False) -> Context:
    """Return a context whose loops have source: of a language, of a device, or of the language of one not here.

    Raises
    ------
    CaseError
        When there is no such language, or the device has no generated code.
    """
    if dialect is not None:
        if dialect not in DIALECTS:
            raise CaseError(f"--dialect {dialect!r}{did_you_mean(dialect, DIALECTS)} (allowed: {', '.join(DIALECTS)})")
        return Context(TextDevice(dialect, threads, passing=blind), tuning=False)
    try:
        context = Context(device, threads=threads)
    except DeviceUnavailable as error:
        language = device.partition(":")[0]
        if language not in DIALECTS:
            raise
        messages().print(f"shown for no device in particular: {error}", soft_wrap=True, markup=False)
        return Context(TextDevice(language, threads, passing=blind), tuning=False)
    if not context.device.native:
        raise CaseError(f"the device {context.device.name} runs kernels as Python; there is no generated code")
    return context


def select(loops: Sequence[Loop], name: str | None) -> Sequence[Loop]:
    """Return all loops, or those of a name.

    Raises
    ------
    CaseError
        When no loop has the name.
    """
    chosen = [item for item in loops if name in (None, item.name)]
    if not chosen:
        names = list(dict.fromkeys(item.name for item in loops))
        raise CaseError(f"no loop {name!r}{did_you_mean(name or '', names)} (loops: {', '.join(names)})")
    return chosen


def _object_source(module: str, name: str, device: str, dialect: str | None) -> str:
    """Return the generated source of a loop, or of a kernel bound to plain arrays."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = pkgutil.resolve_name(f"{module}:{name}")
    except ModuleNotFoundError as error:
        raise CaseError(f"no module {error.name!r}; give it as a.b.c:name, importable from {Path.cwd()}") from None
    except AttributeError:
        raise CaseError(f"the module {module} has no {name!r}") from None
    finally:
        sys.path.pop(0)
    if isinstance(found, Loop):
        if dialect not in (None, found.context.device.dialect):
            raise CaseError(f"the loop {name} belongs to {found.context!r}: it has no source in {dialect}")
        return found.source
    if isinstance(found, Kernel):
        return _kernel_source(found, _context(device, dialect))
    raise CaseError(f"{module}:{name} is a {type(found).__name__}, not a kernel or a loop")


def _kernel_source(kernel: Kernel, context: Context) -> str:
    """Return the source of a kernel in a loop that its body suggests.

    A parameter indexed twice goes through a map with as many legs as the body names, the others are direct.

    Raises
    ------
    CaseError
        When the body does not tell the shapes.
    """
    count = 4096
    over = context.set(count, "elements")
    arguments = []
    for parameter in kernel.parameters:
        legs, width = _shape(kernel, parameter.name)
        if not legs:
            arguments.append(context.dat(over, name=parameter.name, shape=(width,)))
            continue
        target = context.set(count * legs, f"targets of {parameter.name}")
        links = context.map(over, target, np.arange(count * legs).reshape(count, legs), f"map of {parameter.name}")
        arguments.append(context.dat(target, name=parameter.name, shape=(width,))[links])
    strategies = kernel.signature.strategies  # which only a case knows
    constants = {c.name: kernel.defaults.get(c.name, 1.0) for c in kernel.constants if c.name not in strategies}
    try:
        return Loop(kernel, over, *arguments, **constants).source
    except FluxloomError as error:
        raise CaseError(
            f"{kernel.name} cannot be shown by itself, its body does not tell the shapes of its arguments:\n{error}\n"
            f"name a case that uses it instead: fluxloom codegen CASE --loop {kernel.name}"
        ) from None


def _shape(kernel: Kernel, name: str) -> tuple[int, int]:
    """Return legs (0: direct) and components of a parameter, from the subscripts in the body."""
    legs, width, inner = 0, 1, set()
    for node in ast.walk(kernel.source.node):
        if not isinstance(node, ast.Subscript):
            continue
        below = node.value
        if isinstance(below, ast.Subscript) and isinstance(below.value, ast.Name) and below.value.id == name:
            legs, width = max(legs, _extent(below.slice)), max(width, _extent(node.slice))
            inner.add(id(below))
        elif isinstance(below, ast.Name) and below.id == name and id(node) not in inner:
            width = max(width, _extent(node.slice)) if not legs else width
    return legs, width


def _extent(index: ast.expr) -> int:
    """Return the smallest extent an index fits into; 4 for one that is computed."""
    return index.value + 1 if isinstance(index, ast.Constant) and isinstance(index.value, int) else 4
