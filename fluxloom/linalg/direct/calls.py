"""Calls among loops: what a direct solver does inside an iteration, and chains around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop

__all__ = ["HostStep", "MixedChain", "chains_of", "sequence"]


class HostStep:
    """A step of an iteration that is no loop: it asks the device for work, in order with the loops.

    Parameters
    ----------
    context
        Of the dats it works on.
    run
        Does it; it tells the dats that it changes.
    name
        For messages.
    """

    forgets = ("run",)

    def __init__(self, context: Runtime, run: Callable[[], None], name: str) -> None:
        self.context, self.run, self.name = context, run, name

    def __call__(self) -> None:
        """Do it once."""
        self.run()


class MixedChain:
    """Chains and direct steps, one after the other.

    Parameters
    ----------
    steps
        Loops, resets and direct steps, in order; the stretches without direct steps become chains.
    name
        For messages and reports.
    """

    def __init__(self, steps: Sequence[Loop | Reset | HostStep], name: str) -> None:
        self.name = name
        self._parts: list[Chain | HostStep] = []
        stretch: list[Loop | Reset] = []
        for step in steps:
            if isinstance(step, HostStep):
                self._close(stretch)
                self._parts.append(step)
                stretch = []
            else:
                stretch.append(step)
        self._close(stretch)

    def _close(self, stretch: list[Loop | Reset]) -> None:
        if stretch:
            self._parts.append(Chain(stretch, name=f"{self.name}.{len(self.chains)}"))

    @property
    def chains(self) -> list[Chain]:
        """The chains among the parts."""
        return [part for part in self._parts if isinstance(part, Chain)]

    @property
    def loops(self) -> list[Loop]:
        """The loops of all chains."""
        return [loop for chain in self.chains for loop in chain.loops]

    def __call__(self) -> None:
        """Run every step once."""
        for part in self._parts:
            part()


def sequence(steps: Sequence[Loop | Reset | HostStep], name: str, transient: Sequence[Dat] = ()) -> Chain | MixedChain:
    """Return steps as one call: a chain, if all of them are loops and resets; ``transient`` as a chain takes them."""
    loops = [step for step in steps if not isinstance(step, HostStep)]
    return Chain(loops, transient=transient, name=name) if len(loops) == len(steps) else MixedChain(steps, name)


def chains_of(*parts: Chain | MixedChain | None) -> list[Chain]:
    """Return the chains of what `sequence` returned; None is left out."""
    return [one for part in parts for one in ((part,) if isinstance(part, Chain) else part.chains if part else ())]
