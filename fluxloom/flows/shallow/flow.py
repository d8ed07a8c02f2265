"""Shallow water, as scripts and cases make it: reports, events and pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import SolverError
from fluxloom.core.status import Goal
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.flows.conserved_start import level_water, water_of
from fluxloom.flows.flow_plan import COMPONENTS, speed_quantity, velocity_quantities
from fluxloom.flows.shallow.openings import WaterOpenings
from fluxloom.flows.shallow.pictures import draw_water
from fluxloom.flows.shallow.watch import tsunami_watch
from fluxloom.flows.volumes import Domain, MeshLike, usual_context
from fluxloom.fv.gradients.plane_gradient import PlaneGradient
from fluxloom.fv.shallow.boundary import Boundary
from fluxloom.fv.shallow.kernels import primitive
from fluxloom.fv.shallow.places import highest_cell
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.data.once import Once
from fluxloom.mesh.ranks.bind import Mesh, bind
from fluxloom.run.fields import Fields, Quantity, curl, curl_quantities, gradient_quantities
from fluxloom.run.flow import Flow, Picture, Until
from fluxloom.run.flow_run import gathered
from fluxloom.run.measures import Averaged, AveragedValue
from fluxloom.run.results.results import ResultFolder
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.shallow.flow import Field, Survey
from fluxloom.solvers.shallow.flow import ShallowWater as Solver
from fluxloom.solvers.shallow.probes import WaterProbes

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Event", "Plan", "ShallowWater", "WaterDomain", "water_mesh"]

FloatArray = npt.NDArray[np.float64]

_CLOSE = 1e-9
_TRIAL_STEPS = 10
_MAPS = ("cell_nodes", "face_cells", "face_nodes", "boundary_cell", "boundary_nodes")


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
    events
        In order of time.
    """

    end: float
    intervals: int
    gauges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, eq=False)
class WaterDomain:
    """Where shallow water is.

    Attributes
    ----------
    domain
        What it was made of.
    mesh
        Of this rank.
    """

    domain: Domain
    mesh: Mesh

    def description(self) -> Domain:
        """Return what tells it from others, for runs that go on."""
        return self.domain


def water_mesh(mesh: MeshLike, context: Context, boundaries: Collection[str]) -> WaterDomain:
    """Return the mesh of shallow water; of several ranks, rank 0 makes it and hands it out. Collective.

    Parameters
    ----------
    mesh
        The mesh, its path, or a `Domain` of it, which joins no patches.
    context
        Whose ranks.
    boundaries
        Names of the patches that have a boundary condition.

    Raises
    ------
    MeshError
        See `Domain.checked`; patches without a condition are walls.
    """
    domain = Domain.of(mesh)
    bound = bind(
        domain.checked(context, boundaries, joins=False, lacking=True), context,
        dtype="float32" if context.device.refuses_double else "float64", partition=domain.method, shares=domain.shares,
        maps=_MAPS,
    )  # fmt: skip
    return WaterDomain(domain, bound)


