"""The tsunami case as it runs: reports, gauges, events, snapshots and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.flows.conserved_start import level_water, water_of
from fluxloom.flows.shallow_water_pictures import draw_water
from fluxloom.flows.water_watch import tsunami_watch
from fluxloom.fv.shallow_places import highest_cell
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.files import fields_name, write_fields, write_table
from fluxloom.run.flow import Flow, HistoryPanel, Picture, Until
from fluxloom.run.gathering import gathered
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.monitor import Monitor
from fluxloom.run.results.folder import ResultFolder
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.shallow_gauges import Gauges
from fluxloom.solvers.shallow_water import ShallowWater, Survey

__all__ = ["Event", "Plan", "TsunamiRun"]

FloatArray = npt.NDArray[np.float64]

_CLOSE = 1e-9
_TRIAL_STEPS = 10


@dataclass(frozen=True)
class Event:
    """The bed is lifted.

    Attributes
    ----------
    time
        When, seconds.
    rise
        How much, as a function of the coordinates.
    """

    time: float
    rise: Callable[[FloatArray, FloatArray], npt.ArrayLike]


@dataclass(frozen=True)
class Plan:
    """What is done when.

    Attributes
    ----------
    end, intervals
        The run has so many equal intervals, with a report after each.
    gauges, sampling
        Points, and the seconds between two of their rows.
    snapshots
        Files of fields, at equal intervals.
    events
        In order of time.
    """

    end: float
    intervals: int
    gauges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sampling: float = 1.0
    snapshots: int = 0
    events: tuple[Event, ...] = ()


class WaterFiles(Monitor):
    """Gauges in ``gauges.csv``, and the fields now and then.

    Parameters
    ----------
    solver, plan
        The water, and what is done when.
    mesh
        Returns the whole mesh, on rank 0.
    """

    name, remembers = "gauges", ("memory",)

    def __init__(self, solver: ShallowWater, plan: Plan, mesh: Callable[[], MeshData]) -> None:
        self.solver, self.plan, self._mesh = solver, plan, mesh
        self.gauges = Gauges(solver, plan.gauges)
        self.rows: list[tuple[float, FloatArray]] = []
        """Times, and what `Gauges.read` returned."""

    @property
    def memory(self) -> dict[str, Any]:
        """The rows so far."""
        times, values = self.series()
        return {"gauges": list(self.gauges.names), "times": times, "values": values}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        names, before = self.gauges.names, list(memory["gauges"])
        values = np.full((len(memory["times"]), len(names), 4), np.nan)
        for k, name in enumerate(names):
            if name in before:
                values[:, k] = memory["values"][:, before.index(name)]
        self.rows = list(zip(memory["times"].tolist(), values, strict=True)) if before else []

    @property
    def intervals(self) -> list[float]:
        """Seconds between two samples, and between two files."""
        plan = self.plan
        return [*([plan.sampling] if plan.gauges else []), *([plan.end / plan.snapshots] if plan.snapshots else [])]

    def at(self, time: float) -> None:
        """Take what is due at a time."""
        plan, close = self.plan, _CLOSE * self.plan.end
        if plan.gauges and _due(time, plan.sampling, close):
            self.rows.append((time, self.gauges.read()))
        if plan.snapshots and time > 0.0 and _due(time, plan.end / plan.snapshots, close):
            self._snapshot(round(time * plan.snapshots / plan.end))

    def _snapshot(self, number: int) -> None:
        """Write the fields."""
        solver = self.solver
        fields = gathered(solver.context.comm, solver.mesh.cells.part, solver.fields())
        name, time = fields_name("auto", f"snapshot_{number:04d}"), solver.time
        self.folder.write_at(time, name, lambda path: write_fields(path, self._mesh(), fields, time=time))

    def series(self) -> tuple[FloatArray, FloatArray]:
        """Return times ``(n,)`` and depth, surface and velocity at the gauges, ``(n, gauges, 4)``."""
        times = np.array([time for time, _ in self.rows])
        return times, np.array([values for _, values in self.rows]).reshape(len(times), len(self.gauges.names), 4)

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write the table."""
        if self.plan.gauges and (not self.rows or self.rows[-1][0] < self.solver.time):
            self.rows.append((self.solver.time, self.gauges.read()))
        if not self.rows:
            return
        times, values = self.series()
        parts = ("depth", "elevation", "velocity_x", "velocity_y")
        columns = {f"{name}.{part}": values[:, k, i] for k, name in enumerate(self.gauges.names)
                   for i, part in enumerate(parts)}  # fmt: skip
        self.folder.write("gauges.csv", lambda path: write_table(path, {"time": times, **columns}))

    def draw(self, name: str) -> None:
        """Draw the surface at the gauges over time."""
        if len(self.rows) < 2:
            return
        from fluxloom.run.pictures import draw_history

        times, values = self.series()
        panels = [(HistoryPanel(f"{gauge} [m]", (gauge,)), values[:, k, 1:2])
                  for k, gauge in enumerate(self.gauges.names)]  # fmt: skip
        title = f"{name}: surface at the gauges"
        self.folder.write("gauges.png", lambda path: draw_history(path, "time [s]", times, panels, title))


