"""Probes of the Airfoil benchmark: values of the cells that points are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Read, Write
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.mesh.search import search
from fluxloom.solvers.airfoil import Airfoil, pressure, root
from fluxloom.solvers.probe_records import Outside, ProbePlaces, ProbeRecords, Source

__all__ = ["AirfoilProbes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_RIM = 1e-9
"""How far beyond a side a place may be, of the size of its cell: rounding."""


@kernel
def corners_of(x: Read, corners: Write):
    """Corners of a cell, one after the other."""
    for k in range(4):
        corners[2 * k] = x[k][0]
        corners[2 * k + 1] = x[k][1]


@kernel
def sample_cell(q: Read, found: Write, *, gamma: float, gm1: float):
    """Density, velocity, pressure and Mach number of a cell."""
    u = q[1] / q[0]
    v = q[2] / q[0]
    p = pressure(q, gm1)
    found[0] = q[0]
    found[1] = u
    found[2] = v
    found[3] = p
    found[4] = root((u * u + v * v) * q[0] / (gamma * p))


class AirfoilProbes:
    """Places whose cells are looked at.

    Samples are over iterations, and kept as `fluxloom.solvers.probe_records.ProbeRecords` says. On several ranks
    everything is collective.

    Parameters
    ----------
    flow
        Whose.
    points
        Name to coordinates ``(2,)``, chords.
    capacity
        Samples that the device keeps before the host reads them all at once.
    outside
        Whether points outside of the mesh are an error, or left out.

    Attributes
    ----------
    names, points, columns
        Of the points that are in the mesh, their coordinates, and the names of the values at each.
    records
        The samples.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.
    """

    columns: tuple[str, ...] = ("density", "velocity_x", "velocity_y", "pressure", "mach")

    def __init__(
        self, flow: Airfoil, points: Mapping[str, Sequence[float]], capacity: int = 256, outside: Outside = "error"
    ) -> None:
        self.flow, context, gamma = flow, flow.context, flow.constants.gamma
        corners = context.dat(flow.cells, name="corners", shape=(8,))
        Loop(corners_of, flow.cells, flow.x[flow.c2n], corners)()
        shapes = corners.read().reshape(-1, 4, 2)
        places = ProbePlaces(context, points, 2, lambda at: _cells_of(shapes, at), outside)
        self.names, self.points = places.names, places.places
        own = context.map(places.set, flow.cells, places.cells[:, None], "probes.cell")[0]

        def states(found: Dat) -> Loop:
            return Loop(sample_cell, places.set, flow.q[own], found, gamma=gamma, gm1=gamma - 1.0)

        self.records = ProbeRecords(places, (Source("state", len(self.columns), states),), capacity)

    def sample(self) -> None:
        """Keep what is at the places now."""
        self.records.sample(float(self.flow.iterations))


def _cells_of(shapes: Array, places: Array) -> tuple[Index, Array]:
    """Return the cell that each place is in, and how far out of it, over the size of the cell; infinite: in none.

    Parameters
    ----------
    shapes : (cells, 4, 2)
        Corners, anticlockwise; cells are convex.
    places : (n, 2)
        Coordinates.
    """
    low, high = shapes.min(axis=1), shapes.max(axis=1)
    size = (high - low).max(axis=1, initial=0.0)
    low, high = low - _RIM * size[:, None], high + _RIM * size[:, None]
    along = np.roll(shapes, -1, axis=1) - shapes
    length = np.maximum(np.linalg.norm(along, axis=2), 1e-300)
    found, out = np.full(len(places), -1, dtype=np.int64), np.full(len(places), np.inf)

    def near(rows: Index, least: Array, most: Array) -> Index:
        """Return cells whose boxes touch a box."""
        return rows[((most >= low[rows]) & (least <= high[rows])).all(axis=1)]

    for group, known in search(places, np.arange(len(shapes)), near):
        for k in group.tolist():
            cells = near(known, places[k], places[k])
            to, way = places[k] - shapes[cells], along[cells]
            beyond = (way[..., 1] * to[..., 0] - way[..., 0] * to[..., 1]) / length[cells]
            worst = beyond.max(axis=1, initial=-np.inf) / size[cells]
            if worst.size and worst.min() <= _RIM:
                best = int(worst.argmin())
                found[k], out[k] = cells[best], worst[best]
    return found, out
