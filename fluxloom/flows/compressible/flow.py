"""Compressible flow on any mesh, as scripts and cases make it: steps, residual, fields, surfaces and summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.core.status import Goal
from fluxloom.core.strategies import chosen
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.flows.compressible.given import Start, check_symmetry, start_states, warn_of_slow_flow, with_stream
from fluxloom.flows.compressible.steps import Explicit, steps_of
from fluxloom.flows.flow_plan import COMPONENTS, speed_quantity, velocity_quantities
from fluxloom.flows.gas_fields import compressible_watch, gas_quantities
from fluxloom.flows.volumes import FlowDomain, MeshLike, flow_volumes, usual_context
from fluxloom.fv.compressible.boundary import BoundaryCondition, NoSlipWall, SlipWall
from fluxloom.fv.compressible.fluxes import Flux
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.gradients.limiters import Limiter
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.fields import Fields, Quantity, curl, curl_quantities, gradient_quantities
from fluxloom.run.flow import Flow, HistoryPanel, Picture, Section, Until
from fluxloom.run.measures import Averaged, AveragedValue, Loads, PointValues
from fluxloom.run.results.reports import loops_once, merged_reports
from fluxloom.run.results.results import ResultFolder
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.compressible.cycles import Implicit, Multigrid
from fluxloom.solvers.compressible.flow import CompressibleFlow, Source
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import SurfaceForces, patch_values
from fluxloom.solvers.compressible.values import owned_numbers
from fluxloom.solvers.flow_spaces import place_in

if TYPE_CHECKING:
    from fluxloom.fv.gradients.node_gradients import NodeGradients
    from fluxloom.run.stall import Stall
    from fluxloom.run.start import Start as OtherResult
    from fluxloom.solvers.compressible.derived import EddyViscosity, StateGradient
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Compressible", "CompressibleSurface"]

Array = npt.NDArray[np.float64]


class CompressibleSurface:
    """Some patches; see `fluxloom.run.measures.Surface`.

    Parameters
    ----------
    solver
        Whose.
    patches, about
        Names, and the point that moments are about; the origin by default.
    outside
        Pressure that is left out of forces.
    fluxes
        Lets the fluxes be those of the present state. Collective.
    """

    def __init__(
        self, solver: CompressibleFlow, patches: Sequence[str], about: Sequence[float], outside: float,
        fluxes: Callable[[], None],
    ) -> None:  # fmt: skip
        self.patches, self._solver, self._fluxes = tuple(patches), solver, fluxes
        name = "+".join(self.patches)
        point = place_in(about, solver.dimension)[: solver.dimension]
        self._forces = SurfaceForces(solver, {name: self.patches}, pressure=outside, points={name: point})

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._fluxes()
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        (found,) = self._forces.collect().values()
        means = {"p": found.mean_pressure, "total_pressure": found.mean_total, "T": found.mean_temperature}
        return Loads(found.pressure, found.friction, found.moment, found.mass, found.area, found.energy, means)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: the gas carries no scalars."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        """Return values of the faces, see `fluxloom.solvers.compressible.surface`, on rank 0. Collective."""
        found = patch_values(self._solver, self.patches).columns
        return {} if self._solver.context.comm.rank else found


_AROUND, _SMALL = 0.6, 0.5
"""Of the size of the walls: what pictures show around them; of the size of the mesh: below which they do so."""

Window = tuple[float, float, float, float]


class Compressible(Flow):
    """Compressible flow on any mesh: the Euler, Navier-Stokes or averaged Navier-Stokes equations.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, a `Domain` that joins patches, or control volumes that are dealt out already
        (`fluxloom.flows.volumes.flow_volumes`). On several ranks everything is collective.
    context
        Where it runs; by default the CPU.
    boundaries
        Patch to what is beyond it, see `fluxloom.fv.compressible.boundary`; each patch that is not joined to another
        needs one.
    gas
        What flows; air without viscosity by default.
    stream
        The free stream: of boundary conditions without a state, of the start, of pictures and coefficients.
    start
        States at the start, see `fluxloom.flows.compressible.given.Start`; the free stream by default.
    scheme
        How fluxes are computed, of which order, with which model of turbulence.
    flux, limiter
        In place of those of the scheme; ``scheme=CompressibleScheme(limiter=None)`` limits nothing.
    steps
        `Explicit`, `Implicit` or `Multigrid`; by default explicit ones of the scheme's CFL number, each cell's own,
        towards a steady flow.
    rotation
        How the mesh turns; by default it stands still.
    source
        What the gas gains, per volume and time: mass, momentum and energy, a value each (`fluxloom.values.value`).

    Attributes
    ----------
    solver
        `fluxloom.solvers.compressible.flow.CompressibleFlow`.

    Raises
    ------
    MeshError
        If the mesh is broken; `PatchError`, if a patch has no boundary condition, or a name is that of no patch.
    SolverError
        If what is given does not fit.

    Examples
    --------
    >>> stream = fl.FreeStream.at_angles(0.8, 101325.0, 288.15, alpha=1.25, dimension=2)
    >>> ends = {"airfoil": fl.SlipWall(), "far": fl.FarField()}
    >>> flow = fl.Compressible("naca0012.su2", boundaries=ends, stream=stream)
    """

    remembers = ("_first", "_residual", "_clipped_faces", "_clipped_cells", "_last", "_begun")

    def __init__(
        self,
        mesh: MeshLike | FlowDomain,
        context: Context | None = None,
        *,
        boundaries: Mapping[str, BoundaryCondition],
        gas: Gas | None = None,
        stream: FreeStream | None = None,
        start: Start | None = None,
        scheme: CompressibleScheme | None = None,
        flux: Flux | None = None,
        limiter: Limiter | None = None,
        steps: Explicit | Implicit | Multigrid | None = None,
        rotation: Rotation | None = None,
        source: Source | None = None,
    ) -> None:
        self.context = context = usual_context(context)
        domain = mesh if isinstance(mesh, FlowDomain) else flow_volumes(mesh, context, boundaries)
        gas, scheme = gas or Gas(), _scheme(scheme, flux, limiter, steps)
        turbulent = scheme.turbulence is not None
        if stream is not None:
            stream.state(gas, domain.volumes.dimension)  # says so where its direction is one of another dimension
        conditions = with_stream(boundaries, stream, gas, rotation, turbulent=turbulent)
        check_symmetry(conditions, start, stream, domain.volumes, context)
        walls = [name for name, condition in conditions.items() if isinstance(condition, NoSlipWall)]
        distance = domain.wall_distance(walls) if turbulent else None
        volumes, family = _gradients(domain, scheme.gradients)
        self.solver = solver = CompressibleFlow(
            context, volumes, conditions, gas, scheme, distance, source, rotation, gradients=family
        )  # fmt: skip
        states = start_states(start, stream, gas, volumes.dimension, turbulent=turbulent)
        found = raise_on_all_ranks(context.comm, lambda: owned_numbers("start", states, volumes, solver.components))
        warn_of_slow_flow(solver, found, 0.0 if stream is None else stream.mach)
        solver.start(found)
        self.steps_of = steps_of(solver, steps or Explicit(scheme.cfl, local=True))
        self._dt = steps.dt if isinstance(steps, Explicit) else 0.0
        if self.steps_of.steady:
            solver.given.require_steady()
        self.stream, self.partition, self._source = stream, domain.partition, domain.kept()
        self._outside, self._fluxes_of = 0.0 if stream is None else stream.pressure, -1
        self._first, self._residual = 0.0, float("nan")
        self._clipped_faces, self._clipped_cells, self._last = 0, 0, 0
        self._begun, self._places = False, ("", "")
        self._below: Sequence[tuple[str, str]] = ()
        bodies = [name for name, condition in conditions.items() if isinstance(condition, SlipWall | NoSlipWall)]
        self._window = _window(solver, bodies)

    def start_from(self, start: OtherResult) -> None:
        """Start from density, velocity and pressure of another result, and the variable of a model of turbulence.

        They are bounded by those around them, so that density and pressure stay above 0; then mass, momentum and energy
        are made those of the result, see `fluxloom.flows.conserved_start`. A variable of turbulence that the result has
        not stays as it is.
        """
        from fluxloom.flows.conserved_start import conserving, state_names

        solver, cv = self.solver, self.solver.volumes
        names, before = state_names(solver.dimension), solver.states()
        if start.held({"run.flow.solver.w": solver.w}, "mesh"):
            states = solver.states()
        else:
            more = ("nu_tilde",) if solver.turbulent else ()
            found = start.at(
                cv.centres[: cv.owned], names, optional=more, bounded=True, volumes=cv.volumes[: cv.owned],
                correct=conserving(solver.gas, solver.dimension),
            )  # fmt: skip
            rest = [found.get(name, before[:, -1]) for name in more]
            states = np.stack([*(found[name] for name in names), *rest], axis=1)
        solver.start(states)
        solver.time, solver.steps = start.clock
        solver.given.prepare(solver.time)

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew."""
        return self._source.whole()

    def check_end(self, until: Until) -> None:
        """Raise `SolverError` for a time as the end of steps without one, and for steps that are too long."""
        if until.time and self.steps_of.steady:
            raise SolverError(
                "until: these steps lead towards a steady flow, which has no time: give steps=Explicit(...), not local"
            )
        if self._dt:
            self.solver.check_step(self._dt)

    # ------------------------------------------------------------------------------------- advance
    @property
    def steps(self) -> int:
        """Steps since the flow began."""
        return self.solver.steps

    @property
    def time(self) -> float | None:
        """Of the flow; None on the way to a steady one."""
        return None if self.steps_of.steady else self.solver.time

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self.solver.dimension

    def advance(self, until: Until) -> float:
        """Advance by a step; return the norm of the residual over the first one.

        What it is of, the steps say.

        Raises
        ------
        SolverError
            If a state is not finite; names the cell.
        """
        flow = self.solver
        if not self._begun:
            self._first, self._begun = self.steps_of.begin(), True
        before = flow.limits
        found = self.steps_of.step(until)
        self._clipped_faces += found.clipped_faces
        self._clipped_cells += found.clipped_cells
        self._last = flow.limits - before + found.clipped_cells
        if found.clipped_faces:
            self._last = max(self._last, flow.positivity.mark(self.steps_of.looked))
        self._first = self._first or found.norm
        self._residual = found.norm / self._first if self._first else 0.0
        return self._residual

    # ------------------------------------------------------------------------------- what can be measured
    @property
    def patches(self) -> Sequence[str]:
        """Names of the patches."""
        return tuple(self.solver.volumes.patches)

    def fluxes(self) -> None:
        """Let the fluxes be those of the present state, once a step for all that measure them. Collective."""
        if self._fluxes_of != self.solver.steps:
            self.solver.before()
            self._fluxes_of = self.solver.steps

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> CompressibleSurface:
        """Return patches as a surface, with the fluxes of the discrete equations through them. Collective."""
        return CompressibleSurface(self.solver, patches, about, self._outside, self.fluxes)

    # --------------------------------------------------------------------------------------- results
    def columns(self) -> dict[str, float]:
        """Return step, time, residual, and what was limited."""
        found = {"step": float(self.solver.steps), "time": self.solver.time, "residual": self._residual}
        clipped = {"clipped_faces": float(self._clipped_faces), "clipped_cells": float(self._clipped_cells)}
        found |= clipped | {"limited": float(self.solver.limits)}
        return found | self.steps_of.columns()

    def goals(self, until: Until) -> Sequence[Goal]:
        """Return the end, of a flow in time, or the residual of a steady one."""
        time, residual = self.solver.time, self._residual
        ends = [Goal("time.end", "time", until.time, time, until.time <= time)] if until.time else []
        met = residual < until.steady
        return [*ends, *([Goal("time.residual_drop", "residual", until.steady, residual, met)] if until.steady else [])]

    def finish(self, folder: ResultFolder, name: str, *, pictures: bool) -> None:
        """Look for what was limited, and where."""
        self._places, self._below = self._limited_places(), self._negative()

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return the residual of a steady flow, and the coefficients of bodies."""
        panels = [HistoryPanel("residual", ("residual",), logarithmic=True)] if self.steps_of.steady else []
        for name in (column.removesuffix(".lift") for column in columns if column.endswith(".lift")):
            panels += [HistoryPanel(f"{name}: {what}", (f"{name}.{what}",)) for what in ("drag", "lift")]
        over = "step" if self.steps_of.steady else "time"
        return over, panels or [HistoryPanel("imbalance of mass", ("mass_imbalance",))]

    def sections(self, name: str) -> Sequence[Section]:
        """Return the Mach number across y."""
        return [Section("mach", f"Mach number: {name}", "Mach number", (1,))]

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.spaces.cells.set.part

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.spaces.cells.set.total

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of those that stages repeat the first."""
        return loops_once(self.steps_of.parts)

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [part for part in self.steps_of.parts if isinstance(part, Chain)]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return Mach number and pressure."""
        where = name if self.steps_of.steady else f"{name}, time {self.solver.time:.6g}"
        return (
            Picture("mach", f"Mach number: {where}", "Mach number", self._window),
            Picture("p", f"Pressure: {where}", "pressure", self._window, "RdBu_r"),
        )

    def fields(self) -> Fields:
        """Return density, velocity, pressure, temperature and Mach number, each ``(cells,)``.

        With a model of turbulence also its variable; and in how many steps cells were limited to keep density and
        pressure above 0, if any were. Derived ones are those of `gas_quantities`, what gradients say, and what a model
        of turbulence knows.
        """
        solver, d = self.solver, self.solver.dimension
        states, gas = cache(solver.states), solver.gas
        velocity = lambda: states()[:, 1 : 1 + d]  # noqa: E731
        density = Quantity("kg/m^3", "density", lambda: states()[:, 0].copy())
        derived = gas_quantities(lambda: states()[:, : d + 2], gas, self.stream)
        found = {"rho": density} | velocity_quantities(velocity, d, "m/s")
        found["p"] = Quantity("Pa", "pressure", lambda: states()[:, 1 + d].copy())
        found |= {name: derived[name] for name in ("T", "mach")}
        derived |= speed_quantity(velocity, "m/s") | self._gradients()
        limited = solver.positivity.limited
        counts = Quantity("", "steps in which a cell was limited", lambda: np.zeros(solver.volumes.owned))
        if solver.turbulent:
            found["nu_tilde"] = Quantity("m^2/s", "variable of the model", lambda: states()[:, 2 + d].copy())
            derived["mu_t"] = Quantity("Pa s", "eddy viscosity", lambda: self._eddy.now())
            derived["wall_distance"] = Quantity("m", "wall distance", lambda: solver.owned(solver.distance))
        if limited is None:
            derived["limited"] = counts
        else:
            found["limited"] = replace(counts, values=lambda: solver.owned(limited))
        return Fields(found, derived)

    def _gradients(self) -> dict[str, Quantity]:
        """Return what the gradients of the states say."""
        d, found = self.solver.dimension, cache(lambda: self._gradient.now())
        steep = Quantity("kg/m^4", "size of the gradient of the density", lambda: np.linalg.norm(found()[:, 0], axis=1))
        velocity = lambda: found()[:, 1 : 1 + d]  # noqa: E731
        turning = curl_quantities(cache(lambda: curl(velocity())), d, "1/s")
        return {"schlieren": steep} | turning | gradient_quantities(velocity, "1/s")

    @cached_property
    def _gradient(self) -> StateGradient:
        from fluxloom.solvers.compressible.derived import StateGradient

        return StateGradient(self.solver)

    @cached_property
    def _eddy(self) -> EddyViscosity:
        from fluxloom.solvers.compressible.derived import EddyViscosity

        return EddyViscosity(self.solver)

    def averaged(self) -> Averaged:
        """Return density, velocity, pressure and the variable of a model of turbulence."""
        flow, d = self.solver, self.solver.dimension
        values = [AveragedValue("rho", flow.w, 0, unit="kg/m^3"), AveragedValue("p", flow.w, 1 + d, unit="Pa")]
        values += [AveragedValue("nu_tilde", flow.w, 2 + d, unit="m^2/s")] if flow.turbulent else []
        cv = flow.volumes
        return Averaged(
            flow.elements, values, flow.owned, lambda: cv.centres[: cv.owned], lambda: cv.volumes[: cv.owned], flow.w,
            COMPONENTS[:d], first=1, unit="m/s",
        )  # fmt: skip

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples states at points. Collective."""
        from fluxloom.solvers.compressible.monitors import StateProbes

        return StateProbes(self.solver, points, capacity, self.steps_of.steady, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return compressible_watch(
            self.solver, table, self.clipped_states, end=until.time, explicit=self.steps_of.explicit
        )

    def why_stalled(self, found: Stall) -> str:
        """Return why the residual gets no lower."""
        return self.steps_of.stalled()

    def clipped_states(self) -> tuple[float, float]:
        """Return how many states stages towards a steady flow have left as they were, and how many there were."""
        stages = len(self.solver.scheme.time.stages)
        return float(self._clipped_cells), float(self.cells) * self.solver.steps * stages

    def _most(self, counts: Array) -> tuple[float, str]:
        """Return the largest of some numbers of the owned cells, and its cell and place. Collective."""
        flow = self.solver
        numbers = np.arange(flow.volumes.owned) if self.part is None else self.part.numbers[: flow.volumes.owned]
        k = int(np.argmax(counts)) if counts.size else -1
        here = (0.0, -1, ()) if k < 0 else (-float(counts[k]), int(numbers[k]), tuple(flow.volumes.centres[k].tolist()))
        least, number, place = min(flow.context.comm.allgather(here))
        return -least, f"cell {number:,} at ({', '.join(f'{x:.4g}' for x in place)})"

    def _limited_places(self) -> tuple[str, str]:
        """Return the cell that was limited most often, and one that was in the last step; empty: none. Collective."""
        guard = self.solver.positivity
        if guard.limited is None:
            return "", ""
        count, often = self._most(self.solver.owned(guard.limited))
        now, last = self._most(self.solver.owned(guard.recent)) if guard.at == self.solver.steps else (0.0, "")
        return f"{often} in {count:,.0f} steps" if count else "", last if now else ""

    def _negative(self) -> Sequence[tuple[str, str]]:
        """Return in how many cells the variable of a model of turbulence is negative, and where most. Collective."""
        flow = self.solver
        if not flow.turbulent:
            return ()
        values = flow.states()[:, -1]
        count = int(flow.context.comm.reduce(np.array([float((values < 0.0).sum())]), "sum")[0])
        lowest, place = self._most(-values)
        text = f"negative in {count:,} of {self.cells:,} cells, {-lowest:.3g} in {place}: no eddy viscosity there"
        return (("nu_tilde", text),) if count else ()

    def _limited(self) -> Sequence[tuple[str, str]]:
        """Return what was limited to keep density and pressure above 0, where most often, and whether it still was."""
        if not (self._clipped_faces or self._clipped_cells or self.solver.limits):
            return ()
        parts = [
            f"{self._clipped_faces:,} states at faces" if self._clipped_faces else "",
            f"fluxes of {self.solver.limits:,} cells, step by step" if self.solver.limits else "",
            f"{self._clipped_cells:,} cells kept their state in a stage" if self._clipped_cells else "",
        ]
        often, last = self._places
        text = ", ".join(part for part in parts if part)
        text += f"; most often {often}" if often else ""
        now = f"{self._last:,} cells in the last step" if self._last else "none in the last step"
        return (("limited", f"{text}; {now}" + (f", as {last}" if self._last and last else "")),)

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self.steps_of.parts)

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return steps, time, residual, and what was limited."""
        rows = [("steps", f"{self.steps:,}")]
        if end := until.time:
            rows.append(("time", f"{self.solver.time:.6g}" + ("" if end <= self.solver.time else f" of {end:.6g}")))
        else:
            rows.append(("residual", f"{self._residual:.3e} ({self.steps_of.measure})"))
        return (*rows, *self.steps_of.summary(), *self._limited(), *self._below)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return self.steps_of.advice()


def _scheme(
    scheme: CompressibleScheme | None, flux: Flux | None, limiter: Limiter | None, steps: object
) -> CompressibleScheme:
    """Return a scheme with what is given in place of its own."""
    found = chosen("scheme", scheme, CompressibleScheme)
    found = found if flux is None else replace(found, flux=flux)
    found = found if limiter is None else replace(found, limiter=limiter)
    return replace(found, cfl=steps.cfl) if isinstance(steps, Explicit) else found


def _gradients(domain: FlowDomain, kind: Literal["faces"] | NodeGradients) -> tuple[ControlVolumes, Family | None]:
    """Return control volumes with what gradients look at, and the rows of those that are not found across faces."""
    if kind == "faces":
        return domain.volumes, None
    try:
        return domain.node_gradients(kind)
    except SolverError as error:
        raise SolverError(f"gradients: {error}") from None


def _window(flow: CompressibleFlow, bodies: Sequence[str]) -> Window | None:
    """Return what pictures of a plane flow show: the surroundings of bodies that are small in it. Collective."""
    cv = flow.volumes
    if flow.dimension != 2 or not bodies:
        return None
    walls = [cv.centres[cv.patches[name].start : cv.patches[name].stop] for name in bodies]
    low, high = _bounds(flow.context.comm, np.concatenate(walls))
    first, last = _bounds(flow.context.comm, cv.centres)
    size = float((high - low).max())
    if not size < _SMALL * (last - first).max():
        return None
    pad = _AROUND * size
    return float(low[0]) - pad, float(high[0]) + pad, float(low[1]) - pad, float(high[1]) + pad


def _bounds(comm: Comm, places: Array) -> tuple[Array, Array]:
    """Return the least and the largest coordinates of the places of all ranks. Collective."""
    low, high = places.min(axis=0, initial=np.inf), places.max(axis=0, initial=-np.inf)
    return comm.reduce(low, "min"), comm.reduce(high, "max")
