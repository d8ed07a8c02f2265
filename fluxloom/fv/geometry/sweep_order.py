"""The order in which sweeps solve cells: fronts that go through a mesh from an end of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.fv.geometry.volumes import ControlVolumes, Sides
from fluxloom.graph.colour_rows import colour_rows
from fluxloom.graph.csr import Csr

__all__ = ["front_order"]

Index = npt.NDArray[np.int64]


def front_order(volumes: ControlVolumes) -> Index:
    """Return when each owned cell has its turn, ``(owned,)``, 0 and up: no face joins two of one turn.

    Turns follow the number of faces on the way from a cell at an end of the mesh. Along the lines of a mesh of quads or
    hexahedra turns go up, from one corner to the other, so that neighbours in a line come one after the other whatever
    the line's direction. Neighbours that are as far from the begin have colours.

    Parameters
    ----------
    volumes
        Cells; those of other ranks are not met.
    """
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import connected_components, shortest_path

    sides = Sides.of(volumes)
    n, inner = sides.cells, (sides.other < sides.cells) & (sides.other != sides.cell)
    row, column = sides.cell[inner], sides.other[inner]
    label = connected_components(csr_array(coo_array((np.ones(row.size), (row, column)), shape=(n, n))), False)[1]
    away = np.zeros(n)
    for _ in range(2):
        order = np.lexsort((np.arange(n), -away, label))
        first = order[np.unique(label[order], return_index=True)[1]]
        ways = np.concatenate([row, np.full(first.size, n)]), np.concatenate([column, first])
        short = tuple(side.astype(np.int32) for side in ways)  # SciPy before 1.15 takes no others
        graph = csr_array(coo_array((np.ones(ways[0].size), short), shape=(n + 1, n + 1)))
        away = np.asarray(shortest_path(graph, method="D", directed=True, unweighted=True, indices=n))[:n] - 1.0
    fronts = away.astype(np.int64)
    same = fronts[row] == fronts[column]
    starts = np.concatenate([[0], np.cumsum(np.bincount(row[same], minlength=n))]).astype(np.int64)
    colours = colour_rows(Csr(starts, np.ascontiguousarray(column[same]))).colours.astype(np.int64)
    key = fronts * (int(colours.max(initial=0)) + 1) + colours
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
