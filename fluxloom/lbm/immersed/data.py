"""What immersed boundaries keep on the device: fields of the flow, and values of markers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.core.layout import SoA
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.sets import Set
from fluxloom.dsl.steps import Reset
from fluxloom.lbm.box import Box
from fluxloom.lbm.immersed.deltas import Delta
from fluxloom.linalg.direct import Direct

__all__ = ["Carrier", "Fields", "MarkerData", "Step"]

Step = Loop | Reset | Direct


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
        The cells of the grid that the fields have, ascending; None: all.
    """

    context: Context
    box: Box
    above: Dat
    u: Dat
    force: Dat
    cells: npt.NDArray[np.int64] | None = None

    def narrowed(self, matrix: csr_array) -> csr_array:
        """Return a matrix whose columns are cells of the grid with a column for each cell that the fields have."""
        if self.cells is None:
            return matrix
        columns = np.searchsorted(self.cells, matrix.indices)
        return csr_array((matrix.data, columns, matrix.indptr), shape=(matrix.indptr.size - 1, self.cells.size))

    @property
    def real(self) -> str:
        """Type of the fields."""
        return self.u.scalar.name

    @property
    def wide(self) -> str:
        """Type of positions and sums: double precision, unless the device has none."""
        return "float32" if self.context.device.refuses_double else "float64"


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

    def first(self) -> npt.NDArray[np.int64]:
        """Return the first cell of the support of each marker now, ``(n, d)``."""
        ...


def first_cells(delta: Delta, markers: MarkerData) -> npt.NDArray[np.int64]:
    """Return the first cell of the support of each marker now."""
    return delta.first(markers.x.read().astype(np.float64))
