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
        str,
        typer.Option(
            "--cells", metavar="SIZE", show_default="of the benchmark",
            help="Size: 720k, 2.88M or I,J; of a box N or NX,NY,NZ.",
        ),
    ] = "",
    iterations: Annotated[
        int, typer.Option("--iterations", "-n", min=0, metavar="N", help="Iterations a round; 0: its default.")
    ] = 0,
    rounds: Annotated[
        int, typer.Option("--rounds", min=0, metavar="N", help="Timed rounds; 0: its default.")
    ] = 0,
    precision: Annotated[
        str, typer.Option("--precision", metavar="TYPE", help="Storage: float64, float32 or float16 (lbm).")
    ] = "float32",
    schedule: ScheduleOption = None,
    fused: FusedOption = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Measure the time of each loop on GPUs too, where it costs something.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Run a benchmark; its copy bandwidth is measured between the rounds."""
    known = benches()
    if name == "list":
        facts([(key, known[key].title) for key in known.names()])
        return
    options = BenchOptions(
        device=device, threads=threads or 0, cells=cells, iterations=iterations, rounds=rounds,
        schedule=parse_schedule(schedule or "auto"), fused=fused is not False, precision=precision,
        profile=profile,
        command=session.obj.command if isinstance(session.obj, Session) else "",
    )  # fmt: skip
    told = messages()
    if json_file is not None and not json_file.parent.is_dir():
        json_file.parent.mkdir(parents=True, exist_ok=True)
    record = known[name].run(options, lambda line: told.print(line, soft_wrap=True, markup=False))
    shown = [row.cells(simd=record.device == "cpu") for row in record.loops]
    table(f"{name} on {record.device_name}", HEADINGS, shown, left=LEFT)
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
