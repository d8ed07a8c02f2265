"""Patches of incompressible flow on edges as a surface that monitors measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.fv.incompressible.boundary import moving_walls
from fluxloom.run.flow_run import rows_in_order
from fluxloom.run.measures import Loads
from fluxloom.solvers.edges.boundary import WallLaw
from fluxloom.solvers.edges.flow import EdgeFlow

__all__ = ["EdgeFlowSurface"]

Array = npt.NDArray[np.float64]


class EdgeFlowSurface:
    """Some patches; see `fluxloom.run.measures.Surface`, and `fluxloom.solvers.edges.flow.EdgeFlow.force`.

    Forces are over the density, the pressure is kinematic. Before the first step there is no force: it is NaN.
    """

    def __init__(self, solver: EdgeFlow, patches: Sequence[str], about: Sequence[float]) -> None:
        self.patches = tuple(patches)
        self._solver, self._found, self._steps = solver, solver.reaction(self.patches, about), 0

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._steps = self._solver.steps
        self._found.chain()

    def collect(self) -> Loads:
        """Return what `take` asked for last, means as ``sum p A / sum A``. Collective."""
        d, sums = self._solver.dimension, np.asarray(self._found.sums.value, dtype=np.float64)
        force, moment = np.array(self._found.total.value, dtype=np.float64), sums[:3].copy()
        if not self._steps:
            force[:], moment[:] = math.nan, math.nan
        pressure = sums[3 : 3 + d].copy()
        flow, mean, square, area = sums[6:].tolist()
        means = {"p": mean / area, "total_pressure": (mean + square) / area}
        return Loads(pressure, force - pressure, moment, flow, area, means=means)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: the flow carries no scalars."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        r"""Return values of the points of the patches on rank 0, each with its part of the area as a face. Collective.

        The wall shear stress is what the discrete equations of momentum say: the force that holds a point, less that
        of the pressure, over the area of the point, :math:`\tau_I = (F_I - p_I \int N_I n \, dA) / \int N_I \, dA`,
        and of this the part along the wall: of higher order than gradients in the elements. In ``y_plus`` the distance
        is that of the next points, twice the volume of the point over its area, or that of a law of the wall.
        """
        solver, found, d = self._solver, self._found, self._solver.dimension
        self.take()
        at, site, loops = found.points, found.site, solver.loops
        load, p = found.load.read()[at], loops.shown.read()[at]
        area, vectors = site[:, 2 * d], site[:, d : 2 * d]
        normals = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        tau = (load - p[:, None] * vectors) / area[:, None]
        tau -= np.einsum("ij,ij->i", tau, normals)[:, None] * normals
        if not self._steps:
            tau[:] = math.nan
        axes = "xyz"[:d]
        columns = {name: site[:, k] for k, name in enumerate(axes)}
        columns |= {f"n{name}": normals[:, k] for k, name in enumerate(axes)}
        columns |= {"area": area, "p": p} | {f"tau_{name}": tau[:, k] for k, name in enumerate(axes)}
        nu = loops.laminar.read()[at]
        away = 2.0 * solver.operators.mass.read()[at] / area
        for name in self.patches:
            if isinstance(law := loops.boundaries[name], WallLaw):
                away[np.isin(at, solver.mesh.patches[name].points)] = law.distance
        with np.errstate(divide="ignore"):
            columns["y_plus"] = away * np.sqrt(np.linalg.norm(tau, axis=1)) / nu
        if moving := moving_walls(loops.boundaries, self.patches):
            theirs = [solver.mesh.patches[name].points for name in moving]
            columns["moves"] = np.isin(at, np.concatenate(theirs)).astype(np.float64)
        rows = rows_in_order(solver.context.comm, solver.mesh.numbers[at], np.stack(list(columns.values()), axis=1))
        return {} if solver.context.comm.rank else dict(zip(columns, rows.T, strict=True))
