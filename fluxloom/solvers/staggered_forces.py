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
from fluxloom.fv.incompressible_boundary import NoSlip, Symmetry
from fluxloom.fv.staggered_sides import held_faces, held_force, side_weights
from fluxloom.solvers.staggered import Staggered

__all__ = ["StaggeredForces"]


class StaggeredForces:
    """Friction and pressure of a fluid of unit density on some sides.

    A wall carries what holds the halves of the cells in front of it: the pressure in the middle of the cells, what
    flows there of momentum, and the weight of the halves. So the walls of a closed box carry, when nothing changes any
    more, what acts on the fluid, to round-off.

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
        self.flow, context, fields = flow, flow.context, flow.fields
        self._total = context.scalar(np.zeros(flow.dimension), "force")
        self._loops: list[Loop] = []
        self._flux: list[Loop] = []
        self._none = np.zeros(flow.dimension)
        self._halves = self._none.copy()
        potential, _ = flow.impulse()
        for name in sides:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise SolverError(f"forces: there is no side {name!r}{did_you_mean(name, known)} (sides: {listed})")
            weights = side_weights(flow.grid, name, flow.viscosity, flow.boundaries)
            side = context.set(len(weights.places), name)
            pairs = context.map(
                side, fields.grid, np.stack([weights.places, weights.inner], axis=1), "beyond and inner"
            )
            friction, push = (context.dat(side, values, "weights") for values in (weights.friction, weights.push))
            loop = Loop(
                kernels.side_force, side, fields.u[pairs], potential[pairs[1]], friction, push, self._total,
                d=flow.dimension, scale=1.0, name=f"force on {name}",
            )  # fmt: skip
            self._loops.append(loop)
            if not isinstance(flow.boundaries[name], NoSlip | Symmetry):
                continue
            faces, width = held_faces(flow.grid, name)
            held = context.map(side, fields.grid, faces, "faces of the wall")
            inward = -1.0 if name.endswith("max") else 1.0
            self._flux.append(Loop(
                kernels.wall_flux, side, fields.u[held], push, self._total, d=flow.dimension,
                rate=inward * flow.viscosity / width, name=f"momentum to {name}",
            ))  # fmt: skip
            self._halves += 0.5 * width * np.abs(weights.push).sum(axis=0)
        self._held = sum((held_force(flow.grid, flow.boundaries, flow.viscosity)[name] for name in sides), self._none)
        self.chain = Chain([Reset(self._total), *self._loops, *self._flux], name="forces")

    def now(self) -> npt.NDArray[np.float64]:
        """Return the force, ``(d,)``; the pressure is that of the last stage."""
        _, scale = self.flow.impulse()
        for loop in self._loops:
            loop.set(scale=scale)
        self.chain()
        weight = self._halves * self.flow.acting_force()
        return np.array(self._total.value, dtype=np.float64) + self._held + weight
