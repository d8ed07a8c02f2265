"""The benchmark of tridiagonal systems: every method on lines of several lengths, beside the usual library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.tridiagonal import Form, Lines, Matrices, TridiagonalSolver
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom_lab.bench.base import Record, Tell, device_name
from fluxloom_lab.bench.options import Real, cells_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.peers.tridiagonal_peers import usual_library

__all__ = ["LAYOUTS", "WORDS", "TridiagonalBench", "lines_of", "sizes_from_text"]

ROUNDS = 7
WORDS = 9
"""Values that Thomas's algorithm moves a row when nothing stays on chip: it reads a, b, c, y and writes c', y', then
reads both and writes the solution. Every method is judged by them."""

_LOOKED_AT = 1000
"""Systems whose residual is looked at."""

LAYOUTS = ("interleaved", "contiguous")
METHODS = ("auto", "thomas", "partition", "pcr", "cr", "cr_pcr")
_SIZES = "64x1048576,128x524288,256x262144,512x131072,1024x65536,4096x16384,65536x1024"
_SIZES_PROCESSOR = "64x131072,128x65536,512x65536,4096x8192,65536x512"


def sizes_from_text(text: str) -> list[tuple[int, int]]:
    """Return rows and systems of ``"512x131072,64x1000"``.

    Raises
    ------
    CaseError
        For anything else.
    """
    found = []
    for word in text.split(","):
        parts = word.strip().lower().split("x")
        if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise CaseError(f"--cells {text!r}: rows and systems are wanted, as 512x131072 or 64x1000,128x500")
        found.append((int(parts[0]), int(parts[1])))
    return found


def lines_of(rows: int, systems: int, layout: str) -> Lines:
    """Return so many systems whose rows lie far apart (interleaved) or side by side."""
    if layout == "interleaved":
        return Lines(rows, systems, row_step=systems, inner_step=1)
    return Lines(rows, systems, row_step=1, inner_step=rows)


@dataclass
class _Problem:
    """Random dominant systems of one size, layout and type, on a device."""

    context: Context
    lines: Lines
    layout: str
    dtype: str

    def __post_init__(self) -> None:
        rng = np.random.default_rng(8)
        lines = self.lines
        shape = (lines.rows, lines.inner) if self.layout == "interleaved" else (lines.inner, lines.rows)
        self.values = [rng.random(shape).astype(self.dtype) for _ in range(4)]
        self.values[1] += 3.0
        device = self.context.device
        self.a, self.b, self.c, self.y = (DeviceArray.of(device, values) for values in self.values)
        self.x = DeviceArray.zeros(device, shape, self.dtype)

    @property
    def bytes(self) -> int:
        """Bytes of nine words a row."""
        return WORDS * self.x.buffer.nbytes

    def solver(self, method: str) -> tuple[TridiagonalSolver, Steps]:
        """Return a solver and its steps.

        Raises
        ------
        FluxloomError
            When the method cannot solve such systems.
        """
        real = "double" if self.dtype == "float64" else "float"
        device = self.context.device
        solver = TridiagonalSolver(device, self.lines, Form(real=real), method, threads=self.context.threads)
        calls = solver.calls(y=self.y, x=self.x, matrices=Matrices(self.a, self.b, self.c))
        reads = [array.buffer for array in (self.a, self.b, self.c, self.y)]
        return solver, Steps(device, calls, reads, [self.x.buffer])

    def residual(self) -> float:
        """Return the largest residual of the solution of some systems beside the largest right-hand side."""
        axis, some = (0, np.s_[:, :_LOOKED_AT]) if self.layout == "interleaved" else (1, np.s_[:_LOOKED_AT])
        a, b, c, y, x = (np.moveaxis(values[some], axis, 0) for values in (*self.values, self.x.host()))
        found = b * x - y
        found[1:] += a[1:] * x[:-1]
        found[:-1] += c[:-1] * x[1:]
        return float(np.abs(found).max() / np.abs(y).max())


@dataclass(frozen=True)
class TridiagonalOptions(Real):
    """Options of the benchmark ``tridiagonal``."""

    cells: str = cells_option("Rows and systems: 512x131072,64x1000.", "MxN,...")
    rounds: int = rounds_option()
    model: str = option("", metavar="NAMES", help="Layouts: interleaved, contiguous.")
    methods: str = option("", metavar="NAMES", help="What is timed: thomas,partition,...")


class TridiagonalBench:
    """Time of many tridiagonal systems.

    ``--cells 512x131072,...`` gives rows and systems, ``--model interleaved,contiguous`` the layouts, ``--methods``
    what is timed, ``--precision`` the type. Shares are of the copy bandwidth, at nine words a row.
    """

    title = "Batched tridiagonal systems: every method, beside the device's usual library"
    options = TridiagonalOptions

    def run(self, options: TridiagonalOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.native_context()
        dtype = options.real_type
        sizes = sizes_from_text(options.cells or (_SIZES if context.device.items else _SIZES_PROCESSOR))
        meter = meter_for(context.device, context.threads)
        copies, rows = [meter.measure(3).copy_gbs], []
        for layout, (length, systems) in _cases(options.model, sizes):
            problem = _Problem(context, lines_of(length, systems, layout), layout, dtype)
            found = _measure(problem, _wanted(options.methods), options.rounds or ROUNDS)
            copies.append(meter.measure(3).copy_gbs)
            rows += [row | {"layout": layout, "rows": length, "systems": systems} for row in found]
            for row in rows[-len(found) :]:
                row["percent_of_copy"] = 100.0 * row["gbs"] / copies[-1]
                tell(_line(row))
        best = [row for row in rows if row["method"] == "auto"] or rows
        return Record(
            case="tridiagonal",
            model="each",
            device=context.device.name,
            device_name=device_name(context),
            precision=dtype,
            sizes={"n": sum(row["rows"] * row["systems"] for row in best)},
            copy_gbs=median(copies),
            seconds=sum(row["seconds"] for row in best),
            metrics={"words_a_row": WORDS, "threads": context.threads, "cases": rows},
            loops=[],
            command=options.command,
        )


def _wanted(text: str) -> Sequence[str]:
    names = [word.strip() for word in text.split(",")] if text else list(METHODS)
    for name in names:
        if name not in METHODS:
            raise CaseError(f"--methods {name!r} (allowed: {', '.join(METHODS)})")
    return names


def _cases(text: str, sizes: Sequence[tuple[int, int]]) -> Iterator[tuple[str, tuple[int, int]]]:
    for layout in [word.strip() for word in text.split(",")] if text else LAYOUTS:
        if layout not in LAYOUTS:
            raise CaseError(f"--model {layout!r} (allowed: {', '.join(LAYOUTS)})")
        for size in sizes:
            yield layout, size


def _measure(problem: _Problem, methods: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """Return a row for every method that can solve the systems, and for the usual library."""
    runs: dict[str, Run] = {}
    facts: dict[str, dict[str, Any]] = {}
    for method in methods:
        try:
            solver, steps = problem.solver(method)
        except FluxloomError:
            continue  # it refuses lines of this length
        steps()
        steps()  # the second run captures
        solver.check()
        runs[method] = steps
        facts[method] = {"method": method, "chosen": solver.method, "residual": problem.residual()}
    peer = usual_library(problem.context, problem.values, problem.layout)
    if peer is not None:
        runs["peer"] = peer.run
        facts["peer"] = {"method": peer.name, "share": peer.share}
    wait = problem.context.device.synchronize
    seconds = Stopwatch(rounds, wait=wait).race(list(runs.values()))
    rows = []
    for name, value in zip(runs, seconds, strict=True):
        value /= facts[name].get("share", 1.0)
        rows.append(facts[name] | {"seconds": value, "gbs": 1e-9 * problem.bytes / value})
    return rows


def _line(row: dict[str, Any]) -> str:
    chosen = f" ({row['chosen']})" if row["method"] == "auto" else ""
    return (
        f"{row['layout']} {row['rows']} x {row['systems']}, {row['method']}{chosen}: {1e3 * row['seconds']:.4g} ms, "
        f"{row['gbs']:.4g} GB/s at nine words a row, {row['percent_of_copy']:.3g} % of the copy"
    )
