"""What a loop itself may be asked for on work items: two rows or several sites at once, increments that meet."""

from __future__ import annotations

from fluxloom.core.errors import PlanError
from fluxloom.dsl.bind import Bound, Numbering, specialise
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.sets import Grid

__all__ = ["require_pairs", "require_sites", "require_stage", "why_single"]


def why_single(bound: Bound, strategy: str | None) -> str:
    """Return why a work item cannot have two rows of a loop under a strategy; empty when it can."""
    if strategy not in (None, "direct"):
        return f"the strategy {strategy!r} guards increments element by element"
    if bound.over.parent.part is not None and bound.reduces:
        return "it reduces over rows of several ranks, whose ranges may begin inside a pair"
    from fluxloom.codegen.pairs import why_not_paired

    return why_not_paired(specialise(bound, Numbering()))


def require_pairs(bound: Bound, own: Schedule) -> None:
    """Raise `PlanError` when a loop itself was asked to have two rows an item and cannot."""
    device = bound.over.context.device
    if not own.pairs or not device.native:
        return
    if not device.items:
        raise PlanError(f"{bound.name}: pairs of rows on {device.name!r}, which has packs: use lanes=8")
    reason = why_single(bound, own.strategy)
    if not reason and own.lanes > 1:
        reason = f"lanes={own.lanes} items share a row"
    if reason:
        raise PlanError(f"{bound.name}: pairs of rows are not possible: {reason}")


def require_sites(bound: Bound, own: Schedule) -> None:
    """Raise `PlanError` when a loop itself was asked to have several sites an item, where items are, and cannot."""
    if own.sites < 2 or not bound.over.context.device.items:
        return
    if not isinstance(bound.over, Grid):
        reason = "it does not run over all of a grid"
    else:
        from fluxloom.codegen.grid_sites import why_one_site

        reason = why_one_site(specialise(bound, Numbering()), bound.over.shape[-1], own.sites)
    if reason:
        raise PlanError(f"{bound.name}: {own.sites} sites an item are not possible: {reason}")


def require_stage(bound: Bound, own: Schedule) -> None:
    """Raise `PlanError` when increments of a loop itself were asked to meet in the memory of a group and cannot."""
    if own.stage and own.strategy not in (None, "block_colour"):
        raise PlanError(
            f"{bound.name}: stage=True is of block_colour: with {own.strategy!r} no increments meet in the memory of a "
            "group; take strategy='block_colour', or leave stage out"
        )
