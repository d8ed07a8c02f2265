"""Incompressible flow on any mesh, as scripts and cases make it: steps, residual, fields and summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import chosen
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.run.chain import Chain
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_in_time import FlowInTime
from fluxloom.flows.flow_plan import (
    COMPONENTS,
    StepLengths,
    check_start,
    flow_pictures,
    speed_quantity,
    total_pressure,
    velocity_quantities,
)
from fluxloom.flows.flow_watch import incompressible_watch
from fluxloom.flows.given import check_value, start_velocity
from fluxloom.flows.incompressible.surface import IncompressibleSurface
from fluxloom.flows.incompressible.velocity_checks import check_velocities
from fluxloom.flows.volumes import FlowDomain, MeshLike, flow_volumes, usual_context
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.given import Given
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, ProjectionScheme
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.fields import Fields, Quantity, curl, curl_quantities, gradient_quantities
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.measures import Averaged, AveragedValue, PointValues
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.incompressible.drive import MeanVelocity
from fluxloom.solvers.incompressible.energy import EnergyBudget
from fluxloom.solvers.incompressible.flow import Incompressible as Solver
from fluxloom.solvers.incompressible.given import changing_patches
from fluxloom.solvers.incompressible.gradient import VelocityGradient
from fluxloom.solvers.incompressible.pressure import ConjugateGradients, PressureMethod
from fluxloom.solvers.incompressible.scalar import Scalar

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Incompressible", "IncompressibleScheme", "Pressure"]

_COURANT, _DIFFUSION = 0.35, 0.2
"""Of the largest stable step, where they are not given."""

@dataclass(frozen=True)
class IncompressibleScheme:
    """How an incompressible flow is computed.

    Attributes
    ----------
    time
        See `fluxloom.fv.incompressible.projection_schemes`.
    consistent
        Whether the operators are exact for linear fields on every mesh; those that are not keep energy. None: where the
        mesh is not orthogonal.
    steady
        Whether the steady flow that steps lead to does not depend on their length
        (`fluxloom.solvers.incompressible.steady`); wanted by runs that end at one.
    """

    time: ProjectionScheme = AdamsBashforth()
    consistent: bool | None = None
    steady: bool = False


@dataclass(frozen=True)
class Pressure:
    """How the equation of the pressure is solved.

    Attributes
    ----------
    method
        See `fluxloom.solvers.incompressible.pressure`.
    stop
        When iterations end.
    preconditioner
        What makes them converge faster.
    """

    method: PressureMethod = ConjugateGradients()
    stop: Stop = Stop(rtol=1e-6)
    preconditioner: Preconditioner = Jacobi()


class Incompressible(FlowInTime):
    """Incompressible flow on any mesh, in finite volumes.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, a `Domain` that joins patches, or control volumes that are dealt out already
        (`fluxloom.flows.volumes.flow_volumes`). On several ranks everything is collective.
    context
        Where it runs; by default the CPU.
    viscosity
        Kinematic: a number, or what is given in space and time (`fluxloom.values.value.value_of`), beside no model.
    boundaries
        Patch to `NoSlip`, `Inflow`, `Outflow`, `Symmetry` or another `Boundary`; each patch that is not joined to
        another needs one.
    start
        Velocity at the start, ``(d,)`` numbers or values, or a function of the places ``(n, d)`` that returns as many
        vectors; it is made free of divergence. At rest by default.
    force
        Acceleration, ``(d,)``: numbers, or values in space and time (`fluxloom.values.value.value_of`).
    mean_velocity
        Of the volume, ``(d,)``, which the force keeps, component by component; 0: no force. Empty: the force stays as
        it is.
    scheme, steps, model, pressure
        How it is computed: operators and time scheme; lengths of the steps; eddy viscosity; solver of the pressure.
    scalars
        What the flow carries, and what may drive it.

    Attributes
    ----------
    solver
        `fluxloom.solvers.incompressible.flow.Incompressible`.

    Raises
    ------
    MeshError
        If the mesh is broken; `PatchError`, if a patch has no boundary condition, or a name is that of no patch.
    SolverError
        If what is given does not fit.

    Examples
    --------
    >>> ends = {"lid": fl.NoSlip((1.0, 0.0)), "walls": fl.NoSlip()}
    >>> flow = fl.Incompressible("cavity.msh", viscosity=1e-2, boundaries=ends, steps=fl.StepLengths(dt=0.01))
    """

    curves = (*FlowInTime.curves, HistoryPanel("energy per time", ("dissipation", "decay")))

    def __init__(
        self,
        mesh: MeshLike | FlowDomain,
        context: Context | None = None,
        *,
        viscosity: Given,
        boundaries: Mapping[str, Boundary],
        start: Given = (),
        force: Given = (),
        mean_velocity: Sequence[float] = (),
        scheme: IncompressibleScheme | None = None,
        steps: StepLengths | None = None,
        model: EddyViscosity | None = None,
        pressure: Pressure | None = None,
        scalars: Sequence[Scalar] = (),
    ) -> None:
        context = usual_context(context)
        domain = mesh if isinstance(mesh, FlowDomain) else flow_volumes(mesh, context, boundaries)
        how, solving = chosen("scheme", scheme, IncompressibleScheme), chosen("pressure", pressure, Pressure)
        lengths, cv = chosen("steps", steps, StepLengths).bounds(_COURANT, _DIFFUSION), domain.volumes
        if len(mean_velocity) and (callable(force) or np.size(force)):  # pyright: ignore[reportArgumentType]
            raise SolverError("force: give only one of force and mean_velocity")
        check_velocities(cv, boundaries, context.comm)
        raise_on_all_ranks(context.comm, lambda: _check_values(cv, viscosity, force, scalars))
        self.solver = solver = Solver(
            context, cv, viscosity, boundaries, force=force, stop=solving.stop, preconditioner=solving.preconditioner,
            scheme=how.time, model=model, pressure=solving.method, scalars=scalars, consistent=how.consistent,
        )  # fmt: skip
        if how.steady:
            solver.seek_steady()
        found = start_velocity(start, cv.centres[: cv.owned], context.comm)
        check_start(solver.initialise(lambda _: found), solving.stop)
        volume = float(context.comm.reduce(np.array([cv.volumes[: cv.owned].sum()]), "sum")[0])
        super().__init__(solver, Change(solver.u, solver.weight, volume), lengths)
        self.partition, self._source, self._steady = domain.partition, domain.kept(), how.steady
        self._viscous = solver.viscosity != 0.0
        self._mean_velocity = mean_velocity
        self._drive = MeanVelocity(solver, mean_velocity) if len(mean_velocity) else None
        self._gradient, self._budget = VelocityGradient(solver), None

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew."""
        return self._source.whole()

    def _energy(self) -> EnergyBudget:
        """Return its budget of energy, made when it is asked for first. Collective."""
        if self._budget is None:
            self._budget = EnergyBudget(self.solver)
        return self._budget

    def check_end(self, until: Until) -> None:
        """Raise `SolverError` for an end at a steady flow that depends on the length of the steps."""
        super().check_end(until)
        if until.steady and not self._steady:
            raise SolverError(
                "until: the steady flow of this scheme depends on the length of its steps: give "
                "scheme=IncompressibleScheme(steady=True)"
            )

    def _take(self, start: Start) -> None:
        """Take velocity and scalars of another result; scalars that it has not stay as they are.

        From a checkpoint on the same mesh with the same boundaries, velocities at faces are taken as they are too; not
        where boundaries change in time and the time is not kept. Else velocities are linear, and made free of
        divergence; scalars are bounded by those around them.
        """
        solver, cv = self.solver, self.solver.volumes
        places, names = cv.centres[: cv.owned], tuple(solver.scalars.all)
        time, steady = start.clock[0], not changing_patches(solver.boundaries)
        dats = {"run.flow.solver.u": solver.u, "run.flow.solver.us": solver.us}
        if (start.keeps or steady) and start.held(dats, "mesh", "boundary", "space"):
            kept = {name: one for name, one in solver.scalars.all.items() if start.held(
                {f"run.flow.solver.scalars.all[{name}].theta": one.theta}, "mesh", "boundary")}  # fmt: skip
            solver.take({name: one.values() for name, one in kept.items()}, time)
        else:
            scalars = start.at(places, (), optional=names, bounded=True) if names else {}
            solver.initialise(lambda _: start.velocity(places), scalars, time).require("the pressure of the start")

    # ------------------------------------------------------------------------------------- advance
    def _bounded(self) -> bool:
        return self._viscous or any(self.context.comm.allgather(bool(self.solver.us.read().any())))

    def _largest_step(self) -> float:
        return self.solver.stable_step(self.lengths.courant, self.lengths.diffusion)

    def _before(self, dt: float) -> None:
        if self._drive is not None:
            self._drive.before(dt)

    @property
    def _tolerance(self) -> float:
        stop = getattr(self.solver.solver, "stop", None)
        return stop.rtol if isinstance(stop, Stop) else 0.0

    def columns(self) -> dict[str, float]:
        """Return time, the budget of energy, and the force that keeps the flow."""
        energy = self._energy()
        now = energy.now()
        found = {
            "time": now.time, "kinetic_energy": now.kinetic, "mean_kinetic_energy": now.kinetic / energy.volume,
            "dissipation": now.dissipation, "decay": math.nan,
        }  # fmt: skip
        if self._drive is not None:
            found |= {f"force_{'xyz'[k]}": value for k, value in enumerate(self._drive.force.tolist())}
        return found

    # ------------------------------------------------------------------------------- what can be measured
    @property
    def patches(self) -> Sequence[str]:
        """Names of the patches."""
        return tuple(self.solver.volumes.patches)

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> IncompressibleSurface:
        """Return patches as a surface, with the pressure at the faces and the friction along them. Collective."""
        return IncompressibleSurface(self.solver, patches, about)

    def balance(self, patches: Sequence[str], about: Sequence[float] = ()) -> IncompressibleSurface:
        """Return patches as a surface, with the terms of the discrete equations. Collective."""
        return IncompressibleSurface(self.solver, patches, about, balance=True)

    # --------------------------------------------------------------------------------------- results
    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.cells.part

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.cells.total

    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        return self.solver.solver.chains

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        solver = self.solver
        return [solver.before, *solver.solver.chains, solver.after, solver.limit, self._change.chain]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return speed, vorticity and pressure."""
        return flow_pictures(name, self.solver.time)

    def fields(self) -> Fields:
        """Return components of the velocity, speed, kinematic pressure and vorticity, each ``(cells,)``.

        Of a flow in three dimensions the vorticity is its magnitude. Derived ones are what the gradient of the velocity
        says, the pressure of the fluid at rest, the eddy viscosity of a model, and a viscosity in space or time.
        """
        solver, d = self.solver, self.solver.dimension
        velocity, pressure, gradient = cache(solver.velocity), cache(solver.pressure), cache(self._gradient.now)
        turning = curl_quantities(cache(lambda: curl(gradient())), d, "")
        found = velocity_quantities(velocity, d, "") | speed_quantity(velocity, "")
        found |= {"p": Quantity("", "kinematic pressure", pressure), "vorticity": turning["vorticity"]}
        derived = turning | gradient_quantities(gradient, "") | total_pressure(pressure, velocity, "")
        if solver.model is not None:
            derived["nu_t"] = Quantity("", "kinematic eddy viscosity", solver.nut.read)
        if (given := solver.given_viscosity) is not None:
            derived["nu"] = Quantity("", "kinematic viscosity", lambda: given.nu.read()[solver.spaces.inside, 0])
        return Fields(found, derived)

    def averaged(self) -> Averaged:
        """Return velocity, kinematic pressure and scalars, with what the velocity carries of these."""
        flow, cv = self.solver, self.solver.volumes
        inside = flow.context.map(flow.cells, flow.elements, flow.spaces.inside[:, None], "inside")[0]
        values = [AveragedValue("p", flow.phi, scale=lambda: 1.0 / flow.impulse)]
        values += [AveragedValue(name, one.theta[inside], mixed=True) for name, one in flow.scalars.all.items()]
        return Averaged(
            flow.cells, values, Dat.read, lambda: cv.centres[: cv.owned], lambda: cv.volumes[: cv.owned],
            flow.u[inside], COMPONENTS[: flow.dimension],
        )  # fmt: skip

    def _rows(self) -> Sequence[tuple[str, str]]:
        solver = self.solver
        form = "consistent" if solver.matrices.oblique else "symmetric"
        found = [("operators", f"{form} (angle or skewness of faces: at most {solver.obliqueness:.2g})")]
        if self._drive is not None:
            found.append(("force", ", ".join(f"{value:.6g}" for value in self._drive.force)))
        return found

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples velocity, pressure and scalars at points. Collective."""
        from fluxloom.solvers.incompressible.probes import Probes

        return Probes(self.solver, points, capacity, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return incompressible_watch(self.solver, self.lengths, until, table, self._mean_velocity)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant and time.diffusion, or give time.dt, a fixed step below those that were chosen"


def _check_values(volumes: ControlVolumes, viscosity: Given, force: Given, scalars: Sequence[Scalar]) -> None:
    """Raise `SolverError` where viscosity or force, or what scalars are given, does not fit the mesh at the start."""
    cells = volumes.centres[: volumes.owned]
    check_value("viscosity", viscosity, cells)
    check_value("force", force, cells, volumes.dimension)
    for scalar in scalars:
        what = f"scalars.{scalar.name}"
        check_value(f"{what}.initial", scalar.initial, cells)
        check_value(f"{what}.source", scalar.source, cells)
        for patch, one in scalar.boundaries.items():
            if one.prescribed is not None and patch in volumes.patches:
                places = volumes.centres[volumes.patches[patch]]
                check_value(f"{what}.boundary.{patch}.value", one.prescribed, places)
