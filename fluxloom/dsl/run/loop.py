"""The loop: a kernel over a set, checked, planned and compiled once, then cheap to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.spec import Entry, symbol_name
from fluxloom.codegen.packs.wrapper import rows_in_pack
from fluxloom.codegen.unit import Unit, generate
from fluxloom.core.access import Access
from fluxloom.core.activity import activity
from fluxloom.core.errors import LoopError, did_you_mean
from fluxloom.device.base import Buffer, Program, Sequencer
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.links import loop_act
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.plan.bind import Bound, Numbering, bind, specialise
from fluxloom.dsl.plan.cost import choose, redundancy_is_low
from fluxloom.dsl.plan.executable import ArgumentBlock
from fluxloom.dsl.plan.lanes import require_lanes
from fluxloom.dsl.plan.pairs import require_pairs
from fluxloom.dsl.plan.plan import Plan, Span, build_plan
from fluxloom.dsl.plan.races import RaceInfo, analyse
from fluxloom.dsl.plan.sites import require_sites
from fluxloom.dsl.plan.split import components, require_split
from fluxloom.dsl.plan.stage import require_stage
from fluxloom.dsl.ranks.halo_loops import OneTask
from fluxloom.dsl.ranks.task import Traffic, can_begin_anywhere, loop_task
from fluxloom.dsl.run.report import LoopReport, layouts, useful_bytes, vectorised
from fluxloom.kernel.frontend import Kernel
from fluxloom.kernel.record_fields import RecordProblem, difference, run_time_fields

__all__ = ["Loop", "par_loop", "serial_below"]


class Loop:
    """A kernel applied to every element of a set.

    Parameters
    ----------
    kernel
        A function decorated with `kernel`.
    over
        The driving set, a subset of it, or a grid.
    *arguments
        One for each data parameter of the kernel, in order: a dat (direct), a dat through a map
        ``x[e2n]``, through one leg ``x[e2n[0]]``, or a global. None for what the kernel annotates ``Read | None``.
    schedule
        How to run; open choices come from the context, the tuning file and the cost model.
    name
        Name in messages and reports; the kernel's by default. Where the kernel has a constant called ``name`` or
        ``schedule``, these are values of the constant.
    **constants
        Values of the kernel's keyword-only parameters; of strategies (``Const[Func]``) ``float`` fields are run-time
        constants, called ``flux_entropy_fix``.

    Raises
    ------
    LoopError
        If an argument does not fit the kernel or the set, or a write would race.
    PlanError
        If the schedule asks for a strategy that is not correct for this loop.
    """

    def __init__(
        self,
        kernel: Kernel,
        over: Set,
        /,
        *arguments: Argument | Dat | Global | None,
        schedule: Schedule | None = None,
        name: str = "",
        **constants: Any,
    ) -> None:
        own = {c.name for c in kernel.constants} if isinstance(kernel, Kernel) else frozenset[str]()
        if "name" in own and name != "":
            constants, name = {**constants, "name": name}, ""
        if "schedule" in own and schedule is not None:
            constants, schedule = {**constants, "schedule": schedule}, None
        self.bound: Bound = bind(kernel, over, arguments, constants, name)
        self.name = self.bound.name
        self.over = over
        self.context = over.context
        if self.context.distributed and not self.context.device.native:
            raise LoopError(
                f"{self.name}: the device {self.context.device.name!r} runs loops on one rank only; on several ranks "
                "take cpu, opencl or cuda"
            )
        self.races: RaceInfo = analyse(self.bound)
        if self.context.device.items:
            from fluxloom.dsl.plan.work import restrict

            self.races = restrict(self.bound, self.races, self.context.device)
        self.constants = dict(self.bound.constants)
        self._wanted = self._checked(schedule if schedule is not None else Schedule.auto())
        self.written: list[Dat | Global] = _written(self.bound)
        self._native: _Native | None = None
        self._blocks: list[tuple[ArgumentBlock, int]] = []
        self._calls = 0
        self.agreed: bool | None = None
        """Whether chains may drive this loop from its targets, once all ranks have said so."""
        self.version = 0
        """Counts changes of run-time constants."""

    # --------------------------------------------------------------------------------- schedule
    @cached_property
    def tuning_key(self) -> str:
        """Key of this loop in the tuning file: kernel, device, size class."""
        device = self.context.device.describe()
        from fluxloom.dsl.plan.tuning import tuning_key

        return tuning_key(self.bound.lowered.digest, device, self.over.size, self.context.threads)

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule in force, every choice made."""
        wanted = self._wanted.merged(self.context.schedule)
        if self.context.tuning and not self._wanted.strategy and not wanted.deterministic:
            from fluxloom.dsl.plan.tuning import TuningFile

            tuned = TuningFile().get(self.tuning_key)
            if tuned is not None and (not self.races.racing or tuned.strategy in self.races.allowed):
                wanted = wanted.merged(tuned)
        if not self.races.racing or wanted.strategy not in self.races.allowed:
            # It may be a context-wide wish that this loop cannot follow; the report shows what it runs with.
            wanted = replace(wanted, strategy=None)
        if self.context.device.items:
            from fluxloom.dsl.plan.work import choose_work

            chosen = choose_work(self.bound, self.races, wanted)
            return chosen if self.races.racing else replace(chosen, strategy=None)
        threads = wanted.threads or self.context.threads
        return choose(self.bound, self.races, wanted, threads) if self.races.racing else _direct(wanted, threads, self)

    @property
    def strategy(self) -> str:
        """The race strategy, or ``"direct"`` when nothing races."""
        return (self.schedule.strategy or "direct") if self.races.racing else "direct"

    @property
    def fusable_as_gather(self) -> bool:
        """Whether a chain may drive this loop from its targets: nothing else was asked for, and it pays."""
        wanted = self._wanted.merged(self.context.schedule)
        if wanted.strategy not in (None, "gather") or "gather" not in self.races.allowed:
            return False
        if self.context.device.items:
            from fluxloom.dsl.plan.work import gather_pays

            return wanted.strategy == "gather" or gather_pays(self.bound, self.races)
        return redundancy_is_low(self.bound, self.races, self.schedule.block if self.strategy == "gather" else 0)

    def _checked(self, schedule: object) -> Schedule:
        if not isinstance(schedule, Schedule):
            raise LoopError(f"{self.name}: schedule: a Schedule(...) is wanted, not {schedule!r}")
        if schedule.strategy and self.races.racing:
            self.races.require(self.name, schedule.strategy)
        require_lanes(self.bound, self.races, schedule, self.context.schedule)
        require_pairs(self.bound, schedule)
        require_sites(self.bound, schedule.sites)
        require_stage(self.bound, schedule)
        require_split(self.bound, self.races, schedule)
        return schedule

    def reschedule(self, schedule: Schedule) -> None:
        """Run with another schedule from now on."""
        self._wanted = self._checked(schedule)
        self.__dict__.pop("schedule", None)
        self.__dict__.pop("plan", None)
        self._native = None

    # -------------------------------------------------------------------------------- execution
    def __call__(self, /, **constants: Any) -> None:
        """Run the loop once; run-time constants may be given new values."""
        if constants:
            self._update(constants)
        observer = self.context.observer
        if observer is not None and observer.loop(self):
            return
        if self.context.checker is not None:
            self.context.checker(self)
        native = self._native
        if native is None:
            if not self.context.device.native:
                self._calls += 1
                from fluxloom.dsl.run.interpret import run_reference

                run_reference(self.bound, self.constants)
                return
            native = self.build()
        elif native.epoch != self.context.epoch:
            native.refresh(self.context.epoch)
        native.run()
        for data in self.written:
            data.version += 1

    def _update(self, constants: Mapping[str, Any]) -> None:
        strategies = self.bound.kernel.signature.strategies
        given: dict[str, Any] = {}
        for key, value in constants.items():
            if key in strategies:
                given |= self._fields(key, value)
            elif key in self._known:
                given[key] = value
            elif key in self.constants:
                whole = next(name for name in strategies if key.startswith(f"{name}_"))
                raise LoopError(f"{self.name}: {key!r} is a field of {whole!r}: give that whole, {whole}=...")
            else:
                raise LoopError(f"{self.name}: {key!r} is not a run-time constant{did_you_mean(key, self._known)} "
                                f"(they are: {self._known})")  # fmt: skip
        self.follow(given)

    @cached_property
    def _known(self) -> list[str]:
        """Names of the constants that may be given new values."""
        kernel = self.bound.kernel
        return [c.name for c in kernel.constants if not c.baked or c.name in kernel.signature.strategies]

    def _fields(self, name: str, new: Any) -> dict[str, float]:
        """Return the run-time constants of a strategy that takes the place of another one with the same code."""
        try:
            self.bound.kernel.signature.strategies[name].check(name, new)
        except RecordProblem as problem:
            hint = f"; {problem.hint}" if problem.hint else ""
            raise LoopError(f"{self.name}: {problem.message}{hint}") from None
        found = difference(name, self.bound.constants_baked[name], new)
        if found:
            raise LoopError(
                f"{self.name}: {found}: that is part of the code; only fields annotated float change at run time, so "
                "build another loop"
            )
        return dict(run_time_fields(name, new))

    def follow(self, constants: Mapping[str, Any]) -> None:
        """Give run-time constants new values by their names in ``constants``, those of another loop or time."""
        for key, value in constants.items():
            if type(value) is not float or type(self.constants[key]) is not float:
                value = self.bound.kernel.number(key, value)
            self.constants[key] = value
            self.version += 1
            if self.context.distributed:
                self.context.comm.note(f"{self.name}: {key}={value!r}".encode())
            for block, number in self._blocks:
                block.set_constant(f"{number}_{key}", value)

    def set(self, /, **constants: Any) -> None:
        """Give run-time constants new values, here and in every chain that holds this loop.

        Raises
        ------
        LoopError
            If the kernel has no such run-time constant, or a strategy differs in more than ``float`` fields.
        """
        self._update(constants)

    def attach(self, block: ArgumentBlock, number: int) -> None:
        """Keep the constants of another argument block in step with this loop's."""
        self._blocks.append((block, number))

    def group(self, numbering: Numbering, number: int = 0) -> Group:
        """Return this loop as a group of its own for code generation."""
        schedule, strategy, device = self.schedule, self.strategy, self.context.device
        member = Member(specialise(self.bound, numbering), number)
        racing, symbol = strategy != "direct", symbol_name("fl_loop_", self.name)
        parts = ((member,), ()) if racing else ((), (member,))
        group = Group(symbol, *parts, strategy, tile=0, listed=member.spec.listed)
        if device.items:
            from fluxloom.dsl.plan.work import work_shape

            pieces = components(self.bound) if schedule.split else 1
            group = replace(group, work=work_shape(schedule, [self.plan], device, pieces=pieces))
        else:
            stream = _streamed(member, numbering) if schedule.stream and not racing else frozenset[int]()
            tile = schedule.block if strategy == "gather" else 0
            group = replace(group, lanes=schedule.lanes, tile=tile, stream=stream)
        return replace(group, ranged=can_begin_anywhere(group, self.over))

    def argument_block(
        self, entry: Entry, group: Group, numbering: Numbering, span: Span | None = None,
        partials: dict[str, Buffer] | None = None,
    ) -> ArgumentBlock:  # fmt: skip
        """Return what one call of the generated function is given; it follows changes of constants."""
        constants = {f"0_{k}": v for k, v in self.constants.items()}
        threads = 1 if serial_below(self.over) else self.schedule.threads
        plan = self.plan if span is None else self.plan_of(span)
        block = ArgumentBlock(entry, group, numbering, {0: plan}, self.over, threads, constants, span, partials)
        self.attach(block, 0)
        return block

    @cached_property
    def plan(self) -> Plan:
        """The tables of the race strategy."""
        return self.plan_of(None)

    def plan_of(self, span: Span | None) -> Plan:
        """Return the tables of the race strategy for some of the elements, of a gather for some targets."""
        if self.context.device.items:
            from fluxloom.dsl.plan.work import work_plan

            return work_plan(self.bound, self.races, self.strategy, self.schedule, span)
        return build_plan(self.bound, self.races, self.strategy, self.schedule.block, span)

    def build(self) -> _Native:
        """Plan, generate, compile and load; happens by itself at the first call."""
        self.__dict__.pop("plan", None)
        numbering = Numbering()
        device = self.context.device
        contract = self.schedule.deterministic != "global"
        with activity("preparing a loop", self.name):
            group = self.group(numbering)
            unit = generate([group], device.dialect, contract=contract)
            native = device.compile(unit.text, unit.symbols, self.name, contract=contract)
            self._native = _Native(self, unit, native, group, numbering)
        return self._native

    @property
    def lanes(self) -> int:
        """Elements a SIMD pack, or items that share a row; packs of rows need entries that are stored by columns."""
        if self.context.device.items:
            return self.schedule.lanes
        if not self.context.device.native:
            return 1
        ragged = any(a.map is not None and a.map.legs < 0 for a in self.bound.arguments)
        return rows_in_pack(self.group(Numbering())) if ragged else self.schedule.lanes

    @property
    def source(self) -> str:
        """The generated source of this loop."""
        return generate([self.group(Numbering())], self.context.device.dialect or "c").text

    # ------------------------------------------------------------------------------------ report
    @property
    def useful_bytes(self) -> int:
        """Bytes one call has to move at least (see `useful_bytes`), over the members that a subset has now."""
        return useful_bytes((self.bound,))

    def report(self) -> LoopReport:
        """Return the counters of this loop."""
        native = self._native
        if native is not None:
            native.sequencer.settle()
        device_native = self.context.device.native
        lanes = self.lanes
        vector = None if native is None else vectorised(native.unit.text, native.compiled.vectorised, self.bound, lanes)
        plan = self.plan if native is not None else None
        return LoopReport(
            name=self.name,
            calls=int(native.sequencer.counts[0]) if native else self._calls,
            seconds=float(native.sequencer.seconds[0]) if native else 0.0,
            useful_bytes=self.useful_bytes,
            strategy=self.strategy if device_native else "reference",
            colours=plan.colours if plan else 0,
            lanes=lanes,
            vectorised=vector,
            block=self.schedule.block if device_native and (self.races.racing or self.context.device.items) else 0,
            redundancy=plan.redundancy if plan else 1.0,
            layout=layouts([self.bound]),
        )

    def reset_counters(self) -> None:
        """Set calls and seconds to zero."""
        self._calls = 0
        if self._native is not None:
            self._native.sequencer.reset()

    def __repr__(self) -> str:
        return f"Loop({self.name}, {self.over})"


