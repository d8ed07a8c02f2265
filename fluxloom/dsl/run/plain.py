"""A chain loop by loop: compiled as one unit, replayed by one native call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.spec import Entry
from fluxloom.codegen.unit import Unit, generate
from fluxloom.device.base import Device, Program, Sequencer
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.plan.executable import ArgumentBlock
from fluxloom.dsl.ranks.halo_loops import fresh_after, sequence
from fluxloom.dsl.ranks.task import Reset, Task, loop_task, reset_task
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport, vectorised

__all__ = ["PlainReplay", "compile_groups", "may_contract"]


def compile_groups(
    groups: Sequence[Group], device: Device, name: str, contract: bool
) -> tuple[Unit, Program, list[Entry]]:
    """Generate one translation unit; groups that differ in name only become one function."""
    distinct: dict[Group, Group] = {}
    chosen = [
        distinct.setdefault(replace(group, symbol=""), replace(group, symbol=f"{group.symbol}_{len(distinct)}"))
        for group in groups
    ]
    unit = generate(list(distinct.values()), device.dialect, contract=contract)
    by_symbol = {e.symbol: e for e in unit.entries}
    compiled = device.compile(unit.text, unit.symbols, name, contract=contract)
    return unit, compiled, [by_symbol[group.symbol] for group in chosen]


def may_contract(loops: Sequence[Loop]) -> bool:
    """Whether the compiler may contract ``a * b + c``: unless a loop asks for global determinism."""
    return not any(loop.schedule.deterministic == "global" for loop in loops)


class PlainReplay:
    """Every loop of a chain by itself, in order, in one native call."""

    def __init__(
        self, steps: Sequence[Loop | Reset], device: Device, name: str, transient: Sequence[Dat] = ()
    ) -> None:
        self.steps = steps
        self.loops = [s for s in steps if isinstance(s, Loop)]
        self.context = steps[0].context
        numberings = {id(loop): Numbering() for loop in self.loops}
        groups = [loop.group(numberings[id(loop)]) for loop in self.loops]
        unit, self.compiled, entries = compile_groups(groups, device, name, may_contract(self.loops))
        self.text = unit.text
        self._blocks: list[ArgumentBlock] = []
        tasks: list[Task] = []
        waiting = iter(zip(self.loops, groups, entries, strict=True))
        for step in steps:
            if isinstance(step, Reset):
                tasks.append(reset_task(step))
                continue
            loop, group, entry = next(waiting)
            numbering = numberings[id(loop)]
            tasks.append(loop_task(loop, entry, group, numbering, self.compiled, self._blocks.append))
        self.tasks = tasks
        self._sequencer = sequence(self.context, [], tasks, transient)
        self._epoch = self.context.epoch

    @property
    def sequencers(self) -> list[Sequencer]:
        """What runs the steps."""
        return [self._sequencer]

    @property
    def fresh(self) -> list[Dat]:
        """Dats that the steps change, whose halo is current after a run."""
        return fresh_after(self._sequencer)

    def run(self) -> None:
        """Run every step once."""
        if self._epoch != self.context.epoch:
            for block in self._blocks:
                block.refresh()
            self._sequencer.refresh()
            self._epoch = self.context.epoch
        for block in self._blocks:
            if block.stale:
                block.send()
        self._sequencer()

    def reports(self) -> list[LoopReport]:
        """Return one row a distinct loop."""
        self._sequencer.settle()
        rows: dict[str, LoopReport] = {}
        for k, step in enumerate(self.steps):
            if isinstance(step, Reset):
                continue
            calls, seconds = int(self._sequencer.counts[k]), float(self._sequencer.seconds[k])
            known = rows.get(step.name)
            if known is None:
                vector = vectorised(self.text, self.compiled.vectorised, step.bound, step.lanes)
                row = replace(step.report(), calls=calls, seconds=seconds, vectorised=vector)
                plan = step.plan
                rows[step.name] = replace(row, colours=plan.colours, redundancy=plan.redundancy)
            else:
                rows[step.name] = replace(known, calls=known.calls + calls, seconds=known.seconds + seconds)
        return list(rows.values())

    def reset_counters(self) -> None:
        """Set all counters to zero."""
        self._sequencer.reset()
