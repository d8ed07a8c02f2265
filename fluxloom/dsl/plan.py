"""Plans: the tables a race strategy needs, built natively and kept in the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.group import CHUNK
from fluxloom.core.errors import PlanError
from fluxloom.dsl.args import Argument
from fluxloom.dsl.bind import Bound
from fluxloom.dsl.maps import TableMap
from fluxloom.dsl.races import RaceInfo
from fluxloom.dsl.sets import Set, Subset
from fluxloom.graph import colour_elements, colour_permutation, inverse_map, target_tiles, two_level_plan

__all__ = ["Plan", "build_plan", "increments", "through_subset", "tile_redundancy"]

Array = npt.NDArray[Any]

_SHORT_RUN = 16
"""Runs of consecutive elements below this length go through the element list."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The tables of one loop under one strategy.

    Attributes
    ----------
    values
        Arrays and integers by the name the generated code gives them.
    partials
        Partial results of a global reduction.
    colours, blocks
        For reports: number of block or element colours, number of blocks or tiles.
    redundancy
        Elements computed, divided by elements of the set (1 unless gathered).
    """

    values: Mapping[str, Array | int]
    partials: int
    colours: int = 0
    blocks: int = 0
    redundancy: float = 1.0
    nbytes: int = field(default=0)


def build_plan(bound: Bound, races: RaceInfo, strategy: str, block: int) -> Plan:
    """Return the plan of a loop; plans of the same maps are built once a context."""
    legs = tuple(a.leg for a in increments(bound))
    key = (strategy, block, id(bound.over), legs, *(id(t) for t in _identity(bound, races)))
    plans = bound.over.context.plans
    if key not in plans:
        plans[key] = (_build(bound, races, strategy, block), bound.over, _identity(bound, races))
    return plans[key][0]


def _identity(bound: Bound, races: RaceInfo) -> tuple[Any, ...]:
    """Objects whose identity decides whether two loops can share a plan."""
    if isinstance(bound.over, Subset):
        return (bound.over, *races.tables)
    return tuple(a.map for a in increments(bound))


def increments(bound: Bound) -> list[Argument]:
    """Return the arguments through which elements add to what others may add to."""
    return [a for a, p in zip(bound.arguments, bound.kernel.parameters, strict=True) if a.map and p.access.reduces]


def _build(bound: Bound, races: RaceInfo, strategy: str, block: int) -> Plan:
    n = bound.over.size
    chunks = -(-n // CHUNK)
    values: dict[str, Array | int] = {}
    if isinstance(bound.over, Subset):
        values["list"] = bound.over.indices
    if strategy in ("direct", "serial", "atomic"):
        return Plan(values, chunks)
    sizes = [t.size for t in races.targets]
    match strategy:
        case "block_colour" | "block_permute":
            return _blocks(races, sizes, n, block, strategy == "block_permute", values)
        case "element_colour":
            return _elements(races, sizes, n, values)
        case "two_pass":
            return _two_pass(bound, races, values, chunks)
        case "gather":
            return _gather(races, block, values)
    raise PlanError(f"no plan for strategy {strategy!r}")


def through_subset(values: Mapping[str, Array | int], permutation: Array) -> Array:
    """Turn positions in the loop into element numbers (they differ for a subset)."""
    listed = values.get("list")
    return permutation if listed is None else np.ascontiguousarray(np.asarray(listed)[permutation])


def _blocks(
    races: RaceInfo, sizes: list[int], n: int, block: int, permuted: bool, values: dict[str, Array | int]
) -> Plan:
    plan = two_level_plan(races.tables, sizes, n, block)
    values |= {
        "n_colours": plan.n_block_colours,
        "colour_off": plan.colour_offset,
        "blocks": plan.blocks_by_colour,
        "block_off": plan.offset,
    }
    if permuted:
        values["perm"] = through_subset(values, plan.permutation)
    blocks = plan.offset.size - 1
    return Plan(values, blocks, plan.n_block_colours, blocks)


def _elements(races: RaceInfo, sizes: list[int], n: int, values: dict[str, Array | int]) -> Plan:
    colouring = colour_elements(races.tables, sizes)
    permutation, offsets = colour_permutation(colouring.colours, colouring.n_colours)
    values |= {"n_colours": colouring.n_colours, "colour_off": offsets, "perm": through_subset(values, permutation)}
    partials = int((-(-np.diff(offsets) // CHUNK)).sum())
    return Plan(values, partials, colouring.n_colours)


def _two_pass(bound: Bound, races: RaceInfo, values: dict[str, Array | int], chunks: int) -> Plan:
    """Add an inverse of every map that is incremented through; keys name the map, see `Executable`."""
    for arg, parameter in zip(bound.arguments, bound.kernel.parameters, strict=True):
        if isinstance(arg.map, TableMap) and parameter.access.reduces:
            inverse = inverse_map(arg.map.table, arg.map.target.size)
            name = f"i@{id(arg.map)}"
            values |= {
                f"{name}_ptr": inverse.offsets,
                f"{name}_elem": inverse.element,
                f"{name}_leg": inverse.leg,
                f"{name}_n": arg.map.target.size,
            }
    return Plan(values, chunks)


def _gather(races: RaceInfo, block: int, values: dict[str, Array | int]) -> Plan:
    target, table = races.targets[0], races.tables[0]
    if block == 1:
        if len(races.tables) > 1:
            raise PlanError("gathering target by target needs one map for all increments; use block > 1")
        inverse = inverse_map(table, target.size)
        values |= {
            "targets": target.size,
            "inv_ptr": inverse.offsets,
            "inv_elem": inverse.element,
            "inv_leg": inverse.leg,
        }
        return Plan(values, 0, 0, target.size, inverse.element.size / max(1, len(table)))
    tiles = target_tiles(races.tables, target.size, block)
    pointer, position, length = _segments(races, tiles.elem_ptr, tiles.elements, block)
    values |= {
        "targets": target.size,
        "tiles": tiles.offset.size - 1,
        "seg_ptr": pointer,
        "seg_pos": position,
        "seg_len": length,
        "elem": tiles.elements,
    }
    computed = tiles.elements.size / max(1, len(table))
    return Plan(values, -(-target.size // CHUNK), 0, tiles.offset.size - 1, computed)


def _segments(races: RaceInfo, elem_ptr: Array, elements: Array, tile: int) -> tuple[Array, Array, Array]:
    """Cut the element list of each tile into runs and listed segments.

    A run has consecutive elements whose targets are all inside the tile, so that it needs neither
    the list nor a test. Everything else is listed.

    Returns the first segment of each tile, the place of each segment in the element list, and its
    length: positive for a run, negative for a listed segment.
    """
    n = elements.size
    tiles = np.repeat(np.arange(elem_ptr.size - 1, dtype=np.int32), np.diff(elem_ptr))
    inside = np.ones(n, dtype=bool)
    for table in races.tables:
        inside &= (table[elements] // tile == tiles[:, None]).all(axis=1)
    first_of_tile = np.zeros(n + 1, dtype=bool)
    first_of_tile[elem_ptr] = True
    cut = first_of_tile[:-1].copy()
    cut[1:] |= (elements[1:] != elements[:-1] + 1) | (inside[1:] != inside[:-1])
    runs = np.flatnonzero(cut)
    run = (np.diff(np.append(runs, n)) >= _SHORT_RUN) & inside[runs]
    starts = first_of_tile[runs] | run
    starts[1:] |= run[:-1]
    segments = np.flatnonzero(starts)
    place = runs[segments].astype(np.int64)
    length = np.diff(np.append(place, n))
    pointer = np.searchsorted(place, elem_ptr).astype(np.int64)
    return pointer, place, np.where(run[segments], length, -length).astype(np.int32)


def tile_redundancy(bound: Bound, races: RaceInfo, block: int) -> float:
    """Return how many times an element is computed on average when the loop is gathered in tiles."""
    return build_plan(bound, races, "gather", block).redundancy


def targets_met(over: Set, through: TableMap) -> int:
    """Return how many different targets a table map reaches."""
    met = np.zeros(through.target.size, dtype=bool)
    met[through.table[over.indices] if isinstance(over, Subset) else through.table] = True
    return int(np.count_nonzero(met))