def serial_below(over: Set) -> bool:
    """Return whether a set is so small that waking threads would cost more than they save."""
    return (over.most or over.size) < 4096


class _Native:
    """A compiled loop: source, argument blocks, and the call."""

    def __init__(self, loop: Loop, unit: Unit, compiled: Program, group: Group, numbering: Numbering) -> None:
        context = loop.context
        self.unit, self.compiled, self.epoch = unit, compiled, context.epoch
        self.blocks: list[ArgumentBlock] = []
        self._traffic = None if context.device.shared else Traffic([loop])
        if context.distributed:
            task = loop_task(loop, unit.entries[0], group, numbering, compiled, self.blocks.append)
            self.sequencer: Sequencer = OneTask(context, task, loop_act(loop.bound))
        else:
            self.blocks.append(loop.argument_block(unit.entries[0], group, numbering))
            self.sequencer = context.device.sequencer([self.blocks[0].call(loop.name, compiled)])
        self.run: Callable[[], object] = self.sequencer if self._traffic is None else self._between

    def _between(self) -> None:
        """Run with what the host has changed, and note what the device changes."""
        assert self._traffic is not None
        for block in self.blocks:
            if block.stale:
                block.send()
        self._traffic.before()
        self.sequencer()
        self._traffic.after()

    def refresh(self, epoch: int) -> None:
        for block in self.blocks:
            block.refresh()
        self.sequencer.refresh()
        self.epoch = epoch


