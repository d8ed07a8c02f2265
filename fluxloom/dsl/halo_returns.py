"""What loops write among copies of other ranks' elements that belongs to these ranks: numbers that go back.

A loop that writes through a stencil (`fluxloom.dsl.stencil_writes`) changes numbers of elements that other ranks own,
in its copies of them. Each such number is met by one element of all ranks: nobody else changes it, nor does its owner.
So a message brings it there afterwards, as one that brings copies up to date, but with the two sides changed.
"""

from __future__ import annotations

from fluxloom.core.access import Access
from fluxloom.dsl.bind import Bound
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.halo_reads import HaloMask, Reads, SlotReads, through_stencil
from fluxloom.dsl.maps import BoundArgument, OffsetMap
from fluxloom.dsl.slots import SlotMap

__all__ = ["all_written", "halo_returns"]


def halo_returns(bound: Bound) -> list[HaloMask]:
    """Return which numbers of dats a loop leaves among copies of other ranks' elements, to go back to these ranks."""
    found = []
    for argument in bound.arguments:
        dat = argument.data
        if not isinstance(dat, Dat) or not dat.set.shared or argument.access not in (Access.WRITE, Access.RW):
            continue
        reads: Reads | None = None
        if isinstance(argument.map, OffsetMap):
            reads = through_stencil(bound, argument)
            assert reads is not None, "check_stencil_writes wants legs and components to be known"
        elif isinstance(argument.map, SlotMap) and argument.map.returned and argument.map.away:
            reads = SlotReads(argument.map)
        if reads is not None:
            found.append(HaloMask(dat, (reads,)))
    return found


def all_written(bound: Bound, argument: BoundArgument) -> bool:
    """Whether all numbers that go back have been written by then, so that the copies need not be current before.

    Through a stencil a ``Write`` leaves nothing out (`fluxloom.kernel.lowering`), but for the elements of a subset that
    it does not visit, where nobody knows these beforehand.
    """
    return isinstance(argument.map, OffsetMap) and argument.access is Access.WRITE and bound.over.most is None
