"""The knob ``stage``: increments of ``block_colour`` meet in the memory of a group of work items."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.races import RaceInfo

__all__ = ["allowed", "choose_stage", "require_stage"]

_STAGED = "block_colour"


def choose_stage(races: RaceInfo, strategy: str | None, wanted: bool | None) -> bool:
    """Return whether increments meet there: where that was asked for and all go through one map or leg."""
    return bool(wanted) and strategy == _STAGED and len(races.tables) == 1


def require_stage(bound: Bound, own: Schedule) -> None:
    """Raise `PlanError` when increments of a loop itself were asked to meet in the memory of a group and cannot."""
    if own.stage and own.strategy not in (None, _STAGED):
        raise PlanError(
            f"{bound.name}: stage=True is of block_colour: with {own.strategy!r} no increments meet in the memory of a "
            "group; take strategy='block_colour', or leave stage out"
        )


def allowed(strategies: Sequence[str], now: bool | None) -> tuple[bool, ...]:
    """Return what a search over strategies may try, what is in force first."""
    return (bool(now), not now) if _STAGED in strategies else ()
