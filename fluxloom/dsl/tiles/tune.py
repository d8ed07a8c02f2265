"""The size of tiles by measurement: search and record."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.tuning import TuningFile
from fluxloom.dsl.run.snapshot import Snapshot
from fluxloom.dsl.tiles.tiling import TiledChain
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom.perf.tuner import Knob, Point, SearchResult, hill_climb

__all__ = ["tune_tiles"]

_STEPS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Sizes that are tried, in units of the one that the caches suggest."""

_GAIN = 0.02


def tune_tiles(
    chain: TiledChain,
    *,
    rounds: int = 5,
    budget: int = 6,
    record: bool = True,
    path: str | Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchResult:
    """Measure tiles of several sizes on the data of a chain, and use the fastest from now on.

    The search starts at the size in force and moves on while that helps. Values are put back before every
    round and at the end.

    Parameters
    ----------
    rounds
        Rounds of a median.
    budget
        Sizes that are tried, at most.
    record
        Whether the winner goes to the tuning file, where the same chain finds it when it chooses its tiles.
    path
        The file; by default that of `TuningFile`.
    clock
        Returns the time in seconds.

    Returns
    -------
    SearchResult
        Points are ``{"tile": elements}``.

    Raises
    ------
    PlanError
        If the chain does not run in tiles.
    """
    start = max(1, chain.counters.elements)
    lead = chain.lead
    assert lead is not None
    saved = Snapshot(d for loop in chain.loops for d in loop.written)
    watch = Stopwatch(rounds=rounds, restore=saved.restore, warm=2, clock=clock, wait=chain.context.synchronize)
    sizes = tuple(sorted({min(max(1, lead.size), max(1, round(start * f))) for f in _STEPS} | {start}))

    def measure(point: Point) -> float:
        chain.retile(-(-lead.size // point["tile"]))
        return watch.median(chain)

    try:
        found = hill_climb([Knob("tile", sizes)], measure, start={"tile": start}, budget=budget, gain=_GAIN)
    finally:
        saved.restore()
    best = int(found.best.point["tile"])
    chain.retile(max(1, -(-lead.size // best)))
    if record:
        file = TuningFile(path)
        file.put(chain.tuning_key, chain.name, Schedule(block=best), found.best.seconds)
    return found
