"""Links: populations that would arrive at a fluid cell from where there is no fluid.

A link is a fluid cell ``x`` and a direction ``i`` whose source ``x - c_i`` is beyond a side or in a solid. Every
condition at a side or body is a formula for each of its links. What a link passes on its way does not count, only where
it ends: a body that crosses it between two fluid cells is not felt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import SolverError
from fluxloom.lbm.box import Box, side_names
from fluxloom.lbm.labels import BEYOND, CHUNK, FLUID, Labels, images
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.shapes import Array, Shape

__all__ = ["HALF_WAY", "Links", "find_links"]

HALF_WAY = 0.5
"""Sides are half a cell beyond the centres of the outermost cells."""


@dataclass(frozen=True, eq=False)
class Links:
    """Populations that arrive from where there is no fluid, by ascending cell and direction.

    Attributes
    ----------
    cells : int64 (n,)
        Number in the grid of the fluid cell at which they arrive.
    directions : int64 (n,)
        Of the population that arrives.
    fractions : float64 (n,)
        Share of the way from the fluid cell to the source that is fluid, in ``(0, 1]``.
    crossed : int8 (n, dimensions)
        Along which axes the source is beyond the box: -1 below the first cell, 1 above the last one, else 0.
    """

    cells: npt.NDArray[np.int64]
    directions: npt.NDArray[np.int64]
    fractions: npt.NDArray[np.float64]
    crossed: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Links:
        """Return some of the links: by a mask, or in the order of their numbers."""
        return Links(*(getattr(self, one.name)[which] for one in fields(self)))


def find_links(
    box: Box, lattice: Lattice, labels: Labels, shapes: Sequence[Shape], priority: Sequence[str]
) -> dict[str | int, Links]:
    """Return the links of every side and body.

    Parameters
    ----------
    labels, shapes
        From and for `fluxloom.lbm.labels.labels_of`.
    priority
        Names of all sides across axes that are not periodic. A link that leaves the box through an edge or a corner
        belongs to the side that is first here.

    Returns
    -------
    dict
        By the name of the side, and by the label of the solid: ``n`` for ``shapes[n - 1]``. Every side and shape has an
        entry, if empty, as at sides where rows turn round. A source beyond a side is of that side, even where a shape
        reaches there. The fraction at sides is one half; at solids it is that of the first surface on the way, of all
        shapes that have the source inside.

    Raises
    ------
    SolverError
        If ``priority`` is not those sides, or the labels are not over the grid.
    """
    _check(box, lattice, labels, priority)
    velocities = np.array(lattice.velocities, dtype=np.int64)
    keys: list[str | int] = [*priority, *range(1, len(shapes) + 1)]
    found: list[list[npt.NDArray]] = []
    with activity("links between fluid and walls"):
        for cells in _near(box, labels):
            for some in np.split(cells, range(CHUNK // lattice.q, len(cells), CHUNK // lattice.q)):
                found.append(_links_at(box, velocities, labels, priority, some))
    empty = [np.zeros(0, np.int64)] * 2 + [np.zeros((0, box.dimensions), np.int8), np.zeros(0, np.int64)]
    cells, directions, crossed, owners = (np.concatenate(parts) for parts in zip(empty, *found, strict=True))
    fractions = np.full(len(cells), HALF_WAY)
    solid = np.flatnonzero(owners >= len(priority))
    with activity("distances of bodies along links", total=len(solid)) as work:
        for some in np.split(solid, range(CHUNK, len(solid), CHUNK)):
            fractions[some] = _fractions(box, velocities[directions[some]], shapes, cells[some])
            work.step(len(some))
    every = Links(cells, directions, fractions, crossed)
    return {key: every[np.flatnonzero(owners == number)] for number, key in enumerate(keys)}


def _check(box: Box, lattice: Lattice, labels: Labels, priority: Sequence[str]) -> None:
    if lattice.dimensions != box.dimensions or labels.shape != box.grid_shape:
        raise SolverError(
            f"links of {lattice.name} need a box of {lattice.dimensions} axes and labels over its grid, not a box of "
            f"{box.shape} with labels of {labels.shape} (the grid is {box.grid_shape})"
        )
    sides = [name for name in side_names(box.dimensions) if not box.periodic[box.axis(name)[0]]]
    if sorted(priority) != sorted(sides):
        raise SolverError(
            f"the sides that are not periodic are {', '.join(sides) or 'none'}; conditions are given for "
            f"{', '.join(priority) or 'none'}"
        )


def _near(box: Box, labels: Labels) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the numbers of fluid cells that have a neighbour which is no fluid, a few planes of the grid a time."""
    planes = labels.shape[0]
    size = labels[0].size
    thick = max(1, CHUNK // size)
    for start in range(0, box.shape[0], thick):
        stop = min(start + thick, box.shape[0])
        blocked = labels[np.arange(start - 1, stop + 1) % planes] != FLUID
        fluid = ~blocked[1:-1]
        near = blocked[:-2] | blocked[1:-1] | blocked[2:]
        for axis in range(1, near.ndim):
            near = near | np.roll(near, 1, axis) | np.roll(near, -1, axis)
        yield start * size + np.flatnonzero(near & fluid).astype(np.int64)


def _links_at(
    box: Box, velocities: npt.NDArray[np.int64], labels: Labels, priority: Sequence[str], cells: npt.NDArray[np.int64]
) -> list[npt.NDArray]:
    """Return cells, directions, crossed sides, and the place of the key in the list of keys."""
    at = np.stack(box.coordinates(cells), axis=-1)
    sources = at[:, None, :] - velocities
    kinds = labels.reshape(-1)[box.place(tuple(np.moveaxis(sources, -1, 0)))]
    blocked = kinds != FLUID
    if box.turned:  # populations come back there by themselves
        blocked &= (sources[..., -1] >= 0) & (sources[..., -1] < box.shape[-1])
    row, direction = np.nonzero(blocked)
    kinds, sources = kinds[row, direction].astype(np.int64), sources[row, direction]
    walled = ~np.array(box.periodic)
    crossed = (walled & (sources >= np.array(box.shape))).astype(np.int8) - (walled & (sources < 0)).astype(np.int8)
    owners = len(priority) + kinds - 1
    for number in reversed(range(len(priority))):
        axis, way = box.axis(priority[number])
        owners[(kinds == BEYOND) & (crossed[:, axis] == way)] = number
    return [cells[row], direction.astype(np.int64), crossed, owners]


def _fractions(
    box: Box, velocities: npt.NDArray[np.int64], shapes: Sequence[Shape], cells: npt.NDArray[np.int64]
) -> Array:
    """Return the fluid share of links that end in a solid.

    Coordinates are those at which the solid cell has its label, so that a link over a periodic side is whole. A shape
    without an end along a periodic axis is cut off half-way at that side: there the start is inside, too.
    """
    step = -velocities.astype(np.float64)
    at = np.stack(box.coordinates(cells), axis=-1) - velocities
    walled = ~np.array(box.periodic)
    end = np.where(walled, at, np.mod(at, np.array(box.shape))).astype(np.float64)
    fractions = np.full(len(cells), np.inf)
    order = np.argsort(end[:, 0], kind="stable")
    along = end[order, 0]
    for shape in shapes:
        for shift in images(box, shape):
            low, high = (edge + shift for edge in shape.bounds())
            first, last = np.searchsorted(along, low[0] - 1, "left"), np.searchsorted(along, high[0] + 1, "right")
            some = order[first:last]  # of thousands of bodies each is near few links
            some = some[((end[some] >= low - 1) & (end[some] <= high + 1)).all(axis=1)]
            some = some[shape.inside(end[some] - shift)]
            start = end[some] - step[some] - shift
            cut = shape.inside(start)
            found = np.full(len(some), HALF_WAY)
            found[~cut] = shape.fraction(start[~cut], step[some][~cut])
            fractions[some] = np.minimum(fractions[some], found)
    if not np.isfinite(fractions).all():
        raise SolverError("a cell is labelled solid, but no shape has it inside: give the shapes of these labels")
    return fractions
