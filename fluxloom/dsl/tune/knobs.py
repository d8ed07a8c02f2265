"""What a search may change of a schedule, device by device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from fluxloom.codegen.packs.wrapper import rows_in_pack
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan import block, lanes, pairs, registers, sites, stage, stream
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.plan.tuning import gradable
from fluxloom.dsl.run.loop import Loop
from fluxloom.perf.tuner import Knob, Point

__all__ = ["chain_knobs", "chain_schedule", "loop_knobs", "loop_schedule", "starting_point"]

_WALKS = ("hill_climb", "tabu")


def loop_knobs(loop: Loop, strategies: Sequence[str] | None, method: str, budget: int) -> tuple[list[Knob], Schedule]:
    """Return the choices of a loop, and where the search starts: at what is in force now.

    Parameters
    ----------
    strategies
        Race strategies to try; None: all that are possible.
    method, budget
        Of the search. Sweeps and screenings leave out registers, which seldom matter, when they cannot try everything.

    Raises
    ------
    PlanError
        If a strategy is unknown, or none of those asked for is possible.
    """
    now = loop.schedule
    knobs: list[Knob] = []
    names: list[str] = []
    if loop.races.racing:
        names = _strategies(loop, strategies)
        first = now.strategy if now.strategy in names else names[0]
        now = replace(now, strategy=first)
        knobs.append(Knob("strategy", (first, *(n for n in names if n != first)), ordered=False))
    if not loop.context.device.items:
        return knobs + _pack_knobs(loop, names, now), now
    knobs += _item_knobs(loop, names, now)
    limits = registers.allowed(loop.context.device, now.registers)
    if limits and (method in _WALKS or prod(len(k.values) for k in knobs) * len(limits) <= budget):
        knobs.append(Knob("registers", limits))
    return knobs, now


def starting_point(knobs: Sequence[Knob], now: Schedule) -> dict[str, Any]:
    """Return the point of the schedule in force; what has no order begins with it, and the chosen size is 0."""
    known = vars(now) | {"repeat": lanes.repeat_of(now)}
    return {k.name: known[k.name] for k in knobs if k.ordered and k.name in known}


def loop_schedule(loop: Loop, now: Schedule, point: Point) -> Schedule:
    """Return the schedule of a point; on a CPU size 0 leaves the block to the cost model."""
    choices = {name: value for name, value in point.items() if name not in ("size", "repeat")}
    found = replace(now, **choices)
    if "size" in point:
        sizes = (0, *block.sizes_allowed(loop.bound, loop.races, str(found.strategy)))
        found = replace(found, block=sizes[min(point["size"], len(sizes) - 1)])
    if "repeat" in point:
        found = replace(found, rows=point["repeat"] * found.block // found.lanes)
    if point.get("pairs"):
        found = replace(found, lanes=1, rows=0)
    return replace(found, stage=found.stage and found.strategy == "block_colour") if "stage" in point else found


# -------------------------------------------------------------------------------------- the choices


def _pack_knobs(loop: Loop, names: list[str], now: Schedule) -> list[Knob]:
    """Return the choices of a loop of packs: block or tile, lanes, streaming stores."""

    def abreast(pack: int) -> int:
        return rows_in_pack(replace(loop.group(Numbering()), lanes=pack))

    sizes = max((len(block.sizes_allowed(loop.bound, loop.races, name)) for name in names), default=-1)
    return _knobs({
        "size": tuple(range(1 + sizes)),
        "lanes": lanes.packs_allowed(loop.bound.compute, now.lanes, abreast if lanes.ragged_maps(loop.bound) else None),
        "stream": () if names else stream.allowed(loop.bound, now),
    })  # fmt: skip


def _item_knobs(loop: Loop, names: list[str], now: Schedule) -> list[Knob]:
    """Return the choices of a loop of work items: the size of groups, how rows are shared, staging."""
    bound, strategies = loop.bound, [*names] if names else [None]
    found: dict[str, tuple[Any, ...]] = {"block": block.groups_allowed(loop.context.device, now.block)}
    if any(lanes.choose_grouping(bound, name, now, now.block) for name in strategies):
        found["lanes"] = lanes.allowed(bound, strategies, now)
        found["repeat"] = lanes.repeats_allowed(now)
        found["pairs"] = () if names else pairs.allowed(bound, now)
    found["sites"] = () if names else sites.allowed(bound)
    return _knobs(found | {"stage": stage.allowed(names, now.stage)})


def _knobs(found: dict[str, tuple[Any, ...]]) -> list[Knob]:
    """Return the choices that a loop has; yes and no have no order."""
    return [Knob(name, values, ordered=not isinstance(values[0], bool)) for name, values in found.items() if values]


def _strategies(loop: Loop, wanted: Sequence[str] | None) -> list[str]:
    """Return the strategies to try.

    Raises
    ------
    PlanError
        If one that was asked for is unknown, or none of them is possible.
    """
    grade = loop.schedule.deterministic
    allowed = [name for name in loop.races.allowed if gradable(name, grade)]
    if wanted is None:
        return allowed
    for name in wanted:
        Schedule(strategy=name)
    chosen = [name for name in allowed if name in wanted]
    if not chosen:
        for name in wanted:
            loop.races.require(loop.name, name)
            Schedule(strategy=name, deterministic=grade)
        raise PlanError(f"{loop.name}: no strategies to try; possible are {', '.join(allowed)}")
    return chosen


# --------------------------------------------------------------------------------------- fused groups


def chain_knobs(scatters: Sequence[Loop], own: dict[int, Schedule]) -> tuple[list[Knob], dict[str, Any]]:
    """Return the choices of the fused groups of a chain, and what they would be by themselves.

    Parameters
    ----------
    scatters
        The gathered loops of the groups, the largest first.
    own
        Their schedules by ``id``.
    """
    largest = scatters[0]
    mine = own[id(largest)]
    if largest.context.device.items:
        return _knobs({"tile": block.groups_allowed(largest.context.device, mine.block)}), {"tile": mine.block}
    gathered = mine.strategy == "gather" and mine.block > 1
    tile = mine.block if gathered else block.choose_tile(largest.bound, largest.races)
    packs = tuple(n for n in lanes.packs_allowed(largest.bound.compute, mine.lanes) if n > 1 or n == mine.lanes)
    first = {"tile": tile, "lanes": mine.lanes}
    return _knobs({"tile": tuple(sorted({*block.tiles_allowed(largest.races), tile})), "lanes": packs}), first


def chain_schedule(point: Point) -> Schedule:
    """Return the schedule that the gathered loops of fused groups have in common."""
    return Schedule(strategy="gather", block=point["tile"], lanes=point.get("lanes", 1))
