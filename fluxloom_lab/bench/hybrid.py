"""The benchmark of several devices in one process: which split of the rows is best for each kernel, and does it pay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import available_threads
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.parts import Part
from fluxloom.linalg.mixed.balance import KINDS, balance_kernel
from fluxloom.linalg.mixed.hybrid import HybridMatrix, OrderedRows, ordered_rows
from fluxloom.linalg.mixed.report import KernelBalance
from fluxloom.linalg.mixed.team import DeviceTeam
from fluxloom.linalg.mixed.two_level import GatheredSolver, GatherTimes
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import Stop
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom_lab.bench.base import Record, Tell, count_gpus, device_name
from fluxloom_lab.bench.options import BenchOptions, cells_option, rounds_option
from fluxloom_lab.bench.rounds import slowest
from fluxloom_lab.options import option
from fluxloom_lab.problems.matrices import tet_dual

__all__ = ["HybridBench", "rows_from_text"]

ROUNDS, BUDGET = 3, 8
SIZES, SIZES_CPU = "200k,800k,3.2M", "50k,200k"

_ENTRIES = 5
"""Of a row: a tetrahedron and its four neighbours."""

_WORKERS, _GATHERED = 4, 1_000_000
"""Ranks of a group, as in the thesis, and rows of the largest matrix that is gathered."""

_SOLVES = 3
_RTOL, _MOST = 1e-5, 400
"""As the thesis stops; more iterations say nothing new about the time of one."""

_UNITS = {"k": 1_000, "m": 1_000_000}

Row = dict[str, Any]


@dataclass(frozen=True)
class HybridOptions(BenchOptions):
    """Options of the benchmark ``hybrid``."""

    devices: str = option("", metavar="NAMES", help="Devices of one process: cuda:0,cpu:12.")
    strong: str = option("", metavar="ROWS,...", help="Rows of the matrices: 200k,2M.")
    cells: str = cells_option("The same.", "ROWS,...")
    rounds: int = rounds_option()


class HybridBench:
    """Divides the rows of the Laplacian of a tetrahedral mesh among devices that work at the same time.

    For each size and each kernel a tabu search on the measured time, against the fastest device alone; then a solve
    with the best split for an iteration, and with that device; at last gather, solve, scatter: four ranks that each
    have a part of the rows, and the first device, which solves for them.
    """

    title = "Products, sums and solves on several devices of one process at once: the best split, and does it pay"
    options = HybridOptions

    def run(self, options: HybridOptions, tell: Tell) -> Record:
        """Measure."""
        names = [word.strip() for word in options.devices.split(",") if word.strip()]
        if len(names) < 2:
            raise CaseError("the benchmark hybrid compares devices: name them, as in --devices cuda:0,cpu:12")
        if options.device != "cpu" or options.threads:
            raise CaseError("the benchmark hybrid takes its devices, and their threads, from --devices alone")
        with DeviceTeam(names) as team:
            contexts = [Context(device) for device in team.devices]
            default = SIZES if any(count_gpus(context) for context in contexts) else SIZES_CPU
            sizes = [rows_from_text(word) for word in (options.strong or options.cells or default).split(",")]
            runs = [_Size(options, team, rows, tell).run() for rows in sizes]
        fitting = [run for run in runs if run.rows.size <= _GATHERED] or [min(runs, key=lambda run: run.rows.size)]
        largest = max(runs, key=lambda run: run.rows.size)
        metrics = {
            "devices": names, "axpy_gbs_each": largest.bandwidths,
            "kernels": [row for run in runs for row in run.kernels()],
            "solves": [row for run in runs for row in run.solves],
            "gathered": _gathered(max(fitting, key=lambda run: run.rows.size).rows, names[0], tell),
            "trace": [row for run in runs for row in run.trace()],
        }  # fmt: skip
        return Record(
            case="hybrid",
            model="Laplacian of a tetrahedral mesh",
            device="+".join(dict.fromkeys(context.device.name for context in contexts)),
            device_name=" + ".join(device_name(context) for context in contexts),
            precision="float64",
            sizes={"n": largest.rows.size},
            copy_gbs=0.0,
            seconds=largest.found["cg"].seconds,
            metrics=metrics,
            loops=(),
            command=options.command,
            gpus=len(
                {str(getattr(c.device, "identity", "")) or names[k] for k, c in enumerate(contexts) if count_gpus(c)}
            ),
        )


def rows_from_text(text: str) -> int:
    """Return a number of rows like ``200k`` or ``12.8M``.

    Raises
    ------
    CaseError
        If it is none from 100 to 200 million.
    """
    word = text.strip().lower()
    unit = _UNITS.get(word[-1:], 1)
    try:
        count = round(float(word[:-1] if unit > 1 else word) * unit)
    except (ValueError, OverflowError):
        count = 0
    if not 100 <= count <= 200_000_000:
        raise CaseError(f"rows {text.strip()!r}: a number like 200k or 12.8M is wanted, from 100 to 200M")
    return count


@dataclass(frozen=True)
class _Solve:
    """One solve: iterations, seconds and the solution."""

    iterations: int
    seconds: float
    x: np.ndarray[Any, np.dtype[np.float64]]


class _Size:
    """What is measured with one matrix."""

    def __init__(self, options: HybridOptions, team: DeviceTeam, rows: int, tell: Tell) -> None:
        self.team, self.tell, self.rounds = team, tell, options.rounds or ROUNDS
        start = time.perf_counter()
        self.rows = ordered_rows(tet_dual(_ENTRIES * rows))
        tell(f"{self.rows.size:,} rows, {self.rows.matrix.nnz:,} entries: {time.perf_counter() - start:.1f} s to make")
        self.found: dict[str, KernelBalance] = {}
        self.solves: list[Row] = []

    def run(self) -> _Size:
        """Search for the split of each kernel, and solve."""
        for kind in KINDS:
            start = time.perf_counter()
            self.found[kind] = balance_kernel(self.rows, self.team, kind=kind, rounds=self.rounds, budget=BUDGET)
            self.tell(f"{list(self.found[kind].lines())[-1]} ({time.perf_counter() - start:.1f} s)")
        cg = self.found["cg"]
        ends = [tuple(float(k == cg.fastest) for k in range(self.team.size)), cg.found.shares]
        single, split = (self._solve(shares) for shares in ends)
        error = float(np.abs(split.x - single.x).max() / np.abs(single.x).max())
        self.solves.append({
            "rows": self.rows.size, "fastest": cg.names[cg.fastest], "alone_s": single.seconds,
            "alone_iterations": single.iterations, "split_shares": list(cg.found.shares), "split_s": split.seconds,
            "split_iterations": split.iterations, "speed_up": single.seconds / split.seconds, "difference": error,
        })  # fmt: skip
        self.tell(
            f"solve: {single.iterations} iterations in {single.seconds:.4g} s alone, {split.iterations} in "
            f"{split.seconds:.4g} s with the split, solutions {error:.1e} apart"
        )
        return self

    def _solve(self, shares: Sequence[float]) -> _Solve:
        """Return the median of some solves from zero with given shares."""
        with HybridMatrix(self.rows, self.team, shares) as matrix:
            b, x = matrix.vector(_right_side(self.rows)), matrix.vector()
            solver = matrix.solver(b, x, preconditioner=Jacobi(), stop=Stop(rtol=_RTOL, iterations=_MOST))
            found = []
            for _ in range(1 + _SOLVES):
                x.write(0.0)
                found.append(Stopwatch().result(solver.solve))
            return _Solve(found[-1][0].iterations, median(seconds for _, seconds in found[1:]), x.read())

    def kernels(self) -> list[Row]:
        """Return a row for each kernel: the answer."""
        return [
            {
                "rows": self.rows.size, "kernel": kind, "shares": list(found.shares), "pays": found.pays,
                "speed_up": found.speed_up, "ideal": found.ideal, "split_shares": list(found.found.shares),
                "split_ms": 1e3 * found.again[1], "fastest_ms": 1e3 * found.again[0],
                "alone_ms": [1e3 * seconds for seconds in found.alone],
                "of_sum_of_rates": found.found.efficiency,
            }
            for kind, found in self.found.items()
        ]  # fmt: skip

    @property
    def bandwidths(self) -> list[float]:
        """GB/s of each device alone in ``y = a x + y``: two numbers read and one written for each row."""
        return [24e-9 * self.rows.size / seconds for seconds in self.found["axpy"].alone]

    def trace(self) -> list[Row]:
        """Return a row for everything that was measured."""
        return [
            {
                "rows": self.rows.size, "kernel": kind, "shares": list(attempt.shares),
                "ms": None if attempt.error else 1e3 * attempt.seconds, "busy_ms": [1e3 * b for b in attempt.busy],
                "error": attempt.error,
            }
            for kind, found in self.found.items()
            for attempt in found.trace
        ]  # fmt: skip


# -------------------------------------------------------------------------------- gather, solve, scatter


def _right_side(rows: OrderedRows) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(1).standard_normal(rows.size)


def _gathered(rows: OrderedRows, device: str, tell: Tell) -> list[Row]:
    """Return what gathering and scattering cost when ranks with a thread each let one device solve."""
    workers = max(2, min(_WORKERS, available_threads()))
    found = run_threads(workers, _group, rows, device)
    times, iterations = found[0]
    row = {
        "rows": rows.size, "ranks": workers, "device": device, "iterations": iterations,
        "gather_ms": 1e3 * times.gather / times.calls, "solve_ms": 1e3 * times.solve / times.calls,
        "scatter_ms": 1e3 * times.scatter / times.calls, "overhead_percent": 100 * times.overhead,
    }  # fmt: skip
    tell(
        f"gather, solve, scatter: {workers} ranks, {iterations} iterations on {device}, {row['solve_ms']:.4g} ms; "
        f"gather {row['gather_ms']:.4g} ms, scatter {row['scatter_ms']:.4g} ms: {row['overhead_percent']:.2f} % of it"
    )
    return [row]


def _group(comm: Comm, rows: OrderedRows, device: str) -> tuple[GatherTimes, int]:
    """Return where the time of a solve goes, on this rank, and its iterations. Collective."""
    context = Context("cpu", threads=1, comm=comm)
    first, end = (k * rows.size // comm.size for k in (comm.rank, comm.rank + 1))
    owned = end - first
    cells = context.set(Part(0, owned, owned, owned, owned, np.arange(first, end), rows.size), "rows")
    b, x = context.dat(cells, _right_side(rows)[first:end], "b"), context.dat(cells, np.zeros(owned), "x")
    solver = GatheredSolver(
        rows.matrix[first:end], b, x, device=device, preconditioner=Jacobi(), stop=Stop(rtol=_RTOL, iterations=_MOST)
    )
    iterations = 0
    for number in range(1 + _SOLVES):
        x.write(np.zeros(owned))
        slowest(comm, 0.0)
        iterations = solver.solve().iterations
        if not number:
            solver.times = GatherTimes()
    return solver.times, iterations
