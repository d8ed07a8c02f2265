"""The step of a flow on the cells around markers: what arrives there, and the step again with the force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluxloom.dsl.loop import Loop
from fluxloom.dsl.sets import Subset
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.immersed.data import Fields, Step
from fluxloom.lbm.immersed.kernels import arriving_turned
from fluxloom.lbm.steps import Constants, collide, pull, push
from fluxloom.lbm.steps_moments import arriving, macros

__all__ = ["ARRIVING", "Redo"]

ARRIVING = "immersed arriving"
"""The name of the loop that finds what will arrive, in reports."""


class Redo:
    """Loops of the flow's own kernels over the cells of the support.

    Parameters
    ----------
    flow
        See `fluxloom.lbm.immersed.ImmersedBoundary.attach`.
    cells
        The support.
    fields
        Those of the flow.
    """

    def __init__(self, flow: Any, cells: Subset, fields: Fields) -> None:
        self.flow, self.cells, self.fields = flow, cells, fields

    def arriving(self, parity: int) -> Loop:
        """Return the loop that finds what will arrive at the cells of the support, without force."""
        flow, space = self.flow, self.flow.space
        f, moments = space.populations(parity), (self.fields.above, self.fields.u)
        ahead, turned = space.streaming.stored(parity)
        if turned:
            constants: dict[str, Any] = {"velocities": space.lattice.velocities, "opposite": space.lattice.opposite}
            seen = f[flow.ahead]
            return Loop(arriving_turned, self.cells, seen, *moments, name=ARRIVING, unit=space.unit, **constants)
        if ahead:
            return self._loop(macros, f, None, *moments, called=ARRIVING)
        return self._loop(arriving, f[flow.stencil], *moments, called=ARRIVING)

    def _loop(self, kernel: Kernel, *arguments: Any, called: str = "") -> Loop:
        """Return a loop of a kernel of the flow's steps over the cells of the support."""
        flow, space = self.flow, self.flow.space
        constants = Constants(space.lattice, flow.collision, flow.viscosity, space.buffers[0].scalar.numpy).of(kernel)
        return Loop(kernel, self.cells, *arguments, name=called or f"immersed {kernel.name}", **constants)

    def steps(self, parity: int) -> Sequence[Step]:
        """Return the step of the flow again, with force."""
        flow, space, fields = self.flow, self.flow.space, self.fields
        a, b = space.populations(parity), space.populations(parity + 1)
        match space.streaming.name:
            case "pull":
                return (self._loop(pull, a[flow.stencil], fields.force, b),)
            case "push":
                return (self._loop(push, a, fields.force, b[flow.ahead]),)
            case _:  # three phases: what has streamed is in the second buffer
                a, b = space.buffers
                return (
                    self._loop(macros, b, fields.force, fields.above, fields.u),
                    self._loop(collide, b, fields.above, fields.u, fields.force, a),
                )
