"""The tsunami case as it runs: reports, gauges, events, snapshots and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Picture
from fluxloom.app.case import GuardTable
from fluxloom.app.cases.tsunami_pictures import draw_gauges, draw_water
from fluxloom.app.cases.water_watch import tsunami_watch
from fluxloom.app.files import atomic, fields_name, write_fields
from fluxloom.app.gathering import gathered
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.watch import Watch
from fluxloom.core.errors import MeshError
from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.fv.shallow_places import highest_cell
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.shallow_gauges import Gauges
from fluxloom.solvers.shallow_water import ShallowWater, Survey

__all__ = ["Event", "Plan", "TsunamiRunner"]

FloatArray = npt.NDArray[np.float64]


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
    name
        Of the case.
    end, intervals
        The run has so many equal intervals, with a report after each.
    gauges, sampling
        Points, and the seconds between two of their rows.
    snapshots
        Files of fields, at equal intervals.
    events
        In order of time.
    """

    name: str
    end: float
    intervals: int
    gauges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sampling: float = 1.0
    snapshots: int = 0
    events: tuple[Event, ...] = ()


class TsunamiRunner:
    """The shallow-water solver, ready to advance from report to report.

    Parameters
    ----------
    solver
        In its initial state.
    plan
        What is done when.
    whole
        Returns the whole mesh, for rank 0 of several; without it `mesh` is not there.

    Attributes
    ----------
    partition
        How the mesh is divided among several ranks; None on a rank alone.
    """

    remembers = ("_events", "memory")

    def __init__(self, solver: ShallowWater, plan: Plan, whole: Callable[[], MeshData] | None = None) -> None:
        self.solver, self.plan = solver, plan
        self._comm, self._whole = solver.context.comm, whole
        self._made: MeshData | None = None
        self.partition: PartitionReport | None = solver.mesh.part.report()
        self.gauges = Gauges(solver, plan.gauges)
        self.rows: list[tuple[float, FloatArray]] = []
        """Times, and what `Gauges.read` returned."""
        self._done, self._events = 0, 0
        self.folder = ResultFolder(None)
        self._dry = solver.depth() <= solver.thin
        self._handle(0.0)
        self._last = solver.survey()

    # ------------------------------------------------------------------------------------------ state
    @property
    def done(self) -> int:
        """Intervals that are done."""
        return self._done

    @property
    def time(self) -> float:
        """Of the water, seconds."""
        return self.solver.time

    @property
    def memory(self) -> dict[str, Any]:
        """How far the run is, what `ShallowWater.survey` returned last, and the rows of the gauges."""
        times, values = self.series()
        last = self._last
        return {
            "done": self._done, "intervals": self.plan.intervals, "end": self.plan.end, "last": dict(vars(last)),
            "gauges": list(self.gauges.names), "times": times, "values": values,
        }  # fmt: skip

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        plan = self.plan
        self._done = memory["done"]
        if (memory["intervals"], memory["end"]) != (plan.intervals, plan.end):  # intervals of another length
            time = memory["end"] * memory["done"] / memory["intervals"]
            self._done = min(plan.intervals, int(time * plan.intervals / plan.end * (1.0 + 1e-9)))
        self._last = Survey(**memory["last"])
        names, before = self.gauges.names, list(memory["gauges"])
        values = np.full((len(memory["times"]), len(names), 4), np.nan)
        for k, name in enumerate(names):
            if name in before:
                values[:, k] = memory["values"][:, before.index(name)]
        self.rows = list(zip(memory["times"].tolist(), values, strict=True)) if before else []

    # ------------------------------------------------------------------------------------- advance
    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first iteration."""
        self.folder = folder

    def goals(self) -> Sequence[Goal]:
        """Return the time of the end."""
        return [Goal("run.time", "time", self.plan.end, self.solver.time, self.plan.end <= self.solver.time)]

    @property
    def finished(self) -> bool:
        """Whether the end has been reached."""
        return self.plan.end <= self.solver.time

    def advance(self) -> None:
        """Run to the next report."""
        if self.plan.end <= self.solver.time:
            return
        self._done += 1
        target = self.plan.end * self._done / self.plan.intervals
        for time in self._stops(self.solver.time, min(target, self.plan.end)):
            self.solver.advance_to(time)
            self._handle(time)
        self._last = self.solver.survey()

    def _stops(self, begin: float, end: float) -> list[float]:
        """Return the times in ``(begin, end]`` at which something happens, the end among them."""
        plan = self.plan
        times = {end} | {e.time for e in plan.events if begin < e.time <= end}
        steps = [plan.sampling] if plan.gauges else []
        steps += [plan.end / plan.snapshots] if plan.snapshots else []
        for step in steps:
            first, last = int(begin / step), int(end / step) + 1
            times |= {k * step for k in range(first, last + 1) if begin < k * step <= end}
        ordered = sorted(times)
        close = 1e-9 * plan.end
        kept = [t for t, following in zip(ordered, [*ordered[1:], np.inf], strict=True) if following - t > close]
        return [t for t in kept if t - begin > close]

    def _handle(self, time: float) -> None:
        """Do what is due at a time."""
        plan, close = self.plan, 1e-9 * self.plan.end
        while self._events < len(plan.events) and plan.events[self._events].time <= time + close:
            self.solver.displace(plan.events[self._events].rise)
            self._events += 1
        if plan.gauges and _due(time, plan.sampling, close):
            self.rows.append((time, self.gauges.read()))
        if plan.snapshots and time > 0.0 and _due(time, plan.end / plan.snapshots, close):
            self._snapshot(round(time * plan.snapshots / plan.end))

    def _snapshot(self, number: int) -> None:
        """Write the fields."""
        fields = self._gathered()
        name = fields_name("auto", f"snapshot_{number:04d}")
        time = self.time
        self.folder.write_at(time, name, lambda path: write_fields(path, self.mesh(), fields, time=time))

    def _gathered(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the fields of all cells on rank 0."""
        return gathered(self._comm, self.part, self.fields())

    def finish(self, *, pictures: bool = True) -> None:
        """Write what belongs to the whole run."""
        if self.plan.gauges and (not self.rows or self.rows[-1][0] < self.solver.time):
            self.rows.append((self.solver.time, self.gauges.read()))
        if self.rows:
            self.folder.write("gauges.csv", self._write_gauges)
        lost = np.array([not np.isfinite(self.solver.u.read()).all()], dtype=np.int64)
        if pictures and not self._comm.reduce(lost, "max")[0]:
            self._draw()

    def _draw(self) -> None:
        """Draw the water and the gauges."""
        fields, thin = self._gathered(), self.solver.thin
        title = f"{self.plan.name}: surface after {self.solver.time:.6g} s"
        self.folder.write(
            "elevation.png", lambda path: draw_water(path, self.mesh(), fields, self.plan.gauges, title, thin=thin)
        )
        if len(self.rows) > 1:
            series = self.series()
            self.folder.write("gauges.png", lambda path: draw_gauges(path, self.gauges.names, *series, self.plan.name))

    def series(self) -> tuple[FloatArray, FloatArray]:
        """Return times ``(n,)`` and depth, surface and velocity at the gauges, ``(n, gauges, 4)``."""
        times = np.array([time for time, _ in self.rows])
        return times, np.array([values for _, values in self.rows]).reshape(len(times), len(self.gauges.names), 4)

    def _write_gauges(self, path: Path) -> None:
        parts = ("depth", "elevation", "velocity_x", "velocity_y")
        heading = ",".join(["time", *(f"{name}.{part}" for name in self.gauges.names for part in parts)])
        times, values = self.series()
        table = np.concatenate([times[:, None], values.reshape(len(times), -1)], axis=1)
        with atomic(path) as temporary:
            np.savetxt(temporary, table, fmt="%.9g", delimiter=",", header=heading, comments="")

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
    def chain(self) -> Chain | None:
        """One time step."""
        return self.solver.chain

    @property
    def pictures(self) -> Sequence[Picture]:
        """Depth of the water; the surface with its shore is drawn by `finish`."""
        return (Picture("depth", f"Depth after {self.solver.time:.6g} s", "depth [m]", None, "Blues"),)

    def residual(self) -> float:
        """Return the root mean square change of the depth since the report before; NaN once a state is not finite."""
        return self._last.change

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

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return time, steps, mass balance, the highest surface and the run-up."""
        last, solver = self._last, self.solver
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

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew, once, and then kept."""
        if self.part is None:
            return self.solver.mesh.data
        if self._whole is None:
            raise MeshError("the mesh was given in parts without the way to make it: the whole is not known")
        if self._made is None:
            self._made = self._whole()
        return self._made

    @property
    def last(self) -> Survey:
        """What the water was at the report before."""
        return self._last

    def watch(self, table: GuardTable) -> Watch:
        """Return what guards look at. Collective."""
        return tsunami_watch(self.solver, lambda: self.last, self.plan.intervals, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return f"lower flow.cfl (now {self.solver.scheme.cfl:g}) or set flow.order = 1"


def _due(time: float, step: float, close: float) -> bool:
    """Whether a time is a multiple of a step."""
    return abs(time - round(time / step) * step) <= close
