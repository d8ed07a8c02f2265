"""Parts of a sequence on several ranks: loops or fused groups, other steps, and messages between them.

What needs no message runs while messages travel.

The life of a dat's halo in a sequence is cut into stretches, which end with a task that changes the dat. If it is known
of every task of a stretch number by number what it reads, messages bring that alone: a few numbers before the first
task that wants such, and those beside a side before the first task that wants these, so that what is written in private
before it needs no messages, and its interior runs while they travel.

Loops are tasks of a sequence with positions and limits, what they need of other ranks, and their calls. Numbers that
they write among copies of other ranks go back to these; values move between host and device where the two have memories
of their own.

A loop that writes through a stencil (`fluxloom.dsl.plan.bind`) changes numbers of elements that other ranks own, in its
copies of them. Each such number is met by one element of all ranks: nobody else changes it, nor does its owner. So a
message brings it there afterwards, as one that brings copies up to date, but with the two sides changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.spec import Entry
from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Buffer, Call, Device, Enqueued, Program, RemoteBuffer, Where
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.incoming import incoming
from fluxloom.dsl.declare.maps import BoundArgument, OffsetMap
from fluxloom.dsl.declare.runtime import Runtime, among, unique
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.bind import Bound, Numbering, executes_halo, leads_away
from fluxloom.dsl.plan.executable import ArgumentBlock
from fluxloom.dsl.plan.halo_reads import (
    HaloMask,
    HaloReads,
    Reads,
    SlotReads,
    halo_reads,
    private_slots,
    through_stencil,
)
from fluxloom.dsl.plan.plan import Limits, Plan, Span, limits_of
from fluxloom.dsl.plan.races import RaceInfo

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.exchange import Exchange

__all__ = [
    "Numbered", "PlannedLoop", "Reset", "Served", "Task", "Traffic", "all_written", "aside", "can_begin_anywhere",
    "counted", "exchange_places", "gather_limits", "halo_needs", "halo_returns", "last_of", "loop_task",
    "next_access", "order", "places_of_numbers", "reset_task",
]  # fmt: skip

@dataclass(frozen=True, eq=False)
class Task:
    """One loop or fused group of a sequence.

    Attributes
    ----------
    limits
        Where its positions are cut.
    cut
        Whether it may run in several spans.
    make
        Returns the call of a span; with False as second argument its reductions go nowhere, and what it resets
        is the sum of the ranks.
    needs
        Dats whose halo it reads.
    written
        Dats that it changes.
    kept
        Those of them whose halo stays as current as it was: no rank stores what another one changes.
    reads, reduces
        Globals that it reads, and those that it reduces into, with the access.
    copies
        Dats that take the values of others before it runs (a fused chain renames): target and source.
    buffers
        Where the dats are when it runs (by ``id``); None: where they are at the time of the call.
    resets
        A global that it sets to a value; it does nothing else then.
    apart
        Whether spans of it may run at the same time, but for the ends of reductions.
    together
        Whether its spans keep partial results together: then only the last launch of one of them combines them.
    halo_reads
        What it reads of some of the ``needs``, number by number, where that is known.
    private
        What it writes among copies of other ranks' elements where only this rank looks.
    returns
        What it writes there that belongs to these ranks, and goes back to them.
    """

    name: str
    limits: Limits
    cut: bool
    make: Callable[[Span, bool], Call]
    needs: Sequence[Dat]
    written: Sequence[Dat]
    reads: Sequence[Global] = ()
    reduces: Sequence[tuple[Global, Access]] = ()
    copies: Sequence[tuple[Dat, Dat]] = ()
    buffers: dict[int, Buffer] | None = None
    resets: Global | None = None
    kept: Sequence[Dat] = ()
    apart: bool = False
    together: bool = False
    halo_reads: Sequence[HaloReads] = ()
    private: Sequence[tuple[Dat, SlotReads]] = ()
    returns: Sequence[HaloMask] = ()


def exchange_places(
    tasks: Sequence[Task], current: Sequence[Dat], served: Collection[tuple[int, int]] = ()
) -> tuple[list[list[Dat]], list[Dat]]:
    """Return which dats are exchanged before each task, and which are current in the end.

    Parameters
    ----------
    current
        Dats whose halo is known to be current at the beginning.
    served
        Task numbers and ids of dats: what other messages bring (`fluxloom.dsl.ranks.task`).

    Notes
    -----
    A dat is exchanged before the first task that needs it; what a later task needs and no task in between
    changes travels in the same message.
    """
    fresh = list(current)
    places: list[list[Dat]] = []
    for k, task in enumerate(tasks):
        for target, source in task.copies:
            fresh = [d for d in fresh if d is not target] + ([target] if among(source, fresh) else [])
        wanted = [d for d in task.needs if not among(d, fresh) and (k, id(d)) not in served]
        if wanted:
            wanted += _later(tasks, k, [*fresh, *wanted], served)
        places.append(wanted)
        fresh = [d for d in [*fresh, *wanted] if among(d, task.kept) or not among(d, task.written)]
    return places, fresh


def _later(
    tasks: Sequence[Task], first: int, fresh: Sequence[Dat], served: Collection[tuple[int, int]]
) -> list[Dat]:
    """Return dats that tasks behind ``first`` need as they are now."""
    out: list[Dat] = []
    changed: list[Dat] = list(tasks[first].written)
    for k, task in enumerate(tasks[first + 1 :], first + 1):
        changed += [target for target, _ in task.copies]
        needs = [d for d in task.needs if (k, id(d)) not in served]
        out += [d for d in needs if not (among(d, changed) or among(d, fresh) or among(d, out))]
        changed += task.written
    return out


def counted(task: Task, spans: Sequence[Span]) -> list[tuple[Span, bool]]:
    """Cut spans where elements stop to count in reductions."""
    owned = task.limits.owned
    if not task.reduces or not task.cut or task.limits.end == owned:
        return [(s, True) for s in spans]
    out: list[tuple[Span, bool]] = []
    for s in spans:
        out += [(Span(s.begin, min(s.end, owned)), True), (Span(max(s.begin, owned), s.end), False)]
    return [(s, counts) for s, counts in out if len(s)]


def last_of(task: Task, ends: Sequence[tuple[int, Call]]) -> list[Call]:
    """Return what combines the partial results of all spans: one call, where they are kept together."""
    if not task.together or not ends:
        return [call for _, call in ends]
    return [max(ends, key=lambda end: end[0])[1]]


def next_access(tasks: Sequence[Task], target: Global) -> Access | None:
    """Return how the next task that uses a global reduces into it; None: not at all."""
    for task in tasks:
        if among(target, task.reads) or task.resets is target:
            return None
        for other, access in task.reduces:
            if other is target:
                return access
    return None


Served = set[tuple[int, int]]
"""Task numbers and ids of dats: who is served by messages of single numbers."""


def places_of_numbers(
    tasks: Sequence[Task], current: Sequence[Dat], transient: Sequence[Dat] = ()
) -> tuple[list[list[HaloMask]], Served]:
    """Return the messages of single numbers before each task, and which needs of tasks they serve.

    Parameters
    ----------
    current
        Dats whose halo is current at the beginning, and all through.
    transient
        Dats whose values nobody reads after the tasks.
    """
    places: list[list[HaloMask]] = [[] for _ in tasks]
    served: Served = set()
    for dat in unique(r.dat for task in tasks for r in task.halo_reads):
        if among(dat, current) or any(among(dat, pair) for task in tasks for pair in task.copies):
            continue
        for stretch in _stretches(tasks, dat):
            found = _serve(tasks, stretch, dat, among(dat, transient))
            if found is None:
                continue
            for number, mask in found:
                places[number].append(mask)
            served |= {(k, id(dat)) for k in stretch}
    return places, served


def _changes(task: Task, dat: Dat) -> bool:
    """Whether other ranks' copies of a dat are no longer current after a task."""
    return among(dat, task.written) and not among(dat, task.kept)


