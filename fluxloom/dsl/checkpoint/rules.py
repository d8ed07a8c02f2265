"""Which dats a checkpoint has to hold, seen from a place in the sequence of loops.

The rule is that of I. Z. Reguly, PhD thesis (PPCU Budapest, 2014), section 6.1: from the place where a checkpoint is
entered, a dat whose first use is a full overwrite is left out, any other that ever changed is saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fluxloom.core.access import Access
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import OffsetMap, TableMap
from fluxloom.dsl.declare.runtime import among, unique
from fluxloom.dsl.declare.sets import Grid, Subset
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop

__all__ = [
    "Advice", "Call", "Spot", "Use", "call_of", "changed_before", "costs", "find_period", "saved_bytes", "saved_from"
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Use:
    """What one loop, or one reset of a global, does to data.

    Attributes
    ----------
    name
        Of the loop; empty for a reset.
    needed
        Dats whose values before the loop matter.
    overwritten
        Dats that the loop writes everywhere without reading them.
    changed
        Dats that it changes.
    outputs
        Globals that it changes.
    """

    name: str
    needed: tuple[Dat, ...]
    overwritten: tuple[Dat, ...]
    changed: tuple[Dat, ...]
    outputs: tuple[Global, ...]


@dataclass(frozen=True, eq=False)
class Call:
    """What one call of a loop or a chain does.

    Attributes
    ----------
    text
        Tells this call from others, in every run of the program.
    uses
        One for each step.
    dead
        Dats whose values nobody needs after the call: transient ones that its next call overwrites first.
    """

    text: str
    uses: tuple[Use, ...]
    dead: tuple[Dat, ...] = ()

    @property
    def dats(self) -> list[Dat]:
        """Every dat it uses."""
        return unique(d for use in self.uses for d in (*use.needed, *use.overwritten))

    @property
    def outputs(self) -> list[Global]:
        """Every global it changes."""
        return unique(g for use in self.uses for g in use.outputs)


def call_of(item: Loop | Chain) -> Call:
    """Return what a call of a loop or chain does; on several ranks collective, for the first call of each."""
    if isinstance(item, Loop):
        return Call(item.name, (_use(item),))
    known: dict[int, Use] = {}
    for loop in item.loops:
        if id(loop) not in known:
            known[id(loop)] = _use(loop)
    uses = tuple(Use("", (), (), (), (s.target,)) if isinstance(s, Reset) else known[id(s)] for s in item.steps)
    text = f"{item.name}({', '.join(use.name for use in uses if use.name)})"
    return Call(text, uses, tuple(d for d in item.transient if not among(d, saved_from(uses, [d]))))


def _use(loop: Loop) -> Use:
    arguments = loop.bound.arguments
    dats = unique(a.data for a in arguments if isinstance(a.data, Dat))
    complete = [
        all(a.access is Access.WRITE for a in arguments if a.data is dat) and _covers(loop, dat) for dat in dats
    ]
    if loop.context.distributed and any(a.access is Access.WRITE for a in arguments):
        complete = [all(row) for row in zip(*loop.context.comm.allgather(complete), strict=True)]
    return Use(
        loop.name,
        tuple(d for d, full in zip(dats, complete, strict=True) if not full),
        tuple(d for d, full in zip(dats, complete, strict=True) if full),
        tuple(d for d in loop.written if isinstance(d, Dat)),
        tuple(g for g in loop.written if isinstance(g, Global)),
    )


def _covers(loop: Loop, dat: Dat) -> bool:
    """Whether the loop comes to every place of a dat that it writes."""
    if isinstance(loop.over, Subset) or (isinstance(dat.set, Grid) and any(dat.set.ghost)):
        return False
    reached: list[np.ndarray] = []
    for arg in loop.bound.arguments:
        if arg.data is not dat:
            continue
        if arg.map is None or isinstance(arg.map, OffsetMap):  # a Write through a stencil writes every component once
            return True
        if isinstance(arg.map, TableMap):
            table = arg.map.table
            reached.append(table.ravel() if arg.leg < 0 else table[:, arg.leg])
    if not reached:
        return False
    seen = np.zeros(dat.set.storage_size, dtype=bool)
    seen[np.concatenate(reached)] = True
    return bool(seen[: dat.set.size].all())


# -------------------------------------------------------------------------------------------- costs


def saved_from(uses: Iterable[Use], changed: Sequence[Dat]) -> list[Dat]:
    """Return what a checkpoint saves that is entered before ``uses``, when ``changed`` are the dats ever changed."""
    flagged = {id(d): d for d in changed}
    saved: list[Dat] = []
    for use in uses:
        saved += [flagged.pop(id(d)) for d in use.needed if id(d) in flagged]
        for dat in use.overwritten:
            flagged.pop(id(dat), None)
        if not flagged:
            break
    return saved + list(flagged.values())


def saved_bytes(dats: Iterable[Dat]) -> int:
    """Return the bytes of their values on all ranks."""
    return sum(d.set.total * d.dim * d.scalar.size for d in dats)


def changed_before(calls: Iterable[Call], uses: Iterable[Use] = ()) -> list[Dat]:
    """Return the dats whose values matter after some calls, and some steps of the next."""
    alive: dict[int, Dat] = {}
    for call in calls:
        alive |= {id(d): d for use in call.uses for d in use.changed}
        for dat in call.dead:
            alive.pop(id(dat), None)
    alive |= {id(d): d for use in uses for d in use.changed}
    return list(alive.values())


@dataclass(frozen=True, eq=False)
class Spot:
    """A place where a checkpoint may be entered.

    Attributes
    ----------
    call, step
        Number of the call in the period, and of the step in it.
    name
        Of the loop before which it is entered.
    within
        The chain it belongs to; empty for a loop called by itself.
    saved
        The dats that are saved.
    nbytes
        Their bytes.
    """

    call: int
    step: int
    name: str
    within: str
    saved: tuple[Dat, ...]
    nbytes: int


@dataclass(frozen=True, eq=False)
class Advice:
    """What checkpoints would cost, place by place.

    Attributes
    ----------
    spots
        Every loop of one period, in order.
    """

    spots: tuple[Spot, ...]

    @property
    def best(self) -> Spot:
        """The place with the fewest bytes; the first call of a chain before places inside it, the earliest first."""
        return min(self.spots, key=lambda s: (s.nbytes, s.step > 0, s.call, s.step))

    def __str__(self) -> str:
        best = self.best
        lines = [f"best place for a checkpoint: before {_where(best)}, {best.nbytes / 1e6:.3f} MB"]
        for spot in self.spots:
            names = ", ".join(d.name for d in spot.saved) or "nothing"
            lines.append(f"  {spot.nbytes / 1e6:12.3f} MB before {_where(spot)}: {names}")
        return "\n".join(lines)


def _where(spot: Spot) -> str:
    return f"{spot.name} (step {spot.step} of {spot.within})" if spot.within else spot.name


def costs(period: Sequence[Call], before: Sequence[Dat] = ()) -> tuple[Spot, ...]:
    """Return every place of a period of calls where a checkpoint may be entered, with what it saves there.

    Parameters
    ----------
    period
        The calls that come again and again, from now on.
    before
        Dats that changed earlier; the period may overwrite or declare them dead.

    Raises
    ------
    CheckpointError
        When the period holds no loop.
    """
    earlier = Call("", (Use("", (), (), tuple(before), ()),))
    spots: list[Spot] = []
    for k, call in enumerate(period):
        past = [earlier, *period[k:], *period[:k]]
        following = [use for c in (*period[k + 1 :], *period[:k]) for use in c.uses]
        for step, use in enumerate(call.uses):
            if not use.name:
                continue
            ahead = [*call.uses[step:], *following, *call.uses[:step]]
            saved = saved_from(ahead, changed_before(past, call.uses[:step]))
            within = call.text.partition("(")[0] if len(call.uses) > 1 else ""
            spots.append(Spot(k, step, use.name, within, tuple(saved), saved_bytes(saved)))
    if not spots:
        raise CheckpointError("no loop was recorded: let the program run for at least two of its periods")
    return tuple(spots)


def find_period(sequence: Sequence[int]) -> int | None:
    """Return after how many entries the end of a sequence repeats itself, or None.

    Every length ``p`` with ``sequence[-p:] == sequence[-2 p:-p]`` is a candidate; of these it is the one that
    explains most of the sequence when it is continued towards the beginning, and the shortest of those.
    """
    reverse = sequence[::-1]
    n = len(reverse)
    match = [0] * n  # length of the common beginning of `reverse` and `reverse[p:]`
    left = right = 0
    best, explained = None, 0
    for p in range(1, n):
        k = min(right - p, match[p - left]) if p < right else 0
        while p + k < n and reverse[k] == reverse[p + k]:
            k += 1
        match[p] = k
        if p + k > right:
            left, right = p, p + k
        if k >= p and p + k > explained:
            best, explained = p, p + k
    return best
