"""Probes of transport on edges: the scalar at places within triangles and tetrahedra, linear there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluxloom.core.access import Const, Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.solvers.edges.diffusion import Diffusion
from fluxloom.solvers.edges.probes import SimplexPlaces
from fluxloom.solvers.edges.transport import EdgeTransport
from fluxloom.solvers.probe_records import Outside, ProbeRecords, Source

__all__ = ["TransportProbes"]


@kernel
def sample_scalar(weight: Read, c: Read, found: Write, *, d: Const[int]):
    """The scalar at a place within a simplex, ``c = sum N_I c_I``."""
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

    columns: tuple[str, ...] = ("scalar",)

    def __init__(
        self, transport: EdgeTransport | Diffusion, points: Mapping[str, Sequence[float]], capacity: int = 256,
        outside: Outside = "error",
    ) -> None:  # fmt: skip
        self.transport, places = transport, SimplexPlaces(transport.mesh, points, outside)
        self.names, self.points = places.found.names, places.found.places

        def scalars(values: Dat) -> Loop:
            """Return the loop that interpolates the scalar linearly to the points."""
            return places.loop(sample_scalar, values, transport.c)

        self.records = ProbeRecords(places.found, (Source("scalar", 1, scalars),), capacity)

    def sample(self) -> None:
        """Keep what is at the probes now."""
        self.records.sample(self.transport.time)
