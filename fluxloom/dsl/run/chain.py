"""A chain: a fixed sequence of loops, analysed once, replayed with one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.core.activity import activity
from fluxloom.core.errors import LoopError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.links import loop_act, reset_act
from fluxloom.dsl.declare.runtime import Runtime, among, unique
from fluxloom.dsl.ranks.halo_loops import DistributedSequence, ExchangeTime, may_be_stale
from fluxloom.dsl.ranks.task import Reset, Traffic
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.plain import PlainReplay
from fluxloom.dsl.run.report import LoopReport

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.exchange import Exchange
    from fluxloom.dsl.run.replay import FusedReplay

__all__ = ["Chain", "Reset"]


class Chain:
    """Loops that always run one after the other, as one call.

    Parameters
    ----------
    steps
        Loops and resets of globals, in order. A loop may occur several times.
    transient
        Dats whose values nobody reads after the chain has run. Their stores may be left out and
        their memory reused; after a call their values are undefined.
    fuse
        Whether loops may run together in one pass where their data allow it (see
        `fluxloom.dsl.run.fusion`). The results are the same; with ``deterministic="global"`` to the last bit.
    name
        For messages and reports.

    Raises
    ------
    LoopError
        If a step is not a loop or a reset, or the loops are of different contexts.

    Notes
    -----
    The first call, and every call after the host has changed a dat of the chain or while an array outside
    shares the memory of one (a view, or what the dat was made of with ``copy=False``), runs the loops one by
    one; the next calls are fused. `describe` tells what was fused.
    """

    def __init__(
        self,
        steps: Sequence[Loop | Reset],
        *,
        transient: Sequence[Dat] = (),
        fuse: bool = True,
        name: str = "chain",
    ) -> None:
        if not isinstance(steps, Sequence) or not isinstance(transient, Sequence):
            raise LoopError(f"{name}: lists of loops and of transient dats are wanted, not {steps!r} and {transient!r}")
        if not steps:
            raise LoopError(f"{name}: a chain needs at least one loop")
        for step in steps:
            if not isinstance(step, (Loop, Reset)):
                raise LoopError(f"{name}: {step!r} is neither a loop nor a reset of a global")
        self.name = name
        self.steps = tuple(steps)
        self.loops: list[Loop] = [s for s in steps if isinstance(s, Loop)]
        self.context: Runtime = steps[0].context
        if any(s.context is not self.context for s in steps):
            raise LoopError(f"{name}: the loops belong to different contexts")
        self.transient = tuple(transient)
        self.dats = unique(a.data for loop in self.loops for a in loop.bound.arguments if isinstance(a.data, Dat))
        for dat in self.transient:
            if not isinstance(dat, Dat):
                raise LoopError(f"{name}: transient are dats, not {dat!r}")
            if not among(dat, self.dats):
                raise LoopError(f"{name}: transient dat {dat.name!r} is not used by any loop of the chain")
        self._written = unique(data for loop in self.loops for data in loop.written)
        self._fuse = fuse
        self._traffic: Traffic | None = None
        self._plain: PlainReplay | None = None
        self._fused: FusedReplay | None = None
        self._constant: list[Dat] | None = None
        self._exchanges: dict[tuple[int, ...], Exchange] = {}
        self._versions: list[int] = []
        self._watched: list[Loop | Global] = []
        self._watched_versions: list[int] = []
        self._act = b""

    # -------------------------------------------------------------------------------- execution
    def __call__(self) -> None:
        """Run every step once."""
        observer = self.context.observer
        if observer is not None and observer.chain(self):
            return
        plain = self._plain
        if self.context.checker is not None or (plain is None and not self.context.device.native):
            for step in self.steps:
                step()
            return
        if plain is None:
            plain = self.build()
        traffic, fused, distributed = self._traffic, self._fused, self.context.distributed
        if distributed:
            self.context.comm.note(self._act or self._told())
        if traffic is not None:
            traffic.before()
        alone = self._agree(plain) if distributed else self._touched()
        if fused is None or not self._versions or alone or not fused.run():
            plain.run()
            if fused is not None:
                fused.leave()
            fresh = plain.fresh if distributed else ()
        else:
            fresh = fused.fresh
        if traffic is not None:
            traffic.after()
        for data in self._written:
            data.version += 1
        for dat in fresh:
            dat.halo_version = dat.version
        self._note_versions()

    def _note_versions(self) -> None:
        self._versions = [d.version for d in self.dats]
        self._watched_versions = [w.version for w in self._watched]

    def _told(self) -> bytes:
        """Tell the other ranks of each loop, and return what tells of them all."""
        for step in self.steps:
            act = loop_act(step.bound) if isinstance(step, Loop) else reset_act(step.target, step.value)
            self.context.comm.note(act)
        names = ", ".join(loop.name for loop in self.loops)
        self._act = f"chain {self.name} ({names})".encode()
        return self._act

    def build(self) -> PlainReplay:
        """Plan, generate and compile; happens by itself at the first call."""
        device = self.context.device
        if not device.shared:
            self._traffic = Traffic(self.loops, [s.target for s in self.steps if isinstance(s, Reset)])
        with activity("preparing loops", f"{len(self.loops)} of {self.name}"):
            self._plain = PlainReplay(self.steps, device, self.name, self.transient)
            if self._fuse:
                from fluxloom.dsl.run.replay import FusedReplay

                fused = FusedReplay(self.steps, self.dats, self.transient, device, self.name)
                if fused.fusion.worthwhile:
                    self._fused, self._watched = fused, fused.watched()
        return self._plain

    def _agree(self, plain: PlainReplay) -> bool:
        """Bring the halos of what the chain does not change up to date; return whether its loops run one by one.

        Both decide on messages, so all ranks say what they know.
        """
        if self._constant is None:
            needs = unique(d for task in plain.tasks for d in task.needs)
            # what lasts for this call only is brought by the loops one by one, while they run
            within = self._written if self._fused is not None else [*self._written, *self.transient]
            self._constant = [d for d in needs if not among(d, within)]
        fused, constant = self._fused, self._constant
        if fused is None and not constant:
            return True
        here = [fused is None or self._touched() or fused.held, *map(may_be_stale, constant)]
        found = self.context.comm.reduce(np.array(here, dtype=np.int64), "max")
        stale = [d for d, yes in zip(constant, found[1:], strict=True) if yes]
        if stale:
            key = tuple(id(d) for d in stale)
            if key not in self._exchanges:
                from fluxloom.dsl.ranks.exchange import Exchange

                self._exchanges[key] = Exchange(self.context, stale)
            self._exchanges[key]()
        return bool(found[0])

    def _touched(self) -> bool:
        """Whether somebody else changed a dat since the last call, or could through a live view."""
        for dat, version in zip(self.dats, self._versions):  # noqa: B905 - on the hot path
            if dat.version != version or (dat.viewed and dat.watched):
                return True
        return any(w.version != v for w, v in zip(self._watched, self._watched_versions))  # noqa: B905

    @property
    def going(self) -> bool:
        """Whether nobody has changed a dat since the last call, so that the next one is as those before."""
        return bool(self._versions) and not self._touched()

    def go_on(self) -> None:
        """Take dats as the chain has left them, though they were written: a run goes on from a checkpoint."""
        if self._plain is None and self.context.device.native:
            self.build()
        self._note_versions()

    # ----------------------------------------------------------------------------------- reports
    def reports(self) -> list[LoopReport]:
        """Return the counters of each fused group, and of each loop that ran by itself in this chain."""
        if self._plain is None or self.context.checker is not None:
            return [loop.report() for loop in unique(self.loops)]
        rows = self._fused.reports() if self._fused is not None else []
        return rows + [r for r in self._plain.reports() if r.calls or not rows]

    @property
    def sequences(self) -> list[DistributedSequence]:
        """On several ranks, what has run: the loops one by one, then each fused form; none on a rank alone."""
        found = [s for replay in (self._plain, self._fused) if replay is not None for s in replay.sequencers]
        return [s for s in found if isinstance(s, DistributedSequence)]

    def exchanges(self) -> list[ExchangeTime]:
        """Return what the exchanges took on this rank, those of the same dats together."""
        rows: dict[tuple[str, str, int], ExchangeTime] = {}
        for row in (row for s in self.sequences for row in s.exchange_times() if row.calls):
            key = (row.name, row.transport, row.nbytes)
            if (known := rows.get(key)) is not None:
                row = replace(row, calls=known.calls + row.calls, seconds=known.seconds + row.seconds)
            rows[key] = row
        return list(rows.values())

    def reset_counters(self) -> None:
        """Set all counters of the chain to zero."""
        for replay in (self._plain, self._fused):
            if replay is not None:
                replay.reset_counters()

    @property
    def fused(self) -> bool:
        """Whether anything in the chain runs fused (known after `build`)."""
        return self._fused is not None

    @property
    def bytes_unfused(self) -> int:
        """Useful bytes of one call when every loop runs by itself."""
        return sum(loop.useful_bytes for loop in self.loops)

    @property
    def bytes_fused(self) -> int:
        """Useful bytes of one call in the fused form."""
        if self._plain is None and self.context.device.native:
            self.build()
        return self._fused.useful_bytes if self._fused is not None else self.bytes_unfused

    def describe(self) -> str:
        """Return what runs together, and how many bytes that saves."""
        if self._plain is None and self.context.device.native:
            self.build()
        if self._fused is None:
            return f"{self.name}: {len(self.loops)} loops, none fused"
        before, after = self.bytes_unfused / 1e6, self.bytes_fused / 1e6
        saved = 100 * (1 - after / before) if before else 0.0
        lines = [f"{self.name}: {before:.1f} MB a call unfused, {after:.1f} MB fused ({saved:.0f} % less)"]
        lines += self._fused.describe()
        if held := [d.name for d in self.dats if d.viewed and d.watched]:
            lines.append(f"  loop by loop for now: arrays outside the chain share the memory of {', '.join(held)}")
        return "\n".join(lines)

    @property
    def source(self) -> str:
        """The generated source: the loops one by one, then the fused groups."""
        if self._plain is None:
            self.build()
        assert self._plain is not None
        parts = [self._plain.text]
        if self._fused is not None:
            parts.append(self._fused.text)
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"Chain({self.name}, {len(self.loops)} loops)"
