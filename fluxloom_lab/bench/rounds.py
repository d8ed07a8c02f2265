"""Timed rounds of a benchmark, each between two measurements of the memory, and what each loop did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from fluxloom.cli.runs.summary import difference
from fluxloom.comm.base import Comm
from fluxloom.device.bandwidth import Bandwidth, meter_for
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.run.report import LoopReport
from fluxloom.perf.stopwatch import Run, Stopwatch
from fluxloom_lab.bench.base import Tell

__all__ = ["Rounds", "measure_rounds", "profiled", "race", "slowest", "stopwatch", "summed"]

Reports = Callable[[], Sequence[LoopReport]]
"""Returns the counters of every loop."""

_PASSES = 3
_ROUND_SECONDS, _MOST_CALLS = 0.05, 200


@dataclass(frozen=True)
class Rounds:
    """What some rounds took.

    Attributes
    ----------
    times
        Seconds of each round.
    copies
        The memory, before the first round and after each; empty where loops run as Python.
    loops
        What each loop did in one round: the median of the timed ones where keeping times is free, else a round
        of its own.
    steps
        Iterations that were run in all.
    """

    times: list[float]
    copies: list[Bandwidth]
    loops: list[LoopReport]
    steps: int

    @property
    def seconds(self) -> float:
        """Median time of a round."""
        return median(self.times)

    @property
    def copy_gbs(self) -> float:
        """Median copy bandwidth; 0 where it was not measured."""
        return median(item.copy_gbs for item in self.copies) if self.copies else 0.0

    @property
    def triad_gbs(self) -> float | None:
        """Median bandwidth of ``c = a + s b``."""
        return median(item.triad_gbs for item in self.copies) if self.copies else None

    @property
    def copy_plain_gbs(self) -> float | None:
        """Median bandwidth of a copy with ordinary stores."""
        return median(item.copy_plain_gbs for item in self.copies) if self.copies else None


def measure_rounds(
    context: Runtime, advance: Callable[[int], object], reports: Reports, steps: int, rounds: int,
    tell: Tell, pace: Callable[[float], str],
) -> Rounds:  # fmt: skip
    """Time rounds of some iterations; everything must be compiled already.

    Times of loops are kept in the timed rounds only where that is free: elsewhere one more round follows, which
    keeps them. On several ranks a round begins on all of them at once and takes as long as on the slowest; the
    counters and the memory are those of this rank. Collective.

    Parameters
    ----------
    advance
        Runs a number of iterations, or starts them.
    reports
        The counters.
    steps
        Iterations a round.
    pace
        Returns the time of a round in words.
    """
    meter = meter_for(context.device, context.threads) if context.device.native else None
    watch = stopwatch(context)
    times: list[float] = []
    read: list[list[LoopReport]] = []
    copies = [meter.measure(_PASSES)] if meter else []
    for number in range(1, rounds + 1):
        before = list(reports())
        times.append(watch.timed(lambda: advance(steps)))
        read.append(difference(list(reports()), before))
        if meter:
            copies.append(meter.measure(_PASSES))
        beside = f", copy {copies[-1].copy_gbs:.1f} GB/s" if copies else ""
        tell(f"round {number}/{rounds}: {pace(times[-1])}{beside}")
    if any(context.comm.allgather(context.device.items)):
        loops = profiled(context, lambda: advance(steps), reports)
        return Rounds(times, copies, loops, steps * (rounds + 1))
    return Rounds(times, copies, _median(read), steps * rounds)


def stopwatch(context: Runtime, rounds: int = 5, **options: Any) -> Stopwatch:
    """Return a stopwatch of the device and the ranks of a context. All that it times is collective."""
    return Stopwatch(rounds, wait=context.synchronize, ranks=context.comm, **options)


def race(context: Runtime, runs: Sequence[Run], rounds: int = 5, seconds: float = 0.0) -> list[float]:
    """Return the least seconds of a call of each function, their rounds in turn: always those of the slowest rank."""
    each = seconds or _ROUND_SECONDS
    return stopwatch(context, rounds, round_seconds=each, most_calls=_MOST_CALLS, counts=min).race(runs)


def summed(comm: Comm, value: float) -> float:
    """Return the sum over the ranks. Collective."""
    return float(comm.reduce(np.array([value], dtype=np.float64), "sum")[0])


def slowest(comm: Comm, seconds: float) -> float:
    """Return the time of the slowest rank. Collective."""
    return float(comm.reduce(np.array([seconds]), "max")[0])


def profiled(context: Runtime, run: Callable[[], object], reports: Reports) -> list[LoopReport]:
    """Run something while the time of each loop is measured; return what each loop did."""
    before, was = list(reports()), context.profile
    context.profile = True
    try:
        run()
        return difference(list(reports()), before)
    finally:
        context.profile = was


def _median(rounds: list[list[LoopReport]]) -> list[LoopReport]:
    """Return each loop's counters with the median of its times."""
    columns = zip(*rounds, strict=True)
    return [replace(column[0], seconds=median(item.seconds for item in column)) for column in columns]
