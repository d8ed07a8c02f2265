"""The tsunami case as it runs: reports, events, snapshots and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.flows.shallow_water_pictures import draw_water
from fluxloom.flows.water_watch import tsunami_watch
from fluxloom.fv.shallow_places import highest_cell
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.files import fields_name, write_fields
from fluxloom.run.flow import Flow, Picture, Until
from fluxloom.run.gathering import gathered
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.monitor import Monitor
from fluxloom.run.results.folder import ResultFolder
from fluxloom.run.watch import Watch
from fluxloom.solvers.shallow_gauges import Gauges
from fluxloom.solvers.shallow_water import ShallowWater as Solver
from fluxloom.solvers.shallow_water import Survey

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Event", "Plan", "ShallowWater"]

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
    gauges
        Points that the picture of the surface shows.
    snapshots
        Files of fields, at equal intervals.
    events
        In order of time.
    """

    end: float
    intervals: int
    gauges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    snapshots: int = 0
    events: tuple[Event, ...] = ()


class WaterFiles(Monitor):
    """The fields now and then.

    Parameters
    ----------
    solver, plan
        The water, and what is done when.
    mesh
        Returns the whole mesh, on rank 0.
    """

    def __init__(self, solver: Solver, plan: Plan, mesh: Callable[[], MeshData]) -> None:
        self.solver, self.plan, self._mesh = solver, plan, mesh

    @property
    def intervals(self) -> list[float]:
        """Seconds between two files, where there are any."""
        return [self.plan.end / self.plan.snapshots] if self.plan.snapshots else []

    def at(self, time: float) -> None:
        """Take what is due at a time."""
        plan, close = self.plan, _CLOSE * self.plan.end
        if plan.snapshots and time > 0.0 and _due(time, plan.end / plan.snapshots, close):
            self._snapshot(round(time * plan.snapshots / plan.end))

    def _snapshot(self, number: int) -> None:
        """Write the fields."""
        solver = self.solver
        fields = gathered(solver.context.comm, solver.mesh.cells.part, solver.fields())
        name, time = fields_name("auto", f"snapshot_{number:04d}"), solver.time
        self.folder.write_at(time, name, lambda path: write_fields(path, self._mesh(), fields, time=time))


class ShallowWater(Flow):
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

    def __init__(self, solver: Solver, plan: Plan, mesh: Callable[[], MeshData]) -> None:
        self.solver, self.plan, self.context, self._mesh = solver, plan, solver.context, mesh
        self.files = WaterFiles(solver, plan, mesh)
        self._done, self._events = 0, 0
        self._dry = solver.depth() <= solver.thin
        self._handle(0.0)
        self.last = solver.survey()
        """What the water was at the report before."""

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

    def columns(self) -> dict[str, float]:
        """Return what the water was at the last report: volume, what came in, largest speed, change of the depth."""
        last = self.last
        return {
            "time": self.time, "volume": last.volume, "inflow": last.inflow, "speed": last.speed,
            "residual": last.change,
        }  # fmt: skip

    def goals(self, until: Until) -> Sequence[Goal]:
        """Return the time of the end."""
        return [Goal("run.time", "time", until.time, self.time, until.time <= self.time)]

    def advance(self, until: Until) -> float:
        """Run to the next report, or to where a monitor looks before; return the change of depth at the last report.

        It is the root mean square; NaN: the water is lost.
        """
        plan = self.plan
        if self.time < plan.end:
            report = min(plan.end * (self._done + 1) / plan.intervals, plan.end)
            stop = until.stop if until.stop < report - _CLOSE * plan.end else report
            for time in self._stops(self.time, stop):
                self.solver.advance_to(time)
                self._handle(time)
            if stop == report:
                self._done += 1
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

    def at_points(self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error") -> Gauges:
        """Return what samples depth, surface and velocity of the cells that points are in. Collective."""
        return Gauges(self.solver, points, outside)

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
