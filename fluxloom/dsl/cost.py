"""The cost model: a schedule for a loop before anything has been measured."""

from __future__ import annotations

from fluxloom.core.access import Access
from fluxloom.core.dtypes import Scalar
from fluxloom.dsl.bind import Bound
from fluxloom.dsl.plan import tile_redundancy
from fluxloom.dsl.races import RaceInfo
from fluxloom.dsl.schedule import Schedule

__all__ = ["choose"]

TILE = 4096
"""Targets a tile: the increments of one (4 float64 components: 128 KiB) stay in a second-level cache."""

_MAX_REDUNDANCY = 1.25
"""Above this many computations an element, gathering in tiles loses to colouring."""

_STREAM_BYTES = 64 * 2**20
"""Data of a loop beyond which fully written dats are stored past the caches."""


def choose(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> Schedule:
    """Fill the open choices of a schedule.

    A race is resolved by running serially on one thread; on several by gathering in tiles when the
    numbering is local enough that few elements are computed twice, else by block colours.
    """
    strategy = wanted.strategy or _strategy(bound, races, wanted, threads)
    block = wanted.block or (TILE if strategy == "gather" else _block(bound, threads))
    return Schedule(
        strategy=strategy,
        block=block,
        lanes=wanted.lanes or _lanes(bound.compute, races.racing),
        threads=threads,
        stream=wanted.stream if wanted.stream is not None else _stream(bound, races),
        deterministic=wanted.deterministic,
    )


def _strategy(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> str:
    if threads == 1 and "serial" in races.allowed:
        return "serial"
    if "gather" in races.allowed and tile_redundancy(bound, races, wanted.block or TILE) <= _MAX_REDUNDANCY:
        return "gather"
    if wanted.deterministic == "global":
        return "two_pass" if "two_pass" in races.allowed else "serial"
    return "block_colour" if "block_colour" in races.allowed else races.allowed[0]


def _block(bound: Bound, threads: int) -> int:
    """Blocks as large as leaves each thread about eight of each colour; reuse grows with the block."""
    share = bound.over.size // max(1, 16 * threads)
    block = 256
    while block * 2 <= min(share, 16384):
        block *= 2
    return block


def _lanes(compute: Scalar, racing: bool) -> int:
    """Rows of 4 make 256-bit shuffles cheapest where increments are scattered; elsewhere wider is better."""
    wide = 8 if compute.size == 8 else 16
    return wide // 2 if racing else wide


def _stream(bound: Bound, races: RaceInfo) -> bool:
    if races.racing:
        return False
    writes = sum(
        a.data.set.size * a.data.dim * a.data.scalar.size
        for a, p in zip(bound.arguments, bound.kernel.parameters, strict=True)
        if p.access is Access.WRITE and a.map is None
    )
    return writes > 0 and bound.over.size * 64 > _STREAM_BYTES // 4
