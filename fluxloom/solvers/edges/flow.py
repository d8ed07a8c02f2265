r"""Incompressible flow on linear triangles and tetrahedra, edge by edge: explicit momentum, implicit pressure.

.. math:: \partial_t u + (u \cdot \nabla) u = -\nabla p + \nabla \cdot (\nu \nabla u) + b, \quad \nabla \cdot u = 0

Velocity and kinematic pressure live at the points, linear in between, with orthogonal subscales for stabilisation. A
step from ``n`` to ``n + 1``:

1. ``u^`` by the classical method of Runge and Kutta of fourth order from ``du/dt = b - xi - grad p^n + ...``
2. ``sum_J (tau_IJ + dt / 2) L_IJ (r_J - r_I) = -(divergence of u^ and the subscales of p^n)`` for ``r = p^{n+1} - p^n``
3. ``u^{n+1} = u^ - dt / 2 M^-1 sum_J grad_IJ (r_J - r_I)``

Everything is in the integrals of the edges (`fluxloom.fe.edges.operators`), known once the mesh is; the kernels are
those of `fluxloom.fe.edges.flow`, where the discrete equations are. The matrix of the pressure is filled on the device
in each step, as ``tau`` depends on the velocity.

Sources: R. Codina, A. Folch, International Journal for Numerical Methods in Fluids 44 (2004) 483-503; R. Codina,
Applied Numerical Mathematics 58 (2008) 264-283.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import Divergence, MeshError, SolverError, did_you_mean
from fluxloom.core.strategies import require_strategy
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.chain import Chain
from fluxloom.fe.edges.operators import EdgeOperators, operators_on
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.fv.given import Given
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Diagonal, Jacobi
from fluxloom.linalg.status import STEPS_CHECKED, Status, Stop
from fluxloom.solvers.edges.boundary import EdgePatch
from fluxloom.solvers.edges.loops import EdgeLoops, Field, Reaction, vectors
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.stages import stable_step
from fluxloom.solvers.flow_spaces import place_in
from fluxloom.solvers.incompressible.types import FlowState, check_step, surplus

__all__ = ["EdgeFlow"]

Array = npt.NDArray[np.float64]

_CHANGE = 0.2
"""Of the step, from which on a preconditioner is made anew."""
_LONG = 1e3
"""Of the largest stable step: one beside which ``tau`` is short, to take the divergence away."""


class EdgeFlow:
    """Incompressible flow on a mesh of triangles or tetrahedra.

    Parameters
    ----------
    mesh
        Triangles or tetrahedra in a context, from `fluxloom.fe.edges.point_mesh.point_mesh`; each face of the boundary
        is in a patch. On several ranks everything is collective.
    viscosity
        Kinematic, ``nu``: a number, a value in space and time (`fluxloom.fv.given.Given`), or a function of the points
        ``(n, d)`` that returns ``(n,)``; m^2/s.
    boundaries
        Patch to `NoSlip`, `Inflow`, `Outflow`, `Symmetry` (slip) or `WallLaw`; each patch needs one. Without any
        `Outflow` the pressure has the mean 0 over the points.
    force
        Acceleration ``b``: ``(d,)`` numbers or values, or a function of the points that returns ``(n, d)``; m/s^2.
    scheme
        Of the discretisation.
    model
        Of the scales that the mesh does not resolve; its eddy viscosity is that of the velocity at the start of a step.
    stop, preconditioner
        Of the solver of the pressure: by default 1e-6 relative to the right-hand side, and `Jacobi`, the inverse of
        the diagonal of each step. Other preconditioners are made from the matrix of the first step, and again when the
        step has changed by a fifth.
    krylov
        Of the pressure: `ConjugateGradient`, as its matrix is symmetric, or `BiCGStab`.
    operators
        Of the mesh, where they exist; by default with ``SoA`` storage, as most loops read a few numbers of an edge.

    Attributes
    ----------
    time, steps, dt
        Since the start, s; steps made; length of the last one.
    spent
        Seconds of the loops of solvers of the pressure that others have replaced.

    Raises
    ------
    MeshError
        If the mesh has other cells, or faces of the boundary without a patch.
    SolverError
        If a patch has no boundary, or a number is out of range.
    """

    remembers = ("time", "steps", "dt", "_solver_dt")
    keeps = ("_made_of",)

    def __init__(
        self,
        mesh: PointMesh,
        viscosity: Given,
        boundaries: Mapping[str, EdgePatch],
        *,
        force: Field = (),
        scheme: EdgeScheme | None = None,
        model: EddyViscosity | None = None,
        stop: Stop | None = None,
        preconditioner: Preconditioner | None = None,
        krylov: type[Krylov] = ConjugateGradient,
        operators: EdgeOperators | None = None,
    ) -> None:
        require_strategy("model", model, EddyViscosity, optional=True)
        require_strategy("preconditioner", preconditioner, Preconditioner, optional=True)
        if not (isinstance(krylov, type) and issubclass(krylov, Krylov)):
            raise SolverError(f"krylov: a method such as ConjugateGradient or BiCGStab is wanted, not {krylov!r}")
        self.operators = operators_on(mesh, operators)
        if mesh.loose:
            raise MeshError(
                f"{mesh.mesh.path}: {mesh.loose} faces of the boundary are in no patch: put each of them into one"
            )
        self.mesh, self.context, self.dimension = mesh, mesh.context, mesh.dimension
        self.scheme = scheme if scheme is not None else EdgeScheme()
        self.loops = EdgeLoops(mesh, self.operators, viscosity, boundaries, force, self.scheme, model)
        self.floating = not any(self.context.comm.allgather(bool(self.loops.boundary.outlet.any())))
        self.stop = stop if stop is not None else Stop(rtol=1e-6)
        self._recipe, self._krylov = None if isinstance(preconditioner, Jacobi) else preconditioner, krylov
        self._solver: Krylov | None = None
        self._check_next = False
        self._made_of: Dat | None = None
        """Values of the matrix that the preconditioner was made of."""
        self._solver_dt, self.spent = 0.0, 0.0
        self.time, self.steps, self.dt = 0.0, 0, 0.0

    @property
    def u(self) -> Dat:
        """Velocity of the points, ``(d,)``; m/s."""
        return self.loops.u

    @property
    def p(self) -> Dat:
        """Kinematic pressure of the points; m^2/s^2."""
        return self.loops.shown

    @property
    def matrix(self) -> SparseMatrix:
        """That of the pressure, of the last step."""
        return self.loops.matrix

    def initialise(self, velocity: Field = (), time: float = 0.0) -> Status:
        """Set the velocity, with that of the boundary, and take from it what has divergence.

        Parameters
        ----------
        velocity
            ``(d,)``, or a function of the points ``(n, d)`` that returns as many vectors; m/s.
        time
            At which the flow starts, s: what is given is that of then.

        Returns
        -------
        Status
            Of the solver that takes the divergence away: ``initialise(...).require()`` raises if it did not converge.

        Raises
        ------
        SolverError
            If the velocity does not fit or is not finite, or more flows in than out and there is no outflow.
        """
        loops, held = self.loops, self.loops.boundary
        if more := surplus(self.context.comm, *held.through, not self.floating):
            raise SolverError(
                f"boundaries: the given velocities let {abs(more):.6g} more {'in' if more < 0 else 'out'}, and no "
                "patch is an outflow, where the flow is free"
            )
        loops.begin(time)
        loops.check(time)
        if loops.pressures is not None:
            loops.pressures.acting.value = 0.0
        values, given = vectors("velocity", velocity, loops.places), loops.given.read()[held.points]
        values[held.points] = np.einsum("kab,kb->ka", held.projection, values[held.points]) + given
        loops.u.write(values)
        loops.hat.write(values)
        for dat in (loops.p, loops.rise, loops.slope):
            dat.write(0.0)
        limit = self.stable_step(1.0)
        limit = limit if 0.0 < limit < float("inf") else 1.0
        loops.step_length.value = _LONG * limit
        loops.fill()
        with activity("initial velocity without divergence"):
            status = self._solve("the initial velocity")
        loops.correction()
        loops.old.write(loops.u.read())
        loops.begin_pressure()
        if loops.pressures is not None and status.converged:
            status = self._initial_pressure()
        self.time, self.steps, self.dt = time, 0, 0.0
        if not status.converged:
            return status
        return loops.subscales.begin(status, lambda: self.stable_step(1.0), self._solve)

    def _initial_pressure(self) -> Status:
        """Begin with a pressure that is smooth between outflows, as what they are given at the start."""
        loops = self.loops
        assert loops.pressures is not None
        loops.pressures.acting.value = 1.0
        loops.hat.write(loops.u.read())
        loops.p.write(0.0)
        loops.slope.write(0.0)
        with loops.subscales.kept():
            loops.fill()
        status = self._solve("the initial pressure")
        loops.p.write(loops.rise.read() + loops.pressures.rise.read())
        loops.rise.write(0.0)
        loops.show()
        return status

    def take(self, time: float = 0.0) -> None:
        """Begin at a time, s, with velocity and pressure that something has set, with what belongs to them."""
        loops = self.loops
        loops.begin(time)
        loops.check(time)
        loops.old.write(loops.u.read())
        loops.rise.write(0.0)
        loops.show()
        self.time, self.steps, self.dt = time, 0, 0.0

    def prepare(self, dt: float) -> None:
        """Make the preconditioner of the pressure for steps of ``dt``, which are then made without looking at a matrix.

        Raises
        ------
        SolverError
            If ``dt`` is not positive, or the preconditioner refuses the matrix.
        """
        check_step(dt)
        self.loops.refill(dt)
        self._renew(dt)

    def step(self, dt: float, told: Callable[[str], object] | None = None) -> Status:
        """Advance by ``dt``, s.

        Parameters
        ----------
        told
            Called after each part with its name: momentum, fill, pressure, correction.

        Returns
        -------
        Status
            Of the solver of the pressure: ``step(dt).require()`` raises where it did not converge.

        Raises
        ------
        SolverError
            If ``dt`` is not positive, or velocity or pressure are not finite.
        """
        check_step(dt)
        loops, tell = self.loops, told if told is not None else _nobody
        loops.step_length.value = dt
        loops.prepare(self.time, dt)
        loops.momentum()
        loops.check(self.time + dt)
        tell("momentum")
        loops.fill()
        tell("fill")
        status = self._solve(f"step {self.steps + 1}, time {self.time:.6g}")
        tell("pressure")
        loops.correction()
        tell("correction")
        loops.stepped(dt)
        self.time, self.steps, self.dt = self.time + dt, self.steps + 1, float(dt)
        return status

    def check_next(self) -> None:
        """Let the pressure of the next step be solved to a residual of its own, as that of a run's last step."""
        self._check_next = True

    def verify(self) -> Status:
        """Return what the pressure of the last step is by the residual of itself. Collective.

        Raises
        ------
        SolverError
            Before the first step.
        """
        if self._solver is None:
            raise SolverError("there is no pressure before the first step")
        return self._solver.verify()

    def _solve(self, where: str) -> Status:
        """Solve for the rise of the pressure."""
        dt = float(self.loops.step_length.value)
        if self._solver is None or (self._recipe is not None and abs(dt / self._solver_dt - 1.0) > _CHANGE):
            self._renew(dt)
        assert self._solver is not None
        self._solver.check_next, self._check_next = self._check_next, False
        status = self._solver.solve()
        if status.reason == "not finite":
            text = f"{where}: the velocity is not finite; take dt smaller"
            raise Divergence(text, field="velocity", element="point", step=self.steps + 1, time=self.time)
        return status

    def _renew(self, dt: float) -> None:
        """Make the solver of the pressure for steps of ``dt``; what the loops of the one before took is kept."""
        if self._solver is not None:
            self.spent += sum(report.seconds for chain in self._solver.chains for report in chain.reports())
        self._solver, self._solver_dt = self._made(), dt
        if self._recipe is not None:
            values = self.loops.matrix.values
            if self._made_of is None:
                self._made_of = self.context.dat(values.set, name="pressure.made_of", dtype=values.scalar.numpy)
            self._made_of.write(values)

    def restored(self) -> None:
        """Make the preconditioner again, of the matrix that it was made of before the run was ended."""
        self.loops.show()
        if self._made_of is not None and self._recipe is not None:
            values = self.loops.matrix.values
            now = values.read()
            values.write(self._made_of)
            self._solver = self._made()
            values.write(now)

    def rounding(self) -> float:
        """Return what rounding leaves of the right-hand side of the pressure, ``epsilon sqrt(sum s^2)``. Collective."""
        self.loops.terms()
        return float(np.finfo(np.float64).eps) * float(self.loops.squares.value) ** 0.5

    def _made(self) -> Krylov:
        loops, recipe = self.loops, self._recipe
        found = self._krylov(
            loops.matrix, loops.b, loops.rise, stop=self.stop, nullspace="constant" if self.floating else "none",
            preconditioner=Diagonal(loops.inverse) if recipe is None else recipe, check_every=STEPS_CHECKED,
            name="pressure",
        )  # fmt: skip
        found.rounding = self.rounding
        return found

    @property
    def chains(self) -> Sequence[Chain]:
        """What a step runs, for reports and tuning; those of the pressure solver from the first step on."""
        solver = () if self._solver is None else self._solver.chains
        return (self.loops.momentum, self.loops.fill, *solver, self.loops.correction)

    def stable_step(self, courant: float = 0.8) -> float:
        """Return a step that is stable, s: ``courant`` of the reach of the method over a bound of the eigenvalues.

        Infinite at rest without viscosity.

        Raises
        ------
        SolverError
            If ``courant`` is not positive.
        """
        self.loops.limit()
        return stable_step(float(self.loops.rate.value), courant)

    def state(self) -> FlowState:
        """Return time, energy, momentum, and what the pressure solver left of continuity (1/s, at most in a point)."""
        loops = self.loops
        loops.survey()
        energy, momentum, worst = Global.read_all([loops.energy, loops.total, loops.worst])
        return FlowState(self.time, self.steps, self.dt, float(energy), momentum, float(worst))

    def force(self, *patches: str) -> Array:
        """Return the force of the fluid on patches, over the density: ``(d,)``, m^4/s^2 (m^3/s^2 in the plane).

        That which holds the points of the patches where they are, from the discrete equations of momentum themselves:
        pressure, friction, and the shear of a `WallLaw`. Points where patches meet are divided between them
        (`fluxloom.solvers.edges.forces`): the forces of single patches add up to that of all of them together.

        Raises
        ------
        SolverError
            If a patch is none, or there was no step.
        """
        if not self.steps:
            raise SolverError("force: there was no step yet")
        found = self.reaction(patches)
        found.chain()
        return np.asarray(found.total.value).copy()

    def reaction(self, patches: Sequence[str], about: Sequence[float] = ()) -> Reaction:
        """Return what finds the force on each point of patches, and its moment about a place. Collective.

        Raises
        ------
        SolverError
            If a patch is none, or named twice.
        """
        known, names = self.mesh.patches, tuple(patches)
        if not names:
            raise SolverError(f"force: name a patch or several ({', '.join(known)})")
        for k, name in enumerate(names):
            if not isinstance(name, str) or name not in known:
                raise SolverError(f"force: no patch {name!r}{did_you_mean(str(name), known)} ({', '.join(known)})")
            if name in names[:k]:
                raise SolverError(f"force: patch {name!r} is named twice")
        return self.loops.reaction(names, place_in(about, self.dimension))

    def velocity(self) -> Array:
        """Return the velocity of the points that this rank owns, ``(n, d)``."""
        return self.loops.u.read()

    def pressure(self) -> Array:
        """Return their kinematic pressure, ``(n,)``."""
        return self.loops.shown.read()


def _nobody(part: str) -> None:
    """Tell nobody."""
