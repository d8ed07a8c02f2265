"""Patches through which a scalar at points passes, as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
import numpy.typing as npt

from fluxloom.fv.given import Given, parts_of
from fluxloom.run.flow_run import rows_in_order
from fluxloom.run.measures import Loads
from fluxloom.solvers.edges.diffusion import Diffusion
from fluxloom.solvers.edges.transport_given import check_names

__all__ = ["ScalarSurface"]

Array = npt.NDArray[np.float64]


class ScalarSurface:
    """Some patches; see `fluxloom.run.measures.Surface`. There are no forces: what passes is the scalar.

    Parameters
    ----------
    solver
        Whose scalar.
    patches
        Their names.
    conductivity
        What multiplies the gradient of the scalar.

    Raises
    ------
    SolverError
        If there is no such patch.
    """

    def __init__(self, solver: Diffusion, patches: Sequence[str], conductivity: Given) -> None:
        check_names("patches", solver.mesh.patches, dict.fromkeys(patches))
        self.patches, self._solver, self._conductivity = tuple(patches), solver, parts_of(conductivity)[0]
        self._found = np.zeros(3)

    def take(self) -> None:
        """Find the sums of now. Collective."""
        _, area, entering = self._points()
        mine = np.array([area.sum(), area @ self._solver.c.read(), entering.sum()])
        self._found = self._solver.mesh.context.comm.reduce(mine, "sum")

    def collect(self) -> Loads:
        """Return the area of what `take` was asked for last; there are no forces."""
        none = np.full(self._solver.mesh.dimension, nan)
        return Loads(none, none, np.full(3, nan), nan, float(self._found[0]), turns=False)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return the mean of the scalar over the area, ``sum c A / sum A``, and what leaves in a unit of time."""
        area, whole, entering = self._found.tolist()
        return {"scalar": (whole / area if area else nan, 0.0 - entering)}

    def _points(self) -> tuple[Array, Array, Array]:
        """Return vectors of area ``(n, d)``, areas and what enters ``(n,)`` of all points of this rank. Collective."""
        mesh, n = self._solver.mesh, self._solver.mesh.points.size
        vectors, area, entering = np.zeros((n, mesh.dimension)), np.zeros(n), np.zeros(n)
        for name in self.patches:
            patch = mesh.patches[name]
            vectors[patch.points] += patch.areas
            area[patch.points] += patch.extents
            entering[patch.points] += self._solver.entering(name)
        return vectors, area, entering

    def faces(self) -> Mapping[str, Array]:
        """Return values of the points of the patches on rank 0, each with its part of the area as a face. Collective.

        ``scalar_flux`` is what leaves through the part of a point over its area.
        """
        solver, mesh = self._solver, self._solver.mesh
        vectors, area, entering = self._points()
        at = np.flatnonzero(area)
        places, vectors, area = mesh.coordinates[at], vectors[at], area[at]
        normals = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        axes = "xyz"[: mesh.dimension]
        found = {name: places[:, k] for k, name in enumerate(axes)}
        found |= {f"n{name}": normals[:, k] for k, name in enumerate(axes)}
        found |= {"area": area, "scalar": solver.c.read()[at], "scalar_flux": -entering[at] / area}
        found["scalar_diffusivity"] = self._conductivity.at(places, solver.time)
        rows = rows_in_order(mesh.context.comm, mesh.numbers[at], np.stack(list(found.values()), axis=1))
        return {} if mesh.context.comm.rank else dict(zip(found, rows.T, strict=True))
