"""Values over a box that is cut into boxes, of cells in a list that is cut into pieces: what goes where.

Who looks at a flow on several ranks wants a part of the box that is a box: to draw it, to write it, to find slopes. The
list of fluid cells is divided otherwise (`fluxloom.lbm.cells.division`). So values travel when they are looked at, or
set: each rank has a *window*, a box of cells, and sends and receives what others own there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import RowExchange
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.boxes import broadcasts
from fluxloom.dsl.declare.sets import Grid
from fluxloom.lbm.cells.box import Box

__all__ = ["Windows"]

Values = npt.NDArray[Any]
Places = npt.NDArray[np.int64]


class Windows:
    """Windows of all ranks, and what this one has to send to each and to receive. Making it is collective.

    Parameters
    ----------
    comm
        The ranks.
    grid
        The box and the layer beyond its sides, cut into boxes: the windows.
    box
        The cells that windows may have.
    cells
        Numbers in the grid of the fluid cells that this rank owns, ascending.

    Attributes
    ----------
    window
        Slices that cut this rank's window out of an array over the box.
    shape
        Of the window.
    """

    def __init__(self, comm: Comm, grid: Grid, box: Box, cells: Places) -> None:
        self._box, self._shape = box, tuple(grid.shape)
        ends = zip(grid.offset, grid.shape, box.shape, strict=True)
        self.window = tuple(slice(min(o, n), min(o + m, n)) for o, m, n in ends)
        self.shape = tuple(w.stop - w.start for w in self.window)
        at = box.coordinates(cells)
        boxes, place = comm.allgather(grid.offset), []
        for axis, x in enumerate(at):
            starts = np.unique([offset[axis] for offset in boxes])
            place.append(np.searchsorted(starts, x, side="right") - 1)
        whose = np.asarray(np.ravel_multi_index(tuple(place), grid.factors))
        self._post = RowExchange(comm, whose)
        self._places = self._within(self._post.forward(cells))

    def _within(self, cells: Places) -> npt.NDArray[np.int64]:
        """Return the places of cells in the window."""
        at = tuple(x - w.start for x, w in zip(self._box.coordinates(cells), self.window, strict=True))
        return np.ravel_multi_index(at, self.shape).astype(np.int64) if cells.size else cells

    def over(self, values: Values) -> Values:
        """Return values of this rank's cells ``(n, ...)`` of all ranks over the window, zero elsewhere. Collective."""
        found = np.zeros((int(np.prod(self.shape)), *values.shape[1:]), dtype=values.dtype)
        found[self._places] = self._post.forward(values)
        return found.reshape(*self.shape, *values.shape[1:])

    def of(self, values: npt.ArrayLike, components: tuple[int, ...]) -> Values:
        """Return the values of this rank's cells ``(n, *components)``, of those over the box or the window. Collective.

        Parameters
        ----------
        values
            What broadcasts to ``(*shape, *components)``, with the shape of this rank's part of the grid or of the box;
            of both the part counts, as it does on a grid (`Grid.local`).

        Raises
        ------
        SolverError
            If they fit neither.
        """
        given = np.asarray(values)
        part, whole = (*self._shape, *components), (*self._box.shape, *components)
        if broadcasts(given.shape, part):
            mine = np.broadcast_to(given, part)[tuple(slice(0, n) for n in self.shape)]
        elif broadcasts(given.shape, whole):
            mine = np.broadcast_to(given, whole)[self.window]
        else:
            what = f"values of shape {given.shape}"
            raise SolverError(f"{what} fit neither the box, {whole}, nor this rank's part, {part}")
        rows = mine.reshape(int(np.prod(self.shape)), *components)
        return self._post.back(rows[self._places])
