"""A viscosity in space and time of an incompressible flow in finite volumes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import Family
from fluxloom.fv.geometry.wall_curvature import wall_curvature
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.incompressible.linear_kernels import gradients, sum_fluxes
from fluxloom.fv.incompressible.viscosity_kernels import layered_viscosity, transposed_stress, turning_stress
from fluxloom.solvers.flow_spaces import patch_numbers
from fluxloom.solvers.incompressible.corrections import CorrectedFlow, borrowing
from fluxloom.values.given_on import GivenOn
from fluxloom.values.value import Constant, Value

__all__ = ["GivenViscosity", "constant_viscosity"]

_NEAREST = 0.05
"""Part of the way between two cells that is on either side of their face, at least: in skewed cells it may be none."""


def constant_viscosity(value: Value, model: object) -> float:
    """Return a viscosity that is a number; NaN: it is given in space or time.

    Raises
    ------
    SolverError
        For a number below 0, and for what is no number beside a model of large eddies.
    """
    if isinstance(value, Constant):
        number = value.number
        if not 0.0 <= number < np.inf:
            raise SolverError(f"viscosity: a number of at least 0 is wanted, not {number!r}")
        return number
    if model is not None:
        raise SolverError(
            f"viscosity: {value} beside a model of large eddies, which adds to a number: give a number, or no model"
        )
    return float("nan")


class GivenViscosity:
    """The viscosity at cells, boundary elements and faces, and the transposed part of its stress. Collective.

    ::

        div(nu (grad u + grad u^T))

    The second part, which does nothing where the viscosity is the same everywhere, is made of gradients of the cells.
    At planes of symmetry its part along the face is zero, at walls that along the normal; the rest of it there is that
    of a wall that turns (`fluxloom.fv.geometry.wall_curvature`), as forces have it.

    Parameters
    ----------
    flow
        Whose; its ``nus`` is written.
    viscosity
        Above 0.

    Attributes
    ----------
    nu : (elements, 1)
        At centroids of cells, and at boundary faces.
    in_space
        Whether it differs from place to place.

    Raises
    ------
    SolverError
        Where it is not above 0.
    """

    def __init__(self, flow: CorrectedFlow, viscosity: Value) -> None:
        cv, spaces, ctx = flow.volumes, flow.spaces, flow.context
        self.flow, self.in_space = flow, viscosity.in_space
        places = cv.centres[spaces.elements.owned]
        self._given = GivenOn(ctx, flow.elements, places, [viscosity], "viscosity", least=[0.0], moments=2)
        self.nu = self._given.dat
        inner = np.arange(len(cv.faces)) < cv.interior
        first = np.abs(np.einsum("ij,ij->i", cv.arms, cv.normals)) / cv.spacing
        first = np.where(inner, np.clip(first, _NEAREST, 1.0 - _NEAREST), 0.5)
        two = flow.matrices.operators.two_sided
        rows = spaces.faces.rows(two(first, 1.0 - first), spaces.elements, "layers")
        self._faces = Loop(layered_viscosity, flow.faces, rows.entries, self.nu[rows.pattern], flow.nus)
        self._faces()
        if self.in_space:
            self._means = spaces.faces.rows(
                two(np.where(inner, 1.0 - first, 1.0), np.where(inner, first, 0.0)), spaces.cells, "stress.means")
            self._areas = spaces.faces.dat(cv.areas, "areas")
            self._kept = spaces.faces.dat(self._parts(), "stress.kept")
            self._slopes = ctx.dat(flow.cells, name="stress.gradient", shape=(flow.dimension**2,))
            self.flux = ctx.dat(flow.faces, name="stress", shape=(flow.dimension,))

    def _parts(self) -> npt.NDArray[np.float64]:
        """Return which part of the stress there is at faces, see `transposed_stress`, ``(faces, 2)``."""
        cv = self.flow.volumes
        along, normal = np.ones(len(cv.faces)), np.ones(len(cv.faces))
        for name, elements in cv.patches.items():
            boundary, behind = self.flow.boundaries[name], cv.interior - cv.cells
            here = slice(elements.start + behind, elements.stop + behind)
            along[here], normal[here] = not (boundary.mirror or boundary.wall), boundary.mirror or not boundary.wall
        return np.stack([along, (normal - along) / cv.area**2], axis=1)

    def _turning(self, u: Dat) -> list[Loop]:
        """Return the loop to the flux of a velocity at curved walls along which something moves. Collective."""
        flow, cv, spaces, d = self.flow, self.flow.volumes, self.flow.spaces, self.flow.dimension
        ends = {name: flow.boundaries[name] for name in cv.patches}
        names = [name for name, one in ends.items() if one.wall and not (isinstance(one, NoSlip) and not one.moves)]
        faces = patch_numbers(flow, names) - cv.cells + cv.interior
        found = wall_curvature(flow.context.comm, cv.centres[faces + cv.cells - cv.interior], cv.normals[faces])
        if not any(flow.context.comm.allgather(bool(found.any()))):
            return []
        whole = np.zeros((len(cv.faces), d * d))
        whole[faces] = cv.area[faces, None] * found.reshape(-1, d * d)
        numbers = spaces.elements.local(cv.faces[spaces.faces.owned])
        sides = flow.context.map(flow.faces, flow.elements, numbers, "stress.sides")
        over = flow.context.subset(flow.faces, np.sort(spaces.faces.local(faces)), "turning")
        return [Loop(turning_stress, over, spaces.faces.dat(whole, "stress.curvature"), u[sides], flow.nus,
                     self.flux, d=d)]  # fmt: skip

    def update(self, time: float) -> None:
        """Make it that of a time. Collective."""
        self._given.update(time)
        self.prepare(time, time)
        self._faces()

    def prepare(self, rates: float, end: float) -> None:
        """Say the times at which the next step or stage has its rates, and ends."""
        self._given.prepare([rates, end])

    def check(self) -> None:
        """Raise `SolverError` where it was not above 0. Collective."""
        self._given.check()

    def loops(self, moment: int) -> list[Loop]:
        """Return the loops to the viscosity at faces, of the first or the second time; nothing where it stays."""
        return [*found, self._faces] if (found := self._given.loops(moment)) else []

    def stress(self, u: Dat) -> list[Loop]:
        """Return the loops to `flux`, the transposed part of the stress of a velocity; nothing without one."""
        if not self.in_space:
            return []
        flow, spaces, d, means = self.flow, self.flow.spaces, self.flow.dimension, self._means
        linear = flow.matrices.velocity_operators
        rows = spaces.cells.rows(linear.gradients(), spaces.elements, "stress.slopes")
        return [
            Loop(gradients, flow.cells, rows.entries, u[rows.pattern], self._slopes, c=d, d=d),
            *borrowing(flow.context, spaces, linear, self._slopes, d),
            Loop(transposed_stress, flow.faces, means.entries, self._slopes[means.pattern], self._areas, self._kept,
                 flow.nus, self.flux, d=d),
            *self._turning(u),
        ]  # fmt: skip

    def predicted(self) -> list[Loop]:
        """Return the loops that take the transposed part, of the velocity ahead, out of the predicted velocity."""
        if not self.in_space:
            return []
        flow, sides = self.flow, self.flow.matrices.operators.sides
        signs = flow.spaces.elements.rows(Family(sides.offsets, sides.face, sides.sign), flow.spaces.faces, "signs")
        return [*self.stress(flow.ahead), Loop(
            sum_fluxes, flow.elements, signs.entries, self.flux[signs.pattern], flow.inverse, flow.step_length, flow.u,
            c=flow.dimension)]  # fmt: skip
