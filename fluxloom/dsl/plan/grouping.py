"""How a loop runs on work items: rows spread over them, two rows or several sites at once, component by component.

Source: the split of nested loops over equations in explicit finite volumes, which pays on GPUs for large
meshes and loses on CPUs (compressible solver on many GPUs, 2022, section on nested loops).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.reduce import PART
from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Device
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import EntriesMap, RaggedMap
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Grid, Subset
from fluxloom.dsl.plan.bind import Bound, Numbering, executes_halo, specialise
from fluxloom.dsl.plan.plan import Plan
from fluxloom.dsl.plan.races import RaceInfo

if TYPE_CHECKING:
    from fluxloom.codegen.language.coop import Cooperation
    from fluxloom.perf.ragged import Grouping

__all__ = [
    "SPLITTABLE", "choose_grouping", "components", "cooperation_of", "largest_block", "long_plan", "ragged_maps",
    "require_lanes", "require_pairs", "require_sites", "require_stage", "team_plan", "whole_chunks", "why_alone",
    "why_single", "why_whole",
]  # fmt: skip

_STEP = 32
"""Items that run in step: lanes exchange values among so many."""

_SHARE, _LEAST_LONG, _FAR = 16, 64, 4
"""Entries a lane takes before a row counts as long; the least of such rows; how much longer one must be to matter."""

_PACKS = (0, 1, 4, 8, 16)


def ragged_maps(bound: Bound) -> list[RaggedMap]:
    """Return the ragged maps of a loop, the one with most entries first."""
    found = unique(a.ragged for a in bound.arguments if a.ragged is not None)
    return sorted(found, key=lambda m: -m.entries.size)


def cooperation_of(bound: Bound) -> Cooperation | str:
    """Return how items share the rows of a loop, or why they cannot."""
    if not ragged_maps(bound):
        return "no argument goes through a ragged map"
    kept: dict[str, Cooperation | str] = vars(bound)
    if "_cooperation" not in kept:  # each schedule of a loop asks
        from fluxloom.codegen.language.coop import cooperation

        kept["_cooperation"] = cooperation(specialise(bound, Numbering()))
    return kept["_cooperation"]


def why_alone(bound: Bound, strategy: str | None, deterministic: str | None) -> str:
    """Return why one item has to handle a whole row under a strategy; empty when several can share it."""
    from fluxloom.codegen.items.teams import SHARING

    if (strategy or "direct") not in SHARING:
        return f"the strategy {strategy!r} does not go row by row; {', '.join(SHARING[1:])} do"
    if deterministic == "global":
        return "the order of sums depends on lanes, which deterministic='global' forbids"
    shared = cooperation_of(bound)
    if isinstance(shared, str):
        return shared
    if shared.scattered and strategy != "atomic":
        if shared.contended:
            return f"{shared.contended}, which needs atomic additions"
        for arg in bound.arguments:
            if arg.name in shared.scattered and isinstance(arg.map, RaggedMap) and _repeats(arg.map):
                return f"a row of map {arg.map.name!r} meets a target twice, which needs atomic additions"
    return ""


def _repeats(through: RaggedMap) -> bool:
    """Whether some row has the same target twice."""
    def find() -> bool:
        rows = np.repeat(np.arange(through.store.rows, dtype=np.int64), np.diff(through.offsets))
        pairs = np.sort(rows * max(1, through.target.stored) + through.indices)
        return bool((pairs[1:] == pairs[:-1]).any())

    return through.source.context.plans.once(through.source, ("repeats", id(through)), find, through)


def require_lanes(bound: Bound, races: RaceInfo, own: Schedule, everywhere: Schedule) -> None:
    """Raise `PlanError` for lanes that a loop cannot have.

    Parameters
    ----------
    own, everywhere
        What was asked of this loop, and of every loop of the context. Items need not follow the latter.
    """
    device = bound.over.context.device
    if not device.native:
        return
    if not device.items:
        lanes = own.lanes or everywhere.lanes
        if lanes not in _PACKS:
            raise PlanError(f"{bound.name}: lanes={lanes} on {device.name!r}: a pack has 1, 4, 8 or 16 elements")
        return
    if own.lanes <= 1 or not ragged_maps(bound):
        return
    strategies: Sequence[str | None] = [own.strategy] if own.strategy or not races.racing else races.allowed
    grade = own.deterministic or everywhere.deterministic
    reasons = [why_alone(bound, strategy, grade) for strategy in strategies]
    if all(reasons):
        raise PlanError(f"{bound.name}: lanes={own.lanes} is not possible: {reasons[0]}; use lanes=1")


def choose_grouping(bound: Bound, strategy: str | None, wanted: Schedule, block: int) -> Grouping | None:
    """Return how the rows of a loop are grouped; None for a loop without rows to group.

    Loops that race and rows that are stored column by column have an item a row, as have all rows on a CPU;
    others follow `fluxloom.perf.ragged.measured_rule`. Wishes are followed as far as possible.

    Parameters
    ----------
    block
        Items a group, when the schedule says nothing.
    """
    maps = ragged_maps(bound)
    from fluxloom.codegen.items.teams import SHARING

    if not maps or (strategy or "direct") not in SHARING:
        return None
    device, largest = bound.over.context.device, maps[0]
    ruled = not (strategy or getattr(device, "is_cpu", False) or any(m.store.column_major for m in maps))
    alone = (ruled or wanted.lanes > 1) and bool(why_alone(bound, strategy, wanted.deterministic))
    from fluxloom.perf.ragged import Grouping, measured_rule

    rule = Grouping(block, 1, 1)
    if ruled and not alone:
        share = largest.entries.size / max(1, largest.source.size)
        rule = measured_rule(bound.over.size, round(share * bound.over.size), _entry_bytes(bound))
        if largest.store.lanes:
            rule = rule._replace(lanes=largest.store.lanes)
    lanes = 1 if alone else wanted.lanes or rule.lanes
    size = wanted.block or rule.block
    if lanes > 1:
        size = -(-size // _STEP) * _STEP
    size = whole_chunks(bound, size)
    repeat = wanted.rows * lanes // size if wanted.rows else 1 if wanted.lanes else rule.repeat
    return Grouping(size, lanes, max(1, repeat))


def _entry_bytes(bound: Bound) -> int:
    """Return the bytes of an entry: its place in the tables of the maps, and its values."""
    values = {id(a.data): a.data for a in bound.arguments if isinstance(a.map, EntriesMap)}
    tables = {id(a.map) for a in bound.arguments if isinstance(a.map, RaggedMap)}
    return 4 * len(tables) + sum(d.dim * d.scalar.size for d in values.values() if isinstance(d, Dat))


def whole_chunks(bound: Bound, block: int) -> int:
    """Return a block that holds whole partial results, where a loop reduces."""
    return -(-block // PART) * PART if bound.reduces else block


def team_plan(bound: Bound, schedule: Schedule, plan: Plan) -> Plan:
    """Return a plan with the partial results of the groups that share or repeat rows."""
    together = (schedule.lanes > 1 or schedule.rows > schedule.block) and not schedule.pairs
    if not schedule.rows or not together or not bound.reduces:
        return plan
    counts = np.diff(plan.values["colour_off"]) if "colour_off" in plan.values else np.array([bound.over.size])
    partials = int((-(-counts // schedule.rows)).sum()) * (schedule.block // PART)
    return replace(plan, values={**plan.values, "n_partials": partials}, partials=partials)


def long_plan(bound: Bound, strategy: str, schedule: Schedule, plan: Plan) -> Plan:
    """Return a plan with the rows that are too long for the lanes of a loop, where there are some.

    A lane that walks a row of thousands of entries alone keeps the device waiting long after all other
    rows are done; such rows get lanes of their own.
    """
    maps, device = ragged_maps(bound), bound.over.context.device
    if len(maps) != 1 or strategy not in ("direct", "atomic") or getattr(device, "is_cpu", False) or bound.reduces:
        return plan
    if schedule.pairs:
        return plan
    share = max(_LEAST_LONG, _SHARE * schedule.lanes)
    halo, over = executes_halo(bound), bound.over

    def find() -> npt.NDArray[np.int32]:
        count = over.executed if halo else over.size
        elements = over.indices if isinstance(over, Subset) else np.arange(count, dtype=np.int32)
        length = maps[0].store.length[elements]
        return elements[length > share] if length.max(initial=0) > _FAR * share else elements[:0]

    rows = over.context.plans.once(over, ("long", id(maps[0]), id(over), halo, share), find, over, maps[0])
    if not rows.size or why_alone(bound, strategy, schedule.deterministic):
        return plan
    return replace(plan, values={**plan.values, "long_rows": rows, "n_long": int(rows.size), "long": share})


def largest_block(device: Device) -> int:
    """Return the most items that a group may have."""
    return int(getattr(device, "max_block", 1024))


def why_single(bound: Bound, strategy: str | None) -> str:
    """Return why a work item cannot have two rows of a loop under a strategy; empty when it can."""
    if strategy not in (None, "direct"):
        return f"the strategy {strategy!r} guards increments element by element"
    if bound.over.parent.part is not None and bound.reduces:
        return "it reduces over rows of several ranks, whose ranges may begin inside a pair"
    from fluxloom.codegen.items.pairs import why_not_paired

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
        from fluxloom.codegen.grids.sites import why_one_site

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


SPLITTABLE = ("direct", "atomic", "gather", "element_colour", "block_colour")
"""Strategies with one kernel a loop, so that a component can have it for itself."""


def why_whole(bound: Bound, strategy: str, *, stage: bool = False) -> str:
    """Return why a loop has to handle all components at once; empty when each can be handled by itself.

    The components must not meet: what is written has the same number of them everywhere, is not read by
    the loop, and no global is reduced.
    """
    if strategy not in SPLITTABLE or stage:
        return f"strategy {strategy!r}{' in stages' if stage else ''} needs all components of an element together"
    written, read = [], []
    for arg in bound.arguments:
        if arg.access is Access.READ:
            read.append(arg.data)
            continue
        if not isinstance(arg.data, Dat):
            return f"{arg.name!r} is a global: its value is made of all components"
        if arg.access is Access.RW:
            return f"{arg.name!r} is read and written: a later component would meet an earlier one's result"
        if isinstance(arg.map, RaggedMap):
            return f"{arg.name!r} goes through a ragged map"
        written.append(arg.data)
    if any(w is r for w in written for r in read):
        return "it reads what it writes"
    sizes = {data.dim for data in written}
    if len(sizes) != 1:
        return f"what it writes has {' and '.join(str(s) for s in sorted(sizes)) or 'no'} components"
    return "" if sizes != {1} else "what it writes has one component"


def components(bound: Bound) -> int:
    """Return the number of components of what a loop writes."""
    return max((a.data.dim for a in bound.arguments if a.access is not Access.READ), default=1)
