"""Whether and since when the residual of a steady run has stopped falling, and why, where that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from typing import Protocol

__all__ = ["Stall", "Stalling", "stall", "unconverged"]

_FACTOR = 2.0
"""By which the lowest residual has to fall in the window, or it has stopped."""
_LEAST, _PART = 100, 0.3
"""Steps of the window at least, and of all steps."""
_GROWN, _SWING = 10.0, 1.5
"""Over its lowest value so far a residual has grown; largest over least in the window, above which it swings."""


@dataclass(frozen=True)
class Stall:
    """A residual that has stopped falling.

    Attributes
    ----------
    since
        Step at which it first was within a factor 2 of its lowest value; the first step is 1.
    lowest, last
        Its lowest value, and the last one.
    least, most
        Range in the last part of the run.
    turns
        How often it turned round there.
    """

    since: int
    lowest: float
    last: float
    least: float
    most: float
    turns: int

    @property
    def text(self) -> str:
        """What it did since, in words."""
        if self.last > _GROWN * self.lowest:
            return f"it was lowest, {self.lowest:.3g}, near step {self.since:,}, and has grown since"
        swings = self.most > _SWING * self.least and self.turns > 2
        range_ = f" and goes to and fro between {self.least:.2g} and {self.most:.2g}" if swings else ""
        return f"it stopped falling at step {self.since:,}{range_}"


class Stalling(Protocol):
    """What may know why its residual gets no lower."""

    def why_stalled(self, found: Stall) -> str:
        """Return why, and what to change, in words; empty: it does not know."""
        ...


def stall(values: Sequence[float]) -> Stall | None:
    """Return how a residual has stopped falling: by less than a factor 2 in the last 100 steps, and 30 % of all.

    Parameters
    ----------
    values
        Residuals, one a step from the first on.

    Returns
    -------
    Stall
        None: it still falls, or there are too few steps.
    """
    known = [value if isfinite(value) else inf for value in values]
    window = max(_LEAST, int(_PART * len(known)))
    if len(known) <= window:
        return None
    lowest, before = min(known), min(known[:-window])
    if not isfinite(lowest) or before > _FACTOR * lowest:
        return None
    since = next(k for k, value in enumerate(known, start=1) if value <= _FACTOR * lowest)
    tail = known[-window:]
    steps = [b - a for a, b in pairwise(tail) if a != b]
    turns = sum((a > 0.0) != (b > 0.0) for a, b in pairwise(steps))
    return Stall(since, lowest, known[-1], min(tail), max(tail), turns)


def unconverged(values: Sequence[float], wanted: float, flow: Stalling | None = None) -> str:
    """Return why a run that has reached its limit of steps is not converged, in one line.

    As ``residual 5.6e-01 of 1e-10 wanted after 500 steps; it stopped falling at step 80; limited by ...``.

    Parameters
    ----------
    values
        Residuals, one a step from the first on.
    wanted
        What was asked for.
    flow
        Is asked why.
    """
    last = values[-1] if len(values) else float("nan")
    parts = [f"residual {last:.1e} of {wanted:.3g} wanted after {len(values):,} steps"]
    found = stall(values)
    if found is None:
        return parts[0] + ("; it is still falling: raise run.iterations" if len(values) > _LEAST else "")
    parts.append(found.text)
    if flow is not None and (why := flow.why_stalled(found)):
        parts.append(why)
    return "; ".join(parts)
