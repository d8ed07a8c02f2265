"""Overlapped tiles of a chain of loops: what every tile executes, starts from and hands over, in local numbers.

Each tile owns some elements of every set. Going backwards through the chain, a loop has to execute the elements that
write a value which is needed behind it, and then needs what they read; a value that it writes anew was not needed
before it. What is needed in front of the first loop is copied in. Tiles are therefore independent: elements near their
borders are executed by several (redundant-compute tiles: Reguly, PhD thesis, PPCU Budapest 2014, section 6.2,
with one set of needed elements a dat instead of one a set).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError, OutOfMemory
from fluxloom.graph.inverse import InverseMap
from fluxloom.graph.native import Indices, Offsets
from fluxloom.toolchain import Library, load_library

__all__ = ["ChainArg", "ChainMap", "ChainPass", "ChainStep", "Runs", "TileOwners", "TiledChainPlan", "plan_tiles"]


@dataclass(frozen=True, eq=False)
class TileOwners:
    """Which tile owns each element of a set.

    Attributes
    ----------
    owner
        int32, ``(n,)``: tile of each element.
    first
        int64, ``(tiles + 1,)``: where the elements of each tile begin in ``elements``.
    elements
        int32, ``(n,)``: elements tile by tile, ascending in each.
    free
        Whether a tile may number its elements in any order, because no result depends on the order in which they run.
        Otherwise the numbers ascend with the global ones.
    """

    owner: Indices
    first: Offsets
    elements: Indices
    free: bool = False

    @classmethod
    def of(cls, owner: npt.NDArray[np.integer[Any]], tiles: int, *, free: bool = False) -> TileOwners:
        """Sort the elements of a set by the tile that owns them."""
        owner = np.ascontiguousarray(owner, dtype=np.int32)
        first = np.zeros(tiles + 1, dtype=np.int64)
        np.cumsum(np.bincount(owner, minlength=tiles), out=first[1:])
        return cls(owner, first, np.argsort(owner, kind="stable").astype(np.int32), free)


@dataclass(frozen=True, eq=False)
class ChainMap:
    """A table ``(n, arity)`` of elements of the set ``target``, one row an element of ``source``; sets are numbers.

    ``inverse`` is wanted of maps that something is written through.
    """

    source: int
    target: int
    table: Indices
    inverse: InverseMap | None = None


@dataclass(frozen=True)
class ChainArg:
    """One dat of a loop: its number, the map (-1: direct) and the leg (-1: all), and what happens to its value.

    ``reads``: the value before is used. ``writes``: it changes. ``kills``: nothing of the value before is left.
    A value that is only added to is written, but not read and not killed.
    """

    dat: int
    map: int
    leg: int
    reads: bool
    writes: bool
    kills: bool


@dataclass(frozen=True)
class ChainStep:
    """One loop: its set, the pass it belongs to, whether all owned elements count (reductions), its arguments."""

    set: int
    stage: int
    reduces: bool
    args: tuple[ChainArg, ...]


@dataclass(frozen=True)
class ChainPass:
    """Loops over one set that run together.

    ``gap``: so many elements that need not run may run between two that must. ``flagged``: runs are of owned or of
    other elements.
    """

    set: int
    gap: int
    flagged: bool


@dataclass(frozen=True, eq=False)
class Runs:
    """Ranges of elements, tile by tile: ``runs[first[t]:first[t + 1]]`` are those of tile ``t``.

    Attributes
    ----------
    first
        int64, ``(tiles + 1,)``.
    runs
        int32, ``(n, 3)``: of values first global number, first local number and length; of passes first local
        number, local number behind the last, and whether the elements are owned (only when they are flagged).
    """

    first: Offsets
    runs: npt.NDArray[np.int32]

    def lengths(self) -> int:
        """Return the elements of all runs of values."""
        return int(self.runs[:, 2].sum(dtype=np.int64))

    def executed(self) -> int:
        """Return the elements of all runs of a pass."""
        return int((self.runs[:, 1] - self.runs[:, 0]).sum(dtype=np.int64))


@dataclass(frozen=True, eq=False)
class TiledChainPlan:
    """What the tiles do.

    Attributes
    ----------
    counts
        int64, ``(tiles, sets)``: local elements.
    inputs, outputs
        Per dat: values that a tile starts from, and those it owns and hands over (none unless they are wanted).
    passes
        Per pass: what is executed, ascending.
    tables
        Per map ``(first, entries)``: int64 ``(tiles + 1,)``, where the rows of a tile begin, and int32 entries in
        local numbers, row after row of the local elements. A target that a tile does not have is numbered
        like one behind its last element: nothing depends on what is read or written there.
    foreign
        Per dat: whether some tile starts from values of another one's elements.
    """

    counts: npt.NDArray[np.int64]
    inputs: tuple[Runs, ...]
    outputs: tuple[Runs, ...]
    passes: tuple[Runs, ...]
    tables: tuple[tuple[Offsets, Indices], ...]
    foreign: tuple[bool, ...]


@functools.cache
def _library() -> Library:
    """Compile the C source of this module, once a process."""
    source = resources.files("fluxloom.graph").joinpath("chain_tiles.c").read_text(encoding="utf-8")
    return load_library(source, "chain_tiles")


def plan_tiles(
    owners: Sequence[TileOwners],
    dats: Sequence[tuple[int, bool]],
    maps: Sequence[ChainMap],
    steps: Sequence[ChainStep],
    passes: Sequence[ChainPass],
    tiles: npt.NDArray[np.int32] | None = None,
) -> TiledChainPlan:
    """Find what each tile has to execute and to copy.

    Parameters
    ----------
    owners
        Per set, which tile owns which element.
    dats
        Per dat its set, and whether its values are wanted after the chain.
    maps
        Tables, with every entry in range.
    steps
        Loops in order; those of a pass follow each other.
    tiles
        Tiles to plan, by number; all by default. Arrays of the result have one entry for each of these.

    Raises
    ------
    DatError
        If something is written through a map whose inverse is missing.
    OutOfMemory
        If there is not enough memory for the tables.
    """
    chosen = np.arange(owners[0].first.size - 1, dtype=np.int32) if tiles is None else tiles.astype(np.int32)
    written = {arg.map for step in steps for arg in step.args if arg.writes and arg.map >= 0}
    if bare := [k for k in sorted(written) if maps[k].inverse is None]:
        raise DatError(f"map {bare[0]} is written through: give its inverse (inverse_map of its table)")
    words, kept = _chain_words(owners, dats, maps, steps, passes)
    foreign = np.zeros(max(1, len(dats)), dtype=np.int64)
    plan = _library().function("chain_tiles_plan", restype=ctypes.c_int64)
    pointers = [ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(chosen.ctypes.data)]
    handle = plan(*pointers, ctypes.c_int64(chosen.size), ctypes.c_void_p(foreign.ctypes.data))
    del kept
    if not handle:
        raise OutOfMemory("there is no memory for the tables of a tiled chain; use fewer steps at once")
    try:
        return _collect(handle, chosen.size, len(owners), len(dats), len(passes), len(maps), foreign)
    finally:
        _library().function("chain_tiles_free")(ctypes.c_int64(handle))


def _chain_words(
    owners: Sequence[TileOwners], dats: Sequence[tuple[int, bool]], maps: Sequence[ChainMap],
    steps: Sequence[ChainStep], passes: Sequence[ChainPass],
) -> tuple[npt.NDArray[np.int64], list[Any]]:  # fmt: skip
    """Return the C description of a chain, one 8-byte word a number or address, and what has to stay alive."""
    sets = [(o.owner.size, o.free, _at(o.owner), _at(o.first), _at(o.elements)) for o in owners]
    links = [
        (m.source, m.target, m.table.shape[1], _at(m.table), *(
            (0, 0, 0) if m.inverse is None else (_at(m.inverse.offsets), _at(m.inverse.element), _at(m.inverse.leg))
        ))
        for m in maps
    ]  # fmt: skip
    loops, args = [], []
    for step in steps:
        first = len(args)
        args += [(a.dat, a.map, a.leg, a.reads, a.writes, a.kills) for a in step.args]
        loops.append((step.set, step.stage, step.reduces, first, len(args)))
    rows: list[list[tuple[int, ...]]] = [
        sets, list(dats), links, loops, args, [(p.set, p.gap, p.flagged) for p in passes],
    ]  # fmt: skip
    arrays = [np.array(r if r else [0], dtype=np.int64) for r in rows]
    counts = [len(owners), len(dats), len(maps), len(steps), len(passes)]
    words = np.array([*counts, *(_at(a) for a in arrays)], dtype=np.int64)
    return words, [arrays, owners, maps]


def _at(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _collect(
    handle: int, tiles: int, sets: int, dats: int, passes: int, maps: int, foreign: npt.NDArray[np.int64]
) -> TiledChainPlan:
    """Take the results out of the memory of the C code, in the order in which it keeps them."""
    order = iter(range(1 + 4 * dats + 2 * passes + 2 * maps))

    def take(dtype: type) -> npt.NDArray[Any]:
        k = ctypes.c_int64(next(order))
        size = _library().function("chain_tiles_count", restype=ctypes.c_int64)(ctypes.c_int64(handle), k)
        out = np.empty(size, dtype=dtype)
        _library().function("chain_tiles_take")(ctypes.c_int64(handle), k, ctypes.c_void_p(out.ctypes.data))
        return out

    def runs() -> Runs:
        first = take(np.int64)
        return Runs(first, take(np.int32).reshape(-1, 3))

    counts = take(np.int64).reshape(tiles, sets)
    values = [(runs(), runs()) for _ in range(dats)]
    executed = tuple(runs() for _ in range(passes))
    tables = tuple((take(np.int64), take(np.int32)) for _ in range(maps))
    outside = tuple(bool(f) for f in foreign[:dats])
    return TiledChainPlan(counts, tuple(i for i, _ in values), tuple(o for _, o in values), executed, tables, outside)
