"""Patches of compressible flow as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.run.measures import Loads
from fluxloom.solvers.compressible import CompressibleFlow
from fluxloom.solvers.compressible_surface import SurfaceForces, patch_values
from fluxloom.solvers.flow_spaces import place_in

__all__ = ["CompressibleSurface"]

Array = npt.NDArray[np.float64]


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
        self.patches, self._solver, self._fluxes = tuple(patches), solver, fluxes
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
        means = {"p": found.mean_pressure, "total_pressure": found.mean_total, "T": found.mean_temperature}
        return Loads(found.pressure, found.friction, found.moment, found.mass, found.area, found.energy, means)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: the gas carries no scalars."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        """Return values of the faces, see `fluxloom.solvers.compressible_surface`, on rank 0. Collective."""
        found = patch_values(self._solver, self.patches).columns
        return {} if self._solver.context.comm.rank else found
