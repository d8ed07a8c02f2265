"""Markers that stay where they are: interpolation and spreading as loops over the rows of sparse matrices.

Both are loops through ragged maps, from markers to the cells of their support and from the cells of all supports to the
markers around them. Nothing is added by two elements, so the results have the same bits every time on every device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.immersed.markers.data import MarkerData, Step
from fluxloom.lbm.immersed.markers.kernels import interpolate, spread

__all__ = ["Rows"]


class Rows:
    """Carries values between cells and markers by matrices.

    Parameters
    ----------
    markers
        Whose positions no longer change.
    matrix
        Of the interpolation: a row a marker, a column a cell of the grid.
    """

    def __init__(self, markers: MarkerData, matrix: csr_array) -> None:
        fields, ctx = markers.fields, markers.fields.context
        layout = ctx.row_layout(packed=False)
        grid, dimensions, matrix = fields.force.set, markers.dimensions, fields.narrowed(matrix)
        to_cells = ctx.ragged(markers.set, grid, matrix.indptr, matrix.indices, "support", layout)
        weights = ctx.dat(to_cells.entries, matrix.data.astype(fields.real), name="support.weights")
        cells, back = _transposed(matrix)
        over = ctx.set(cells.size, "supported")
        to_markers = ctx.ragged(over, markers.set, back.indptr, back.indices, "around", layout)
        back_weights = ctx.dat(to_markers.entries, back.data.astype(fields.real), name="around.weights")
        to_grid = ctx.map(over, grid, cells, "cell")
        self._interpolate = Loop(
            interpolate, markers.set, weights[to_cells.to_entries], fields.u[to_cells], fields.above[to_cells],
            fields.force[to_cells], markers.sample, dimensions=dimensions,
        )  # fmt: skip
        self._spread = Loop(
            spread, over, back_weights[to_markers.to_entries], markers.pull[to_markers], fields.force[to_grid[0]],
            dimensions=dimensions,
        )  # fmt: skip

    def prepare(self) -> Sequence[Step]:
        """Return nothing: positions do not change."""
        return ()

    def interpolate(self) -> Sequence[Step]:
        """Return the loop that sets the samples of the markers."""
        return (self._interpolate,)

    def spread(self) -> Sequence[Step]:
        """Return the loop that adds the pulls of the markers to the force of the cells."""
        return (self._spread,)


def _transposed(matrix: csr_array) -> tuple[npt.NDArray[np.int64], csr_array]:
    """Return the cells that have entries, and the transpose with a row for each of them."""
    cells, columns = np.unique(matrix.indices, return_inverse=True)
    small = csr_array((matrix.data, columns, matrix.indptr), shape=(matrix.indptr.size - 1, cells.size))
    return cells.astype(np.int64), small.T.tocsr()
