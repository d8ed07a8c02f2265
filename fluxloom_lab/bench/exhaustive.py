"""Every schedule of every loop, timed on the device: how good the one is that is chosen without measuring."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.tuning import TuneRow, choose_finalists, rank_rows, schedule_words
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.tune.knobs import loop_knobs, loop_schedule, starting_point
from fluxloom.mesh.generate.airfoil import AirfoilMesh
from fluxloom.perf.tuner import Point, sweep
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.flows.airfoil_options import AirfoilOptions

__all__ = ["LoopTable", "exhaustive", "time_schedules"]

_SECONDS, _MOST = 2e-3, 50
"""A sample has as many calls in a row as take this long, but not more than so many."""

_SAMPLES, _FINAL = 3, 9
"""Samples of a schedule, and of each of the fastest, in turn."""

_STEPS = 2  # from the free stream, so that the loops compute with ordinary numbers

Sample = Callable[[], object]
"""Runs a loop some times over, as one sequence of the device."""


@dataclass(frozen=True)
class LoopTable:
    """The times of one loop.

    Attributes
    ----------
    name
        Of the loop.
    auto
        The schedule that is chosen without measuring.
    rows
        Every schedule, fastest first; those of the final rounds before the others.
    skipped
        Schedules that cannot run.
    """

    name: str
    auto: Schedule
    rows: tuple[TuneRow, ...]
    skipped: int

    @property
    def summary(self) -> dict[str, Any]:
        """The chosen schedule beside the best."""
        best = self.rows[0]
        auto = next(row for row in self.rows if row.schedule == self.auto)
        return {
            "auto_us": 1e6 * auto.seconds,
            "best_us": 1e6 * best.seconds,
            "auto_schedule": schedule_words(auto.schedule),
            "best_schedule": schedule_words(best.schedule),
            "auto_percent_of_best": 100 * best.seconds / auto.seconds,
        }

    def record(self) -> list[dict[str, Any]]:
        """Return the whole table."""
        return [
            {
                "loop": self.name,
                "schedule": schedule_words(row.schedule),
                "us": 1e6 * row.seconds,
                "percent_of_best": row.percent,
                "final": row.final,
            }
            for row in self.rows
        ]


def exhaustive(options: AirfoilOptions, mesh: AirfoilMesh, tell: Tell) -> dict[str, Any]:
    """Time every schedule of each of the five loops, unfused, that a sweep of `fluxloom.tune` would try.

    Returns
    -------
    dict
        ``auto``: `LoopTable.summary` of each loop; ``exhaustive``: all rows of all loops.
    """
    context = Context(options.device, threads=options.threads, tuning=False)
    solver = Airfoil(context, mesh, schedule=Schedule(), fused=False, layout=options.chosen_layout)
    for _ in range(_STEPS):
        solver.iterate()
    tables: list[LoopTable] = []
    for loop in solver.loops:
        tables.append(time_schedules(loop))
        found = tables[-1].summary
        tell(
            f"{loop.name}: {len(tables[-1].rows)} schedules, "
            f"chosen {found['auto_schedule']} {found['auto_us']:.2f} us, "
            f"best {found['best_schedule']} {found['best_us']:.2f} us ({found['auto_percent_of_best']:.0f} %)"
        )
    shares = [table.summary["auto_percent_of_best"] for table in tables]
    return {
        "auto_percent_of_best_least": min(shares),
        "auto": {table.name: table.summary for table in tables},
        "exhaustive": [row for table in tables for row in table.record()],
    }


def time_schedules(loop: Loop) -> LoopTable:
    """Time all schedules of a loop; afterwards it has its own schedule and values again."""
    auto = loop.schedule
    knobs, now = loop_knobs(loop, None, "sweep", 0)
    saved = [(data, _values(data)) for data in loop.written]
    clock = _Clock(loop, saved)

    def in_force(point: Point) -> Schedule:
        loop.reschedule(loop_schedule(loop, now, point))
        return loop.schedule

    def identity(point: Point) -> Hashable:
        try:
            return in_force(point)
        except FluxloomError:  # such a schedule cannot be; `measure` says so
            return tuple(point.items())

    def measure(point: Point) -> float:
        return clock.seconds(in_force(point))

    times = {auto: clock.seconds(auto)}
    found = sweep(knobs, measure, start=starting_point(knobs, now), identity=identity)
    times |= {in_force(trial.point): trial.seconds for trial in found.trials if trial.feasible}
    finalists = choose_finalists(times, auto)
    final = dict(zip(finalists, clock.race(finalists), strict=True))
    loop.reschedule(auto)
    clock.restore()
    skipped = sum(not trial.feasible for trial in found.trials)
    return LoopTable(loop.name, auto, rank_rows(loop.name, times, final, {auto: "auto"}), skipped)


class _Clock:
    """Times schedules of one loop by the device's own clock, each from the same values.

    A sample is one sequence of many calls, so that starting them costs next to nothing on devices that
    replay sequences.
    """

    def __init__(self, loop: Loop, saved: Sequence[tuple[Dat | Global, Any]]) -> None:
        self._loop, self._saved, self._calls = loop, saved, 0

    def restore(self) -> None:
        """Put the values back that the loop has changed."""
        for data, values in self._saved:
            if isinstance(data, Dat):
                data.write(values)
            else:
                data.value = values

    def seconds(self, schedule: Schedule) -> float:
        """Return the median seconds of a call."""
        sample = self._prepare(schedule)
        return median(self._read(sample) for _ in range(_SAMPLES))

    def race(self, schedules: Sequence[Schedule]) -> list[float]:
        """Return the medians of several schedules whose samples are taken in turn."""
        samples = [self._prepare(schedule) for schedule in schedules]
        rounds = [[self._read(sample) for sample in samples] for _ in range(_FINAL)]
        return [median(column) for column in zip(*rounds, strict=True)]

    def _read(self, sample: Sample) -> float:
        return self._loop.context.device.elapsed(sample) / self._calls

    def _prepare(self, schedule: Schedule) -> Sample:
        """Return a sequence of calls with a schedule that has run before."""
        loop, device = self._loop, self._loop.context.device
        loop.reschedule(schedule)
        self.restore()
        native = loop.build()
        loop()  # brings the values to the device
        if not self._calls:
            once = min(device.elapsed(native.run) for _ in range(3))
            self._calls = max(1, min(_MOST, ceil(_SECONDS / once)))
        sample = device.sequencer([native.blocks[0].call(loop.name, native.compiled)] * self._calls)
        sample()
        sample()  # from the second time on it is a graph, where the device has graphs
        return sample


def _values(data: Dat | Global) -> Any:
    return data.read() if isinstance(data, Dat) else data.value
