"""When a monitor looks: behind every some steps, or at times."""

from __future__ import annotations

from math import floor, inf, isfinite

from fluxloom.core.errors import SolverError
from fluxloom.run.flow import Flow

__all__ = ["Moments"]

_CLOSE = 1e-9
"""Of a time: what is no later than it."""


class Moments:
    """The moments of a monitor.

    Parameters
    ----------
    every
        Steps from one to the next; 0: none of steps.
    period
        Seconds from one to the next, instead of steps: steps whose length is free hit these times, of others the first
        one at such a time or behind it counts. 0: none of times.

    Raises
    ------
    SolverError
        If one of them is negative.
    """

    def __init__(self, every: int, period: float = 0.0) -> None:
        if every < 0 or not period >= 0.0 or not isfinite(period):
            raise SolverError(f"every and period are not negative, not {every!r} and {period!r}")
        self.every, self.period = (0 if period else int(every)), float(period)
        self._passed = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.every or self.period)

    def check(self, flow: Flow) -> None:
        """Raise `SolverError` where there are times, but a flow has none."""
        if self.period and flow.time is None:
            raise SolverError("period: a flow on the way to a steady one has no time: give every, a number of steps")

    def number(self, flow: Flow) -> int:
        """Return how many of the times a flow has reached, or how many steps it has made."""
        return floor((flow.time or 0.0) / self.period * (1.0 + _CLOSE)) if self.period else flow.steps

    def begin(self, flow: Flow) -> None:
        """Begin with the flow as it is: what it has passed does not come again."""
        if self.period:
            self._passed = self.number(flow)

    def next_time(self, flow: Flow) -> float:
        """Return the next one of the times, infinite: there is none."""
        return (self.number(flow) + 1) * self.period if self.period else inf

    def come(self, flow: Flow) -> bool:
        """Return whether one has come with the last step of a flow, or with the part of an interval behind it."""
        if self.period:
            before, self._passed = self._passed, self.number(flow)
            return self._passed > before
        return bool(self.every) and flow.steps % self.every == 0
