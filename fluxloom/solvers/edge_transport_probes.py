"""Probes of transport on edges: the scalar at places within triangles and tetrahedra, linear there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.solvers.edge_probes import simplices_of
from fluxloom.solvers.edge_transport import EdgeTransport
from fluxloom.solvers.probe_records import ProbePlaces, ProbeRecords, Source

__all__ = ["TransportProbes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@kernel
def sample_scalar(weight: Read, c: Read, found: Write, *, d: Const[int]):
    """``sum N_I c_I`` at a place within a simplex."""
    total = 0.0
    for j in range(d + 1):
        total += weight[j] * c[j]
    found[0] = total


class TransportProbes:
    """Places at which the scalar is kept; values are those of the finite elements.

    Samples are kept as `fluxloom.solvers.probe_records.ProbeRecords` says. On several ranks everything is collective.

    Parameters
    ----------
    transport
        Whose scalar.
    points
        Name to coordinates ``(d,)``, m.
    capacity
        Samples that the device keeps before the host reads them all at once.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.
    """

    def __init__(self, transport: EdgeTransport, points: Mapping[str, Sequence[float]], capacity: int = 256) -> None:
        self.transport, self._weights = transport, np.zeros((0, transport.dimension + 1))
        self._points = ProbePlaces(transport.context, points, transport.dimension, self._found)
        self.names, self.points = self._points.names, self._points.places
        self.records = ProbeRecords(self._points, (Source("scalar", 1, self._loop),), capacity)

    def _found(self, places: Array) -> tuple[Index, Array]:
        cells, self._weights, out = simplices_of(self.transport.mesh, places)
        return cells, out

    def _loop(self, found: Dat) -> Loop:
        """Return the loop that finds the scalar at the places of this rank."""
        mesh, where, ctx = self.transport.mesh, self._points, self.transport.context
        to_points = ctx.map(where.set, mesh.points, mesh.simplices[where.cells], "probes.points")
        weight = ctx.dat(where.set, self._weights[where.mine], "probes.weights")
        return Loop(
            sample_scalar, where.set, weight, self.transport.c[to_points], found, d=mesh.dimension,
            name="probes.sample",
        )  # fmt: skip

    def sample(self) -> None:
        """Keep what is at the probes now."""
        self.records.sample(self.transport.time)
