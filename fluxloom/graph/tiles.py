"""Tiles of targets: for each contiguous range of targets, the elements that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, call, count, table_in_range

__all__ = ["TilePlan", "target_tiles"]


@dataclass(frozen=True, eq=False)
class TilePlan:
    """Tiles of targets and their elements; an element with targets in several tiles belongs to each of them.

    Attributes
    ----------
    offset
        int64, ``(n_tiles + 1,)``: tile ``t`` holds the targets ``offset[t] .. offset[t + 1] - 1``.
    elem_ptr
        int64, ``(n_tiles + 1,)``: where the elements of each tile begin in ``elements``.
    elements
        int32: the elements that name a target of the tile, ascending in each tile.
    run_ptr
        int64, ``(n_tiles + 1,)``: where the runs of each tile begin.
    run_begin, run_length
        int32: the same elements as maximal runs ``run_begin .. run_begin + run_length - 1``.
    """

    offset: Offsets
    elem_ptr: Offsets
    elements: Indices
    run_ptr: Offsets
    run_begin: Indices
    run_length: Indices

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return self.offset.size - 1


def target_tiles(tables: Sequence[Indices], n_targets: int, tile_size: int) -> TilePlan:
    """Cut targets into tiles of ``tile_size`` and list the elements that each tile needs.

    Parameters
    ----------
    tables
        One or more ``(n, arity)`` tables from the same elements to the same targets.
    n_targets
        Number of targets.
    tile_size
        Targets a tile; the last may be smaller.

    Raises
    ------
    DatError
        When there is no table, or one has the wrong type, length or range.
    """
    size = count(tile_size, "tile_size", least=1)
    if not len(tables):
        raise DatError("target_tiles needs at least one table")
    checked = tuple(table_in_range(t, n_targets, f"tables[{i}]") for i, t in enumerate(tables))
    n = checked[0].shape[0]
    for i, t in enumerate(checked):
        if t.shape[0] != n:
            raise DatError(
                f"tables[{i}] has {t.shape[0]} rows and tables[0] has {n}: they must list the same elements"
            )
    n_tiles = -(-n_targets // size)
    offset = np.minimum(np.arange(n_tiles + 1, dtype=np.int64) * size, n_targets)
    arity = np.array([t.shape[1] for t in checked], dtype=np.int64)
    last = np.empty(n_tiles, dtype=np.int32)
    pointer = np.empty(n_tiles + 1, dtype=np.int64)
    common = (len(checked), checked, arity, n, size, n_tiles, last, pointer)
    elements = np.empty(call("count_tiles", *common), dtype=np.int32)
    run_ptr = np.empty(n_tiles + 1, dtype=np.int64)
    n_runs = call("fill_tiles", *common, elements, run_ptr)
    run_begin, run_length = np.empty(n_runs, dtype=np.int32), np.empty(n_runs, dtype=np.int32)
    call("fill_runs", n_tiles, pointer, elements, run_begin, run_length)
    return TilePlan(offset, pointer, elements, run_ptr, run_begin, run_length)
