"""What makes an incompressible flow exact for linear fields where faces do not stand across the line between cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.incompressible.boundary import Boundary, FlowConditions, given_gradients
from fluxloom.fv.incompressible.face_forces import outward_areas
from fluxloom.fv.incompressible.linear_kernels import (
    add_borrowed,
    add_images,
    borrow,
    carry_pressure,
    face_divergence,
    face_gradient,
    flux_corrections,
    gradients,
    mean_gradients,
    predict_faces,
    project_faces,
    push_faces,
    raised_viscosity,
    sum_fluxes,
    take_force,
    warped_fluxes,
    warped_scalar_flux,
)
from fluxloom.fv.incompressible.linear_operators import LinearOperators
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.fv.incompressible.scalar_boundary import boundary_sides
from fluxloom.fv.incompressible.wall_forces import cells_behind, scalar_gradient
from fluxloom.solvers.flow_spaces import FlowSpaces, Rows

__all__ = [
    "CorrectedFlow", "FlowCorrections", "MeanGradients", "Means", "means_of", "oblique_faces",
    "oblique_sides",
]  # fmt: skip

Array = npt.NDArray[np.float64]
_NOTHING = 1e-9
"""Part of a force that is none."""
FIRST_SOLVES = 50
"""At most, of the pressure at the start, where there is no last one; each leaves about 0.6 of the error."""


class CorrectedFlow(Protocol):
    """What the corrections take of a flow, see `fluxloom.solvers.incompressible.flow.Incompressible`."""

    context: Context
    volumes: ControlVolumes
    dimension: int
    conditions: FlowConditions
    boundaries: Mapping[str, Boundary]
    matrices: FlowMatrices
    spaces: FlowSpaces
    cells: Set
    elements: Set
    faces: Set
    u: Dat
    ahead: Dat
    us: Dat
    us_ahead: Dat
    nus: Dat
    phi: Dat
    b: Dat
    volume: Dat
    inverse: Dat
    force: Array
    step_length: Global
    gamma: Rows
    slope: Rows

    def forces(self) -> list[Array]:
        """Return the directions of all that pushes the fluid, beside its pressure."""
        ...


class FaceForce(Protocol):
    """A force at faces, and for how long it acts, see `fluxloom.solvers.incompressible.buoyancy.FlowBuoyancy`."""

    force: Dat
    acting: Global

    def at_outlets(self, cells: Set, found: Family, slope: Dat, name: str) -> list[Loop]:
        """Return what adds to slopes of the pressure in cells what it is along outflows."""
        ...


def oblique_faces(linear: LinearOperators) -> Array:
    """Return ``(A k, A s, A)`` of each face, ``k = n - v / (n . v)``, ``s = x_f - (x_i + x_j) / 2``."""
    area = linear.volumes.area[:, None]
    return np.concatenate([area * linear.tangents, area * linear.skews, area], axis=1)


def oblique_sides(flow: CorrectedFlow, linear: LinearOperators) -> tuple[Rows, Rows, Dat]:
    """Return the face of each boundary element with ``(A, delta)``, the cell behind, and ``(k, s)``."""
    cv, elements = flow.volumes, flow.spaces.elements
    values = np.zeros((cv.elements, 2 * cv.dimension))
    values[cv.cells :] = np.concatenate([linear.tangents, linear.skews], axis=1)[cv.interior :]
    sides = elements.rows(boundary_sides(cv), flow.spaces.faces, "oblique.sides")
    cells = elements.rows(cells_behind(flow.matrices), flow.spaces.cells, "oblique.cells")
    return sides, cells, elements.dat(values, "oblique.elements")


def borrowing(context: Context, spaces: FlowSpaces, linear: LinearOperators, g: Dat, c: int) -> list[Loop]:
    """Return the loops that complete gradients which the faces of a cell do not settle. Collective."""
    d, cells, loops = linear.volumes.dimension, spaces.cells, []
    for numbers, found in linear.borrowed():
        some = context.subset(cells.set, cells.local(numbers), "unsettled")
        rows = cells.rows(found, cells, "borrowed")
        lent = context.dat(cells.set, name="lent", shape=(c * d,))
        loops += [Loop(borrow, some, rows.entries, g[rows.pattern], lent, c=c, d=d),
                  Loop(add_borrowed, some, lent, g, n=c * d)]  # fmt: skip
    return loops


@dataclass(frozen=True)
class Means:
    """Means over a cell and those across its faces, and what images beyond planes of symmetry add in some cells."""

    rows: Rows
    images: tuple[Subset, Rows] | None

    def of(self, g: Dat, into: Dat, c: int, d: int) -> list[Loop]:
        """Return the loops to the mean of a gradient of ``c`` components."""
        rows = self.rows
        found = [Loop(mean_gradients, rows.pattern.source, rows.entries, g[rows.pattern], into, n=c * d)]
        if self.images is not None:
            some, images = self.images
            found.append(Loop(add_images, some, images.entries, g, into, c=c, d=d))
        return found


def means_of(context: Context, spaces: FlowSpaces, linear: LinearOperators, name: str) -> Means:
    """Return the means of gradients of some operators. Collective."""
    cells, (numbers, images) = spaces.cells, linear.images()
    beyond = None
    if any(context.comm.allgather(numbers.size > 0)):
        some = context.subset(cells.set, cells.local(numbers), f"{name}.mirrored")
        beyond = some, cells.rows(images, spaces.elements, f"{name}.images")
    return Means(cells.rows(linear.means(), cells, name), beyond)


class MeanGradients:
    """Gradients of ``c`` components in the cells, and their means, see `fluxloom.fv.incompressible.linear_operators`.

    Attributes
    ----------
    raw, mean : (cells, c d)
        Those of the cells, and twice the mean over neighbours.
    """

    def __init__(self, flow: CorrectedFlow, linear: LinearOperators, means: Means, name: str, c: int) -> None:
        self._flow, self._linear, self._means, self._c, self._name = flow, linear, means, c, name
        size = (c * flow.dimension,)
        self.raw, self._once, self.mean = (
            flow.context.dat(flow.cells, name=f"{name}{end}", shape=size) for end in ("", ".once", ".mean")
        )

    def of(self, q: Dat) -> list[Loop]:
        """Return the loops from values of elements to their mean gradients."""
        flow, spaces = self._flow, self._flow.spaces
        rows = spaces.cells.rows(self._linear.gradients(), spaces.elements, f"{self._name}.weights")
        first = Loop(gradients, flow.cells, rows.entries, q[rows.pattern], self.raw, c=self._c, d=flow.dimension)
        return [first, *self.settled()]

    def settled(self) -> list[Loop]:
        """Return the loops behind those to the gradients of what the faces of a cell settle."""
        flow, means, c, d = self._flow, self._means, self._c, self._flow.dimension
        return [
            *borrowing(flow.context, flow.spaces, self._linear, self.raw, c),
            *means.of(self.raw, self._once, c, d),
            *means.of(self._once, self.mean, c, d),
        ]


class FlowCorrections:
    """The corrections of a flow and the projection with them.

    ::

        b = -M_s u_s*,   u_s* = Gamma u_p + n . (s . grad) u_e - (k . grad p + (1 - alpha) G_s p) of the last solve
        -alpha L phi = b,   u_s = u_s* - alpha G_s phi,   u = u_p - G phi

    so that the velocities at faces have no divergence beyond the tolerance of the solver.

    Parameters
    ----------
    flow
        Whose, with its sets, dats and matrices.

    Attributes
    ----------
    half, means
        Means of both cells at a face, and over a cell and its neighbours.
    velocity, pressure
        Gradients of the velocity (ahead, by half a step) and of the pressure that forces at faces do not balance.
    steep
        Derivative of that pressure at faces.
    through
        What passes faces beside the mean of both velocities, of the velocity ahead.
    ratio
        What the pressure of the last solve counts: of this step's ``dt`` over that one's.
    warped
        Faces that are warped, and what `warped_fluxes` takes of them; None: there are none on any rank.
    swept : (faces, d)
        What it leaves for scalars.
    """

    def __init__(self, flow: CorrectedFlow) -> None:
        self.flow, ctx, d = flow, flow.context, flow.dimension
        known, spaces = flow.matrices, flow.spaces
        sides, linear = known.operators.sides, known.velocity_operators
        self.half = spaces.faces.rows(linear.halves(), spaces.cells, "halves")
        self.means = means_of(ctx, spaces, linear, "means of gradients")
        self.velocity = MeanGradients(flow, linear, self.means, "velocity.gradient", d)
        self.pressure = MeanGradients(flow, known.pressure_operators, self.means, "pressure.gradient", 1)
        passed = np.concatenate([np.ones(flow.volumes.interior, dtype=bool), self.passed()])
        self.moment = spaces.faces.dat(linear.moments(self.passed()).reshape(-1, d * d), "moments")
        self.normal = spaces.faces.dat(flow.volumes.normals, "normals")
        oblique = np.column_stack([oblique_faces(linear), linear.shares(), passed / flow.volumes.area])
        self.oblique = spaces.faces.dat(oblique, "oblique")
        self.signs = spaces.elements.rows(Family(sides.offsets, sides.face, sides.sign), spaces.faces, "signs")
        self.through, self.steep = (ctx.dat(flow.faces, name=name) for name in ("u_s.oblique", "pressure.slope"))
        self._flux = ctx.dat(flow.faces, name="flux.oblique", shape=(d,))
        self.extra, self.raised = (ctx.dat(flow.faces, name=name) for name in ("nu_s.extra", "nu_s.raised"))
        self.damping = spaces.faces.dat(known.damping, "damping")
        self.warped: tuple[Subset, Dat] | None = None
        self._warp(linear)
        self.ratio = ctx.scalar(0.0, "ratio")

    def passed(self) -> npt.NDArray[np.bool_]:
        """Return the boundary elements through which something may pass."""
        known, cv = self.flow.conditions, self.flow.volumes
        through = np.einsum("ij,ij->i", known.given, cv.normals[cv.interior :])
        moves = np.abs(through) > 1e-12 * np.linalg.norm(known.given, axis=1)
        return known.open | (known.prescribed & (moves | self._pulsating()))

    def _pulsating(self) -> npt.NDArray[np.bool_]:
        """Return the boundary elements of inflows whose velocity changes in time."""
        flow, cv = self.flow, self.flow.volumes
        found = flow.conditions.varies.copy()
        for name, elements in cv.patches.items():
            found[elements.start - cv.cells : elements.stop - cv.cells] &= not flow.boundaries[name].wall
        return found

    def warps(self, linear: LinearOperators) -> tuple[npt.NDArray[np.int64], Array]:
        """Return `LinearOperators.warps` of this flow."""
        flow, cv, passed = self.flow, self.flow.volumes, self.passed()
        pulsating = self._pulsating()
        outer = np.flatnonzero(passed & flow.conditions.prescribed & ~pulsating)
        return linear.warps(passed, given_gradients(cv, flow.boundaries, outer), pulsating)

    def _warp(self, linear: LinearOperators) -> None:
        """Store what warped faces have, where there are any. Collective."""
        ctx, faces = self.flow.context, self.flow.spaces.faces
        rows, tensors = self.warps(linear)
        if not any(ctx.comm.allgather(rows.size > 0)):
            return
        whole = np.zeros((len(self.flow.volumes.faces), tensors.shape[1]))
        whole[rows] = tensors
        local = faces.local(rows)
        owned = np.sort(local[local < faces.set.size])
        self.warped = ctx.subset(faces.set, owned, "warped"), faces.dat(whole, "warps")
        self.swept = ctx.dat(faces.set, name="swept", shape=(self.flow.dimension,))

    # ------------------------------------------------------------------------------------- parts of a step
    def _twisted(self, u: Dat) -> list[Loop]:
        """Return the loop to what warped faces add to the fluxes of momentum, and to the velocity through them."""
        if self.warped is None:
            return []
        flow, half, gamma, (some, warps) = self.flow, self.half, self.flow.gamma, self.warped
        return [Loop(
            warped_fluxes, some, u[gamma.pattern], half.entries, self.velocity.mean[half.pattern],
            self.oblique, warps, self._flux, self.through, self.swept, d=flow.dimension,
        )]  # fmt: skip

    def twisted_scalar(self, g: Dat, flux: Dat) -> list[Loop]:
        """Return the loop to what warped faces add to the flux of a scalar with some mean gradients."""
        if self.warped is None:
            return []
        half, some = self.half, self.warped[0]
        return [Loop(warped_scalar_flux, some, half.entries, g[half.pattern], self.swept, flux, d=self.flow.dimension)]

    def raising(self, nus: Dat, raised: Dat) -> Loop:
        """Return the loop to the viscosity of the differences between two elements."""
        return Loop(raised_viscosity, self.flow.faces, nus, self.extra, raised)

    def fluxes(self, u: Dat) -> list[Loop]:
        """Return the loops to the corrections of the fluxes of momentum, of the velocity ahead or another."""
        flow, half = self.flow, self.half
        return [*self.velocity.of(u), Loop(
            flux_corrections, flow.faces, half.entries, self.velocity.mean[half.pattern], flow.us_ahead, flow.nus,
            self.oblique, self.moment, self.normal, self._flux, self.through, self.extra, d=flow.dimension,
        ), *self._twisted(u), self.raising(flow.nus, self.raised)]  # fmt: skip

    def sums(self, flux: Dat, u: Dat, c: int) -> Loop:
        """Return the loop that takes fluxes out of cells."""
        flow, rows = self.flow, self.signs
        return Loop(sum_fluxes, flow.elements, rows.entries, flux[rows.pattern], flow.inverse, flow.step_length, u, c=c)

    def predicted(self) -> list[Loop]:
        """Return the loops behind the prediction of the velocity."""
        return [self.sums(self._flux, self.flow.u, self.flow.dimension)]

    def faces(self, buoyancy: FaceForce | None) -> list[Loop]:
        """Return the loops to the velocities at faces that are projected, and to the right-hand side."""
        flow, half = self.flow, self.half
        gamma = flow.gamma
        tangent = flow.spaces.faces.dat(flow.matrices.pressure_operators.tangents, "tangents")
        out = flow.spaces.cells.rows(outward_areas(flow.matrices), flow.spaces.faces, "outward.areas")
        forced = [] if buoyancy is None else [
            Loop(push_faces, flow.faces, buoyancy.force, buoyancy.acting, self.damping, flow.us)]  # fmt: skip
        return [
            Loop(predict_faces, flow.faces, gamma.entries, flow.u[gamma.pattern], self.through, half.entries,
                 self.pressure.mean[half.pattern], tangent, self.damping, self.steep, self.ratio, flow.us,
                 d=flow.dimension),
            *forced,
            Loop(face_divergence, flow.cells, out.entries, flow.us[out.pattern], flow.b),
        ]  # fmt: skip

    def slopes(self, buoyancy: FaceForce | None) -> list[Loop]:
        """Return the loops from the pressure to the velocities at faces, and to its gradients."""
        flow, slope = self.flow, self.flow.slope
        found = flow.matrices.pressure_operators.face_gradients()
        rows = flow.spaces.cells.rows(found, flow.spaces.faces, "pressure.weights")
        taken = [] if buoyancy is None else [
            Loop(take_force, flow.faces, buoyancy.force, buoyancy.acting, self.steep)]  # fmt: skip
        return [
            Loop(project_faces, flow.faces, slope.entries, flow.phi[slope.pattern], self.damping, flow.us,
                 self.steep),
            *taken,
            Loop(face_gradient, flow.cells, rows.entries, self.steep[rows.pattern], self.pressure.raw,
                 d=flow.dimension),
            *self.pressure.settled(),
        ]  # fmt: skip

    def cells(self, gauss: Loop) -> list[Loop]:
        """Return the loops that correct the velocities of cells, behind that of Gauss's theorem with plain means."""
        flow = self.flow
        rows = flow.spaces.elements.rows(flow.matrices.carried_pressure(), flow.spaces.cells, "carried")
        return [gauss, Loop(carry_pressure, flow.elements, rows.entries, self.pressure.mean[rows.pattern], flow.u,
                            d=flow.dimension)]  # fmt: skip

    def whole_pressure(self, name: str, force: FaceForce | None) -> tuple[list[Loop], MeanGradients]:
        """Return the loops to gradients of the pressure with what forces at faces balance, and these."""
        flow, linear, cells = self.flow, self.whole_operators(), self.flow.spaces.cells
        means = means_of(flow.context, flow.spaces, linear, f"{name}.means")
        found, rows = MeanGradients(flow, linear, means, name, 1), cells.rows(linear.cell_gradients(), cells, name)
        first = Loop(scalar_gradient, flow.cells, rows.entries, flow.phi[rows.pattern], found.raw, d=flow.dimension)
        loops = [first]
        if force is not None:
            loops += force.at_outlets(flow.cells, linear.outlet_gradients(), found.raw, f"{name}.outlets")
        return [*loops, *found.settled()], found

    def whole_operators(self) -> LinearOperators:
        """Return operators of the pressure with what balances forces, which may push against planes of symmetry."""
        known, cv, mirrors = self.flow.matrices, self.flow.volumes, self.flow.matrices.mirrors
        for force in self.flow.forces():
            against = np.abs(cv.normals[cv.interior :] @ force) > _NOTHING * np.linalg.norm(force)
            mirrors = mirrors & ~against
        return known.mirrored_pressure(mirrors)

    def reset(self) -> None:
        """Forget the pressure of the last solve."""
        for dat in (self.steep, self.pressure.mean, self.through):
            dat.write(np.zeros_like(dat.read()))
        self.ratio.value = 0.0
