"""What is found of a compressible flow by loops, for those who look at it: gradients of states, eddy viscosity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.viscous_flux import eddy_viscosity
from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["EddyViscosity", "StateGradient"]

Array = npt.NDArray[np.float64]


class StateGradient:
    """The gradients of the primitive states, by the gradients of the scheme without their limiter.

    Parameters
    ----------
    flow
        Whose.
    """

    def __init__(self, flow: CompressibleFlow) -> None:
        self._flow, self._chain = flow, Chain(flow.balanced.gradients(flow.w), name="gradients")

    def now(self) -> Array:
        """Return ``d w_v / dx_k`` of the owned cells, ``(owned, nv, d)``. Collective."""
        self._chain()
        flow = self._flow
        return flow.owned(flow.gradient).reshape(-1, flow.components, flow.dimension).astype(np.float64)


class EddyViscosity:
    """The dynamic eddy viscosity of a model of turbulence.

    Parameters
    ----------
    flow
        Whose.

    Raises
    ------
    SolverError
        If it has no model.
    """

    def __init__(self, flow: CompressibleFlow) -> None:
        if not flow.turbulent:
            raise SolverError("mu_t: this flow has no model of turbulence")
        self._flow = flow
        self._found = flow.context.dat(flow.elements, name="mu_t")
        self._loop = Loop(
            eddy_viscosity, flow.elements, flow.w, self._found, gas=flow.gas, closure=flow.scheme.turbulence,
            nv=flow.components, d=flow.dimension,
        )  # fmt: skip

    def now(self) -> Array:
        """Return it in the owned cells, ``(owned,)``, Pa s. Collective."""
        self._loop()
        return self._flow.owned(self._found)
