"""Which pipeline is faster: found out in the first steps of a run, which are useful steps all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom.perf.tuner import Search

__all__ = ["Choice"]

WARM, BLOCK, BLOCKS = 4, 8, 4
"""Steps before the timed ones, in which loops are compiled and captured; steps of a block; timed blocks."""


class Choice:
    """Times the same steps done in several ways, one way after the other, and takes the fastest.

    Each way has some steps to get going and then blocks of steps that are timed as a whole, on several ranks by the
    slowest one, so that all choose the same; the median a step of the blocks counts.

    Parameters
    ----------
    names
        Of the ways, in the order in which they are tried.
    wait
        Waits until the device has done everything.
    comm
        The ranks.
    clock
        Returns the time in seconds.

    Attributes
    ----------
    now
        The way that steps have to be done in.
    """

    def __init__(
        self, names: Sequence[str], wait: Callable[[], None], comm: Comm | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        if not names:
            raise SolverError("a choice needs something to choose from")
        self.names = tuple(names)
        self._watch = Stopwatch(wait=wait, clock=clock, ranks=comm)
        self._search = Search(iter(self.names))
        self.now = self._search.next()
        self._begin()
        if len(self.names) == 1:
            self.settle(self.now)

    def _begin(self) -> None:
        self._cold, self._left, self._times = WARM, BLOCK * BLOCKS, []

    @property
    def seconds(self) -> dict[str, float]:
        """A step, by way, of those that have been measured."""
        return {trial.point: trial.seconds for trial in self._search.trials}

    @property
    def done(self) -> bool:
        """Whether nothing is left to be measured."""
        return self._left == 0

    def settle(self, name: str) -> None:
        """Take a way without measuring any more: a run that goes on does so as it was."""
        self.now, self._left = name, 0

    def take(self, run: Callable[[int], None], most: int) -> bool:
        """Do some steps, one at least.

        Parameters
        ----------
        run
            Does a number of steps.
        most
            Steps that may be done.

        Returns
        -------
        bool
            Whether the next steps have to be done in another way, `now`.
        """
        if self._cold:
            count = min(most, self._cold)
            run(count)
            self._cold -= count
            return False
        count = min(most, BLOCK, self._left)
        self._times.append(self._watch.timed(lambda: run(count)) / count)
        self._left -= count
        return self._left == 0 and self._next()

    def _next(self) -> bool:
        """Take note of a way's time; go on to the next one, or to the fastest."""
        before = self.now
        self._search.observe(median(self._times))
        self.now = self._search.next()
        if not self._search.finished:
            self._begin()
        return self.now != before

    def __str__(self) -> str:
        times = ", ".join(f"{name} {1e3 * seconds:.4g} ms" for name, seconds in self.seconds.items())
        if not self.done:
            return f"{self.now} for now{f' ({times} a step)' if times else ''}"
        return f"{self.now} ({times} a step)" if times else self.now
