"""Plans: the tables a race strategy needs, built natively and kept in the context; spans of consecutive elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.group import CHUNK
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.maps import BoundArgument, TableMap
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.races import RaceInfo

if TYPE_CHECKING:
    from fluxloom.graph import InverseMap, TilePlan

__all__ = [
    "Limits", "Plan", "Span", "build_plan", "coloured_elements", "global_order", "increments", "limits_of",
    "through_subset", "tile_redundancy", "tiles_of", "whole_span",
]  # fmt: skip

ALIGN = 128
"""Spans inside a set begin at multiples of this: packs, warps, streaming stores and partial results want it."""

Table = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Span:
    """The positions ``begin ... end - 1`` of a loop: elements, places in the list of a subset, or targets."""

    begin: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.begin)


@dataclass(frozen=True)
class Limits:
    """Where the positions of a loop are cut: ``[begin, inside)`` needs no halo, ``[0, owned)`` counts in reductions.

    Where the interior is cut once more, its parts have multiples of ``grain`` positions.
    """

    begin: int
    inside: int
    owned: int
    end: int
    grain: int = ALIGN

    @property
    def whole(self) -> Span:
        """All positions."""
        return Span(0, self.end)

    @property
    def interior(self) -> Span:
        """The positions that need nothing of other ranks."""
        return Span(self.begin, self.inside)

    @property
    def halves(self) -> tuple[Span, Span]:
        """The interior in two parts; the first may have no positions."""
        middle = self.begin + len(self.interior) // 2 // self.grain * self.grain
        return Span(self.begin, middle), Span(middle, self.inside)

    @property
    def rest(self) -> list[Span]:
        """The other positions, ends of slabs first."""
        return [s for s in (Span(0, self.begin), Span(self.inside, self.end)) if len(s)]


def limits_of(over: Set, executed: bool, tile: int = 0) -> Limits:
    """Return the limits of a loop over a set; ``executed``: over its execute halo too.

    The interior is cut to multiples of `ALIGN`, and to whole tiles if there are any; that of a lattice to planes,
    where no work items run.
    """
    part = over.parent.part
    if over.most is not None:  # nobody knows where its interior will end
        return Limits(0, 0, over.most, over.most)
    if part is None:
        return Limits(0, over.size, over.size, over.size)
    begin, inside = part.begin, part.inside
    if isinstance(over, Grid) and not over.context.device.items:
        return Limits(begin, inside, over.size, over.size, prod(over.shape[1:]))
    if isinstance(over, Subset):
        begin, inside = (int(k) for k in np.searchsorted(over.indices, (begin, inside)))
    align = lcm(ALIGN, max(1, tile))
    begin, inside = -(-begin // align) * align, inside // align * align
    return Limits(min(begin, inside), inside, over.size, over.executed if executed else over.size)


def whole_span(over: Set) -> Span:
    """Return the span of all targets that this rank owns."""
    return Span(0, over.size)


def global_order(over: Set) -> npt.NDArray[np.int64] | None:
    """Return the executed elements of a set in the order of their global numbers; None if they are in order."""
    part = over.parent.part
    if part is None or isinstance(over, Subset):
        return None
    numbers = part.numbers[: part.executed]
    if numbers.size < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return None
    return np.argsort(numbers, kind="stable")


def tiles_of(over: Set, tables: Sequence[Table], span: Span, tile: int) -> TilePlan:
    """Cut the targets of a span into tiles and list the elements that each needs, in the global order."""
    plain = span.begin == 0 and over.parent.part is None
    from fluxloom.graph import target_tiles

    return target_tiles(tables, len(span), tile, first=None if plain else span.begin, order=global_order(over))


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


def build_plan(bound: Bound, races: RaceInfo, strategy: str, block: int, span: Span | None = None) -> Plan:
    """Return the plan of a loop; plans of the same maps are built once.

    ``span`` is which elements the loop runs over, of a gather which targets; by default all that this rank has.
    """
    legs = tuple(a.leg for a in increments(bound))
    if span is None:
        span = whole_span(races.targets[0]) if strategy == "gather" else Span(0, _elements_of(bound, races))
    identity, plans = _identity(bound, races), bound.over.context.plans
    key = (strategy, block, span, id(bound.over), legs, *(id(t) for t in identity))
    return plans.once(bound.over, key, lambda: _build(bound, races, strategy, block, span), bound.over, identity)


def _elements_of(bound: Bound, races: RaceInfo) -> int:
    return bound.over.executed if races.racing else bound.over.size


def _identity(bound: Bound, races: RaceInfo) -> tuple[Any, ...]:
    """Objects whose identity decides whether two loops can share a plan."""
    if isinstance(bound.over, Subset):
        return (bound.over, *races.tables)
    return tuple(a.map for a in increments(bound))


def increments(bound: Bound) -> list[BoundArgument]:
    """Return the arguments through which elements add to what others may add to."""
    return [a for a in bound.arguments if a.map and a.access.reduces]


def _build(bound: Bound, races: RaceInfo, strategy: str, block: int, span: Span) -> Plan:
    chunks = -(-(bound.over.most or len(span)) // CHUNK)
    values: dict[str, Array | int] = {}
    if isinstance(bound.over, Subset) and bound.over.most is None:
        values["list"] = bound.over.indices
    if strategy in ("direct", "serial", "atomic"):
        return Plan(values, chunks)
    match strategy:
        case "block_colour" | "block_permute":
            return _blocks(races, span, block, strategy == "block_permute", values)
        case "element_colour":
            return coloured_elements(races, span, values, CHUNK)
        case "two_pass":
            return _two_pass(bound, races, values, chunks)
        case "gather":
            return _gather(bound, races, span, block, values)
    raise PlanError(f"no plan for strategy {strategy!r}")


def through_subset(values: Mapping[str, Array | int], permutation: Array) -> Array:
    """Turn positions in the loop into element numbers (they differ for a subset)."""
    listed = values.get("list")
    return permutation if listed is None else np.ascontiguousarray(np.asarray(listed)[permutation])


def rows_of(races: RaceInfo, span: Span) -> tuple[list[Array], list[int]]:
    """Return the tables of a span of elements, and how many targets each may name."""
    tables = [np.ascontiguousarray(t[span.begin : span.end]) for t in races.tables]
    return tables, [t.stored for t in races.targets]


def _blocks(races: RaceInfo, span: Span, block: int, permuted: bool, values: dict[str, Array | int]) -> Plan:
    from fluxloom.graph import two_level_plan

    plan = two_level_plan(*rows_of(races, span), len(span), block)
    values |= {
        "n_colours": plan.n_block_colours,
        "colour_off": plan.colour_offset,
        "blocks": plan.blocks_by_colour,
        "block_off": plan.offset + span.begin,
    }
    if permuted:  # of its positions, the blocks are numbered by those of the loop
        whole = np.arange(span.end, dtype=np.int32)
        whole[span.begin :] = plan.permutation + np.int32(span.begin)
        values["perm"] = through_subset(values, whole)
    blocks = plan.offset.size - 1
    return Plan(values, blocks, plan.n_block_colours, blocks)


def coloured_elements(races: RaceInfo, span: Span, values: dict[str, Array | int], chunk: int) -> Plan:
    """Return the plan of element colours; each ``chunk`` elements of a colour have a partial result."""
    from fluxloom.graph import colour_elements, colour_permutation

    colouring = colour_elements(*rows_of(races, span))
    permutation, offsets = colour_permutation(colouring.colours, colouring.n_colours)
    permutation = permutation + np.int32(span.begin)
    partials = int((-(-np.diff(offsets) // chunk)).sum())
    values |= {"n_colours": colouring.n_colours, "colour_off": offsets, "perm": through_subset(values, permutation),
               "n_partials": partials}  # fmt: skip
    return Plan(values, partials, colouring.n_colours)


def _two_pass(bound: Bound, races: RaceInfo, values: dict[str, Array | int], chunks: int) -> Plan:
    """Add an inverse of every map that is incremented through; keys name the map, see `Executable`."""
    for arg in bound.arguments:
        if isinstance(arg.map, TableMap) and arg.access.reduces:
            inverse = _inverse(arg.map.table, bound, arg.map.target, "take another strategy")
            name = f"i@{id(arg.map)}"
            values |= {
                f"{name}_ptr": inverse.offsets,
                f"{name}_elem": inverse.element,
                f"{name}_leg": inverse.leg,
                f"{name}_n": arg.map.target.size,
            }
    return Plan(values, chunks)


def _gather(bound: Bound, races: RaceInfo, span: Span, block: int, values: dict[str, Array | int]) -> Plan:
    table = races.tables[0]
    if block == 1:
        if len(races.tables) > 1:
            raise PlanError("gathering target by target needs one map for all increments; use block > 1")
        inverse = _inverse(table, bound, races.targets[0], "take a larger block, or another strategy")
        values |= {
            "targets": span.end,
            "inv_ptr": inverse.offsets,
            "inv_elem": inverse.element,
            "inv_leg": inverse.leg,
        }
        return Plan(values, 0, 0, len(span), inverse.element.size / max(1, len(table)))
    tiles = tiles_of(bound.over, races.tables, span, block)
    from fluxloom.graph import tile_segments

    segments = tile_segments(tiles, _SHORT_RUN)
    values |= {
        "targets": span.end,
        "tiles": tiles.n_tiles,
        "seg_ptr": segments.pointer,
        "seg_pos": segments.place,
        "seg_len": segments.length,
        "elem": tiles.elements,
    }
    computed = tiles.elements.size / max(1, len(table))
    return Plan(values, -(-len(span) // CHUNK), 0, tiles.n_tiles, computed)


def _inverse(table: Array, bound: Bound, target: Set, advice: str) -> InverseMap:
    """Return the inverse of a table, each target's elements in the order of their global numbers."""
    order = global_order(bound.over)
    from fluxloom.graph.inverse import MOST_LEGS, inverse_map

    if table.shape[1] > MOST_LEGS:
        raise PlanError(f"{bound.name}: an element adds through {table.shape[1]} legs, and up to {MOST_LEGS} are told "
                        f"apart where targets look for what is theirs: {advice}")
    if order is None:
        return inverse_map(table, target.stored)
    found = inverse_map(np.take(table, order, axis=0), target.stored)
    return replace(found, element=order[found.element].astype(np.int32))


def tile_redundancy(bound: Bound, races: RaceInfo, block: int) -> float:
    """Return how many times an element is computed on average when the loop is gathered in tiles of ``block``."""
    legs, identity = tuple(a.leg for a in increments(bound)), _identity(bound, races)
    key = ("redundancy", block, id(bound.over), legs, *(id(t) for t in identity))

    def count() -> float:
        """Counting takes a third of the time of a plan, and most tiles that are tried are not taken."""
        from fluxloom.graph import tiled_elements

        span = whole_span(races.targets[0])
        return tiled_elements(races.tables, len(span), block, first=span.begin) / max(1, len(races.tables[0]))

    return bound.over.context.plans.once(bound.over, key, count, bound.over, identity)


def targets_met(over: Set, through: TableMap) -> int:
    """Return how many different targets a table map reaches."""
    met = np.zeros(through.target.stored, dtype=bool)
    met[through.table[over.indices] if isinstance(over, Subset) else through.table] = True
    return int(np.count_nonzero(met))
