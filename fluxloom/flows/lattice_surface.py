"""Forces on sides and bodies of a lattice Boltzmann flow, in physical units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice_sums import KeptNumbers
from fluxloom.flows.lattice_units import Units
from fluxloom.run.measures import Loads

__all__ = ["LatticeSurface"]

Array = npt.NDArray[np.float64]


class LatticeSurface:
    """Sides and bodies on which the flow acts, by the exchange of momentum (`fluxloom.run.measures.Surface`).

    Parameters
    ----------
    numbers
        What is asked for forces.
    units
        Of the flow.
    patches
        Names of walls, bodies and immersed bodies.

    Raises
    ------
    SolverError
        If there is none of a name, or nothing measures its force.
    """

    def __init__(self, numbers: KeptNumbers, units: Units, patches: Sequence[str]) -> None:
        self._numbers, self._units = numbers, units
        self.patches: Sequence[str] = tuple(patches)
        for name in self.patches:
            numbers.measure(name)
        self._found = np.zeros(units.dimension)

    def take(self) -> None:
        """Find the sums of now, or of the step that the flow looks back at."""
        forces = (self._numbers.force_on(name)[::-1] for name in self.patches)
        self._found = sum(forces, np.zeros(self._units.dimension))

    def collect(self) -> Loads:
        """Return what `take` has found."""
        raise NotImplementedError

    @property
    def force(self) -> Array:
        """What `take` has found."""
        return self._found * self._units.force

    def faces(self) -> Mapping[str, Array]:
        """Return nothing: bodies are no faces."""
        return {}
