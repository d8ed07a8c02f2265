"""Fluid cells in a list: where each one is stored, and where its neighbours are.

A box that is mostly solid has few fluid cells. They are numbered in the order of the grid, along x first, so that
neighbours along x lie side by side in memory, and those of the next row not far away. What a cell reaches along each
direction is in a table. Where there is no fluid that way the table leads to a *spare place* behind the cells: there
what leaves the cell towards a wall or a side is kept, or what arrives from there, as the scheme of streaming has it
(`fluxloom.lbm.streaming.schemes`). A spare place has a component for each direction, which one link of that direction
uses; so there are as many of them as the direction with most links has.

On several ranks each one has a piece of the list (`fluxloom.lbm.cells.division`)::

    0 ... n          ... n + h            ... n + h + spare
    |cells of its own|copies of neighbours|spare places

The copies are the neighbours of its cells that other ranks own. Messages bring these, and never a spare place: a link
belongs to the rank that owns its cell, and nobody else looks at what the link puts in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.sets import Set
from fluxloom.lbm.cells.box import Box, sought
from fluxloom.lbm.cells.division import Division, numbers_among
from fluxloom.lbm.cells.labels import FLUID, Labels
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
    context, size, name, part
        As of any set.
    spare
        Places behind the cells, and behind the copies of other ranks' cells.

    Raises
    ------
    SolverError
        If there are too many places.
    """

    def __init__(
        self, context: Context, size: int, spare: int, name: str = "fluid cells", part: Part | None = None
    ) -> None:
        places = (size if part is None else part.stored) + spare
        if places > _MOST:
            raise SolverError(f"cells='fluid': {places} places of cells; at most {_MOST} on one rank: take more ranks")
        super().__init__(context, size, name, part=part)
        self.spare = spare

    @property
    def storage_size(self) -> int:
        """Number of storage places a dat has: cells, copies of other ranks' cells, and spare ones."""
        return super().storage_size + self.spare

    @property
    def stored(self) -> int:
        """Places that maps may lead to."""
        return super().stored + self.spare


