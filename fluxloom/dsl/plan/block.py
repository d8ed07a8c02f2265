"""The knob ``block``: elements of a block, targets of a tile, work items of a group."""

from __future__ import annotations

from fluxloom.codegen.language.group import CHUNK
from fluxloom.codegen.language.reduce import PART
from fluxloom.device.base import Device
from fluxloom.dsl.declare.sets import Grid
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.plan import tile_redundancy
from fluxloom.dsl.plan.races import RaceInfo

__all__ = [
    "BLOCK", "MAX_REDUNDANCY", "block_of", "choose_tile", "group_of", "groups_allowed", "largest_block",
    "sizes_allowed", "tiles_allowed", "whole_chunks",
]  # fmt: skip

BLOCK = 128
"""Work items a group unless a schedule says otherwise."""

_GRID_BLOCK, _GRID_BLOCK_ELSEWHERE = 512, 256
"""The same for loops over grids, whose items read neighbours from whole rows: with CUDA, and where drivers of OpenCL
(AMD's, and NVIDIA's for some kernels) allow no more."""

_TILES = (4096, 8192, 16384, 32768)
"""Targets a tile: as few as computes few elements twice, so that what a tile touches stays in the caches."""

_GOOD_REDUNDANCY = 1.06

_TILES_A_THREAD = 4
"""Fewer tiles leave threads idle at the end."""

MAX_REDUNDANCY = 1.25
"""Above this many computations an element, gathering in tiles loses to colouring."""

_BLOCKS = (256, 1024, 4096, 16384)
"""Elements a block of the colouring strategies, on a CPU."""

_ITEMS = (64, 128, 192, 256, 512)
"""Work items a group."""


def block_of(bound: Bound, threads: int) -> int:
    """Return the elements of a block: as many as leave each thread about eight of each colour; reuse grows with it."""
    share = bound.over.size // max(1, 16 * threads)
    block = 256
    while block * 2 <= min(share, 16384):
        block *= 2
    return block


def group_of(bound: Bound) -> int:
    """Return the work items of a group."""
    if not isinstance(bound.over, Grid):
        return BLOCK
    return _GRID_BLOCK if bound.over.context.device.name == "cuda" else _GRID_BLOCK_ELSEWHERE


def choose_tile(bound: Bound, races: RaceInfo) -> int:
    """Return the smallest tile that computes few elements twice, or one so small that all threads have some."""
    tile = _least_redundant(bound, races)
    threads, size = bound.over.context.threads, races.targets[0].size
    fair = max(CHUNK, size // (_TILES_A_THREAD * threads) // CHUNK * CHUNK)
    if threads > 1 and fair < tile and tile_redundancy(bound, races, fair) <= MAX_REDUNDANCY:
        return fair
    return tile


def _least_redundant(bound: Bound, races: RaceInfo) -> int:
    for tile in _TILES:
        if tile >= races.targets[0].size or tile_redundancy(bound, races, tile) <= _GOOD_REDUNDANCY:
            return tile
    return _TILES[-1]


def whole_chunks(bound: Bound, block: int) -> int:
    """Return a block that holds whole partial results, where a loop reduces."""
    return -(-block // PART) * PART if bound.reduces else block


def largest_block(device: Device) -> int:
    """Return the most items that a group may have."""
    return int(getattr(device, "max_block", 1024))


def groups_allowed(device: Device, now: int) -> tuple[int, ...]:
    """Return the sizes of groups that a search may try, with the one in force."""
    most = largest_block(device)
    return tuple(sorted({*(n for n in _ITEMS if n <= most), now}))


def tiles_allowed(races: RaceInfo) -> tuple[int, ...]:
    """Return the tiles that make a difference."""
    whole = races.targets[0].size
    return tuple(tile for k, tile in enumerate(_TILES) if k == 0 or _TILES[k - 1] < whole)


def sizes_allowed(bound: Bound, races: RaceInfo, strategy: str) -> tuple[int, ...]:
    """Return the blocks or tiles that a search may try on a CPU, besides the size that the cost model chooses."""
    if strategy == "gather":
        return (*((1,) if len(races.tables) == 1 else ()), *tiles_allowed(races))
    if strategy in ("block_colour", "block_permute"):
        return tuple(block for k, block in enumerate(_BLOCKS) if k == 0 or _BLOCKS[k - 1] < bound.over.size)
    return ()
