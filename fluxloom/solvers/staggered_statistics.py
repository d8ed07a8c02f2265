"""Averages over time of flow on a staggered grid, and over planes too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.layout import SoA
from fluxloom.dsl.loop import Loop
from fluxloom.fv import staggered as kernels
from fluxloom.solvers.staggered import Staggered

__all__ = ["PlaneAverages", "StaggeredStatistics"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlaneAverages:
    """Averages over time and over planes across an axis, ``n`` of them.

    Attributes
    ----------
    coordinate : (n,)
        Where.
    velocity : (n, d)
        ``<u>``.
    stress : (n, d, d)
        ``<u_a' u_b'>``, of what differs from ``velocity``.
    pressure, pressure_variance : (n,)
        ``<p>`` and ``<p'^2>``, kinematic.
    """

    coordinate: Array
    velocity: Array
    stress: Array
    pressure: Array
    pressure_variance: Array


class StaggeredStatistics:
    """Sums over samples, in cells.

    Parameters
    ----------
    flow
        What is sampled.
    """

    remembers = ("weight", "samples")

    def __init__(self, flow: Staggered) -> None:
        self.flow, fields, d = flow, flow.fields, flow.dimension
        width = d + d * (d + 1) // 2 + 2
        self.sums = flow.context.dat(fields.grid, name="sums", shape=(width,), layout=SoA())
        potential, _ = flow.impulse()
        self._add = Loop(
            kernels.accumulate, fields.grid, fields.u[fields.upward], potential, self.sums, d=d, weight=0.0, scale=0.0
        )
        self.weight, self.samples = 0.0, 0

    def sample(self, weight: float) -> None:
        """Add what there is now, for a length of time."""
        _, scale = self.flow.impulse()
        self._add(weight=weight, scale=scale)
        self.weight += weight
        self.samples += 1

    def means(self) -> Array:
        """Return the averages in cells, ``(*shape, width)``: velocity, its products row by row, p and its square."""
        return self.sums.read()[self.flow.grid.interior] / self.weight

    def velocity(self) -> Array:
        """Return ``<u>`` of cells, ``(cells, d)``."""
        return self.means()[..., : self.flow.dimension].reshape(-1, self.flow.dimension)

    def planes(self, axis: int) -> PlaneAverages:
        """Return averages over the planes across an axis."""
        grid, d = self.flow.grid, self.flow.dimension
        weights = grid.volumes()[grid.interior]
        others = tuple(k for k in range(d) if k != d - 1 - axis)
        lines = (self.means() * weights[..., None]).sum(axis=others) / weights.sum(axis=others)[:, None]
        velocity, stress, place = lines[:, :d], np.zeros((len(lines), d, d)), d
        for a in range(d):
            for b in range(a, d):
                stress[:, a, b] = stress[:, b, a] = lines[:, place] - velocity[:, a] * velocity[:, b]
                place += 1
        pressure = lines[:, place]
        return PlaneAverages(grid.centres(axis), velocity, stress, pressure, lines[:, place + 1] - pressure**2)
