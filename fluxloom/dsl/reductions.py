"""Sums and extremes over ranks.

Of a global each rank reduces its own elements; the ranks' results meet when somebody wants them.
Between the two a global *waits*: of a sum, rank 0 holds what there was before and what it added, the others what
they added; of a minimum or maximum, every rank its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.links import OPERATIONS, Reduced
from fluxloom.dsl.runtime import Runtime, among

__all__ = [
    "combine_ranks",
    "forget",
    "form_totals",
    "note_waiting",
    "note_written",
    "open_partial",
    "require_total",
    "require_totals",
    "total_of_ranks",
]


class Total(Reduced, Protocol):
    """A global, whose value is one of all ranks."""

    context: Runtime


def open_partial(target: Total, access: Access) -> None:
    """Let a global wait: loops are going to reduce into it."""
    context = target.context
    if not context.ranked or target.waiting is access:
        return
    if target.waiting is not None:
        form_totals(context, [target])
    if access is Access.INC and context.comm.rank:
        target.buffer.host(write=True)[:] = 0
        target.buffer.device()
    target.waiting = access
    context.waiting.append(target)


def require_total(target: Total) -> None:
    """Make a global hold the result of all ranks, and with it all others that wait; collective when it waits."""
    if target.waiting is not None:
        form_totals(target.context, target.context.waiting)


def require_totals(targets: Sequence[Total]) -> None:
    """Make some globals hold the result of all ranks; the others wait on. Collective when one of them waits."""
    if targets:
        form_totals(targets[0].context, targets)


def forget(target: Total) -> None:
    """Let a global wait no longer: it is given a new value, the same on every rank."""
    if target.waiting is not None:
        target.waiting = None
        target.context.waiting = [g for g in target.context.waiting if g is not target]


def note_written(targets: Sequence[Reduced]) -> None:
    """Note that the device has reduced into some globals."""
    for target in targets:
        if isinstance(target.buffer, RemoteBuffer):
            target.buffer.written()


def form_totals(context: Runtime, targets: Sequence[Reduced]) -> None:
    """Combine what the ranks hold of those of some globals that wait, in one message; collective."""
    waiting = [g for g in context.waiting if among(g, targets)]
    if not waiting:
        return
    context.waiting = [g for g in context.waiting if not among(g, waiting)]
    combine_ranks(context, [(g, g.waiting) for g in waiting if g.waiting is not None])
    for target in waiting:
        target.waiting = None


def note_waiting(target: Total, access: Access | None) -> None:
    """Note how a global waits after a sequence that has reduced into it, or that it does not."""
    if target.waiting is access:
        return
    forget(target)
    if access is not None:
        target.waiting = access
        target.context.waiting.append(target)


def combine_ranks(context: Runtime, targets: Sequence[tuple[Reduced, Access]]) -> None:
    """Combine what the ranks hold of some globals, by the GPUs or through the host; collective.

    Through the host it takes a message for those of each type and operation.
    """
    for target, _ in targets:
        context.comm.note(target.act)
    if context.links.combine(targets):
        note_written([target for target, _ in targets])
        return
    context.device.bring([target.buffer for target, _ in targets])
    alike: dict[tuple[str, Access], list[Reduced]] = {}
    for target, access in targets:
        alike.setdefault((target.scalar.name, access), []).append(target)
    for (_, access), some in alike.items():
        found = context.comm.reduce(np.concatenate([_flat(target) for target in some]), OPERATIONS[access])
        begin = 0
        for target in some:
            target.buffer.host(write=True)
            _flat(target)[:] = found[begin : begin + target.dim]
            target.buffer.device()
            begin += target.dim


def _flat(target: Reduced) -> np.ndarray:
    return target.buffer.host().view(target.scalar.numpy)[: target.dim]


def total_of_ranks(
    context: Runtime, mine: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the sum over all ranks; in a context with ``deterministic="global"`` one that does not depend on them.

    Collective.

    Parameters
    ----------
    mine : (k,)
        The sum of this rank.
    rows : (n, k)
        What it is the sum of.
    """
    if context.schedule.deterministic != "global":
        return context.comm.reduce(mine, "sum")
    from fluxloom.comm.exact_sums import exact_total

    return exact_total(context.comm, rows)
