"""How a lattice Boltzmann flow begins, in physical units, x first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice.given.sides import Pressure, Velocity, density_at, velocity_at
from fluxloom.flows.lattice.given.units import Units

__all__ = ["Start"]


@dataclass(frozen=True)
class Start:
    """How a flow begins: in local equilibrium.

    Attributes
    ----------
    velocity
        A value a dimension, or a function of places ``(n, d)`` that returns ``(n, d)``; empty: at rest.
    pressure
        Over that of density one, divided by the density.
    """

    velocity: Velocity = ()
    pressure: Pressure = 0.0

    def on_lattice(self, shape: Sequence[int], units: Units) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        """Return density and velocity of the cells of the box, or what broadcasts to them."""
        density, velocity = density_at(self.pressure, units, "initial"), velocity_at(self.velocity, units, "initial")
        if not (callable(density) or callable(velocity)):
            return density, velocity
        places = np.stack([at.ravel() for at in np.indices(shape, dtype=np.float64)], axis=1)
        return (
            density(places).reshape(shape) if callable(density) else density,
            velocity(places).reshape(*shape, len(shape)) if callable(velocity) else velocity,
        )
