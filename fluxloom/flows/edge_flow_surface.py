"""Patches of incompressible flow on edges as a surface that monitors measure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.run.measures import Loads
from fluxloom.solvers.edge_flow import EdgeFlow

__all__ = ["EdgeFlowSurface"]

Array = npt.NDArray[np.float64]


class EdgeFlowSurface:
    """Some patches; see `fluxloom.run.measures.Surface`, and `fluxloom.solvers.edge_flow.EdgeFlow.force`.

    Forces are over the density, the pressure is kinematic. Before the first step there is no force: it is NaN.
    """

    def __init__(self, solver: EdgeFlow, patches: Sequence[str], about: Sequence[float]) -> None:
        self.patches = tuple(patches)
        self._solver, self._found, self._steps = solver, solver.reaction(self.patches, about), 0

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._steps = self._solver.steps
        self._found.chain()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        d, sums = self._solver.dimension, np.asarray(self._found.sums.value, dtype=np.float64)
        force, moment = np.array(self._found.total.value, dtype=np.float64), sums[:3].copy()
        if not self._steps:
            force[:], moment[:] = math.nan, math.nan
        pressure = sums[3 : 3 + d].copy()
        flow, mean, square, area = sums[6:].tolist()
        means = {"p": mean / area, "total_pressure": (mean + square) / area}
        return Loads(pressure, force - pressure, moment, flow, area, means=means)
