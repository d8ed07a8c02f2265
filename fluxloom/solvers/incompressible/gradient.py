"""The gradient of the velocity of a flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.incompressible.kernels import velocity_gradient
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = ["VelocityGradient"]


class VelocityGradient:
    """``grad u`` in the cells, from the gradient of the operators.

    Parameters
    ----------
    flow
        The solver.
    """

    def __init__(self, flow: Incompressible) -> None:
        spaces = flow.spaces
        slopes = spaces.cells.rows(flow.matrices.velocity_gradient(), spaces.elements, "slopes")
        self._tensor = flow.context.dat(flow.cells, name="velocity_gradient", shape=(9,))
        loop = Loop(
            velocity_gradient, flow.cells, slopes.entries, flow.u[slopes.pattern], self._tensor, d=flow.dimension
        )
        self._chain, self._dimension = Chain([loop], name="vorticity"), flow.dimension

    def now(self) -> npt.NDArray[np.float64]:
        """Return ``du_i / dx_j`` of the owned cells, ``(cells, d, d)``. Collective."""
        self._chain()
        d = self._dimension
        return self._tensor.read().reshape(-1, 3, 3)[:, :d, :d]
