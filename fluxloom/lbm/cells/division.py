"""Who has which fluid cells on several ranks: pieces of about equal numbers of them, in the order of the grid.

The cells of a box are put in a row, and the row is cut where each rank has its share of the *fluid*: solid cells
weigh nothing. So a piece is a stretch of rows and planes, not a box, and who owns a cell follows from its place and
the few numbers at which the row is cut, without a table over the box.

Conditions at sides look at the cell beside a side and at the next one inwards. Cells beside a side are therefore put
in the row where the next one inwards stands, so that one rank has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import FLUID, Labels

__all__ = ["Division", "numbers_among"]

Places = npt.NDArray[np.int64]


class Division:
    """Pieces of the fluid in a box, one a rank; the same on every rank. A rank may have no cells.

    Parameters
    ----------
    box
        That is divided.
    labels
        Over the grid: `FLUID` where there is fluid (`fluxloom.lbm.cells.labels`).
    shares
        Part of the fluid that each rank gets, in proportion.

    Attributes
    ----------
    ranks
        Number of pieces.
    cuts : int64 (ranks + 1,)
        Rank ``r`` has the cells whose places in the row are ``cuts[r] ... cuts[r + 1] - 1``.

    Raises
    ------
    SolverError
        If a share is not positive.
    """

    def __init__(self, box: Box, labels: Labels, shares: Sequence[float]) -> None:
        given = np.asarray(shares, dtype=np.float64)
        if given.ndim != 1 or not given.size or not np.all(np.isfinite(given) & (given > 0)):
            raise SolverError(f"cells='fluid': shares {shares} of the fluid: one positive number a rank is wanted")
        self._box, self.ranks = box, given.size
        self._ends = [(1, n - 2) if n > 2 else (0, 0) for n in box.shape]
        self._plane = prod(box.shape[1:])
        self.cuts = self._cut(labels[box.inside] == FLUID, np.cumsum(given) / given.sum())

    def _cut(self, fluid: npt.NDArray[np.bool_], until: npt.NDArray[np.float64]) -> Places:
        """Return where the row is cut; ``until``: the part of the fluid that each rank and those before it have."""
        weights = fluid.astype(np.uint8)
        for axis, (joined, (low, high)) in enumerate(zip(self._box.periodic, self._ends, strict=True)):
            at, last = np.moveaxis(weights, axis, 0), weights.shape[axis] - 1
            for end, inwards in () if joined else ((0, low), (last, high)):
                if end != inwards:
                    at[inwards] += at[end]
                    at[end] = 0
        before = np.concatenate([[0], np.cumsum(weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64))])
        found = [0]
        for wanted in np.rint(until[:-1] * before[-1]).astype(np.int64).tolist():
            plane = min(int(np.searchsorted(before, wanted, side="right")) - 1, len(weights) - 1)
            within = np.cumsum(weights[plane].reshape(-1), dtype=np.int64)
            rest = wanted - int(before[plane])
            at = plane * self._plane + (int(np.searchsorted(within, rest)) + 1 if rest else 0)
            found.append(max(found[-1], at))
        return np.array([*found, self._box.cells], dtype=np.int64)

    def _place(self, cells: Places) -> Places:
        """Return the places in the row of cells, given by their numbers in the grid."""
        at = self._box.coordinates(cells)
        limits = [
            (0, n - 1) if joined else ends
            for n, joined, ends in zip(self._box.shape, self._box.periodic, self._ends, strict=True)
        ]
        inner = tuple(np.clip(x, *ends) for x, ends in zip(at, limits, strict=True))
        return np.ravel_multi_index(inner, self._box.shape).astype(np.int64)

    def owner(self, cells: Places) -> npt.NDArray[np.int32]:
        """Return the ranks that own cells, given by their numbers in the grid, whether they are fluid or not."""
        return np.searchsorted(self.cuts[1:-1], self._place(cells), side="right").astype(np.int32)

    def alone(self, cells: Places, rank: int, reach: int) -> npt.NDArray[np.bool_]:
        """Return of which cells a rank is sure to own all that is so many cells away, along each axis.

        All that is within ``reach`` cells is less than ``reach + 1`` planes away in the row, but across the ends of the
        first axis.
        """
        first, last = int(self.cuts[rank]), int(self.cuts[rank + 1])
        at, far = self._place(cells), (reach + 1) * self._plane
        found = np.ones(at.shape, dtype=bool)
        if first > 0:
            found &= at - far >= first
        if last < self._box.cells:
            found &= at + far < last
        if self._box.periodic[0] and last - first < self._box.cells:
            plane = at // self._plane
            found &= (plane >= reach) & (plane < self._box.shape[0] - reach)
        return found

    def cells(self, labels: Labels, rank: int) -> Places:
        """Return the fluid cells of a rank by their numbers in the grid, ascending."""
        first, last = int(self.cuts[rank]), int(self.cuts[rank + 1])
        if first == last:
            return np.zeros(0, dtype=np.int64)
        begin, end, low, high = first // self._plane, (last - 1) // self._plane + 1, *self._ends[0]
        if not self._box.periodic[0]:  # the planes at the ends stand with the next ones
            begin, end = (0 if begin <= low else begin), (len(labels) if end > high else end)
        found = np.flatnonzero(labels[begin:end] == FLUID).astype(np.int64) + begin * prod(labels.shape[1:])
        return found[self.owner(found) == rank]


def numbers_among(labels: Labels, cells: Places) -> Places:
    """Return how many fluid cells come before each of some cells, given by their numbers in the grid, ascending."""
    if not cells.size:
        return np.zeros(0, dtype=np.int64)
    fluid = labels.reshape(-1) == FLUID
    before = np.count_nonzero(fluid[: int(cells[0])])
    between = np.add.reduceat(fluid[: int(cells[-1]) + 1], cells, dtype=np.int64)[:-1]
    return before + np.concatenate([[0], np.cumsum(between)]).astype(np.int64)
