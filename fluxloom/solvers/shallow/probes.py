"""Depth, surface and velocity of the water at points, sampled on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.shallow.kernels import sample_water
from fluxloom.fv.shallow.places import cell_numbers
from fluxloom.mesh.geometry.polygons import cells_at
from fluxloom.mesh.ranks.bind import Mesh
from fluxloom.solvers.probe_records import Outside, ProbePlaces, ProbeRecords, Source
from fluxloom.solvers.shallow.flow import ShallowWater

__all__ = ["WaterProbes", "corners_of"]


class WaterProbes:
    """Points at which the water is that of the cells that they are in.

    Samples are kept as `fluxloom.solvers.probe_records.ProbeRecords` says. On several ranks everything is collective.

    Parameters
    ----------
    flow
        Whose water it is.
    points
        Name to coordinates ``(2,)``, metres.
    capacity
        Samples that the device keeps before the host reads them all at once.
    outside
        Whether points outside of the mesh are an error, or left out.

    Attributes
    ----------
    names, columns
        Of the points that are in the mesh, and of the values at each.
    mine, cells
        Numbers of the points of this rank, and the cells that they are in.
    records
        The samples.

    Raises
    ------
    SolverError
        If a point lies in no cell of any rank and may not, or all do; if one has not two coordinates; with no points.
    """

    columns: tuple[str, ...] = ("depth", "elevation", "velocity_x", "velocity_y")

    def __init__(
        self, flow: ShallowWater, points: Mapping[str, Sequence[float]], capacity: int = 256, outside: Outside = "error"
    ) -> None:
        mesh, numbers = flow.mesh, cell_numbers(flow.mesh)
        shapes, centres = corners_of(mesh), mesh.centroids.read()[:, :2].astype(np.float64)
        places = ProbePlaces(
            flow.context, points, 2, lambda at: cells_at(shapes, centres, numbers, at), outside, numbers=numbers
        )
        self.flow, self.names, self.mine, self.cells = flow, places.names, places.mine, places.cells
        own = flow.context.map(places.set, mesh.cells, places.cells[:, None], "probes.cell")[0]

        def water(found: Dat) -> Loop:
            """Return the loop that finds depth, surface and velocity of the cell of each point, ``(n, 4)``."""
            return Loop(sample_water, places.set, flow.u[own], flow.zb[own], found, eps=flow.thin)

        self.records = ProbeRecords(places, (Source("water", len(self.columns), water),), capacity)

    def sample(self) -> None:
        """Keep what is at the points now."""
        self.records.sample(self.flow.time)


def corners_of(mesh: Mesh) -> npt.NDArray[np.float64]:
    """Return the corners of the owned cells, ``(n, most, 2)``; of those with fewer the last one again."""
    rows, count = mesh.part.rows("cell_nodes"), mesh.cells.size
    width = int(rows.counts[:count].max(initial=1))
    place = np.minimum(rows.offsets[:count, None] + np.arange(width), rows.offsets[1 : count + 1, None] - 1)
    return mesh.part.points[rows.indices[place]]
