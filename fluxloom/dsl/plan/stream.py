"""The knob ``stream``: dats that are written completely are stored past the caches."""

from __future__ import annotations

from pathlib import Path

from fluxloom.core.access import Access
from fluxloom.core.dtypes import FLOAT16
from fluxloom.core.processors import available_processors
from fluxloom.device.bandwidth import last_level_cache
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Grid
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.races import RaceInfo

__all__ = ["allowed", "choose_stream"]

_LEAST_ROW = 64
"""Elements of a row of a grid below which its ends, which are copied, take too much of the time."""

_STREAM_BYTES = 64 * 2**20
"""Data of a loop beyond which fully written dats are stored past the caches."""


def choose_stream(bound: Bound, races: RaceInfo, wanted: Schedule, threads: int) -> bool:
    """Return whether what a loop writes is stored past the caches."""
    if wanted.stream is not None:
        return wanted.stream
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


def allowed(bound: Bound, now: Schedule) -> tuple[bool, ...]:
    """Return what a search may try, what is in force first; nothing where no dat is written element by element."""
    writes = any(a.access is Access.WRITE and a.map is None for a in bound.arguments)
    return (bool(now.stream), not now.stream) if writes else ()
