"""Labels of cells: fluid, solid, or beyond the sides.

The label of a cell is that of its centre: a body thinner than the distance of two cells may have no cell. It cuts
links between fluid cells all the same (`fluxloom.lbm.cells.links_cut`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, floor, isfinite, prod

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.shapes.shapes import Array, Shape

__all__ = ["BEYOND", "CHUNK", "FLUID", "Labels", "images", "labels_of"]

Labels = npt.NDArray[np.int16]

FLUID, BEYOND = 0, -1
CHUNK = 1 << 18
"""Points that are looked at together: bounds the memory, and stays in the caches."""


def labels_of(box: Box, shapes: Sequence[Shape]) -> Labels:
    """Return what each cell of the grid is.

    Parameters
    ----------
    box
        Its axes that are not periodic have a layer of cells beyond the sides.
    shapes
        Where they overlap the first one has the cell. A shape that reaches over the side of a periodic axis comes in
        again at the other one, if it has an end along that axis.

    Returns
    -------
    ``box.grid_shape``
        0: fluid; ``n``: solid, of ``shapes[n - 1]``; -1: in the layer beyond the sides.

    Raises
    ------
    SolverError
        If a shape has another number of dimensions, or there are too many.
    """
    if len(shapes) > np.iinfo(np.int16).max:
        raise SolverError(f"{len(shapes)} bodies: at most {np.iinfo(np.int16).max}; join some with Union")
    labels = np.full(box.grid_shape, BEYOND, dtype=np.int16)
    inner = labels[box.inside]
    inner[...] = FLUID
    with activity("cells in bodies", total=len(shapes)) as work:
        for number, shape in enumerate(shapes, start=1):
            if shape.dimensions != box.dimensions:
                raise SolverError(
                    f"body {number} is a {type(shape).__name__} of {shape.dimensions} axes, the box has "
                    f"{box.dimensions}"
                )
            for shift in images(box, shape):
                for window, points in _points(box, shape, shift):
                    part = inner[window]
                    found = shape.inside(points - shift).reshape(part.shape)
                    part[found & (part == FLUID)] = number
            work.step()
    return labels


def images(box: Box, shape: Shape, margin: int = 0) -> list[Array]:
    """Return by how much a shape is moved along periodic axes to all places at which it reaches into the box.

    Parameters
    ----------
    margin
        Cells by which it may miss the box.
    """
    along = []
    for low, high, n, periodic in zip(*shape.bounds(), box.shape, box.periodic, strict=True):
        ends = periodic and isfinite(low) and isfinite(high)
        first, last = (ceil((-margin - high) / n), floor((n - 1 + margin - low) / n)) if ends else (0, 0)
        along.append([n * k for k in range(first, last + 1)])
    return [np.array(shift, dtype=np.float64) for shift in product(*along)]


def _points(box: Box, shape: Shape, shift: Array) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """Yield the cells that a shape may cover: slabs of the box, and the coordinates of their cells, row by row."""
    low, high = (edge + shift for edge in shape.bounds())
    spans = []
    for a, n in enumerate(box.shape):
        # a cell more at each end, as bounds may be rounded
        first = ceil(low[a]) - 1 if isfinite(low[a]) else 0
        last = floor(high[a]) + 2 if isfinite(high[a]) else n
        spans.append((max(first, 0), min(last, n)))
    if any(first >= last for first, last in spans):
        return
    rest = [np.arange(first, last, dtype=np.float64) for first, last in spans[1:]]
    thick = max(1, CHUNK // prod(x.size for x in rest))
    bottom, top = spans[0]
    for start in range(bottom, top, thick):
        stop = min(start + thick, top)
        at = np.meshgrid(np.arange(start, stop, dtype=np.float64), *rest, indexing="ij")
        yield (slice(start, stop), *(slice(*span) for span in spans[1:])), np.stack([x.ravel() for x in at], axis=1)
