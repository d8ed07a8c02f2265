"""``fluxloom doctor``: what was found on this machine, and what to install for the rest."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from fluxloom.cli.console import output
from fluxloom.machine.probe import State, examine

__all__ = ["NAME", "command"]

NAME = "doctor"
STYLES = {State.GOOD: "green", State.ABSENT: "yellow", State.FAULTY: "red", State.BROKEN: "bold red"}


def command(
    no_bandwidth: Annotated[bool, typer.Option("--no-bandwidth", help="Do not measure the memory.")] = False,
) -> None:
    """Report compiler, processor, devices and packages, and what to install for those that are missing.

    The exit status is 1 when something that every run needs is missing.
    """
    console = output()
    findings = examine(bandwidth=not no_bandwidth)
    width = max(len(item.name) for item in findings) + 2
    for item in findings:
        mark = Text(f"{item.state.value:<8}", style=STYLES[item.state])
        console.print(Text.assemble(mark, (f"{item.name:<{width}}", "bold"), item.text), soft_wrap=True)
        if item.advice:
            console.print(Text(" " * (8 + width) + f"-> {item.advice}", style="cyan"), soft_wrap=True)
    broken = [item.name for item in findings if item.state is State.BROKEN]
    if broken:
        text = f"\nmissing: {', '.join(broken)}; only the reference device works without"
        console.print(Text(text, style="bold red"))
        raise typer.Exit(1)
    console.print(Text("\neverything that every run needs is there", style="green"))
