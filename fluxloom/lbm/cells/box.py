"""The box of a lattice: its cells, its sides, and the layer of cells beyond sides that are not periodic.

Populations live on a grid that is periodic along every axis. An axis that is not periodic has one cell more than the
box: index ``n``, which is also index ``-1``. That layer is no fluid; what arrives at a cell of the box from beyond a
side is stored in it, and the conditions of the sides put it there before every step. One layer serves both sides, as
a population that leads up and one that leads down are stored apart.

Long rows that are not periodic have as many such cells as make them a multiple of four: then work items of a GPU can
handle several cells of a row at once (`fluxloom.codegen.grids.sites`). The last one is index ``-1``.

Where rows end at walls at rest there is no such cell. Populations that leave a row come back there by themselves: the
stencil turns round (`fluxloom.dsl.declare.maps.OffsetMap`), and what arrives at the last cell by ``k`` is what has left
it along ``-k``. Memory has to open a page for each end of a row that a loop over walls touches, and none for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["AXES", "Box", "side_names", "sought"]

AXES = "xyz"

_EVEN, _LONG = 4, 32
"""Rows of at least so many cells with the layer beyond are a multiple of four."""


def side_names(dimensions: int) -> tuple[str, ...]:
    """Return the names of the sides: ``xmin``, ``xmax``, ``ymin``, ... ."""
    return tuple(f"{axis}{end}" for axis in AXES[:dimensions] for end in ("min", "max"))


@dataclass(frozen=True)
class Box:
    """Cells of a box of a lattice, slowest axis first.

    Attributes
    ----------
    shape
        Cells along each axis: ``(nz, ny, nx)`` or ``(ny, nx)``.
    periodic
        Whether the two sides across each axis are joined.
    turned
        Whether populations come back at the ends of rows, along x, by themselves.
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    turned: bool = False

    def __post_init__(self) -> None:
        if len(self.shape) not in (2, 3) or min(self.shape) < 1 or len(self.periodic) != len(self.shape):
            raise SolverError(f"a box has two or three axes of at least one cell, not {self.shape} ({self.periodic})")

    @property
    def dimensions(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def cells(self) -> int:
        """Cells of the box."""
        return prod(self.shape)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Shape of the grid: the box and the layer beyond axes that are not periodic, unless rows turn round."""
        *outer, row = (n + (not joined) for n, joined in zip(self.shape, self._wraps, strict=True))
        return (*outer, row if self._wraps[-1] or row < _LONG else -(-row // _EVEN) * _EVEN)

    @property
    def _wraps(self) -> tuple[bool, ...]:
        """Whether an axis has no layer beyond: it is periodic, or its rows turn round."""
        return (*self.periodic[:-1], self.periodic[-1] or self.turned)

    @property
    def inside(self) -> tuple[slice, ...]:
        """Slices that cut the box out of an array over the grid."""
        return tuple(slice(0, n) for n in self.shape)

    def axis(self, side: str) -> tuple[int, int]:
        """Return the axis across a side, slowest first, and -1 or 1: which way out of the box it is.

        Raises
        ------
        SolverError
            For a name of no side.
        """
        if side not in side_names(self.dimensions):
            raise SolverError(f"{side!r} is no side of the box (there are: {', '.join(side_names(self.dimensions))})")
        return self.dimensions - 1 - AXES.index(side[0]), 1 if side.endswith("max") else -1

    def place(self, coordinates: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the number in the grid of cells whose coordinates may lie beyond the box; ends wrap round."""
        shape = self.grid_shape
        wrapped = [np.mod(x, n) for x, n in zip(coordinates, shape, strict=True)]
        return np.ravel_multi_index(tuple(wrapped), shape).astype(np.int64)

    def coordinates(self, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the coordinates of cells, given by their numbers in the grid."""
        return tuple(np.asarray(x, dtype=np.int64) for x in np.unravel_index(places, self.grid_shape))

    def leave(self, places: npt.NDArray[np.int64], shifts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which ways from cells, as `shifted` takes them, lead out of rows that turn round."""
        if not self.turned:
            return np.zeros(np.broadcast_shapes(np.shape(places), shifts.shape[:-1]), dtype=bool)
        along = self.coordinates(places)[-1] + shifts[..., -1]
        return (along < 0) | (along >= self.shape[-1])

    def across(self, cells: npt.NDArray[np.int64], axis: int) -> tuple[tuple[int, ...], npt.NDArray[np.int64]]:
        """Return the shape of a side across an axis, and the numbers of cells in it."""
        shape, at = list(self.shape), list(self.coordinates(cells))
        del shape[axis], at[axis]
        return tuple(shape), np.ravel_multi_index(tuple(at), tuple(shape)).astype(np.int64)

    def inwards(self, cells: npt.NDArray[np.int64], axis: int, outward: int) -> npt.NDArray[np.int64]:
        """Return the next cells away from a side."""
        shift = np.zeros((len(cells), self.dimensions), dtype=np.int64)
        shift[:, axis] = -outward
        return self.shifted(cells, shift)

    def shifted(self, places: npt.NDArray[np.int64], shifts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of the cells at some distance, ``(..., dimensions)`` for ``places`` ``(...)``."""
        places = np.asarray(places, dtype=np.int64)
        if not shifts.any():
            return np.broadcast_to(places, np.broadcast_shapes(places.shape, shifts.shape[:-1]))
        at = self.coordinates(places)
        return self.place([x + shifts[..., k] for k, x in enumerate(at)])


def sought(ascending: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the place of each number among ascending ones; -1 where it is not there."""
    if not ascending.size:
        return np.full(numbers.shape, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    return np.where(ascending[at] == numbers, at, -1)
