"""Timing candidates fairly: rounds from the same values, in turn, medians of them, and the slowest rank counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, isfinite
from statistics import median
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Ranks", "Run", "Stopwatch"]

Result = TypeVar("Result")

Run = Callable[[], object]
"""Runs a candidate once."""


class Ranks(Protocol):
    """What a stopwatch needs of a communicator."""

    def barrier(self) -> None:
        """Wait for every rank."""
        ...

    def reduce(self, values: npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
        """Return ``"max"`` of the arrays of all ranks."""
        ...


def _nothing() -> None:
    """Do nothing."""


@dataclass
class Stopwatch:
    """Times candidates of one piece of work.

    Attributes
    ----------
    rounds
        Rounds of a candidate.
    restore
        Called before each round: puts back the values that the candidates change.
    wait
        Waits for work that a call has only started.
    warm
        Calls before the timed ones of a round.
    clock
        Returns the time in seconds.
    round_seconds, most_calls
        A round has as many calls as take this long, but not more than so many; the first candidate that is
        timed decides for all.
    hopeless, behind
        How many times slower than the best a candidate is dropped after its first calls, and after two rounds.
    ranks
        All of them time the same, begin together and are told the time of the slowest, so that all choose alike.
    counts
        What counts of the rounds.
    """

    rounds: int = 5
    restore: Callable[[], None] = _nothing
    wait: Callable[[], None] = _nothing
    warm: int = 1
    clock: Callable[[], float] = time.perf_counter
    round_seconds: float = 2e-3
    most_calls: int = 50
    hopeless: float = 3.0
    behind: float = 1.5
    ranks: Ranks | None = None
    counts: Callable[[Sequence[float]], float] = median
    _calls: int = field(default=0, init=False)

    def round(self, run: Run) -> float:
        """Return the seconds of a call in one round."""
        self.restore()
        for _ in range(self.warm):
            run()
        if not self._calls:
            self._calls = self.calls(run)
        return self.timed(run, self._calls) / self._calls

    def calls(self, run: Run) -> int:
        """Return how many calls fill a round."""
        once = min(self.timed(run) for _ in range(3))
        return max(1, min(self.most_calls, ceil(self.round_seconds / once))) if once > 0 else 1

    def timed(self, run: Run, calls: int = 1) -> float:
        """Return the seconds of some calls."""
        self.wait()
        if self.ranks is not None:
            self.ranks.barrier()
        start = self.clock()
        for _ in range(calls):
            run()
        self.wait()
        seconds = self.clock() - start
        return seconds if self.ranks is None else float(self.ranks.reduce(np.array([seconds]), "max")[0])

    def result(self, make: Callable[[], Result]) -> tuple[Result, float]:
        """Return what a call returns, and its seconds."""
        found: list[Result] = []
        seconds = self.timed(lambda: found.append(make()))
        return found[0], seconds

    def median(self, run: Run, best: float = inf, most: int = 0) -> float:
        """Return the median over the rounds of one candidate.

        Parameters
        ----------
        run
            The candidate.
        best
            Seconds of the fastest so far: one that is far behind has a few calls or two rounds, see `hopeless` and
            `behind`, because what it takes exactly matters to nobody.
        most
            Rounds, if not `rounds`.
        """
        if isfinite(best) and (seconds := self._look(run, self.hopeless * best)) > self.hopeless * best:
            return seconds
        rounds: list[float] = []
        while len(rounds) < (most or self.rounds) and not (len(rounds) == 2 and min(rounds) > self.behind * best):
            rounds.append(self.round(run))
        return self.counts(rounds)

    def _look(self, run: Run, limit: float) -> float:
        """Return the seconds of one call after the first; of two where it seems too slow, as a call may be held up."""
        self.restore()
        for _ in range(self.warm):
            run()
        seconds = self.timed(run)
        return min(seconds, self.timed(run)) if seconds > limit else seconds

    def race(self, runs: Sequence[Run]) -> list[float]:
        """Return the medians of several candidates whose rounds are interleaved."""
        rounds = [[self.round(run) for run in runs] for _ in range(self.rounds)]
        return [self.counts(column) for column in zip(*rounds, strict=True)]
