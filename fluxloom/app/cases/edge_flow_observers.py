"""What a case of flow on edges looks at while it runs: forces on patches."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.incompressible_extras import ForceColumnsTable
from fluxloom.app.cases.incompressible_observers import ForceColumns, force_reference
from fluxloom.solvers.edge_flow import EdgeFlow
from fluxloom.solvers.flow_forces import force_directions

__all__ = ["EdgeForcesObserver"]

Array = npt.NDArray[np.float64]


class EdgeForcesObserver(ForceColumns):
    """The force on some patches, what holds their points: NaN before the first step.

    Raises
    ------
    MeshError
        If there is no such patch.
    SolverError
        If a direction does not fit.
    """

    def __init__(self, flow: EdgeFlow, name: str, table: ForceColumnsTable) -> None:
        reference = force_reference(table)
        super().__init__(name, reference)
        self._flow, self._patches = flow, tuple(table.patches or [name])
        for patch in self._patches:
            flow.mesh.patch(patch)
        self._directions = None if reference is None else force_directions(reference, flow.dimension)
        flow.loops.reaction(self._patches)

    def _values(self) -> tuple[Array, tuple[float, float]]:
        flow, reference = self._flow, self.reference
        force = flow.force(*self._patches) if flow.steps else np.full(flow.dimension, math.nan)
        if reference is None or self._directions is None:
            return force, (math.nan, math.nan)
        scale = 2.0 / (reference.speed**2 * reference.area)
        drag, lift = (float(scale * force @ way) for way in self._directions)
        return force, (drag, lift)
