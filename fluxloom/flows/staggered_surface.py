"""Sides of a staggered grid as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.run.measures import Loads
from fluxloom.solvers.staggered import Staggered
from fluxloom.solvers.staggered_forces import StaggeredForces

__all__ = ["StaggeredSurface"]


class StaggeredSurface:
    """Some sides; see `fluxloom.run.measures.Surface`. Forces are over the density, the pressure is kinematic."""

    def __init__(self, solver: Staggered, patches: Sequence[str], about: Sequence[float]) -> None:
        self.patches = tuple(patches)
        self._forces = StaggeredForces(solver, self.patches, about)

    def take(self) -> None:
        """Let the device find the sums of now."""
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last."""
        found = self._forces.collect()
        means = {"p": found.mean_pressure, "total_pressure": found.mean_total}
        return Loads(found.pressure, found.friction, found.moment, found.flow, found.area, means=means)
