"""Loops on several ranks: where halos are exchanged, which elements run while messages travel.

A sequence of loops or fused groups is turned into steps once: native calls, exchanges, sums over the ranks. Where
a task needs halo values that are not current, it is cut: its interior runs while the messages travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.core.errors import LoopError
from fluxloom.device.base import Call, Enqueued, Sequencer
from fluxloom.dsl.declare.dats import (
    Dat,
    Global,
    combine_ranks,
    note_waiting,
    note_written,
    open_partial,
    require_totals,
)
from fluxloom.dsl.declare.runtime import Runtime, among, unique
from fluxloom.dsl.plan.halo_reads import HaloMask
from fluxloom.dsl.plan.plan import Span
from fluxloom.dsl.ranks.task import (
    Numbered,
    Reset,
    Task,
    aside,
    counted,
    exchange_places,
    last_of,
    next_access,
    order,
    places_of_numbers,
)

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.exchange import Exchange

__all__ = [
    "DistributedSequence",
    "ExchangeTime",
    "OneTask",
    "may_be_stale",
    "sequence",
    "stale_somewhere",
]  # fmt: skip


class DistributedSequence(Sequencer):
    """Tasks in order, with exchanges between them; replayed like a device's own sequence.

    Parameters
    ----------
    first
        Calls before everything (resets of globals).
    tasks
        What runs.
    current
        Dats whose halo is current whenever the sequence begins.
    transient
        Dats whose values nobody reads afterwards.
    """

    def __init__(
        self, context: Runtime, first: Sequence[Call], tasks: Sequence[Task], current: Sequence[Dat],
        transient: Sequence[Dat] = (),
    ) -> None:  # fmt: skip
        self.context, self.tasks = context, list(tasks)
        numbers, served = places_of_numbers(tasks, current, transient)
        places, self.fresh = exchange_places(tasks, current, served)
        self.exchanges: list[Exchange] = []
        self._wanted: list[Global] = []
        self._before: list[Callable[[], Any]] = []
        self._items: list[Call | Enqueued] = list(first)
        self._owners: list[int] = list(range(len(first)))
        self._waiting: dict[int, Access | None] = {}
        self._used: list[Global] = []
        self._peer: Any = None
        for place, (task, dats, masks) in enumerate(zip(self.tasks, places, numbers, strict=True)):
            self._globals(place)
            self._task(place + len(first), task, dats, masks)
        self._size = len(first) + len(self.tasks)
        self._native = context.device.sequencer(self._items)

    # ------------------------------------------------------------------------------------- items
    def _task(self, number: int, task: Task, dats: list[Dat], masks: list[HaloMask]) -> None:
        there = self._exchange(task, dats, masks, []) if dats or masks else None
        back = self._exchange(task, [], [], task.returns) if task.returns else None
        found = [x for x in (there, back) if x is not None]
        overlaps = bool(found and self.context.overlap and task.cut and len(task.limits.interior))
        if overlaps and task.apart and all(x.apart for _, x in found):
            self._beside(number, task, there, back)
            return
        ends: list[tuple[int, Call]] = []
        stages = order(task.limits, overlaps, there, back)
        for place, stage in enumerate(stages):
            if not isinstance(stage, list):
                self._add(*stage)
            elif task.together and overlaps:
                calls, more = self._made(task, stage)
                ends += more
                last = not any(isinstance(later, list) for later in stages[place + 1 :])
                self._add([*calls, *(last_of(task, ends) if last else ())], number)
            else:
                self._spans(number, task, stage)

    def _exchange(
        self, task: Task, dats: Sequence[Dat], masks: Sequence[HaloMask], returns: Sequence[HaloMask]
    ) -> Numbered:
        """Return an exchange and the number under which its items are counted."""
        from fluxloom.dsl.ranks.exchange import Exchange

        exchange = Exchange(self.context, dats, task.buffers, masks, returns)
        self.exchanges.append(exchange)
        return -1 - len(self.exchanges), exchange

    def _beside(self, number: int, task: Task, there: Numbered | None, back: Numbered | None) -> None:
        """Let all that has to do with the halo run beside the interior; only sums of both parts wait for each other."""
        mine, exchange = next(x for x in (there, back) if x is not None)
        main = exchange.apart
        assert main is not None
        self._add([main.fork], mine)
        inner, ends = self._made(task, [task.limits.interior])
        self._add(inner, number)  # first: a graph goes on with it without a change of queue
        self._add(*aside(there))
        outer, more = self._made(task, task.limits.rest)
        self._add([replace(call, aside=True) for call in outer], number)
        self._add(*aside(back))
        self._add([main.join], mine)
        self._add(last_of(task, [*ends, *more]), number)

    @staticmethod
    def _made(task: Task, spans: Sequence[Span]) -> tuple[list[Call], list[tuple[int, Call]]]:
        """Return the calls of some spans without what combines partial results, and that, with the spans' ends."""
        calls: list[Call] = []
        ends: list[tuple[int, Call]] = []
        from fluxloom.codegen.items.kernels import FINISH

        for span, counts in counted(task, spans):
            call = task.make(span, counts)
            first = tuple(x for x in call.launches if not x.symbol.endswith(FINISH))
            calls.append(replace(call, launches=first))
            if len(first) < len(call.launches) and counts:
                ends.append((span.end, replace(call, launches=call.launches[len(first) :])))
        return calls, ends

    def _spans(self, number: int, task: Task, spans: Sequence[Span]) -> None:
        whole = task.resets is None or self._waiting[id(task.resets)] is not Access.INC
        for span, counts in counted(task, spans):
            self._add([task.make(span, counts and whole)], number)

    def _add(self, items: Sequence[Call | Enqueued], owner: int = -1) -> None:
        self._items += items
        self._owners += [owner] * len(items)

    def _globals(self, place: int) -> None:
        """Let globals wait that a task reduces into, and form the result of all ranks for those that it reads.

        The first use of a global decides what it has to be at the beginning; only later changes cut the sequence.
        """
        task = self.tasks[place]
        wanted: list[tuple[Global, Access]] = []
        for target in unique(task.reads):
            access = self._now(target)
            if id(target) not in self._waiting:
                self._wanted.append(target)
            elif access is not None:
                wanted.append((target, access))
            self._note(target, None)
        self._total(wanted)
        for target, access in task.reduces:
            self._open(target, access)
        if task.resets is not None:
            self._reset(place, task.resets)

    def _now(self, target: Global) -> Access | None:
        """Return how a global waits at this place of the sequence."""
        return self._waiting.get(id(target))

    def _note(self, target: Global, access: Access | None) -> None:
        if id(target) not in self._waiting:
            self._used.append(target)
        self._waiting[id(target)] = access

    def _open(self, target: Global, access: Access) -> None:
        """Let a global wait from here on."""
        before = self._now(target)
        if id(target) not in self._waiting:
            self._before.append(partial(open_partial, target, access))
        elif before is not access:
            if before is not None:
                self._total([(target, before)])
            if access is Access.INC and self.context.comm.rank:
                self._add([self.context.device.reset_call(Reset(target).block())])
        self._note(target, access)

    def _reset(self, place: int, target: Global) -> None:
        """Let a global that is about to be reset wait, if that spares the ranks a turn later."""
        access = next_access(self.tasks[place + 1 :], target)
        if id(target) not in self._waiting:
            self._before.append(partial(note_waiting, target, access))
            self._note(target, access)
        elif self._now(target) is None:
            self._note(target, access)

    def _total(self, wanted: Sequence[tuple[Global, Access]]) -> None:
        """Form the result of all ranks: by the GPUs themselves where they can, else in a turn of the host."""
        if not wanted:
            return
        call = self.context.links.total(wanted)
        if call is not None:
            self._peer = self.context.links.peer
            self._add([call])
            return

        def turn() -> None:
            note_written([target for target, _ in wanted])
            combine_ranks(self.context, wanted)

        self._add([Enqueued(f"total {'+'.join(g.name for g, _ in wanted)}", turn)])

    # ----------------------------------------------------------------------------------- running
    def __call__(self) -> None:
        """Run the sequence once."""
        require_totals(self._wanted)
        for step in self._before:
            step()
        self._native()
        for target in self._used:
            note_waiting(target, self._now(target))
        if self._peer is not None:
            self._peer.check()

    def refresh(self) -> None:
        """Take notice of changed argument words and moved dats."""
        for exchange in self.exchanges:
            exchange.refresh()
        self._native.refresh()

    def settle(self) -> None:
        """Bring ``seconds`` up to date."""
        self._native.settle()

    def reset(self) -> None:
        """Set the counters to zero."""
        self._native.reset()

    @property
    def seconds(self) -> npt.NDArray[np.float64]:  # type: ignore[override]
        """Seconds of each task, all its spans together."""
        out = np.zeros(self._size)
        for owner, seconds in zip(self._owners, self._native.seconds, strict=False):
            if owner >= 0:
                out[owner] += seconds
        return out

    @property
    def counts(self) -> npt.NDArray[np.int64]:  # type: ignore[override]
        """How often each task ran."""
        out = np.zeros(self._size, dtype=np.int64)
        for owner, count in zip(self._owners, self._native.counts, strict=False):
            if owner >= 0:
                out[owner] = max(out[owner], count)
        return out

    def without_exchanges(self) -> Sequencer:
        """Return the same calls without the exchanges, for measurements: nobody brings halos up to date."""
        kept = [i for i, owner in zip(self._items, self._owners, strict=True) if owner >= -1]
        return self.context.device.sequencer([replace(i, aside=False) if isinstance(i, Call) else i for i in kept])

    def exchange_times(self) -> list[ExchangeTime]:
        """Return what the exchanges took, one row each."""
        self._native.settle()
        rows = []
        for number, exchange in enumerate(self.exchanges):
            own = [k for k, owner in enumerate(self._owners) if owner == -2 - number]
            seconds = sum(float(self._native.seconds[k]) for k in own)
            count = max((int(self._native.counts[k]) for k in own), default=0)
            rows.append(ExchangeTime(exchange.name, count, seconds, exchange.bytes_sent, exchange.transport.name,
                                     len(exchange.neighbours)))  # fmt: skip
        return rows


