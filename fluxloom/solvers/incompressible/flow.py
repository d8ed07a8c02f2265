"""Incompressible flow on any mesh: symmetry-preserving finite volumes, fractional steps.

::

    du/dt + (u . grad) u = -grad p + div(nu grad u) + f,   div u = 0

with the kinematic pressure ``p``; where the viscosity is given in space, ``grad u`` has its transposed beside it.
Collocated velocity and pressure; the velocities at faces carry what is convected and have no divergence. A step of
Adams and Bashforth's second order (Euler's at the start):

1. ``u_e = u + dt / (2 dt_old) (u - u_old)``, the same for ``u_s``; ``u_p = u + dt (f - Omega^-1 (C(u_s,e) + D) u_e)``
2. ``-L phi = -M u_p`` by conjugate gradients, ``phi = dt p``
3. ``u_s = Gamma u_p - G_s phi``, ``u = u_p - G phi``

or three such steps of Euler's with ``u_e = u``, each followed by ``u_p = u_p + c (u_n - u_p)`` with ``c = 0, 3/4, 1/3``
before the pressure: Shu and Osher's Runge-Kutta method of third order (J. Comput. Phys. 77, 1988, eq. 2.18).

Buoyancy acts through the faces, beside the slope of the pressure in 2 and 3, see
`fluxloom.fv.incompressible.face_forces`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.advice import warn
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.core.strategies import require_strategy
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.given import Given, parts_of
from fluxloom.fv.incompressible.boundary import Boundary, FlowConditions
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity, filter_areas
from fluxloom.fv.incompressible.kernels import (
    boundary_values,
    correct,
    divergence,
    extrapolate,
    face_velocity,
    face_viscosity,
    kinetic_energy,
    predict,
    relax,
    time_limit,
    transport,
    velocity_gradient,
)
from fluxloom.fv.incompressible.linear_operators import ORTHOGONAL, obliqueness
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, ProjectionScheme, check_shares
from fluxloom.linalg.direct.calls import sequence
from fluxloom.linalg.exact_sums import with_exact_sums
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import Status, Stop
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.flow_spaces import FlowSpaces
from fluxloom.solvers.incompressible.buoyancy import potential_part
from fluxloom.solvers.incompressible.corrections import FIRST_SOLVES, FlowCorrections
from fluxloom.solvers.incompressible.given import GivenVelocities
from fluxloom.solvers.incompressible.given_forces import given_forces
from fluxloom.solvers.incompressible.pressure import ConjugateGradients, PressureMethod
from fluxloom.solvers.incompressible.scalar import FlowScalars, Scalar
from fluxloom.solvers.incompressible.steady import SteadyFaces
from fluxloom.solvers.incompressible.types import FlowState, check_step, finite_vector
from fluxloom.solvers.incompressible.viscosity import GivenViscosity, constant_viscosity
from fluxloom.values.value import has_values

__all__ = ["Incompressible"]

Array = npt.NDArray[np.float64]
FOREVER = 1.0e30
_FLAT = 0.85
"""Of `Operators.wide_share`: meshes of Gmsh with 0.53 and 0.77 were stable, those with 0.91 and 1.16 were not."""
_FLATTEST = 5.0
"""The same for corrected operators: meshes of Gmsh with 8 to 24 were stable, perturbed ones with 7 and 10 were not."""
_ALONG = 0.03
"""Cosine of the angle of a face's normal and the line between its cells: 0.02 was stable or not, 0.08 was."""


