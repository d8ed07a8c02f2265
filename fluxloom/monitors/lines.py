"""Profiles along straight lines through a flow: ``line_NAME.csv``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.monitors.point_samples import PointSamples, lines_of
from fluxloom.run.flow import HistoryPanel
from fluxloom.run.moments import Moments
from fluxloom.run.monitor import Watched
from fluxloom.run.results.files import Lines, write_table
from fluxloom.run.results.results import ResultFolder

__all__ = ["Line"]

Array = npt.NDArray[np.float64]

_FEWEST = 2


class Line(PointSamples):
    """Values at equal distances along a straight line.

    ``line_NAME.csv`` has the profile behind the last step: coordinates, distance from the start, and all values that
    the flow has at points. With ``every`` or ``period`` there is ``line_NAME_series.csv`` too, the profiles of all
    samples one below the other, with the time (the step of a flow on the way to a steady one) in the first column.
    Points outside of the mesh are left out; where there are any, the summary says how many.

    Parameters
    ----------
    name
        Of the line.
    start, end
        Its ends, ``(d,)`` each.
    count
        Points, both ends among them.
    every
        Steps between two samples; 0: there is the last profile alone.
    period
        Seconds between two samples, instead of steps; see `fluxloom.run.moments.Moments`.

    Attributes
    ----------
    values
        Names of the values.
    places : (n, d)
        The points that are in the mesh, and of each its ``distance`` from the start, ``(n,)``.

    Raises
    ------
    SolverError
        If the ends are the same or have different numbers of coordinates, or there are less than two points; when it is
        attached to a run, if no point is in the mesh.
    """

    def __init__(
        self, name: str, start: Sequence[float], end: Sequence[float], count: int = 101, every: int = 0,
        period: float = 0.0,
    ) -> None:  # fmt: skip
        if len(start) != len(end) or not np.any(np.subtract(end, start)):
            raise SolverError(f"line {name!r}: two different ends with as many coordinates each are wanted")
        if count < _FEWEST:
            raise SolverError(f"line {name!r}: at least {_FEWEST} points are wanted, not {count}")
        first, way = np.asarray(start, dtype=np.float64), np.subtract(end, start)
        parts = np.linspace(0.0, 1.0, count)
        points = {f"{k}": tuple((first + part * way).tolist()) for k, part in enumerate(parts, 1)}
        super().__init__(points, Moments(every, period), "leave out")
        self.name, self.line, self.count = f"line_{name}", name, count
        self.places, self.distance = np.zeros((0, len(start))), np.zeros(0)
        self._start = first
        self._lines: Lines | None = None

    def attach(self, run: Watched) -> None:
        """Find the points that are in the mesh."""
        super().attach(run)
        self.places = np.array([self.points[name] for name in self.inside], dtype=np.float64)
        self.distance = np.linalg.norm(self.places - self._start, axis=1)

    # -------------------------------------------------------------------------------------------- files
    @property
    def _heading(self) -> list[str]:
        return [*"xyz"[: self.places.shape[1]], "distance", *self.values]

    def profile(self, row: Array) -> Array:
        """Return a row of `rows` as coordinates, distance and values, ``(n, columns)``."""
        return np.column_stack([self.places, self.distance, row[1:].reshape(len(self.places), -1)])

    def begin(self, folder: ResultFolder) -> None:
        """Open the file of all samples, and write what there is."""
        super().begin(folder)
        if self.moments:
            heading = ",".join([self.names[0], *self._heading])
            self._lines = folder.lines(f"{self.name}_series.csv", heading, self._texts(self.rows()))

    def _texts(self, rows: Array) -> list[str]:
        return [line for row in rows for line in lines_of(np.insert(self.profile(row), 0, row[0], axis=1))]

    def _came(self, rows: Array) -> None:
        if self._lines is not None:
            self._lines.add(*self._texts(rows))

    def finish(self) -> None:
        """Take the profile of the last step, and write it."""
        if self.flow.steps:
            self._last()
        if self._lines is not None:
            self.folder.closed(f"{self.name}_series.csv", self._lines)
        rows = self.rows()
        if len(rows):
            columns = dict(zip(self._heading, self.profile(rows[-1]).T, strict=True))
            self.folder.write(f"{self.name}.csv", lambda path: write_table(path, columns))

    def draw(self, name: str) -> None:
        """Draw the last profile."""
        rows = self.rows()
        if not len(rows):
            return
        from fluxloom.run.pictures import draw_history

        table = self.profile(rows[-1])[:, -len(self.values) :]
        panels = [(HistoryPanel(value, (value,)), table[:, k : k + 1]) for k, value in enumerate(self.values)]
        title = f"{name}: {self.line}"
        self.folder.write(
            f"{self.name}.png", lambda path: draw_history(path, "distance", self.distance, panels, title)
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------ summary
    def choices(self) -> Sequence[tuple[str, str]]:
        """Return how many points are left out, if any are."""
        left = self.count - len(self.places)
        return ((f"line {self.line}", f"{left} of {self.count} points are outside of the mesh"),) if left else ()

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the same."""
        return self.choices()
