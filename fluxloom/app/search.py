"""A small measured search over the schedules of a loop, for ``fluxloom tune``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.tuning import TuningFile

__all__ = ["Trial", "candidates", "search"]

_BLOCKS = (256, 1024, 4096, 16384)
_LANES = (1, 4, 8)
_LEAST_SECONDS, _MOST_CALLS = 0.05, 50


@dataclass(frozen=True)
class Trial:
    """A schedule and the time of a call; None when the loop cannot run so."""

    schedule: Schedule
    seconds: float | None


def candidates(loop: Loop) -> Iterator[Schedule]:
    """Yield the strategies that are correct for a loop, with the blocks that matter to each, at the default lanes."""
    if not loop.races.racing:
        yield Schedule()
        return
    for strategy in sorted(loop.races.allowed):
        sizes = _BLOCKS if strategy in ("block_colour", "block_permute", "gather") else (0,)
        for block in sizes:
            yield Schedule(strategy=strategy, block=block)


def search(loop: Loop, tell: Callable[[str], None]) -> tuple[Trial, Trial]:
    """Find and record the fastest schedule of a loop on its present data.

    First over strategies and blocks, then over the lanes of the best. The loop keeps the winner; its data
    are advanced by the trials.

    Returns
    -------
    before, best
        The schedule that the cost model chose, and the fastest.
    """
    before = _measure(loop, Schedule())
    default = loop.schedule
    trials = [before]
    for schedule in candidates(loop):
        trials.append(_measure(loop, schedule))
        tell(_line(loop, trials[-1]))
    best = _fastest(trials)
    for lanes in _LANES:
        if lanes != default.lanes:
            trials.append(_measure(loop, replace(best.schedule, lanes=lanes)))
            tell(_line(loop, trials[-1]))
    best = _fastest(trials)
    loop.reschedule(best.schedule)
    chosen = Trial(replace(loop.schedule, threads=0), best.seconds)
    if chosen.seconds is not None:
        TuningFile().put(loop.tuning_key, loop.name, chosen.schedule, chosen.seconds)
    return Trial(default, before.seconds), chosen


def _measure(loop: Loop, schedule: Schedule) -> Trial:
    """Return the time of a call, the best of some."""
    try:
        loop.reschedule(schedule)
        loop()
    except FluxloomError:
        return Trial(schedule, None)
    best, spent, calls = float("inf"), 0.0, 0
    while calls < 3 or (spent < _LEAST_SECONDS and calls < _MOST_CALLS):
        start = time.perf_counter()
        loop()
        seconds = time.perf_counter() - start
        best, spent, calls = min(best, seconds), spent + seconds, calls + 1
    return Trial(schedule, best)


def _fastest(trials: list[Trial]) -> Trial:
    return min(trials, key=lambda trial: trial.seconds if trial.seconds is not None else float("inf"))


def _line(loop: Loop, trial: Trial) -> str:
    schedule, seconds = trial.schedule, trial.seconds
    time_text = f"{1e3 * seconds:9.4f} ms" if seconds is not None else "not possible"
    words = f"{schedule.strategy or 'automatic'} block={schedule.block} lanes={schedule.lanes}"
    return f"{loop.name:<12} {words:<44} {time_text}"
