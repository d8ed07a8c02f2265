"""Tasks: loops or fused groups as parts of a sequence on several ranks, and where halos are exchanged between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from fluxloom.core.access import Access
from fluxloom.device.base import Buffer, Call
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.halo_reads import HaloMask, HaloReads, SlotReads
from fluxloom.dsl.identity import among
from fluxloom.dsl.spans import Limits, Span

__all__ = ["Task", "counted", "exchange_places", "last_of", "next_access"]


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
        Task numbers and ids of dats: what other messages bring (`fluxloom.dsl.halo_places`).

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
