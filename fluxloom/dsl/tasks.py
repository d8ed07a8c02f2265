"""Loops as tasks of a sequence: their positions and limits, what they need of other ranks, their calls.

Numbers that they write among copies of other ranks go back to these; values move between host and device where the two
have memories of their own.

A loop that writes through a stencil (`fluxloom.dsl.stencil_writes`) changes numbers of elements that other ranks own,
in its copies of them. Each such number is met by one element of all ranks: nobody else changes it, nor does its owner.
So a message brings it there afterwards, as one that brings copies up to date, but with the two sides changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from fluxloom.codegen.group import Group
from fluxloom.codegen.spec import Entry
from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Buffer, Call, Device, Program, RemoteBuffer, Where
from fluxloom.dsl.bind import Bound, Numbering, executes_halo, leads_away
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.executable import ArgumentBlock
from fluxloom.dsl.halo_reads import HaloMask, Reads, SlotReads, halo_reads, private_slots, through_stencil
from fluxloom.dsl.maps import BoundArgument, OffsetMap
from fluxloom.dsl.plan import Limits, Plan, Span, limits_of
from fluxloom.dsl.races import RaceInfo
from fluxloom.dsl.runtime import Runtime, unique
from fluxloom.dsl.sets import Grid, Set, Subset
from fluxloom.dsl.slots import SlotMap
from fluxloom.dsl.task import Reset, Task

__all__ = [
    "PlannedLoop", "Traffic", "all_written", "can_begin_anywhere", "gather_limits", "halo_needs", "halo_returns",
    "loop_task", "reset_task",
]  # fmt: skip


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


_BY_POSITION = ("direct", "serial", "atomic", "gather")
_APART = ("direct", "atomic", "gather")
"""Strategies of which two spans may run at the same time."""

_BY_PLAN = ("block_colour", "element_colour", "block_permute")


class PlannedLoop(Protocol):
    """What is read of a loop where it is part of something: its arguments, and how it runs."""

    name: str
    bound: Bound
    over: Set
    context: Runtime
    races: RaceInfo
    written: list[Dat | Global]
    plan: cached_property[Plan]

    def argument_block(
        self, entry: Entry, group: Group, numbering: Numbering, span: Span | None = None,
        partials: dict[str, Buffer] | None = None,
    ) -> ArgumentBlock:  # fmt: skip
        """Return what one call of the generated function is given."""
        ...


def can_begin_anywhere(group: Group, over: Set) -> bool:
    """Whether the code of a group can begin at any element: generated with `Group.ranged`."""
    if over.parent.part is None or over.most is not None or group.strategy not in _BY_POSITION:
        return False
    if isinstance(over, Grid) and any(m.spec.grid is None for m in group.members):
        return False  # spans of a lattice begin with a plane, not where packs want it
    from fluxloom.codegen.teams import in_teams

    return not (in_teams(group) and group.reductions(group.members))  # partial results are those of whole groups


def sums_together(group: Group, device: Device) -> bool:
    """Whether spans of a group keep their partial results together, so that they are combined once."""
    return device.items and group.ranged


def halo_needs(bound: Bound) -> list[Dat]:
    """Return the dats whose halo a loop reads: through maps, and its own where it runs over its execute halo.

    What it writes there, through private slots, has to be current before, too: what comes later would undo it.
    """
    halo = executes_halo(bound)
    return unique(
        a.data
        for a in bound.arguments
        if isinstance(a.data, Dat) and a.data.set.shared
        if _meets_halo(a, halo) and not all_written(bound, a)
    )


def _meets_halo(argument: BoundArgument, halo: bool) -> bool:
    """Whether an argument meets elements of other ranks that have to be current; ``halo``: if the loop runs there.

    What goes back has to be current where the loop leaves it as it was.
    """
    through, access = argument.map, argument.access
    if (isinstance(through, SlotMap) and through.away) or (isinstance(through, OffsetMap) and access is Access.WRITE):
        return True
    return access in (Access.READ, Access.RW) and (
        halo or (leads_away(argument) and not (through is not None and through.stays))
    )


def gather_limits(target: Set, plan: Plan, tile: int) -> Limits:
    """Return the limits of a loop that runs target by target."""
    found = limits_of(target, False, tile)
    met = plan.values.get("inv_met")
    if met is None:
        return found
    begin, inside, owned = (int(k) for k in np.searchsorted(np.asarray(met), (found.begin, found.inside, found.owned)))
    return Limits(begin, inside, owned, owned)


def _limits(loop: PlannedLoop, group: Group) -> Limits:
    gathers = group.strategy == "gather" and "single" not in loop.plan.values
    if gathers:
        return gather_limits(loop.races.targets[0], loop.plan, group.tile)
    return limits_of(loop.over, executes_halo(loop.bound))


def loop_task(
    loop: PlannedLoop, entry: Entry, group: Group, numbering: Numbering, program: Program,
    keep: Callable[[ArgumentBlock], None],
) -> Task:  # fmt: skip
    """Return one loop as a task; ``keep`` is told of each argument block that is made."""
    if isinstance(loop.over.parent, Grid) and loop.over.parent.part is not None and executes_halo(loop.bound):
        raise PlanError(
            f"{loop.name}: on several ranks a loop over a lattice cannot add to or write what maps lead to, because "
            "elements of other ranks that lead to the same targets are not here; let a loop over the targets read"
        )
    limits = _limits(loop, group)
    cut = group.ranged or (group.strategy in _BY_PLAN and loop.over.parent.part is not None)
    reduces = loop.bound.globals(reads=False)
    if reduces and not cut and loop.over.parent.part is not None and executes_halo(loop.bound):
        raise PlanError(
            f"{loop.name}: strategy {group.strategy!r} cannot tell which elements count in its reductions on several "
            "ranks; use block_colour or atomic, or reduce in a loop of its own"
        )

    partials: dict[str, Buffer] = {}
    shared = partials if sums_together(group, loop.context.device) else None

    def make(span: Span, counts: bool) -> Call:
        block = loop.argument_block(entry, group, numbering, span, shared if counts else None)
        if not counts:
            for target, _ in reduces:
                block.redirect(numbering.dat(target), loop.context.allocate(target.buffer.nbytes))
        if block.stale:
            block.send()  # who sends what has changed has done so already when a loop by itself is first called
        keep(block)
        return block.call(loop.name, program)

    needs = halo_needs(loop.bound)
    return Task(
        name=loop.name,
        limits=limits,
        cut=cut,
        make=make,
        needs=needs,
        written=[d for d in loop.written if isinstance(d, Dat)],
        reads=[g for g, _ in loop.bound.globals(reads=True)],
        reduces=reduces,
        kept=_kept(loop),
        apart=group.strategy in _APART,
        together=shared is not None,
        halo_reads=halo_reads(loop.bound, needs) if needs else (),
        private=private_slots(loop.bound),
        returns=halo_returns(loop.bound) if loop.context.ranked else (),
    )


def _kept(loop: PlannedLoop) -> list[Dat]:
    """Return the dats that a loop changes where no other rank looks: at elements none stores, or in private."""
    over = loop.over
    alone = isinstance(over, Subset) and over.parent.part is not None and not over.mirrored
    seen = [
        a.data
        for a in loop.bound.arguments
        if a.access.writes and not (alone if a.map is None else isinstance(a.map, SlotMap) and a.map.private)
    ]
    return [d for d in loop.written if isinstance(d, Dat) and not any(d is other for other in seen)]


def reset_task(reset: Reset) -> Task:
    """Return the reset of a global as a task; made to count on one rank only, it sets the others to zero."""
    context = reset.context

    def make(_span: Span, whole: bool) -> Call:
        return context.device.reset_call(reset.block(reset.value if whole or context.comm.rank == 0 else 0.0))

    return Task("reset", Limits(0, 0, 0, 0), False, make, (), (), resets=reset.target)


def task_globals(loops: Sequence[PlannedLoop]) -> tuple[list[Global], list[tuple[Global, Access]]]:
    """Return the globals that some loops read, and those that they reduce into."""
    reads = [g for loop in loops for g, _ in loop.bound.globals(reads=True)]
    reduces = {id(g): (g, a) for loop in loops for g, a in loop.bound.globals(reads=False)}
    return unique(reads), list(reduces.values())


class Traffic:
    """Keeps host and device copies of what some loops use in step.

    Before the loops run, what the host has changed is sent; afterwards what they wrote is newer on the
    device. Nothing comes back until the host asks for it.
    """

    def __init__(self, loops: Iterable[PlannedLoop], more: Iterable[Dat | Global] = ()) -> None:
        loops = list(loops)
        self._used: list[Dat | Global] = unique([a.data for loop in loops for a in loop.bound.arguments] + list(more))
        self._members: list[Subset] = unique(
            loop.over for loop in loops if isinstance(loop.over, Subset) and loop.over.most is not None
        )
        self._written: list[Dat | Global] = unique([data for loop in loops for data in loop.written] + list(more))

    def before(self) -> None:
        """Send what the host has changed."""
        for data in self._used:
            if data.buffer.where is Where.HOST:
                data.buffer.device()
        for over in self._members:
            if over.members.where is Where.HOST:
                over.members.device()

    def after(self) -> None:
        """Note what the device has changed."""
        for data in self._written:
            buffer = data.buffer
            if isinstance(buffer, RemoteBuffer):
                buffer.written()
