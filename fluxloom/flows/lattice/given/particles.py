"""Many particles in a lattice Boltzmann flow: free disks, or balls, at random places that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice.given.bodies import free_body
from fluxloom.flows.lattice.given.sides import vector
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.naming import KeyedError
from fluxloom.lbm.immersed import Contact, ImmersedBody, circle, sphere
from fluxloom.lbm.shapes.shapes import Shape

__all__ = ["PARTICLE", "Particles"]

Array = npt.NDArray[np.float64]

PARTICLE = "particle"
"""What the names of particles begin with."""

_TRIES = 2000
_GAP = 2.0
_PUSH = 5.0


@dataclass(frozen=True)
class Particles:
    """Many free disks, or balls.

    Attributes
    ----------
    count, diameter, density
        Of them all.
    gravity
        Acceleration, a number a dimension.
    seed
        Of the random places.
    low, high
        Corners of the part of the box in which they start; by default all of it.
    retract
        How many cells inside of their surfaces markers lie.
    """

    count: int
    diameter: float
    density: float
    gravity: Sequence[float]
    seed: int = 0
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    retract: float = 0.0

    def _radius(self, units: Units) -> float:
        return 0.5 * self.diameter / units.dx

    def contact(self, units: Units) -> Contact:
        """Return a repulsion of some times the weight of a particle in the fluid, ``F = PUSH |m - m_fluid| |g|``."""
        free = free_body(self._radius(units), self.density, self.gravity, units)
        weight = abs(free.mass - free.displaced) * float(np.linalg.norm(free.gravity))
        return Contact(_PUSH * weight, _GAP)

    def bodies(self, shape: Sequence[int], others: Sequence[Shape], units: Units) -> list[ImmersedBody]:
        """Return the particles as immersed bodies; the parameters are those of `places`."""
        radius = self._radius(units)
        motion = free_body(radius, self.density, self.gravity, units)
        make = circle if units.dimension == 2 else sphere
        return [
            ImmersedBody(f"{PARTICLE}{k}", make(tuple(place), radius, retract=self.retract), motion)
            for k, place in enumerate(self.places(shape, others, units))
        ]

    def places(self, shape: Sequence[int], others: Sequence[Shape], units: Units) -> Array:
        """Return places in cells, slowest axis first, at random: two cells apart from each other and from the sides.

        Parameters
        ----------
        shape
            Cells along each axis, slowest first.
        others
            Bodies in the box, in cells.

        Raises
        ------
        SolverError
            If there is no room for all.
        """
        for name in ("low", "high"):
            vector(name, getattr(self, name), units, 1.0)  # raises for one of too many or too few components
        ends, radius = np.array(shape), self._radius(units)
        edge = radius + _GAP
        low = np.maximum(-0.5, np.array(units.place(self.low)) if self.low else -np.inf) + edge
        high = np.minimum(ends - 0.5, np.array(units.place(self.high)) if self.high else np.inf) - edge
        bounds = [other.bounds() for other in others]
        random, found = np.random.default_rng(self.seed), np.empty((0, len(ends)))
        tries = 0
        while len(found) < self.count and (low < high).all() and tries < _TRIES:
            place = random.uniform(low, high)
            near = ((found - place) ** 2).sum(axis=1) < (2.0 * radius + _GAP) ** 2
            met = any(((place > a - edge) & (place < b + edge)).all() for a, b in bounds)
            tries += 1
            if not near.any() and not met:
                found, tries = np.concatenate([found, place[None]]), 0
        if len(found) < self.count:
            text = f"only {len(found)} of {self.count} found room: fewer, smaller, a larger box"
            raise KeyedError("count", text)
        return found
