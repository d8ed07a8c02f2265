"""Fluid cells in a list: where each one is stored, and where its neighbours are.

A box that is mostly solid has few fluid cells. They are numbered in the order of the grid, along x first, so that
neighbours along x lie side by side in memory, and those of the next row not far away. What a cell reaches along each
direction is in a table. Where there is no fluid that way the table leads to a *spare place* behind the cells: there
what leaves the cell towards a wall or a side is kept, or what arrives from there, as the scheme of streaming has it
(`fluxloom.lbm.streaming`). A spare place has a component for each direction, which one link of that direction uses;
so there are as many of them as the direction with most links has.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.sets import Set
from fluxloom.lbm.box import Box
from fluxloom.lbm.labels import FLUID, Labels
from fluxloom.lbm.lattices import Lattice

__all__ = ["CellList", "CellSet"]

Places = npt.NDArray[np.int64]
Table = npt.NDArray[np.int32]

_MOST = 2**31 - 1
"""Places that a table of 32 bits can count."""


class CellSet(Set):
    """Cells in a list with spare places behind them: maps lead there, but loops do not run over them.

    Who saves a flow needs their values too (`Dat.read_places`): with streaming that stores populations where they go
    to, what has left towards walls is there between two steps.

    Parameters
    ----------
    context, size, name
        As of any set.
    spare
        Places behind the cells.

    Raises
    ------
    SolverError
        On several ranks, or if there are too many places.
    """

    def __init__(self, context: Context, size: int, spare: int, name: str = "fluid cells") -> None:
        if context.ranked:
            raise SolverError(
                f"cells='fluid': lists of cells are on one rank, here are {context.comm.size}; take cells='all'"
            )
        if size + spare > _MOST:
            raise SolverError(f"cells='fluid': {size + spare} places of cells; at most {_MOST} on one rank")
        super().__init__(context, size, name)
        self.spare = spare

    @property
    def storage_size(self) -> int:
        """Number of storage places a dat has: cells and spare ones."""
        return self.size + self.spare

    @property
    def stored(self) -> int:
        """Places that maps may lead to."""
        return self.size + self.spare


class CellList:
    """The fluid cells of a box in the order in which they are stored.

    Parameters
    ----------
    box
        In which they are.
    lattice
        Whose velocities lead to neighbours.
    labels
        Over the grid: `FLUID` where there is fluid (`fluxloom.lbm.labels`).

    Attributes
    ----------
    cells : int64 (n,)
        Number in the grid of each cell, ascending.
    spare
        Spare places behind the cells.
    ahead : int32 (n, q)
        Where the cell at ``c_k`` from each one is stored: a number below ``n``, or a spare place.
    """

    def __init__(self, box: Box, lattice: Lattice, labels: Labels) -> None:
        self._velocities = np.array(lattice.velocities, dtype=np.int64)
        self.opposite = np.array(lattice.opposite, dtype=np.int64)
        self.cells: Places = np.flatnonzero(labels == FLUID).astype(np.int64)
        n = self.cells.size
        if n > _MOST:
            raise SolverError(f"cells='fluid': {n} fluid cells; at most {_MOST} on one rank")
        number = np.full(box.grid_shape, -1, dtype=np.int32)
        number.reshape(-1)[self.cells] = np.arange(n, dtype=np.int32)
        self._number = number.reshape(-1)
        self.ahead: Table = np.empty((n, lattice.q), dtype=np.int32)
        self.spare = 0
        axes = tuple(range(box.dimensions))
        for k, c in enumerate(lattice.velocities):
            found = np.roll(number, tuple(-x for x in c), axes).reshape(-1)[self.cells]
            beyond = np.flatnonzero(found < 0)
            if n + beyond.size > _MOST:
                raise SolverError(f"cells='fluid': {n} cells have too many links to walls; at most {_MOST} places")
            found[beyond] = n + np.arange(beyond.size, dtype=np.int32)
            self.ahead[:, k] = found
            self.spare = max(self.spare, beyond.size)

    @property
    def behind(self) -> Table:
        """Where the cell at ``-c_k`` from each one is stored, int32 ``(n, q)``."""
        return np.ascontiguousarray(self.ahead[:, self.opposite])

    def numbers(self, cells: Places) -> Places:
        """Return where cells are stored, given by their numbers in the grid.

        Raises
        ------
        SolverError
            If one is not fluid.
        """
        found = self._number[cells].astype(np.int64)
        if found.size and int(found.min()) < 0:
            one = int(np.asarray(cells).reshape(-1)[int(np.argmin(found))])
            raise SolverError(f"cell {one} of the grid is not stored: it is no fluid; ask for fluid cells only")
        return found

    def shifted(self, cells: Places, shifts: Places) -> Places:
        """Return where the values are stored that belong to the places at some distance from fluid cells.

        Parameters
        ----------
        cells
            Numbers in the grid ``(...)``.
        shifts
            ``(..., dimensions)``: velocities of the lattice, or against them.

        Raises
        ------
        SolverError
            If a cell is not fluid, or a shift is no velocity.
        """
        code = 3 ** np.arange(self._velocities.shape[1])
        direction = np.full(3 ** self._velocities.shape[1], -1, dtype=np.int64)
        direction[(self._velocities + 1) @ code] = np.arange(len(self._velocities))
        near = np.abs(shifts).max(axis=-1, initial=0) <= 1
        k = np.where(near, direction[((np.where(near[..., None], shifts, 0)) + 1) @ code], -1)
        if (k < 0).any():
            raise SolverError(f"cells in a list know neighbours along velocities only, not at {shifts[k < 0][0]}")
        return self.ahead[self.numbers(cells), k].astype(np.int64)
