"""``fluxloom verify``: compare with reference numbers; the exit status tells whether all agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fluxloom.app.cli.console import JsonOption, RanksOption, Session, ThreadsOption, facts, messages, output
from fluxloom.app.crew import require_one, starts_ranks
from fluxloom.app.files import prepare_file, write_json
from fluxloom.app.ranks import start
from fluxloom.comm import detect, ending_together
from fluxloom.core.errors import CaseError
from fluxloom_lab.verify.base import Check, Verification, VerifyOptions, as_json
from fluxloom_lab.verify.registry import verifications

__all__ = ["NAME", "command"]

NAME = "verify"

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", exists=True, file_okay=False, envvar="FLUXLOOM_DATA",
        help="Folder of public reference data; checks that need it are left out without.",
    ),
]  # fmt: skip


def command(
    session: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Verification; 'list' shows them.")],
    full: Annotated[bool, typer.Option("--full", help="The long checks too.")] = False,
    data: DataOption = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="Device.", show_default="cpu")
    ] = None,
    threads: ThreadsOption = None,
    ranks: RanksOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compare computed numbers with published ones; exit status 1 when one is out of its tolerance."""
    words = session.obj if isinstance(session.obj, Session) else Session()
    with ending_together(detect()) as comm:
        known = verifications()
        if name == "list":
            facts([(key, known[key].title) for key in known.names()] if comm.rank == 0 else [])
            return
        require_one(ranks, device, threads)
        if comm.rank == 0 and json_file is not None:
            prepare_file(json_file)
        specs = starts_ranks(comm, ranks or "")
        if (specs or comm.size > 1) and not getattr(known[name], "ranked", False):
            raise CaseError(f"the verification {name} runs on one rank: start it without mpiexec and --ranks")
        options = VerifyOptions(
            device=device or "cpu", threads=threads or 0, full=full, data=data, comm=comm, ranks=ranks or ""
        )
        status = start(specs, words.arguments) if specs else _run(name, known[name], options, json_file)
    if status:
        raise typer.Exit(status)


def _run(name: str, verification: Verification, options: VerifyOptions, json_file: Path | None) -> int:
    """Run the checks and return the exit status, the same on every rank; rank 0 prints and writes."""
    comm, told = options.comm, messages()
    first = comm.rank == 0

    def tell(line: str) -> None:
        if first:
            told.print(line, soft_wrap=True, markup=False)

    checks: list[Check] = []
    for check in verification.run(options, tell):
        checks.append(check)
        if first:
            _show(check)
    good = comm.broadcast(sum(check.ok for check in checks))
    if first:
        if json_file is not None:
            write_json(json_file, as_json(name, options.device, checks, comm.size))
        output().print(f"{good} of {len(checks)} checks passed", style="green" if good == len(checks) else "bold red")
    return int(good < len(checks))


def _show(check: Check) -> None:
    """Print a check."""
    mark = ("ok      ", "green") if check.ok else ("FAILED  ", "bold red")
    text = f"{check.name}: {check.value:.13g}"
    if check.reference:
        text += f", reference {check.reference:.13g}, off by {check.deviation:.1e} (allowed {check.tolerance:.1e})"
    else:
        text += f" (allowed {check.tolerance:.1e})"
    output().print(Text.assemble(mark, text, (f"  [{check.source}]", "dim")), soft_wrap=True)
