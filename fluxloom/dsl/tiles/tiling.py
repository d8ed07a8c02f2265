"""Chains that run tile by tile, so that what a tile touches stays in the cache across all loops."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.plan.tuning import TuningFile, tuning_key
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport, layouts
from fluxloom.dsl.tiles.chain import TiledForm, why_not_tiled
from fluxloom.dsl.tiles.owners import choose_owners, leading_set, owners_from
from fluxloom.dsl.tiles.run import TileCounters, TiledRun

__all__ = ["TiledChain"]

_MANY = 2**16
"""Tiles that there may be of a set of any size; empty ones cost only tables."""

Tiles = int | npt.NDArray[np.integer[Any]]


class TiledChain:
    """Loops that always run one after the other, tile by tile, as one call.

    A tile is some elements of every set. It copies in what it needs, runs all loops on it, and hands over the
    values that it owns. Elements near the borders of tiles are computed by several of them, from the same
    values in the same order: the fields are those of the chain without tiles, to the last bit with
    ``deterministic="global"``. Reductions count every element once; their sums are formed tile by tile.

    Parameters
    ----------
    steps
        Loops and resets of globals, in order.
    tiles
        How many; or the tile of each element of the leading set (`lead`), int, ``(n,)``. 0: as recorded by
        `tune_tiles`, else chosen from the sizes of the caches.
    transient
        Dats whose values nobody reads after the chain has run; after a call their values are undefined.
    steps_at_once
        How many times one call runs the steps. The more, the less is moved for each, and the more is computed twice.
    name
        For messages and reports.

    Raises
    ------
    LoopError
        If a step is not a loop or a reset, or the loops are of different contexts.
    PlanError
        If there is no such number of tiles or of steps, or the tiles do not fit the leading set.

    Notes
    -----
    Tiles are for loops over whole sets through table maps on a CPU. Any other chain runs as `Chain` does;
    `describe` says why. A call runs loop by loop while an array outside shares the memory of a dat that tiles
    would move, and when a dat that the tiles take for zero may not be.
    """

    def __init__(
        self,
        steps: Sequence[Loop | Reset],
        *,
        tiles: Tiles = 0,
        transient: Sequence[Dat] = (),
        steps_at_once: int = 1,
        name: str = "tiled",
    ) -> None:
        if not isinstance(steps_at_once, int | np.integer) or steps_at_once < 1:
            raise PlanError(f"{name}: steps_at_once={steps_at_once!r}: a call runs the steps once or more")
        _check_tiles(name, tiles)
        Chain(steps, transient=transient, fuse=False, name=name)  # checks the steps
        self.name, self.steps, self.steps_at_once = name, tuple(steps), int(steps_at_once)
        every = [*steps] * self.steps_at_once
        self.context: Runtime = every[0].context
        self.transient = tuple(transient)
        checked = "each loop is checked before it runs" if self.context.checker is not None else ""
        self.reason = checked or why_not_tiled(every, self.context.device)
        """Why it does not run in tiles; empty if it does."""
        self.chain = Chain(every, transient=transient, fuse=bool(self.reason), name=name)
        """The same without tiles."""
        self._tiles = tiles
        self._form: TiledForm | None = None if self.reason else TiledForm(every, transient)
        self._run: TiledRun | None = None
        self._how = ""
        self._zero: list[int] = []

    # -------------------------------------------------------------------------------- execution
    def __call__(self) -> None:
        """Run the steps, as often as one call does."""
        observer = self.context.observer
        if observer is not None and observer.chain(self.chain):
            return
        form = self._form
        run = self._run if form is None or self._run is not None else self.build()
        if form is None or run is None or not self._ready(form, run):
            self.context.observer = None
            try:
                self.chain()
            finally:
                self.context.observer = observer
        else:
            run.run()
            for data in form.written:
                data.version += 1
        if form is not None:
            self._zero = [d.version for d in form.zero]

    def _ready(self, form: TiledForm, run: TiledRun) -> bool:
        """Whether buffers may move, and what is taken for zero is."""
        if any(d.viewed and d.watched for d in run.moved):
            return False
        return not form.zero or (
            self._zero == [d.version for d in form.zero] and not any(d.viewed and d.watched for d in form.zero)
        )

    def build(self) -> TiledRun:
        """Deal out the tiles, plan and compile; happens by itself at the first call.

        Raises
        ------
        PlanError
            If the chain does not run in tiles, or the given tiles do not fit.
        """
        form = self._form
        if form is None:
            raise PlanError(f"{self.name} does not run in tiles: {self.reason}")
        self.retile(self._tiles)
        assert self._run is not None
        return self._run

    def retile(self, tiles: Tiles) -> None:
        """Use other tiles from now on; parameters as of the class.

        Raises
        ------
        PlanError
            If the chain does not run in tiles, or the given tiles do not fit.
        """
        form = self._form
        if form is None:
            raise PlanError(f"{self.name} does not run in tiles: {self.reason}")
        _check_tiles(self.name, tiles)
        lead, threads = leading_set(form), max(1, self.context.threads)
        if isinstance(tiles, (int, np.integer)):
            known = 0 if tiles else self._recorded_tile()
            count = -(-lead.size // known) if known else int(tiles)
            _check_count(self.name, count, lead)
            owners, self._how = choose_owners(form, count, threads)
        else:
            given = np.asarray(tiles)
            count = int(given.max(initial=0)) + 1
            _check_count(self.name, count, lead)
            owners, self._how = owners_from(form, lead, given, count), "as given"
        self._tiles = tiles
        self._run = TiledRun(form, owners, form.number(lead), threads, self.name)

    @property
    def tuning_key(self) -> str:
        """Key in the tuning file: the kernels in order, device, size class of the leading set."""
        text = "tiles " + " ".join(loop.bound.lowered.digest for loop in self.loops)
        digest, lead = sha256(text.encode()).hexdigest(), self.lead
        assert lead is not None
        return tuning_key(digest, self.context.device.describe(), lead.size, self.context.threads)

    def _recorded_tile(self) -> int:
        """Return the recorded elements a tile, or 0."""
        found = TuningFile().get(self.tuning_key) if self.context.tuning else None
        return 0 if found is None else found.block

    # ----------------------------------------------------------------------------------- reports
    @property
    def lead(self) -> Set | None:
        """The set whose elements are dealt to the tiles first; None where it does not run in tiles."""
        return None if self._form is None else leading_set(self._form)

    @property
    def loops(self) -> list[Loop]:
        """The loops of one call, in order."""
        return self.chain.loops

    @property
    def tiled(self) -> bool:
        """Whether it runs in tiles, but for calls that cannot."""
        return self._form is not None

    @property
    def counters(self) -> TileCounters:
        """What the tiles cost and save.

        Raises
        ------
        PlanError
            If the chain does not run in tiles.
        """
        return (self._run or self.build()).counters

    def reports(self) -> list[LoopReport]:
        """Return the counters of the tiles, and of each loop that ran without them."""
        rows = [r for r in self.chain.reports() if r.calls]
        if self._run is None:
            return rows
        counters, loops = self._run.counters, self.loops
        text = "+".join(loop.name for loop in self.steps if isinstance(loop, Loop))
        name = text if self.steps_at_once == 1 else f"{self.steps_at_once} x ({text})"
        return [
            LoopReport(
                name=name,
                calls=self._run.calls,
                seconds=self._run.seconds,
                useful_bytes=counters.moved,
                strategy="tiles",
                colours=0,
                lanes=max(loop.lanes for loop in loops),
                vectorised=None,
                block=counters.elements,
                redundancy=counters.redundancy,
                layout=layouts(loop.bound for loop in loops),
            ),
            *rows,
        ]

    def reset_counters(self) -> None:
        """Set all counters to zero."""
        self.chain.reset_counters()
        if self._run is not None:
            self._run.sequencer.reset()

    def describe(self) -> str:
        """Return how the chain is cut into tiles, what that costs and saves, or why it is not."""
        if self.reason:
            return f"{self.name}: not in tiles: {self.reason}\n{self.chain.describe()}"
        run, form = self._run or self.build(), self._form
        assert form is not None
        c = run.counters
        lines = [
            f"{self.name}: {c.tiles} tiles of up to {c.elements} {leading_set(form).name}, {self._how}; "
            f"{c.scratch_bytes / 2**10:.0f} KiB a tile",
            f"  {self.steps_at_once} x {len(self.loops) // self.steps_at_once} loops in {len(form.passes)} passes; "
            f"elements run {c.redundancy:.3f} times",
            f"  a call moves {c.bytes_in / 1e6:.1f} MB in, {c.bytes_out / 1e6:.1f} MB out, "
            f"{c.bytes_tables / 1e6:.1f} MB of tables ({self.chain.bytes_unfused / 1e6:.1f} MB loop by loop)",
        ]
        if run.moved:
            lines.append(f"  with a second buffer: {', '.join(d.name for d in run.moved)}")
        if form.zero:
            lines.append(f"  zero between calls: {', '.join(d.name for d in form.zero)}")
        if held := [d.name for d in (*run.moved, *form.zero) if d.viewed and d.watched]:
            lines.append(f"  loop by loop for now: arrays outside share the memory of {', '.join(held)}")
        return "\n".join(lines)

    @property
    def source(self) -> str:
        """The generated source: of the tiles, or of the chain that runs instead."""
        return self.chain.source if self.reason else (self._run or self.build()).unit.text

    def __repr__(self) -> str:
        return f"TiledChain({self.name}, {self.steps_at_once} x {len(self.loops) // self.steps_at_once} loops)"


def _check_tiles(name: str, tiles: Tiles) -> None:
    """Raise `PlanError` unless tiles are a number, or an array of whole numbers."""
    if isinstance(tiles, (int, np.integer)):
        if tiles < 0:
            raise PlanError(f"{name}: tiles={tiles}: give a positive number, or 0 to have it chosen")
    elif not np.issubdtype(np.asarray(tiles).dtype, np.integer):
        kind = np.asarray(tiles).dtype
        raise PlanError(f"{name}: tiles: give a number, or the tile of each element as whole numbers, not {kind}")


def _check_count(name: str, count: int, lead: Set) -> None:
    """Raise `PlanError` for a number of tiles whose tables alone would fill the memory."""
    if count > max(lead.size, _MANY):
        raise PlanError(f"{name}: {count:,} tiles for the {lead.size:,} elements of {lead.name}: give fewer")
