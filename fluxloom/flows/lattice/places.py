"""Where bodies are that move in a lattice Boltzmann flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice.given.particles import PARTICLE
from fluxloom.flows.lattice.given.units import Units
from fluxloom.lbm.immersed import Fixed, ImmersedBoundary

__all__ = ["BodyPlaces"]

Array = npt.NDArray[np.float64]


class BodyPlaces:
    """Where bodies that move are; of particles the mean, and the least along each axis.

    Parameters
    ----------
    boundary, units
        Immersed bodies, and the units of places.
    """

    def __init__(self, boundary: ImmersedBoundary, units: Units) -> None:
        self._boundary, self._units = boundary, units
        moving = [body.name for body in boundary.bodies if not isinstance(body.motion, Fixed)]
        self._particles = [name for name in moving if name.startswith(PARTICLE)]
        self._named = [name for name in moving if not name.startswith(PARTICLE)]

    def _places(self, names: Sequence[str]) -> Array:
        places = np.array([self._boundary.centre(name) for name in names], dtype=np.float64)
        return np.stack(self._units.points(places), axis=1)

    def columns(self) -> dict[str, float]:
        """Return places."""
        found: dict[str, float] = {}
        if self._named:
            for name, place in zip(self._named, self._places(self._named), strict=True):
                found |= {f"{name}.{axis}": float(x) for axis, x in zip("xyz", place, strict=False)}
        if self._particles:
            places = self._places(self._particles)
            for axis, column in zip("xyz", places.T, strict=False):
                found |= {f"particles.{axis}": float(column.mean()), f"particles.{axis}_least": float(column.min())}
        return found

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return where particles are on average."""
        if not self._particles:
            return ()
        mean = ", ".join(f"{x:.6g}" for x in self._places(self._particles).mean(axis=0))
        return (("particles", f"{len(self._particles):,}, at ({mean}) on average"),)
