"""The knobs ``lanes`` and ``rows``: elements of a pack, work items that share a row, rows that a group handles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.reduce import PART
from fluxloom.core.dtypes import AoS, Scalar
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import EntriesMap, RaggedMap
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.plan.bind import Bound, Numbering, executes_halo, specialise
from fluxloom.dsl.plan.block import whole_chunks
from fluxloom.dsl.plan.plan import Plan
from fluxloom.dsl.plan.races import RaceInfo
from fluxloom.toolchain import optimises

if TYPE_CHECKING:
    from fluxloom.codegen.language.row_cooperation import Cooperation
    from fluxloom.perf.ragged import Grouping

__all__ = [
    "allowed", "choose_grouping", "cooperation_of", "direct_lanes", "lanes_of", "long_plan", "packs_allowed",
    "ragged_maps", "repeat_of", "repeats_allowed", "require_lanes", "team_plan", "why_alone",
]  # fmt: skip

_STEP = 32
"""Items that run in step: lanes exchange values among so many."""

_SHARE, _LEAST_LONG, _FAR = 16, 64, 4
"""Entries a lane takes before a row counts as long; the least of such rows; how much longer one must be to matter."""

_PACKS = (0, 1, 4, 8, 16)

_REPEATS = (1, 2, 4, 8)
"""Rows that a team of work items handles, one after the other."""

_FETCHED_OPERATIONS = 2
"""Operations of a row for each number that it fetches from among others of an element, below which rows side by side do
not pay: a pack fetches one of each row by itself."""


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
        from fluxloom.codegen.language.row_cooperation import cooperation

        kept["_cooperation"] = cooperation(specialise(bound, Numbering()))
    return kept["_cooperation"]


def why_alone(bound: Bound, strategy: str | None, deterministic: str | None) -> str:
    """Return why one item has to handle a whole row under a strategy; empty when several can share it."""
    from fluxloom.codegen.items.cooperative_rows import SHARING

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
    from fluxloom.codegen.items.cooperative_rows import SHARING

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


def lanes_of(bound: Bound, racing: bool) -> int:
    """Return the elements of a pack."""
    return 1 if _fetches_more(bound) else _widest(bound.compute, racing)


def direct_lanes(bound: Bound) -> int:
    """Return the pack of a loop without scattered increments."""
    return _widest(bound.compute, False)


def _widest(compute: Scalar, racing: bool) -> int:
    """Rows of 4 make 256-bit shuffles cheapest where increments are scattered; elsewhere wider is better."""
    if not optimises():
        return 1
    wide = 8 if compute.size == 8 else 16
    return wide // 2 if racing else wide


def _fetches_more(bound: Bound) -> bool:
    """Return whether rows of a ragged loop fetch numbers side by side at each element, and do little with them."""
    seen = [a.data for a in bound.arguments if isinstance(a.map, RaggedMap) and isinstance(a.data, Dat)]
    fetched = sum(dat.dim for dat in seen if dat.dim > 1 and isinstance(dat.layout, AoS))
    return bound.lowered.flops < _FETCHED_OPERATIONS * fetched


def packs_allowed(compute: Scalar, now: int, abreast: Callable[[int], int] | None = None) -> tuple[int, ...]:
    """Return the packs that a search may try; none where rows go one by one.

    Parameters
    ----------
    abreast
        Returns how many rows of a ragged loop go side by side in packs of a size; None: as many as a pack has elements.
    """
    wide = _PACKS[1:4] if compute.size == 8 else _PACKS[1:]
    most = wide[-1] if abreast is None else abreast(wide[-1])
    return tuple(sorted({*(n for n in wide if n <= most), now})) if most > 1 else ()


def allowed(bound: Bound, strategies: Sequence[str | None], now: Schedule) -> tuple[int, ...]:
    """Return the items a row that a search may try; none where no strategy lets several share one.

    The items of a CPU take turns: rows shared by several only cost more there.
    """
    shares = any(not why_alone(bound, name, now.deterministic) for name in strategies)
    from fluxloom.perf.ragged import LANES

    return LANES if shares and (now.lanes > 1 or not getattr(bound.over.context.device, "is_cpu", False)) else ()


def repeat_of(schedule: Schedule) -> int:
    """Return the rows that a team of work items handles, one after the other."""
    if schedule.pairs or not schedule.block:
        return 1
    return max(1, schedule.rows * schedule.lanes // schedule.block)


def repeats_allowed(now: Schedule) -> tuple[int, ...]:
    """Return the rows a team that a search may try."""
    return tuple(sorted({*_REPEATS, repeat_of(now)}))
