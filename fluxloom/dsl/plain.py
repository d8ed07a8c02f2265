"""A chain loop by loop: compiled as one unit, replayed by one native call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluxloom.codegen.group import Group
from fluxloom.codegen.spec import Entry
from fluxloom.codegen.unit import Unit, generate
from fluxloom.device.base import Call, Device, Program
from fluxloom.dsl.bind import Numbering
from fluxloom.dsl.executable import ArgumentBlock
from fluxloom.dsl.loop import Loop, serial_below
from fluxloom.dsl.report import LoopReport, vectorised
from fluxloom.dsl.steps import Reset

__all__ = ["PlainReplay", "compile_groups", "may_contract"]


def compile_groups(
    groups: Sequence[Group], device: Device, name: str, contract: bool
) -> tuple[Unit, Program, list[Entry]]:
    """Generate one translation unit; groups that differ in name only become one function."""
    distinct: dict[Group, Group] = {}
    for group in groups:
        distinct.setdefault(replace(group, symbol=""), replace(group, symbol=f"{group.symbol}_{len(distinct)}"))
    unit = generate(list(distinct.values()), device.dialect, contract=contract)
    by_symbol = {e.symbol: e for e in unit.entries}
    compiled = device.compile(unit.text, unit.symbols, name, contract=contract)
    entries = [by_symbol[distinct[replace(g, symbol="")].symbol] for g in groups]
    return unit, compiled, entries


def may_contract(loops: Sequence[Loop]) -> bool:
    """Whether the compiler may contract ``a * b + c``: unless a loop asks for global determinism."""
    return not any(loop.schedule.deterministic == "global" for loop in loops)


class PlainReplay:
    """Every loop of a chain by itself, in order, in one native call."""

    def __init__(self, steps: Sequence[Loop | Reset], device: Device, name: str) -> None:
        self.steps = steps
        self.loops = [s for s in steps if isinstance(s, Loop)]
        self.context = steps[0].context
        numberings = {id(loop): Numbering() for loop in self.loops}
        groups = [loop.group(numberings[id(loop)]) for loop in self.loops]
        unit, self.compiled, entries = compile_groups(groups, device, name, may_contract(self.loops))
        self.text = unit.text
        self._blocks: list[ArgumentBlock] = []
        calls: list[Call] = []
        waiting = iter(zip(self.loops, groups, entries, strict=True))
        for step in steps:
            if isinstance(step, Reset):
                calls.append(device.reset_call(step.block()))
                continue
            loop, group, entry = next(waiting)
            constants = {f"0_{k}": v for k, v in loop.constants.items()}
            threads = 1 if serial_below(loop.over) else loop.schedule.threads
            block = ArgumentBlock(entry, group, numberings[id(loop)], {0: loop.plan}, loop.over, threads, constants)
            loop.attach(block, 0)
            self._blocks.append(block)
            calls.append(block.call(loop.name, self.compiled))
        self._sequencer = device.sequencer(calls)
        self._epoch = self.context.epoch

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
