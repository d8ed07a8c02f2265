"""What scalars do to a flow by their buoyancy: forces through the faces, in balance with the pressure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.fv.face_forces import (
    accelerate_cells,
    accelerate_faces,
    face_buoyancy,
    face_levers,
    face_to_cells,
    outward_areas,
    source_of_faces,
)

if TYPE_CHECKING:
    from fluxloom.solvers.incompressible import Incompressible

__all__ = ["Buoyancy", "FlowBuoyancy", "check_buoyancy"]


@dataclass(frozen=True)
class Buoyancy:
    """The acceleration ``-g beta (theta - theta_0)`` of Boussinesq's approximation.

    Attributes
    ----------
    gravity
        The vector ``g``, ``(d,)``: it points down.
    expansion
        ``beta``, per unit of the scalar: what makes lighter is positive.
    reference
        ``theta_0``, of which gravity is part of the pressure. Between walls the flow does not depend on it.
    """

    gravity: Sequence[float]
    expansion: float
    reference: float = 0.0


def check_buoyancy(what: str, force: Buoyancy, d: int) -> None:
    """Raise `SolverError` unless a buoyancy has finite numbers, and gravity ``d`` of them."""
    if np.shape(force.gravity) != (d,) or not np.isfinite([*force.gravity, force.expansion, force.reference]).all():
        raise SolverError(
            f"{what}: buoyancy: gravity of {d} components, expansion and reference are wanted, all finite, not "
            f"{force!r}"
        )


class FlowBuoyancy:
    """The part of some scalars in the steps of a flow, see `fluxloom.fv.face_forces`.

    Parameters
    ----------
    flow
        Whose.
    driving
        Values of the scalars that drive it, in the middle of a step, on its elements; and how each does.

    Attributes
    ----------
    force : (faces,)
        Acceleration along the normals in the last step.
    acting
        For how long it acts in this step or stage.
    """

    def __init__(self, flow: Incompressible, driving: Sequence[tuple[Dat, Buoyancy]]) -> None:
        self.flow = flow
        ctx, spaces = flow.context, flow.spaces
        self.force, self.acting = ctx.dat(flow.faces, name="buoyancy"), ctx.scalar(0.0, "acting")
        self._outward = spaces.cells.rows(outward_areas(flow.matrices), spaces.faces, "buoyancy.outward")
        self._means = spaces.elements.rows(face_to_cells(flow.matrices), spaces.faces, "buoyancy.means")
        self.explicit = [self._face_force(k, theta, given) for k, (theta, given) in enumerate(driving)]

    def _face_force(self, number: int, theta: Dat, given: Buoyancy) -> Loop:
        flow = self.flow
        lift = -given.expansion * np.asarray(given.gravity, dtype=np.float64)
        levers = flow.spaces.faces.rows(face_levers(flow.matrices, lift), flow.spaces.elements, "buoyancy.levers")
        return Loop(face_buoyancy, flow.faces, levers.entries, theta[levers.pattern], self.force,
                    reference=float(given.reference), first=int(number == 0))  # fmt: skip

    def source(self) -> Loop:
        """Return what it adds to the right-hand side of the pressure."""
        flow, rows = self.flow, self._outward
        return Loop(source_of_faces, flow.cells, rows.entries, self.force[rows.pattern], self.acting, flow.b)

    def faces(self) -> Loop:
        """Return what it adds to the velocities at faces, beside the slope of the pressure."""
        return Loop(accelerate_faces, self.flow.faces, self.force, self.acting, self.flow.us)

    def cells(self) -> Loop:
        """Return what it adds to the velocities of cells, beside the gradient of the pressure."""
        flow, rows = self.flow, self._means
        return Loop(accelerate_cells, flow.elements, rows.entries, self.force[rows.pattern], self.acting, flow.u,
                    d=flow.dimension)  # fmt: skip
