"""What a search may change of a schedule, device by device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from fluxloom.codegen.grids.sites import SITES, why_one_site
from fluxloom.codegen.packs.wrapper import rows_abreast
from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Grid
from fluxloom.dsl.plan.bind import Numbering, specialise
from fluxloom.dsl.plan.cost import TILES, choose_tile
from fluxloom.dsl.plan.grouping import choose_grouping, largest_block, ragged_maps, why_alone, why_single
from fluxloom.dsl.plan.registers import registers_allowed
from fluxloom.dsl.plan.tuning import gradable
from fluxloom.dsl.run.loop import Loop
from fluxloom.perf.ragged import LANES
from fluxloom.perf.tuner import Knob, Point

__all__ = ["chain_knobs", "chain_schedule", "loop_knobs", "loop_schedule", "starting_point"]

BLOCKS = (256, 1024, 4096, 16384)
"""Elements a block of the colouring strategies, on a CPU."""

ITEMS = (64, 128, 192, 256, 512)
"""Work items a group."""

REPEATS = (1, 2, 4, 8)
"""Rows that a team of work items handles, one after the other."""

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
    limits = registers_allowed(loop.context.device, now.registers)
    if limits and (method in _WALKS or prod(len(k.values) for k in knobs) * len(limits) <= budget):
        knobs.append(Knob("registers", limits))
    return knobs, now


def starting_point(knobs: Sequence[Knob], now: Schedule) -> dict[str, Any]:
    """Return the point of the schedule in force."""
    known = {"lanes": now.lanes, "block": now.block, "repeat": _repeat(now), "registers": now.registers}
    known |= {"pairs": bool(now.pairs), "sites": now.sites}
    return {k.name: known[k.name] for k in knobs if k.name in known}


def loop_schedule(loop: Loop, now: Schedule, point: Point) -> Schedule:
    """Return the schedule of a point; on a CPU size 0 leaves the block to the cost model."""
    strategy = point.get("strategy", now.strategy)
    choices: dict[str, Any] = {"strategy": strategy, "lanes": point.get("lanes", now.lanes)}
    if not loop.context.device.items:
        choices["stream"] = point.get("stream", now.stream)
        if "size" in point:
            sizes = (0, *_sizes(loop, str(strategy)))
            choices["block"] = sizes[min(point["size"], len(sizes) - 1)]
        return replace(now, **choices)
    choices |= {"block": point["block"], "registers": point.get("registers", now.registers)}
    if "repeat" in point:
        choices["rows"] = point["repeat"] * point["block"] // choices["lanes"]
    if "sites" in point:
        choices["sites"] = point["sites"]
    if "pairs" in point:
        choices["pairs"] = point["pairs"]
        if point["pairs"]:
            choices |= {"lanes": 1, "rows": 0}
    if "stage" in point:
        choices["stage"] = point["stage"] and strategy == "block_colour"
    return replace(now, **choices)


# -------------------------------------------------------------------------------------- the choices


def _pack_knobs(loop: Loop, names: list[str], now: Schedule) -> list[Knob]:
    """Return the choices of a loop of packs: block or tile, lanes, streaming stores."""
    knobs: list[Knob] = []
    if names:
        knobs.append(Knob("size", tuple(range(1 + max(len(_sizes(loop, name)) for name in names)))))
    wide = (1, 4, 8) if loop.bound.compute.size == 8 else (1, 4, 8, 16)
    if ragged_maps(loop.bound):
        most = rows_abreast(replace(loop.group(Numbering()), lanes=wide[-1]))
        if most > 1:
            knobs.append(Knob("lanes", tuple(sorted({*(n for n in wide if n <= most), now.lanes}))))
    else:
        knobs.append(Knob("lanes", tuple(sorted({*wide, now.lanes}))))
    if not names and _streamable(loop):
        knobs.append(Knob("stream", (bool(now.stream), not now.stream), ordered=False))
    return knobs


def _item_knobs(loop: Loop, names: list[str], now: Schedule) -> list[Knob]:
    """Return the choices of a loop of work items: the size of groups, how rows are shared, staging."""
    most = largest_block(loop.context.device)
    knobs = [Knob("block", tuple(sorted({*(n for n in ITEMS if n <= most), now.block})))]
    strategies: list[str | None] = [*names] if names else [None]
    if any(choose_grouping(loop.bound, name, now, now.block) for name in strategies):
        # the items of a CPU take turns: rows shared by several, or two at once in vectors, only cost more there
        abreast = not getattr(loop.context.device, "is_cpu", False)
        shares = any(not why_alone(loop.bound, name, now.deterministic) for name in strategies)
        if shares and (abreast or now.lanes > 1):
            knobs.append(Knob("lanes", LANES))
        knobs.append(Knob("repeat", tuple(sorted({*REPEATS, _repeat(now)}))))
        if (abreast or now.pairs) and not names and not why_single(loop.bound, None):
            knobs.append(Knob("pairs", (bool(now.pairs), not now.pairs), ordered=False))
    if isinstance(loop.over, Grid) and not names and len(sites := _sites(loop)) > 1:
        knobs.append(Knob("sites", sites))
    if "block_colour" in names:
        knobs.append(Knob("stage", (bool(now.stage), not now.stage), ordered=False))
    return knobs


def _sites(loop: Loop) -> tuple[int, ...]:
    """Return how many sites of a grid an item may handle."""
    spec, length = specialise(loop.bound, Numbering()), loop.over.shape[-1]
    return tuple(n for n in SITES if not why_one_site(spec, length, n))


def _repeat(now: Schedule) -> int:
    if now.pairs:
        return 1
    return max(1, now.rows * now.lanes // now.block) if now.block else 1


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


def _sizes(loop: Loop, strategy: str) -> tuple[int, ...]:
    """Return the blocks or tiles that make a difference, besides the size the cost model chooses."""
    if strategy == "gather":
        whole = loop.races.targets[0].size
        single = (1,) if len(loop.races.tables) == 1 else ()
        return (*single, *(tile for k, tile in enumerate(TILES) if k == 0 or TILES[k - 1] < whole))
    if strategy in ("block_colour", "block_permute"):
        return tuple(block for k, block in enumerate(BLOCKS) if k == 0 or BLOCKS[k - 1] < loop.over.size)
    return ()


def _streamable(loop: Loop) -> bool:
    return any(a.access is Access.WRITE and a.map is None for a in loop.bound.arguments)


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
        most = largest_block(largest.context.device)
        return [Knob("tile", tuple(sorted({*(n for n in ITEMS if n <= most), mine.block})))], {"tile": mine.block}
    gathered = mine.strategy == "gather" and mine.block > 1
    tile = mine.block if gathered else choose_tile(largest.bound, largest.races)
    tiles = {*(size for size in _sizes(largest, "gather") if size > 1), tile}
    lanes = {4, 8, mine.lanes} if largest.bound.compute.size == 8 else {4, 8, 16, mine.lanes}
    first = {"tile": tile, "lanes": mine.lanes}
    return [Knob("tile", tuple(sorted(tiles))), Knob("lanes", tuple(sorted(lanes)))], first


def chain_schedule(point: Point) -> Schedule:
    """Return the schedule that the gathered loops of fused groups have in common."""
    return Schedule(strategy="gather", block=point["tile"], lanes=point.get("lanes", 1))
