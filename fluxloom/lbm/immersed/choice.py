"""Which pipeline is faster: found out in the first steps of a run, which are useful steps all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import SolverError

__all__ = ["Choice"]

WARM, BLOCK, BLOCKS = 4, 8, 4
"""Steps before the timed ones, in which loops are compiled and captured; steps of a block; timed blocks."""


class Choice:
    """Times the same steps done in several ways, one way after the other, and takes the fastest.

    Each way has some steps to get going and then blocks of steps that are timed as a whole; the median a step of the
    blocks counts, on several ranks that of the slowest rank, so that all choose the same.

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
    seconds
        A step, by way, of those that have been measured.
    """

    def __init__(
        self, names: Sequence[str], wait: Callable[[], None], comm: Comm | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        if not names:
            raise SolverError("a choice needs something to choose from")
        self.names, self._wait, self._clock = tuple(names), wait, clock
        self._comm = comm if comm is not None else SelfComm()
        self.seconds: dict[str, float] = {}
        self.now = self.names[0]
        self._begin()
        if len(self.names) == 1:
            self.settle(self.now)

    def _begin(self) -> None:
        self._cold, self._left, self._times = WARM, BLOCK * BLOCKS, []

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
        self._wait()
        start = self._clock()
        run(count)
        self._wait()
        self._times.append((self._clock() - start) / count)
        self._left -= count
        return self._left == 0 and self._next()

    def _next(self) -> bool:
        """Take note of a way's time; go on to the next one, or to the fastest."""
        mine, before = median(self._times), self.now
        self.seconds[before] = float(self._comm.reduce(np.array([mine]), "max")[0])
        at = self.names.index(before) + 1
        if at < len(self.names):
            self.now = self.names[at]
            self._begin()
        else:
            self.now = min(self.seconds, key=lambda name: self.seconds[name])
        return self.now != before

    def __str__(self) -> str:
        times = ", ".join(f"{name} {1e3 * seconds:.4g} ms" for name, seconds in self.seconds.items())
        if not self.done:
            return f"{self.now} for now{f' ({times} a step)' if times else ''}"
        return f"{self.now} ({times} a step)" if times else self.now
