"""Numbers by which guards judge a flow, found on its device between two steps and fetched later.

A device with memory of its own keeps the numbers of a look and sends them while the next steps run; they are fetched
at the next look, so that nothing waits. On several ranks, and where loops run on the host, they are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fluxloom.core.access import Const, Read, Write
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.runtime import Runtime
from fluxloom.dsl.sets import Set
from fluxloom.dsl.task import Reset
from fluxloom.kernel.frontend import kernel

__all__ = ["HUGE", "LOST", "Broken", "Numbers", "Reduction", "Rule", "Watch", "keep"]

HUGE = 1.0e30
"""Least values begin here; the largest ones at its negative."""

LOST = "lost"
"""How many elements have a value that is not finite: the first sum of every reduction."""


@kernel
def keep(value: Read, kept: Write, *, width: Const[int]):
    """Copy a value that the next look overwrites."""
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
        self._courier = None if context.ranked else context.device.courier()
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
