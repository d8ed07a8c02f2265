"""Many places among many cells: groups of places that are close together, each with the cells that it may be in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["search"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_FEW = 4
"""Places that are looked at with the cells around all of them."""


def search(
    places: Array, cells: Index, keep: Callable[[Index, Array, Array], Index], few: int = _FEW
) -> Iterator[tuple[Index, Index]]:
    """Yield groups of places, and for each the cells that they may be in: halves of halves, boxes around them.

    Parameters
    ----------
    places : (n, d)
        Coordinates.
    cells
        Numbers of all cells.
    keep
        Of cells, and the lower and the upper corner of a box: those that places in the box may be in, in order.
    few
        Places of a group, at most.

    Yields
    ------
    rows, cells
        Of places, and numbers of cells.
    """
    waiting = [(np.arange(len(places)), cells)] if len(places) else []
    while waiting:
        rows, known = waiting.pop()
        low, high = places[rows].min(axis=0), places[rows].max(axis=0)
        near = keep(known, low, high)
        if len(rows) <= few or not near.size:
            yield rows, near
            continue
        order = rows[np.argsort(places[rows, int(np.argmax(high - low))], kind="stable")]
        middle = len(order) // 2
        waiting += [(order[:middle], near), (order[middle:], near)]
