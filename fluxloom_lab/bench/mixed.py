"""The benchmark of unlike ranks: which shares are best, what a model says of that, and how near the sum of rates is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

import numpy as np

from fluxloom.cases.files.application import measured_shares
from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.dsl.run.hybrid import DistributedProgram, TimedComm
from fluxloom.flows.airfoil.flow import airfoil_part
from fluxloom.machine.ranks import rank_devices_of
from fluxloom.perf.shares import shares_from_weights, weights_from_run
from fluxloom.solvers.airfoil.flow import Airfoil, AirfoilConstants
from fluxloom_lab.bench.base import Record, Tell, cells_from_text, steps
from fluxloom_lab.bench.options import (
    Divided,
    Laid,
    Scheduled,
    cells_option,
    fused_option,
    iterations_option,
    rounds_option,
)
from fluxloom_lab.bench.rounds import slowest, stopwatch
from fluxloom_lab.options import option
from fluxloom_lab.studies.hybrid import LoopRate, everyone, linear_times, optimal_weight

__all__ = ["Attempt", "MixedBench", "SideBySide", "break_even"]

ROUNDS, WARM = 5, 4

_SECONDS = 0.3
"""That a round takes at least, where the number of iterations is not given."""

_MOST_ITERATIONS = 200
_PROBE = 720_000
"""Cells of the mesh on which the first shares are found."""

_AROUND = (0.7, 0.85, 1.2, 1.4)
"""Factors on the share of the slow ranks, at which the neighbourhood of the predicted optimum is measured."""

_ALONE = 0.25
"""Part of the fastest rank's speed from which on a rank is measured alone as well."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Attempt:
    """One division of the mesh; times are those of an iteration.

    Attributes
    ----------
    cells
        That each rank owns.
    paces
        For each round the seconds of the slowest rank.
    computing
        For each round the seconds that each rank computed while all ran, waiting for others not counted.
    transport
        How messages travel.
    """

    cells: tuple[int, ...]
    paces: tuple[float, ...]
    computing: tuple[tuple[float, ...], ...]
    transport: str

    @property
    def seconds(self) -> float:
        """Median over the rounds."""
        return median(self.paces)

    @property
    def busy(self) -> tuple[float, ...]:
        """Median over the rounds, of each rank."""
        return tuple(float(b) for b in np.median(self.computing, axis=0))

    @property
    def shares(self) -> tuple[float, ...]:
        """Part of the cells that each rank has."""
        return shares_from_weights(self.cells)

    @property
    def rates(self) -> tuple[float, ...]:
        """Cells a second of each rank while all ran."""
        return tuple(count / busy for count, busy in zip(self.cells, self.busy, strict=True))

    @property
    def efficiency(self) -> float:
        """Speed of all as a part of the sum of their rates, measured while all run: the median over the rounds."""
        rates = [sum(count / busy for count, busy in zip(self.cells, row, strict=True)) for row in self.computing]
        return median(sum(self.cells) / (pace * rate) for pace, rate in zip(self.paces, rates, strict=True))

    def row(self) -> Row:
        """Return the numbers for a record."""
        return {
            "cells": sum(self.cells), "shares": list(self.shares), "ms": 1e3 * self.seconds,
            "ms_best": 1e3 * min(self.paces), "ms_worst": 1e3 * max(self.paces),
            "busy_ms": [1e3 * busy for busy in self.busy], "of_sum_of_rates": self.efficiency,
            "transport": self.transport,
        }  # fmt: skip


