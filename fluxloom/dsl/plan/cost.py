"""The cost model: a schedule for a loop before anything has been measured."""

from __future__ import annotations

from typing import Literal

from fluxloom.codegen.language.group import CHUNK
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.block import MAX_REDUNDANCY, block_of, choose_tile
from fluxloom.dsl.plan.lanes import lanes_of
from fluxloom.dsl.plan.plan import tile_redundancy
from fluxloom.dsl.plan.races import RaceInfo
from fluxloom.dsl.plan.stream import choose_stream

__all__ = ["choose", "entry_memory", "redundancy_is_low", "repeating_pays", "require_global_order"]

_ADDITION_BYTES = 32
"""Traffic of an addition to memory that others add to: the least that travels between a cache and memory."""

_OPERATION_BYTES = 1 / 32
"""Bytes moved in the time of an operation, for each byte of its numbers: 4 operations a byte in double precision."""

_CACHE_SHARE = 1 / 4
"""Time of a byte that comes from the caches, beside that of one from memory."""

_KEPT_ENTRIES = 6
"""Entries of a row for each of which a work item can keep some numbers in registers: the faces of a hexahedron."""


def choose(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> Schedule:
    """Fill the open choices of a schedule.

    A race is resolved by running serially on one thread; on several by gathering in tiles when the
    numbering is local enough that few elements are computed twice, else by block colours.
    """
    strategy = wanted.strategy or _strategy(bound, races, wanted, threads)
    if races.racing and wanted.deterministic == "global" and bound.over.parent.part is not None:
        require_global_order(bound, races, strategy)
    block = wanted.block or (choose_tile(bound, races) if strategy == "gather" else block_of(bound, threads))
    if strategy == "gather" and block > 1:
        block = -(-block // CHUNK) * CHUNK
    return Schedule(
        strategy=strategy,
        block=block,
        lanes=wanted.lanes or lanes_of(bound, races.racing),
        threads=threads,
        stream=choose_stream(bound, races, wanted, threads),
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
    return redundancy <= MAX_REDUNDANCY and repeating_pays(bound, races, repeats)


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


