"""What is watched of a flow while it runs: numbers found on the device, rules for these, and their limits.

A device with memory of its own keeps the numbers of a look and sends them while the next steps run; they are fetched
at the next look, so that nothing waits. On several ranks, and where loops run on the host, they are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite, nan, sqrt
from typing import Protocol

import numpy as np

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel

__all__ = [
    "HUGE", "LOST", "AtLeast", "AtMost", "Balance", "Broken", "Clipped", "Finite", "Growth", "GuardLimits", "Numbers",
    "Reduction", "Rule", "Watch", "keep",
]  # fmt: skip

HUGE = 1.0e30
"""Least values begin here; the largest ones at its negative."""

LOST = "lost"
"""How many elements have a value that is not finite: the first sum of every reduction."""


@kernel
def keep(value: Read, kept: Write, *, width: Const[int]):
    """Copy a value that the next look overwrites, ``kept = value``."""
    for k in range(width):
        kept[k] = value[k]


@dataclass(frozen=True)
class Numbers:
    """What a look found.

    Attributes
    ----------
    steps, time
        Behind which step, and when.
    values
        Name to value.
    last
        Whether the run ends here.
    """

    steps: int
    time: float | None
    values: Mapping[str, float]
    last: bool = False


@dataclass(frozen=True)
class Broken:
    """What a rule found wrong.

    Attributes
    ----------
    guard
        The key of ``[guards]`` that sets it.
    quantity
        What is wrong, in words.
    value, limit
        What was found, and what may be; NaN where there is no such number.
    field
        Of the flow, in which its place is sought; empty: it has none.
    extreme
        Which element: that with the ``"least"`` or ``"largest"`` value, or one with a ``"lost"`` one.
    reason
        More about it, in words.
    advice
        What else to change.
    """

    guard: str
    quantity: str
    value: float
    limit: float = float("nan")
    field: str = ""
    extreme: str = "largest"
    reason: str = ""
    advice: str = ""


class Rule(Protocol):
    """Judges the numbers of a look."""

    def broken(self, numbers: Numbers) -> Broken | None:
        """Return what is wrong; None: nothing."""
        ...


class Reduction:
    """Sums, least and largest values over the elements of a flow.

    Parameters
    ----------
    context
        Of the flow.
    loop
        Returns the loop of the look for the globals of the sums, of the least and of the largest values; only those
        that have a name are given. Called once for each ``state``.
    sums, least, most
        Names of their components; that of the first sum is `LOST`.
    state
        Returns which of several loops is right for the populations of now, as in lattices; by default there is one.
    """

    def __init__(
        self,
        context: Runtime,
        loop: Callable[..., Loop],
        sums: Sequence[str] = (LOST,),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        state: Callable[[], int] = lambda: 0,
    ) -> None:
        self.context, self._loop, self._state = context, loop, state
        real = "float32" if context.device.refuses_double else "float64"
        starts = ((sums, 0.0, "sums"), (least, HUGE, "least"), (most, -HUGE, "most"))
        self._names = [tuple(names) for names, _, _ in starts if names]
        self._globals = [
            Global(context, np.full(len(names), start), name=f"guards.{name}", dtype=real)
            for names, start, name in starts
            if names
        ]
        self._starts = [start for names, start, _ in starts if names]
        self._chains: dict[int, Chain] = {}
        self._courier = None if context.distributed else context.device.transfer_queue()
        self._kept: list[Dat] = []
        self._copies: list[Loop] = []
        if self._courier is not None:
            one = Set(context, 1, "guards")
            self._kept = [Dat(one, name=f"{g.name}.kept", shape=(g.dim,), dtype=real) for g in self._globals]
            self._copies = [
                Loop(keep, one, found, kept, name="guards.keep", width=found.dim)
                for found, kept in zip(self._globals, self._kept, strict=True)
            ]

    @property
    def late(self) -> bool:
        """Whether numbers come later, while the device goes on."""
        return self._courier is not None

    def take(self) -> None:
        """Find the numbers as they are now, and send them. Collective."""
        key = self._state()
        if key not in self._chains:
            resets = [Reset(target, start) for target, start in zip(self._globals, self._starts, strict=True)]
            self._chains[key] = Chain([*resets, self._loop(*self._globals), *self._copies], name="guards")
        self._chains[key]()
        if self._courier is not None:
            self.context.settle()
            self._courier.down(*(kept.buffer for kept in self._kept if isinstance(kept.buffer, RemoteBuffer)))

    def collect(self) -> dict[str, float]:
        """Return the numbers that were taken last. Collective."""
        if self._courier is not None:
            self._courier.wait()
            found = [np.asarray(kept.read()[0], dtype=np.float64).ravel() for kept in self._kept]
        else:
            found = [np.asarray(value, dtype=np.float64).ravel() for value in Global.read_all(self._globals)]
        return {
            name: float(value)
            for names, values in zip(self._names, found, strict=True)
            for name, value in zip(names, values, strict=True)
        }


@dataclass
class Watch:
    """What guards of a flow do: look, and judge.

    Attributes
    ----------
    every
        Steps between two looks, by which they cost less than 1 % of a run.
    reductions
        What finds numbers on the device; their names differ, but for `LOST`.
    host
        Return more numbers that the host knows.
    rules
        What judges.
    steady
        Whether the run goes towards a steady flow: its residual is watched then.
    clipped
        Returns states clipped so far and states of all steps so far; None: the solver clips none.
    bound
        CFL number up to which steps are stable; hosts return ``"courant"``, what steps have of it.
    """

    every: int
    reductions: Sequence[Reduction]
    rules: Sequence[Rule]
    host: Sequence[Callable[[], Mapping[str, float]]] = ()
    steady: bool = False
    clipped: Callable[[], tuple[float, float]] | None = None
    bound: float = 1.0


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
        Of it, at first or now, by which it may be off.
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
        scale = max(abs(self._first), abs(numbers.values[self._number]), self._scale)
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


@dataclass(frozen=True)
class GuardLimits:
    """What ends a run as diverged. Numbers that are 0, and ``false``, switch a guard off.

    Attributes
    ----------
    every
        Steps between two looks at the flow; 0: as the solver chooses, such that they cost less than 1 %.
    finite
        Whether all values have to be finite.
    positive
        Whether density, pressure and depth have to be.
    balance
        Part of the mass (of gas, of water) that may appear or vanish: what boundaries let through is counted.
    growth
        How many times what the start, boundaries and forces give the energy may be.
    scalar
        How many times what the start, boundaries and sources give the largest value of a scalar may be.
    viscosity
        How many times the viscosity the eddy viscosity, and the variable of its model, may be.
    residual
        How many times its lowest value so far, or 1e-10 of the first one, the residual of a steady run may be.
    clipped, clipped_steps
        Part of the states of a step towards a steady flow that may be clipped, in so many steps one after the other.
    courant
        How many times the largest stable step a step may be.
    mach
        Of fluid and bodies on a lattice.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    every: int = 0
    finite: bool = True
    positive: bool = True
    balance: float = 1e-4
    growth: float = 1e4
    scalar: float = 3.0
    viscosity: float = 1e7
    residual: float = 1e6
    clipped: float = 0.05
    clipped_steps: int = 100
    courant: float = 8.0
    mach: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 1 if field.name == "clipped_steps" else 0
            if not getattr(self, field.name) >= least:
                raise SolverError(f"{field.name}: at least {least} is wanted, not {getattr(self, field.name)!r}")
        if self.clipped > 1:
            raise SolverError(f"clipped: a part of the states is wanted, at most 1, not {self.clipped!r}")
