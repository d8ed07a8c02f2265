"""A viscosity in space and time of an incompressible flow in finite volumes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.loop import Loop
from fluxloom.fv.given import Given, changes, parts_of
from fluxloom.fv.incompressible import velocity_gradient
from fluxloom.fv.linear_kernels import sum_fluxes
from fluxloom.fv.sides import Family
from fluxloom.fv.viscosity_kernels import layered_viscosity, transposed_stress
from fluxloom.solvers.flow_corrections import CorrectedFlow
from fluxloom.values.given_on import GivenOn

__all__ = ["GivenViscosity", "check_viscosity"]


def check_viscosity(viscosity: Given, model: object) -> None:
    """Raise `SolverError` for a number below 0, and for what is no number beside a model of large eddies."""
    if isinstance(viscosity, int | float):
        if not 0.0 <= viscosity < inf:
            raise SolverError(f"viscosity: a number of at least 0 is wanted, not {viscosity!r}")
    elif model is not None:
        raise SolverError("viscosity: beside a model of large eddies a number is wanted, not what varies in space")


class GivenViscosity:
    """The viscosity at cells, boundary elements and faces, and the transposed part of its stress.

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
    moves
        Whether it changes in time.

    Raises
    ------
    SolverError
        Where it is not above 0.
    """

    def __init__(self, flow: CorrectedFlow, viscosity: Given) -> None:
        cv, spaces, ctx = flow.volumes, flow.spaces, flow.context
        self.flow, self.moves = flow, changes(viscosity)
        places = cv.centres[spaces.elements.owned]
        self._given = GivenOn(ctx, flow.elements, places, parts_of(viscosity), "viscosity", least=[0.0])
        self.nu = self._given.dat
        first = np.abs(np.einsum("ij,ij->i", cv.arms, cv.normals)) / cv.spacing
        first = np.where(np.arange(len(cv.faces)) < cv.interior, np.clip(first, 0.05, 0.95), 0.5)
        rows = spaces.faces.rows(flow.matrices.operators.two_sided(first, 1.0 - first), spaces.elements, "layers")
        self._faces = Loop(layered_viscosity, flow.faces, rows.entries, self.nu[rows.pattern], flow.nus)
        self.update(0.0)

    def update(self, time: float) -> None:
        """Make it that of a time. Collective."""
        self._given.update(time)
        self._faces()

    def prepare(self, time: float) -> None:
        """Say the time of the next step or stage."""
        self._given.prepare([time])

    def check(self) -> None:
        """Raise `SolverError` where it was not above 0. Collective."""
        self._given.check()

    def loops(self) -> list[Loop]:
        """Return the loops to the viscosity at faces; nothing where it stays."""
        return [*self._given.loops(), self._faces] if self.moves else []

    def stress(self) -> Sequence[Loop]:
        """Return the loops that add the transposed part, of the velocity ahead, to the predicted velocity."""
        flow, spaces, known = self.flow, self.flow.spaces, self.flow.matrices
        cv, d, sides = flow.volumes, flow.dimension, known.operators.sides
        slopes = spaces.cells.rows(known.velocity_gradient(), spaces.elements, "stress.slopes")
        means = spaces.faces.rows(known.velocity_operators.halves(), spaces.cells, "stress.means")
        signs = spaces.elements.rows(Family(sides.offsets, sides.face, sides.sign), spaces.faces, "stress.signs")
        gradient = flow.context.dat(flow.cells, name="stress.gradient", shape=(9,))
        flux, areas = flow.context.dat(flow.faces, name="stress", shape=(d,)), spaces.faces.dat(cv.areas, "areas")
        return [
            Loop(velocity_gradient, flow.cells, slopes.entries, flow.ahead[slopes.pattern], gradient, d=d),
            Loop(transposed_stress, flow.faces, means.entries, gradient[means.pattern], areas, flow.nus, flux, d=d),
            Loop(sum_fluxes, flow.elements, signs.entries, flux[signs.pattern], flow.inverse, flow.step_length, flow.u,
                 c=d),
        ]  # fmt: skip
