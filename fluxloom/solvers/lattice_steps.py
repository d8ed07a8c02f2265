"""Steps of a lattice Boltzmann flow: what one consists of, as chains that are replayed, and what they report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.identity import unique
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.report import LoopReport
from fluxloom.dsl.steps import Reset
from fluxloom.linalg.direct import Direct, Relay, sequence
from fluxloom.solvers.lattice_bulk import bulk_loops

if TYPE_CHECKING:
    from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["Step", "Steps"]

Step = Loop | Reset | Direct

BOTH = -1
"""Stands for two steps that begin at an even one."""


class Steps:
    """The loops of an even step and of an odd one, and chains of them, made when they are first wanted.

    Parameters
    ----------
    flow
        Whose steps they are.

    Attributes
    ----------
    bulk
        The loops over all cells, of an even step and of an odd one.
    retired
        Chains of steps that were done in another way, before an immersed boundary chose its pipeline.
    """

    forgets = ("_attached",)

    def __init__(self, flow: LatticeBoltzmann) -> None:
        self._flow = flow
        self._chains: dict[int, Chain | Relay] = {}
        self.retired: list[Chain] = []
        self._alone: list[Loop] = []  # they run by themselves, between chains
        self._attached: Any = None  # the part of an immersed boundary that the chains have
        self.bulk = bulk_loops(flow)

    def renew(self) -> None:
        """Forget the chains: a part of the flow was added."""
        self._chains.clear()

    def set_force(self) -> None:
        """Give the loops over all cells the force that acts everywhere now, in the chains that are there too."""
        for loop in unique([loop for loops in self.bulk for loop in loops]):
            if "uniform_x" in loop.constants:
                loop.set(uniform=self._flow.constants.uniform)

    def parts(self, parity: int) -> tuple[list[Step], list[Step], list[Step]]:
        """Return what runs before the loop over all cells, that loop, and what runs after."""
        before: list[Step] = list(self._flow.conditions.loops(parity))
        bulk: list[Step] = list(self.bulk[parity % len(self.bulk)])
        after: list[Step] = []
        immersed = self._flow.immersed
        if immersed is not None:
            before += immersed.before(parity)
            after += immersed.after(parity)
            in_place = len(self._flow.space.buffers) == 1 and parity % 2
            if (len(bulk) > 1 or in_place) and self._flow.context.ranked:
                # Of three phases the last one changes what the first one reads; in place the odd step does both. In a
                # chain they would bring the layers around anew, and undo what conditions have put there in a chain
                # before.
                first = self.bulk[parity % len(self.bulk)][0]
                bulk[0] = Direct(self._flow.context, first, "stream")
                self._alone = unique([*self._alone, first])
        return before, bulk, after

    def chain(self, parity: int) -> Chain | Relay:
        """Return a step, or with `BOTH` two steps that begin at an even one."""
        immersed = self._flow.immersed
        attached = None if immersed is None else immersed.attached
        if attached is not self._attached:
            self.retired += self._every()
            self._chains.clear()
            self._attached = attached
        if parity not in self._chains:
            parities = (0, 1) if parity == BOTH else (parity,)
            steps = [step for p in parities for part in self.parts(p) for step in part]
            past = [f for f in self._flow.space.buffers if f is not self._flow.space.populations(1 + parities[-1])]
            self._chains[parity] = sequence(steps, "lattice" if parity == BOTH else f"lattice.{parity}", past)
        return self._chains[parity]

    def pieces(self, count: int, every: int) -> Iterator[int]:
        """Advance by some steps, and yield the number of steps done after every so many and at the end; 0: never."""
        while every and count > 0:
            some = min(every, count)
            self.advance(some)
            count -= some
            yield self._flow.steps
        self.advance(count)

    def advance(self, count: int) -> None:
        """Advance the flow by some steps, two at a time where that is possible."""
        flow = self._flow
        last = flow.steps + count
        while flow.immersed is not None and flow.immersed.choosing and flow.steps < last:
            flow.immersed.take(self._run, last - flow.steps)
        self._run(last - flow.steps)

    def _run(self, count: int) -> None:
        """Do some steps."""
        flow = self._flow
        last = flow.steps + count
        while flow.steps < last:
            odd = flow.steps % 2
            two = not odd and flow.steps + 2 <= last
            self.chain(BOTH if two else odd)()
            flow.steps += 2 if two else 1

    def _every(self) -> list[Chain]:
        """Return the chains that have been made."""
        relays = list(self._chains.values())
        return [one for relay in relays for one in (relay.chains if isinstance(relay, Relay) else [relay])]

    def reports(self) -> list[LoopReport]:
        """Return what each loop has done, in steps done one by one and two by two."""
        self.chain(BOTH)
        chains = [*self.retired, *self._every()]
        if not self._flow.context.device.native:  # loops run one by one, and count for themselves
            loops = {id(loop): loop for one in chains for loop in one.loops}
            return [loop.report() for loop in loops.values()]
        return [report for one in chains for report in one.reports()] + [one.report() for one in self._alone]
