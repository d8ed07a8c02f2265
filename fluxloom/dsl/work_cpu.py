"""Choices for CPUs that run kernels of work items: one item a group, and gathers in tiles of targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluxloom.codegen.member import Member
from fluxloom.codegen.sums import PART
from fluxloom.device.base import Device
from fluxloom.dsl.bind import Bound, Numbering, specialise
from fluxloom.dsl.cost import choose_tile
from fluxloom.dsl.plan import Array, Plan
from fluxloom.dsl.races import RaceInfo
from fluxloom.dsl.sets import Set
from fluxloom.dsl.spans import Span, tiles_of

__all__ = ["SPAN", "group_memory", "serial_tile", "serial_tiles", "serially", "stages_fit"]

SPAN = 1024
"""Elements a group on a CPU, where one item handles them one after the other."""

_GROUP_MEMORY = 48 << 10
"""Bytes a group may take on a GPU without asking the driver for more."""

_TOGETHER = 2
"""Loops of the largest tile whose sums fit into the memory of a group together."""

_LEAST_TILE = 128

_SPARSE = 0.5
"""With fewer contributions a target, tiles visit too many targets in vain."""


def serially(device: Device, strategy: str | None) -> bool:
    """Whether an item handles the elements of a whole group: on CPUs, unless items have to wait for each other."""
    return bool(getattr(device, "is_cpu", False)) and strategy not in ("element_colour", "block_colour")


def group_memory(device: Device) -> int:
    """Return the bytes of memory that a group may take."""
    there = int(getattr(device, "local_memory", 0))
    return there if there and getattr(device, "is_cpu", False) else min(there or _GROUP_MEMORY, _GROUP_MEMORY)


def serial_tile(bound: Bound, races: RaceInfo, block: int) -> int:
    """Return the targets a tile of a gather on a CPU; 0: target by target, as the sums of a tile take too much memory.

    Parameters
    ----------
    block
        Wanted targets a tile; 0: the smallest tile that computes few elements twice.
    """
    if races.tables[0].size < _SPARSE * races.targets[0].size:
        return 0
    tile, member = block or choose_tile(bound, races), _member(bound)
    while not block and tile > _LEAST_TILE and not _fits(bound, [member], tile, _TOGETHER):
        tile //= 2
    return tile if _fits(bound, [member], tile, _TOGETHER) else 0


def stages_fit(bounds: Sequence[Bound], tile: int) -> bool:
    """Whether the sums of loops that are gathered together fit into the memory of a group."""
    return _fits(bounds[0], [_member(b) for b in bounds], tile)


def _member(bound: Bound) -> Member:
    return Member(specialise(bound, Numbering()), 0)


def _fits(bound: Bound, members: Sequence[Member], tile: int, share: int = 1) -> bool:
    from fluxloom.codegen.spans import sum_bytes

    needed = sum(sum_bytes([m], tile) for m in members)  # each numbers its dats by itself
    return needed * share <= group_memory(bound.over.context.device)


def serial_tiles(over: Set, races: RaceInfo, span: Span, tile: int) -> Plan:
    """Return the elements of each tile of a span of targets, and for each of their legs its target's place there.

    Targets of other tiles have the place behind the last one.
    """
    found = tiles_of(over, races.tables, span, tile)
    counts = np.diff(found.elem_ptr)
    values: dict[str, Array | int] = {
        "targets": span.end, "seg": found.elem_ptr.astype(np.int32), "elem": found.elements,
        "stage": int(counts.max(initial=0)),
    }  # fmt: skip
    start = np.repeat(np.arange(found.n_tiles, dtype=np.int64) * tile, counts)
    for k, table in enumerate(found.tables):
        place = table[found.rows] - start[:, None]
        place[(place < 0) | (place >= tile)] = tile
        values[f"loc_{k}_at"] = place.astype(np.uint16 if tile <= np.iinfo(np.uint16).max else np.int32)
    redundancy = found.elements.size / max(1, races.tables[0].shape[0])
    return Plan(values, -(-len(span) // PART), blocks=found.n_tiles, redundancy=redundancy)
