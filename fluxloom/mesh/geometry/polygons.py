"""Which polygon of a plane mesh a place is in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.geometry.search import search

__all__ = ["cells_at"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_RIM = 1e-9
"""How far beyond a side a place may be, of the size of its cell: rounding."""
_TOGETHER = 64
"""Places that are looked for at a time."""


def cells_at(shapes: Array, centres: Array, numbers: Index, places: Array) -> tuple[Index, Array]:
    """Return the cell that each place is in, and how far it is from its centre.

    A place on a side is in several cells: the one with the nearest centre counts, then the one with the lowest number,
    so that ranks find the same.

    Parameters
    ----------
    shapes : (cells, corners, 2)
        Corners of convex cells, anticlockwise; of cells with fewer the last one again.
    centres, numbers : (cells, 2), (cells,)
        Their centres, and their numbers in the whole mesh.
    places : (n, 2)
        Coordinates.

    Returns
    -------
    cells : (n,)
        Places among the cells that are given, -1 for none.
    distances : (n,)
        From the centres, infinite for none.
    """
    low, high = shapes.min(axis=1), shapes.max(axis=1)
    rim = _RIM * (high - low).max(axis=1, initial=0.0)
    low, high = low - rim[:, None], high + rim[:, None]
    along = np.roll(shapes, -1, axis=1) - shapes
    length = np.maximum(np.linalg.norm(along, axis=2), 1e-300)
    found, distances = np.full(len(places), -1, dtype=np.int64), np.full(len(places), np.inf)

    (west, south), (east, north) = np.ascontiguousarray(low.T), np.ascontiguousarray(high.T)

    def near(rows: Index, least: Array, most: Array) -> Index:
        """Return cells whose boxes touch a box."""
        rows = rows[(most[0] >= west[rows]) & (least[0] <= east[rows])]
        return rows[(most[1] >= south[rows]) & (least[1] <= north[rows])]

    for group, known in search(places, np.arange(len(shapes)), near, _TOGETHER):
        at = places[group][:, None]
        place, cell = np.nonzero(((at >= low[known]) & (at <= high[known])).all(axis=2))
        cell = known[cell]
        to, way = at[place] - shapes[cell], along[cell]
        beyond = (way[..., 1] * to[..., 0] - way[..., 0] * to[..., 1]) / length[cell]
        inside = (beyond <= rim[cell, None]).all(axis=1)
        place, cell = place[inside], cell[inside]
        away = np.hypot(*(centres[cell] - at[place, 0]).T)
        order = np.lexsort((numbers[cell], away, place))
        place, first = np.unique(place[order], return_index=True)
        found[group[place]], distances[group[place]] = cell[order][first], away[order][first]
    return found, distances
