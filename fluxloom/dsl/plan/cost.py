"""The cost model: a schedule for a loop before anything has been measured."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fluxloom.codegen.language.group import CHUNK
from fluxloom.core.access import Access
from fluxloom.core.dtypes import FLOAT16, AoS, Scalar
from fluxloom.core.errors import PlanError
from fluxloom.core.processors import available_processors
from fluxloom.device.bandwidth import last_level_cache
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.runtime import Runtime, unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Grid
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.plan import tile_redundancy
from fluxloom.dsl.plan.races import RaceInfo
from fluxloom.toolchain import optimises

__all__ = ["choose", "choose_tile", "direct_lanes", "entry_memory", "redundancy_is_low", "repeating_pays"]

TILES = (4096, 8192, 16384, 32768)
"""Targets a tile: as few as computes few elements twice, so that what a tile touches stays in the caches."""

_GOOD_REDUNDANCY = 1.06

_TILES_A_THREAD = 4
"""Fewer tiles leave threads idle at the end."""

_MAX_REDUNDANCY = 1.25
"""Above this many computations an element, gathering in tiles loses to colouring."""

_ADDITION_BYTES = 32
"""Traffic of an addition to memory that others add to: the least that travels between a cache and memory."""

_OPERATION_BYTES = 1 / 32
"""Bytes moved in the time of an operation, for each byte of its numbers: 4 operations a byte in double precision."""

_CACHE_SHARE = 1 / 4
"""Time of a byte that comes from the caches, beside that of one from memory."""

_LEAST_ROW = 64
"""Elements of a row of a grid below which its ends, which are copied, take too much of the time."""

_KEPT_ENTRIES = 6
"""Entries of a row for each of which a work item can keep some numbers in registers: the faces of a hexahedron."""

_FETCHED_OPERATIONS = 2
"""Operations of a row for each number that it fetches from among others of an element, below which rows side by side do
not pay: a pack fetches one of each row by itself."""

_STREAM_BYTES = 64 * 2**20
"""Data of a loop beyond which fully written dats are stored past the caches."""


def choose(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> Schedule:
    """Fill the open choices of a schedule.

    A race is resolved by running serially on one thread; on several by gathering in tiles when the
    numbering is local enough that few elements are computed twice, else by block colours.
    """
    strategy = wanted.strategy or _strategy(bound, races, wanted, threads)
    if races.racing and wanted.deterministic == "global" and bound.over.parent.part is not None:
        require_global_order(bound, races, strategy)
    block = wanted.block or (choose_tile(bound, races) if strategy == "gather" else _block(bound, threads))
    if strategy == "gather" and block > 1:
        block = -(-block // CHUNK) * CHUNK
    return Schedule(
        strategy=strategy,
        block=block,
        lanes=wanted.lanes or (1 if _fetches_more(bound) else _lanes(bound.compute, races.racing)),
        threads=threads,
        stream=wanted.stream if wanted.stream is not None else _stream(bound, races, wanted, threads),
        deterministic=wanted.deterministic,
    )


def _strategy(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> str:
    order_matters = wanted.deterministic == "global" and bound.over.parent.part is not None
    if threads == 1 and "serial" in races.allowed and not order_matters:
        return "serial"
    if "gather" in races.allowed and redundancy_is_low(bound, races, wanted.block):
        return "gather"
    if order_matters and "two_pass" not in races.allowed:
        require_global_order(bound, races, "gather")
        return "gather"
    if wanted.deterministic == "global":
        return "two_pass" if "two_pass" in races.allowed else "serial"
    return "block_colour" if "block_colour" in races.allowed else races.allowed[0]


def require_global_order(bound: Bound, races: RaceInfo, strategy: str) -> None:
    """Raise `PlanError` unless a strategy adds in the order of the global numbers, on a set of which this is a part."""
    if strategy not in races.allowed or strategy not in ("gather", "two_pass"):
        reason = races.reasons.get(strategy, "it adds in the order of the local numbers")
        raise PlanError(
            f"{bound.name}: deterministic='global' on several ranks needs the strategy 'gather' or 'two_pass'; "
            f"{strategy!r} is not possible: {reason}"
        )


def redundancy_is_low(bound: Bound, races: RaceInfo, block: int = 0) -> bool:
    """Return whether gathering in tiles computes few elements twice, and these cost less than it saves."""
    tile = -(-block // CHUNK) * CHUNK if block > 1 else choose_tile(bound, races)
    redundancy = tile_redundancy(bound, races, tile)
    repeats = (redundancy - 1.0) * len(races.tables[0])
    return redundancy <= _MAX_REDUNDANCY and repeating_pays(bound, races, repeats)


def repeating_pays(bound: Bound, races: RaceInfo, repeats: float) -> bool:
    r"""Return whether what a gather computes again costs less than the additions to memory that it saves.

    .. math:: r \left(\frac{F}{4\,\mathrm{B}^{-1}} + \frac{R}{4}\right) \le c \sum_i l_i d_i \, 32\,\mathrm{B}

    for ``r`` repeated elements of ``F`` operations in double precision (twice as many a byte in single precision) and
    ``R`` bytes of their own, numbers and rows of tables, which caches deliver four times as fast as memory; and ``c``
    elements that add ``d`` numbers through ``l`` legs. What elements share costs nothing the second time.

    Parameters
    ----------
    repeats
        Elements that are computed again, in all.

    Notes
    -----
    On an H200 the two sides of the assembly of stiffness matrices of quads into rows of entries are 4.6, 25 and 48 to
    1 (order 1; order 2, integration A and B), and ``gather`` takes 5.9, 32 and 70 times as long as ``atomic``. Those
    of the fluxes of Airfoil are 1 to 10, and ``gather`` takes 0.94 of the time.
    """
    own, added = 0.0, 0.0
    for arg in bound.arguments:
        dat = arg.data if isinstance(arg.data, Dat) else None
        if isinstance(arg.map, TableMap):
            legs = arg.map.legs if arg.leg < 0 else 1
            own += 4.0 * legs
            added += legs * dat.dim * _ADDITION_BYTES if dat is not None and arg.access.reduces else 0.0
        elif dat is not None and arg.map is None:
            own += dat.dim * dat.scalar.size
    work = bound.lowered.flops * bound.compute.size * _OPERATION_BYTES
    return repeats * (work + _CACHE_SHARE * own) <= len(races.tables[0]) * added


def choose_tile(bound: Bound, races: RaceInfo) -> int:
    """Return the smallest tile that computes few elements twice, or one so small that all threads have some."""
    tile = _least_redundant(bound, races)
    threads, size = bound.over.context.threads, races.targets[0].size
    fair = max(CHUNK, size // (_TILES_A_THREAD * threads) // CHUNK * CHUNK)
    if threads > 1 and fair < tile and tile_redundancy(bound, races, fair) <= _MAX_REDUNDANCY:
        return fair
    return tile


def _least_redundant(bound: Bound, races: RaceInfo) -> int:
    for tile in TILES:
        if tile >= races.targets[0].size or tile_redundancy(bound, races, tile) <= _GOOD_REDUNDANCY:
            return tile
    return TILES[-1]


def _block(bound: Bound, threads: int) -> int:
    """Blocks as large as leaves each thread about eight of each colour; reuse grows with the block."""
    share = bound.over.size // max(1, 16 * threads)
    block = 256
    while block * 2 <= min(share, 16384):
        block *= 2
    return block


def _lanes(compute: Scalar, racing: bool) -> int:
    """Rows of 4 make 256-bit shuffles cheapest where increments are scattered; elsewhere wider is better."""
    if not optimises():
        return 1
    wide = 8 if compute.size == 8 else 16
    return wide // 2 if racing else wide


def entry_memory(context: Runtime, most: int) -> Literal["stack", "registers", "none"]:
    """Return where a kernel had better keep numbers of each entry of a row until it has seen all of them.

    Threads have a stack for arrays. Work items have registers, for few entries, if loops over them are unrolled; for
    more entries a kernel computes the numbers anew instead.

    Parameters
    ----------
    most
        Entries of the longest row.
    """
    if not context.device.items:
        return "stack"
    return "registers" if most <= _KEPT_ENTRIES else "none"


def _fetches_more(bound: Bound) -> bool:
    """Return whether rows of a ragged loop fetch numbers side by side at each element, and do little with them."""
    seen = [a.data for a in bound.arguments if isinstance(a.map, RaggedMap) and isinstance(a.data, Dat)]
    fetched = sum(dat.dim for dat in seen if dat.dim > 1 and isinstance(dat.layout, AoS))
    return bound.lowered.flops < _FETCHED_OPERATIONS * fetched


def direct_lanes(bound: Bound) -> int:
    """Return the pack of a loop without scattered increments."""
    return _lanes(bound.compute, False)


def _stream(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> bool:
    if races.racing:
        return False
    if isinstance(bound.over, Grid):
        return _lines_pay(bound, wanted, threads)
    writes = sum(
        a.data.set.size * a.data.dim * a.data.scalar.size
        for a in bound.arguments
        if a.access is Access.WRITE and a.map is None and isinstance(a.data, Dat)
    )
    return writes > 0 and bound.over.size * 64 > _STREAM_BYTES // 4


def _lines_pay(bound: Bound, wanted: Schedule, threads: int) -> bool:
    """Return whether the rows of a grid are moved line by line: they are long, and the caches do not hold the dats.

    Values that stay where they are and are not converted gain nothing by it (D3Q19: 74 % of the copy, not 78 %).
    The order of sums depends on how rows are cut into lines, which depends on the size of the grid: not what
    ``deterministic="global"`` promises.
    """
    if bound.over.shape[-1] < _LEAST_ROW:
        return False
    sums = any(data.scalar.floating and access is Access.INC for data, access in bound.globals(reads=False))
    if sums and wanted.deterministic == "global":
        return False
    own = [a for a in bound.arguments if isinstance(a.data, Dat)]
    dats = unique(a.data for a in bound.arguments if isinstance(a.data, Dat))
    changed = any(a.access.writes for a in own)
    gains = any(a.access is Access.WRITE or a.map is not None or a.data.scalar is FLOAT16 for a in own)
    return changed and gains and sum(d.nbytes for d in dats) > last_level_cache() * -(-threads // _sharing())


def _sharing(path: Path = Path("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list")) -> int:
    """Return how many processors share the last cache, such as those of ``0-7,64-71``; all where it is not said."""
    try:
        parts = [part.split("-") for part in path.read_text().strip().split(",")]
        return sum(int(part[-1]) - int(part[0]) + 1 for part in parts)
    except (OSError, ValueError):
        return available_processors()