class TsunamiRun(Flow):
    """The shallow-water solver, ready to advance from report to report: these are the steps of the run.

    Parameters
    ----------
    solver
        In its initial state.
    plan
        What is done when.
    mesh
        Returns the whole mesh, on rank 0.
    """

    remembers = ("_events", "memory")

    def __init__(self, solver: ShallowWater, plan: Plan, mesh: Callable[[], MeshData]) -> None:
        self.solver, self.plan, self.context, self._mesh = solver, plan, solver.context, mesh
        self.files = WaterFiles(solver, plan, mesh)
        self._done, self._events = 0, 0
        self._dry = solver.depth() <= solver.thin
        self._handle(0.0)
        self.last = solver.survey()
        """What the water was at the report before."""

    def start_from(self, start: Start) -> None:
        """Start from depth and velocity of another result, over the bed of now.

        On another mesh the surface is interpolated, with the mean of that of the result, see
        `fluxloom.flows.conserved_start`. Events up to the time of the start have been. Intervals count from the start.

        Raises
        ------
        SolverError
            If the time of the result is kept and is beyond the end.
        """
        solver, plan = self.solver, self.plan
        time, _ = start.clock
        if time >= plan.end:
            raise SolverError(f"{start.path}: the time of the result, {time:g}, is beyond the end, {plan.end:g}")
        while self._events < len(plan.events) and plan.events[self._events].time <= time + _CLOSE * plan.end:
            solver.displace(plan.events[self._events].rise)
            self._events += 1
        if start.held({"run.flow.solver.u": solver.u}, "mesh", "bathymetry", "event"):
            solver.begin_from()
        else:
            cells, volumes = solver.mesh.cells.size, solver.mesh.volumes.read().astype(np.float64)
            found = start.at(
                solver.mesh.centroids.read().astype(np.float64)[:cells], ("depth", "u", "v"), bounded=True,
                volumes=volumes[:cells], correct=level_water, given={"bed": solver.zb.read().astype(np.float64)},
                derived=water_of,
            )  # fmt: skip
            depth = found["depth"]
            solver.begin_from(np.stack([depth, depth * found["u"], depth * found["v"]], axis=1))
        solver.time = time
        self._done = int(time / plan.end * plan.intervals * (1.0 + _CLOSE))
        self._dry = solver.depth() <= solver.thin
        self.files.rows.clear()
        self.files.at(time)
        self.last = solver.survey()

    # ------------------------------------------------------------------------------------------ state
    @property
    def memory(self) -> dict[str, Any]:
        """How far the run is, and what `ShallowWater.survey` returned last."""
        plan = self.plan
        return {"done": self._done, "intervals": plan.intervals, "end": plan.end, "last": dict(vars(self.last))}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        plan = self.plan
        self._done = memory["done"]
        if (memory["intervals"], memory["end"]) != (plan.intervals, plan.end):  # intervals of another length
            time = memory["end"] * memory["done"] / memory["intervals"]
            self._done = min(plan.intervals, int(time * plan.intervals / plan.end * (1.0 + _CLOSE)))
        self.last = Survey(**memory["last"])

    # ------------------------------------------------------------------------------------- advance
    @property
    def steps(self) -> int:
        """Intervals that are done."""
        return self._done

    @property
    def time(self) -> float:
        """Of the water, seconds."""
        return self.solver.time

    def goals(self, until: Until) -> Sequence[Goal]:
        """Return the time of the end."""
        return [Goal("run.time", "time", until.time, self.time, until.time <= self.time)]

    def advance(self, until: Until) -> float:
        """Run to the next report; return the root mean square change of the depth; NaN: it is lost."""
        plan = self.plan
        if self.time < plan.end:
            self._done += 1
            for time in self._stops(self.time, min(plan.end * self._done / plan.intervals, plan.end)):
                self.solver.advance_to(time)
                self._handle(time)
            self.last = self.solver.survey()
        return self.last.change

    def trial_step(self, until: Until) -> None:
        """Make a few steps of the water, less than the way to a report."""
        self.solver.advance_to(min(self.time + _TRIAL_STEPS * self.solver.next_step(), until.time))

    def _stops(self, begin: float, end: float) -> list[float]:
        """Return the times in ``(begin, end]`` at which something happens, the end among them."""
        times = {end} | {e.time for e in self.plan.events if begin < e.time <= end}
        for step in self.files.intervals:
            first, last = int(begin / step), int(end / step) + 1
            times |= {k * step for k in range(first, last + 1) if begin < k * step <= end}
        ordered = sorted(times)
        close = _CLOSE * self.plan.end
        kept = [t for t, following in zip(ordered, [*ordered[1:], np.inf], strict=True) if following - t > close]
        return [t for t in kept if t - begin > close]

    def _handle(self, time: float) -> None:
        """Do what is due at a time."""
        events, close = self.plan.events, _CLOSE * self.plan.end
        while self._events < len(events) and events[self._events].time <= time + close:
            self.solver.displace(events[self._events].rise)
            self._events += 1
        self.files.at(time)

    # --------------------------------------------------------------------------------------- results
    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.mesh.cells.total

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.mesh.cells.part

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step."""
        return self.solver.loops

    @property
    def chain(self) -> Chain | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One time step."""
        return self.solver.chain

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return the depth of the water; the surface with its shore is drawn by `finish`."""
        return (Picture("depth", f"Depth after {self.time:.6g} s", "depth [m]", None, "Blues"),)

    def finish(self, folder: ResultFolder, name: str, *, pictures: bool) -> None:
        """Draw the water, where it is not lost."""
        comm, solver = self.context.comm, self.solver
        lost = np.array([not np.isfinite(solver.u.read()).all()], dtype=np.int64)
        if not pictures or comm.reduce(lost, "max")[0]:
            return
        fields, title = gathered(comm, self.part, self.fields()), f"{name}: surface after {self.time:.6g} s"
        folder.write(
            "elevation.png",
            lambda path: draw_water(path, self._mesh(), fields, self.plan.gauges, title, thin=solver.thin),
        )

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return depth, velocity, surface, bed and highest surface in the owned cells."""
        return self.solver.fields()

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group."""
        return self.solver.reports()

    def runup(self) -> tuple[float, float, float] | None:
        """Return the highest surface among cells that were dry at the start, and where; None if they stayed dry."""
        found = highest_cell(self.solver.mesh, np.where(self._dry, self.solver.highest_surface(), np.nan))
        return None if found is None else (found[0], found[1].x, found[1].y)

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return time, steps, mass balance, the highest surface and the run-up."""
        last, solver = self.last, self.solver
        rows = [
            ("time", f"{solver.time:.6g} s, {solver.steps:,} steps"),
            ("volume", f"{last.volume:.9g} m3 (came in {last.inflow:.3g} m3, balance off by {last.defect:.1e})"),
            ("speed", f"at most {last.speed:.4g} m/s"),
        ]
        if solver.drawn > 0.0:
            rows.append(("outflows", f"{solver.drawn:.3g} m3/s come in through them at the start, later what the cells "
                                     "behind happen to have: nothing holds depth or flow there; give a level or an "
                                     "incident wave where water comes in"))  # fmt: skip
        if last.surface is not None:
            rows.append(("surface", f"at most {last.surface:.6g} m"))
        if (found := self.runup()) is not None:
            rows.append(("run-up", f"{found[0]:.6g} m at ({found[1]:.6g}, {found[2]:.6g})"))
        return tuple(rows)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return tsunami_watch(self.solver, lambda: self.last, self.plan.intervals, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return f"lower flow.cfl (now {self.solver.scheme.cfl:g}) or set flow.order = 1"


def _due(time: float, step: float, close: float) -> bool:
    """Whether a time is a multiple of a step."""
    return abs(time - round(time / step) * step) <= close
