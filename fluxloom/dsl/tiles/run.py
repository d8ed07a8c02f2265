"""A chain in tiles, compiled: tables, memory of the threads, buffers, and the one native call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.spec import symbol_name
from fluxloom.codegen.tiled import TileDat, TiledUnit, TilePass, generate_tiled
from fluxloom.core.dtypes import SoA
from fluxloom.device.base import Buffer, Call, Launch
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.runtime import among
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.plan.executable import ArgumentBlock
from fluxloom.dsl.plan.plan import Plan
from fluxloom.dsl.run.plain import may_contract
from fluxloom.dsl.tiles.chain import LoopPass, TiledForm
from fluxloom.dsl.tiles.owners import cache_bytes, executed, owned
from fluxloom.graph.chain_tiles import TiledChainPlan, TileOwners, plan_tiles

__all__ = ["TileCounters", "TiledRun"]

_NARROW = 2**16
_ALIGN = 64
_STAGGER = 9 * _ALIGN


@dataclass(frozen=True)
class TileCounters:
    """What the tiles of a chain cost and save, a call.

    Attributes
    ----------
    tiles, threads
        Number of tiles, and of threads that share them.
    elements
        Owned elements of the leading set in the fullest tile.
    scratch_bytes
        Memory of a thread: the values of the largest tile.
    executed, needed
        Executions of all loops, with and without what several tiles execute.
    bytes_in, bytes_out, bytes_tables
        Values copied in, values handed over, rows of maps.
    """

    tiles: int
    threads: int
    elements: int
    scratch_bytes: int
    executed: int
    needed: int
    bytes_in: int
    bytes_out: int
    bytes_tables: int

    @property
    def redundancy(self) -> float:
        """Executions divided by those without tiles."""
        return self.executed / max(1, self.needed)

    @property
    def moved(self) -> int:
        """Bytes that a call moves between memory and the caches, at least."""
        return self.bytes_in + self.bytes_out + self.bytes_tables


class TiledRun:
    """The native form of a tiled chain for one set of tiles.

    Parameters
    ----------
    form
        The chain.
    owners
        Which tile owns which element, set by set.
    lead
        Number of the set that was dealt out first.
    threads
        Threads that share the tiles.
    """

    def __init__(self, form: TiledForm, owners: list[TileOwners], lead: int, threads: int, name: str) -> None:
        self.form, self.threads = form, threads
        self.context = form.loops[0].context
        self.tiles = owners[0].first.size - 1
        steps = (form.chain_dats, form.chain_maps, form.chain_steps, form.chain_passes)
        plan = plan_tiles(owners, *steps)
        self.moved = [d for k, d in enumerate(form.dats) if plan.foreign[k] and among(d, form.wanted)]
        """Dats that change their buffer at every call: other tiles start from what a tile hands over."""
        self._spare: dict[int, Buffer] = {id(d): self.context.allocate(d.buffer.nbytes) for d in self.moved}
        self.room = plan.counts.max(axis=0, initial=0) + 1
        self._narrow = bool(self.room.max(initial=0) <= _NARROW)
        self._scratch_layout()
        self._tile_dats = [self._tile_dat(d) for d in form.dats]
        self._generate(name)
        self._blocks = [self._block(k) for k in range(len(form.passes))]
        tables = self._tables(plan)
        self.counters = self._count(plan, owners, lead, tables)
        self._words(plan, tables)
        device = self.context.device
        calls: list[Call] = [device.reset_call(reset.block()) for reset in form.resets()]
        kept = [self._kept, self._blocks, self._numberings]
        calls.append(Call(name, self.compiled, self.words, (Launch(self.unit.symbol),), [kept]))
        self.sequencer = device.sequencer(calls)

    # --------------------------------------------------------------------------------- generated code
    def _generate(self, name: str) -> None:
        form = self.form
        self._numberings = [Numbering() for _ in form.passes]
        passes = [self._tile_pass(p, n) for p, n in zip(form.passes, self._numberings, strict=True)]
        self._groups = [p.group for p in passes]
        self.unit: TiledUnit = generate_tiled(
            symbol_name("fl_tiled_", name), passes, self._tile_dats, len(form.sets), len(form.maps),
            narrow=self._narrow,
        )  # fmt: skip
        contract = may_contract(form.loops)
        self.compiled = self.context.device.compile(self.unit.text, [self.unit.symbol], name, contract=contract)

    def _tile_pass(self, item: LoopPass, numbering: Numbering) -> TilePass:
        group = item.group(numbering)
        form = self.form
        dats = tuple((k, form.number(d)) for k, d in enumerate(numbering.dats) if isinstance(d, Dat))
        maps = tuple((k, form.number(m)) for k, m in enumerate(numbering.maps) if isinstance(m, TableMap))
        return TilePass(group, dats, maps, form.live(item))

    def _tile_dat(self, dat: Dat) -> TileDat:
        form, soa = self.form, isinstance(dat.layout, SoA)
        zero, stored = among(dat, form.zero), among(dat, form.wanted)
        return TileDat(form.number(dat.set), dat.scalar.size, dat.dim, soa, not zero, stored, zero)

    def _block(self, k: int) -> ArgumentBlock:
        """Return the argument block of a pass; the addresses of dats and maps in it are replaced by each thread."""
        loops = self.form.passes[k].loops
        plans = {n: Plan({}, self.tiles) for n in range(len(loops))}
        constants = {f"{n}_{name}": v for n, loop in enumerate(loops) for name, v in loop.constants.items()}
        block = ArgumentBlock(
            self.unit.entries[k], self._groups[k], self._numberings[k], plans, loops[0].over, 1, constants
        )
        for n, loop in enumerate(loops):
            loop.attach(block, n)
        return block

    # ------------------------------------------------------------------------------------------ memory
    def _scratch_layout(self) -> None:
        """Place the values of a tile one dat after the other, each shifted a little to avoid 4 KiB aliasing."""
        at, end = [], 0
        for k, dat in enumerate(self.form.dats):
            at.append(end)
            nbytes = int(self.room[self.form.number(dat.set)]) * dat.dim * dat.scalar.size
            end += -(-nbytes // _ALIGN) * _ALIGN + _STAGGER * (1 + k % 3)
        self._at = np.array(at or [0], dtype=np.int64)
        self.scratch_bytes = -(-end // 4096) * 4096 + _STAGGER
        # NumPy clears large arrays when they are first touched: by the thread that uses them.
        self._raw = np.zeros(self.threads * self.scratch_bytes + _ALIGN, dtype=np.uint8)

    def _tables(self, plan: TiledChainPlan) -> list[npt.NDArray[Any]]:
        dtype = np.uint16 if self._narrow else np.int32
        return [entries.astype(dtype) for _, entries in plan.tables]

    def _count(
        self, plan: TiledChainPlan, owners: list[TileOwners], lead: int, tables: list[npt.NDArray[Any]]
    ) -> TileCounters:
        def nbytes(stored: bool) -> int:
            pieces = zip(self._tile_dats, plan.outputs if stored else plan.inputs, strict=True)
            return sum(r.lengths() * d.dim * d.size for d, r in pieces if (d.stored if stored else d.loaded))

        every = np.arange(self.tiles, dtype=np.int32)
        return TileCounters(
            self.tiles, self.threads, int(np.diff(owners[lead].first).max(initial=0)), self.scratch_bytes,
            executed(self.form, plan), owned(self.form, owners, every),
            nbytes(False), nbytes(True), sum(t.nbytes for t in tables),
        )  # fmt: skip

    def _words(self, plan: TiledChainPlan, tables: list[npt.NDArray[Any]]) -> None:
        """Fill the argument block of the native function."""
        self._place = {name: k for k, name in enumerate(self.unit.words)}
        self.words = np.zeros(len(self.unit.words), dtype=np.int64)
        self._kept: list[Any] = [self._raw, self._at]
        scratch = self._raw.ctypes.data + (-self._raw.ctypes.data) % _ALIGN
        total = sum(d.nbytes for d in self.form.dats)
        fixed = {
            "tiles": self.tiles, "threads": self.threads, "stream": total > cache_bytes(3),
            "scratch_bytes": self.scratch_bytes, "scratch": scratch,
        }  # fmt: skip
        for name, value in fixed.items():
            self._set(name, value)
        arrays: dict[str, npt.NDArray[Any]] = {"at": self._at, "room": self.room, "counts": plan.counts}
        for d, dat in enumerate(self.form.dats):
            self._set(f"stride{d}", dat.stride)
            arrays |= {f"in_first{d}": plan.inputs[d].first, f"in{d}": plan.inputs[d].runs}
            arrays |= {f"out_first{d}": plan.outputs[d].first, f"out{d}": plan.outputs[d].runs}
        for p, (block, runs) in enumerate(zip(self._blocks, plan.passes, strict=True)):
            arrays |= {f"block{p}": block.words, f"run_first{p}": runs.first, f"run{p}": runs.runs}
        for m, (table, (first, _)) in enumerate(zip(tables, plan.tables, strict=True)):
            arrays |= {f"row_first{m}": first, f"rows{m}": table}
        for name, array in arrays.items():
            if name in self._place:
                self._kept.append(array)
                self._set(name, array.ctypes.data)
        self._buffers = [
            (dat, self._place[f"from{d}"], self._place[f"to{d}"])
            for d, dat in enumerate(self.form.dats)
            if f"from{d}" in self._place
        ]

    def _set(self, name: str, value: int) -> None:
        if name in self._place:
            self.words[self._place[name]] = value

    # ---------------------------------------------------------------------------------------- running
    def run(self) -> None:
        """Run the chain once; what other tiles start from is left in the other buffer of its dat."""
        words, spare = self.words, self._spare
        for dat, begin, end in self._buffers:
            words[begin] = dat.buffer.address
            words[end] = spare[id(dat)].address if id(dat) in spare else dat.buffer.address
        self.sequencer()
        if self.moved:
            for dat in self.moved:
                dat.buffer, spare[id(dat)] = spare[id(dat)], dat.buffer
            self.context.epoch += 1

    @property
    def calls(self) -> int:
        """How often it ran."""
        return int(self.sequencer.counts[-1])

    @property
    def seconds(self) -> float:
        """Time spent in it."""
        return float(self.sequencer.seconds[-1])
