"""Probes of flow on edges: velocity and pressure at places within triangles and tetrahedra, linear there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.kernel.frontend import Kernel, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.mesh.geometry.search import search
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.probe_records import Outside, ProbePlaces, ProbeRecords, Source

__all__ = ["EdgeProbes", "SimplexPlaces", "simplices_of"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_RIM = 1e-9
"""How far beyond a face a place may be, as a part of the height of its simplex: rounding."""


@kernel
def sample_edges(weight: Read, u: Read, p: Read, found: Write, *, d: Const[int]):
    """Velocity and pressure at a place within a simplex, ``u = sum N_I u_I`` and ``p = sum N_I p_I``."""
    total = zeros(d + 1)
    for j in range(d + 1):
        for k in range(d):
            total[k] += weight[j] * u[j][k]
        total[d] += weight[j] * p[j]
    for k in range(d + 1):
        found[k] = total[k]


def simplices_of(mesh: PointMesh, places: Array) -> tuple[Index, Array, Array]:
    """Return the simplex of this rank that each place is in, and its barycentric coordinates there.

    Parameters
    ----------
    mesh
        Of the points.
    places : (m, d)
        Coordinates.

    Returns
    -------
    cells : (m,)
        Rows of ``mesh.simplices``; -1 for places in none of them.
    weights : (m, d + 1)
        Barycentric coordinates, ``N_I``.
    out : (m,)
        Minus the least of them; infinite for places in none.
    """
    corners, d = mesh.coordinates[mesh.simplices], mesh.dimension
    low, high = corners.min(axis=1), corners.max(axis=1)
    margin = _RIM * np.maximum(high - low, 0.0)
    cells, out = np.full(len(places), -1, dtype=np.int64), np.full(len(places), np.inf)
    weights = np.zeros((len(places), d + 1))
    low, high = low - margin, high + margin

    def near_box(rows: Index, least: Array, most: Array) -> Index:
        """Return those whose boxes touch a box."""
        return rows[((most >= low[rows]) & (least <= high[rows])).all(axis=1)]

    for rows, known in search(places, np.arange(len(corners)), near_box):
        for k in rows.tolist():
            place, near = places[k], near_box(known, places[k], places[k])
            if not near.size:
                continue
            first = corners[near, 0]
            sides = (corners[near, 1:] - first[:, None]).transpose(0, 2, 1)
            others = np.linalg.solve(sides, (place - first)[:, :, None])[:, :, 0]
            found = np.concatenate([1.0 - others.sum(axis=1, keepdims=True), others], axis=1)
            best = int(found.min(axis=1).argmax())
            if found[best].min() >= -_RIM:
                cells[k], weights[k], out[k] = near[best], found[best], -found[best].min()
    return cells, weights, out


class SimplexPlaces:
    """Places in a mesh of triangles or tetrahedra, where loops find what is between the points. Collective.

    Parameters
    ----------
    mesh
        Of the points.
    points
        Name to coordinates ``(d,)``, m.
    outside
        Whether points outside of the mesh are an error, or left out.

    Attributes
    ----------
    found
        The places, each on one rank.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.
    """

    def __init__(
        self, mesh: PointMesh, points: Mapping[str, Sequence[float]], outside: Outside = "error"
    ) -> None:
        self.mesh, self._weights = mesh, np.zeros((0, mesh.dimension + 1))
        self.found = ProbePlaces(mesh.context, points, mesh.dimension, self._find, outside)

    def _find(self, places: Array) -> tuple[Index, Array]:
        cells, self._weights, out = simplices_of(self.mesh, places)
        return cells, out

    def loop(self, what: Kernel, values: Dat, *dats: Dat) -> Loop:
        """Return the loop over the places of this rank that makes values of those of dats at the corners around."""
        mesh, where = self.mesh, self.found
        to_points = mesh.context.map(where.set, mesh.points, mesh.simplices[where.cells], "probes.points")
        weight = mesh.context.dat(where.set, self._weights[where.given], "probes.weights")
        corners = (dat[to_points] for dat in dats)
        return Loop(what, where.set, weight, *corners, values, d=mesh.dimension, name="probes.sample")


class EdgeProbes:
    """Places whose velocity and pressure are kept; values are those of the finite elements.

    Samples are kept as `fluxloom.solvers.probe_records.ProbeRecords` says: of each probe ``d`` components of the
    velocity and the pressure. On several ranks everything is collective.

    Parameters
    ----------
    flow
        Whose.
    points
        Name to coordinates ``(d,)``, m.
    capacity
        Samples that the device keeps before the host reads them all at once.
    outside
        Whether points outside of the mesh are an error, or left out.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.

    Attributes
    ----------
    names, points, columns
        Of the points that are in the mesh, their coordinates, and the names of the values at each.
    records
        The samples.
    """

    def __init__(
        self, flow: EdgeFlow, points: Mapping[str, Sequence[float]], capacity: int = 256, outside: Outside = "error"
    ) -> None:
        self.flow, places = flow, SimplexPlaces(flow.mesh, points, outside)
        self.names, self.points = places.found.names, places.found.places
        self.columns: tuple[str, ...] = (*"uvw"[: flow.dimension], "p")

        def states(values: Dat) -> Loop:
            """Return the loop that interpolates velocity and pressure linearly to the points."""
            return places.loop(sample_edges, values, flow.u, flow.p)

        self.records = ProbeRecords(places.found, (Source("flow", flow.dimension + 1, states),), capacity)

    def sample(self) -> None:
        """Keep what is at the probes now."""
        self.records.sample(self.flow.time)
