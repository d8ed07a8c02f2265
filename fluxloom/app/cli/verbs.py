"""The verbs of the command line, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fluxloom.app.cli.console import Session, add
from fluxloom.app.system import fluxloom_version, python_version
from fluxloom.core.registry import load_object

__all__ = ["build"]

HELP = "Computational fluid dynamics on every kind of processor: kernels in plain Python, generated C."
VERBS = ("run", "check", "codegen", "tune", "bench", "verify", "plot", "doctor", "devices", "mesh")
"""In the order of ``--help``; each is a module beside this one."""


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command line.

    Parameters
    ----------
    arguments
        The words it is about to be called with, for the record of runs and benchmarks. If the first is a verb, no
        other is imported.
    """
    app = typer.Typer(
        name="fluxloom", help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "obj": Session(tuple(arguments))},
    )  # fmt: skip
    app.callback()(_options)
    for verb in arguments[:1] if arguments[:1] and arguments[0] in VERBS else VERBS:
        if verb == "mesh":
            group = load_object("fluxloom.app.cli.mesh:build")()
            app.add_typer(group, name=verb, short_help=group.info.help)
        else:
            add(app, verb, load_object(f"fluxloom.app.cli.{verb}:command"))
    return app


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
