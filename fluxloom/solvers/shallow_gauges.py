"""Gauges: depth, surface and velocity of the water at points, without moving whole fields to the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.loop import Loop
from fluxloom.fv.shallow_places import cell_numbers
from fluxloom.fv.shallow_water import probe
from fluxloom.mesh.bind import Mesh
from fluxloom.mesh.mesh import FloatArray
from fluxloom.solvers.shallow_water import ShallowWater

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["GaugeRecords", "Gauges", "locate"]

_NEAREST = 24


class GaugeRecords:
    """Samples of gauges, which the host keeps: reading them is all that a sample is."""

    def __init__(self) -> None:
        self.reset()

    def add(self, time: float, values: FloatArray) -> None:
        """Keep values ``(gauges, 4)`` at a time."""
        self._times.append(time)
        self._values.append(values)

    def values(self, first: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return times ``(n,)`` and values ``(n, gauges, 4)``, from the sample with the number ``first`` on.

        Raises
        ------
        SolverError
            If there is none.
        """
        if not 0 <= first < len(self._times):
            raise SolverError(f"gauges: there is no sample yet from number {first} on: call sample() after steps")
        return np.array(self._times[first:]), np.array(self._values[first:])

    def reset(self) -> None:
        """Forget all samples."""
        self._times: list[float] = []
        self._values: list[FloatArray] = []


class Gauges:
    """Points of a solver that are read together; on several ranks each is read by the one that owns its cell.

    All methods are collective, and every rank gets the same.

    Parameters
    ----------
    solver
        Whose water it is.
    points
        Name to coordinates ``(x, y)``.
    outside
        Whether points outside of the mesh are an error, or left out.

    Attributes
    ----------
    names, columns
        Of the points that are in the mesh, and of the values at each.
    records
        The samples.

    Raises
    ------
    SolverError
        If a point lies in no cell of any rank and may not, or all do; if one has not two coordinates.
    """

    columns: tuple[str, ...] = ("depth", "elevation", "velocity_x", "velocity_y")

    def __init__(
        self, solver: ShallowWater, points: Mapping[str, Sequence[float]], outside: Outside = "error"
    ) -> None:
        for name, point in points.items():
            if len(point) != 2:
                raise SolverError(f"gauge {name!r}: 2 coordinates are wanted, not {point!r}")
        self._solver, self.records = solver, GaugeRecords()
        names = tuple(points)
        places = np.array([points[name] for name in names], dtype=np.float64).reshape(-1, 2)
        context, mesh = solver.context, solver.mesh
        cells, distances = locate(mesh, places)
        # A point on a side lies in two cells, maybe of two ranks: the nearest centroid counts, then the lower number.
        absent = mesh.cells.total
        numbers = np.append(cell_numbers(mesh), absent)[cells]
        found = context.comm.allgather(list(zip(distances.tolist(), numbers.tolist(), strict=True)))
        chosen = np.array([min(ranks)[1] for ranks in zip(*found, strict=True)], dtype=np.int64)
        lost = chosen == absent
        if lost.any() and outside == "error":
            k = int(np.argmax(lost))
            raise SolverError(f"gauge {names[k]!r} at ({places[k, 0]:g}, {places[k, 1]:g}) is not in the mesh")
        if lost.all() and names:
            raise SolverError(f"none of {len(names):,} points is in the mesh")
        self.names = tuple(name for name, out in zip(names, lost.tolist(), strict=True) if not out)
        cells, numbers, chosen = cells[~lost], numbers[~lost], chosen[~lost]
        mine = numbers == chosen
        # A cell has one row, whatever number of gauges is in it: that of the first.
        _, first, same = np.unique(chosen, return_index=True, return_inverse=True)
        self._rows = first[same].astype(np.int64)
        table = np.zeros(mesh.cells.size, dtype=np.int32)
        table[cells[mine]] = self._rows[mine]
        real = "float32" if context.device.refuses_double else "float64"
        self._values = context.scalar(np.zeros(max(1, 4 * len(cells))), "gauges", dtype=real)
        place = context.dat(mesh.cells, table, "gauge_row")
        over = context.subset(mesh.cells, np.unique(cells[mine]), "gauges")
        self._probe = Loop(probe, over, solver.u, solver.zb, place, self._values, eps=solver.thin)

    def read(self) -> npt.NDArray[np.float64]:
        """Return depth, surface, and velocity along x and y at the gauges now, ``(gauges, 4)``."""
        if not self.names:
            return np.zeros((0, 4))
        self._values.value = np.zeros(4 * len(self.names))
        self._probe()
        return np.asarray(self._values.value, dtype=np.float64).reshape(-1, 4)[self._rows]

    def sample(self) -> None:
        """Keep what is at the gauges now."""
        self.records.add(self._solver.time, self.read())


def locate(mesh: Mesh, points: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the cell of this rank that each point lies in; cells are convex.

    Parameters
    ----------
    mesh
        In the plane.
    points : (m, 2)
        Coordinates.

    Returns
    -------
    cells : (m,) int64
        Local numbers, -1 for none; of several cells that with the nearest centroid, then the lowest global number.
    distances : (m,)
        From their centroids, infinite for none.
    """
    from scipy.spatial import KDTree

    found, distances = np.full(len(points), -1, dtype=np.int64), np.full(len(points), np.inf)
    size = mesh.cells.size
    if not len(points) or not size:
        return found, distances
    centres, numbers = mesh.centroids.read()[:, :2].astype(np.float64), cell_numbers(mesh)
    count = min(_NEAREST, size)
    _, near = KDTree(centres).query(points, k=count)
    corners = _corners(mesh)
    for k, candidates in enumerate(np.asarray(near).reshape(len(points), count)):
        inside = [int(cell) for cell in candidates if _inside(corners(int(cell)), points[k])]
        if inside:
            away = {cell: float(np.hypot(*(centres[cell] - points[k]))) for cell in inside}
            found[k] = min(inside, key=lambda cell: (away[cell], numbers[cell]))
            distances[k] = away[int(found[k])]
    return found, distances


def _corners(mesh: Mesh) -> Callable[[int], FloatArray]:
    """Return a function of an owned cell that returns its corners, ``(n, 2)``."""
    rows, points = mesh.part.rows("cell_nodes"), mesh.part.points
    return lambda cell: points[rows[cell]]


def _inside(corners: FloatArray, point: FloatArray) -> bool:
    """Whether a point lies in a convex polygon that turns anticlockwise, or on its rim."""
    along = np.roll(corners, -1, axis=0) - corners
    to = point - corners
    turn = along[:, 0] * to[:, 1] - along[:, 1] * to[:, 0]
    return bool((turn >= -1e-12 * np.abs(along).max() ** 2).all())
