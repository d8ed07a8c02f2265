"""Sides of a staggered grid as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.fv.incompressible.boundary import moving_walls
from fluxloom.run.measures import Loads
from fluxloom.solvers.staggered.flow import Staggered
from fluxloom.solvers.staggered.forces import StaggeredForces

__all__ = ["StaggeredSurface"]

Array = npt.NDArray[np.float64]


class StaggeredSurface:
    """Some sides; see `fluxloom.run.measures.Surface`. Forces are over the density, the pressure is kinematic."""

    def __init__(self, solver: Staggered, patches: Sequence[str], about: Sequence[float]) -> None:
        self.patches, self._solver = tuple(patches), solver
        self._forces = StaggeredForces(solver, self.patches, about)

    def take(self) -> None:
        """Let the device find the sums of now."""
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last."""
        found = self._forces.collect()
        means = {"p": found.mean_pressure, "total_pressure": found.mean_total}
        return Loads(found.pressure, found.friction, found.moment, found.flow, found.area, means=means)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: the flow carries no scalars."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        """Return values of the faces of the cells at the sides.

        Components of the wall shear stress are means of the two places beside a face where the velocity along them is,
        at the ends of a side that of one.
        """
        self._forces.take()
        parts = [self._side(name) for name in self.patches]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _side(self, name: str) -> dict[str, Array]:
        solver, grid, d = self._solver, self._solver.grid, self._solver.dimension
        weights, load = self._forces.weights[name], self._forces.loads[name].read()
        axis, upper = "xyz".index(name[0]), name.endswith("max")
        axes, width = "xyz"[:d], float(grid.widths(axis)[-1 if upper else 0])
        places, area = weights.arms[:, axis], np.abs(weights.push[:, axis])
        found = {axes[k]: places[:, k] for k in range(d)}
        found |= {f"n{axes[k]}": np.full(area.size, float(k == axis) * (1.0 if upper else -1.0)) for k in range(d)}
        found |= {"area": area, "p": load[:, 2 * d]}
        if moving := moving_walls(solver.boundaries, self.patches):
            found["moves"] = np.full(area.size, float(name in moving))
        if not solver.viscosity:
            return found
        tau = np.zeros((area.size, d))
        for a in range(d):
            if a != axis:
                tau[:, a] = self._beside(load[:, d + a], weights.friction[:, a] * width / solver.viscosity, axis, a)
        found |= {f"tau_{axes[k]}": tau[:, k] for k in range(d)}
        found["y_plus"] = 0.5 * width * np.sqrt(np.linalg.norm(tau, axis=1)) / solver.viscosity
        return found

    def _beside(self, friction: Array, about: Array, axis: int, a: int) -> Array:
        """Return means, in the middle of faces, of stresses that are stored at their lower ends along ``a``."""
        grid = self._solver.grid
        shape = [1 if grid.dimension - 1 - k == axis else n for k, n in enumerate(grid.shape)]
        here = np.full(about.size, np.nan)
        np.divide(friction, about, out=here, where=about > 0.0)
        along, here = grid.dimension - 1 - a, here.reshape(shape)
        there = np.roll(here, -1, axis=along)
        if not grid.periodic[a]:
            last: list[int | slice] = [slice(None)] * grid.dimension
            last[along] = -1
            there[tuple(last)] = np.nan
        both = np.stack([here.ravel(), there.ravel()])
        known = np.isfinite(both)
        return np.where(known, both, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
