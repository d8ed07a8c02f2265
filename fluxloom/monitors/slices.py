"""Plane slices through flows in three dimensions: ``slice_NAME.vti``, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import SolverError
from fluxloom.run.flow import Flow
from fluxloom.run.measures import PointValues
from fluxloom.run.moments import Moments
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.image_data import write_image
from fluxloom.run.results.results import ResultFolder

__all__ = ["Slice", "bounds_of"]

Array = npt.NDArray[np.float64]
Axis = Literal["x", "y", "z"]

_SMALL = 1e-9
"""Of a pixel: what is no pixel of its own."""


class Slice(Monitor):
    """Values on a raster in a plane across an axis, through a flow in three dimensions.

    ``slice_NAME.vti`` has the values behind the last step in squares, as cells of a layer that is one of them thick,
    for ParaView; ``slice_NAME_000100.vti`` those of step 100, where they are wanted. What is outside of the mesh is
    NaN.

    Parameters
    ----------
    name
        Of the slice.
    axis
        That it is across.
    at
        Coordinate along it.
    every
        Steps between two files; 0: there is the last one alone.
    size
        Squares along the longer side.
    period
        Seconds between two files, instead of steps; see `fluxloom.run.moments.Moments`.

    Attributes
    ----------
    values
        Name to ``(rows, columns)``, of the last sample; of rank 0 and all others.
    extent
        Ends along the columns, and along the rows.

    Raises
    ------
    SolverError
        If there is no such axis, or less than two squares; when it is attached to a run, if the flow is plane, or no
        square has its middle in the mesh.
    """

    def __init__(
        self, name: str, axis: Axis, at: float, every: int = 0, size: int = 200, period: float = 0.0
    ) -> None:
        if axis not in ("x", "y", "z"):
            raise SolverError(f"slice {name!r}: axis is x, y or z, not {axis!r}")
        if size < 2:
            raise SolverError(f"slice {name!r}: a size of at least 2 is wanted, not {size}")
        self.name, self.called, self.normal, self.at, self.size = f"slice_{name}", name, "xyz".index(axis), at, size
        self.moments = Moments(every, period)
        self.values: Mapping[str, Array] = {}
        self.extent = (0.0, 1.0, 0.0, 1.0)
        self._flow: Flow | None = None
        self._samples: PointValues | None = None
        self._shape, self._step, self._origin = (0, 0), 0.0, (0.0, 0.0, 0.0)
        self._squares = np.zeros(0, dtype=np.int64)
        self._due = False

    # ------------------------------------------------------------------------------------------- places
    @property
    def _plane(self) -> tuple[int, int]:
        """The axes of columns and rows."""
        first, second = (k for k in range(3) if k != self.normal)
        return first, second

    def attach(self, run: Watched) -> None:
        """Find the middles of the squares that are in the mesh."""
        flow = run.flow
        if flow.dimension != 3:
            raise SolverError(
                "slices are of flows in three dimensions; of a plane one take lines, or files of the whole field "
                "(snapshots.every)"
            )
        self.moments.check(flow)
        points = self._points(*bounds_of(run))
        self._samples = flow.at_points({f"{k}": point for k, point in enumerate(points.tolist())}, 1, "leave out")
        self._squares = np.array([int(name) for name in self._samples.names], dtype=np.int64)
        self._flow = flow

    def _points(self, low: Array, high: Array) -> Array:
        """Return the middles of all squares, row by row."""
        plane = self._plane
        lengths = np.array([high[k] - low[k] for k in plane])
        self._step = step = float(lengths.max()) / self.size
        counts = np.maximum(1, np.ceil(lengths / step - _SMALL).astype(np.int64))
        lines = [low[k] + step * (np.arange(n) + 0.5) for k, n in zip(plane, counts.tolist(), strict=True)]
        points = np.empty((lines[1].size, lines[0].size, 3))
        points[..., self.normal] = self.at
        points[..., plane[1]], points[..., plane[0]] = np.meshgrid(lines[1], lines[0], indexing="ij")
        self._shape = points.shape[:2]
        corner = low.copy()
        corner[self.normal] = self.at - 0.5 * step
        self._origin = tuple(corner.tolist())
        ends = [(float(low[k]), float(low[k] + step * n)) for k, n in zip(plane, counts.tolist(), strict=True)]
        self.extent = (*ends[0], *ends[1])
        return points.reshape(-1, 3)

    # ------------------------------------------------------------------------------------------ sampling
    @property
    def flow(self) -> Flow:
        """What is sampled."""
        if self._flow is None:
            raise SolverError(f"slice {self.called!r}: there is no run yet that has this monitor")
        return self._flow

    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go."""
        super().begin(folder)
        self.moments.begin(self.flow)

    def next_time(self) -> float:
        """Return the time of the next file."""
        return self.moments.next_time(self.flow)

    def reached(self) -> None:
        """Write a file, where a time is due."""
        if self.moments.period:
            self.stepped()

    def stepped(self) -> None:
        """Write a file, where it is due."""
        self._due = self.moments.come(self.flow)
        if self._due:
            self._sample()
            time, name = self.flow.now, f"{self.name}_{self.flow.steps:06d}.vti"
            self.folder.write_at(time, name, lambda path: self._write(path, time))

    def _sample(self) -> None:
        """Take the values of now. Collective."""
        assert self._samples is not None
        self._samples.records.reset()
        self._samples.sample()
        found = self._samples.records.values()[1][0]
        whole = np.full((self._shape[0] * self._shape[1], found.shape[1]), np.nan)
        whole[self._squares] = found
        names = self._samples.columns
        self.values = {name: whole[:, k].reshape(self._shape) for k, name in enumerate(names)}

    def _write(self, path: Path, time: float | None) -> None:
        layer = [slice(None)] * 3
        layer[2 - self.normal] = np.newaxis  # pyright: ignore[reportArgumentType, reportCallIssue]
        fields = {name: values[tuple(layer)] for name, values in self.values.items()}
        write_image(path, fields, origin=self._origin, spacing=self._step, time=time)

    def finish(self) -> None:
        """Take and write the values behind the last step."""
        if not self.flow.steps:
            return
        if not self._due:
            self._sample()
        self.folder.write(f"{self.name}.vti", lambda path: self._write(path, self.flow.time))

    def draw(self, name: str) -> None:
        """Draw the last values: speed instead of components of the velocity, and the others."""
        from fluxloom.run.pictures import draw_image

        axes, place = [("xyz"[k]) for k in self._plane], f"{'xyz'[self.normal]} = {self.at:g}"
        for field, values in self._pictures().items():
            title = f"{name}: {field} at {place}"
            self.folder.write(
                f"{self.name}_{field}.png",
                lambda path, values=values, title=title, field=field: draw_image(
                    path, values, self.extent, axes, title, field
                ),
            )

    def _pictures(self) -> dict[str, Array]:
        found = dict(self.values)
        if all(name in found for name in "uvw"):
            found = {"speed": np.sqrt(sum(found.pop(name) ** 2 for name in "uvw"))} | found
        return found

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return how many squares there are."""
        rows, columns = self._shape
        text = f"{columns} by {rows} squares of {self._step:.4g}, {self._squares.size:,} of them in the mesh"
        return ((f"slice {self.called}", text),)

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the same."""
        return self.choices()


def bounds_of(run: Watched) -> tuple[Array, Array]:
    """Return the lower and the upper corner of the mesh. Collective."""
    comm, known = run.flow.context.comm, run.flow.bounds
    if known is not None:
        return known[0], known[1]

    def ends() -> Array | None:
        """Return both corners, on rank 0."""
        if comm.rank:
            return None
        points = run.mesh().points
        return np.stack([points.min(axis=0), points.max(axis=0)]).astype(np.float64)

    low, high = comm.broadcast(raise_on_all_ranks(comm, ends))
    return low, high
