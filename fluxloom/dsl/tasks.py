"""Loops as tasks of a sequence: their positions and limits, what they need of other ranks, their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from fluxloom.codegen.group import Group
from fluxloom.codegen.spec import Entry
from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Buffer, Call, Device, Program
from fluxloom.dsl.bind import Bound, Numbering, executes_halo, leads_away
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.executable import ArgumentBlock
from fluxloom.dsl.halo_reads import halo_reads, private_slots
from fluxloom.dsl.halo_returns import all_written, halo_returns
from fluxloom.dsl.identity import unique
from fluxloom.dsl.maps import BoundArgument, OffsetMap
from fluxloom.dsl.plan import Plan
from fluxloom.dsl.races import RaceInfo
from fluxloom.dsl.runtime import Runtime
from fluxloom.dsl.sets import Grid, Set, Subset
from fluxloom.dsl.slots import SlotMap
from fluxloom.dsl.spans import Limits, Span, limits_of
from fluxloom.dsl.steps import Reset
from fluxloom.dsl.task import Task

__all__ = ["PlannedLoop", "can_begin_anywhere", "gather_limits", "halo_needs", "loop_task", "reset_task"]

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
