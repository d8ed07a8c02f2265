"""Incompressible flow on edges, as scripts and cases make it: fields at points, the history, where the time goes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.strategies import chosen
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.run.chain import Chain
from fluxloom.fe.edges import flow as kernels
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.flows.edges.surface import EdgeFlowSurface
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_in_time import FlowInTime
from fluxloom.flows.flow_plan import (
    COMPONENTS,
    StepLengths,
    check_bounded,
    check_start,
    flow_pictures,
    speed_quantity,
    total_pressure,
    velocity_quantities,
)
from fluxloom.flows.flow_watch import edge_flow_watch
from fluxloom.flows.given import check_value
from fluxloom.flows.incompressible.velocity_checks import check_walls
from fluxloom.flows.points import PointDomain, flow_points
from fluxloom.flows.volumes import Domain, MeshLike, usual_context
from fluxloom.fv.given import Given
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom.run.fields import Fields, Quantity, curl, curl_quantities, gradient_quantities
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.measures import Averaged, AveragedValue, PointValues
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.edges.boundary import EdgePatch
from fluxloom.solvers.edges.flow import EdgeFlow as Solver
from fluxloom.solvers.edges.loops import Field
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import TrackedSubscales

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["EdgeFlow", "FlowOnPoints", "volume_of"]

Array = npt.NDArray[np.float64]

_GRADIENT = 9
_COURANT = 0.8
"""Of the largest stable step, where it is not given."""


class FlowOnPoints(FlowInTime):
    """A flow whose values are at the points of triangles or tetrahedra."""

    place = "point"
    domain: PointMesh
    _source: Domain

    def _settle(
        self, mesh: MeshLike | PointDomain, context: Context | None, boundaries: Collection[str],
        *, divide: bool = False,
    ) -> PointMesh:  # fmt: skip
        """Take a mesh, divided where that is wanted, and return its points of this rank. Collective."""
        if isinstance(mesh, PointDomain):
            mesh.check_context(context)
            found = mesh
        else:
            found = flow_points(mesh, usual_context(context), boundaries, divide=divide)
        self._source, self.domain = found.kept(), found.points
        self.partition = self.domain.mesh.part.report()
        return self.domain

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew."""
        return self._source.whole()

    @property
    def patches(self) -> Sequence[str]:
        """Names of the patches."""
        return list(self.domain.patches)

    @property
    def part(self) -> Part | None:
        """The part of the points that this rank has; None on a rank alone."""
        return self.domain.points.part

    @property
    def cells(self) -> int:
        """Number of triangles or tetrahedra, of all ranks."""
        return self.domain.mesh.cells.total

    @property
    def points(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of points, of all ranks."""
        return self.domain.points.total


class EdgeFlow(FlowOnPoints):
    """Incompressible flow on triangles or tetrahedra, in finite elements edge by edge.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, or points that are dealt out already (`fluxloom.flows.points.flow_points`). On
        several ranks everything is collective.
    context
        Where it runs; by default the CPU.
    viscosity
        Kinematic: a number, a value in space and time (`fluxloom.values.value.value_of`), or a function of the points
        ``(n, d)``.
    boundaries
        Patch to `NoSlip`, `Inflow`, `Outflow`, `Symmetry` or `WallLaw`; each patch needs one.
    start
        Velocity at the start, ``(d,)`` numbers or values, or a function of the points ``(n, d)`` that returns as many
        vectors; it is made free of divergence. At rest by default.
    force
        Acceleration: ``(d,)`` numbers or values, or a function of the points.
    scheme, steps, model
        How it is computed: the discretisation; lengths of the steps; eddy viscosity.
    stop, preconditioner, krylov
        Of the solver of the pressure, see `fluxloom.solvers.edges.flow.EdgeFlow`.

    Attributes
    ----------
    solver
        `fluxloom.solvers.edges.flow.EdgeFlow`.

    Raises
    ------
    MeshError
        If the mesh is broken, or has other cells; `PatchError`, if a patch has no boundary condition, or a name is that
        of no patch.
    SolverError
        If what is given does not fit.
    """

    curves = (
        *FlowInTime.curves,
        HistoryPanel("decay of energy", ("decay",)),
        HistoryPanel("iterations", ("iterations",)),
    )

    def __init__(
        self,
        mesh: MeshLike | PointDomain,
        context: Context | None = None,
        *,
        viscosity: Given,
        boundaries: Mapping[str, EdgePatch],
        start: Field = (),
        force: Field = (),
        scheme: EdgeScheme | None = None,
        steps: StepLengths | None = None,
        model: EddyViscosity | None = None,
        stop: Stop | None = None,
        preconditioner: Preconditioner | None = None,
        krylov: type[Krylov] = ConjugateGradient,
    ) -> None:
        points = self._settle(mesh, context, boundaries)
        check_walls(points, boundaries)
        raise_on_all_ranks(points.context.comm, lambda: _check_values(points, viscosity, force))
        self.solver = solver = Solver(
            points, viscosity, boundaries, force=force, scheme=scheme, model=model, stop=stop,
            preconditioner=preconditioner, krylov=krylov,
        )  # fmt: skip
        check_start(solver.initialise(start), solver.stop)
        lengths, mass = chosen("steps", steps, StepLengths).bounds(_COURANT), solver.operators.mass
        if lengths.dt:
            solver.prepare(lengths.dt)
        super().__init__(solver, Change(solver.u, mass, volume_of(mass)), lengths)
        gradient = solver.context.dat(solver.loops.points, name="gradient", shape=(_GRADIENT,))
        loop = solver.loops.gather(kernels.velocity_gradient, *solver.loops.both(solver.u), mass, gradient)
        self._gradient, self._curl = gradient, Chain([loop], name="gradient")
        self._lost = False

    def _take(self, start: Start) -> None:
        """Take the velocity of another result.

        From a checkpoint on the same mesh with the same boundaries, velocity and pressure, and subscales that are
        tracked, are taken as they are; not where boundaries change in time and the time is not kept. Else the velocity
        is linear, and made free of divergence; the pressure is that of a start
        (`fluxloom.solvers.edges.flow.EdgeFlow.initialise`).
        """
        solver, loops = self.solver, self.solver.loops
        dats = {"u": loops.u, "p": loops.p, "hat": loops.hat, "slope": loops.slope, "sums": loops.sums}
        if isinstance(tracked := loops.subscales, TrackedSubscales):
            dats |= {"subscales.s": tracked.s, "subscales.rate": tracked.rate}
        dats = {f"run.flow.solver.loops.{name}": dat for name, dat in dats.items()}
        time = start.clock[0]
        if (start.keeps or not loops.boundary.varying) and start.held(dats, "mesh", "boundary"):
            solver.take(time)
        else:
            values = start.velocity(loops.places)
            solver.initialise(lambda _: values, time).require("the pressure of the start")
        if self.lengths.dt:
            solver.prepare(self.lengths.dt)

    # ------------------------------------------------------------------------------------- advance
    def _bounded(self) -> bool:
        return math.isfinite(self.solver.stable_step(self.lengths.courant))

    def _largest_step(self) -> float:
        dt = self.solver.stable_step(self.lengths.courant)
        check_bounded(math.isfinite(dt))
        return dt

    def failed(self) -> None:
        """Let the fields show the velocity of the step that failed, if it is lost."""
        finite = np.isfinite(self.solver.loops.hat.read()).all()
        self._lost = any(self.solver.context.comm.allgather(not finite))

    @property
    def _tolerance(self) -> float:
        return self.solver.stop.rtol

    def columns(self) -> dict[str, float]:
        """Return time, energy, its decay, the imbalance of mass, and the iterations of the pressure."""
        state = self.solver.state()
        left = state.imbalance if state.steps else math.nan
        return {
            "time": state.time, "kinetic_energy": state.kinetic_energy, "decay": math.nan, "imbalance": left,
            "iterations": float(self._last),
        }  # fmt: skip

    # ------------------------------------------------------------------------------- what can be measured
    @property
    def patches(self) -> Sequence[str]:
        """Names of the patches."""
        return tuple(self.domain.patches)

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> EdgeFlowSurface:
        """Return patches as a surface, whose force is what holds their points. Collective."""
        return EdgeFlowSurface(self.solver, patches, about)

    # --------------------------------------------------------------------------------------- results
    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        parts = (self.solver.loops.momentum, self.solver.loops.fill, self.solver.loops.correction)
        return [chain for chain in self.solver.chains if not any(chain is part for part in parts)]

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [*self.solver.chains, self.solver.loops.limit, self._change.chain]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return speed, vorticity and pressure."""
        return flow_pictures(name, self.solver.time)

    def fields(self) -> Fields:
        """Return components of the velocity, speed, pressure, vorticity and, of a model, eddy viscosity, ``(n,)`` each.

        Of a flow in three dimensions the vorticity is its magnitude. Of a step that failed the velocity is that of the
        momentum. Derived ones are what the gradient of the velocity says, and the pressure of the fluid at rest.
        """
        solver, loops, d = self.solver, self.solver.loops, self.solver.dimension
        velocity = cache(loops.hat.read if self._lost else solver.velocity)
        pressure, gradient = cache(solver.pressure), cache(self._velocity_gradient)
        turning = curl_quantities(cache(lambda: curl(gradient())), d, "1/s")
        found = velocity_quantities(velocity, d, "m/s") | speed_quantity(velocity, "m/s")
        found |= {"p": Quantity("m^2/s^2", "kinematic pressure", pressure), "vorticity": turning["vorticity"]}
        if loops.model is not None:
            found["nu_t"] = Quantity(
                "m^2/s", "kinematic eddy viscosity", lambda: loops.nu.read() - loops.laminar.read()
            )  # fmt: skip
        derived = turning | gradient_quantities(gradient, "1/s") | total_pressure(pressure, velocity, "m^2/s^2")
        return Fields(found, derived)

    def averaged(self) -> Averaged:
        """Return velocity and kinematic pressure at the points."""
        loops, mass = self.solver.loops, self.solver.operators.mass
        count = loops.points.size
        return Averaged(
            loops.points, [AveragedValue("p", loops.shown, unit="m^2/s^2")], Dat.read,
            lambda: self.domain.coordinates[:count], lambda: mass.read().reshape(-1), loops.u,
            COMPONENTS[: self.solver.dimension], unit="m/s",
        )  # fmt: skip

    def _velocity_gradient(self) -> npt.NDArray[np.float64]:
        """Return ``du_i / dx_j`` at the points, ``(n, d, d)``. Collective."""
        d = self.solver.dimension
        self._curl()
        return self._gradient.read().reshape(-1, 3, 3)[:, :d, :d]

    def _rows(self) -> Sequence[tuple[str, str]]:
        loops = self.solver.loops
        parts = {
            "momentum": [loops.momentum],
            "fill": [loops.fill],
            "pressure": self._pressure_chains,
            "correction": [loops.correction],
        }
        seconds = {
            name: sum((report.seconds for chain in chains for report in chain.reports()), 0.0)
            for name, chains in parts.items()
        }
        seconds["pressure"] += self.solver.spent
        whole, text = sum(seconds.values()), "not timed on this device; add --profile"
        if whole:
            text = ", ".join(f"{name} {part:.3f} s ({100 * part / whole:.1f} %)" for name, part in seconds.items())
        there, back = self._copies()
        copies = f"in {1e3 * there:.3f} ms, out {1e3 * back:.3f} ms for velocity and pressure; none in a step"
        return (("split", text), ("copies", copies))

    def _copies(self) -> tuple[float, float]:
        """Return the seconds that velocity and pressure take to the device and back."""
        device, dats = self.solver.context.device, (self.solver.u, self.solver.p)
        watch = Stopwatch(wait=device.synchronize)
        values, back = watch.result(lambda: [dat.read() for dat in dats])

        def send() -> None:
            for dat, value in zip(dats, values, strict=True):
                dat.write(value)
                dat.buffer.device()

        return watch.timed(send), back

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples velocity and pressure at points. Collective."""
        from fluxloom.solvers.edges.probes import EdgeProbes

        return EdgeProbes(self.solver, points, capacity, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return edge_flow_watch(self.solver, self.lengths, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant, or give time.dt, a fixed step below those that were chosen"


def volume_of(mass: Dat) -> float:
    """Return the sum of the lumped masses of all ranks. Collective."""
    return float(mass.set.context.comm.reduce(np.array([mass.read().sum()]), "sum")[0])


def _check_values(mesh: PointMesh, viscosity: Given, force: Field) -> None:
    """Raise `SolverError` where the viscosity or the force does not fit the points at the start."""
    places = mesh.coordinates[: mesh.points.size]
    check_value("viscosity", viscosity, places, least=0.0)
    check_value("force", force, places, mesh.dimension)
