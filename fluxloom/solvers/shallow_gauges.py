"""Gauges: depth, surface and velocity of the water at points, without moving whole fields to the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from fluxloom.core.errors import SolverError
from fluxloom.dsl.loop import Loop
from fluxloom.fv.shallow_water import probe
from fluxloom.mesh.bind import Mesh
from fluxloom.mesh.mesh import FloatArray
from fluxloom.solvers.shallow_water import ShallowWater

__all__ = ["Gauges", "locate"]

_NEAREST = 24


class Gauges:
    """Points of a solver that are read together.

    Parameters
    ----------
    solver
        Whose water it is.
    points
        Name to coordinates ``(x, y)``.

    Raises
    ------
    SolverError
        If a point lies in no cell of any rank.
    """

    def __init__(self, solver: ShallowWater, points: Mapping[str, Sequence[float]]) -> None:
        self.names = tuple(points)
        places = np.array([points[name] for name in self.names], dtype=np.float64).reshape(-1, 2)
        context, mesh = solver.context, solver.mesh
        cells = locate(mesh, places)
        everywhere = context.comm.reduce((cells >= 0).astype(np.int64), "max")
        if len(places) and not everywhere.all():
            k = int(np.argmin(everywhere))
            raise SolverError(f"gauge {self.names[k]!r} at ({places[k, 0]:g}, {places[k, 1]:g}) is not in the mesh")
        mine = np.unique(cells[cells >= 0])
        table = np.zeros(mesh.cells.size, dtype=np.int32)
        # A cell has one row, whatever number of gauges is in it: that of the first.
        rows = np.full(len(cells), -1)
        for k, cell in enumerate(cells):
            rows[k] = np.flatnonzero(cells == cell)[0]
            if cell >= 0:
                table[cell] = rows[k]
        self._rows = context.comm.reduce(rows * (cells >= 0), "max").astype(np.int64) if len(cells) else rows
        real = "float32" if context.device.refuses_double else "float64"
        self._values = context.scalar(np.zeros(max(1, 4 * len(cells))), "gauges", dtype=real)
        place = context.dat(mesh.cells, table, "gauge_row")
        over = context.subset(mesh.cells, mine, "gauges")
        self._probe = Loop(probe, over, solver.u, solver.zb, place, self._values, eps=solver.thin)

    def read(self) -> npt.NDArray[np.float64]:
        """Return depth, surface, and velocity along x and y at the gauges now, ``(gauges, 4)``."""
        if not self.names:
            return np.zeros((0, 4))
        self._values.value = np.zeros(4 * len(self.names))
        self._probe()
        return np.asarray(self._values.value, dtype=np.float64).reshape(-1, 4)[self._rows]


def locate(mesh: Mesh, points: FloatArray) -> npt.NDArray[np.int64]:
    """Return the cell of this rank that each point ``(m, 2)`` lies in, -1 for none; cells are convex."""
    size = mesh.cells.size
    if not len(points) or not size:
        return np.full(len(points), -1, dtype=np.int64)
    tree = KDTree(mesh.centroids.read()[:, :2])
    count = min(_NEAREST, size)
    _, near = tree.query(points, k=count)
    near = np.asarray(near).reshape(len(points), count)
    rows = mesh.data.cell_nodes()
    found = np.full(len(points), -1, dtype=np.int64)
    for k, point in enumerate(points):
        for cell in near[k]:
            if _inside(mesh.data.points[rows[int(cell)]], point):
                found[k] = cell
                break
    return found


def _inside(corners: FloatArray, point: FloatArray) -> bool:
    """Whether a point lies in a convex polygon that turns anticlockwise, or on its rim."""
    along = np.roll(corners, -1, axis=0) - corners
    to = point - corners
    turn = along[:, 0] * to[:, 1] - along[:, 1] * to[:, 0]
    return bool((turn >= -1e-12 * np.abs(along).max() ** 2).all())
