"""``fluxloom verify``: compare with reference numbers; the exit status tells whether all agree."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from fluxloom.app.cli.console import JsonOption, ThreadsOption, facts, messages, output
from fluxloom.app.files import write_json
from fluxloom.app.verify.base import Check, VerifyOptions, as_json, verifications

__all__ = ["NAME", "command"]

NAME = "verify"


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Verification; 'list' shows them.")],
    full: Annotated[bool, typer.Option("--full", help="The long checks too.")] = False,
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="Device.")] = "cpu",
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compare computed numbers with published ones; exit status 1 when one is out of its tolerance."""
    known = verifications()
    if name == "list":
        facts([(key, known[key].title) for key in known.names()])
        return
    verification = known[name]
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
    told = messages()
    checks: list[Check] = []
    options = VerifyOptions(device=device, threads=threads or 0, full=full)
    for check in verification.run(options, lambda line: told.print(line, soft_wrap=True, markup=False)):
        checks.append(check)
        _show(check)
    if json_file is not None:
        write_json(json_file, as_json(name, device, checks))
    good = sum(check.ok for check in checks)
    output().print(f"{good} of {len(checks)} checks passed", style="green" if good == len(checks) else "bold red")
    if good < len(checks):
        raise typer.Exit(1)


def _show(check: Check) -> None:
    """Print a check."""
    mark = ("ok      ", "green") if check.ok else ("FAILED  ", "bold red")
    text = f"{check.name}: {check.value:.13g}"
    if check.reference:
        text += f", reference {check.reference:.13g}, off by {check.deviation:.1e} (allowed {check.tolerance:.1e})"
    else:
        text += f" (allowed {check.tolerance:.1e})"
    output().print(Text.assemble(mark, text, (f"  [{check.source}]", "dim")), soft_wrap=True)
