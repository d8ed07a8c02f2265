"""Timing candidates fairly: every round from the same values, medians of rounds, rounds in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, isfinite
from statistics import median

__all__ = ["Run", "Stopwatch"]

Run = Callable[[], object]
"""Runs a candidate once."""


def _nothing() -> None:
    """Do nothing."""


@dataclass
class Stopwatch:
    """Times candidates of one piece of work.

    Attributes
    ----------
    rounds
        Rounds of a median.
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
    _calls: int = field(default=0, init=False)

    def round(self, run: Run) -> float:
        """Return the seconds of a call in one round."""
        self.restore()
        for _ in range(self.warm):
            run()
        if not self._calls:
            once = min(self._timed(run, 1) for _ in range(3))
            self._calls = max(1, min(self.most_calls, ceil(self.round_seconds / once))) if once > 0 else 1
        return self._timed(run, self._calls) / self._calls

    def _timed(self, run: Run, calls: int) -> float:
        self.wait()
        start = self.clock()
        for _ in range(calls):
            run()
        self.wait()
        return self.clock() - start

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
        return median(rounds)

    def _look(self, run: Run, limit: float) -> float:
        """Return the seconds of one call after the first; of two where it seems too slow, as a call may be held up."""
        self.restore()
        for _ in range(self.warm):
            run()
        seconds = self._timed(run, 1)
        return min(seconds, self._timed(run, 1)) if seconds > limit else seconds

    def race(self, runs: Sequence[Run]) -> list[float]:
        """Return the medians of several candidates whose rounds are interleaved."""
        rounds = [[self.round(run) for run in runs] for _ in range(self.rounds)]
        return [median(column) for column in zip(*rounds, strict=True)]