@dataclass(frozen=True)
class ExchangeTime:
    """What an exchange took on this rank.

    Attributes
    ----------
    name, transport
        The dats, and how the messages travel.
    calls
        How often it ran.
    seconds
        Packing, unpacking, and what it kept the device or the host waiting.
    nbytes, neighbours
        Bytes sent each time, and to how many ranks.
    """

    name: str
    calls: int
    seconds: float
    nbytes: int
    transport: str
    neighbours: int


def may_be_stale(dat: Dat) -> bool:
    """Whether the halo of a dat may differ from what this rank's owners hold: also while somebody has a view of it."""
    return not dat.current or (dat.viewed and dat.watched)


def stale_somewhere(context: Runtime, dats: Sequence[Dat]) -> list[Dat]:
    """Return those of some dats that a rank has changed since their last exchange; collective, if there are any."""
    if not dats:
        return []
    here = np.array([may_be_stale(d) for d in dats], dtype=np.int64)
    return [d for d, stale in zip(dats, context.comm.reduce(here, "max"), strict=True) if stale]


class OneTask(Sequencer):
    """One loop by itself: exchanges what is not current when it is called.

    There is one sequence for each set of dats that were not current at some call. What it keeps current (`Task.kept`)
    is current for the next loop too, whose version is the next one: the loop counts it when it has run.
    """

    def __init__(self, context: Runtime, task: Task, act: bytes) -> None:
        self.context, self.task = context, replace(task, halo_reads=())  # what it is brought serves other loops too
        self._act = act
        self._forms: dict[tuple[int, ...], DistributedSequence] = {}

    def __call__(self) -> None:
        """Run the loop once."""
        self.context.comm.note(self._act)
        self._check_private()
        stale = stale_somewhere(self.context, self.task.needs)
        key = tuple(id(d) for d in stale)
        form = self._forms.get(key)
        if form is None:
            current = [d for d in self.task.needs if not among(d, stale)]
            form = self._forms[key] = DistributedSequence(self.context, [], [self.task], current)
        for dat in stale:
            dat.halo_version = dat.version
        form()
        for dat in form.fresh:
            if among(dat, self.task.written):
                dat.halo_version = dat.version + 1

    def _check_private(self) -> None:
        """Check that no exchange is about to undo what is written in private among copies of other ranks' elements."""
        for dat in self.task.kept:
            if among(dat, self.task.needs) and dat.viewed and dat.watched:
                raise LoopError(
                    f"{self.task.name}: somebody holds an array over {dat.name!r}, so that it is exchanged before "
                    "every loop, and what this loop writes in private undone: let go of the array, or call a chain"
                )

    def refresh(self) -> None:
        """Take notice of changed argument words and moved dats."""
        for form in self._forms.values():
            form.refresh()

    def settle(self) -> None:
        """Bring ``seconds`` up to date."""
        for form in self._forms.values():
            form.settle()

    def reset(self) -> None:
        """Set the counters to zero."""
        for form in self._forms.values():
            form.reset()

    @property
    def seconds(self) -> npt.NDArray[np.float64]:  # type: ignore[override]
        """Seconds of the loop."""
        return sum((f.seconds for f in self._forms.values()), np.zeros(1))

    @property
    def counts(self) -> npt.NDArray[np.int64]:  # type: ignore[override]
        """How often it ran."""
        return sum((f.counts for f in self._forms.values()), np.zeros(1, dtype=np.int64))


def sequence(
    context: Runtime, first: Sequence[Call], tasks: Sequence[Task], transient: Sequence[Dat] = ()
) -> Sequencer:
    """Return the sequence of some tasks of a chain; on one rank it is the device's own.

    What no task changes has to be current when it begins, but for what nobody reads afterwards.
    """
    if not context.distributed:
        return context.device.sequencer([*first, *(task.make(task.limits.whole, True) for task in tasks)])
    changed = [d for task in tasks for d in (*task.written, *(target for target, _ in task.copies))]
    constant = unique(d for task in tasks for d in task.needs if not among(d, [*changed, *transient]))
    return DistributedSequence(context, first, tasks, constant, transient)


def fresh_after(sequencer: Sequencer) -> list[Dat]:
    """Return the dats whose halo is current after a sequence."""
    return sequencer.fresh if isinstance(sequencer, DistributedSequence) else []
