"""Averages over time of flow on a staggered grid, and over planes too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.layout import SoA
from fluxloom.dsl.loop import Loop
from fluxloom.fv import staggered as kernels
from fluxloom.solvers.flow_types import Profile, symmetric
from fluxloom.solvers.staggered import Staggered

__all__ = ["StaggeredStatistics"]

Array = npt.NDArray[np.float64]


class StaggeredStatistics:
    """Sums over samples, in cells.

    Parameters
    ----------
    flow
        What is sampled.
    start
        Time before which `sample` does nothing.
    """

    remembers = ("weight", "samples")

    def __init__(self, flow: Staggered, start: float = 0.0) -> None:
        self.flow, self.start, fields, d = flow, start, flow.fields, flow.dimension
        width = d + d * (d + 1) // 2 + 2
        self.sums = flow.context.dat(fields.grid, name="sums", shape=(width,), layout=SoA())
        potential, _ = flow.impulse()
        self._add = Loop(
            kernels.accumulate, fields.grid, fields.u[fields.upward], potential, self.sums, d=d, weight=0.0, scale=0.0
        )
        self.weight, self.samples = 0.0, 0

    def sample(self, weight: float) -> None:
        """Add what there is now, for a length of time."""
        if self.flow.time < self.start:
            return
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

    def profile(self, axis: str, bins: int | None = None) -> Profile:
        """Return averages over the planes across an axis, ``"x"``, ``"y"`` or ``"z"``; there are no other intervals.

        Raises
        ------
        SolverError
            If there is no such axis, or intervals are wanted.
        """
        grid, d = self.flow.grid, self.flow.dimension
        if axis not in tuple("xyz"[:d]) or bins is not None:
            raise SolverError(f"profile: an axis of a staggered grid is wanted, and no bins, not {axis!r} and {bins!r}")
        weights, across = grid.volumes()[grid.interior], "xyz".index(axis)
        others = tuple(k for k in range(d) if k != d - 1 - across)
        volume = weights.sum(axis=others)
        lines = (self.means() * weights[..., None]).sum(axis=others) / volume[:, None]
        velocity, pressure, (rows, columns) = lines[:, :d], lines[:, -2], np.triu_indices(d)
        stress = symmetric(lines[:, d:-2] - velocity[:, rows] * velocity[:, columns], d)
        return Profile(grid.centres(across), volume, velocity, stress, pressure, lines[:, -1] - pressure**2, {})
