"""Forces of flow on the sides of a staggered grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.fv import staggered as kernels
from fluxloom.fv.staggered_sides import SideWeights, corner_weights, side_weights
from fluxloom.solvers.staggered import Staggered

__all__ = ["StaggeredForces"]


class StaggeredForces:
    """Friction and pressure of a fluid of unit density on some sides.

    Parameters
    ----------
    flow
        The flow.
    sides
        Names, as ``"ymin"``.

    Raises
    ------
    SolverError
        If there is no such side.
    """

    def __init__(self, flow: Staggered, sides: Sequence[str]) -> None:
        known = list(flow.boundaries)
        if flow.moving is not None and flow.moving.in_space:
            raise SolverError("forces: on a staggered grid the force of the fluid is not known beside a force that "
                              "differs from place to place")  # fmt: skip
        self.flow, context = flow, flow.context
        self._total = context.scalar(np.zeros(flow.dimension), "force")
        self._force = context.scalar(np.zeros(flow.dimension), "acting")
        self._loops: list[Loop] = []
        for name in sides:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise SolverError(f"forces: there is no side {name!r}{did_you_mean(name, known)} (sides: {listed})")
            boundary = flow.boundaries[name]
            self._add(name, side_weights(flow.grid, name, flow.viscosity, boundary))
            if boundary.wall:
                for weights in corner_weights(flow.grid, name, flow.viscosity):
                    self._add(f"{name}.corner", weights)
        self.chain = Chain([Reset(self._total), *self._loops], name="forces")

    def _add(self, name: str, weights: SideWeights) -> None:
        """Add the loop over some places of a side."""
        flow, context, fields = self.flow, self.flow.context, self.flow.fields
        potential, _ = flow.impulse()
        side = context.set(len(weights.places), name)
        places = np.stack([weights.places, weights.inner, weights.next], axis=1)
        pairs = context.map(side, fields.grid, places, "beyond, inner and next")
        friction, push, half = (
            context.dat(side, values, "weights") for values in (weights.friction, weights.push, weights.half)
        )
        self._loops.append(Loop(
            kernels.side_force, side, fields.u[pairs], potential[pairs[1]], friction, push, half, self._force,
            self._total, d=flow.dimension, scale=1.0, name=f"force on {name}",
        ))  # fmt: skip

    def now(self) -> npt.NDArray[np.float64]:
        """Return the force, ``(d,)``; the pressure is that of the last stage."""
        _, scale = self.flow.impulse()
        self._force.value = self.flow.acting_force()
        for loop in self._loops:
            loop.set(scale=scale)
        self.chain()
        return np.array(self._total.value, dtype=np.float64)
