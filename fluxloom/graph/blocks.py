"""The two-level plan: coloured blocks of neighbouring elements, and coloured elements inside each block."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.colour import TargetTables, colour_permutation, target_tables
from fluxloom.graph.native import Indices, Offsets, call, count

__all__ = ["BlockPlan", "two_level_plan"]


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """Blocks of elements and two levels of colours.

    No two blocks of one colour share a target, and no two elements of one colour in a block do.

    Attributes
    ----------
    offset
        int64, ``(n_blocks + 1,)``: block ``b`` holds the elements ``offset[b] .. offset[b + 1] - 1``.
    block_colour
        int32, ``(n_blocks,)``.
    n_block_colours
        Number of block colours.
    blocks_by_colour
        int32, ``(n_blocks,)``: block numbers sorted by colour, ascending within one.
    colour_offset
        int64, ``(n_block_colours + 1,)``: where each colour begins in ``blocks_by_colour``.
    segment_colour
        int64, ``(n_segments + 1,)``: the blocks of segment ``s`` (between two cuts) have the colours
        ``segment_colour[s] .. segment_colour[s + 1] - 1``, so the first segment's blocks all come first.
    element_colour
        int32, ``(n,)``: colour of each element within its block.
    n_element_colours
        int32, ``(n_blocks,)``: number of element colours of each block.
    permutation
        int32, ``(n,)``: element numbers; those of a block fill the block's own range, sorted by colour,
        ascending within one.
    block_colour_ptr
        int64, ``(n_blocks + 1,)``: where each block's entries begin in ``colour_begin``.
    colour_begin
        int32: elements of colour ``c`` in block ``b`` are
        ``permutation[colour_begin[p] : colour_begin[p + 1]]`` with
        ``p = block_colour_ptr[b] + c``; each block has one entry more than it has colours.
    """

    offset: Offsets
    block_colour: Indices
    n_block_colours: int
    blocks_by_colour: Indices
    colour_offset: Offsets
    segment_colour: Offsets
    element_colour: Indices
    n_element_colours: Indices
    permutation: Indices
    block_colour_ptr: Offsets
    colour_begin: Indices

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.offset.size - 1


def two_level_plan(
    tables: Sequence[Indices],
    n_targets: Sequence[int],
    n_elements: int,
    block_size: int,
    *,
    cuts: Sequence[int] = (),
    sets: Sequence[Hashable] | None = None,
) -> BlockPlan:
    """Cut elements into blocks and colour blocks, and elements within blocks, against shared targets.

    Deterministic; the cost is linear in the number of table entries.

    Parameters
    ----------
    tables, n_targets, sets
        As in :func:`fluxloom.graph.colour_elements`. Without tables everything has colour 0.
    n_elements
        Number of elements.
    block_size
        Elements a block; the last before a cut may be smaller.
    cuts
        Ascending element numbers that no block crosses, as the end of the interior elements. The blocks
        before a cut have lower colours than those behind it.

    Raises
    ------
    DatError
        When a table has the wrong type, length or range, or a size or cut makes no sense.
    """
    n_elements = count(n_elements, "n_elements")
    block_size = count(block_size, "block_size", least=1)
    work = target_tables(tables, n_targets, n_elements, sets)
    offset, segment_block = _cut(n_elements, block_size, cuts)
    n_blocks = offset.size - 1
    block_colour = np.empty(n_blocks, dtype=np.int32)
    waiting = np.empty(max(n_blocks, min(block_size, n_elements)), dtype=np.int32)
    segment_colour = np.zeros(len(segment_block), dtype=np.int64)
    for s, (first, last) in enumerate(pairwise(segment_block)):
        start = int(segment_colour[s])
        segment_colour[s + 1] = call(
            "colour_blocks", *work.arguments, offset, first, last, start, block_colour, waiting
        )
    n_block_colours = int(segment_colour[-1])
    blocks_by_colour, colour_offset = colour_permutation(block_colour, n_block_colours)
    return BlockPlan(
        offset,
        block_colour,
        n_block_colours,
        blocks_by_colour,
        colour_offset,
        segment_colour,
        *_colour_inside(work, offset, n_elements, waiting),
    )


def _cut(n: int, block_size: int, cuts: Sequence[int]) -> tuple[Offsets, list[int]]:
    """Return the offsets of the blocks, and the first block of each segment between two cuts."""
    borders = [0, *(int(cut) for cut in cuts), n]
    if any(low > high for low, high in pairwise(borders)):
        raise DatError(f"cuts {tuple(cuts)} must ascend and lie between 0 and {n}")
    starts = [np.arange(low, high, block_size, dtype=np.int64) for low, high in pairwise(borders)]
    segment_block = [0, *np.cumsum([part.size for part in starts]).tolist()]
    return np.concatenate([*starts, np.array([n], dtype=np.int64)]), segment_block


def _colour_inside(
    work: TargetTables, offset: Offsets, n_elements: int, waiting: Indices
) -> tuple[Indices, Indices, Indices, Offsets, Indices]:
    """Colour the elements of each block and sort them by colour: the last five fields of the plan."""
    n_blocks = offset.size - 1
    element_colour = np.empty(n_elements, dtype=np.int32)
    n_colours = np.empty(n_blocks, dtype=np.int32)
    call("colour_in_blocks", *work.arguments, offset, n_blocks, element_colour, n_colours, waiting)
    pointer = np.zeros(n_blocks + 1, dtype=np.int64)
    np.cumsum(n_colours + np.int64(1), out=pointer[1:])
    begin = np.empty(int(pointer[-1]), dtype=np.int32)
    permutation = np.empty(n_elements, dtype=np.int32)
    call("sort_in_blocks", offset, n_blocks, element_colour, pointer, begin, permutation)
    return element_colour, n_colours, permutation, pointer, begin
