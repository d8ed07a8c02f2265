"""Parts of a sequence on several ranks: loops or fused groups, other steps, and messages between them.

What needs no message runs while messages travel.

The life of a dat's halo in a sequence is cut into stretches, which end with a task that changes the dat. If it is known
of every task of a stretch number by number what it reads, messages bring that alone: a few numbers before the first
task that wants such, and those beside a side before the first task that wants these, so that what is written in private
before it needs no messages, and its interior runs while they travel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.device.base import Buffer, Call, Enqueued
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.halo_reads import HaloMask, HaloReads, SlotReads
from fluxloom.dsl.incoming import incoming
from fluxloom.dsl.plan import Limits, Span
from fluxloom.dsl.runtime import Runtime, among, unique

if TYPE_CHECKING:
    from fluxloom.dsl.exchange import Exchange

__all__ = [
    "Numbered", "Reset", "Served", "Task", "aside", "counted", "exchange_places", "last_of", "next_access", "order",
    "places_of_numbers",
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
        Task numbers and ids of dats: what other messages bring (`fluxloom.dsl.task`).

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
