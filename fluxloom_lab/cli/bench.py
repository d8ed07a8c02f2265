"""``fluxloom bench``: measure, and write the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fluxloom.cli.console import facts, messages, output, table
from fluxloom.cli.runs.summary import HEADINGS, LEFT
from fluxloom.comm import detect, ending_together
from fluxloom.core.errors import CaseError
from fluxloom.machine.ranks import require_one, start, starts_ranks
from fluxloom.run.results.files import prepare_file, write_json
from fluxloom_lab.bench.base import Record
from fluxloom_lab.bench.options import BenchOptions, Divided, Laid, Ranked
from fluxloom_lab.bench.registry import Bench, benches
from fluxloom_lab.cli.named import Call, Named, application
from fluxloom_lab.options import given

__all__ = ["command"]

_WIDTH = 160
"""Letters of a line of a table."""


def _started(call: Call) -> int:
    """Run what a command line asks for; return the exit status."""
    with ending_together(detect()) as comm:
        kind: type[BenchOptions] = call.subject.options
        if issubclass(kind, Ranked):
            require_one(call.given["ranks"], call.given["device"], call.given["threads"])
        options = given(kind, call.given, command=call.session.command, comm=comm)
        return _run(call.name, call.subject, options, call.session.arguments, call.json_file)


def _run(name: str, bench: Bench[Any], options: BenchOptions, arguments: Sequence[str], json_file: Path | None) -> int:
    """Run a benchmark on this rank, or start those that are asked for; return the exit status."""
    if isinstance(options, Laid):
        _ = options.chosen_layout
    if options.comm.size > 1 and not isinstance(options, Ranked):
        raise CaseError(f"the benchmark {name} runs on one rank: start it without mpiexec")
    told, first = messages(), options.comm.rank == 0
    if first and json_file is not None:
        prepare_file(json_file)
    specs = starts_ranks(options.comm, options.ranks) if isinstance(options, Ranked) else ()
    count = len(specs) or options.comm.size
    if isinstance(options, Divided) and not isinstance(options.shares, str) and len(options.shares) != count:
        ranks = f"{count} rank{'s' if count > 1 else ''}"
        raise CaseError(f"--shares: {len(options.shares)} numbers for {ranks}: give one a rank")
    if specs:
        return start(specs, arguments)

    def tell(line: str) -> None:
        if first:
            told.print(line, soft_wrap=True, markup=False)

    def keep(record: Record) -> None:
        if first and json_file is not None:
            write_json(json_file, record.as_json())

    record = bench.run(replace(options, keep=keep), tell)
    if first:
        _show(name, record)
    if first and json_file is not None:
        keep(record)
        tell(f"{json_file}")
    return 0


command = application(Named(
    "bench", "benchmark", "Run a benchmark; its copy bandwidth is measured between the rounds.",
    lambda: benches(), _started,
))  # fmt: skip
"""The verb, as `pyproject.toml` declares it."""


def _show(name: str, record: Record) -> None:
    """Print a record: the loops, the numbers, then a table of each metric that has many."""
    shown = [row.cells(simd=record.device == "cpu") for row in record.loops]
    title = f"{name} on {record.device_name}"
    if shown:
        table(title, HEADINGS, shown, left=LEFT)
    else:
        output().print(title, style="bold", soft_wrap=True, markup=False)
    rows = [("copy", f"{record.copy_gbs:.1f} GB/s")] if record.copy_gbs else []
    rows.append(("seconds", f"{record.seconds:.6g}"))
    rows += [(key, _text(value)) for key, value in record.metrics.items() if not _rows(value)]
    facts(rows)
    for key, value in record.metrics.items():
        if _rows(value):
            _print_table(key, _rows(value))


def _rows(value: object) -> list[dict[str, Any]]:
    """Return the rows of a metric that is a list of mappings, or a mapping of mappings; none for others."""
    rows: list[Any] = value if isinstance(value, list) else []
    if isinstance(value, dict) and all(isinstance(row, dict) for row in value.values()):
        rows = [{"loop": name, **row} for name, row in value.items()]
    return rows if all(isinstance(row, dict) for row in rows) else []


def _print_table(name: str, rows: list[dict[str, Any]]) -> None:
    """Print rows, of which one that failed lacks numbers; where a line would be too long, headings take several."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    left = [n for n, key in enumerate(keys) if isinstance(rows[0].get(key), str)]
    rows = [row | {"error": "failed"} if isinstance(row.get("error"), str) else row for row in rows]
    shown = [[_cell(row.get(key)) for key in keys] for row in rows]
    columns = zip(keys, zip(*shown, strict=True), strict=True)
    long = sum(2 + max(len(key), *map(len, column)) for key, column in columns) > _WIDTH
    table(name, [key.replace("_", "\n" if long else " ") for key in keys], shown, left=left)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return " ".join(f"{item:.4g}" if isinstance(item, float) else _cell(item) for item in value)
    return "-" if value is None else str(value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return "-" if value is None else json.dumps(value)
