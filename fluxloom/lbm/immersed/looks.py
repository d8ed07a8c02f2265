"""The velocity of the fluid around markers between two steps."""

from __future__ import annotations

from typing import Any

from fluxloom.dsl.loop import Loop
from fluxloom.dsl.sets import Subset
from fluxloom.lbm.immersed.data import Fields
from fluxloom.lbm.output import MOMENTS, form_of

__all__ = ["Looks"]


class Looks:
    """Loops that set density and velocity on the cells of the support, made when they are first wanted.

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
        self._flow, self._cells, self._fields = flow, cells, fields
        self._loops: dict[int, Loop] = {}

    def __call__(self) -> None:
        """Set them, from the populations as they are now."""
        flow, space, parity = self._flow, self._flow.space, self._flow.steps % 2
        if parity not in self._loops:
            form, constants = form_of(space.streaming, space.lattice, parity)
            f = space.populations(parity)
            seen = f[flow.ahead] if form == "ahead" else f
            fields = self._fields
            self._loops[parity] = Loop(
                MOMENTS[form], self._cells, seen, fields.force, fields.above, fields.u, unit=space.unit, **constants
            )
        self._loops[parity]()
