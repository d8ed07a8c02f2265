"""Steps of a lattice Boltzmann flow: what one consists of, as chains that are replayed, and what they report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.body_force import UniformForce
from fluxloom.linalg.direct.calls import HostStep, MixedChain, sequence
from fluxloom.solvers.lattice.sides import Conditions
from fluxloom.solvers.lattice.values import LatticeValues

__all__ = ["Step", "Steps"]

Step = Loop | Reset | HostStep

BOTH = -1
"""Stands for two steps that begin at an even one."""


class Steps:
    """The loops of an even step and of an odd one, and chains of them, made when they are first wanted.

    Parameters
    ----------
    values
        Those of the flow.
    conditions
        What happens before every step.

    Attributes
    ----------
    done
        Steps done.
    bulk
        The loops over all cells, of an even step and of an odd one.
    immersed
        An immersed boundary, if there is one.
    retired
        Chains of steps that were done in another way, before an immersed boundary chose its pipeline.
    """

    forgets = ("_attached",)

    def __init__(self, values: LatticeValues, conditions: Conditions) -> None:
        self._values, self._conditions, self.done = values, conditions, 0
        self._chains: dict[int, Chain | MixedChain] = {}
        self.retired: list[Chain] = []
        self._alone: list[Loop] = []  # they run by themselves, between chains
        self.immersed: Any = None
        self._attached: Any = None  # the part of an immersed boundary that the chains have
        over, constants = values.memory.set, values.constants
        passes = values.space.streaming.passes(values.buffers)
        each = unique([one for some in passes for one in some])  # three phases are the same in both steps
        loops = [one.loop(over, constants, values.field, schedule=values.schedule) for one in each]
        made = dict(zip(map(id, each), loops, strict=True))
        self.bulk = tuple(tuple(made[id(one)] for one in some) for some in passes)

    def immerse(self, boundary: Any) -> None:
        """Take an immersed boundary: other chains are needed."""
        self.immersed = boundary
        self._chains.clear()

    def set_force(self, uniform: UniformForce | None) -> None:
        """Give the loops over all cells another force that acts everywhere, in the chains that are there too."""
        for loop in unique([loop for loops in self.bulk for loop in loops]):
            if "uniform_x" in loop.constants:
                loop.set(uniform=uniform)

    def parts(self, parity: int) -> tuple[list[Step], list[Step], list[Step]]:
        """Return what runs before the loop over all cells, that loop, and what runs after."""
        before: list[Step] = list(self._conditions.loops(parity))
        bulk: list[Step] = list(self.bulk[parity % 2])
        after: list[Step] = []
        space = self._values.space
        if self.immersed is not None:
            before += self.immersed.before(parity)
            after += self.immersed.after(parity)
            in_place = len(space.buffers) == 1 and parity % 2
            if (len(bulk) > 1 or in_place) and space.context.distributed:
                # Of three phases the last one changes what the first one reads; in place the odd step does both. In a
                # chain they would bring the layers around anew, and undo what conditions have put there in a chain
                # before.
                first = self.bulk[parity % 2][0]
                bulk[0] = HostStep(space.context, first, "stream")
                self._alone = unique([*self._alone, first])
        return before, bulk, after

    def chain(self, parity: int) -> Chain | MixedChain:
        """Return a step, or with `BOTH` two steps that begin at an even one."""
        attached = None if self.immersed is None else self.immersed.attached
        if attached is not self._attached:
            self.retired += self._every()
            self._chains.clear()
            self._attached = attached
        if parity not in self._chains:
            parities, space = (0, 1) if parity == BOTH else (parity,), self._values.space
            steps = [step for p in parities for part in self.parts(p) for step in part]
            past = [f for f in space.buffers if f is not space.populations(1 + parities[-1])]
            self._chains[parity] = sequence(steps, "lattice" if parity == BOTH else f"lattice.{parity}", past)
        return self._chains[parity]

    def pieces(self, count: int, every: int) -> Iterator[int]:
        """Advance by some steps, and yield the number of steps done after every so many and at the end; 0: never."""
        while every and count > 0:
            some = min(every, count)
            self.advance(some)
            count -= some
            yield self.done
        self.advance(count)

    def advance(self, count: int) -> None:
        """Advance the flow by some steps, two at a time where that is possible."""
        last = self.done + count
        while self.immersed is not None and self.immersed.choosing and self.done < last:
            self.immersed.take(self._run, last - self.done)
        self._run(last - self.done)

    def _run(self, count: int) -> None:
        """Do some steps."""
        last = self.done + count
        while self.done < last:
            odd, changing = self.done % 2, self._conditions.changing
            two = not odd and self.done + 2 <= last and not changing
            if changing:
                self._conditions.prepare(self.done)
            self.chain(BOTH if two else odd)()
            self.done += 2 if two else 1

    def _every(self) -> list[Chain]:
        """Return the chains that have been made."""
        relays = list(self._chains.values())
        return [one for relay in relays for one in (relay.chains if isinstance(relay, MixedChain) else [relay])]

    def reports(self) -> list[LoopReport]:
        """Return what each loop has done, in steps done one by one and two by two."""
        self.chain(BOTH)
        chains = [*self.retired, *self._every()]
        if not self._values.space.context.device.native:  # loops run one by one, and count for themselves
            loops = {id(loop): loop for one in chains for loop in one.loops}
            return [loop.report() for loop in loops.values()]
        return [report for one in chains for report in one.reports()] + [one.report() for one in self._alone]
