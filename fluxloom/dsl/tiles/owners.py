"""Which tile owns which element: the size of tiles from the caches, tiles of one set, and what follows for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.tiles.chain import TiledForm
from fluxloom.graph.chain_tiles import TiledChainPlan, TileOwners, plan_tiles
from fluxloom.graph.native import Indices, Offsets
from fluxloom.graph.partition import dual_graph, kway_available, pair_graph, partition_kway

__all__ = ["cache_bytes", "choose_owners", "leading_set", "owners_from", "redundancy", "touched_bytes"]

_FALLBACK = {1: 32 * 2**10, 2: 512 * 2**10, 3: 16 * 2**20}
"""Bytes of a cache where the system does not say."""

_SHARE = 0.6
"""Part of the second-level cache that a tile may fill; the rest is for what passes through."""

_LOW = 1.1
"""Executions an element up to which tiles of consecutive elements are good enough."""

_FEW = 1.05
"""Executions an element up to which small tiles are good enough."""

_SAMPLE = 6


def cache_bytes(level: int, root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Return the bytes of a data cache of the first core, or a usual size where the system does not say."""
    for folder in sorted(root.glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            text = (folder / "size").read_text().strip()
            if int((folder / "level").read_text()) == level and kind != "Instruction":
                return int(text.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
        except (OSError, ValueError):
            continue
    return _FALLBACK[level]


def leading_set(form: TiledForm) -> Set:
    """Return the set whose elements are dealt to the tiles first: that with the most bytes to hand over."""
    dats = form.wanted or form.dats
    if not dats:
        return form.loops[0].over
    return max((d.set for d in dats), key=lambda s: sum(d.nbytes for d in dats if d.set is s))


def touched_bytes(form: TiledForm) -> int:
    """Return the bytes of everything that a chain touches, maps in the narrow form of tiles."""
    return sum(d.nbytes for d in form.dats) + sum(2 * m.table.size for m in form.maps)


def choose_owners(form: TiledForm, count: int, threads: int) -> tuple[list[TileOwners], str]:
    """Deal the elements to tiles; returns the owners, set by set, and how it was done, in words.

    Parameters
    ----------
    count
        Number of tiles; 0: as many as let a tile stay in the second-level cache, or fewer, larger ones up to a
        thread's share of the last-level cache, where tiles that small would compute too much twice.
    threads
        Threads that share the tiles.

    Notes
    -----
    Consecutive elements are taken where the numbering is so local that few elements run twice. Else METIS cuts
    the graph of the leading set, if it is installed.
    """
    if count:
        owners, how, _ = _deal(form, count)
        return owners, how
    touched = touched_bytes(form)
    least = threads if touched > cache_bytes(1) else 1
    count = max(least, -(-touched // int(_SHARE * cache_bytes(2))))
    owners, how, found = _deal(form, count)
    if found > _FEW and count > least:
        # What is computed twice grows with the borders: with the square root of the number of tiles.
        wanted = int(count * ((_FEW - 1) / (found - 1)) ** 2)
        fewer = max(least, wanted, -(-touched * 4 * threads // cache_bytes(3)))
        if fewer < count:
            owners, how, _ = _deal(form, fewer)
    return owners, how


def _deal(form: TiledForm, count: int) -> tuple[list[TileOwners], str, float]:
    """Deal the elements to so many tiles; returns owners, how, and how often an element runs."""
    lead = leading_set(form)
    plain = owners_from(form, lead, _consecutive(lead.size, count), count)
    before = redundancy(form, plain, _sample(count))
    if before <= _LOW or count == 1 or count >= lead.size:
        return plain, "consecutive elements", before
    graph = _graph(form, lead)
    if graph is None or not kway_available():
        why = "no map joins its elements" if graph is None else "pymetis is not installed"
        return plain, f"consecutive elements, which is not compact, but {why}", before
    owner = partition_kway(*graph, np.ones(count))
    cut = owners_from(form, lead, _renumbered(owner, count), count)
    after = redundancy(form, cut, _sample(count))
    return (cut, "compact parts of the mesh", after) if after < before else (plain, "consecutive elements", before)


def _consecutive(size: int, count: int) -> npt.NDArray[np.int64]:
    return np.arange(size, dtype=np.int64) * count // max(1, size)


def _sample(count: int) -> npt.NDArray[np.int32]:
    return np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int32))


def _renumbered(owner: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int32]:
    """Number the tiles by their first element, so that neighbours in memory are neighbours in time."""
    found, first = np.unique(owner, return_index=True)
    new = np.zeros(count, dtype=np.int32)
    new[found[np.argsort(first)]] = np.arange(found.size, dtype=np.int32)
    return new[owner]


def _graph(form: TiledForm, lead: Set) -> tuple[Offsets, Indices] | None:
    """Return the neighbours of the elements of a set, from the maps of the chain; None if no map joins any."""
    inside = [m for m in form.maps if m.source is lead and m.target is lead]
    ends = [m for m in form.maps if m.source is not lead and m.target is lead and m.legs >= 2]
    around = [m for m in form.maps if m.source is lead and m.target is not lead]
    if ends:
        widest = max(ends, key=lambda m: m.table.size)
        graph = pair_graph(widest.table, lead.size)
    elif inside:
        table = inside[0].table
        pairs = np.stack([np.repeat(np.arange(lead.size, dtype=np.int32), table.shape[1]), table.ravel()], 1)
        graph = pair_graph(pairs, lead.size)
    elif around:
        graph = dual_graph(around[0].table, around[0].target.size)
    else:
        return None
    return graph.offsets, graph.indices


def owners_from(form: TiledForm, lead: Set, tile: npt.NDArray[np.integer[Any]], count: int) -> list[TileOwners]:
    """Return the owners of the elements of every set.

    An element that a map leads from gets the tile of its first target, one that a map leads to gets that of the
    first element that leads there. Elements that no map joins to the leading set are dealt out evenly.

    Parameters
    ----------
    tile
        Tile of each element of the leading set.
    count
        Number of tiles.

    Raises
    ------
    PlanError
        If there is not one tile an element, or a number is not one of a tile.
    """
    labels = np.asarray(tile)
    if labels.shape != (lead.size,) or (labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < count):
        raise PlanError(
            f"tiles: {lead} needs one tile from 0 to {count - 1} for each element, got an array {labels.shape}"
        )
    known: dict[int, npt.NDArray[np.int64]] = {id(lead): labels.astype(np.int64)}
    found = True
    while found:
        found = False
        for m in form.maps:
            if id(m.target) in known and id(m.source) not in known and m.legs:
                known[id(m.source)] = known[id(m.target)][m.table[:, 0]]
                found = True
            elif id(m.source) in known and id(m.target) not in known:
                owner = _consecutive(m.target.size, count)
                # Of several rows with one target the first one decides: it is assigned last.
                owner[m.table[::-1].ravel()] = np.repeat(known[id(m.source)][::-1], m.legs)
                known[id(m.target)] = owner
                found = True
    return [
        TileOwners.of(known.get(id(s), _consecutive(s.size, count)), count, free=form.is_free(s)) for s in form.sets
    ]


def redundancy(form: TiledForm, owners: list[TileOwners], tiles: npt.NDArray[np.int32]) -> float:
    """Return how often an element is executed on average in some of the tiles."""
    plan = plan_tiles(owners, form.chain_dats, form.chain_maps, form.chain_steps, form.chain_passes, tiles)
    return executed(form, plan) / max(1, owned(form, owners, tiles))


def executed(form: TiledForm, plan: TiledChainPlan) -> int:
    """Return the executions of all loops by the tiles of a plan."""
    return sum(len(p.loops) * runs.executed() for p, runs in zip(form.passes, plan.passes, strict=True))


def owned(form: TiledForm, owners: list[TileOwners], tiles: npt.NDArray[np.int32]) -> int:
    """Return the executions of all loops without tiles, for the elements that some tiles own."""
    share = [int((o.first[tiles + 1] - o.first[tiles]).sum()) for o in owners]
    return sum(share[form.number(loop.over)] for loop in form.loops)