def _stretches(tasks: Sequence[Task], dat: Dat) -> Iterator[range]:
    begin = 0
    for k, task in enumerate(tasks):
        if _changes(task, dat):
            yield range(begin, k + 1)
            begin = k + 1
    if begin < len(tasks):
        yield range(begin, len(tasks))


def _serve(
    tasks: Sequence[Task], stretch: range, dat: Dat, transient: bool
) -> list[tuple[int, HaloMask]] | None:
    """Return the messages of a stretch and before which tasks they are sent; None if elements have to be sent."""
    private: dict[int, list[SlotReads]] = {k: [s for d, s in tasks[k].private if d is dat] for k in stretch}
    reads: dict[int, HaloReads] = {}
    for k in stretch:
        if not among(dat, tasks[k].needs):
            continue
        known = next((r for r in tasks[k].halo_reads if r.dat is dat), None)
        if known is None:
            return None
        if known.reads:
            reads[k] = known
    wide = [k for k in reads if not reads[k].few]
    kept = any(private.values())
    if not reads or not (kept or all(r.sparse for r in reads.values())):
        return None
    if (kept or not wide) and not transient and not _changes(tasks[stretch[-1]], dat):
        return None  # who comes later may want more, or what was written in private: the halo has to be current then
    first = wide[0] if wide else stretch.stop
    out = []
    for group in ([k for k in reads if k < first], [k for k in reads if k >= first]):
        if group:
            before = tuple(s for k in stretch if k < group[0] for s in private[k])
            out.append((group[0], HaloMask(dat, tuple(r for k in group for r in reads[k].reads), before)))
    return out