class ShallowWater(Flow):
    """Shallow water, that advances from report to report: these are the steps of a run.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, or one that is dealt out already (`water_mesh`). On several ranks everything is
        collective.
    context
        Where it runs; by default the CPU.
    plan
        What is done when.
    bed
        Its elevation: a number, values of the cells of this rank, or a function of x and y; metres.
    elevation, velocity
        Of the surface at the start, and two components.
    boundaries
        Patch to `fluxloom.fv.shallow.boundary.Wall`, `Outflow`, `Level` or `Incident`; the rest is wall.
    scheme
        Its numbers.
    schedule, fused, dtype
        As `fluxloom.solvers.shallow.flow.ShallowWater` takes them.

    Attributes
    ----------
    solver
        `fluxloom.solvers.shallow.flow.ShallowWater`.

    Raises
    ------
    MeshError
        If the mesh is broken; `PatchError`, if a name is that of no patch.
    SolverError
        If what is given does not fit.
    """

    remembers = ("_events", "memory")

    def __init__(
        self,
        mesh: MeshLike | WaterDomain,
        context: Context | None = None,
        *,
        plan: Plan,
        bed: Field,
        elevation: Field = 0.0,
        velocity: Sequence[Field] = (0.0, 0.0),
        boundaries: Mapping[str, Boundary] | None = None,
        scheme: ShallowScheme | None = None,
        schedule: Schedule | None = None,
        fused: bool = True,
        dtype: npt.DTypeLike = "float64",
    ) -> None:
        where = usual_context(context)
        domain = mesh if isinstance(mesh, WaterDomain) else water_mesh(mesh, where, boundaries or {})
        self.context = domain.mesh.context
        if context is not None and context is not self.context:
            raise SolverError("context: the mesh was dealt out in another one; leave it out")
        self.solver = solver = Solver(
            domain.mesh, bed, elevation, velocity, scheme=scheme, boundaries=boundaries, schedule=schedule, fused=fused,
            dtype=dtype,
        )  # fmt: skip
        self.plan, self._source = plan, domain.domain
        self.partition = solver.mesh.part.report()
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
        self.last = solver.survey()

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew."""
        return self._source.whole() if self.context.distributed else self.solver.mesh.data

    @property
    def patches(self) -> Sequence[str]:
        """Names of the patches."""
        return list(self.solver.mesh.part.patches)

    def check_end(self, until: Until) -> None:
        """Raise `SolverError` for no time, one behind that of the plan or of a series, and steps that are too long."""
        self.solver.check_step()
        if not until.time:
            raise SolverError("until: shallow water flows up to a time: give Time(seconds)")
        if until.time > self.plan.end:
            raise SolverError(f"until: the plan of this flow ends at {self.plan.end:g}, before {until.time:g}")
        raise_on_all_ranks(self.context.comm, lambda: self.solver.check_given(until.time))

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
        drawn = self.fields().chosen(("depth", "elevation", "bed"))
        fields, title = gathered(comm, self.part, drawn), f"{name}: surface after {self.time:.6g} s"
        folder.write(
            "elevation.png",
            lambda path: draw_water(path, self.mesh(), fields, self.plan.gauges, title, thin=solver.thin),
        )

    def fields(self) -> Fields:
        """Return depth, velocity, surface, bed and, if kept, highest surface in the owned cells.

        Where it is (or always was) dry, the surface is the bed. Derived ones are speed, discharge, Froude number, and
        what the gradient of the velocity says, across shores as if there was nothing beyond.
        """
        solver = self.solver
        depth, velocity = cache(solver.depth), cache(solver.velocity)
        bed = cache(lambda: solver.zb.read().astype(np.float64))
        speed = speed_quantity(velocity, "m/s")

        def highest() -> FloatArray:
            """Return the highest surface so far."""
            top = solver.highest_surface()
            return np.where(np.isnan(top), bed(), top)

        def froude() -> FloatArray:
            """Return the speed over that of long waves, ``|u| / sqrt(g H)``, 0 where it is dry."""
            waves = np.sqrt(solver.scheme.gravity * np.maximum(depth(), 0.0))
            return np.divide(speed["speed"].values(), waves, out=np.zeros_like(waves), where=waves > 0.0)

        found = {
            "depth": Quantity("m", "depth of the water", depth),
            "velocity": Quantity("m/s", "velocity", velocity, 2),
            "elevation": Quantity("m", "elevation of the surface", solver.surface),
            "bed": Quantity("m", "elevation of the bed", bed),
        }
        found |= {"highest": Quantity("m", "highest surface so far", highest)} if solver.peak else {}
        flux = Quantity("m^2/s", "discharge across a metre", lambda: depth() * speed["speed"].values())
        gradient = cache(lambda: self._gradient.now())
        derived = velocity_quantities(velocity, 2, "m/s") | speed
        derived |= curl_quantities(lambda: curl(gradient()), 2, "1/s") | gradient_quantities(gradient, "1/s")
        return Fields(found, derived | {"discharge": flux, "froude": Quantity("", "Froude number", froude)})

    @Once
    def _gradient(self) -> PlaneGradient:
        mesh, (w, fill) = self.solver.mesh, self._primitive()
        return PlaneGradient(
            self.context, mesh.face_cells, mesh.centroids, w, [fill], first=2, least=self.solver.thin
        )

    def _primitive(self) -> tuple[Dat, Loop]:
        """Return a dat for depth, surface and velocity, and the loop that fills it."""
        solver, kind = self.solver, "float32" if self.context.device.refuses_double else "float64"
        w = self.context.dat(solver.mesh.cells, name="primitive", shape=(4,), dtype=kind)
        return w, Loop(primitive, solver.mesh.cells, solver.u, solver.zb, w, eps=solver.thin)

    def averaged(self) -> Averaged:
        """Return depth, surface and velocity."""
        mesh, (w, fill) = self.solver.mesh, self._primitive()
        values = [AveragedValue(name, w, place, unit="m") for place, name in enumerate(("depth", "elevation"))]
        return Averaged(
            mesh.cells, values, Dat.read, lambda: mesh.centroids.read().astype(np.float64),
            lambda: mesh.volumes.read().astype(np.float64).reshape(-1), w, COMPONENTS[:2], first=2, unit="m/s",
            before=[fill], dtype=w.scalar.numpy,
        )  # fmt: skip

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group."""
        return self.solver.reports()

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> WaterProbes:  # fmt: skip
        """Return what samples depth, surface and velocity of the cells that points are in. Collective."""
        return WaterProbes(self.solver, points, capacity, outside)

    def through(self, patches: Sequence[str]) -> WaterOpenings:
        """Return patches of which the discharge is measured. Collective."""
        return WaterOpenings(self.solver, patches)

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
        scheme = self.solver.scheme
        now = f"dt (now {scheme.dt:g})" if scheme.dt else f"cfl (now {scheme.cfl:g})"
        return f"lower flow.{now} or set flow.order = 1"
