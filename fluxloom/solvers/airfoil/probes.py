"""Probes of the Airfoil benchmark: values of the cells that points are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.mesh.geometry.polygons import cells_at
from fluxloom.solvers.airfoil.flow import Airfoil, pressure, root
from fluxloom.solvers.probe_records import Outside, ProbePlaces, ProbeRecords, Source

__all__ = ["AirfoilProbes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@kernel
def corners_of(x: Read, corners: Write):
    """Corners of a cell, one after the other: ``corners[2 k + i] = x_k,i``."""
    for k in range(4):
        corners[2 * k] = x[k][0]
        corners[2 * k + 1] = x[k][1]


@kernel
def sample_cell(q: Read, found: Write, *, gamma: float, gm1: float):
    """Density, velocity, pressure and Mach number of a cell, ``M = sqrt(|u|^2 rho / (gamma p))``."""
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
    mine, cells
        Numbers of the points of this rank, and the cells that they are in.
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
        shapes, numbers = corners.read().reshape(-1, 4, 2), flow.cells.numbers[: flow.cells.size]
        centres = shapes.mean(axis=1)
        places = ProbePlaces(
            context, points, 2, lambda at: cells_at(shapes, centres, numbers, at), outside, numbers=numbers
        )
        self.names, self.points, self.mine, self.cells = places.names, places.places, places.mine, places.cells
        own = context.map(places.set, flow.cells, places.cells[:, None], "probes.cell")[0]

        def states(found: Dat) -> Loop:
            """Return the loop that finds the state of the cell of each point."""
            return Loop(sample_cell, places.set, flow.q[own], found, gamma=gamma, gm1=gamma - 1.0)

        self.records = ProbeRecords(places, (Source("state", len(self.columns), states),), capacity)

    def sample(self) -> None:
        """Keep what is at the places now."""
        self.records.sample(float(self.flow.iterations))
