"""What a compressible flow does at the sides of sectors: it looks across them, and turns what it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.fv.sector_kernels import image_number, image_slopes, image_state

if TYPE_CHECKING:
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["SectorLoops"]


class SectorLoops:
    """Loops that write what is beyond the sides of sectors (`fluxloom.fv.sectors`); none where there are no such sides.

    Parameters
    ----------
    flow
        With its sets, maps and values.

    Raises
    ------
    SolverError
        If there are such sides, and slopes that do not look across them.
    """

    def __init__(self, flow: CompressibleFlow) -> None:
        self.flow, turned = flow, flow.volumes.turned
        self.present = turned is not None
        if turned is None:
            return
        if flow.slopes is not None:
            raise SolverError(
                "sectors: slopes through the nodes of cells do not look across sides that are joined by a rotation: "
                "take those of the cells across the faces, the default"
            )
        context, elements = flow.context, flow.spaces.elements
        partner = np.arange(flow.volumes.elements)
        partner[turned.elements] = turned.partners
        table = elements.local(partner[elements.owned])[:, None]
        self._partner = context.map(flow.elements, flow.elements, table, "partner")[0]
        self._images = context.subset(flow.elements, elements.local(turned.elements), "images")
        self._turns = context.scalar(turned.rotations.reshape(-1), "turns")
        self._common: dict[str, Any] = {"nv": flow.components, "d": flow.dimension}

    def states(self, w: Dat) -> list[Loop]:
        """Return the loops that write the states of images."""
        if not self.present:
            return []
        return [Loop(image_state, self._images, self.flow.kind, self._turns, w[self._partner], w, **self._common)]

    def slopes(self) -> list[Loop]:
        """Return the loops that write slopes and shares of images, once those of the cells are there."""
        flow = self.flow
        if not (self.present and flow.balanced.sloped):
            return []
        slope, share = flow.slope, flow.share
        return [Loop(image_slopes, self._images, flow.kind, self._turns, slope[self._partner],
                     share[self._partner], slope, share, **self._common)]  # fmt: skip

    def numbers(self, values: Dat) -> list[Loop]:
        """Return the loops that write one number of images, that of the cells they are of."""
        if not self.present:
            return []
        return [Loop(image_number, self._images, values[self._partner], values)]
