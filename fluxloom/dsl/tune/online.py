"""Tuning a ragged loop while it does useful work: every call runs it once, most of them as another trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from fluxloom.core.errors import FluxloomError, PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.block import largest_block
from fluxloom.dsl.plan.lanes import choose_grouping, repeat_of
from fluxloom.dsl.plan.tuning import TuningFile
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.tune.runs import record_winner
from fluxloom.perf.ragged import MOST_BLOCK, Grouping, OnlineTuner

__all__ = ["OnlineTrial", "OnlineTuning"]

Elapsed = Callable[[Callable[[], object]], float]
"""Runs something and returns the seconds it took."""


@dataclass(frozen=True)
class OnlineTrial:
    """One call of a loop that is being tuned.

    Attributes
    ----------
    grouping
        How its rows were grouped.
    seconds
        How long it took; None for a call that was not timed, because its kernel was new; infinite for
        a grouping whose kernel could not be made, which did not run.
    """

    grouping: Grouping
    seconds: float | None

    def __str__(self) -> str:
        took = "not timed" if self.seconds is None else f"{1e3 * self.seconds:.4f} ms"
        block, lanes, repeat = self.grouping
        return f"block {block}, lanes {lanes}, repeat {repeat}: {took}"


class OnlineTuning(OnlineTuner):
    """Calls a ragged loop and finds the best grouping of its rows meanwhile.

    ::

        product = OnlineTuning(loop)
        while not converged:
            product()        # the loop, once
            ...

    Each call runs the loop exactly once. The first call of every new grouping is not timed: it loads a
    kernel. When the search is over the loop keeps the best grouping and calls cost nothing more. Two rows an item
    (``Schedule(pairs=True)``) are not among the groupings: `fluxloom.tune` tries them.

    Parameters
    ----------
    loop
        A loop with ragged arguments, on a device of work items.
    limit
        Groupings that are tried, at most.
    record
        Whether the best one goes to the tuning file, where loops of later contexts find it.
    path
        The file; by default that of `TuningFile`.
    elapsed
        Runs a function and returns the seconds; by default the device's own clock.

    Attributes
    ----------
    calls
        What each call did, in order, until the search was over.
    finished, best, seconds
        Whether it is over, the best grouping so far, and its time, infinite before any was timed.

    Raises
    ------
    PlanError
        If the loop has no rows to group here.

    Notes
    -----
    The search is `fluxloom.perf.ragged.OnlineTuner`, after I. Z. Reguly, PhD thesis, Budapest 2014, section 4.5.
    """

    def __init__(
        self,
        loop: Loop,
        *,
        limit: int = 10,
        record: bool = True,
        path: str | Path | None = None,
        elapsed: Elapsed | None = None,
    ) -> None:
        device = loop.context.device
        now = loop.schedule
        self._strategy = loop.strategy if loop.races.racing else None
        if not device.items or choose_grouping(loop.bound, self._strategy, now, now.block) is None:
            raise PlanError(f"{loop.name}: there are no rows to group on {device.name!r}, nothing to tune call by call")
        start = Grouping(min(now.block, MOST_BLOCK), now.lanes, repeat_of(now))
        self.loop, self._base = loop, replace(now, pairs=False)
        self.calls: list[OnlineTrial] = []
        self._file = TuningFile(path) if record else None
        self._elapsed: Elapsed = elapsed or device.elapsed
        self._natives: dict[Grouping, Any] = {}
        self._now: Grouping | None = None
        super().__init__(start, limit=limit, allowed=self._fits)

    def __str__(self) -> str:
        state = "best" if self.finished else "best so far"
        return "\n".join([f"{self.loop.name}: {state} {OnlineTrial(self.best, self.seconds)}", *map(str, self.calls)])

    # --------------------------------------------------------------------------------------- a call
    def __call__(self, **constants: Any) -> Grouping:
        """Run the loop once; return the grouping it ran with."""
        if self.finished:
            self.loop(**constants)
            return self.best
        point, known = self._ready()
        seconds = None
        if known:
            seconds = self._elapsed(partial(self.loop, **constants))
            self.observe(seconds)
        else:
            self.loop(**constants)
        self.calls.append(OnlineTrial(point, seconds))
        if self.finished:
            self._finish()
        return point

    def _ready(self) -> tuple[Grouping, bool]:
        """Give the loop the kernel of the next trial that can run; return it, and whether it ran before."""
        while True:
            point = self.next()
            known = point in self._natives
            try:
                self._switch(point)
                return point, known
            except FluxloomError:
                if not self._natives:
                    raise
            self.calls.append(OnlineTrial(point, inf))
            self.observe(inf)

    def _switch(self, point: Grouping) -> None:
        """Let the loop run with a grouping; its kernel is made once."""
        loop = self.loop
        if point == self._now and loop._native is not None:
            return
        loop.reschedule(self._schedule(point))
        if point in self._natives:
            loop._native = self._natives[point]
        else:
            self._natives[point] = loop.build()
        self._now = point

    def _finish(self) -> None:
        """Keep the best, forget the others, record."""
        loop = self.loop
        self._switch(self.best)
        kept = self._natives.pop(self.best)
        others = [block for native in self._natives.values() for block in native.blocks]
        loop._blocks = [item for item in loop._blocks if not any(item[0] is other for other in others)]
        self._natives = {self.best: kept}
        record_winner(self._file, loop, loop.schedule, self.seconds)

    # ---------------------------------------------------------------------------------------- pieces
    def _schedule(self, point: Grouping) -> Schedule:
        return replace(self._base, block=point.block, lanes=point.lanes, rows=point.rows)

    def _fits(self, point: Grouping) -> bool:
        """Whether the loop would run with just this grouping."""
        if point.block > largest_block(self.loop.context.device):
            return False
        return choose_grouping(self.loop.bound, self._strategy, self._schedule(point), point.block) == point
