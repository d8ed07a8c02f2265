"""Links that a body cuts though both of their ends are fluid: walls thinner than the way from cell to cell.

A wall has cells of its own only where it covers their centres. One of a third of a cell may have none at all, and one
of a whole cell that lies askew still has fluid cells on both sides that are neighbours across a corner. So the segments
between neighbours are met with the shapes themselves.

Segments along the axes come first. One that meets a body is cut unless both ends are joined by a way round it, through
cells next to them: then the body reaches into the segment from aside, as a rounded corner or the end of a plate does,
and separates nothing. Segments askew are looked at only where no way along the axes joins their ends. What is left is
cut at both ends, so that nothing passes; bodies that are cells thick keep the links that their cells give them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from math import ceil, floor, isfinite

import numpy as np
import numpy.typing as npt

from fluxloom.lbm.cells.box import Box, sought
from fluxloom.lbm.cells.labels import CHUNK, FLUID, Labels, images
from fluxloom.lbm.shapes.shapes import Array, Mask, Shape

__all__ = ["CutSearch", "Cuts", "Piece", "find_cuts", "pieces_of"]

Places = npt.NDArray[np.int64]

_CELLS = CHUNK // 16
"""Cells that are looked at together."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A shape, or a member of a union, at a place at which it reaches into the box.

    Attributes
    ----------
    box
        Of the cells.
    shape
        Whose surface may cut links.
    shift
        By which it is moved over periodic sides.
    label
        Of its cells.
    """

    box: Box
    shape: Shape
    shift: Array
    label: int

    def window(self) -> Iterator[Places]:
        """Yield numbers in the grid of cells of the box that may be next to it."""
        low, high = (end + self.shift for end in self.shape.bounds())
        spans = [
            np.arange(max(ceil(a) - 2, 0) if isfinite(a) else 0, min(floor(b) + 3, n) if isfinite(b) else n)
            for a, b, n in zip(low, high, self.box.shape, strict=True)
        ]
        if not all(span.size for span in spans):
            return
        near = self.shape.near([span - x for span, x in zip(spans, self.shift, strict=True)])
        size = int(np.prod([span.size for span in spans[1:]]))
        thick = max(1, _CELLS // size)
        for start in range(0, spans[0].size, thick):
            some = np.meshgrid(spans[0][start : start + thick], *spans[1:], indexing="ij")
            kept = slice(None) if near is None else near[start : start + thick].ravel()
            yield self.box.place(tuple(x.ravel()[kept].astype(np.int64) for x in some))

    def around(self, cells: Places) -> Places:
        """Return which of some cells are no further than a step from its bounds."""
        low, high = (end + self.shift for end in self.shape.bounds())
        at = np.stack(self.box.coordinates(cells), axis=-1)
        return np.flatnonzero(((at >= low - 1.0) & (at <= high + 1.0)).all(axis=1))

    def entry(self, cells: Places, step: npt.NDArray[np.int64], back: npt.NDArray[np.int64] | None = None) -> Array:
        """Return at which share of the way from cells they meet the shape first; infinite where they do not.

        Parameters
        ----------
        step : (n, dimensions)
            From a cell to its neighbour.
        back
            The same for the second half of the way: what is reflected at a side goes another way there.
        """
        start = np.stack(self.box.coordinates(cells), axis=-1).astype(np.float64) - self.shift
        half = 0.5 * np.broadcast_to(step, start.shape).astype(np.float64)
        ends = self._ends(start, 2.0 * half)
        if back is None and not ends.any():
            return self.shape.entry(start, 2.0 * half)
        middle = start + half - ends * np.array(self.box.shape)
        further = half if back is None else 0.5 * np.broadcast_to(back, start.shape).astype(np.float64)
        first, second = self.shape.entry(start, half), self.shape.entry(middle, np.asarray(further, dtype=np.float64))
        second[self.shape.inside(middle)] = 0.0
        return np.minimum(0.5 * first, 0.5 + 0.5 * second)

    def _ends(self, start: Array, step: Array) -> Array:
        """Return over which periodic sides, -1 or 1, a way leads at which the shape, without an end, is cut off."""
        low, high = self.shape.bounds()
        endless = np.array(self.box.periodic) & ~(np.isfinite(low) & np.isfinite(high))
        goal = start + step
        return endless * ((goal >= np.array(self.box.shape)).astype(np.float64) - (goal < 0))


def pieces_of(box: Box, shapes: Sequence[Shape], *, wide: bool = False) -> list[Piece]:
    """Return the pieces of bodies that may cut links between fluid cells; with ``wide`` those of all bodies."""
    found = []
    for label, shape in enumerate(shapes, start=1):
        for part in shape.parts():
            if wide or not part.wide:
                found += [Piece(box, part, shift, label) for shift in images(box, part, margin=1)]
    return found


@dataclass(frozen=True, eq=False)
class Cuts:
    """Links that are cut between fluid cells.

    Attributes
    ----------
    cells, directions, fractions
        As those of `fluxloom.lbm.cells.links.Links`, both ends of each.
    labels
        Of the bodies that cut them.
    """

    cells: Places
    directions: Places
    fractions: Array
    labels: Places


def find_cuts(velocities: npt.NDArray[np.int64], search: CutSearch) -> Cuts:
    """Return the links that pieces of bodies cut between fluid cells; ``velocities`` are those of the lattice."""
    number = {tuple(c): k for k, c in enumerate(velocities.tolist())}
    half = [c for c in sorted(number) if c > tuple(0 for _ in c)]
    found: list[tuple[Places, int, Array, Places]] = []
    for step in half:
        back = tuple(-x for x in step)
        for cells, first, second in search.cut(np.array(step)):
            ends = search.box.shifted(cells, np.broadcast_to(step, (cells.size, len(step))))
            found.append((cells, number[back], *first))
            found.append((ends, number[step], *second))
    none = np.zeros(0, dtype=np.int64)
    return Cuts(
        np.concatenate([none, *(one[0] for one in found)]),
        np.concatenate([none, *(np.full(one[0].size, one[1]) for one in found)]),
        np.concatenate([np.zeros(0), *(one[2] for one in found)]),
        np.concatenate([none, *(one[3] for one in found)]),
    )


Met = tuple[Array, Places]
"""Where ways meet a body first, and its label."""


class CutSearch:
    """Segments between neighbours, and which of them bodies meet.

    Parameters
    ----------
    labels
        Of the cells of the grid.
    pieces
        Of the bodies that may cut segments.
    """

    def __init__(self, box: Box, labels: Labels, pieces: Sequence[Piece]) -> None:
        self.box, self.pieces = box, pieces
        self.fluid = labels.reshape(-1) == FLUID
        self.units = np.eye(box.dimensions, dtype=np.int64)
        self._met = np.zeros(0, dtype=np.int64)  # keys of the segments along axes that meet a body, ascending
        keys = [self._along(piece) for piece in pieces]
        self._met = np.unique(np.concatenate([self._met, *keys]))

    def _along(self, piece: Piece) -> Places:
        """Return the keys of the segments along axes, from their lower ends, that meet a piece."""
        found = [np.zeros(0, dtype=np.int64)]
        for cells in piece.window():
            for axis, unit in enumerate(self.units):
                some = cells[self._both(cells, unit)]
                met = np.isfinite(piece.entry(some, unit))
                found.append(some[met] * self.box.dimensions + axis)
        return np.concatenate(found)

    def _both(self, cells: Places, step: npt.NDArray[np.int64]) -> Mask:
        """Return from which cells a step leads from fluid to fluid, and not out of the box."""
        steps = np.broadcast_to(step, (cells.size, step.size))
        return self.fluid[cells] & self.fluid[self.box.shifted(cells, steps)] & ~self.box.leave(cells, steps)

    def _open(self, cells: Places, step: npt.NDArray[np.int64]) -> tuple[Mask, Places]:
        """Return from which cells a step along an axis leads from fluid to fluid past all bodies, and its ends."""
        ends = self.box.shifted(cells, np.broadcast_to(step, (cells.size, step.size)))
        axis = int(np.flatnonzero(step)[0])
        lower = cells if step[axis] > 0 else ends
        return self._both(cells, step) & (sought(self._met, lower * self.box.dimensions + axis) < 0), ends

    def _joined(self, cells: Places, step: npt.NDArray[np.int64]) -> Mask:
        """Return from which cells a way along axes, through cells next to it, leads past all bodies."""
        axes = np.flatnonzero(step)
        parts = [step[axis] * self.units[axis] for axis in axes]
        if len(parts) > 1:
            ways = [list(way) for way in permutations(parts)]
        else:
            aside = [sign * unit for unit in self.units for sign in (1, -1) if not unit[axes[0]]]
            ways = [[one, step, -one] for one in aside]
        found = np.zeros(cells.size, dtype=bool)
        for way in ways:
            rest = np.flatnonzero(~found)
            at, yes = cells[rest], np.ones(rest.size, dtype=bool)
            for part in way:
                passes, at = self._open(at, part)
                yes &= passes
            found[rest] = yes
        return found

    def joined(self, cells: Places, steps: npt.NDArray[np.int64]) -> Mask:
        """Return which steps ``(n, dimensions)``, none longer than to a neighbour, lead along some way past all bodies.

        A cell is not joined to itself: what meets a body on the way back has met it.
        """
        found = np.zeros(cells.size, dtype=bool)
        for step in np.unique(steps, axis=0) if cells.size else ():
            at = np.flatnonzero((steps == step).all(axis=1))
            if np.count_nonzero(step) == 1:
                found[at] = self._open(cells[at], step)[0]
            if step.any():
                found[at] |= self._joined(cells[at], step)
        return found

    def cut(self, step: npt.NDArray[np.int64]) -> Iterator[tuple[Places, Met, Met]]:
        """Yield the cells from which a step is cut, and where each of both ways meets a body."""
        for some in self._candidates(step):
            cells = some[~self._joined(some, step)]
            first, second = (np.full(cells.size, np.inf) for _ in range(2))
            whose, others = (np.zeros(cells.size, dtype=np.int64) for _ in range(2))
            ends = self.box.shifted(cells, np.broadcast_to(step, (cells.size, step.size)))
            for piece in self.pieces if cells.size else ():
                at = piece.around(cells)
                q = piece.entry(cells[at], step)
                yes = np.isfinite(q)
                at, q = at[yes], q[yes]
                less = q < first[at]
                first[at[less]], whose[at[less]] = q[less], piece.label
                q = self._backwards(piece, cells[at], ends[at], step)
                less = q < second[at]
                second[at[less]], others[at[less]] = q[less], piece.label
            kept = np.isfinite(first) & np.isfinite(second)
            if kept.any():
                yield cells[kept], (first[kept], whose[kept]), (second[kept], others[kept])

    @staticmethod
    def _backwards(piece: Piece, cells: Places, ends: Places, step: npt.NDArray[np.int64]) -> Array:
        """Return where ways back from the ends meet a piece, which stays at its place over periodic sides."""
        wrapped = np.stack(piece.box.coordinates(ends), -1) - np.stack(piece.box.coordinates(cells), -1) - step
        found = np.full(cells.size, np.inf)
        low, high = piece.shape.bounds()
        over = wrapped * (np.isfinite(low) & np.isfinite(high))
        for shift in np.unique(over, axis=0) if cells.size else ():
            at = np.flatnonzero((over == shift).all(axis=1))
            there = Piece(piece.box, piece.shape, piece.shift + shift, piece.label)
            found[at] = there.entry(ends[at], -step)
        return found

    def _candidates(self, step: npt.NDArray[np.int64]) -> Iterator[Places]:
        """Yield cells from which a step may be cut, once each."""
        lone = np.flatnonzero(step)
        if lone.size == 1:
            keys = self._met[self._met % self.box.dimensions == lone[0]]
            yield keys // self.box.dimensions
            return
        for cells in np.split(self._around, range(_CELLS, self._around.size, _CELLS)):
            yield cells[self._both(cells, step)]

    @cached_property
    def _around(self) -> Places:
        """Fluid cells next to pieces that are, or are next to, the ends of a segment that a body meets."""
        near = [np.zeros(0, dtype=np.int64), *(cells for piece in self.pieces for cells in piece.window())]
        cells = np.unique(np.concatenate(near))
        cells = cells[self.fluid[cells]]
        ends = self._met // self.box.dimensions
        axes = self.units[self._met % self.box.dimensions]
        solid = ~self.fluid
        solid[ends] = True
        solid[self.box.shifted(ends, axes)] = True
        yes = np.zeros(cells.size, dtype=bool)
        for offset in product((-1, 0, 1), repeat=self.box.dimensions):
            rest = np.flatnonzero(~yes)
            yes[rest] = solid[self.box.shifted(cells[rest], np.broadcast_to(offset, (rest.size, len(offset))))]
        return cells[yes]