class CellList:
    """The fluid cells of a box in the order in which they are stored; on several ranks those of this rank.

    Parameters
    ----------
    box
        In which they are.
    lattice
        Whose velocities lead to neighbours.
    labels
        Over the grid: `FLUID` where there is fluid (`fluxloom.lbm.cells.labels`). They are looked at once, and not
        kept.
    division, rank
        Who has which cells, and which rank this is; None: one rank has all.

    Attributes
    ----------
    cells : int64 (n,)
        Number in the grid of each cell, ascending.
    halo : int64 (h,)
        Number in the grid of the neighbours that other ranks own, rank by rank, then ascending.
    spare
        Spare places behind the cells and the halo.
    ahead : int32 (n, q)
        Where the cell at ``c_k`` from each one is stored: a number below ``n``, or of the halo, or a spare place.
    inside
        Cells ``inside[0] ... inside[1] - 1`` have no neighbour in the halo: the longest run of such cells.
    """

    def __init__(
        self, box: Box, lattice: Lattice, labels: Labels, division: Division | None = None, rank: int = 0
    ) -> None:
        self._velocities = np.array(lattice.velocities, dtype=np.int64)
        self.opposite = np.array(lattice.opposite, dtype=np.int64)
        self._division, self._rank = division, rank
        own = np.flatnonzero(labels == FLUID).astype(np.int64) if division is None else division.cells(labels, rank)
        self.cells: Places = own
        if own.size > _MOST:
            raise SolverError(f"cells='fluid': {own.size} fluid cells; at most {_MOST} on one rank: take more ranks")
        self.ahead: Table = np.empty((own.size, lattice.q), dtype=np.int32)
        away = self._find(box, labels)
        wanted = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(cells for _, _, cells in away)]))
        self.owners = np.zeros(wanted.size, dtype=np.int32) if division is None else division.owner(wanted)
        self._order = np.argsort(self.owners, kind="stable")
        self.halo: Places = wanted[self._order]
        self._wanted, self.inside = wanted, (0, own.size)
        if wanted.size:
            self._lead_away(away)

    def _find(self, box: Box, labels: Labels) -> list[tuple[int, Places, Places]]:
        """Set the table but for neighbours of other ranks; return these: direction, rows, their numbers in the grid.

        Spare places are counted from ``n`` on.
        """
        cells, fluid = self.cells, labels.reshape(-1)
        n, first = cells.size, int(cells[0]) if cells.size else 0
        table = np.full(int(cells[-1]) + 1 - first if n else 0, -1, dtype=np.int32)
        table[cells - first] = np.arange(n, dtype=np.int32)
        away, self.spare = [], 0
        for k, there in enumerate(_neighbours(box, cells, self._velocities)):
            near = (there >= first) & (there < first + table.size)
            found = np.where(near, table[np.where(near, there - first, 0)], -1) if n else table
            beyond = np.flatnonzero(found < 0)
            elsewhere = fluid[there[beyond]] == FLUID
            if elsewhere.any():
                rows = beyond[elsewhere]
                away.append((k, rows, there[rows]))
                beyond = beyond[~elsewhere]
            if n + beyond.size > _MOST:
                raise SolverError(f"cells='fluid': {n} cells have too many links to walls; at most {_MOST} places")
            found[beyond] = n + np.arange(beyond.size, dtype=np.int32)
            self.ahead[:, k] = found
            self.spare = max(self.spare, beyond.size)
        return away

    def _lead_away(self, away: list[tuple[int, Places, Places]]) -> None:
        """Put the halo between cells and spare places, and lead the table there; find the run of cells inside."""
        n, h = self.cells.size, self.halo.size
        if n + h + self.spare > _MOST:
            raise SolverError(f"cells='fluid': {n + h + self.spare} places of cells; at most {_MOST}: take more ranks")
        place = np.empty(h, dtype=np.int32)
        place[self._order] = n + np.arange(h, dtype=np.int32)
        for column in self.ahead.T:
            column[column >= n] += h
        outer = np.zeros(n, dtype=bool)
        for k, rows, cells in away:
            self.ahead[rows, k] = place[np.searchsorted(self._wanted, cells)]
            outer[rows] = True
        ends = np.concatenate([[-1], np.flatnonzero(outer), [n]])
        longest = int(np.argmax(np.diff(ends)))
        self.inside = int(ends[longest]) + 1, int(ends[longest + 1])

    @property
    def behind(self) -> Table:
        """Where the cell at ``-c_k`` from each one is stored, int32 ``(n, q)``."""
        return np.ascontiguousarray(self.ahead[:, self.opposite])

    def part(self, comm: Comm, labels: Labels) -> Part:
        """Return this rank's part of all fluid cells, which are numbered in the order of the grid. Collective."""
        own, halo = numbers_among(labels, self.cells), numbers_among(labels, self._wanted)
        total = int(np.count_nonzero(labels == FLUID))
        found = Part.of_reads(comm, own[:0], own, halo, self.owners, total)
        return replace(found, begin=self.inside[0], inside=self.inside[1])

    def owns(self, cells: Places) -> npt.NDArray[np.bool_]:
        """Return which cells, given by their numbers in the grid, this rank owns."""
        if self._division is None:
            return np.ones(np.shape(cells), dtype=bool)
        return self._division.owner(cells) == self._rank

    def alone(self, cells: Places, reach: int) -> npt.NDArray[np.bool_]:
        """Return from which of this rank's cells nothing of other ranks is met in so many cells."""
        if self._division is None:
            return np.ones(np.shape(cells), dtype=bool)
        return self._division.alone(cells, self._rank, reach)

    def numbers(self, cells: Places) -> Places:
        """Return where cells are stored, given by their numbers in the grid: this rank's, and those of its halo.

        Raises
        ------
        SolverError
            If one is not fluid, or far away from this rank's cells.
        """
        asked = np.asarray(cells, dtype=np.int64)
        found = sought(self.cells, asked)
        if self.halo.size:
            at = sought(self._wanted, asked)
            place = np.empty(self.halo.size, dtype=np.int64)
            place[self._order] = self.cells.size + np.arange(self.halo.size)
            found = np.where(at >= 0, place[at], found)
        if found.size and int(found.min()) < 0:
            one = int(asked.reshape(-1)[int(np.argmin(found))])
            here = "" if self._division is None else ", or this rank has none of its neighbours"
            raise SolverError(f"cell {one} of the grid is not stored: it is no fluid{here}; ask for fluid cells only")
        return found

    def leave(self, cells: Places, shifts: Places) -> npt.NDArray[np.bool_]:
        """Return which ways from cells lead out of rows that turn round: none, the rows of a list do not."""
        return np.zeros(np.broadcast_shapes(np.shape(cells), shifts.shape[:-1]), dtype=bool)

    def shifted(self, cells: Places, shifts: Places) -> Places:
        """Return where the values are stored that belong to the places at some distance from fluid cells.

        Parameters
        ----------
        cells
            Numbers in the grid ``(...)``.
        shifts
            ``(..., dimensions)``: velocities of the lattice, or against them; of cells of other ranks zero.

        Raises
        ------
        SolverError
            If a cell is not fluid, a shift is no velocity, or a neighbour of another rank's cell is wanted.
        """
        code = 3 ** np.arange(self._velocities.shape[1])
        direction = np.full(3 ** self._velocities.shape[1], -1, dtype=np.int64)
        direction[(self._velocities + 1) @ code] = np.arange(len(self._velocities))
        near = np.abs(shifts).max(axis=-1, initial=0) <= 1
        k = np.where(near, direction[((np.where(near[..., None], shifts, 0)) + 1) @ code], -1)
        if (k < 0).any():
            raise SolverError(f"cells in a list know neighbours along velocities only, not at {shifts[k < 0][0]}")
        at, k = np.broadcast_arrays(self.numbers(cells), k)
        theirs = at >= self.cells.size
        if not theirs.any():
            return self.ahead[at, k].astype(np.int64)
        if np.any(theirs & shifts.any(axis=-1)):
            raise SolverError("what is next to a cell of another rank is not known here: ask for it on that rank")
        return np.where(theirs, at, self.ahead[np.where(theirs, 0, at), k])


def _neighbours(box: Box, cells: Places, velocities: Places) -> Iterator[Places]:
    """Yield the numbers in the grid of the cells at each velocity from some cells."""
    strides = np.array([prod(box.grid_shape[axis + 1 :]) for axis in range(box.dimensions)], dtype=np.int64)
    ends = [(x == 0) | (x == n - 1) for x, n in zip(box.coordinates(cells), box.grid_shape, strict=True)]
    around = np.flatnonzero(np.logical_or.reduce(ends))  # the grid is joined there
    for c in velocities:
        there = cells + c @ strides
        there[around] = box.shifted(cells[around], np.broadcast_to(c, (around.size, c.size)))
        yield there
