"""The knob ``pairs``: two neighbouring rows of a ragged loop at once, by one work item with vector loads."""

from __future__ import annotations

from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.bind import Bound, Numbering, specialise

__all__ = ["allowed", "require_pairs", "why_single"]


def why_single(bound: Bound, strategy: str | None) -> str:
    """Return why a work item cannot have two rows of a loop under a strategy; empty when it can."""
    device = bound.over.context.device
    if not device.items:
        return f"the device {device.name!r} has packs of rows: use lanes=8"
    if strategy not in (None, "direct"):
        return f"the strategy {strategy!r} guards increments element by element"
    if bound.over.parent.part is not None and bound.reduces:
        return "it reduces over rows of several ranks, whose ranges may begin inside a pair"
    from fluxloom.codegen.items.pairs import why_not_paired

    return why_not_paired(specialise(bound, Numbering()))


def require_pairs(bound: Bound, own: Schedule) -> None:
    """Raise `PlanError` when a loop itself was asked to have two rows an item and cannot."""
    if not own.pairs or not bound.over.context.device.native:
        return
    reason = why_single(bound, own.strategy) or (f"lanes={own.lanes} items share a row" if own.lanes > 1 else "")
    if reason:
        raise PlanError(f"{bound.name}: pairs of rows are not possible: {reason}")


def allowed(bound: Bound, now: Schedule) -> tuple[bool, ...]:
    """Return what a search may try, what is in force first; nothing where items cannot have two rows.

    The items of a CPU take turns: two rows at once only cost more there.
    """
    pays = bool(now.pairs) or not getattr(bound.over.context.device, "is_cpu", False)
    return (bool(now.pairs), not now.pairs) if pays and not why_single(bound, None) else ()
