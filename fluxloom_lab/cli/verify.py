"""``fluxloom verify``: compare with reference numbers; the exit status tells whether all agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from fluxloom.cli.console import messages, output
from fluxloom.comm import detect, ending_together
from fluxloom.core.errors import CaseError
from fluxloom.machine.ranks import require_one, start, starts_ranks
from fluxloom.run.results.files import prepare_file, write_json
from fluxloom_lab.cli.named import Call, Named, application
from fluxloom_lab.options import given
from fluxloom_lab.verify.base import Check, RankedOptions, Verification, VerifyOptions, as_json
from fluxloom_lab.verify.registry import verifications

__all__ = ["command"]


def _started(call: Call) -> int:
    """Run what a command line asks for; return the exit status, that of ranks too."""
    with ending_together(detect()) as comm:
        kind: type[VerifyOptions] = call.subject.options
        distributed = issubclass(kind, RankedOptions)
        if distributed:
            require_one(call.given["ranks"], call.given["device"], call.given["threads"])
        if comm.rank == 0 and call.json_file is not None:
            prepare_file(call.json_file)
        options = given(kind, call.given, comm=comm)
        if comm.size > 1 and not distributed:
            raise CaseError(f"the verification {call.name} runs on one rank: start it without mpiexec")
        specs = starts_ranks(comm, options.ranks) if isinstance(options, RankedOptions) else ()
        if specs:
            return start(specs, call.session.arguments)
        return _run(call.name, call.subject, options, call.json_file)


def _run(name: str, verification: Verification[Any], options: VerifyOptions, json_file: Path | None) -> int:
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


command = application(Named(
    "verify", "verification",
    "Compare computed numbers with published ones; exit status 1 when one is out of its tolerance.",
    lambda: verifications(), _started,
))  # fmt: skip
"""The verb, as `pyproject.toml` declares it."""
