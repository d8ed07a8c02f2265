"""Lattice Boltzmann flow on several ranks: which cells each one has, and values of all of them on rank 0.

Where only fluid cells are stored, in a list, each rank has a piece of it; the cells of the box whose values it looks at
are those of its window (`fluxloom.lbm.cells.windows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import to_first
from fluxloom.dsl.declare.parts import Part, refresh_host
from fluxloom.dsl.ranks.decompose_report import PartitionReport, make_report
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["Pieces", "fluid_beside", "gather_rows", "places_of"]

Values = npt.NDArray[Any]
Places = npt.NDArray[np.int64]
Window = tuple[slice, ...]


class Pieces:
    """The cells of each rank among those of the box; on a rank alone all of them. Collective.

    Parameters
    ----------
    flow
        What is divided.

    Attributes
    ----------
    comm
        The ranks.
    first
        Whether this is rank 0, which writes.
    window
        Slices that cut this rank's cells out of an array over the box.
    """

    def __init__(self, flow: LatticeBoltzmann) -> None:
        self._flow, self.comm = flow, flow.context.comm
        self.first = self.comm.rank == 0
        grid, shape = flow.grid, flow.box.shape
        ends = zip(grid.offset, grid.shape, shape, strict=True)
        self.window: Window = tuple(slice(min(o, m), min(o + n, m)) for o, n, m in ends)
        self._windows: list[Window] = [
            tuple(slice(*end) for end in ends) for ends in self.comm.allgather([(w.start, w.stop) for w in self.window])
        ]
        self.part = None if grid.part is None else self._part(grid.part)
        self._beside: dict[int, tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]] = {}

    def _part(self, grid: Part) -> Part:
        """Return the cells of this rank as a part of those of the box."""
        shape = self._flow.box.shape
        numbers = np.ravel_multi_index(np.ix_(*(np.arange(w.start, w.stop) for w in self.window)), shape).ravel()
        n = numbers.size
        inside = min(n, max(0, grid.inside - grid.begin))
        return Part(0, inside, n, n, n, numbers.astype(np.int64), prod(shape), grid.neighbours)

    def report(self, shares: Sequence[float] | None) -> PartitionReport | None:
        """Return how the box, or the list of its fluid cells, is divided; None on a rank alone. Collective.

        Parameters
        ----------
        shares
            What each rank was to get; None: the same.
        """
        if self.part is None:
            return None
        listed, part = self._flow.memory.listed, self.part
        method = f"boxes {' x '.join(map(str, self._flow.grid.factors[::-1]))}"
        if listed is not None and listed[1].part is not None:
            part, method = listed[1].part, "pieces of the list of fluid cells"
        wanted = np.full(self.comm.size, 1.0) if shares is None else np.asarray(shares, dtype=np.float64)
        loads = np.array(self.comm.allgather(part.owned), dtype=np.float64)
        uneven = float((loads / loads.sum() / (wanted / wanted.sum())).max()) - 1.0
        return make_report(
            self.comm, {"cells": part}, on="cells", method=method, through="", edge_cut=-1, unbalanced=uneven
        )

    def whole(self, values: Values, places: Sequence[Places] | None = None) -> Values | None:
        """Return values of the cells of all ranks on rank 0, None elsewhere. Collective.

        Parameters
        ----------
        values
            Of this rank's cells, ``(*cells, *components)``.
        places
            Along each axis the places in the box of what is wanted, ascending; by default of all cells. Only these
            values are sent.
        """
        shape = self._flow.box.shape
        d, every = len(shape), places if places is not None else [np.arange(n) for n in shape]
        ends = [self._ends(every, window) for window in self._windows]
        own = zip(every, ends[self.comm.rank], self.window, strict=True)
        mine = [at[low:high] - w.start for at, (low, high), w in own]
        chosen = values if places is None else values[np.ix_(*mine)]
        if self.part is None:
            return chosen
        pieces = gather_rows(self.comm, chosen.reshape(-1, *values.shape[d:]))
        if pieces is None:
            return None
        found = np.empty((*map(len, every), *values.shape[d:]), dtype=values.dtype)
        for place, rows in zip(ends, pieces, strict=True):
            found[tuple(slice(*end) for end in place)] = rows.reshape(
                *(high - low for low, high in place), *values.shape[d:]
            )
        return found

    @staticmethod
    def _ends(places: Sequence[Places], window: Window) -> list[tuple[int, int]]:
        """Return, along each axis, the first of some places in a window and the first behind it."""
        found = [np.searchsorted(at, (w.start, w.stop)) for at, w in zip(places, window, strict=True)]
        return [(int(low), int(high)) for low, high in found]

    def beyond(self, values: Values) -> Mapping[int, tuple[Values, Values]]:
        """Return, for each axis that is cut, the layers of other ranks' cells before and behind this rank's.

        Collective. Where the box ends, and its sides are not joined, the layer means nothing.

        Parameters
        ----------
        values
            Of this rank's cells, ``(*cells, components)``.
        """
        grid = self._flow.grid
        if grid.part is None:
            return {}
        d = values.ndim - 1
        stored = np.zeros((*grid.full_shape, values.shape[d]), dtype=values.dtype)
        own = tuple(slice(g, g + w.stop - w.start) for g, w in zip(grid.ghost, self.window, strict=True))
        stored[own] = values
        refresh_host(self.comm, grid.part, stored.reshape(-1, values.shape[d]))
        found = {}
        for axis in (k for k in range(d) if grid.factors[k] > 1):
            ends = (slice(own[axis].start - 1, own[axis].start), slice(own[axis].stop, own[axis].stop + 1))
            found[axis] = tuple(stored[(*own[:axis], end, *own[axis + 1 :])] for end in ends)
        return found

    def beside(self, axis: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return of this rank's cells what `fluid_beside` says along an axis."""
        if axis not in self._beside:
            found = fluid_beside(self._flow.fluid, axis, joined=self._flow.box.periodic[axis])
            self._beside[axis] = found[0][self.window], found[1][self.window]
        return self._beside[axis]


def fluid_beside(
    fluid: npt.NDArray[np.bool_], axis: int, *, joined: bool
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:  # fmt: skip
    """Return of each cell of a box whether it is fluid and what is before it, or behind it, along an axis is so too."""
    before, behind = (np.moveaxis(np.roll(fluid, way, axis) & fluid, axis, 0) for way in (1, -1))
    before[0] &= joined
    behind[-1] &= joined
    return np.moveaxis(before, 0, axis), np.moveaxis(behind, 0, axis)


def places_of(shape: Sequence[int], every: int = 1, across: int = -1) -> list[Places]:
    """Return the places of each so-manieth cell along each axis: the rows of pictures count from the last one.

    Parameters
    ----------
    shape
        Of the box.
    across
        An axis of which only the middle is wanted; negative: none.
    """
    found = []
    for axis, n in enumerate(shape):
        places = np.arange(n)
        counted = places if axis == len(shape) - 1 else n - 1 - places
        found.append(places[n // 2 : n // 2 + 1] if axis == across else places[counted % every == 0])
    return found


def gather_rows(comm: Any, values: Values) -> list[Values] | None:
    """Return the rows of each rank on rank 0, None elsewhere. Collective."""
    found = to_first(comm, values)
    return None if comm.rank else found
