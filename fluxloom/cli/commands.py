"""The verbs of the command line, put together: ours, and those that other packages declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from fluxloom.cli.console import add, invoked
from fluxloom.core.errors import FluxloomError
from fluxloom.core.registry import Registry, load_object
from fluxloom.machine.system import fluxloom_version, python_version

__all__ = ["GROUP", "Verb", "build"]

HELP = "Computational fluid dynamics on every kind of processor: kernels in plain Python, generated C."
VERBS = ("run", "check", "codegen", "tune", "plot", "doctor", "devices", "mesh")
"""In the order of ``--help``; each is a module beside this one."""

LABORATORY = ("bench", "lab", "verify")
"""Verbs of `fluxloom_lab`, which is installed with this package: declared as those of others are."""

GROUP = "fluxloom.commands"
"""Entry points of verbs: each names a function whose parameters are options of Typer, or an application of Typer."""

_MOVED = {
    "--transport": "--set run.transport=NAME", "--schedule": "--set run.schedule=TEXT",
    "--fused": "--set run.fused=true", "--no-fused": "--set run.fused=false", "--unfused": "--set run.fused=false",
    "--python-profile": "python -m cProfile -s tottime -m fluxloom run CASE",
}  # fmt: skip
"""Options of ``run`` that there were."""

Verb = Callable[..., object] | typer.Typer
"""What does a verb: a function, or several with a name each."""


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command line.

    Parameters
    ----------
    arguments
        The words it is about to be called with, for the record of runs and benchmarks. If the first is a verb, no
        other is imported; what other packages declare is not even looked up if it is one of ours.

    Raises
    ------
    FluxloomError
        If the first word is a verb of the laboratory, and nothing that is installed declares it.
    """
    app = typer.Typer(
        name="fluxloom", help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(_options)
    invoked(arguments)
    first = arguments[0] if arguments else ""
    if first == "run" and (old := next((word for word in arguments if word.partition("=")[0] in _MOVED), "")):
        raise FluxloomError(f"{old.partition('=')[0]}: now {_MOVED[old.partition('=')[0]]}")
    if first in VERBS:
        _add(app, first, _own(first))
        return app
    declared: Registry[Verb] = Registry("verb", group=GROUP)
    others = [name for name in declared.names() if name not in VERBS]
    if first in others:
        _add(app, first, declared[first])
        return app
    if first in LABORATORY:
        raise FluxloomError(
            f"the verb {first} is part of the laboratory (fluxloom_lab), and no installed package declares it: install "
            "Fluxloom again (in a checkout: make env, or pip install -e .), since its entry points are read then"
        )
    for verb in VERBS:
        _add(app, verb, _own(verb))
    for verb in others:
        _add(app, verb, _loaded(declared, verb))
    return app


def _own(verb: str) -> Verb:
    """Return a verb of ours."""
    if verb == "mesh":
        return load_object("fluxloom.cli.verbs.mesh:build")()
    return load_object(f"fluxloom.cli.verbs.{verb}:command")


def _loaded(declared: Registry[Verb], name: str) -> Verb:
    """Return a verb of another package; where that cannot be imported, one that says so, so that others stay listed."""
    try:
        return declared[name]
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"

    listed = typer.Typer(help=f"(cannot be imported: {reason})")
    listed.callback(invoke_without_command=True)(lambda: None)
    return listed


def _add(app: typer.Typer, name: str, verb: Verb) -> None:
    """Add a verb to the command line."""
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=name, short_help=verb.info.help)
    else:
        add(app, name, verb)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fluxloom {fluxloom_version()} ({python_version()})")
        raise typer.Exit


def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Computational fluid dynamics on every kind of processor: kernels in plain Python, generated C."""
