"""The sparse product benchmark: ``y = A x`` on generated matrices, beside the usual library of the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fluxloom.cli.runs.summary import LoopRow, loop_rows
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import best_roof, meter_for, meter_of_size
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.dsl.tune.online import OnlineTuning
from fluxloom.dsl.tune.search import tune
from fluxloom.linalg.matrix.layouts import product_schedules
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.mesh import read_data
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.perf.model import Roofline
from fluxloom.perf.ragged import LANES, Grouping
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom_lab.bench.base import Record, Tell, device_name
from fluxloom_lab.bench.flows.les_model import spmv_bytes, spmv_read_bytes
from fluxloom_lab.bench.options import Scheduled, cells_option, rounds_option
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from fluxloom_lab.peers.spmv_peers import usual_library
from fluxloom_lab.studies.fixed_rule import fixed_rule
from fluxloom_lab.studies.traffic import product_traffic

__all__ = ["SpmvBench", "exhaustive", "online", "time_calls"]

ROUNDS = 7
MILLIONS, MILLIONS_CPU = 20.0, 2.0
BLOCKS, REPEATS = (64, 128, 192, 256, 384, 512), (1, 2, 4, 8, 16)
AFTER = (5, 8)
"""Calls after which the online tuner is judged."""

_CPU_BLOCK = 1024  # rows that a thread takes at a time
_MOST_PADDING = 2.0


# ------------------------------------------------------------------------------------------ measuring


def time_calls(context: Context, *runs: Run, rounds: int = ROUNDS) -> list[float]:
    """Return the median seconds of a call of each of several loops, their rounds in turn.

    A round has as many calls as take some milliseconds; the clock is read when the device has done them all.
    """
    return Stopwatch(rounds, wait=context.device.synchronize).race(runs)


def schedule_of(grouping: Grouping, base: Schedule) -> Schedule:
    """Return the schedule of a grouping."""
    choices: dict[str, Any] = {"block": grouping.block, "lanes": grouping.lanes, "rows": grouping.rows}
    return replace(base, **choices)


def groupable(context: Context) -> bool:
    """Whether ragged loops have lanes, blocks and rows to choose on a device."""
    device = context.device
    return device.native and device.name != "cpu" and any(f.name == "rows" for f in fields(Schedule))


def exhaustive(context: Context, loop: Loop, base: Schedule, rounds: int = 3) -> dict[Grouping, float]:
    """Return the seconds of every grouping that can run; the loop is left with the last."""
    watch = Stopwatch(rounds, wait=context.device.synchronize)
    found: dict[Grouping, float] = {}
    for block, lanes, repeat in product(BLOCKS, LANES, REPEATS):
        grouping = Grouping(block, lanes, repeat)
        try:
            loop.reschedule(schedule_of(grouping, base))
            found[grouping] = watch.median(loop)
        except FluxloomError:
            continue
    return found


def online(loop: Loop) -> tuple[OnlineTuning, list[Grouping]]:
    """Tune a loop call by call; return the tuner and what it held for the best after each timed call."""
    tuner, held = OnlineTuning(loop, record=False), []
    while not tuner.finished:
        tuner()
        if tuner.calls[-1].seconds is not None:  # else its grouping was new, and the call has loaded its kernel
            held.append(tuner.best)
    return tuner, held


# ------------------------------------------------------------------------------------------- matrices


def _wanted(text: str, default: float) -> tuple[int, list[Path]]:
    """Return the entries and the mesh files that ``--cells`` asks for.

    Raises
    ------
    CaseError
        If it is not a number of millions, then files.
    """
    first, *rest = [part.strip() for part in (text or f"{default}").split(",")]
    try:
        millions = float(first.rstrip("mM"))
    except ValueError:
        millions = 0.0
    if not 1e-6 <= millions < 2**31 / 1e6:
        raise CaseError(f"--cells {text!r}: give the entries of a matrix in millions, as 20 or 0.5,wing.su2")
    return round(1e6 * millions), [Path(part) for part in rest]


def _matrices(text: str, default: float) -> Iterator[tuple[str, Any]]:
    """Yield name and matrix: each generated one, then the dual graph of each mesh file."""
    from fluxloom_lab.problems.matrices import GENERATORS

    entries, files = _wanted(text, default)
    for name, generate in GENERATORS.items():
        yield name, generate(entries, 1)
    for path in files:
        yield path.name.partition(".")[0], _dual(path)


def _dual(path: Path) -> Any:
    """Return a matrix on the cells of a mesh file: neighbours across faces, and the diagonal."""
    from scipy.sparse import csr_array, eye_array

    cells = connectivity(read_data(path)).cell_cells
    values = np.full(cells.indices.size, -1.0)
    n = cells.offsets.size - 1
    matrix = csr_array(csr_array((values, cells.indices, cells.offsets), shape=(n, n)) + 5.0 * eye_array(n))
    matrix.sort_indices()
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return csr_array(parts, shape=(n, n))


# --------------------------------------------------------------------------------------- one of them


@dataclass
class _Result:
    """What was measured with one matrix: seconds by what ran, and facts for the record."""

    name: str
    seconds: dict[str, float]
    facts: dict[str, Any]
    report: LoopReport
    minimum_gbs: float
    same_size: Roofline | None = None
    groupings: dict[str, Grouping] = field(default_factory=dict)

    def ratio(self, over: str, under: str) -> float | None:
        """Return how much faster one ran than another; None when one did not run."""
        if over not in self.seconds or under not in self.seconds:
            return None
        return self.seconds[under] / self.seconds[over]

    def percent_of(self, roof: Roofline | None) -> float | None:
        """Return the speed of the best product beside the bound of copying and reading."""
        rows, columns, entries = (self.facts[name] for name in ("rows", "columns", "entries"))
        nbytes, read = (count(rows, columns, entries) for count in (spmv_bytes, spmv_read_bytes))
        return roof.percent_of_roof(nbytes, 0.0, self.seconds["tuned"], read=read) if roof else None

    def record(self, copy_gbs: float, roof: Roofline) -> dict[str, Any]:
        """Return what goes into the metrics."""
        times = {f"{name}_ms": 1e3 * seconds for name, seconds in self.seconds.items()}
        chosen = {f"{name}_grouping": list(grouping) for name, grouping in self.groupings.items()}
        share = 100.0 * self.minimum_gbs / copy_gbs if copy_gbs else None
        bounds = {"read": self.percent_of(roof), "same_size": self.percent_of(self.same_size)}
        shares = {"percent_of_copy": share} | {f"percent_of_{name}_bound": value for name, value in bounds.items()}
        return self.facts | times | chosen | shares | {"tuned_over_peer": self.ratio("tuned", "peer")}


def _measure(context: Context, name: str, matrix: Any, base: Schedule, rounds: int) -> _Result:
    """Measure one matrix."""
    ours = SparseMatrix.from_scipy(context, matrix)  # of one name, so that all matrices share their compiled code
    rng = np.random.default_rng(2)
    x, y = context.dat(ours.columns, rng.random(matrix.shape[1]), "x"), context.dat(ours.rows, name="y")
    schedules, groupings = {"auto": base}, {}
    trial = ours.product(x, y, base)
    tune(trial, record=False)
    schedules["tune"] = trial.schedule
    if groupable(context):
        groupings = _groupings(context, ours.product(x, y, base), base, ours.entries)
        schedules |= {key: schedule_of(grouping, base) for key, grouping in groupings.items()}
    loops = {key: ours.product(x, y, schedule) for key, schedule in schedules.items()}
    runs: dict[str, Run] = dict(loops)
    peer = usual_library(context, matrix, x.read())
    if peer is not None and peer.clock is None:
        runs["peer"] = peer.run
    others = _layouts(context, matrix, x.read())
    runs |= {key: loop for key, (loop, _) in others.items()}
    seconds = dict(zip(runs, time_calls(context, *runs.values(), rounds=rounds), strict=True))
    if peer is not None and peer.clock is not None:
        seconds["peer"] = peer.clock(peer.run, rounds)
    best = min((key for key in loops if key in ("auto", "tune", "online")), key=lambda key: seconds[key])
    seconds["tuned_csr"] = seconds[best]
    seconds["tuned"] = min(seconds[best], *(seconds[key] for key in others))
    if "exhaustive" in seconds:
        seconds["exhaustive"] = min(seconds[key] for key in loops)
    loops[best]()
    expected = matrix @ x.read()
    block = groupings["online"].rows if groupings else _CPU_BLOCK
    traffic = product_traffic(matrix.indptr, matrix.indices, matrix.shape[1], block=block)
    gbs = traffic.gbs(seconds["tuned"])
    facts = _shape(matrix) | {
        "error": float(abs(y.read() - expected).max() / max(abs(expected).max(), 1e-300)),
        **{f"{key}_padding": padding for key, (_, padding) in others.items()},
        "peer": peer.name if peer is not None else None,
        "gflops": traffic.gflops(seconds["tuned"]),
        **{f"{kind}_gbs": value for kind, value in gbs.items()},
    }
    report = replace(loops[best].report(), name=name, calls=1, seconds=seconds["tuned_csr"])
    own = meter_of_size(context.device, context.threads, spmv_bytes(matrix.shape[0], matrix.shape[1], int(matrix.nnz)))
    same_size = best_roof([own.measure()]) if own else None
    return _Result(name, seconds, facts, report, gbs["minimum"], same_size, groupings)


def _layouts(context: Context, matrix: Any, x: np.ndarray) -> dict[str, tuple[Loop, float]]:
    """Return the products in other layouts than CSR, each with vectors of its own, and their places an entry."""
    found: dict[str, tuple[Loop, float]] = {}
    for name, layout in (("sliced_ell", context.row_layout()), ("row_grouped", RowGroupedCSR())):
        ours = SparseMatrix.from_scipy(context, matrix, layout=layout)
        if ours.padding >= _MOST_PADDING:
            continue
        given, result = context.dat(ours.columns, x, "x"), context.dat(ours.rows, name="y")
        for schedule in product_schedules(ours):
            found["two_rows" if schedule.pairs else name] = ours.product(given, result, schedule), ours.padding
    return found


def _groupings(context: Context, loop: Loop, base: Schedule, entries: int) -> dict[str, Grouping]:
    """Return what the rule, the online tuner after some calls, and trying everything choose."""
    tuner, held = online(loop)
    surface = exhaustive(context, loop, base)
    after = {f"online_{n}": held[min(n, len(held)) - 1] for n in AFTER}
    best = {"exhaustive": min(surface, key=lambda g: surface[g])} if surface else {}
    return {"spec_rule": fixed_rule(loop.over.size, entries), **after, "online": tuner.best, **best}


def _shape(matrix: Any) -> dict[str, Any]:
    lengths = np.diff(matrix.indptr)
    return {
        "rows": matrix.shape[0], "columns": matrix.shape[1], "entries": int(matrix.nnz),
        "row_mean": float(lengths.mean()), "row_std": float(lengths.std()), "row_longest": int(lengths.max()),
    }  # fmt: skip


def _mean(ratios: Sequence[float | None]) -> float | None:
    """Return the geometric mean of the ratios there are."""
    known = [ratio for ratio in ratios if ratio]
    return exp(sum(log(ratio) for ratio in known) / len(known)) if known else None


# -------------------------------------------------------------------------------------- the benchmark


@dataclass(frozen=True)
class SpmvOptions(Scheduled):
    """Options of the benchmark ``spmv``."""

    cells: str = cells_option("Entries of a matrix in millions, and mesh files: 20 or 0.5,wing.su2.", "N,FILE,...")
    rounds: int = rounds_option()


class SpmvBench:
    """Time of ``y = A x`` in double precision for matrices of meshes, finite elements, links and bands.

    ``--cells`` gives the entries of a matrix in millions, and mesh files whose dual graphs are measured too:
    ``20,wing.su2.gz``. All ratios are of speed: above 1, the first is faster.
    """

    title = "Sparse matrix times vector: rule, tuners and the device's library"
    options = SpmvOptions

    def run(self, options: SpmvOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.context()
        context.tuning = False
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: there is nothing to time")
        default = MILLIONS_CPU if context.device.name == "cpu" else MILLIONS
        meter = meter_for(context.device, context.threads)
        found = [meter.measure(3)]
        results: list[_Result] = []
        for name, matrix in _matrices(options.cells, default):
            results.append(_measure(context, name, matrix, options.schedule, options.rounds or ROUNDS))
            found.append(meter.measure(3))
            tell(_line(results[-1]))
        copy, roof = median(item.copy_gbs for item in found), best_roof(found)
        return Record(
            case="spmv",
            model="csr",
            device=context.device.name,
            device_name=device_name(context),
            precision="float64",
            sizes={"n": sum(result.facts["entries"] for result in results)},
            copy_gbs=copy,
            seconds=sum(result.seconds["tuned_csr"] for result in results),
            metrics=_metrics(results, copy, roof) | {"threads": context.threads},
            loops=_rows(results, copy),
            command=options.command,
        )


def _metrics(results: list[_Result], copy: float, roof: Roofline) -> dict[str, Any]:
    """Return the geometric means, then each matrix."""
    ratios = {
        "tuned_over_peer": ("tuned", "peer"),
        "auto_over_peer": ("auto", "peer"),
        "tuned_csr_over_peer": ("tuned_csr", "peer"),
        "auto_over_tuned_csr": ("auto", "tuned_csr"),
        "spec_rule_over_tuned_csr": ("spec_rule", "tuned_csr"),
        "tune_over_exhaustive": ("tune", "exhaustive"),
        **{f"online_after_{n}": (f"online_{n}", "exhaustive") for n in AFTER},
    }
    shares = [100.0 * result.minimum_gbs / copy for result in results] if copy else []
    means = {key: _mean([result.ratio(*pair) for result in results]) for key, pair in ratios.items()}
    bounds = {"percent_of_read_bound": _mean([result.percent_of(roof) for result in results])}
    bounds["percent_of_same_size_bound"] = _mean([result.percent_of(result.same_size) for result in results])
    each = {result.name: result.record(copy, roof) for result in results}
    return {"percent_of_copy": _mean(shares), **bounds, **means, **each}


def _rows(results: list[_Result], copy: float) -> list[LoopRow]:
    return loop_rows([result.report for result in results], copy)


def _line(result: _Result) -> str:
    shown = ("auto", "spec_rule", "tune", "online", "exhaustive", "sliced_ell", "two_rows", "row_grouped", "peer")
    times = ", ".join(f"{key} {1e3 * result.seconds[key]:.3f}" for key in shown if key in result.seconds)
    return f"{result.name}: {result.facts['entries']:,} entries, {result.minimum_gbs:.1f} GB/s; ms: {times}"
