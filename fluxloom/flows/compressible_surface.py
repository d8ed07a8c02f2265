"""Patches of compressible flow as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fluxloom.run.measures import Loads
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.compressible_forces import SurfaceForces
from fluxloom.solvers.flow_patches import place_in

__all__ = ["CompressibleSurface"]


class CompressibleSurface:
    """Some patches; see `fluxloom.run.measures.Surface`.

    Parameters
    ----------
    solver
        Whose.
    patches, about
        Names, and the point that moments are about; the origin by default.
    outside
        Pressure that is left out of forces.
    fluxes
        Lets the fluxes be those of the present state. Collective.
    """

    def __init__(
        self, solver: CompressibleFlow, patches: Sequence[str], about: Sequence[float], outside: float,
        fluxes: Callable[[], None],
    ) -> None:  # fmt: skip
        self.patches, self._fluxes = tuple(patches), fluxes
        name = "+".join(self.patches)
        point = place_in(about, solver.dimension)[: solver.dimension]
        self._forces = SurfaceForces(solver, {name: self.patches}, pressure=outside, points={name: point})

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._fluxes()
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        (found,) = self._forces.collect().values()
        return Loads(found.pressure, found.friction, found.moment, found.mass, found.area, found.energy)