@dataclass(frozen=True)
class MixedOptions(Divided, Scheduled, Laid):
    """Options of the benchmark ``mixed``."""

    cells: str = cells_option("Size of the mesh: 720k, 2.88M or I,J.")
    strong: str = option("", metavar="CELLS,...", help="Several sizes: 720k,2.88M.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    fused: bool = fused_option()


class MixedBench:
    """Divides the Airfoil mesh among unlike ranks in several ways, for each of some sizes.

    First by a trial on a small mesh, then by the rates of that run, then as the model predicts from both (times
    linear in the cells, with a fixed part), then around the prediction. The best of these is measured once more, and
    between its rounds ranks alone, while the others sleep, unless they are much slower than the fastest.
    """

    title = "Airfoil on unlike ranks, as a GPU and a CPU: shares, sum of rates, model"
    options = MixedOptions

    def run(self, options: MixedOptions, tell: Tell) -> Record:
        """Measure."""
        if options.comm.size == 1:
            raise CaseError("the benchmark mixed compares ranks: start several, as with --ranks cuda:0,cpu:14")
        words, option = (options.strong.split(","), "--strong") if options.strong else ([options.cells], "--cells")
        sizes = [cells_from_text(word.strip(), "720k", option) for word in words]
        crew = rank_devices_of(options.context())
        attempts: list[Row] = []
        found = [_Size(options, size, tell).run(attempts) for size in sizes]
        best = max(found, key=lambda row: row["cells"])
        return Record(
            case="mixed",
            model="euler",
            **crew.place,
            precision="float64",
            sizes={"cells": best["cells"]},
            copy_gbs=0.0,
            seconds=best["ms"] / 1e3,
            metrics={"crew": crew.record(), "pays_from_cells": break_even(found), "sizes": found, "attempts": attempts},
            loops=(),
            command=options.command,
        )


def break_even(rows: Sequence[Row]) -> float | None:
    """Return the cells from which on the ranks together are faster than the fastest alone; None: for none of them.

    Between two sizes of which only the larger pays, the gain is taken to be linear in the logarithm of the cells.
    """
    ordered = sorted(rows, key=lambda row: row["cells"])
    gains = [row["gain_percent"] for row in ordered]
    if not gains or gains[-1] <= 0:
        return None
    below = [k for k, gain in enumerate(gains) if gain <= 0]
    if not below:
        return float(ordered[0]["cells"])
    k = below[-1]
    low, high = np.log(ordered[k]["cells"]), np.log(ordered[k + 1]["cells"])
    return float(np.exp(low + (high - low) * gains[k] / (gains[k] - gains[k + 1])))


class _Size:
    """What is measured on one mesh. All methods are collective."""

    def __init__(self, options: MixedOptions, size: tuple[int, int], tell: Tell) -> None:
        self.options, self.size, self.tell = options, size, tell
        self.comm, self.cells = options.comm, 3 * size[0] * size[1]

    def run(self, attempts: list[Row]) -> Row:
        """Measure, add a row for each division to ``attempts``, and return what came of it."""
        self.tell(f"{self.cells:,} cells")
        runs = [self._attempt(self._first())]
        second = shares_from_weights(weights_from_run(runs[0].shares, runs[0].busy))
        runs.append(self._attempt(second))
        fast = _fast(runs[-1])
        overhead, seconds = zip(*linear_times([(run.cells, run.busy) for run in runs]), strict=True)
        rate = LoopRate(self.cells, seconds, overhead)
        model = optimal_weight([[rate]], everyone(self.comm.size), fast, bounds=(1 / 1024, 1024.0))
        runs.append(self._attempt(model.shares))
        for factor in _AROUND:
            runs.append(self._attempt(_scaled(model.shares, fast, factor)))
        attempts += [run.row() for run in runs]
        best = min(runs, key=lambda run: run.seconds)
        beside = self._beside(best)
        return best.row() | {
            "predicted_shares": list(model.shares), "predicted_ms": 1e3 * model.seconds,
            "at_predicted_shares_ms": 1e3 * runs[2].seconds,
            "together_ms": 1e3 * beside.together,
            "alone_ms": [1e3 * seconds if seconds else None for seconds in beside.alone],
            "alone_best_ms": 1e3 * beside.fastest, "gain_percent": 100 * beside.gain,
        }  # fmt: skip

    def _first(self) -> tuple[float, ...]:
        """Return the shares to begin with: those that are given, or what a smaller mesh suggests."""
        given = self.options.shares
        if not isinstance(given, str):
            return shares_from_weights(given)
        small = self.size if self.cells <= _PROBE else cells_from_text(str(_PROBE), "")
        context = self.options.context()
        return measured_shares(context, lambda here, shares: self._runner(here, small, shares).iterate)

    def _runner(
        self, context: Context, size: tuple[int, int] | None = None, shares: Sequence[float] | None = None
    ) -> Airfoil:
        options, shape = self.options, size or self.size
        mesh = airfoil_part(context, *shape, options.partition, shares)
        return Airfoil(
            context, mesh, AirfoilConstants(), schedule=options.schedule, fused=options.fused,
            layout=options.chosen_layout,
        )  # fmt: skip

    def _attempt(self, shares: Sequence[float]) -> Attempt:
        """Return what ranks with these shares take."""
        gc.collect()
        timed = TimedComm(self.comm)
        context = self.options.context(comm=timed)
        runner = self._runner(context, shares=shares)
        report = runner.partition
        assert report is not None
        paces, computing = _alternate(timed, context, runner, self.options)
        found = Attempt(
            next(parts for parts in report.sets if parts.name == report.on).owned, paces, computing,
            "/".join(dict.fromkeys(e.transport for e in runner.chain.exchanges())),
        )  # fmt: skip
        self.tell(
            f"  shares {', '.join(f'{share:.4f}' for share in found.shares)}: {1e3 * found.seconds:.4g} ms, busy "
            f"{', '.join(f'{1e3 * b:.4g}' for b in found.busy)}; {100 * found.efficiency:.1f} % of the sum of rates"
        )
        return found

    def _beside(self, run: Attempt) -> SideBySide:
        """Measure a division once more, and between its rounds ranks alone with the whole mesh, while others sleep.

        Side by side, because the speed of one GPU alone may change by several per cent from second to second.
        Ranks that are too slow for it to matter are left out.
        """
        gc.collect()
        comm, options = self.comm, self.options
        context = options.context(comm=comm)
        runner = self._runner(context, shares=run.shares)
        count = _count(context, runner, options)
        chosen = [rank for rank, rate in enumerate(run.rates) if rate >= _ALONE * max(run.rates)]
        lone = _Lone(options, self._runner) if comm.rank in chosen else None
        rows: list[tuple[float, ...]] = []
        for _ in range(options.rounds or ROUNDS):
            alone = [0.0] * comm.size
            for rank in chosen:
                seconds = lone.round() if lone is not None and comm.rank == rank else 0.0
                comm.rest()
                alone[rank] = slowest(comm, seconds)
            rows.append((_round(context, runner, count), *alone))
        found = SideBySide(tuple(rows))
        for rank in chosen:
            self.tell(f"  rank {rank} alone: {1e3 * found.alone[rank]:.4g} ms")
        self.tell(f"  together, measured between: {1e3 * found.together:.4g} ms, {100 * found.gain:+.1f} %")
        return found


class _Lone:
    """The whole mesh on this rank alone."""

    def __init__(self, options: MixedOptions, make: Callable[[Context], Airfoil]) -> None:
        self.context = options.context(comm=SelfComm())
        self.runner = make(self.context)
        self.count = _count(self.context, self.runner, options)

    def round(self) -> float:
        """Return the seconds of an iteration."""
        return _round(self.context, self.runner, self.count)


@dataclass(frozen=True)
class SideBySide:
    """Seconds of an iteration for each round: of all ranks together, then of each alone (0: not measured)."""

    rows: tuple[tuple[float, ...], ...]

    @property
    def together(self) -> float:
        """Median over the rounds."""
        return median(row[0] for row in self.rows)

    @property
    def alone(self) -> tuple[float, ...]:
        """Median over the rounds, of each rank."""
        return tuple(median(times) for times in zip(*(row[1:] for row in self.rows), strict=True))

    @property
    def fastest(self) -> float:
        """The least of those that were measured alone."""
        return min(seconds for seconds in self.alone if seconds)

    @property
    def gain(self) -> float:
        """How much faster all together are than the fastest alone: the median over the rounds."""
        best = self.alone.index(self.fastest) + 1
        return median(row[best] / row[0] for row in self.rows) - 1.0


# ---------------------------------------------------------------------------------------- rounds


def _round(context: Context, runner: Airfoil, count: int) -> float:
    """Return the seconds of an iteration, on several ranks of the slowest. Collective."""
    return stopwatch(context).timed(runner.iterate, count) / count


def _count(context: Context, runner: Airfoil, options: MixedOptions) -> int:
    """Warm up and return the iterations of a round. Collective."""
    steps(runner, WARM)
    wanted = ceil(_SECONDS / max(_round(context, runner, WARM), 1e-9))
    return options.iterations or max(WARM, min(_MOST_ITERATIONS, wanted))


def _alternate(
    timed: TimedComm, context: Context, runner: Airfoil, options: MixedOptions
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Return for each round the seconds of an iteration, and for how long each rank computed in one. Collective.

    The second comes from rounds in between, in which a rank waits for its device before it waits for others.
    """
    count = _count(context, runner, options)
    program = DistributedProgram(timed, runner.iterate, count)
    paces, table = [], []
    for _ in range(options.rounds or ROUNDS):
        timed.settle = None
        paces.append(_round(context, runner, count))
        timed.settle = context.synchronize
        table.append(program.measure().busy)
    busy = timed.reduce(np.array(table), "max")
    return tuple(paces), tuple(tuple(float(b) for b in row) for row in busy)


def _fast(run: Attempt) -> tuple[int, ...]:
    """Return the ranks that are faster than the middle between fastest and slowest; one at least is not."""
    middle = (max(run.rates) * min(run.rates)) ** 0.5
    found = tuple(rank for rank, rate in enumerate(run.rates) if rate > middle)
    return found if 0 < len(found) < len(run.rates) else (0,)


def _scaled(shares: Sequence[float], fast: Sequence[int], factor: float) -> tuple[float, ...]:
    """Return shares in which those of the slow ranks are multiplied; they get nine tenths of all at most."""
    slow = sum(share for rank, share in enumerate(shares) if rank not in fast)
    wanted = min(factor * slow, 0.9)
    kept = (1.0 - wanted) / (1.0 - slow)
    return tuple(share * (kept if rank in fast else wanted / slow) for rank, share in enumerate(shares))
