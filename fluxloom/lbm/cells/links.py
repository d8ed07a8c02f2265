"""Links: populations that would arrive at a fluid cell from where there is no fluid.

A link is a fluid cell ``x`` and a direction ``i`` whose source ``x - c_i`` is beyond a side or in a solid, or is fluid
behind a body that is thinner than the way there (`fluxloom.lbm.cells.links_cut`). Every condition at a side or body is
a formula for each of its links.

A link that leaves the box beside a body belongs to the body if its mirror image at the side ends in it: where a body
stands on a wall, or is halved by a plane of symmetry, what goes through the corner is momentum of the body, and the
links of the wall are in pairs, left and right, whose pressures cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import SolverError
from fluxloom.lbm.cells.box import Box, side_names
from fluxloom.lbm.cells.labels import BEYOND, CHUNK, FLUID, Labels, images
from fluxloom.lbm.cells.links_cut import CutSearch, Piece, find_cuts, pieces_of
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.shapes.shapes import Array, Shape

__all__ = ["HALF_WAY", "Links", "find_links", "joined_links"]

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
    cut : bool (n,)
        Whether the source is a fluid cell: what would come from there is what left it, and is replaced.
    """

    cells: npt.NDArray[np.int64]
    directions: npt.NDArray[np.int64]
    fractions: npt.NDArray[np.float64]
    crossed: npt.NDArray[np.int8]
    cut: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Links:
        """Return some of the links: by a mask, or in the order of their numbers."""
        return Links(*(getattr(self, one.name)[which] for one in fields(self)))


def joined_links(links: Sequence[Links]) -> Links:
    """Return all of some links."""
    return Links(**{one.name: np.concatenate([getattr(some, one.name) for some in links]) for one in fields(Links)})


def find_links(
    box: Box,
    lattice: Lattice,
    labels: Labels,
    shapes: Sequence[Shape],
    priority: Sequence[str],
    mirrors: Mapping[str, bool] | None = None,
) -> dict[str | int, Links]:
    """Return the links of every side and body.

    Parameters
    ----------
    labels, shapes
        From and for `fluxloom.lbm.cells.labels.labels_of`.
    priority
        Names of all sides across axes that are not periodic. A link that leaves the box through an edge or a corner
        belongs to the side that is first here.
    mirrors
        Sides that are walls (False) or planes of symmetry (True): links through them belong to the body that is met by
        their mirror image. At a wall they end half-way all the same, at a plane of symmetry where the image does.

    Returns
    -------
    dict
        By the name of the side, and by the label of the solid: ``n`` for ``shapes[n - 1]``. Every side and shape has an
        entry, if empty, as at sides where rows turn round. A source beyond another side is of that side, even where a
        shape reaches there. The fraction at sides is one half; at solids it is that of the first surface on the way, of
        all shapes that have the source inside.

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
    every = Links(cells, directions, fractions, crossed, np.zeros(len(cells), dtype=bool))
    if shapes:
        thin = pieces_of(box, shapes)
        with activity("links that thin bodies cut"):
            search = CutSearch(box, labels, thin)
            _reflect(_Sides(box, priority, mirrors or {}), velocities, labels, shapes, every, owners, search)
            every, owners = _with_cuts(velocities, every, owners, search, len(priority))
    return {key: every[np.flatnonzero(owners == number)] for number, key in enumerate(keys)}


def _with_cuts(
    velocities: npt.NDArray[np.int64], links: Links, owners: npt.NDArray[np.int64], search: CutSearch, sides: int
) -> tuple[Links, npt.NDArray[np.int64]]:
    """Return links and owners with those that bodies cut between fluid cells."""
    cuts = find_cuts(velocities, search)
    if not cuts.cells.size:
        return links, owners
    inner = np.zeros((cuts.cells.size, links.crossed.shape[1]), dtype=np.int8)
    more = Links(cuts.cells, cuts.directions, cuts.fractions, inner, np.ones(cuts.cells.size, dtype=bool))
    joined, owners = joined_links([links, more]), np.concatenate([owners, sides - 1 + cuts.labels])
    order = np.lexsort((joined.directions, joined.cells))
    return joined[order], owners[order]


@dataclass(frozen=True)
class _Sides:
    """The sides of a box, and which of them are walls (False) or planes of symmetry (True)."""

    box: Box
    priority: Sequence[str]
    mirrors: Mapping[str, bool]

    def crossed(self, links: Links, *kinds: bool) -> npt.NDArray[np.bool_]:
        """Return along which axes links cross a side of some kinds."""
        found = np.zeros(links.crossed.shape, dtype=bool)
        for name, mirrored in self.mirrors.items():
            axis, way = self.box.axis(name)
            found[:, axis] |= (links.crossed[:, axis] == way) & (mirrored in kinds)
        return found


def _reflect(
    sides: _Sides, velocities: npt.NDArray[np.int64], labels: Labels, shapes: Sequence[Shape], links: Links,
    owners: npt.NDArray[np.int64], search: CutSearch,
) -> None:  # fmt: skip
    """Give links that leave the box to the bodies which their mirror images meet, and the shares at which they do."""
    box, priority, over = sides.box, sides.priority, links.crossed != 0
    passed, plane = sides.crossed(links, True, False), sides.crossed(links, True)
    at = np.flatnonzero((owners < len(priority)) & over.any(axis=1) & (passed == over).all(axis=1))
    step = -velocities[links.directions[at]]
    back = np.where(over[at], -step, step)
    goal = box.shifted(links.cells[at], np.where(over[at], 0, step))
    kinds = labels.reshape(-1)[goal].astype(np.int64)
    wall = (over[at] & ~plane[at]).any(axis=1)
    solid = np.flatnonzero(kinds > FLUID)
    met = _met(links.cells[at[solid]], step[solid], back[solid], pieces_of(box, shapes, wide=True))[0]
    met = np.where(np.isfinite(met), met, HALF_WAY)
    owners[at[solid]] = len(priority) - 1 + kinds[solid]
    links.fractions[at[solid]] = np.where(wall[solid], np.minimum(met, HALF_WAY), met)
    thin = np.flatnonzero(kinds == FLUID)
    met, whose = _met(links.cells[at[thin]], step[thin], back[thin], search.pieces)
    apart = np.flatnonzero(np.isfinite(met))
    along = np.where(over[at[thin[apart]]], 0, step[thin[apart]])
    apart = apart[~search.joined(links.cells[at[thin[apart]]], along)]
    thin, met, whose = thin[apart], met[apart], whose[apart]
    owners[at[thin]] = len(priority) - 1 + whose
    links.fractions[at[thin]] = np.where(wall[thin], np.minimum(met, HALF_WAY), met)


def _met(
    cells: npt.NDArray[np.int64], step: npt.NDArray[np.int64], back: npt.NDArray[np.int64], pieces: Sequence[Piece]
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return where ways that are reflected half-way first meet a piece, and the label of that one."""
    first, whose = np.full(len(cells), np.inf), np.zeros(len(cells), dtype=np.int64)
    for piece in pieces if len(cells) else ():
        at = piece.around(cells)
        q = piece.entry(cells[at], step[at], back[at])
        less = q < first[at]
        first[at[less]], whose[at[less]] = q[less], piece.label
    return first, whose


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