def _direct(wanted: Schedule, threads: int, loop: Loop) -> Schedule:
    chosen = choose(loop.bound, loop.races, replace(wanted, strategy="serial"), threads)
    return replace(chosen, strategy=None, block=0)


def _streamed(member: Member, numbering: Numbering) -> frozenset[int]:
    """Dats that the kernel writes completely without reading, in memory of our own: candidates for streaming stores.

    Such a store needs rows that begin at multiples of their size, which arrays of somebody else need not have. Of a
    grid they are all that it changes: rows that stay where they are too are moved line by line.
    """
    grid = member.spec.grid is not None
    changed = (a for a in member.spec.args if a.access is Access.WRITE or (grid and a.access.writes))
    written = (a.dat for a in changed if a.kind == "direct" or (grid and a.kind == "stencil"))
    return frozenset(k for k in written if not numbering.dats[k].buffer.foreign)


def _written(bound: Bound) -> list[Dat | Global]:
    return unique(arg.data for arg in bound.arguments if arg.access.writes)


def par_loop(kernel: Kernel, over: Set, /, *arguments: Argument | Dat | Global | None, **constants: Any) -> None:
    """Build a loop, run it once and forget it: convenient for set-up, wasteful in a time step."""
    Loop(kernel, over, *arguments, **constants)()
