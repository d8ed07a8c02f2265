"""The step of a flow on the cells around markers: what arrives there, and the step again with the force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.immersed.markers.data import Fields, Step
from fluxloom.lbm.immersed.markers.kernels import arriving_turned
from fluxloom.lbm.streaming.output import moments
from fluxloom.lbm.streaming.schemes import Buffers
from fluxloom.lbm.streaming.steps_moments import arriving, macros

__all__ = ["ARRIVING", "Recompute"]

ARRIVING = "immersed arriving"
"""The name of the loop that finds what will arrive, in reports."""


class Recompute:
    """Loops over the cells of the support.

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
        self.constants = replace(flow.constants, force=None)  # that of the cells has it
        self._moments: dict[int, Loop] = {}

    def arriving(self, parity: int) -> Loop:
        """Return the loop that finds what will arrive at the cells of the support, without force."""
        space, found = self.flow.space, (self.fields.above, self.fields.u)
        f, stored = space.populations(parity), space.streaming.stored(parity)
        if stored.turned:
            seen, constants = f[space.memory.ahead], space.constants
            return Loop(arriving_turned, self.cells, seen, *found, name=ARRIVING, **constants)
        kernel, seen = (macros, (f, None)) if stored.ahead else (arriving, (f[space.memory.behind],))
        return Loop(kernel, self.cells, *seen, *found, name=ARRIVING, **self.constants.of(kernel))

    def steps(self, parity: int) -> Sequence[Step]:
        """Return the step of the flow again, with force; what three phases have streamed is there."""
        space, fields = self.flow.space, self.fields
        passes = space.streaming.passes(Buffers(space.buffers, space.memory, fields.above, fields.u))[parity % 2]
        return [
            one.loop(self.cells, self.constants, fields.force, name=f"immersed {one.kernel.name}")
            for one in passes if one.forced
        ]  # fmt: skip

    def look(self) -> None:
        """Set density and velocity on the support, from the populations as they are now, between two steps."""
        parity, fields = self.flow.steps % 2, self.fields
        if parity not in self._moments:
            seen, constants = self.flow.space.seen(parity)
            self._moments[parity] = Loop(moments, self.cells, seen, fields.force, fields.above, fields.u, **constants)
        self._moments[parity]()