Numbered = tuple[int, "Exchange"]
"""An exchange, and the number under which its items are counted."""

Items = tuple[list[Call | Enqueued], int]


def order(limits: Limits, overlaps: bool, there: Numbered | None, back: Numbered | None) -> list[list[Span] | Items]:
    """Return the order of the spans of a task and of the items of its exchanges, each of these with its number.

    Parameters
    ----------
    overlaps
        Whether its interior runs while messages travel.
    there
        Brings what the task needs: its ends wait for it.
    back
        Carries what the task leaves to other ranks: it waits for the ends. With both, half of the interior runs while
        each of them travels. Nothing that the interior meets is in either message.
    """
    send, receive, mine = ([], [], -1) if there is None else (there[1].before(), there[1].after(), there[0])
    give, take, other = ([], [], -1) if back is None else (back[1].before(), back[1].after(), back[0])
    if not overlaps:
        return [([*send, *receive], mine), [limits.whole], ([*give, *take], other)]
    first, second = limits.halves
    if there is None or back is None:
        first, second = (limits.interior, Span(0, 0)) if back is None else (Span(0, 0), limits.interior)
    found = [(send, mine), [first], (receive, mine), limits.rest, (give, other), [second], (take, other)]
    return [[s for s in stage if len(s)] if isinstance(stage, list) else stage for stage in found]


def aside(exchange: Numbered | None) -> Items:
    """Return the items of an exchange that run beside the main queue, without fork and join, and its number."""
    if exchange is None:
        return [], -1
    number, found = exchange
    assert found.apart is not None
    return [*found.packs(), found.apart.send, *found.apart.receive, *found.unpacks()], number


class Reset:
    """Sets a global to a value: in a chain, a reduction starts anew at every call."""

    def __init__(self, target: Global, value: float = 0.0) -> None:
        incoming(value, target.scalar, f"global {target.name!r}")
        self.target, self.value = target, value
        self.context: Runtime = target.context

    def __call__(self) -> None:
        """Set the value now."""
        self.target.value = np.full(self.target.shape, self.value)

    def block(self, value: float | None = None) -> npt.NDArray[np.int64]:
        """Return the argument block of the native form: address, components, bytes of one, its bits.

        ``value`` is another one than that of the reset.
        """
        words = np.zeros(4, dtype=np.int64)
        size = self.target.scalar.size
        words[:3] = self.target.buffer.address, self.target.dim, size
        bits = np.array([self.value if value is None else value], dtype=self.target.scalar.numpy).tobytes()
        words[3:].view(np.uint8)[:size] = np.frombuffer(bits, dtype=np.uint8)
        return words


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
    from fluxloom.codegen.items.cooperative_rows import has_cooperative_rows

    return not (has_cooperative_rows(group) and group.reductions(group.members))  # partial results are of groups


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
        returns=halo_returns(loop.bound) if loop.context.distributed else (),
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
