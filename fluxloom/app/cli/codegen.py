"""``fluxloom codegen``: print the generated source of the loops of a case, or of a loop in a module."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxloom.app.case import load_case
from fluxloom.app.cli.console import DeviceOption, ScheduleOption, ThreadsOption
from fluxloom.core.errors import CaseError, KernelError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.loop import Loop
from fluxloom.kernel.frontend import Kernel

__all__ = ["NAME", "command"]

NAME = "codegen"


def command(
    what: Annotated[
        str, typer.Argument(metavar="CASE|MODULE:NAME", help="Case file, or a kernel or loop in a module.")
    ],
    loop: Annotated[
        str | None, typer.Option("--loop", metavar="NAME", help="Only this loop.", show_default=False)
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    schedule: ScheduleOption = None,
) -> None:
    """Print the C that is generated for the loops of a case or for an object of a module."""
    module, colon, name = what.partition(":")
    if colon and not Path(what).exists():
        typer.echo(_object_source(module, name))
        return
    model, application = load_case(what)
    model = model.with_run(device=device, threads=threads, schedule=schedule)
    context = Context(model.run.device, threads=model.run.threads)
    if not context.device.native:
        raise CaseError(f"the device {context.device.name} runs kernels as Python; there is no generated code")
    for chosen in select(application.build(model, context).loops, loop):
        typer.echo(f"/* ---- {chosen.name}: {chosen.strategy}, {chosen.schedule} ---- */")
        typer.echo(chosen.source)


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


def _object_source(module: str, name: str) -> str:
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
        return found.source
    if isinstance(found, Kernel):
        return _kernel_source(found)
    raise CaseError(f"{module}:{name} is a {type(found).__name__}, not a kernel or a loop")


def _kernel_source(kernel: Kernel) -> str:
    """Return the source of a kernel over one element, each parameter a direct argument.

    Raises
    ------
    CaseError
        When the kernel needs maps: its shapes are only known in a loop.
    """
    context = Context("cpu")
    over = context.set(1, "elements")
    wide = 8
    dats = [context.dat(over, name=parameter.name, shape=(wide,)) for parameter in kernel.parameters]
    constants = {item.name: kernel.defaults.get(item.name, 1.0) for item in kernel.constants}
    try:
        return Loop(kernel, over, *dats, **constants).source
    except (KernelError, CaseError) as error:
        raise CaseError(
            f"{kernel.name} cannot be shown by itself: the shapes of its arguments come from a loop ({error}); "
            f"name a case instead: fluxloom codegen CASE --loop {kernel.name}"
        ) from None
