"""In which order the parts of a task and its messages run: what needs no message runs while messages travel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.spans import Limits, Span

if TYPE_CHECKING:
    from fluxloom.dsl.exchange import Exchange

__all__ = ["Numbered", "aside", "order"]

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
