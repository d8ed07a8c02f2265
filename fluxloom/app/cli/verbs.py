"""The verbs of the command line, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fluxloom.app.cli import bench, check, codegen, devices, doctor, mesh, plot, run, tune, verify
from fluxloom.app.cli.console import Session
from fluxloom.app.system import fluxloom_version, python_version

__all__ = ["build"]

HELP = "Computational fluid dynamics on every kind of processor: kernels in plain Python, generated C."


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command line.

    Parameters
    ----------
    arguments
        The words it is about to be called with, for the record of runs and benchmarks.
    """
    app = typer.Typer(
        name="fluxloom", help=HELP, no_args_is_help=True, pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "obj": Session(tuple(arguments))},
    )  # fmt: skip
    app.callback()(_options)
    for verb in (run, check, codegen, tune, bench, verify, plot, doctor, devices):
        app.command(verb.NAME)(verb.command)
    app.add_typer(mesh.build(), name="mesh")
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
