"""Airfoil: two-dimensional inviscid flow over NACA 0012, explicit finite volumes on quadrilaterals.

The benchmark of the OP2 papers (Giles, Mudalige, Reguly et al.; Reguly, PhD thesis, PPCU Budapest
2014, section 5.2): five loops, two sub-steps an iteration, local pseudo-time steps. State per cell
is ``q = (rho, rho u, rho v, rho E)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Inc, Read, Write
from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import Divergence
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs
from fluxloom.kernel.intrinsics import sqrt as root
from fluxloom.mesh.generate.airfoil import WALL, AirfoilMesh
from fluxloom.mesh.ranks.distribute import DistributedMesh

__all__ = [
    "Airfoil", "AirfoilConstants", "adt_calc", "bres_calc", "primitive", "res_calc", "save_soln", "shape", "update",
]  # fmt: skip


@dataclass(frozen=True)
class AirfoilConstants:
    """Gas and scheme constants of the benchmark.

    The published program stores them in single precision and widens them; the defaults do the same,
    which is what the published residual was computed with.

    Attributes
    ----------
    gamma
        Ratio of specific heats.
    cfl
        Courant number of the local time step.
    eps
        Coefficient of the artificial dissipation.
    mach
        Free-stream Mach number, flow along x.
    """

    gamma: float = float(np.float32(1.4))
    cfl: float = float(np.float32(0.9))
    eps: float = float(np.float32(0.05))
    mach: float = float(np.float32(0.4))

    @property
    def far_field(self) -> tuple[float, float, float, float]:
        """Free stream for unit density and pressure, ``(1, M sqrt(gamma), 0, 1 / (gamma - 1) + gamma M^2 / 2)``."""
        u = sqrt(self.gamma) * self.mach
        return 1.0, u, 0.0, 1.0 / (self.gamma - 1.0) + 0.5 * u * u


@kernel
def save_soln(q: Read, qold: Write):
    """Keep the state at the start of an iteration, ``q_old = q``."""
    for k in range(4):
        qold[k] = q[k]


@func
def side(xa, xb, u, v, c):
    """Wave speed through one side: ``|u dy - v dx| + c sqrt(dx^2 + dy^2)``."""
    dx = xb[0] - xa[0]
    dy = xb[1] - xa[1]
    return fabs(u * dy - v * dx) + c * root(dx * dx + dy * dy)


@kernel
def adt_calc(x: Read, q: Read, adt: Write, *, gamma: float, cfl: float):
    """Area over local time step: ``adt = (1/cfl) sum_sides |u dy - v dx| + c |side|``."""
    ri = 1.0 / q[0]
    u = ri * q[1]
    v = ri * q[2]
    c = root(gamma * (gamma - 1.0) * (ri * q[3] - 0.5 * (u * u + v * v)))
    total = side(x[0], x[1], u, v, c)
    total += side(x[1], x[2], u, v, c)
    total += side(x[2], x[3], u, v, c)
    total += side(x[3], x[0], u, v, c)
    adt[0] = total / cfl


@func
def pressure(q, gm1):
    """Pressure of a perfect gas: ``p = (gamma - 1) (rho E - (rho u^2 + rho v^2) / 2)``."""
    return gm1 * (q[3] - 0.5 * (1.0 / q[0]) * (q[1] * q[1] + q[2] * q[2]))


@kernel
def res_calc(x: Read, q: Read, adt: Read, res: Inc, *, gm1: float, eps: float):
    """Central flux with scalar dissipation, ``F = (F_1 + F_2) / 2 + mu (q_1 - q_2)``, ``mu = eps (adt_1 + adt_2) / 2``.

    ``F_i = (V rho, V rho u + p dy, V rho v - p dx, V (rho E + p))`` with ``V = u dy - v dx``; ``R_1 += F``,
    ``R_2 -= F``.
    """
    dx = x[0][0] - x[1][0]
    dy = x[0][1] - x[1][1]
    ri = 1.0 / q[0][0]
    p1 = gm1 * (q[0][3] - 0.5 * ri * (q[0][1] * q[0][1] + q[0][2] * q[0][2]))
    vol1 = ri * (q[0][1] * dy - q[0][2] * dx)
    ri = 1.0 / q[1][0]
    p2 = gm1 * (q[1][3] - 0.5 * ri * (q[1][1] * q[1][1] + q[1][2] * q[1][2]))
    vol2 = ri * (q[1][1] * dy - q[1][2] * dx)
    mu = 0.5 * (adt[0] + adt[1]) * eps
    f = 0.5 * (vol1 * q[0][0] + vol2 * q[1][0]) + mu * (q[0][0] - q[1][0])
    res[0][0] += f
    res[1][0] -= f
    f = 0.5 * (vol1 * q[0][1] + p1 * dy + vol2 * q[1][1] + p2 * dy) + mu * (q[0][1] - q[1][1])
    res[0][1] += f
    res[1][1] -= f
    f = 0.5 * (vol1 * q[0][2] - p1 * dx + vol2 * q[1][2] - p2 * dx) + mu * (q[0][2] - q[1][2])
    res[0][2] += f
    res[1][2] -= f
    f = 0.5 * (vol1 * (q[0][3] + p1) + vol2 * (q[1][3] + p2)) + mu * (q[0][3] - q[1][3])
    res[0][3] += f
    res[1][3] -= f


@kernel
def bres_calc(x: Read, q: Read, adt: Read, res: Inc, bound: Read, far: Read, *, gm1: float, eps: float):
    """Boundary flux: ``R += p (0, dy, -dx, 0)`` on the wall, elsewhere that of `res_calc` with ``q_2 = q_inf``.

    There ``mu = eps adt``.
    """
    dx = x[0][0] - x[1][0]
    dy = x[0][1] - x[1][1]
    ri = 1.0 / q[0]
    p1 = gm1 * (q[3] - 0.5 * ri * (q[1] * q[1] + q[2] * q[2]))
    if bound[0] == WALL:
        res[1] += p1 * dy
        res[2] -= p1 * dx
    else:
        vol1 = ri * (q[1] * dy - q[2] * dx)
        ri = 1.0 / far[0]
        p2 = gm1 * (far[3] - 0.5 * ri * (far[1] * far[1] + far[2] * far[2]))
        vol2 = ri * (far[1] * dy - far[2] * dx)
        mu = adt[0] * eps
        res[0] += 0.5 * (vol1 * q[0] + vol2 * far[0]) + mu * (q[0] - far[0])
        res[1] += 0.5 * (vol1 * q[1] + p1 * dy + vol2 * far[1] + p2 * dy) + mu * (q[1] - far[1])
        res[2] += 0.5 * (vol1 * q[2] - p1 * dx + vol2 * far[2] - p2 * dx) + mu * (q[2] - far[2])
        res[3] += 0.5 * (vol1 * (q[3] + p1) + vol2 * (far[3] + p2)) + mu * (q[3] - far[3])


@kernel
def update(qold: Read, q: Write, res: RW, adt: Read, rms: Inc):
    """Advance: ``q = qold - res / adt``, clear the residual, sum its square."""
    adti = 1.0 / adt[0]
    for k in range(4):
        change = adti * res[k]
        q[k] = qold[k] - change
        res[k] = 0.0
        rms[0] += change * change


@kernel
def primitive(q: Read, w: Write, *, gm1: float):
    """Density, velocity and pressure of a state, ``(rho, rho u / rho, (gamma - 1) (rho E - rho |u|^2 / 2))``."""
    w[0] = q[0]
    w[1] = q[1] / q[0]
    w[2] = q[2] / q[0]
    w[3] = gm1 * (q[3] - 0.5 * (q[1] * q[1] + q[2] * q[2]) / q[0])


@kernel
def shape(x: Read, where: Write):
    """The mean of the corners of a cell, ``sum x_k / 4``, and its area, ``|(x_2 - x_0) x (x_3 - x_1)| / 2``."""
    for k in range(2):
        where[k] = 0.25 * (x[0][k] + x[1][k] + x[2][k] + x[3][k])
    where[2] = 0.5 * fabs((x[2][0] - x[0][0]) * (x[3][1] - x[1][1]) - (x[3][0] - x[1][0]) * (x[2][1] - x[0][1]))


class Airfoil:
    """The Airfoil benchmark as five loops and one chain.

    Parameters
    ----------
    context
        Where it runs.
    mesh
        From `fluxloom.mesh.generate.airfoil.airfoil_mesh`; on several ranks, this rank's part of it, from
        `fluxloom.mesh.ranks.distribute.distribute`.
    constants
        Gas and scheme constants.
    schedule
        For every loop; open choices are made by the cost model.
    fused
        Whether the chain may fuse loops.
    layout
        Layout of ``x``, ``q``, ``qold`` and ``res``.
    dtype
        Storage precision of the floating-point dats.
    """

    remembers = ("iterations",)

    def __init__(
        self,
        context: Context,
        mesh: AirfoilMesh | DistributedMesh,
        constants: AirfoilConstants | None = None,
        *,
        schedule: Schedule | None = None,
        fused: bool = True,
        layout: Layout | None = None,
        dtype: npt.DTypeLike = "float64",
    ) -> None:
        self.context = context
        self.partition = mesh.decomposition.report() if isinstance(mesh, DistributedMesh) else None
        self.constants = constants if constants is not None else AirfoilConstants()
        self._declare(mesh, layout, dtype)
        self._build(schedule)
        stages = (self.adt_calc, self.res_calc, self.bres_calc)
        self.chain = Chain(
            [Reset(self._rms), self.save_soln, *stages, self._first_update, *stages, self.update],
            transient=(self.qold, self.res, self.adt),
            fuse=fused,
            name="airfoil",
        )
        self.iterations = 0

    def _declare(self, mesh: AirfoilMesh | DistributedMesh, layout: Layout | None, dtype: npt.DTypeLike) -> None:
        ctx, tables = self.context, mesh.tables
        self.nodes = ctx.set(mesh.sets["nodes"], "nodes")
        self.cells = ctx.set(mesh.sets["cells"], "cells")
        self.edges = ctx.set(mesh.sets["edges"], "edges")
        self.bedges = ctx.set(mesh.sets["bedges"], "bedges")
        self.c2n = ctx.map(self.cells, self.nodes, tables["cell_nodes"], "cell_nodes")
        self.e2n = ctx.map(self.edges, self.nodes, tables["edge_nodes"], "edge_nodes")
        self.e2c = ctx.map(self.edges, self.cells, tables["edge_cells"], "edge_cells")
        self.b2n = ctx.map(self.bedges, self.nodes, tables["boundary_nodes"], "bedge_nodes")
        self.b2c = ctx.map(self.bedges, self.cells, tables["boundary_cells"], "bedge_cell")
        far = np.array(self.constants.far_field)
        n = self.cells.size
        self.x = ctx.dat(self.nodes, mesh.values["points"], "x", dtype=dtype, layout=layout)
        self.q = ctx.dat(self.cells, np.broadcast_to(far, (n, 4)), "q", dtype=dtype, layout=layout)
        self.qold = ctx.dat(self.cells, name="qold", shape=(4,), dtype=dtype, layout=layout)
        self.res = ctx.dat(self.cells, name="res", shape=(4,), dtype=dtype, layout=layout)
        self.adt = ctx.dat(self.cells, name="adt", dtype=dtype)
        self.bound = ctx.dat(self.bedges, mesh.values["boundary_codes"], "bound", dtype="int32")
        real = "float32" if ctx.device.refuses_double else "float64"
        self.far = ctx.scalar(far, "far", dtype=real)
        self._rms = ctx.scalar(0.0, "rms", dtype=real)
        self._rms_first = ctx.scalar(0.0, "rms_first", dtype=real)

    def _build(self, schedule: Schedule | None) -> None:
        gas = self.constants
        gm1 = gas.gamma - 1.0
        flux = {"gm1": gm1, "eps": gas.eps, "schedule": schedule}
        x, q, res, adt, b2c = self.x, self.q, self.res, self.adt, self.b2c[0]
        self.save_soln = Loop(save_soln, self.cells, q, self.qold, schedule=schedule)
        self.adt_calc = Loop(
            adt_calc, self.cells, x[self.c2n], q, adt, gamma=gas.gamma, cfl=gas.cfl, schedule=schedule
        )
        self.res_calc = Loop(res_calc, self.edges, x[self.e2n], q[self.e2c], adt[self.e2c], res[self.e2c], **flux)
        self.bres_calc = Loop(
            bres_calc, self.bedges, x[self.b2n], q[b2c], adt[b2c], res[b2c], self.bound, self.far, **flux
        )
        self._first_update = Loop(update, self.cells, self.qold, q, res, adt, self._rms_first, schedule=schedule)
        self.update = Loop(update, self.cells, self.qold, q, res, adt, self._rms, schedule=schedule)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The five loops, in the order of the paper."""
        return self.save_soln, self.adt_calc, self.res_calc, self.bres_calc, self.update

    def iterate(self) -> None:
        """Run one iteration: two sub-steps."""
        self.chain()
        self.iterations += 1

    def rms(self) -> float:
        """Return ``sqrt(sum (dq)^2 / cells)`` of the last sub-step."""
        return sqrt(float(self._rms.value) / self.cells.total)

    def check_finite(self) -> None:
        """Raise, on all ranks, if the state holds a NaN or infinity. Collective.

        Raises
        ------
        SolverError
            Naming the iteration and the first bad cell by its global number.
        """
        bad = np.flatnonzero(~np.isfinite(self.q.read()).all(axis=1))
        numbers = self.cells.numbers[bad]
        comm = self.context.comm
        count = int(comm.reduce(np.array([bad.size]), "sum")[0])
        first = int(comm.reduce(np.array([numbers.min(initial=np.iinfo(np.int64).max)]), "min")[0])
        if count:
            raise Divergence(
                f"iteration {self.iterations}: the state of cell {first} is not finite ({count} cells in all); "
                f"lower cfl (now {self.constants.cfl:.3g}) or raise eps (now {self.constants.eps:.3g})",
                field="state", number=first, step=self.iterations,
            )  # fmt: skip

    def fields(self) -> dict[str, npt.NDArray[Any]]:
        """Return values of the owned cells: density, velocity, pressure, energy (per volume) and Mach number.

        ``p = (gamma - 1) (rho E - rho |u|^2 / 2)``, ``M = |u| sqrt(rho / (gamma p))``.
        """
        q = self.q.read()
        rho = q[:, 0]
        velocity = q[:, 1:3] / rho[:, None]
        kinetic = 0.5 * rho * (velocity**2).sum(axis=1)
        p = (self.constants.gamma - 1.0) * (q[:, 3] - kinetic)
        mach = np.sqrt((velocity**2).sum(axis=1) * rho / (self.constants.gamma * p))
        return {"density": rho, "velocity": velocity, "pressure": p, "energy": q[:, 3], "mach": mach}

    def reports(self) -> list[LoopReport]:
        """Return what each loop or fused group has done."""
        return self.chain.reports()
