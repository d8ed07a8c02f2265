"""What monitors of points have in common: samples on the device, kept as rows of a table over restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.run.flow import Flow
from fluxloom.run.measures import PointValues
from fluxloom.run.moments import Moments
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.results import ResultFolder

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["BLOCK", "PointSamples", "Points", "lines_of", "named"]

Array = npt.NDArray[np.float64]
Points = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]

BLOCK = 64
"""Samples that the device keeps, which a kill may cost."""


class PointSamples(Monitor):
    """Samples of a flow at points, a row of a table each; also behind the last step.

    Parameters
    ----------
    points
        Name to coordinates.
    moments
        When a sample is taken.
    outside
        What becomes of points outside of the mesh.

    Attributes
    ----------
    names
        Of the columns: ``step`` of a flow on the way to a steady one, else ``time``; then ``POINT.VALUE``.
    inside
        Of the points that are in the mesh.
    values
        Of what is at a point.
    """

    remembers = ("memory",)

    def __init__(self, points: Mapping[str, Sequence[float]], moments: Moments, outside: Outside = "error") -> None:
        self.points, self.moments = dict(points), moments
        self._outside: Outside = outside
        self.names: tuple[str, ...] = ()
        self.inside: tuple[str, ...] = ()
        self.values: tuple[str, ...] = ()
        self._flow: Flow | None = None
        self._samples: PointValues | None = None
        self._rows: list[Array] = []
        self._kept, self._due = 0, True

    # -------------------------------------------------------------------------------------------- state
    @property
    def memory(self) -> dict[str, Any]:
        """Names of the columns, where their points are, and all rows so far. Collective."""
        self._fetch()
        return {"names": list(self.names), "places": self._places(), "rows": self.rows()}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept: of points that are where they were."""
        known = {name: k for k, name in enumerate(memory["names"])}
        before, places = np.asarray(memory["rows"]), memory["places"]
        rows = np.full((len(before), len(self.names)), np.nan)
        for k, (name, place) in enumerate(zip(self.names, self._places(), strict=True)):
            if name in known and list(places[known[name]]) == place:
                rows[:, k] = before[:, known[name]]
        self._rows = [rows] if self.names[0] in known else []

    def _places(self) -> list[list[float]]:
        """Return the coordinates of the point of each column; the first one has none."""
        return [[], *([float(x) for x in self.points[name]] for name in self.inside for _ in self.values)]

    def rows(self) -> Array:
        """Return all rows that the host has, ``(n, columns)``."""
        return np.concatenate([np.zeros((0, len(self.names))), *self._rows])

    def column(self, name: str) -> Array:
        """Return a column of all rows that the host has."""
        return self.rows()[:, self.names.index(name)]

    # ------------------------------------------------------------------------------------------ sampling
    def attach(self, run: Watched) -> None:
        """Find the points.

        Raises
        ------
        SolverError
            If a point lies outside of the mesh and may not, or all do; if times are wanted of a flow that has none.
        """
        flow = run.flow
        self.moments.check(flow)
        found = flow.at_points(self.points, BLOCK, self._outside)
        over = "step" if flow.time is None else "time"
        self._flow, self._samples = flow, found
        self.inside, self.values = tuple(found.names), tuple(found.columns)
        self.names = (over, *(f"{name}.{value}" for name in found.names for value in found.columns))

    @property
    def flow(self) -> Flow:
        """What is sampled."""
        if self._flow is None:
            raise SolverError(f"{type(self).__name__}: there is no run yet that has this monitor")
        return self._flow

    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go."""
        super().begin(folder)
        self.moments.begin(self.flow)
        flow, rows = self.flow, self.rows()
        self._due = not flow.steps or bool(len(rows) and rows[-1, 0] == flow.now)  # else the last one, without a step

    def next_time(self) -> float:
        """Return the time of the next sample."""
        return self.moments.next_time(self.flow)

    def stepped(self) -> None:
        """Sample, where it is due."""
        self._due = self.moments.come(self.flow)
        if self._due:
            self._sample()

    def reached(self) -> None:
        """Sample, where a time is due."""
        if self.moments.period:
            self.stepped()

    def _sample(self) -> None:
        assert self._samples is not None
        self._samples.sample()
        self._kept += 1
        if self._kept >= BLOCK:
            self._fetch()

    def _fetch(self) -> None:
        """Bring what has been sampled since the last time to the host. Collective."""
        if not self._kept or self._samples is None:
            return
        times, values = self._samples.records.values()
        self._samples.records.reset()
        self._kept = 0
        self._rows.append(np.concatenate([times[:, None], values.reshape(len(values), -1)], axis=1))
        self._came(self._rows[-1])

    def _came(self, rows: Array) -> None:
        """Hear of new rows."""

    def _last(self) -> None:
        """Take the last sample, where it is not there yet, and bring all to the host. Collective."""
        if not self._due:
            self._sample()
        self._due = True
        self._fetch()


def named(points: Points) -> dict[str, Sequence[float]]:
    """Return points with names: those of a list are called by their numbers, from 1."""
    if isinstance(points, Mapping):
        return {str(name): point for name, point in points.items()}
    return {f"{k}": point for k, point in enumerate(points, 1)}


def lines_of(rows: Array) -> list[str]:
    """Return rows, ``(n, columns)``, as lines of a table."""
    form = ",".join(["%.9g"] * rows.shape[1])
    return [form % tuple(row) for row in rows.tolist()]
