"""The fused form of a chain: prepared once for each arrangement of buffers, replayed by one native call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.spec import Entry
from fluxloom.device.base import Buffer, Call, Device, Sequencer
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.plan.executable import ArgumentBlock
from fluxloom.dsl.plan.plan import Plan, Span, build_plan, limits_of
from fluxloom.dsl.ranks.halo_loops import fresh_after, sequence
from fluxloom.dsl.ranks.task import Reset, Task, halo_needs, loop_task, reset_task, sums_together, task_globals
from fluxloom.dsl.run.fusion import (
    Arrangement,
    Copy,
    FusedGroup,
    FusedGroups,
    Fusion,
    GroupBuffers,
    Placement,
    agree_on_scatters,
    fuse,
)
from fluxloom.dsl.run.loop import Loop, serial_below
from fluxloom.dsl.run.plain import compile_groups, may_contract
from fluxloom.dsl.run.report import LoopReport, layouts, useful_bytes, vectorised

__all__ = ["FusedReplay"]

@dataclass(frozen=True, eq=False)
class _Prepared:
    """One fused step from one arrangement of buffers."""

    sequencer: Sequencer
    blocks: list[ArgumentBlock]
    end: Arrangement
    moved: list[Dat]
    steady: bool
    """Whether the next step starts from the same arrangement."""
    fresh: list[Dat]
    """Dats whose halo is current after it."""


class FusedReplay:
    """The fused groups of a chain."""

    def __init__(
        self, steps: Sequence[Loop | Reset], dats: list[Dat], transient: tuple[Dat, ...], device: Device, name: str
    ) -> None:
        self.device, self.context, self.dats = device, steps[0].context, dats
        self.loops = [s for s in steps if isinstance(s, Loop)]
        self.resets = [s for s in steps if isinstance(s, Reset)]
        agree_on_scatters(self.loops)
        self.fusion: Fusion = fuse(self.loops, transient)
        self.placement = Placement(self.context, self.fusion, dats, transient)
        self._movable = self.placement.movable()
        self._builder = FusedGroups(device, self.fusion, self.placement, dats, transient)
        self._prepared: dict[tuple[int, ...], _Prepared] = {}
        self._now: Arrangement | None = None
        self._next: _Prepared | None = None
        self._epoch = -1
        self.fresh: list[Dat] = []
        """Dats whose halo is current after the last run."""
        if not self.fusion.worthwhile or self._reset_inside(steps):
            self.fusion = Fusion((), (), {})
            return
        self._numberings = [Numbering() for _ in self.fusion.groups]
        self._groups = [self._builder.group(g, n) for g, n in zip(self.fusion.groups, self._numberings, strict=True)]
        self._head_numbering = Numbering()
        self._head = [self._builder.head_group(self._head_numbering)] if self.fusion.head else []
        groups = [*self._groups, *self._head]
        unit, self.compiled, entries = compile_groups(groups, device, f"{name}_fused", may_contract(self.loops))
        self.text = unit.text
        self._entries = entries

    @staticmethod
    def _reset_inside(steps: Sequence[Loop | Reset]) -> bool:
        """Whether a global is reset after a loop has used it: then the order of steps is left alone."""
        used: list[object] = []
        for step in steps:
            if isinstance(step, Reset):
                if any(step.target is u for u in used):
                    return True
            else:
                used += [a.data for a in step.bound.arguments]
        return False

    # ------------------------------------------------------------------------------------- steps
    @property
    def ready(self) -> bool:
        """Whether the dats are where a fused step expects them."""
        if self._now is None:
            return False
        if self._epoch != self.context.epoch:  # somebody moved buffers; perhaps not those of this chain
            if any(d.buffer is not self._now.buffers[id(d)] for d in self.dats):
                return False
            self._epoch = self.context.epoch
        return True

    @property
    def held(self) -> bool:
        """Whether a buffer that fused steps may move is shared with an array outside (see `run`)."""
        return any(d.viewed and d.watched for d in self._movable)

    def watched(self) -> list[Loop | Global]:
        """Return loops and globals whose changes make values computed one step ahead wrong."""
        head = self.fusion.head
        return [*head, *(a.data for loop in head for a in loop.bound.arguments if isinstance(a.data, Global))]

    def leave(self) -> None:
        """Forget what was computed one step ahead: an unfused step has run."""
        self._now = None

    def enter(self) -> None:
        """Compute what the fused steps expect one step ahead, from where the dats are now."""
        begin = self.placement.start()
        stale = [d for d in unique(d for loop in self.fusion.head for d in halo_needs(loop.bound)) if not d.current]
        if stale:
            from fluxloom.dsl.ranks.exchange import Exchange

            Exchange(self.context, stale)()
        for group in self._head:
            block = self._block(self._entries[-1], group, self._head_numbering, list(self.fusion.head), False)
            for dat in self.placement.ahead_dats:
                block.point(self._head_numbering.dat(dat), begin.ahead[id(dat)], output=True)
            block.send()
            self.device.sequencer([block.call("ahead", self.compiled)])()
        self._now, self._epoch, self._next = begin, self.context.epoch, None

    def run(self) -> bool:
        """Run one fused step; returns False, having done nothing, if a buffer cannot be moved now."""
        if not self.ready:
            self.enter()
        assert self._now is not None
        prepared = self._next
        if prepared is None:
            prepared = self._next = self._lookup(self._now)
        if prepared.moved and any(d.viewed and d.watched for d in prepared.moved):
            return False
        for block in prepared.blocks:
            if block.stale:
                block.send()
        prepared.sequencer()
        self.fresh = prepared.fresh
        if not prepared.steady:
            self._now, self._next = prepared.end, None
        if prepared.moved:
            before = [d.buffer for d in self.dats]
            for dat in prepared.moved:
                dat.buffer = prepared.end.buffers[id(dat)]
            self.placement.moved(before, [d.buffer for d in self.dats])
            self.context.epoch += 1
            self._epoch = self.context.epoch
        return True

    def _lookup(self, begin: Arrangement) -> _Prepared:
        """Return the prepared step that starts from an arrangement of buffers."""
        key = self.placement.key(begin)
        if key not in self._prepared:
            prepared = self._prepare(begin)
            key = self.placement.key(begin)  # preparing may have added a buffer
            self._prepared[key] = prepared
        return self._prepared[key]

    def _prepare(self, begin: Arrangement) -> _Prepared:
        placed, end = self.placement.step(begin)
        blocks: list[ArgumentBlock] = []
        tasks = [reset_task(reset) for reset in self.resets]
        tasks += [self._task(k, buffers, blocks) for k, buffers in enumerate(placed)]
        moved = [d for d in self.dats if end.buffers[id(d)] is not begin.buffers[id(d)]]
        sequencer = sequence(self.context, [], tasks)
        return _Prepared(sequencer, blocks, end, moved, end.key == begin.key, fresh_after(sequencer))

    def _task(self, position: int, buffers: GroupBuffers, blocks: list[ArgumentBlock]) -> Task:
        """Return one group as a task, with the dats where it finds them."""
        fused, group = self.fusion.groups[position], self._groups[position]
        numbering, entry = self._numberings[position], self._entries[position]

        def keep(block: ArgumentBlock) -> None:
            self._point(block, numbering, buffers)
            blocks.append(block)

        if fused.alone:
            task = loop_task(fused.loops[0], entry, group, numbering, self.compiled, keep)
            return replace(task, buffers=buffers.inputs, copies=self._copies(position))

        partials: dict[str, Buffer] = {}
        together = sums_together(group, self.device)

        def make(span: Span, _counts: bool) -> Call:
            block = self._block(entry, group, numbering, fused.loops, True, span, partials if together else None)
            keep(block)
            return block.call(fused.name, self.compiled)

        reads, reduces = task_globals(fused.loops)
        needs = [d for d in fused.neighbours() if d.set.shared]
        limits = limits_of(fused.over, False, group.tile)
        return Task(fused.name, limits, True, make, unique(needs), fused.written(),
                    reads, reduces, self._copies(position), buffers.inputs, apart=True, together=together)  # fmt: skip

    def _copies(self, position: int) -> list[tuple[Dat, Dat]]:
        """Return the renamings between a group and the one before it: target and source."""
        out: list[tuple[Dat, Dat]] = []
        for item in self.fusion.items:
            if item is self.fusion.groups[position]:
                break
            out = [*out, (item.target, item.source)] if isinstance(item, Copy) else []
        return out

    def _block(
        self, entry: Entry, group: Group, numbering: Numbering, loops: list[Loop], attach: bool,
        span: Span | None = None, partials: dict[str, Buffer] | None = None,
    ) -> ArgumentBlock:  # fmt: skip
        constants = {f"{k}_{name}": v for k, loop in enumerate(loops) for name, v in loop.constants.items()}
        plans = self._item_plans(group, loops) if self.device.items else {
            k: build_plan(loop.bound, loop.races, "gather" if group.scatter else loop.strategy, group.tile, span)
            if loop.races.racing and group.strategy == "gather"
            else loop.plan
            for k, loop in enumerate(loops)
        }
        over = loops[-1].over
        threads = 1 if serial_below(over) else loops[0].schedule.threads
        block = ArgumentBlock(entry, group, numbering, plans, over, threads, constants, span, partials)
        if attach:
            for k, loop in enumerate(loops):
                loop.attach(block, k)
        return block

    def _item_plans(self, group: Group, loops: list[Loop]) -> dict[int, Plan]:
        """Return the plan of each loop: of a gather, the one that merges its scattering loops."""
        if not group.scatter:
            return {k: loop.plan for k, loop in enumerate(loops)}
        from fluxloom.dsl.plan.work import fused_plan

        return dict.fromkeys(range(len(loops)), fused_plan(loops[: len(group.scatter)]))

    def _point(self, block: ArgumentBlock, numbering: Numbering, buffers: GroupBuffers) -> None:
        for number, data in enumerate(numbering.dats):
            if isinstance(data, Dat):
                block.point(number, buffers.inputs[id(data)])
                if id(data) in buffers.outputs:
                    block.point(number, buffers.outputs[id(data)], output=True)

    # ----------------------------------------------------------------------------------- reports
    @property
    def sequencers(self) -> list[Sequencer]:
        """What runs a step, for each arrangement of buffers that was met."""
        return [prepared.sequencer for prepared in self._prepared.values()]

    def _group_bytes(self, position: int, fused: FusedGroup, buffers: GroupBuffers) -> int:
        hidden = {id(d) for d in self._builder.elided(fused)}
        seen: dict[int, int] = {}
        for dat in self.dats:
            key = id(buffers.inputs[id(dat)])
            if key in seen and id(dat) not in buffers.outputs:
                hidden.add(id(dat))  # another name of a buffer that is counted already
            seen.setdefault(key, id(dat))
        return useful_bytes(tuple(loop.bound for loop in fused.loops), elided=frozenset(hidden))

    @property
    def useful_bytes(self) -> int:
        """Useful bytes of one fused step."""
        placed, _ = self.placement.step(self._now if self._now is not None else self.placement.start())
        return sum(self._group_bytes(k, g, b) for k, (g, b) in enumerate(zip(self.fusion.groups, placed, strict=True)))

    def reports(self) -> list[LoopReport]:
        """Return one row a fused group."""
        for prepared in self._prepared.values():
            prepared.sequencer.settle()
        rows = []
        offset = len(self.resets)
        placed, _ = self.placement.step(self._now if self._now is not None else self.placement.start())
        for k, (fused, group, buffers) in enumerate(zip(self.fusion.groups, self._groups, placed, strict=True)):
            calls = sum(int(p.sequencer.counts[offset + k]) for p in self._prepared.values())
            seconds = sum(float(p.sequencer.seconds[offset + k]) for p in self._prepared.values())
            rows.append(
                LoopReport(
                    name=fused.name + self._stage(k),
                    calls=calls,
                    seconds=seconds,
                    useful_bytes=self._group_bytes(k, fused, buffers),
                    strategy="fused gather" if group.scatter else "fused" if len(fused.loops) > 1 else group.strategy,
                    colours=0,
                    lanes=group.lanes,
                    vectorised=self._vectorised(fused, group),
                    block=group.work.block if self.device.items else group.tile,
                    redundancy=self._redundancy(fused, group),
                    layout=layouts(loop.bound for loop in fused.loops),
                )
            )
        return rows

    def _stage(self, position: int) -> str:
        """Return `` [k]`` for the k-th of several groups of the same loops."""
        groups = self.fusion.groups
        same = [k for k, g in enumerate(groups) if g.name == groups[position].name]
        return f" [{same.index(position) + 1}]" if len(same) > 1 else ""

    def _vectorised(self, fused: FusedGroup, group: Group) -> bool | None:
        lanes = {id(loop): group.lanes for loop in fused.scatter}
        wide = (group.direct_lanes or group.lanes) if group.scatter else group.lanes
        lanes |= {id(loop): wide for loop in fused.direct}
        found = [vectorised(self.text, self.compiled.vectorised, loop.bound, lanes[id(loop)]) for loop in fused.loops]
        return None if None in found else all(found)

    def _redundancy(self, fused: FusedGroup, group: Group) -> float:
        if self.device.items:
            from fluxloom.dsl.plan.work import fused_plan

            return fused_plan(fused.scatter).redundancy if fused.scatter else 1.0
        plans = [(build_plan(s.bound, s.races, "gather", group.tile), s.over.size) for s in fused.scatter]
        total = sum(n for _, n in plans)
        return sum(p.redundancy * n for p, n in plans) / total if total else 1.0

    def describe(self) -> list[str]:
        """Return one line a group."""
        lines = []
        for fused in self.fusion.groups:
            renamed = [d.name for d in self.dats if id(d) in self.placement.renamed(fused)]
            elided = [d.name for d in self._builder.elided(fused)]
            text = f"  {fused.name}"
            text += f"; renamed: {', '.join(renamed)}" if renamed else ""
            text += f"; not stored: {', '.join(elided)}" if elided else ""
            lines.append(text)
        return lines

    def reset_counters(self) -> None:
        """Set all counters to zero."""
        for prepared in self._prepared.values():
            prepared.sequencer.reset()
