"""Tiles of targets: for each contiguous range of targets, the elements that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, call, count, row_order, table_in_range
from fluxloom.graph.native import table as as_table

__all__ = ["TilePlan", "TileSegments", "target_tiles", "tile_segments", "tiled_elements"]


@dataclass(frozen=True, eq=False)
class TilePlan:
    """Tiles of targets and their elements; an element with targets in several tiles belongs to each of them.

    Attributes
    ----------
    tables
        The tables.
    first
        The first target of the first tile.
    offset
        int64, ``(n_tiles + 1,)``: tile ``t`` holds the targets ``offset[t] .. offset[t + 1] - 1``, counted from
        ``first``.
    tile_size
        Targets a tile; the last may have fewer.
    elem_ptr
        int64, ``(n_tiles + 1,)``: where the elements of each tile begin in ``elements``.
    elements
        int32: the elements that name a target of the tile, in each tile in the order asked for, else ascending.
    """

    tables: tuple[Indices, ...]
    first: int
    offset: Offsets
    tile_size: int
    elem_ptr: Offsets
    elements: Indices

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return self.offset.size - 1


@dataclass(frozen=True, eq=False)
class TileSegments:
    """The elements of tiles, cut into runs and listed segments.

    A run has consecutive elements all of whose targets are in the tile.

    Attributes
    ----------
    pointer
        int64, ``(n_tiles + 1,)``: the first segment of each tile.
    place
        int64: where each segment begins in the elements of the tiles.
    length
        int32: its elements; negative for a listed one.
    """

    pointer: Offsets
    place: Offsets
    length: Indices


def target_tiles(
    tables: Sequence[Indices],
    n_targets: int,
    tile_size: int,
    *,
    first: int | None = None,
    order: Offsets | None = None,
) -> TilePlan:
    """Cut targets into tiles of ``tile_size`` and list the elements that each tile needs.

    Parameters
    ----------
    tables
        One or more ``(n, arity)`` tables from the same elements to the same targets.
    n_targets
        Number of targets that are cut into tiles.
    tile_size
        Targets a tile; the last may be smaller.
    first
        The first of these targets; tables may name others too, which are left out. By default there are no others.
    order
        int64, ``(n,)``: all elements, in the order that each tile lists them in; ascending by default.

    Raises
    ------
    DatError
        When there is no table, one has the wrong type, length or range, or the order does not fit.
    """
    arguments, plan = _counted(tables, n_targets, tile_size, first, order)
    call("fill_tiles", *arguments, plan.elements)
    return plan


def tiled_elements(
    tables: Sequence[Indices], n_targets: int, tile_size: int, *, first: int | None = None
) -> int:
    """Return how many elements all tiles of :func:`target_tiles` need together; those of several count as often.

    Parameters
    ----------
    tables, n_targets, tile_size, first
        As in :func:`target_tiles`.

    Raises
    ------
    DatError
        As in :func:`target_tiles`.
    """
    return int(_counted(tables, n_targets, tile_size, first, None)[1].elem_ptr[-1])


def _counted(
    tables: Sequence[Indices], n_targets: int, tile_size: int, first: int | None, order: Offsets | None
) -> tuple[tuple[Any, ...], TilePlan]:
    """Check the arguments of `target_tiles` and count; return the arguments of ``fill_tiles`` and the plan to fill."""
    size = count(tile_size, "tile_size", least=1)
    if not len(tables):
        raise DatError("target_tiles needs at least one table")
    if first is None:
        checked = tuple(table_in_range(t, n_targets, f"tables[{i}]") for i, t in enumerate(tables))
    else:
        checked = tuple(as_table(t, f"tables[{i}]") for i, t in enumerate(tables))
    begin, length = count(first or 0, "first"), count(n_targets, "n_targets")
    n = checked[0].shape[0]
    for i, t in enumerate(checked):
        if t.shape[0] != n:
            raise DatError(
                f"tables[{i}] has {t.shape[0]} rows and tables[0] has {n}: they must list the same elements"
            )
    sequence = row_order(order, n)
    n_tiles = -(-length // size)
    offset = np.minimum(np.arange(n_tiles + 1, dtype=np.int64) * size, length)
    last = np.empty(n_tiles, dtype=np.int32)
    pointer = np.empty(n_tiles + 1, dtype=np.int64)
    common = (*_described(checked), begin, length, size, n, sequence, sequence.size, n_tiles, last, pointer)
    elements = np.empty(call("count_tiles", *common), dtype=np.int32)
    return common, TilePlan(checked, begin, offset, size, pointer, elements)


def tile_segments(plan: TilePlan, shortest: int) -> TileSegments:
    """Cut the elements of each tile into runs and listed segments; a run has at least ``shortest`` elements.

    Raises
    ------
    DatError
        When ``shortest`` is below 1.
    """
    least = count(shortest, "shortest", least=1)
    pointer = np.empty(plan.n_tiles + 1, dtype=np.int64)
    common = (
        *_described(plan.tables), plan.first, int(plan.offset[-1]), plan.tile_size, plan.n_tiles, plan.elem_ptr,
        plan.elements, least,
    )  # fmt: skip
    place, length = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    found = call("tile_segments", *common, 0, pointer, place, length)
    place, length = np.empty(found, dtype=np.int64), np.empty(found, dtype=np.int32)
    call("tile_segments", *common, 1, pointer, place, length)
    return TileSegments(pointer, place, length)


def _described(tables: Sequence[Indices]) -> tuple[Any, ...]:
    """Return how C functions get tables: their number, the arrays, and the columns of each."""
    return len(tables), tuple(tables), np.array([t.shape[1] for t in tables], dtype=np.int64)
