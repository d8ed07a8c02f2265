"""Forces of a flow on patches, and their coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import warps_of
from fluxloom.fv.geometry.wall_curvature import wall_curvature
from fluxloom.fv.incompressible.boundary import moving_walls
from fluxloom.fv.incompressible.face_forces import gradient_at_walls, outlet_push
from fluxloom.fv.incompressible.linear_kernels import oblique_force, warped_force
from fluxloom.fv.incompressible.linear_operators import LinearOperators
from fluxloom.fv.incompressible.scalar_boundary import boundary_sides
from fluxloom.fv.incompressible.wall_forces import (
    cells_behind,
    load_sums,
    outlet_gradients,
    pressure_gradients,
    scalar_gradient,
    turning_friction,
    wall_force,
)
from fluxloom.mesh.geometry.metrics import TENSOR
from fluxloom.solvers.flow_signals import Signal
from fluxloom.solvers.flow_spaces import Rows, patch_elements, patch_numbers, place_in
from fluxloom.solvers.incompressible.corrections import MeanGradients, oblique_sides
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = ["Force", "ForceReference", "ForceSeries", "Forces", "force_directions", "straight_pressure"]

Array = npt.NDArray[np.float64]

_SUMS = 10
"""Sums of `fluxloom.fv.incompressible.wall_forces.load_sums`."""


@dataclass(frozen=True)
class ForceReference:
    """What coefficients refer to: ``C = 2 F . e / (U^2 A)`` with kinematic forces.

    Attributes
    ----------
    speed, area
        ``U`` and ``A``; a length in two dimensions (the diameter of a cylinder).
    drag, lift
        Directions, ``(d,)``, of any length; by default x and y.
    """

    speed: float
    area: float
    drag: Sequence[float] = ()
    lift: Sequence[float] = ()


@dataclass(frozen=True)
class Force:
    """The force of a flow on patches at a moment, for a density of 1.

    Attributes
    ----------
    time
        When.
    pressure, friction : (d,)
        Its parts.
    momentum : (d,)
        What leaves through the patches in a unit of time, ``sum u_s A u_b``; nothing through walls.
    drag, lift
        Coefficients; NaN without a `ForceReference`.
    moment : (3,)
        Of pressure and friction about the point that was given; in two dimensions only the last component is not 0.
    flow, area
        Volume that leaves through the patches in a unit of time, and their area.
    mean_pressure, mean_total
        Means over the area: of the pressure, and of ``p + u^2 / 2``.
    """

    time: float
    pressure: Array
    friction: Array
    momentum: Array
    drag: float
    lift: float
    moment: Array
    flow: float
    area: float
    mean_pressure: float
    mean_total: float

    @property
    def total(self) -> Array:
        """Pressure and friction, ``(d,)``."""
        return self.pressure + self.friction


@dataclass(frozen=True)
class ForceSeries:
    """Forces at ``n`` moments.

    Attributes
    ----------
    time : (n,)
        When.
    pressure, friction : (n, d)
        Parts of the force.
    drag, lift : (n,)
        Coefficients; NaN without a `ForceReference`.
    """

    time: Array
    pressure: Array
    friction: Array
    drag: Array
    lift: Array

    def signal(self, what: Literal["drag", "lift"] = "lift") -> Signal:
        """Return a coefficient as a signal, whose frequency gives the Strouhal number."""
        return Signal(self.time, self.drag if what == "drag" else self.lift)


class Forces:
    """The force of a flow on one or several patches, summed on the device.

    ::

        F = sum (p_b n - nu_s (u_b - u_c) / delta + nu_s K u_b) A

        M = sum (x_b - x_0) x F_b

    over the boundary faces, with the outward normal ``n`` and their centres ``x_b``; on curved walls that move with the
    curvature ``K`` (`fluxloom.fv.geometry.wall_curvature`). On several ranks everything is collective.

    Parameters
    ----------
    flow
        Whose.
    patches
        Name or names.
    reference
        For coefficients.
    balance
        Whether they are the terms of the discrete equations, with the pressure of the cell and all of the friction:
        forces on all patches, the momentum that leaves and the body force make up the change of momentum to round-off.
        ``K u``, which no discrete equation has, is a part of the moment alone then; on closed walls its sum is 0.
        Else the pressure is carried from the cell to the face linearly, see `fluxloom.fv.incompressible.wall_forces`,
        and of the friction the part along the surface counts: of second order for the pressure.
    about
        Point that the moment is about, ``(d,)``; the origin by default.

    Raises
    ------
    SolverError
        If a patch does not exist, or the reference or the point does not fit.
    """

    forgets = ("load",)

    def __init__(
        self,
        flow: Incompressible,
        patches: str | Sequence[str],
        reference: ForceReference | None = None,
        *,
        balance: bool = False,
        about: Sequence[float] = (),
    ) -> None:
        self.flow, self.reference, self.balance = flow, reference, balance
        self.about = place_in(about, flow.dimension)
        self.patches = (patches,) if isinstance(patches, str) else tuple(patches)
        self._directions = None if reference is None else force_directions(reference, flow.dimension)
        ctx, d, elements, cv = flow.context, flow.dimension, flow.spaces.elements, flow.volumes
        over = patch_elements(flow, self.patches)
        reach = np.zeros((cv.elements, d))
        behind = cv.faces[cv.interior :, 0]
        reach[cv.cells :] = cv.centres[cv.cells :] - cv.centres[behind]
        if balance and flow.given_forces is not None and flow.given_forces.in_space:
            raise SolverError("forces: the terms of the discrete equations are none where a force differs from place "
                              "to place: leave balance (form = \"balance\") out")  # fmt: skip
        if balance and flow.given_viscosity is not None and flow.given_viscosity.in_space:
            raise SolverError("forces: the terms of the discrete equations are those of a viscosity that is the same "
                              "everywhere: leave balance (form = \"balance\") out")  # fmt: skip
        self._against = np.zeros((1, 2, 3))
        if balance and flow.corrections is not None:
            self._against = self._mirrored(reach)
        self._slope = ctx.dat(flow.cells, name="pressure.slope", shape=(d,))
        self.load = ctx.dat(flow.elements, name="load", shape=(2 * d + 2,))
        """Of boundary elements: forces of pressure (times the impulse) and friction, pressure, volume that leaves."""
        self._means = ctx.scalar(np.zeros(_SUMS), "moments")
        x, y, z = self.about
        site = np.zeros((cv.elements, d + 1))
        site[:, :d], site[cv.cells :, d] = cv.centres, cv.area[cv.interior :]
        self._sums = tuple(ctx.scalar(np.zeros(d), name) for name in ("pressure", "friction", "momentum"))
        sides = elements.rows(boundary_sides(cv), flow.spaces.faces, "force.sides")
        cells = elements.rows(cells_behind(flow.matrices), flow.spaces.cells, "force.cells")
        self._loops = Chain([
            *(Reset(total) for total in (*self._sums, self._means)),
            *self._slopes(behind),
            Loop(wall_force, over, flow.kind, flow.normal, elements.dat(reach, "reach"), sides.entries,
                 flow.nus[sides.pattern], flow.us[sides.pattern], flow.phi[cells.pattern], self._slope[cells.pattern],
                 flow.u[flow.behind[0]], flow.u, self.load, *self._sums, formulas=flow.conditions.formulas, d=d,
                 tangential=int(not balance)),
            *self._oblique(over),
            *self._at_outflows(),
            *self._turning(sides),
            Loop(load_sums, over, self.load, flow.u, elements.dat(site, "site"), self._means, d=d, x=x, y=y, z=z),
        ], name="forces")  # fmt: skip
        self._taken = 0.0, 1.0, np.zeros(1)
        self._found: list[Force] = []

    def _at_outflows(self) -> list[Loop]:
        """Return the loop to the pressure that outflows among the patches are given. Collective."""
        flow, buoyancy = self.flow, self.flow.scalars.buoyancy
        if buoyancy is None or buoyancy.given is None or buoyancy.level is None:
            return []
        names = [name for name in self.patches if flow.boundaries[name].open]
        if not names:
            return []
        sides = flow.spaces.elements.rows(boundary_sides(flow.volumes), flow.spaces.faces, "outflow.sides")
        return [Loop(outlet_push, patch_elements(flow, names), sides.entries, flow.normal, buoyancy.level,
                     buoyancy.acting, self.load, self._sums[0], d=flow.dimension)]  # fmt: skip

    def _mirrored(self, reach: Array) -> Array:
        """Take the ways to planes of symmetry out of the reach of slopes; return what a uniform force does along them.

        The operators carry no pressure along them, but forces at faces are balanced by one: its force and moment,
        ``(1, 2, 3)``, of one that changes in time those of each direction, ``(d, 2, 3)``. Collective.
        """
        flow, cv, buoyancy = self.flow, self.flow.volumes, self.flow.scalars.buoyancy
        mirrors, normals = flow.matrices.mirrors, cv.normals[cv.interior :]
        along = np.einsum("ij,ij->i", reach[cv.cells :], normals) * mirrors
        reach[cv.cells :] -= along[:, None] * normals
        found = np.zeros((1, 2, 3))
        if buoyancy is not None and buoyancy.pushes:
            mine, d = patch_numbers(flow, self.patches) - cv.cells, cv.dimension
            pushes = [buoyancy.uniform] if buoyancy.uniform.any() else np.eye(d)
            found, arm, whole = np.zeros((len(pushes), 2, 3)), np.zeros((mine.size, 3)), np.zeros((mine.size, 3))
            arm[:, :d] = cv.centres[cv.cells + mine]
            for one, push in zip(found, pushes, strict=True):
                lift = along * np.einsum("ij,j->i", normals, push)
                whole[:, :d] = (lift[:, None] * cv.areas[cv.interior :])[mine]
                one[0, :d] = whole[:, :d].sum(axis=0)
                one[1] = np.cross(arm - np.array(self.about), whole).sum(axis=0)
        return flow.context.comm.reduce(found, "sum")

    def _slopes(self, behind: npt.NDArray[np.int64]) -> list[Loop]:
        """Return the loops to the slope by which the pressure is carried from cells to faces."""
        flow = self.flow
        known, buoyancy = flow.corrections, flow.scalars.buoyancy
        if self.balance and buoyancy is not None and buoyancy.pushes:
            rest = flow.context.dat(flow.cells, name="balanced", shape=(flow.dimension,))
            unbalanced = rest if known is None else known.pressure.mean
            force, acting = buoyancy.through, buoyancy.acting
            return [Loop(gradient_at_walls, flow.cells, unbalanced, force, acting, self._slope, d=flow.dimension)]
        return self._carried(behind) if not self.balance or known is not None else []

    def _carried(self, behind: npt.NDArray[np.int64]) -> list[Loop]:
        """Return the loop that computes the gradient of the pressure in the cells behind the patches."""
        flow = self.flow
        if flow.corrections is not None:
            loops, found = flow.corrections.whole_pressure("force.gradient", flow.scalars.buoyancy)
            self._slope = found.mean if self.balance else found.raw
            return loops
        found = patch_numbers(flow, self.patches) - flow.volumes.cells
        near = flow.context.subset(flow.cells, np.unique(behind[found]), "near")
        return straight_pressure(flow, near, self._slope, "force.gradient")

    def _turning(self, sides: Rows) -> list[Loop]:
        """Return the loop to what the transposed gradient does on curved walls that move. Collective.

        To the moment, and to the sum of the friction where that is not to be that of the discrete equations.
        """
        flow, cv, d = self.flow, self.flow.volumes, self.flow.dimension
        if not (moving := moving_walls(flow.boundaries, self.patches)):
            return []
        numbers = patch_numbers(flow, moving)
        found = wall_curvature(flow.context.comm, cv.centres[numbers], cv.normals[numbers - cv.cells + cv.interior])
        if not any(flow.context.comm.allgather(bool(found.any()))):
            return []
        whole = np.zeros((cv.elements, d * d))
        whole[numbers] = found.reshape(-1, d * d)
        friction = flow.context.scalar(np.zeros(d), "turning") if self.balance else self._sums[1]
        return [Loop(
            turning_friction, patch_elements(flow, moving), flow.spaces.elements.dat(whole, "curvature"), sides.entries,
            flow.nus[sides.pattern], flow.u, self.load, friction, d=d,
        )]  # fmt: skip

    def _oblique(self, over: Subset) -> list[Loop]:
        """Return the loops to what two-point derivatives lack in friction and momentum."""
        flow, known = self.flow, self.flow.corrections
        if known is None:
            return []
        linear, d = flow.matrices.velocity_operators, flow.dimension
        g = MeanGradients(flow, linear, known.means, "force.velocity", d)
        sides, cells, oblique = oblique_sides(flow, linear)
        return [*g.of(flow.u), Loop(
            oblique_force, over, sides.entries, oblique, flow.normal, flow.nus[sides.pattern], flow.us[sides.pattern],
            known.moment[sides.pattern], g.mean[cells.pattern], self.load, *self._sums[1:], d=d,
            tangential=int(not self.balance),
        ), *self._warped(linear, sides, cells, oblique, g.mean)]  # fmt: skip

    def _warped(self, linear: LinearOperators, sides: Rows, cells: Rows, oblique: Dat, g: Dat) -> list[Loop]:
        """Return the loop to what warped faces add to pressure and momentum. Collective."""
        flow, cv, known = self.flow, self.flow.volumes, self.flow.corrections
        rows, tensors = warps_of(cv)
        chosen = np.flatnonzero(np.isin(cv.faces[rows, 1], patch_numbers(flow, self.patches)))
        if known is None or not any(flow.context.comm.allgather(chosen.size > 0)):
            return []
        at = cv.faces[rows[chosen], 1]
        whole = np.zeros((cv.elements, 1 + TENSOR))
        whole[at, 0], whole[at, 1:] = known.passed()[at - cv.cells], tensors[chosen]
        some = flow.context.subset(flow.elements, np.sort(flow.spaces.elements.local(at)), "warped")
        return [Loop(
            warped_force, some, sides.entries, oblique, flow.spaces.elements.dat(whole, "force.warps"), flow.u,
            g[cells.pattern], self._slope[cells.pattern], self.load, self._sums[0], self._sums[2], d=flow.dimension,
        )]  # fmt: skip

    def take(self) -> None:
        """Let the device find the force of now; it does not wait for it."""
        self._loops()
        self._taken = self.flow.time, self.flow.impulse, self._acting

    @property
    def _acting(self) -> Array:
        """How long what `_mirrored` returns acts, ``(1,)``; of a force that changes times each component, ``(d,)``."""
        buoyancy, rows = self.flow.scalars.buoyancy, len(self._against)
        if buoyancy is None or not self._against.any():
            return np.zeros(rows)
        return float(buoyancy.acting.value) * (np.ones(1) if rows == 1 else np.asarray(buoyancy.through.value))

    def collect(self) -> Force:
        """Return what `take` asked for last, ``F = sum p_b n A - sum nu A (u_b - u_c) / delta``, ``2 F . e / (U^2 A)``.

        Raises
        ------
        SolverError
            If it is not finite.
        """
        time, impulse, acting = self._taken
        d = self.flow.dimension
        pressure, friction, momentum = (np.asarray(total.value, dtype=np.float64) for total in self._sums)
        sums = np.asarray(self._means.value, dtype=np.float64)
        turned = sums[:3]
        if acting.any():
            push, turn = np.einsum("r,rij->ij", acting, self._against)
            pressure, turned = pressure + push[:d], turned + turn
        pressure = pressure / impulse
        if not np.isfinite([*pressure, *friction]).all():
            raise SolverError(f"forces on {', '.join(self.patches)}: not finite at time {time:.6g}; take dt smaller")
        drag = lift = float("nan")
        if self.reference is not None and self._directions is not None:
            scale = 2.0 / (self.reference.speed**2 * self.reference.area)
            drag, lift = (float(scale * (pressure + friction) @ way) for way in self._directions)
        flow, mean, square, area = sums[6:].tolist()
        mean /= area * impulse
        return Force(
            time, pressure, friction, momentum, drag, lift, turned / impulse + sums[3:6], flow, area, mean,
            mean + square / area,
        )  # fmt: skip

    def now(self) -> Force:
        """Return the force now.

        Raises
        ------
        SolverError
            If it is not finite.
        """
        self.take()
        return self.collect()

    def sample(self) -> Force:
        """Return the force now, and keep it for `series`."""
        self._found.append(self.now())
        return self._found[-1]

    def series(self) -> ForceSeries:
        """Return all that `sample` has kept.

        Raises
        ------
        SolverError
            If there is nothing.
        """
        if not self._found:
            raise SolverError("forces: there is no sample yet: call sample() after steps")
        columns = ([getattr(force, name) for force in self._found] for name in (
            "time", "pressure", "friction", "drag", "lift"))  # fmt: skip
        return ForceSeries(*(np.array(column) for column in columns))


def force_directions(reference: ForceReference, d: int) -> tuple[Array, Array]:
    """Return unit vectors of drag and lift, ``v / |v|``."""
    for what, number in (("speed", reference.speed), ("area", reference.area)):
        if not np.isfinite(number) or number <= 0:
            raise SolverError(f"forces: reference: {what}: a positive number is wanted, not {number!r}")
    found = []
    for what, given, axis in (("drag", reference.drag, 0), ("lift", reference.lift, 1)):
        way = np.asarray(given if len(given) else np.eye(d)[axis], dtype=np.float64)
        if way.shape != (d,) or not np.isfinite(way).all() or not way.any():
            raise SolverError(f"forces: reference: {what}: a direction of {d} components is wanted, not {given!r}")
        found.append(way / np.linalg.norm(way))
    return found[0], found[1]


def straight_pressure(flow: Incompressible, over: Set, slope: Dat, name: str) -> list[Loop]:
    """Return the loops to slopes of the pressure in cells, without corrections, with what it is along outflows."""
    rows = flow.spaces.cells.rows(pressure_gradients(flow.matrices), flow.spaces.cells, name)
    loops = [Loop(scalar_gradient, over, rows.entries, flow.phi[rows.pattern], slope, d=flow.dimension)]
    force = flow.scalars.buoyancy
    if force is not None and force.level is not None:
        loops += force.at_outlets(over, outlet_gradients(flow.matrices), slope, f"{name}.outlets")
    return loops
