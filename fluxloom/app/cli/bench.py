"""``fluxloom bench``: measure, and write the record."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fluxloom.app.bench.base import BenchOptions, benches
from fluxloom.app.cli.console import (
    FusedOption,
    JsonOption,
    ScheduleOption,
    Session,
    ThreadsOption,
    facts,
    messages,
    table,
)
from fluxloom.app.files import write_json
from fluxloom.app.schedules import parse_schedule
from fluxloom.app.summary import HEADINGS, LEFT

__all__ = ["NAME", "command"]

NAME = "bench"


def command(
    session: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Benchmark; 'list' shows them.")],
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="Device.")] = "cpu",
    threads: ThreadsOption = None,
    cells: Annotated[
        str, typer.Option("--cells", metavar="SIZE", help="Size: 720k, 2.88M or I,J.", show_default="of the benchmark")
    ] = "",
    iterations: Annotated[
        int, typer.Option("--iterations", "-n", min=0, metavar="N", help="Iterations a round; 0: its default.")
    ] = 0,
    rounds: Annotated[
        int, typer.Option("--rounds", min=0, metavar="N", help="Timed rounds; 0: its default.")
    ] = 0,
    schedule: ScheduleOption = None,
    fused: FusedOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run a benchmark; its copy bandwidth is measured between the rounds."""
    known = benches()
    if name == "list":
        facts([(key, known[key].title) for key in known.names()])
        return
    options = BenchOptions(
        device=device, threads=threads or 0, cells=cells, iterations=iterations, rounds=rounds,
        schedule=parse_schedule(schedule or "auto"), fused=fused is not False,
        command=session.obj.command if isinstance(session.obj, Session) else "",
    )  # fmt: skip
    told = messages()
    if json_file is not None and not json_file.parent.is_dir():
        json_file.parent.mkdir(parents=True, exist_ok=True)
    record = known[name].run(options, lambda line: told.print(line, soft_wrap=True, markup=False))
    table(f"{name} on {record.device_name}", HEADINGS, [row.cells() for row in record.loops], left=LEFT)
    rows = [("copy", f"{record.copy_gbs:.1f} GB/s"), ("seconds", f"{record.seconds:.6g}")]
    rows += [(key, _text(value)) for key, value in record.metrics.items()]
    facts(rows)
    if json_file is not None:
        write_json(json_file, record.as_json())
        told.print(f"{json_file}", soft_wrap=True, markup=False)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return "-" if value is None else json.dumps(value)