class Incompressible:
    """Incompressible flow with a viscosity that is a number or given in space and time, or an eddy viscosity beside it.

    Parameters
    ----------
    context
        Where it runs. On several ranks everything is collective.
    volumes
        Of the mesh, from `fluxloom.fv.geometry.control_volumes.control_volumes`; on several ranks those of this one,
        from `fluxloom.fv.geometry.control_volumes.shared_volumes`.
    viscosity
        Kinematic: a number, or a value in space and time (`fluxloom.solvers.incompressible.viscosity`), which no model
        is beside.
    boundaries
        Patch to `NoSlip`, `Inflow`, `Outflow`, `Symmetry` or another `Boundary`; each patch needs one.
    force
        Acceleration, ``(d,)``: numbers, or values in space and time (`fluxloom.fv.given.Given`).
    stop, preconditioner
        Of the solver of the pressure; by default 1e-6 relative to the right-hand side, and `Jacobi`.
    pressure
        That solver: `ConjugateGradients`, the default, or another one of `fluxloom.solvers.incompressible.pressure`.
    scheme
        `AdamsBashforth`, the default: one pressure solve a step; `RungeKutta`: three, and steps about three times as
        long; see `fluxloom.fv.incompressible.projection_schemes`.
    model
        Of the scales that the mesh does not resolve: its eddy viscosity, of the velocity at the end of a step, is used
        in the next one.
    scalars
        What the flow carries, and what may drive it.
    consistent
        Whether the operators are corrected such that they are exact for linear fields on every mesh
        (`fluxloom.fv.incompressible.linear_operators`). Those that are not, of `fluxloom.fv.incompressible.operators`,
        keep energy, and are exact where faces stand across the middle of the line between cells. By default where the
        mesh is not orthogonal.

    Raises
    ------
    SolverError
        If a patch has no boundary, or a number is out of range.
    """

    remembers = ("time", "steps", "dt", "_part")

    def __init__(
        self,
        context: Context,
        volumes: ControlVolumes,
        viscosity: Given,
        boundaries: Mapping[str, Boundary] | None = None,
        *,
        force: Given = (),
        stop: Stop | None = None,
        preconditioner: Preconditioner | None = None,
        scheme: ProjectionScheme | None = None,
        model: EddyViscosity | None = None,
        pressure: PressureMethod | None = None,
        scalars: Sequence[Scalar] = (),
        consistent: bool | None = None,
    ) -> None:
        require_strategy("scheme", scheme, ProjectionScheme, optional=True)
        require_strategy("model", model, EddyViscosity, optional=True)
        require_strategy("preconditioner", preconditioner, Preconditioner, optional=True)
        require_strategy("pressure", pressure, PressureMethod, optional=True)
        if consistent not in (None, False, True):
            raise SolverError(f"consistent: True, False or None is wanted, not {consistent!r}")
        (nu,) = parts_of(viscosity, what="viscosity")
        self.viscosity = constant_viscosity(nu, model)
        self.context, self.volumes, self.dimension = context, volumes, volumes.dimension
        moving = callable(force) or has_values(force)
        self.force = finite_vector("force", () if moving else force, self.dimension)
        self.time, self.steps, self.dt, self._part = 0.0, 0, 0.0, 1.0
        self._check_next = False
        self._sets()
        self.boundaries: Mapping[str, Boundary] = dict(boundaries or {})
        self.conditions = FlowConditions.of(volumes, self.boundaries)
        self.obliqueness = float(context.comm.reduce(np.array([obliqueness(volumes)]), "max")[0])
        self.matrices = FlowMatrices(
            volumes, self.conditions, self.obliqueness > ORTHOGONAL if consistent is None else consistent
        )
        self._warn_of_flat_cells()
        self._warn_of_thin_cells()
        self._dats()
        with activity("tables of the flow", f"{volumes.cells:,} cells"):
            self._bind()
        self.given_viscosity = None if np.isfinite(self.viscosity) else GivenViscosity(self, nu)
        self.corrections = FlowCorrections(self) if self.matrices.oblique else None
        self.scheme, self.model = scheme if scheme is not None else AdamsBashforth(), model
        check_shares(self.scheme)
        self.floating = not self._anywhere(self.conditions.open.any())
        self.given_velocities = GivenVelocities(self)
        parts = parts_of(force, self.dimension, "force") if moving else ()
        self.given_forces = given_forces(self, parts, lambda pushes: potential_part(self, pushes))
        pushing = None if self.given_forces is None else self.given_forces.acceleration
        self.pushing: Dat | Global = self.acceleration if pushing is None else pushing
        if isinstance(pushing, Global):
            self.acceleration = pushing
        self.scalars = FlowScalars(self, scalars)
        self.steady: SteadyFaces | None = None
        self._loops()
        method, recipe = pressure or ConjugateGradients(), preconditioner or Jacobi()
        self.solver = method.solver(self, stop or Stop(rtol=1e-6), recipe)

    # ------------------------------------------------------------------------------------- set-up
    def forces(self) -> list[Array]:
        """Return the directions of all that pushes the fluid, beside its pressure."""
        lifts = [scalar.scalar.buoyancy for scalar in self.scalars.all.values()]
        moving = [] if self.given_forces is None else self.given_forces.directions
        lifting = [np.asarray(lift.gravity, dtype=np.float64) for lift in lifts if lift is not None]
        return [self.force, *moving, *lifting]

    def _warn_of_flat_cells(self) -> None:
        """Warn where cells are so flat that the scheme is not stable whatever the step. Collective."""
        known = self.matrices
        share, most = known.operators.wide_share(known.mirrors), _FLATTEST if known.oblique else _FLAT
        here = np.array([float(share.max(initial=0.0)), np.count_nonzero(share > most)])
        worst, count = float(self.context.comm.reduce(here[:1], "max")[0]), self.context.comm.reduce(here[1:], "sum")[0]
        if count and not self.context.comm.rank:
            warn(
                f"{int(count)} cells are so flat (Operators.wide_share is up to {worst:.2f}, at most {most} is safe) "
                "that the velocity may grow without bound whatever the step: optimise the mesh (with Gmsh by Netgen's "
                "optimiser)"
            )

    def _warn_of_thin_cells(self) -> None:
        """Warn where faces lie along the line between their cells, or are turned round. Collective."""
        cv = self.volumes
        ways, mine = cv.ways[: cv.interior], cv.faces[: cv.interior, 0] < cv.owned
        across = np.einsum("ij,ij->i", ways, cv.normals[: cv.interior]) >= _ALONG * np.linalg.norm(ways, axis=1)
        count = self.context.comm.reduce(np.array([float(np.count_nonzero(mine & ~across))]), "sum")[0]
        if count and self.matrices.oblique and not self.context.comm.rank:
            warn(
                f"{int(count)} faces lie along the line between their cells, or are turned round: in cells so thin or "
                "tangled the velocity may grow without bound where viscosity does not damp it; take quads, prisms or "
                "hexahedra in thin layers"
            )

    def _sets(self) -> None:
        cv = self.volumes
        self.spaces = FlowSpaces(self.context, cv)
        self.cells, self.elements = self.spaces.cells.set, self.spaces.elements.set
        self.faces = self.spaces.faces.set
        outer = self.spaces.elements.local(np.arange(cv.cells, cv.elements))
        self.boundary = self.context.subset(self.elements, outer, "boundary")

    def _dats(self) -> None:
        ctx, cv, d = self.context, self.volumes, self.dimension
        cells, elements, faces = self.spaces.cells, self.spaces.elements, self.spaces.faces
        nothing = np.zeros((cv.elements, d))
        nothing[cv.cells :] = self.conditions.given
        self.u, self.old, self.ahead = (elements.dat(nothing, name) for name in ("u", "u_old", "u_ahead"))
        self.phi, self.b = ctx.dat(self.cells, name="phi"), ctx.dat(self.cells, name="b")
        self.us, self.us_old, self.us_ahead = (ctx.dat(self.faces, name=n) for n in ("u_s", "u_s_old", "u_s_ahead"))
        self.nus = faces.dat(np.full(len(cv.faces), self.viscosity), "nu_s")
        self.volume = cells.dat(cv.volumes, "volume")
        padded = np.zeros(cv.elements)
        padded[: cv.cells] = cv.volumes
        self.weight = elements.dat(padded, "weight")
        self.inverse = elements.dat(np.divide(1.0, padded, out=np.zeros_like(padded), where=padded > 0), "inverse")
        kinds, normals = np.zeros(cv.elements, dtype=np.int32), np.zeros((cv.elements, d))
        kinds[cv.cells :], normals[cv.cells :] = self.conditions.kinds, cv.normals[cv.interior :]
        self.kind, self.normal = elements.dat(kinds, "kind"), elements.dat(normals, "normal")
        self.given = elements.dat(nothing, "given")
        self.acceleration = ctx.scalar(self.force, "force")
        self.step_length, self.share = ctx.scalar(0.0, "dt"), ctx.scalar(0.0, "share")

    def _bind(self) -> None:
        known = self.matrices
        cells, elements, faces = self.spaces.cells, self.spaces.elements, self.spaces.faces
        poisson = cells.rows(known.poisson_rows(), cells, "poisson")
        self.poisson = SparseMatrix(poisson.pattern, poisson.values)
        self.gradient = elements.rows(known.pressure_gradient(), cells, "gradient")
        self.divergence = cells.rows(known.divergence(), elements, "divergence")
        self.gamma = faces.rows(known.normal_components(), elements, "gamma")
        self.slope = faces.rows(known.pressure_slope(), cells, "slope")
        offsets, columns = known.operators.pattern
        self.transport = elements.rows(Family(offsets, columns, np.zeros(columns.size)), elements, "transport")
        self.entry_faces = faces.entry_rows(self.transport.pattern, known.operators.entry_faces(), "entry_faces")
        behind = elements.local(known.owners[elements.owned])
        self.behind = self.context.map(self.elements, self.elements, behind[:, None], "behind")

    def _loops(self) -> None:
        d = self.dimension
        sides, given = [], self.given_velocities.loops()
        if self._anywhere(self.boundary.size > 0):
            sides = [Loop(boundary_values, self.boundary, self.kind, self.normal, self.given,
                          self.u[self.behind[0]], self.u, formulas=self.conditions.formulas, d=d)]  # fmt: skip
        rows, stages, corrections = self.entry_faces, self._stages(), self.corrections
        nus = self.nus if corrections is None else corrections.raised
        pushes = [] if self.given_forces is None else self.given_forces.cells()
        layers = self.given_viscosity
        between = [Loop(extrapolate, self.elements, self.u, self.share, self.old, self.ahead, d=d)]
        extrapolated: list[Loop] = []
        if corrections is not None:
            extrapolated, between = [*between, *corrections.fluxes(self.ahead)], []
        self.explicit = [
            *pushes,
            *(layers.loops(0) if layers is not None else ()),
            Loop(extrapolate, self.faces, self.us, self.share, self.us_old, self.us_ahead, d=1),
            *extrapolated,
            Loop(transport, self.transport.pattern.entries, rows.entries, self.us_ahead[rows.pattern],
                 nus[rows.pattern], self.transport.values),
            *between,
            Loop(predict, self.elements, self.transport.entries, self.ahead[self.transport.pattern], self.inverse,
                 self.pushing, self.step_length, self.u, d=d),
            *(corrections.predicted() if corrections is not None else ()),
            *(layers.predicted() if layers is not None else ()),
            *self.scalars.explicit(),
            *stages,
            *given,
            *sides,
        ]  # fmt: skip
        source, faces, cells = self._projection()
        self.implicit = [
            *faces,
            *cells,
            *self.scalars.cells(),
            *sides,
            *((self.steady.measured(),) if self.steady is not None else ()),
            *(layers.loops(1) if layers is not None else ()),
            *(last := self._subgrid(self.model) if self.model is not None else []),
        ]
        self._closing = [*sides, *last]
        self.before = Chain([*self.explicit, *source], name="explicit")
        self.after = Chain(self.implicit, name="correction")
        started = source if corrections is None else [*corrections.fluxes(self.u), *source]
        self.project = Chain([*given, *sides, *started], name="projection")
        self._again = None if corrections is None else Chain([*faces, *source], name="pressure again")
        self._surveys()

    def _projection(self) -> tuple[list[Loop], list[Loop], list[Loop]]:
        """Return what makes the right-hand side of the pressure, and what its solution does to faces and cells."""
        d, corrections, steady = self.dimension, self.corrections, self.steady
        kept = steady.carried() if steady is not None else []
        gauss = Loop(correct, self.elements, self.gradient.entries, self.phi[self.gradient.pattern], self.u, d=d)
        if corrections is not None:
            force = self.scalars.buoyancy
            *predicted, rhs = corrections.faces(force)
            more = [steady.faces()] if steady is not None else []
            return [*kept, *predicted, *more, rhs], corrections.slopes(force), corrections.cells(gauss)
        rhs = Loop(divergence, self.cells, self.divergence.entries, self.u[self.divergence.pattern], self.b, d=d)
        faces = Loop(face_velocity, self.faces, self.gamma.entries, self.u[self.gamma.pattern], self.slope.entries,
                     self.phi[self.slope.pattern], self.us, d=d)  # fmt: skip
        pushed = [gauss, *self.given_velocities.pushes()]
        if steady is None:
            return [rhs, *self.scalars.source()], [faces, *self.scalars.faces()], pushed
        source = [*kept, rhs, steady.source(), *self.scalars.source()]
        return source, [faces, steady.faces(), *self.scalars.faces()], pushed

    def _anywhere(self, here: bool | np.bool_) -> bool:
        """Return whether something is so on any rank; collective."""
        return any(self.context.comm.allgather(bool(here)))

    def _stages(self) -> list[Loop]:
        """Return what several stages need beside steps of Euler's."""
        if len(self.scheme.shares) == 1:
            return []
        d = self.dimension
        self.start = self.context.dat(self.elements, name="u_n", shape=(d,))
        self.blend = self.context.scalar(0.0, "blend")
        kept = [Loop(copy, self.elements, self.u, self.start, systems=d), *self.scalars.kept()]
        self.keep = Chain(kept, name="start")
        return [Loop(relax, self.elements, self.start, self.blend, self.u, d=d)]

    def _subgrid(self, model: EddyViscosity) -> list[Loop]:
        """Return the loops from the velocity to the viscosity at the faces."""
        cells, elements, faces = self.spaces.cells, self.spaces.elements, self.spaces.faces
        slopes = cells.rows(self.matrices.velocity_gradient(), elements, "slopes")
        mean = faces.rows(self.matrices.face_means(), cells, "means")
        tensor = self.context.dat(self.cells, name="velocity_gradient", shape=(9,))
        self.nut = self.context.dat(self.cells, name="nu_t")
        self.filter_area = cells.dat(filter_areas(self.volumes.volumes), "filter_area")
        return [
            Loop(velocity_gradient, self.cells, slopes.entries, self.u[slopes.pattern], tensor, d=self.dimension),
            model.loop(self.cells, tensor, self.filter_area, self.nut),
            Loop(face_viscosity, self.faces, mean.entries, self.nut[mean.pattern], self.nus, nu=self.viscosity),
            *self.scalars.diffusivity(),
        ]

    def _surveys(self) -> None:
        ctx, d = self.context, self.dimension
        self._limit, self._worst = ctx.scalar(FOREVER, "limit"), ctx.scalar(0.0, "imbalance")
        self._energy, self._momentum = ctx.scalar(0.0, "energy"), ctx.scalar(np.zeros(d), "momentum")
        out = self.spaces.cells.rows(self.matrices.outward(), self.spaces.faces, "outward")
        nus = self.nus if self.corrections is None else self.corrections.raised
        self._cfl = Loop(
            time_limit, self.cells, out.entries, self.us[out.pattern], self.nus[out.pattern], nus[out.pattern],
            self.volume, self._limit, self._worst, c1=0.35, c2=0.2,
        )  # fmt: skip
        self._limits = [self._cfl, *self.scalars.limits(out, self._limit, self._worst)]
        limits = [*self._limits, *self.scalars.bounds(out, self._limit)]
        self.limit = Chain([Reset(self._limit, FOREVER), Reset(self._worst), *limits], name="limit")
        energy = Loop(kinetic_energy, self.elements, self.u, self.weight, self._energy, self._momentum, d=d)
        self.survey = sequence(with_exact_sums([Reset(self._energy), Reset(self._momentum), energy]), "survey")
        cv, around = self.volumes, np.zeros(self.volumes.elements)
        for side in cv.faces.T:
            np.add.at(around, side, cv.area)
        own = np.stack([around[: cv.owned] ** 2, cv.volumes[: cv.owned]]).sum(axis=1)
        square, volume = ctx.comm.reduce(own, "sum")
        self._terms = float((square / volume) ** 0.5)

    def seek_steady(self) -> None:
        """Make the steady state independent of the step, see `.steady`; before `initialise`."""
        self.steady = SteadyFaces(self, self.corrections, self.scheme)
        self._loops()

    # ------------------------------------------------------------------------------------- running
    def initialise(
        self, velocity: Callable[[Array], npt.ArrayLike] | Sequence[float], scalars: Mapping[str, Array] | None = None,
        time: float = 0.0,
    ) -> Status:  # fmt: skip
        """Set the velocity in the cells, and project it onto fields without divergence.

        Parameters
        ----------
        velocity
            ``(d,)``, or a function of the centres ``(cells, d)`` that returns as many vectors.
        scalars
            Name to values of the owned cells, ``(cells,)``; of others those that `Scalar` says.
        time
            At which the flow starts: what is given at boundaries is that of then.
        """
        cv = self.volumes
        places = cv.centres[: cv.owned]
        values = velocity(places) if callable(velocity) else finite_vector("velocity", velocity, self.dimension)
        self._begin(np.asarray(values, dtype=np.float64), scalars, time)
        self.phi.write(np.zeros(cv.owned))
        self.scalars.act(0.0)
        self._forget()
        self.project()
        self.given_velocities.check(time)
        with activity("initial velocity without divergence"):
            status = self._solved(first=True)
        self.after()
        self._forget()
        self.phi.write(np.zeros(cv.owned))
        self.time, self.steps, self.dt = time, 0, 0.0
        return status

    def _begin(self, inside: Array, scalars: Mapping[str, Array] | None, time: float) -> None:
        """Set velocity and scalars of the cells, and all that is given to that of a time. Collective."""
        self.given_velocities.update(time)
        if self.given_viscosity is not None:
            self.given_viscosity.update(time)
        if self.given_forces is not None:
            self.given_forces.prepare(time)
        values = self.given.read()
        values[self.spaces.inside] = inside
        self.u.write(values)
        self.scalars.initialise(scalars or {}, time)

    def take(self, scalars: Mapping[str, Array] | None = None, time: float = 0.0) -> None:
        """Begin with the velocities that `u` and `us` have been set to, which have no divergence.

        Those of the boundary are set here, as they are given. After `initialise`, which sets all else.

        Parameters
        ----------
        scalars, time
            As `initialise` takes them.
        """
        self._begin(self.u.read()[self.spaces.inside], scalars, time)
        self._forget()
        for loop in self._closing:
            loop()
        self.phi.write(np.zeros(self.volumes.owned))
        self.time, self.steps, self.dt = time, 0, 0.0

    def check_next(self) -> None:
        """Let the pressure of the next step be solved to a residual of its own, as that of a run's last step."""
        self._check_next = True

    def rounding(self) -> float:
        """Return what rounding leaves of the right-hand side of the pressure, ``epsilon * |A| * |u|``. Collective.

        ``|A|`` are the areas around the cells, ``|u|`` the root mean square of the velocity.
        """
        self.survey()
        return float(np.finfo(np.float64).eps) * self._terms * (2.0 * float(self._energy.value)) ** 0.5

    def verify(self) -> Status:
        """Return what the pressure of the last step is by the residual of itself. Collective."""
        return self.solver.verify()

    def step(self, dt: float) -> Status:
        """Advance by ``dt``; return what the pressure solver says.

        Of several stages: the first that has not converged, else the last with the iterations of all.

        Raises
        ------
        SolverError
            If ``dt`` is not positive, or the pressure is not finite.
        """
        check_step(dt)
        self.step_length.value = dt
        *first, last_share = self.scheme.shares
        if not first:
            self.share.value = 0.5 * dt / self.dt if self.dt and self.scheme.extrapolates else 0.0
            ahead = 0.5 * dt if self.scheme.extrapolates else 0.0
            status, part = self._project(dt, self.dt, self.time + ahead, self.time + dt), 1.0
        else:
            self.keep()
            found, last, begin = [], self._part * self.dt, 0.0
            for share in self.scheme.shares:
                self.blend.value, acting = share, (1.0 - share) * dt
                end = (1.0 - share) * (begin + dt)
                found.append(self._project(acting, last, self.time + begin, self.time + end))
                last, begin = acting, end
            count = sum(stage.iterations for stage in found)
            status = next((stage for stage in found if not stage.converged), replace(found[-1], iterations=count))
            part = 1.0 - last_share
        self.time, self.steps, self.dt, self._part = self.time + dt, self.steps + 1, float(dt), part
        self._check_next = False
        return status

    def _forget(self) -> None:
        """Forget the pressure of the last solve, and what is carried on."""
        for part in (self.corrections, self.steady):
            if part is not None:
                part.reset()

    def _solved(self, first: bool) -> Status:
        """Solve for the pressure; at the start until it does not change, each time with what the last one says."""
        self.solver.check_next = self._check_next
        status = self.solver.solve()
        if self.corrections is not None and self._again is not None and first:
            self.corrections.ratio.value = 1.0
            for _ in range(FIRST_SOLVES):
                self._again()
                more = self.solver.solve()
                status, made = replace(more, iterations=status.iterations + more.iterations), more.iterations
                if not made:
                    break
        return status

    def _project(self, acting: float, last: float, rates: float, end: float) -> Status:
        """Make a step or a stage, in which the pressure acts for a time; in the last one it did for another.

        What is given at boundaries is that of its ``end``, what makes the fluid change that of the time of its rates.
        """
        self.scalars.prepare(rates, end)
        self.scalars.act(acting)
        self.given_velocities.prepare(end)
        if self.given_forces is not None:
            self.given_forces.prepare(rates)
        if self.given_viscosity is not None:
            self.given_viscosity.prepare(rates, end)
        if self.corrections is not None:
            self.corrections.ratio.value = acting / last if last else 0.0
        if self.steady is not None:
            self.steady.acting.value = acting
        self.before()
        self.given_velocities.check(end)
        self.scalars.check()
        for given in (self.given_forces, self.given_viscosity):
            if given is not None:
                given.check()
        status = self._solved(first=not last)
        if status.reason == "not finite":
            where = f"step {self.steps + 1}, time {self.time:.6g}"
            text = f"{where}: the velocity is not finite; take dt smaller"
            raise Divergence(text, field="velocity", step=self.steps + 1, time=self.time)
        self.after()
        return status

    def stable_step(self, c1: float = 0.35, c2: float = 0.2) -> float:
        """Return the largest stable step, ``min(c1 2 Omega / sum |u_s| A, c2 Omega / sum nu_s A / delta)``.

        See `fluxloom.fv.incompressible.kernels.time_limit`.
        """
        if (c1, c2) != (self._cfl.constants["c1"], self._cfl.constants["c2"]):
            for loop in self._limits:
                loop.set(c1=c1, c2=c2)
        self.limit()
        return float(self._limit.value)

    def state(self) -> FlowState:
        """Return time, energy, momentum and imbalance of mass now."""
        self.limit()
        self.survey()
        energy, momentum, worst = Global.read_all([self._energy, self._momentum, self._worst])
        return FlowState(self.time, self.steps, self.dt, float(energy), momentum, float(worst))

    @property
    def impulse(self) -> float:
        """``phi / p``: the time for which the pressure of the last solve has acted, 1 before the first step."""
        return self._part * self.dt or 1.0

    def velocity(self) -> Array:
        """Return the velocity of the owned cells, ``(cells, d)``."""
        return self.u.read()[self.spaces.inside]

    def pressure(self) -> Array:
        """Return the kinematic pressure of the owned cells, ``p = phi / dt``, ``(cells,)``, of the last step."""
        return self.phi.read() / self.impulse
