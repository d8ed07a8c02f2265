"""Incompressible flow as a portable algebra: a step of three kernels, SpMV, AXPY and DOT, each a pass of its own.

The same equations, matrices and boundaries as `fluxloom.solvers.incompressible.flow.Incompressible` with Adams and
Bashforth's steps; the components of vectors are scalar fields that lie apart. It is there to be counted and timed:
where three kernels are fast, the step is, and its time is known beforehand. For simulations
take `Incompressible`, whose loops do several of these passes at once.

====================  =====  =====  ====  ======  ==============================================================
sub-step (3D)         SpMV   AXPY   DOT   extra   made of
====================  =====  =====  ====  ======  ==============================================================
predictor             8      7      0     0       E_C, E_D, 3 C, 3 D; 3 + 1 extrapolations, 3 u_p = u + dt r
pressure source       3      1      0     0       M_x, M_y, M_z; times -1/dt
pressure start        3      2      2     0       residual, preconditioner, norm of the right-hand side
pressure iteration    2      3      2     0       A, D^-1; x, r, p; (p, q), (r, z)
correction            3      3      0     0       G_x, G_y, G_z; u = u_p - dt g
face velocity         7      0      0     0       6 Gamma (of u and of g), G_s
eddy viscosity        10     0      0     1       9 gradients, the mean at faces; the model with its contractions
time step             0      0      0     1       the least over the cells
====================  =====  =====  ====  ======  ==============================================================

The published table has 30, 10, 2, 2 outside the solver. Beyond it are the extrapolation of the velocity at the faces
(an AXPY; the published code convects with that of the last step), the mean of the eddy viscosity at the faces (an
SpMV), and the start of the solver. Its 2 DOT are the contractions of tensors, which are in the pointwise function here.
Boundaries with given velocities need nothing, as their values stay; outflows and planes of symmetry take two pointwise
passes, a force an AXPY for each direction. Without a model ``D`` stays, and there is neither ``E_D`` nor the model.
On meshes whose faces do not stand across the lines between cells the corrections of
`fluxloom.solvers.algebraic.corrections` are added.

References
----------
G. Oyarzun, R. Borrell, A. Gorobets, A. Oliva: *Portable implementation model for CFD simulations. Application to hybrid
CPU/GPU supercomputers*. Int. J. Comput. Fluid Dyn. 31, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.incompressible.component_kernels import boundary_components, gather_tensor
from fluxloom.fv.incompressible.kernels import time_limit
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth
from fluxloom.linalg.krylov.counted_gradient import CountedGradient
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.krylov.three_kernels import Algebra, KernelCalls
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.status import Status, Stop
from fluxloom.solvers.algebraic.corrections import AlgebraicCorrections
from fluxloom.solvers.algebraic.matrices import AlgebraicMatrices
from fluxloom.solvers.incompressible.corrections import FIRST_SOLVES
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.types import check_step

__all__ = ["ITERATION", "START", "AlgebraicStep", "SubStep"]

Array = npt.NDArray[np.float64]
FOREVER = 1.0e30
START, ITERATION = "pressure start", "pressure iteration"


@dataclass(frozen=True)
class SubStep:
    """A part of a step.

    Attributes
    ----------
    name
        As in the table.
    chains
        What it runs, in order.
    calls
        Kernels of one call, counted by what the loops are.
    """

    name: str
    chains: tuple[Chain, ...]
    calls: KernelCalls

    def __call__(self) -> None:
        """Run it."""
        for chain in self.chains:
            chain()


@dataclass(frozen=True)
class _Fields:
    """The two levels of velocity as one parity of steps sees them: ``old`` is overwritten by the new one."""

    old: tuple[Dat, ...]
    now: tuple[Dat, ...]
    us_old: Dat
    us_now: Dat


class AlgebraicStep:
    """Goes on from where a flow is, with three kernels. Collective on several ranks.

    Parameters
    ----------
    flow
        Gives matrices, boundaries, viscosity, model, the state, and when the pressure solver stops. It is not changed.
        A force in directions in which it has none at this moment is not looked at later.
    stop
        Of the pressure solver, see `fluxloom.linalg.krylov.counted_gradient.CountedGradient`; by default that of the
        flow, where it has one, else 1e-6 relative to the right-hand side.

    Attributes
    ----------
    counts
        For each sub-step of the table what has run so far.
    plan
        The sub-steps of the next step, without the pressure solver and the time step.
    solver
        The pressure solver.

    Raises
    ------
    SolverError
        If the flow's steps are those of Runge and Kutta, it carries scalars or seeks a steady state, or its force acts
        on walls or outflows.
    """

    def __init__(self, flow: Incompressible, stop: Stop | None = None) -> None:
        if not isinstance(flow.scheme, AdamsBashforth):
            raise SolverError(f"AlgebraicStep: the scheme is AdamsBashforth(), not {flow.scheme!r}")
        if flow.scalars.all:
            raise SolverError(f"AlgebraicStep: it has no scalars, the flow carries {', '.join(flow.scalars.all)}")
        if flow.given_velocities.loops():
            raise SolverError("AlgebraicStep: velocities at boundaries stay as they are, and those of the flow change")
        if flow.given_forces is not None:
            raise SolverError("AlgebraicStep: a force is one vector, and that of the flow changes in space or time")
        if flow.given_viscosity is not None:
            raise SolverError("AlgebraicStep: the viscosity is a number, and that of the flow is given in space")
        if flow.scalars.buoyancy is not None:
            raise SolverError("AlgebraicStep: no forces through faces, and that of the flow acts on walls or outflows")
        if flow.steady is not None:
            raise SolverError("AlgebraicStep: its steady state depends on dt, and the flow seeks one that does not")
        self.flow, self.context, self.dimension = flow, flow.context, flow.dimension
        self.algebra, self.matrices = Algebra(flow.context), AlgebraicMatrices(flow)
        self.time, self.steps, self.dt = flow.time, flow.steps, flow.dt
        self._fields()
        self._scalars()
        known = flow.corrections
        self.corrections = None if known is None else AlgebraicCorrections(flow, known, self.algebra)
        if stop is None:
            stop = flow.solver.stop if isinstance(flow.solver, Krylov) else Stop(rtol=1e-6)
        self.solver = CountedGradient(self.algebra, self.matrices.poisson, self.b, self.p, stop)
        self._refresh_diffusion()
        levels = (self.u[0], self.u[1], self.us[0], self.us[1])
        first, second = _Fields(*levels), _Fields(levels[1], levels[0], levels[3], levels[2])
        self._plans = tuple(self._sub_steps(at) for at in (first, second))
        self._limits = tuple(self._time_limit(at.us_now) for at in (first, second))
        self._parity = 0
        names = [*(part.name for part in self.plan), START, ITERATION, "time step"]
        self.counts: dict[str, KernelCalls] = {name: KernelCalls() for name in names}

    # ------------------------------------------------------------------------------------- set-up
    def _fields(self) -> None:
        """Take the state of the flow: the level before the last is in ``u[0]``, the last in ``u[1]``."""
        flow, ctx, d = self.flow, self.context, self.dimension
        begun = flow.dt > 0.0
        levels = ((flow.old if begun else flow.u, flow.us_old if begun else flow.us), (flow.u, flow.us))
        self.u = tuple(
            tuple(ctx.dat(flow.elements, _column(level.read(), k), f"u{n}_{k}") for k in range(d))
            for n, (level, _) in enumerate(levels)
        )
        self.us = tuple(ctx.dat(flow.faces, faces.read(), f"u_s{n}") for n, (_, faces) in enumerate(levels))
        self.nus = ctx.dat(flow.faces, flow.nus.read(), "nu_s")
        self.molecular = ctx.dat(flow.faces, np.full(flow.faces.size, flow.viscosity), "nu")
        inside = (flow.inverse.read() > 0.0).astype(np.float64)
        self.inside = ctx.dat(flow.elements, inside, "inside")
        self.r = ctx.dat(flow.elements, name="r")
        self.g = tuple(ctx.dat(flow.elements, name=f"g_{k}") for k in range(d))
        self.p = ctx.dat(flow.cells, flow.phi.read() / (flow.dt or 1.0), "p")
        self.b, self.sum = ctx.dat(flow.cells, name="b"), ctx.dat(flow.cells, name="sum")

    def _scalars(self) -> None:
        ctx, force = self.context, np.atleast_1d(np.asarray(self.flow.acceleration.value, dtype=np.float64))
        self._grow, self._shrink, self._dt, self._minus_dt, self._scale = (
            ctx.scalar(0.0, name) for name in ("1+share", "-share", "dt", "-dt", "-1/dt")
        )
        self._forces = {k: ctx.scalar(0.0, f"dt*force_{k}") for k in range(self.dimension) if force[k] != 0.0}
        self._limit, self._worst = ctx.scalar(FOREVER, "limit"), ctx.scalar(0.0, "imbalance")

    def _refresh_diffusion(self) -> None:
        """Form the entries of ``D``, which stay as they are without a model."""
        rows = self.matrices
        self.algebra.spmv(rows.diffusion_entries, self.nus, rows.diffusion.values)()

    def _sub_steps(self, at: _Fields) -> tuple[SubStep, ...]:
        parts: list[tuple[str, Sequence[Loop | Reset]]] = [("predictor", self._predictor(at.old, at.now, at))]
        sides = [("boundary", side)] if (side := self._boundary(at.old)) else []
        source = ("pressure source", self._source(at.old, at.us_old))
        after = [("correction", self._correction(at.old)), ("face velocity", self._face_velocity(at.old, at.us_old))]
        if self.corrections is not None:
            after.reverse()
        parts += [*sides, source, *after, *sides]
        found = [SubStep(name, (Chain(steps, fuse=False, name=name),), KernelCalls.of(steps)) for name, steps in parts]
        return (*found, *self._subgrid(at.old))

    def _predictor(self, ahead: Sequence[Dat], now: Sequence[Dat], at: _Fields) -> list[Loop | Reset]:
        """``u_e = (1 + s) u - s u_old`` in place of ``u_old``, ``u_p = u + dt r``, ``r = -Omega^-1 (C + D) u_e``."""
        make, rows = self.algebra, self.matrices
        steps = [make.axpy(self._grow, at.us_now, at.us_old, self._shrink)]
        steps += [make.axpy(self._grow, u, e, self._shrink) for u, e in zip(now, ahead, strict=True)]
        steps.append(make.spmv(rows.convection_entries, at.us_old, rows.convection.values))
        nus = self.nus
        if self.corrections is not None:
            steps += self.corrections.velocity(ahead, at.us_old, nus)
            nus = self.corrections.raised
        if self.flow.model is not None or self.corrections is not None:
            steps.append(make.spmv(rows.diffusion_entries, nus, rows.diffusion.values))
        for k, (u, e) in enumerate(zip(now, ahead, strict=True)):
            steps += [
                make.spmv(rows.convection, e, self.r),
                make.spmv_onto(rows.diffusion, e, self.r),
                *(self.corrections.added(k, self.r) if self.corrections is not None else ()),
                make.axpy_apart(self._dt, self.r, make.one, u, e),
            ]
            if k in self._forces:
                steps.append(make.axpy(self._forces[k], self.inside, e))
        return list(steps)

    def _source(self, u: Sequence[Dat], us: Dat) -> list[Loop | Reset]:
        """``b = -M u_p / dt``; with corrections ``u_s`` before the projection, and its divergence."""
        make, known = self.algebra, self.corrections
        if known is not None:
            steps = known.source(u, us, self.matrices.gamma, self._minus_dt)
            steps.append(make.spmv(known.outward, us, self.sum))
        else:
            steps = self._summed(self.matrices.divergence, u, self.sum)
        return [*steps, make.axpy(self._scale, self.sum, self.b, make.nothing)]

    def _summed(self, matrices: Sequence[SparseMatrix], x: Sequence[Dat], y: Dat) -> list[Loop]:
        """``y = sum A_k x_k``."""
        make, pairs = self.algebra, list(zip(matrices, x, strict=True))
        return [make.spmv(*pairs[0], y), *(make.spmv_onto(matrix, vector, y) for matrix, vector in pairs[1:])]

    def _correction(self, u: Sequence[Dat]) -> list[Loop | Reset]:
        """``g = G p``, ``u = u_p - dt g``."""
        make = self.algebra
        slopes = [make.spmv(matrix, self.p, g) for matrix, g in zip(self.matrices.gradient, self.g, strict=True)]
        if self.corrections is not None:
            slopes += [loop for k, g in enumerate(self.g) for loop in self.corrections.corrected(k, g)]
        return [*slopes, *(make.axpy(self._minus_dt, g, v) for g, v in zip(self.g, u, strict=True))]

    def _face_velocity(self, u: Sequence[Dat], us: Dat) -> list[Loop | Reset]:
        """``u_s = Gamma u - dt (G_s p - Gamma g)``; boundary elements still have their velocity of the predictor."""
        make, rows = self.algebra, self.matrices
        if self.corrections is not None:
            return list(self.corrections.slopes(rows.slope, self.p, us, self._minus_dt))
        return [
            *self._summed(rows.gamma, self.g, us),
            make.spmv_onto(rows.slope, self.p, us, make.minus),
            make.spmv_onto(rows.gamma[0], u[0], us, self._minus_dt),
            *(make.spmv_onto(matrix, v, us) for matrix, v in zip(rows.gamma[1:], u[1:], strict=True)),
        ]

    def _boundary(self, u: Sequence[Dat]) -> list[Loop | Reset]:
        """Return what sets outflows and planes of symmetry: nothing where all velocities are given, which stay."""
        flow = self.flow
        if not any(self.context.comm.allgather(not flow.conditions.prescribed.all())):
            return []
        behind = [v[flow.behind[0]] for v in u]
        return [Loop(boundary_components, flow.boundary, flow.kind, flow.normal, flow.given, *[*behind, None][:3],
                     *[*u, None][:3], formulas=flow.conditions.formulas)]  # fmt: skip

    def _subgrid(self, u: Sequence[Dat]) -> tuple[SubStep, ...]:
        """Return the sub-step of the model: gradients, one pointwise pass, means at the faces."""
        flow, make, means = self.flow, self.algebra, self.matrices.means
        if flow.model is None or means is None:
            return ()
        ctx, d = self.context, self.dimension
        parts = [ctx.dat(flow.cells, name=f"g_{i}{k}") for i in range(d) for k in range(d)]
        tensor, nut = ctx.dat(flow.cells, name="gradient", shape=(9,)), ctx.dat(flow.cells, name="nu_t")
        slopes = [make.spmv(self.matrices.slopes[m % d], u[m // d], parts[m]) for m in range(d * d)]
        whole = [parts[d * i + k] if max(i, k) < d else None for i in range(3) for k in range(3)]
        gather = Loop(gather_tensor, flow.cells, *whole, tensor)
        model = [gather, flow.model.loop(flow.cells, tensor, flow.filter_area, nut)]
        mean = [make.spmv_from(means, nut, self.molecular, self.nus)]
        chains = (
            Chain(slopes, fuse=False, name="gradients"),
            Chain(model, transient=[tensor], name="model"),
            Chain(mean, fuse=False, name="means"),
        )
        return (SubStep("eddy viscosity", chains, KernelCalls.of([*slopes, *mean]) + KernelCalls(extra=1)),)

    def _time_limit(self, us: Dat) -> Chain:
        flow = self.flow
        out = flow.spaces.cells.rows(flow.matrices.outward(), flow.spaces.faces, "outward")
        raised = self.nus if self.corrections is None else self.corrections.raised
        loop = Loop(time_limit, flow.cells, out.entries, us[out.pattern], self.nus[out.pattern], raised[out.pattern],
                    flow.volume, self._limit, self._worst, c1=0.35, c2=0.2)  # fmt: skip
        return Chain([Reset(self._limit, FOREVER), Reset(self._worst), loop], fuse=False, name="time step")

    # ------------------------------------------------------------------------------------- running
    @property
    def plan(self) -> tuple[SubStep, ...]:
        """The sub-steps of the next step, without the pressure solver and the time step."""
        return self._plans[self._parity]

    def stable_step(self) -> float:
        """Return the largest stable step, see `fluxloom.fv.incompressible.kernels.time_limit`."""
        self._limits[self._parity]()
        self._count("time step", KernelCalls(extra=1))
        return float(self._limit.value)

    def step(self, dt: float) -> Status:
        """Advance by ``dt``; return what the pressure solver says.

        Raises
        ------
        SolverError
            If ``dt`` is not positive, or the pressure is not finite.
        """
        check_step(dt)
        self._set_scalars(dt)
        status: Status | None = None
        for part in self.plan:
            part()
            self._count(part.name, part.calls)
            if part.name == "pressure source":
                status = self._solve()
                if self.corrections is not None and not self.dt:
                    status = self._again()
        assert status is not None
        self.time, self.steps, self.dt, self._parity = self.time + dt, self.steps + 1, float(dt), 1 - self._parity
        return status

    def _set_scalars(self, dt: float) -> None:
        share = 0.5 * dt / self.dt if self.dt else 0.0
        self._grow.value, self._shrink.value = 1.0 + share, -share
        self._dt.value, self._minus_dt.value, self._scale.value = dt, -dt, -1.0 / dt
        force = np.atleast_1d(np.asarray(self.flow.acceleration.value, dtype=np.float64))
        for k, value in self._forces.items():
            value.value = dt * force[k]

    def _again(self) -> Status:
        """Solve again at the start, as the fused solver does, each time with what the last solution says."""
        parts = {part.name: part for part in self.plan}
        status = None
        for _ in range(FIRST_SOLVES):
            for name in ("face velocity", "pressure source"):
                parts[name]()
                self._count(name, parts[name].calls)
            status = self._solve()
            if not status.iterations:
                break
        assert status is not None
        return status

    def _solve(self) -> Status:
        status = self.solver.solve()
        self._count(START, self.solver.starts * self.solver.starting)
        self._count(ITERATION, self.solver.made * self.solver.iterating)
        if status.reason == "not finite":
            where = f"step {self.steps + 1}, time {self.time:.6g}"
            raise SolverError(f"{where}: the velocity is not finite; take dt smaller")
        return status

    def _count(self, name: str, calls: KernelCalls) -> None:
        self.counts[name] = self.counts[name] + calls

    def velocity(self) -> Array:
        """Return the velocity of the owned cells, ``(cells, d)``."""
        now = self.u[1 - self._parity]
        return np.stack([u.read() for u in now], axis=1)[self.flow.spaces.inside]

    def pressure(self) -> Array:
        """Return the kinematic pressure of the owned cells, ``(cells,)``; where only it is settled ``p - mean(p)``."""
        found = self.p.read()
        if not self.flow.floating:
            return found
        total = self.context.comm.reduce(np.array([found.sum(), found.size], dtype=np.float64), "sum")
        return found - total[0] / total[1]


def _column(values: Array, k: int) -> Array:
    return np.ascontiguousarray(values[:, k])
