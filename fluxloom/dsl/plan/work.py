"""Plans and shapes of loops on devices that run kernels of work items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.group import WorkShape
from fluxloom.codegen.language.reduce import PART
from fluxloom.core.access import Access
from fluxloom.device.base import Device
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.block import BLOCK, group_of, whole_chunks
from fluxloom.dsl.plan.contributions import SPARSE, contributions
from fluxloom.dsl.plan.cost import repeating_pays, require_global_order
from fluxloom.dsl.plan.lanes import choose_grouping, long_plan, team_plan, why_alone
from fluxloom.dsl.plan.pairs import why_single
from fluxloom.dsl.plan.plan import Array, Plan, Span, coloured_elements, increments, rows_of
from fluxloom.dsl.plan.races import RaceInfo
from fluxloom.dsl.plan.registers import choose_registers
from fluxloom.dsl.plan.sites import SITES_BLOCK, choose_sites
from fluxloom.dsl.plan.split import why_whole
from fluxloom.dsl.plan.stage import choose_stage

__all__ = [
    "BLOCK", "choose_work", "fused_plan", "gather_pays", "gather_plan", "restrict", "work_plan",
    "work_shape",
]  # fmt: skip

_LIMITED = ("serial", "block_permute")
# ------------------------------------------------------------------------------------------ choices


def restrict(bound: Bound, races: RaceInfo, device: Device) -> RaceInfo:
    """Return what is known about races, without the strategies that the device does not have."""
    if not races.racing or not device.items:
        return races
    reasons = dict(races.reasons)
    for name in _LIMITED:
        reasons.setdefault(name, f"the device {device.name!r} runs elements side by side")
    if len(races.tables) > 1:
        reasons.setdefault("gather", "its increments go through more than one map or leg")
    for arg in bound.arguments:
        if arg.access is Access.INC and arg.map is not None and not device.atomic_add(arg.data.scalar):
            reasons.setdefault("atomic", f"{device.describe()} has no atomic additions of {arg.data.scalar.name}")
    if any(isinstance(a.map, RaggedMap) for a in increments(bound)):
        reasons.setdefault("block_colour", "increments go through a ragged map")
    return replace(races, allowed=tuple(s for s in races.allowed if s not in reasons), reasons=reasons)


def choose_work(bound: Bound, races: RaceInfo, wanted: Schedule) -> Schedule:
    """Fill the open choices of a schedule for a device of work items.

    Gathering needs no second pass, no colours and no atomics, and repeats run to run: it comes first where what it
    computes again is cheap, see `gather_pays`.
    """
    strategy = wanted.strategy or (_strategy(bound, races, wanted) if races.racing else None)
    if races.racing and wanted.deterministic == "global" and bound.over.parent.part is not None:
        require_global_order(bound, races, strategy or "")
    block = wanted.block or group_of(bound)
    if block == 1 and strategy == "gather":
        block = BLOCK
    shape = choose_grouping(bound, strategy, wanted, block)
    block, lanes, rows = (shape.block, shape.lanes, shape.rows) if shape else (whole_chunks(bound, block), 1, 0)
    stage = choose_stage(races, strategy, wanted.stage)
    pairs = bool(wanted.pairs) and lanes == 1 and not why_single(bound, strategy)
    if pairs:
        rows = 2 * block
    split = not pairs and bool(wanted.split) and not why_whole(bound, strategy or "direct", stage=stage)
    sites = 1 if split or races.racing else choose_sites(bound, wanted.sites)
    if sites > 1 and not wanted.block:
        block = SITES_BLOCK[sites]
    registers = choose_registers(bound, wanted.registers)
    return replace(wanted, strategy=strategy, block=block, lanes=lanes, rows=rows, threads=1, registers=registers,
                   stream=False, stage=stage, split=split, pairs=pairs, sites=sites)  # fmt: skip


def _strategy(bound: Bound, races: RaceInfo, wanted: Schedule) -> str:
    order = ["gather", "atomic", "two_pass", "element_colour", "block_colour"]
    if "gather" in races.allowed and not gather_pays(bound, races):
        order = ["atomic", "two_pass", "gather", "element_colour", "block_colour"]
        if getattr(bound.over.context.device, "is_cpu", False):  # its atomic additions are slow
            order.insert(0, order.pop())
    if wanted.deterministic:
        order.remove("atomic")
    if wanted.deterministic == "global":
        order = [name for name in order if name in ("gather", "two_pass")]
    elif bound.over.parent.part is not None and bound.reduces:
        order.remove("two_pass")  # it cannot leave out the elements of other ranks
    if wanted.lanes > 1:  # those that have lanes come first
        order.sort(key=lambda name: bool(why_alone(bound, name, wanted.deterministic)))
    for name in order:
        if name in races.allowed:
            return name
    return races.allowed[0]


def gather_pays(bound: Bound, races: RaceInfo) -> bool:
    """Return whether a loop may be driven from its targets, and what that computes again costs less than it saves.

    An element is computed once for each of its legs.
    """
    if "gather" not in races.allowed:
        return False
    elements, legs = races.tables[0].shape
    return repeating_pays(bound, races, float(elements * (legs - 1)))


def work_shape(
    schedule: Schedule, plans: Sequence[Plan], device: Device, *, fused: bool = False, pieces: int = 1
) -> WorkShape:
    """Return the shape of the kernels of a schedule.

    Parameters
    ----------
    plans
        Of the loops that race.
    fused
        Whether several loops run together.
    pieces
        Components that are handled by kernels of their own.
    """
    tables: Mapping[str, Any] = plans[0].values if plans else {}
    block = fused_block(schedule) if fused else schedule.block or BLOCK
    pairs = bool(schedule.pairs) and not fused
    return WorkShape(
        block=block,
        registers=schedule.registers,
        sites=1 if fused else max(1, schedule.sites),
        lanes=1 if fused else schedule.lanes,
        repeat=schedule.rows * schedule.lanes // block if schedule.rows and not fused and not pairs else 1,
        pairs=pairs,
        long=0 if fused else tables.get("long", 0),
        degree=tables.get("degree", 0),
        single="single" in tables,
        sparse=any(name.endswith("_met") for name in tables),
        stage=tables.get("stage", 0),
        components=pieces,
        wide=not device.refuses_double,
    )


# -------------------------------------------------------------------------------------------- plans


def work_plan(
    bound: Bound, races: RaceInfo, strategy: str, schedule: Schedule, span: Span | None = None
) -> Plan:
    """Return the tables of a loop under one strategy; those of the same maps are built once a context.

    ``span`` is which elements the loop runs over; by default all that this rank has.
    """
    adding = increments(bound)
    tables, legs = tuple(id(a.map) for a in adding), tuple(a.leg for a in adding)
    size = schedule.block if strategy == "block_colour" else 0
    if span is None:
        span = Span(0, bound.over.executed if adding else bound.over.size)
    cut = span if strategy in ("element_colour", "block_colour") else None
    key = ("work", strategy, size, bool(schedule.stage), cut, id(bound.over), tables, legs)
    maps = tuple(a.map for a in adding)

    def build() -> Plan:
        return _build(bound, races, strategy, schedule, span)

    plan = bound.over.context.plans.once(bound.over, key, build, bound.over, maps)
    return long_plan(bound, strategy, schedule, team_plan(bound, schedule, plan))


def _build(bound: Bound, races: RaceInfo, strategy: str, schedule: Schedule, span: Span) -> Plan:
    values: dict[str, Array | int] = {}
    if isinstance(bound.over, Subset) and bound.over.most is None:
        values["list"] = bound.over.indices
    match strategy:
        case "element_colour":
            return coloured_elements(races, span, values, PART)
        case "block_colour":
            return _blocks(races, span, schedule, values, bound.over.parent.part is None)
        case "two_pass":
            return _two_pass(bound, values, bound.over.executed)
        case "gather":
            return gather_plan([bound.over], [races])
    return Plan(values, -(-(bound.over.most or bound.over.executed) // PART))


def _blocks(races: RaceInfo, span: Span, schedule: Schedule, values: dict[str, Array | int], whole: bool) -> Plan:
    block = schedule.block or BLOCK
    tables, sizes = rows_of(races, span)
    from fluxloom.graph import block_targets, two_level_plan

    plan = two_level_plan(tables, sizes, len(span), block)
    before = np.zeros(span.begin, dtype=np.int32)
    blocks = plan.n_blocks
    partials = blocks * -(-block // PART)
    values |= {
        "colour_off": plan.colour_offset,
        "blocks": plan.blocks_by_colour,
        "block_off": plan.offset + span.begin,
        "item_colour": np.append(before, plan.element_colour) if span.begin else plan.element_colour,
        "item_colours": plan.n_element_colours,
        "n_partials": partials,
    }
    if "list" in values:
        values["perm"] = values["list"]
    if schedule.stage and len(races.tables) == 1:
        found = block_targets(tables[0], sizes[0], plan.offset)
        local = np.append(np.zeros((span.begin, tables[0].shape[1]), np.uint16), found.local, axis=0)
        values |= {"tgt_ptr": found.target_ptr, "tgt": found.targets, "tgt_loc": local}
        # the code is made once and has room for the blocks of any span
        values["stage"] = found.most if whole else block * tables[0].shape[1]
    return Plan(values, partials, plan.n_block_colours, blocks)


def _two_pass(bound: Bound, values: dict[str, Array | int], n: int) -> Plan:
    """Add the contributions of every target, for each map or leg that is incremented through."""
    found: dict[str, tuple[TableMap, int]] = {}
    for arg in increments(bound):
        if isinstance(arg.map, TableMap):
            found[f"i@{id(arg.map)}" + (f"_{arg.leg}" if arg.leg >= 0 else "")] = (arg.map, arg.leg)
    for name, (through, leg) in found.items():
        table = through.table if leg < 0 else np.ascontiguousarray(through.table[:, leg : leg + 1])
        alone = len(found) == 1
        values |= contributions(name, [bound.over], [table], through.target, pad=alone, sparse=alone)
    return Plan(values, -(-n // PART))


def fused_block(schedule: Schedule) -> int:
    """Return the items a group of fused loops: a reduction may have joined loops that have none."""
    return -(-(schedule.block or BLOCK) // PART) * PART


def fused_plan(scatter: Sequence[Any]) -> Plan:
    """Return the contributions of loops that are gathered together; built once a context."""
    key = ("fused", *((id(loop.over), id(loop.races.tables[0])) for loop in scatter))
    overs, races = [loop.over for loop in scatter], [loop.races for loop in scatter]
    plans = scatter[0].context.plans
    return plans.once(overs[0], key, lambda: gather_plan(overs, races, direct=True), tuple(races))


def gather_plan(overs: Sequence[Set], races: Sequence[RaceInfo], *, direct: bool = False) -> Plan:
    """Return the contributions of every target through the loops of a gather, in their order.

    Parameters
    ----------
    overs, races
        Of the loops.
    direct
        Whether loops over the targets follow in the same pass, so that every target is visited.

    Notes
    -----
    A contribution is a position in the loops' tables laid end to end; each target's are sorted, so
    that sums have the order of the loops, and of the global numbers of the elements in each.
    """
    target = races[0].targets[0]
    tables = [r.tables[0] for r in races]
    size, elements = sum(t.size for t in tables), sum(len(t) for t in tables)
    values: dict[str, Array | int] = {}
    base = 0
    for k, table in enumerate(tables):
        values[f"base{k}"] = base
        base += table.size
    if not direct and size < SPARSE * target.size and _single(tables):
        return Plan({"single": 1}, -(-elements // PART))
    values |= contributions("inv", overs, tables, target, pad=True, sparse=not direct)
    values["targets"] = values.pop("inv_n")
    return Plan(values, -(-target.size // PART), redundancy=size / max(1, elements))


def _single(tables: Sequence[npt.NDArray[np.int32]]) -> bool:
    """Whether no target has more than one contribution."""
    whole = np.concatenate([t.ravel() for t in tables])
    return np.unique(whole).size == whole.size
