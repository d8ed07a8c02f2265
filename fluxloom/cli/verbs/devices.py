"""``fluxloom devices``: the devices and whether they can be used."""

from __future__ import annotations

from rich.text import Text

from fluxloom.cli.console import output
from fluxloom.machine.probe import device_states

__all__ = ["NAME", "command"]

NAME = "devices"


def command() -> None:
    """List the devices, and why those that cannot be used cannot."""
    console = output()
    for item in device_states():
        mark = ("yes ", "green") if item.available else ("no  ", "yellow")
        console.print(Text.assemble(mark, (f"{item.name:<12}", "bold"), item.text), soft_wrap=True)
