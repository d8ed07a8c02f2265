"""Where messages of single numbers stand in a sequence: see `fluxloom.dsl.halo_reads`.

The life of a dat's halo in a sequence is cut into stretches, which end with a task that changes the dat. If it is known
of every task of a stretch number by number what it reads, messages bring that alone: a few numbers before the first
task that wants such, and those beside a side before the first task that wants these, so that what is written in private
before it needs no messages, and its interior runs while they travel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluxloom.dsl.dats import Dat
from fluxloom.dsl.halo_reads import HaloMask, HaloReads, SlotReads
from fluxloom.dsl.identity import among, unique
from fluxloom.dsl.task import Task

__all__ = ["Served", "places_of_numbers"]

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
