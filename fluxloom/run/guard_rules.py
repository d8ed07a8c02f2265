"""What guards hold against a flow: each rule judges the numbers of a look, see `fluxloom.run.watch`."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan, sqrt

from fluxloom.run.watch import HUGE, LOST, Broken, Numbers

__all__ = ["AtLeast", "AtMost", "Balance", "Clipped", "Finite", "Growth"]


class Finite:
    """All values are finite."""

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong."""
        if not numbers.values.get(LOST, 0.0):
            return None
        return Broken("finite", "", nan, extreme="lost", reason="values are not finite")


class AtLeast:
    """A number is above a limit, or not below it.

    Parameters
    ----------
    number, quantity
        Its name, and what it is in words.
    field
        Where its place is sought.
    limit
        Least value.
    strict
        Whether the limit itself is too little.
    """

    def __init__(self, number: str, quantity: str, field: str, limit: float = 0.0, *, strict: bool = True) -> None:
        self._number, self._quantity, self._field, self._limit, self._strict = number, quantity, field, limit, strict

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong."""
        value = numbers.values[self._number]
        if value > self._limit or (not self._strict and value == self._limit):
            return None
        return Broken("positive", self._quantity, value, self._limit, self._field, "least")


class AtMost:
    """A number is not above a limit.

    Parameters
    ----------
    guard
        Key of ``[guards]``.
    number, quantity, field
        As of `AtLeast`.
    limit
        Largest value.
    reason, advice
        What the limit is, and what to change.
    root
        Whether the number is the square of the quantity.
    """

    def __init__(
        self, guard: str, number: str, quantity: str, field: str, limit: float, reason: str = "", advice: str = "",
        *, root: bool = False,
    ) -> None:  # fmt: skip
        self._guard, self._number, self._quantity, self._field = guard, number, quantity, field
        self._limit, self._reason, self._advice, self._root = limit, reason, advice, root

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong."""
        value = numbers.values.get(self._number, 0.0)
        value = sqrt(max(0.0, value)) if self._root else value
        if value <= self._limit:
            return None
        return Broken(self._guard, self._quantity, value, self._limit, self._field, reason=self._reason,
                      advice=self._advice)  # fmt: skip


class Balance:
    """What a flow has of something is what it had, and what came in since.

    The first numbers that it sees are those it compares with.

    Parameters
    ----------
    number, quantity
        Sum over the flow.
    part
        Of it, by which it may be off.
    came, left
        Numbers of what has come in, and of what has left, if anything can.
    scale
        What ``part`` is of, at least.
    """

    def __init__(
        self, number: str, quantity: str, part: float, came: str = "", left: str = "", scale: float = 0.0
    ) -> None:  # fmt: skip
        self._number, self.quantity, self._part, self._scale = number, quantity, part, scale
        self._came, self._left = came, left
        self._first: float | None = None
        self.off = 0.0
        """Part of it by which the balance is off now."""

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong."""
        came = numbers.values.get(self._came, 0.0) - numbers.values.get(self._left, 0.0)
        kept = numbers.values[self._number] - came
        if self._first is None:
            self._first = kept
        scale = max(abs(self._first), self._scale)
        self.off = abs(kept - self._first) / scale if scale else abs(kept - self._first)
        if self.off <= self._part:
            return None
        there, wanted = numbers.values[self._number], self._first + came
        what = "appeared" if there > wanted else "vanished"
        text = (f"{wanted:.9g} is what was there and came in: {100 * self.off:.3g} % of the {self.quantity} {what}, "
                f"{100 * self._part:.3g} % may")  # fmt: skip
        return Broken("balance", f"total {self.quantity}", there, reason=text)


class Growth:
    """A number is not far above what the start, boundaries and forces give.

    Parameters
    ----------
    number, quantity, field
        As of `AtLeast`.
    factor
        How many times.
    scale
        What they give, at a time; where it is 0 nothing is judged.
    guard
        Key of ``[guards]``.
    """

    def __init__(
        self, number: str, quantity: str, field: str, factor: float, scale: Callable[[Numbers], float],
        guard: str = "growth",
    ) -> None:  # fmt: skip
        self._guard = guard
        self._number, self._quantity, self._field, self._factor, self._scale = number, quantity, field, factor, scale
        self._first: float | None = None

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong."""
        value = numbers.values[self._number]
        if self._first is None:
            self._first = abs(value) if abs(value) < HUGE else 0.0
        scale = max(self._first, self._scale(numbers))
        limit = self._factor * scale
        if not isfinite(limit) or not scale or abs(value) <= limit:
            return None
        return Broken(self._guard, self._quantity, value, limit, self._field,
                      reason=f"{self._factor:g} times what the start, boundaries and forces give")  # fmt: skip


class Clipped:
    """Not too many states are clipped, step after step.

    Parameters
    ----------
    part
        Of the states, that may be clipped.
    steps
        In so many steps one after the other; less, where a run is shorter.
    counts
        Returns states clipped so far, and all states of the steps so far.
    """

    def __init__(self, part: float, steps: int, counts: Callable[[], tuple[float, float]]) -> None:
        self._part, self._steps, self._counts = part, steps, counts
        self._before, self._since = (0.0, 0.0), 0

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong."""
        clipped, states = self._counts()
        new, all_new = clipped - self._before[0], states - self._before[1]
        self._before = clipped, states
        if not all_new or new <= self._part * all_new:
            self._since = numbers.steps
            return None
        least = min(self._steps, numbers.steps // 2) if numbers.last else self._steps
        if numbers.steps - self._since < least:
            return None
        return Broken("clipped", "part of the states that were clipped", new / all_new, self._part,
                      reason=f"in each of the last {numbers.steps - self._since:,} steps")  # fmt: skip
