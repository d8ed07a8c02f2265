"""Probes: what a flow does at points over time, ``probes.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.monitors.moments import Moments
from fluxloom.monitors.point_samples import PointSamples, line_of
from fluxloom.run.results.folder import ResultFolder
from fluxloom.run.results.tables import Lines

__all__ = ["Probes", "named"]

Array = npt.NDArray[np.float64]
Points = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]


def named(points: Points) -> dict[str, Sequence[float]]:
    """Return points with names: those of a list are called by their numbers, from 1."""
    if isinstance(points, Mapping):
        return {str(name): point for name, point in points.items()}
    return {f"{k}": point for k, point in enumerate(points, 1)}


class Probes(PointSamples):
    """Points whose values are written to ``probes.csv``, a line a sample.

    Parameters
    ----------
    points
        Name to coordinates; or coordinates alone, then the names are numbers from 1.
    every
        Steps between two samples.
    period
        Seconds between two samples, instead of steps; see `fluxloom.monitors.moments.Moments`.

    Raises
    ------
    SolverError
        When it is attached to a run: if a point lies outside of the mesh.
    """

    name = "probes"

    def __init__(self, points: Points, every: int = 1, *, period: float = 0.0) -> None:
        super().__init__(named(points), Moments(every, period))
        self._lines: Lines | None = None

    def begin(self, folder: ResultFolder) -> None:
        """Open the file, and write what there is."""
        super().begin(folder)
        before = [line_of(row) for row in self.rows()]
        self._lines = folder.lines("probes.csv", ",".join(self.names), before)

    def _came(self, rows: Array) -> None:
        if self._lines is not None:
            for row in rows:
                self._lines.add(line_of(row))

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write what is left."""
        if self._lines is not None:
            self._last()
        self._fetch()
        self.folder.closed("probes.csv", self._lines)
