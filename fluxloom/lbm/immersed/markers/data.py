"""What immersed boundaries keep on the device: fields of the flow, and values of markers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.comm.base import Comm
from fluxloom.core.dtypes import SoA
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.cells.box import Box
from fluxloom.linalg.direct.calls import HostStep
from fluxloom.perf.stopwatch import Stopwatch

__all__ = ["Carrier", "Fields", "MarkerData", "Step", "Timed", "Window", "host_report"]

Step = Loop | Reset | HostStep

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """The cells of the grid that a rank has: a box of `shape` from `offset` on, numbered in its own order."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    def find(self, box: Box, cells: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Return which of some cells of the grid are among them, and the numbers of these."""
        at = [x - o for x, o in zip(box.coordinates(cells), self.offset, strict=True)]
        mine = np.all([(x >= 0) & (x < n) for x, n in zip(at, self.shape, strict=True)], axis=0)
        return mine, np.ravel_multi_index(tuple(x[mine] for x in at), self.shape).astype(np.int64)


@dataclass(frozen=True)
class Fields:
    """The flow around markers.

    Attributes
    ----------
    context, box
        Those of the flow.
    above, u, force
        Density less one, the velocity that arrives, force per volume: on the grid, one array a component.
    cells
        The cells of the grid that the fields have, ascending; None: all, or all of the window.
    window
        Of this rank; None on a rank alone.
    comm
        The ranks whose cells together are the flow; None: this one has all.
    """

    context: Context
    box: Box
    above: Dat
    u: Dat
    force: Dat
    cells: Numbers | None = None
    window: Window | None = None
    comm: Comm | None = None

    def narrowed(self, matrix: csr_array) -> csr_array:
        """Return a matrix whose columns are cells of the grid with a column for each cell that the fields have."""
        places = matrix.indices.astype(np.int64)
        if self.cells is not None:
            columns = np.searchsorted(self.cells, places)
            kept = columns < self.cells.size
            kept[kept] = self.cells[columns[kept]] == places[kept]
            columns = columns[kept]
        elif self.window is not None:
            kept, columns = self.window.find(self.box, places)
        else:
            return matrix
        ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
        return csr_array((matrix.data[kept], columns, ends), shape=(matrix.indptr.size - 1, self.force.set.size))

    @property
    def real(self) -> str:
        """Type of the fields."""
        return self.u.scalar.name

    @property
    def wide(self) -> str:
        """Type of positions and sums: double precision, unless the device has none."""
        return "float32" if self.context.device.refuses_double else "float64"


class Timed(HostStep):
    """A step by the host that counts how often it was done, and the seconds of the host."""

    def __init__(self, context: Context, run: Callable[[], None], name: str) -> None:
        super().__init__(context, run, name)
        self.calls, self.seconds = 0, 0.0

    def __call__(self) -> None:
        """Do it once."""
        self.seconds += Stopwatch().timed(self.run)
        self.calls += 1

    def report(self) -> LoopReport:
        """Return the counters."""
        return host_report(self.name, self.calls, self.seconds)


def host_report(name: str, calls: int, seconds: float, useful_bytes: int = 0, strategy: str = "host") -> LoopReport:
    """Return counters of what is no loop."""
    return LoopReport(name, calls, seconds, useful_bytes, strategy, 0, 1, False, 0)


class MarkerData:
    """Values of the markers of some bodies that move in the same way.

    Parameters
    ----------
    fields
        The flow.
    positions : (n, d)
        At the start.
    wanted : (n, d)
        Velocities.
    weights : (n,)
        By which forces are multiplied when they are spread.
    name
        Of the set.
    """

    def __init__(
        self, fields: Fields, positions: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64], name: str,
    ) -> None:  # fmt: skip
        self.fields, (self.count, self.dimensions) = fields, positions.shape
        self.set: Set = fields.context.set(self.count, name)
        self.x = self.dat("x", positions, fields.wide)
        self.wanted = self.dat("wanted", wanted, fields.wide)
        self.weight = self.dat("weight", weights, fields.wide)
        self.sample = self.dat("sample", np.zeros((self.count, self.dimensions + 1)))
        self.pull = self.dat("pull", np.zeros((self.count, self.dimensions)))
        self.total = self.dat("total", np.zeros((self.count, self.dimensions)), fields.wide)

    def dat(self, name: str, values: npt.NDArray[np.float64], kind: str = "") -> Dat:
        """Return a dat of the markers; of the type of the fields unless another is asked for."""
        found = values.astype(kind or self.fields.real)
        return self.fields.context.dat(self.set, found, name=f"{self.set.name}.{name}", layout=SoA())


class Carrier(Protocol):
    """Carries values between cells and markers."""

    def prepare(self) -> Sequence[Step]:
        """Return what follows a change of the positions."""
        ...

    def interpolate(self) -> Sequence[Step]:
        """Return what sets the samples of the markers."""
        ...

    def spread(self) -> Sequence[Step]:
        """Return what adds the pulls of the markers to the force of the cells."""
        ...
