"""The candidates of a loop, ready to run and built once each; what they change is put back, the best one recorded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from fluxloom.codegen.unit import generate
from fluxloom.core.access import Access
from fluxloom.core.activity import activity
from fluxloom.core.errors import FluxloomError
from fluxloom.core.processors import available_processors
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.plan.tuning import TuningFile, graded_key
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.record_fields import strategy_identity
from fluxloom.perf.stopwatch import Run

__all__ = ["Runs", "depends_on_itself", "family", "map_identity", "record_winner", "shared_later"]


def record_winner(file: TuningFile | None, loop: Loop, schedule: Schedule, seconds: float) -> str:
    """Write the best schedule of a loop to a file; return its key.

    Schedules of a grade of determinism have a key of their own; other numbers of threads than the context's
    are not recorded.
    """
    grade = schedule.deterministic
    key = graded_key(loop.tuning_key, grade)
    if file is not None and schedule.threads == loop.context.threads:
        file.put(key, loop.name, replace(schedule, threads=0, deterministic=None), seconds)
    return key


def map_identity(loop: Loop) -> Hashable:
    """Return what tells the set and the maps of a loop from others: loops that agree in it share plans."""
    return id(loop.over), tuple(id(argument.map) for argument in loop.bound.arguments)


def family(loop: Loop) -> tuple[Hashable, ...]:
    """Return what loops have in common that differ in numbers and dats only, as the stages of a time step do."""
    dats = (a.data for a in loop.bound.arguments)
    shapes = tuple((d.scalar, d.shape, d.layout if isinstance(d, Dat) else None) for d in dats)
    kernel, baked = loop.bound.kernel, loop.bound.constants_baked
    strategies = tuple(strategy_identity(baked[name]) for name in kernel.signature.strategies)
    return id(kernel), strategies, map_identity(loop), shapes, loop.schedule


def depends_on_itself(loop: Loop) -> list[Dat | Global]:
    """Return the data that a loop changes and whose old values it uses: those that calls in a row do not repeat."""
    used = {id(a.data) for a in loop.bound.arguments if a.access is not Access.WRITE}
    return [item for item in loop.written if id(item) in used]


class Runs:
    """What runs a loop under each schedule that was asked for.

    Parameters
    ----------
    loop
        The loop; `run` and `prepare` leave it with another schedule.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._built: dict[Schedule, Run] = {}
        self._compiled: set[Schedule] = set()

    def run(self, schedule: Schedule) -> Run:
        """Return what calls the loop once under a schedule.

        Raises
        ------
        FluxloomError
            If the loop cannot run so.
        """
        self.loop.reschedule(schedule)
        now = self.loop.schedule
        if now not in self._built:
            self._built[now] = self.loop.build().run
        return self._built[now]

    def prepare(self, schedules: Iterable[Schedule]) -> None:
        """Compile for some schedules side by side, so that `run` finds the results in the cache of compiled code.

        One that cannot be compiled is passed over: `run` will say why.
        """
        device = self.loop.context.device
        if getattr(device, "is_cpu", False):  # OpenCL drivers of CPUs compile one program at a time
            return
        jobs = [job for schedule in schedules if (job := self._job(schedule)) is not None]
        workers = min(len(jobs), available_processors())
        if workers < 2:
            return
        whole = activity("compiling schedules", self.loop.name, total=len(jobs))
        with whole as work, ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(_quietly, jobs):
                work.step()

    def _job(self, schedule: Schedule) -> Callable[[], object] | None:
        """Return what compiles the loop under a schedule that is new."""
        loop, device = self.loop, self.loop.context.device
        with suppress(FluxloomError):
            loop.reschedule(schedule)
            now = loop.schedule
            if now in self._built or now in self._compiled:
                return None
            self._compiled.add(now)
            contract = now.deterministic != "global"
            unit = generate([loop.group(Numbering())], device.dialect, contract=contract)
            return lambda: device.compile(unit.text, unit.symbols, loop.name, contract=contract)
        return None


def _quietly(job: Callable[[], object]) -> None:
    """Run a job; what is wrong shows when its result is wanted."""
    with suppress(FluxloomError):
        job()


def shared_later(loops: Sequence[Loop], later: Sequence[Loop]) -> bool:
    """Whether loops that are tuned later have the set and maps of these, and therefore their plans."""
    here = {map_identity(loop) for loop in loops}
    return any(map_identity(loop) in here for loop in later)
