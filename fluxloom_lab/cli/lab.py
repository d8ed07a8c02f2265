"""``fluxloom lab``: attacks on readers, kernels and runs; the exit status tells whether anything was found."""

from __future__ import annotations

from fluxloom.cli.console import messages, table
from fluxloom.run.failure import leaving_by_signal
from fluxloom.run.results.files import prepare_file, write_json
from fluxloom_lab.attack.frame import AttackOptions, Outcome, as_json, attempt
from fluxloom_lab.attack.registry import attacks
from fluxloom_lab.cli.named import Call, Named, application
from fluxloom_lab.options import given

__all__ = ["command"]


def _started(call: Call) -> int:
    """Run the trials that a command line asks for; return the exit status."""
    if call.json_file is not None:
        prepare_file(call.json_file)
    options: AttackOptions = given(call.subject.options, call.given)
    told = messages()

    def tell(line: str) -> None:
        told.print(line, soft_wrap=True, markup=False, highlight=False)

    with leaving_by_signal():
        outcomes = attempt(call.subject.of(options), options, tell)
    for outcome in outcomes:
        for seed in sorted({one.seed for one in outcome.found}):
            tell(f"again: fluxloom lab {call.name} --only {outcome.attack} --seed {seed} --trials 1")
    rows = [[*_row(outcome)] for outcome in outcomes]
    table("", ("attack", "trials", "found", "seconds", "counts"), rows, left=(0, 4))
    if call.json_file is not None:
        write_json(call.json_file, as_json(call.name, options, outcomes))
    return int(any(outcome.found for outcome in outcomes))


def _row(outcome: Outcome) -> tuple[str, ...]:
    counts = ", ".join(f"{name} {number}" for name, number in outcome.counts.items())
    text = f"left out: {outcome.missing}" if outcome.missing else counts
    return outcome.attack, str(outcome.trials), str(len(outcome.found)), f"{outcome.seconds:.1f}", text


command = application(Named(
    "lab", "group of attacks",
    "Attack readers, kernels and runs with random trials; exit status 1 when something is found.", attacks, _started,
))  # fmt: skip
"""The verb, as `pyproject.toml` declares it."""

if __name__ == "__main__":  # from a checkout that is not installed
    import sys

    import typer

    from fluxloom.cli.console import invoked

    invoked(["lab", *sys.argv[1:]])
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    app.add_typer(command, name="lab")
    app(["lab", *sys.argv[1:]], prog_name="fluxloom")
