"""What is looked at while gas flows: states at points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.flow_samples import sample_states
from fluxloom.fv.geometry.cell_faces import least_squares
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.flow_spaces import Rows
from fluxloom.solvers.probe_records import Outside, ProbePoints, ProbeRecords, Source

__all__ = ["StateProbes"]

Array = npt.NDArray[np.float64]


class StateProbes:
    """Points of a flow whose primitive states are kept.

    States are linear around the centre of the cell that a point is in, with the gradients of least squares through the
    cells around it, without a limiter: exact for linear fields. Where density or pressure would not be positive they
    are those of the cell. Samples are kept as `fluxloom.solvers.probe_records.ProbeRecords` says.

    Parameters
    ----------
    flow
        Whose.
    points
        Name to coordinates ``(d,)``.
    capacity
        Samples that the device keeps before the host reads them all at once.
    steady
        Whether samples are over steps; otherwise they are over time.
    outside
        Whether points outside of the mesh are an error, or left out.

    Attributes
    ----------
    names, columns
        Of the points that are in the mesh, and of the values at each.
    records
        The samples; their values are ``(n, points, nv)``: density, velocity, pressure, variable of turbulence.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.
    """

    def __init__(
        self, flow: CompressibleFlow, points: Mapping[str, Sequence[float]], capacity: int = 256, steady: bool = False,
        outside: Outside = "error",
    ) -> None:  # fmt: skip
        self.flow, self.steady = flow, steady
        self._points = ProbePoints(flow.context, flow.volumes, points, outside)
        self.names, self.points = self._points.names, self._points.places
        turbulent = ("nu_tilde",) if flow.turbulent else ()
        self.columns: tuple[str, ...] = ("rho", *"uvw"[: flow.dimension], "p", *turbulent)
        rows = self._rows()
        source = Source("states", flow.components, lambda found: Loop(
            sample_states, self._points.set, rows.entries, flow.w[rows.pattern], found, nv=flow.components,
            d=flow.dimension,
        ))  # fmt: skip
        self.records = ProbeRecords(self._points, [source], capacity)

    def _rows(self) -> Rows:
        """Return the weights of cells for states at the points; the cell itself comes first in each row."""
        cv, points = self.flow.volumes, self._points
        inner, ways = cv.faces[: cv.interior], cv.ways
        order = np.argsort(inner, axis=None, kind="stable")
        ends = np.searchsorted(inner.ravel()[order], [points.cells, points.cells + 1])
        columns, values = [], []
        for cell, reach, first, last in zip(points.cells.tolist(), points.reach, *ends.tolist(), strict=True):
            side = np.unique(order[first:last] // 2)
            out = np.where(inner[side, 0] == cell, 1.0, -1.0)
            gradient = least_squares(ways[side] * out[:, None], np.zeros(side.size, dtype=np.int64), 1) @ reach
            columns.append(np.concatenate([[cell], inner[side].sum(axis=1) - cell]))
            values.append(np.concatenate([[1.0 - gradient.sum()], gradient]))
        return points.rows(self.flow.spaces.elements, columns, values, "probes.weights")

    def sample(self) -> None:
        """Keep what is at the points now."""
        self.records.sample(float(self.flow.steps) if self.steady else self.flow.time)
