"""Incompressible flow in a box on a staggered grid, with a direct solver of the pressure.

The equations are those of `fluxloom.fv.staggered.kernels`. Time steps are explicit: Adams-Bashforth of second order, or
Wray's Runge-Kutta method of third order with low storage, whose stages are made free of divergence one by one (H. Le,
P. Moin, *Journal of Computational Physics* 92 (1991) 369-379, who also solve for the pressure once a step only).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CheckpointError, SolverError
from fluxloom.core.strategies import require_strategy
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.primitive import Steps
from fluxloom.fv.given import Given, parts_of
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, StaggeredTimeScheme
from fluxloom.fv.staggered import kernels as kernels
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.fv.staggered.sides import check_sides, fixed_velocity, inflow_of
from fluxloom.linalg.direct.poisson import Plan
from fluxloom.solvers.incompressible.types import FlowState, SolvedDirectly, check_step, finite_vector
from fluxloom.solvers.staggered.fields import StaggeredFields
from fluxloom.solvers.staggered.given import StaggeredForce
from fluxloom.solvers.staggered.stages import StageForm, StaggeredStage
from fluxloom.values.value import has_values

__all__ = ["Staggered"]

Array = npt.NDArray[np.float64]
Velocity = Callable[[Array], Array]


class Staggered(SolvedDirectly):
    """Incompressible flow in a box.

    Parameters
    ----------
    context
        Where it runs, on one rank.
    grid
        The box.
    viscosity
        Kinematic.
    boundaries
        Of each side that is not periodic: see `fluxloom.fv.incompressible.boundary`.
    force
        Acceleration, ``(d,)``: numbers, or values in space and time (`fluxloom.fv.given.Given`).
    scheme
        How time advances: `AdamsBashforth`, the default, or `Wray`; see
        `fluxloom.fv.incompressible.projection_schemes`.
    mean_velocity
        ``(d,)``: along the one axis where it is not zero, which is periodic, the force keeps it; empty: it does not.
    library
        Of the transforms of the pressure, as `fluxloom.linalg.direct.poisson.Plan` takes it.

    Raises
    ------
    SolverError
        If boundaries or vectors do not fit, more comes in than can leave, or there are several ranks.

    Attributes
    ----------
    time, steps, dt
        Time since the start, steps, length of the last one.
    every
        Steps from one measurement of the residual to the next, the first step is measured; it waits for the device.
    stages
        Of a step.
    """

    remembers = ("time", "steps", "dt", "_before", "_part", "_change", "box")

    def __init__(
        self,
        context: Context,
        grid: StaggeredGrid,
        viscosity: float,
        boundaries: Mapping[str, Boundary] | None = None,
        *,
        force: Given = (),
        scheme: StaggeredTimeScheme | None = None,
        mean_velocity: Sequence[float] = (),
        library: str = "auto",
    ) -> None:
        if context.distributed:
            raise SolverError("flow on a staggered grid runs on one rank; take incompressible for several")
        if not np.isfinite(viscosity) or viscosity < 0:
            raise SolverError(f"the viscosity is a number that is not negative, not {viscosity!r}")
        self.context, self.grid, self.viscosity = context, grid, viscosity
        self.boundaries = dict(boundaries or {})
        self.dimension = grid.dimension
        require_strategy("scheme", scheme, StaggeredTimeScheme, optional=True)
        self.scheme = scheme if scheme is not None else AdamsBashforth()
        moving = callable(force) or has_values(force)
        self.force = finite_vector("force", () if moving else force, grid.dimension)
        self.mean_velocity = finite_vector("mean_velocity", mean_velocity, grid.dimension)
        check_sides(grid, self.boundaries)
        self._inflow = inflow_of(grid, self.boundaries)
        self._kept = self._kept_axis(moving)
        self.fields = StaggeredFields(context, grid, self.boundaries)
        self._pressure = self._pressure_steps(library)
        mean = float(self.mean_velocity[self._kept]) if self._kept >= 0 else 0.0
        self.moving = None
        if moving:
            self.moving = StaggeredForce(context, grid, self.fields.grid, parts_of(force, self.dimension, "force"))
        form = StageForm(viscosity, self.force, self._kept, mean, self._inflow, self.moving)
        self.stages = [StaggeredStage(self.fields, form) for _ in self.scheme.stages(0.0)]
        self._impulse = Loop(kernels.add_impulse, self.fields.grid, self.fields.q, self.fields.impulse, part=0.0)
        self._look = self._sampling()
        self.time, self.steps, self.dt = 0.0, 0, 0.0
        self._before, self._part, self._change = 0.0, 0.0, float("nan")
        self.every = 1

    @property
    def box(self) -> dict[str, Any]:
        """The lines of the grid, and which axes are periodic: runs on other grids of the box can start from here."""
        return {"faces": list(self.grid.faces), "periodic": list(self.grid.periodic)}

    @box.setter
    def box(self, box: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        same = all(np.array_equal(mine, theirs) for mine, theirs in zip(self.grid.faces, box["faces"], strict=True))
        if not same or list(self.grid.periodic) != list(box["periodic"]):
            raise CheckpointError("the checkpoint is of another grid")

    # ------------------------------------------------------------------------------------------ loops
    def _kept_axis(self, moving: bool) -> int:
        axes = np.flatnonzero(self.mean_velocity).tolist()
        if any(not self.grid.periodic[k] for k in axes) or len(axes) > 1:
            raise SolverError("mean_velocity: the force keeps that of one axis, which has to be periodic")
        if axes and (moving or self.force[axes[0]]):
            raise SolverError("give only one of force and mean_velocity along an axis")
        return axes[0] if axes else -1

    def _pressure_steps(self, library: str) -> Steps:
        grid, fields = self.grid, self.fields
        k = grid.stretched
        spacing = [grid.faces[a] if a == k else 1.0 / grid.inverse[a] for a in reversed(range(grid.dimension))]
        bc = ["periodic" if p else "neumann" for p in reversed(grid.periodic)]
        self.plan = Plan(grid.shape, spacing, bc, device=self.context, library=library)
        return self.plan.steps(fields.cells_of(fields.source), fields.cells_of(fields.q))

    def _sampling(self) -> Chain:
        f = self.fields
        loop = Loop(
            kernels.sample, f.grid, f.u[f.upward], f.metric(f.u, f.upward), f.fluid, f.energy, f.bulk, f.speed,
            f.imbalance, **f.constants,
        )  # fmt: skip
        return Chain([Reset(f.energy), Reset(f.bulk), Reset(f.speed), Reset(f.imbalance), loop], name="sample")

    # ------------------------------------------------------------------------------------------ start
    def initialise(self, velocity: Velocity | Sequence[Array], time: float = 0.0) -> None:
        """Set the velocity and make it free of divergence.

        Parameters
        ----------
        velocity
            A function of places ``(n, d)`` that returns ``(n, d)``, or each component at its faces, as `faces` returns
            them. What passes sides with a given velocity is theirs.
        time
            At which the flow starts: what is given at sides is that of then.

        Raises
        ------
        SolverError
            If what is given then is not finite, or more comes in than goes out and nothing is open.
        """
        f, grid = self.fields, self.grid
        whole = np.zeros((*grid.full_shape, grid.dimension))
        for a in range(grid.dimension):
            window = (*grid.face_window(a), a)
            if callable(velocity):
                places = np.broadcast_arrays(*grid.places(a))
                points = np.stack([place.ravel() for place in places], axis=1)
                whole[window] = np.asarray(velocity(points))[:, a].reshape(places[0].shape)
            else:
                whole[window] = velocity[a]
        fixed_velocity(grid, self.boundaries, whole)
        f.u.write(whole)
        self.time, self.steps, self.dt, self._before = time, 0, 0.0, 0.0
        self._give(self.stages[-1], time, time)
        self._advance(self.stages[-1], 0.0, 0.0, 0.0)
        self._check(time)
        f.q.write(np.zeros(grid.full_shape))
        f.impulse.write(np.zeros(grid.full_shape))

    # ------------------------------------------------------------------------------------------- time
    def stable_step(self, courant: float = 0.0, diffusion: float = 0.0) -> float:
        """Return the largest stable step; infinite for a fluid at rest without viscosity.

        Parameters
        ----------
        courant, diffusion
            Bounds of ``dt max sum |u_a| / dx_a`` and of ``nu dt max sum 1 / dx_a^2``; 0: those of the scheme.
        """
        limits = self.scheme.limits
        self._look()
        speed, _ = Global.read_all([self.fields.speed, self.fields.sides.fastest])
        along = sum(v / self.grid.widths(k).min() for k, v in enumerate(self.fields.fastest.tolist()))
        fast = max(float(speed), float(along))
        finest = sum(float((1.0 / self.grid.widths(k).min()) ** 2) for k in range(self.dimension))
        bounds = [(courant or limits[0], fast), (diffusion or limits[1], self.viscosity * finest)]
        return min((limit / value for limit, value in bounds if value > 0.0), default=float("inf"))

    def step(self, dt: float) -> None:
        """Advance by a time.

        Raises
        ------
        SolverError
            For a length that is not positive.
        """
        check_step(dt)
        look = not self._before or (self.steps + 1) % self.every == 0  # the first one here, of any number
        self._stages(dt, look)
        if look:
            self._change = float(np.sqrt(self.fields.change.value / self.grid.volume)) / self._part
        self.time, self.steps, self.dt, self._before = self.time + dt, self.steps + 1, dt, dt

    def _stages(self, dt: float, look: bool) -> None:
        once, last, done, begin = self.scheme.once, self.stages[-1], 0.0, self.time
        weights = self.scheme.stages(0.5 * dt / self._before if self._before else 0.0)
        for stage, (length, now, before) in zip(self.stages, weights, strict=True):
            part, solve = dt * length, not once or stage is last
            self._give(stage, begin, begin + part)
            self._advance(stage, part, dt * now, dt * before, solve=solve, look=look and stage is last)
            self._check(begin := begin + part)
            done += 0.0 if solve else part
        if once:
            self._impulse(part=done / self._before if self._before else 0.0)

    def _give(self, stage: StaggeredStage, begin: float, end: float) -> None:
        """Say when a stage begins, at which time the force acts, and when it ends, as what is given at sides does."""
        self.fields.sides.prepare(end)
        if self.moving is not None:
            self.force = self.moving.now(begin)
            if not self.moving.in_space:
                stage.push(self.force)

    def _check(self, time: float) -> None:
        """Raise `SolverError` where what was given in a stage that ended at a time is wrong."""
        self.fields.sides.check(time)
        if self.moving is not None:
            self.moving.check()

    def _advance(
        self, stage: StaggeredStage, part: float, now: float, before: float, *, solve: bool = True, look: bool = False
    ) -> None:
        """Make one stage of length ``part`` with weights of the rates now and before."""
        lagged = part / self._before if self._before else 0.0
        stage.weigh(part, now, before, lagged)
        stage.before()
        if solve:
            self._pressure()
            (stage.looking if look else stage.after)()
        else:
            stage.lagged()
        self._part = part

    # --------------------------------------------------------------------------------------- results
    def faces(self) -> list[Array]:
        """Return each component at its faces, ``(nz, ny, nx)`` with one more along its own axis if that has ends."""
        return self.fields.face_values()

    def velocity(self) -> Array:
        """Return the velocity in the middle of cells, ``(cells, d)``, x first."""
        return self.fields.mean_of_faces().reshape(-1, self.dimension)

    def pressure(self) -> Array:
        """Return the kinematic pressure of cells, ``p = q / part - mean``, ``(cells,)``; that of the last stage."""
        potential, scale = self.impulse()
        values = scale * potential.read()[self.grid.interior]
        weights = self.fields.fluid.read()[self.grid.interior]
        return (values - (values * weights).sum() / weights.sum()).ravel()

    def state(self) -> FlowState:
        """Return what the flow does now."""
        f = self.fields
        self._look()
        energy, bulk, imbalance = Global.read_all([f.energy, f.bulk, f.imbalance])
        momentum = np.array(bulk, dtype=np.float64)
        return FlowState(self.time, self.steps, self.dt, float(energy), momentum, float(imbalance))

    @property
    def residual(self) -> float:
        """The root mean square of ``du/dt`` in the last stage, when it was last measured; NaN before."""
        return self._change

    @property
    def chains(self) -> list[Chain]:
        """Every chain of a step."""
        once = self.scheme.once
        stages = [c for s in self.stages for c in (s.before, s.after, s.looking, *([s.lagged] if once else []))]
        return [*stages, self._look]

    @property
    def pressure_seconds(self) -> dict[str, float]:
        """Seconds spent so far in the parts of the solver of the pressure, where that is measured."""
        return self._pressure.seconds

    def acting_force(self) -> Array:
        """Return the acceleration in the last stage, ``(d,)``: given, or ``(U - mean(u*)) / part``, for the mean."""
        force = self.force.copy()
        if self._kept >= 0 and self._part:
            lacking = self.mean_velocity[self._kept] - float(self.fields.flow.value) / self.grid.volume
            force[self._kept] = lacking / self._part
        return force

    def impulse(self) -> tuple[Dat, float]:
        """Return the potential ``q`` of the pressure ``p = s q``, and the number ``s``."""
        once = self.scheme.once
        scale = self._before if once else self._part
        return (self.fields.impulse if once else self.fields.q), (1.0 / scale if scale else 1.0)
