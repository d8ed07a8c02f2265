"""Patches of incompressible flow in finite volumes as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.run.measures import Loads
from fluxloom.solvers.flow_forces import Forces
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["IncompressibleSurface"]

Array = npt.NDArray[np.float64]


class IncompressibleSurface:
    """Some patches; see `fluxloom.run.measures.Surface`, and `fluxloom.solvers.flow_forces.Forces` for the parameters.

    Forces are over the density, and the pressure is kinematic.
    """

    def __init__(
        self, solver: Incompressible, patches: Sequence[str], about: Sequence[float], *, balance: bool = False
    ) -> None:  # fmt: skip
        self.patches = tuple(patches)
        self._forces = Forces(solver, self.patches, balance=balance, about=about)

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        found = self._forces.collect()
        means = {"p": found.mean_pressure, "total_pressure": found.mean_total}
        return Loads(found.pressure, found.friction, found.moment, found.flow, found.area, means=means)
