"""Boxes of a staggered grid: where faces and cells are, how they are stored, and what lies beyond their sides.

Places are stored with the slowest axis first, ``(z, y, x)``, as arrays of NumPy show them; everything else counts the
axes as x, y, z. An axis that is not periodic has a layer of places beyond each end: component ``a`` of the velocity is
at the lower face of a place along ``a``, so the upper layer also holds the faces of the upper side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["SIDES", "Side", "StaggeredGrid", "sides_of"]

Array = npt.NDArray[np.float64]

SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")
_UNIFORM = 1e-9
_FEWEST = 2


@dataclass(frozen=True)
class Side:
    """One side of a box.

    Attributes
    ----------
    axis
        That it is across: 0 is x.
    upper
        Whether it is at the upper end.
    """

    axis: int
    upper: bool

    @property
    def name(self) -> str:
        """``"xmin"`` and so on."""
        return SIDES[2 * self.axis + self.upper]


@dataclass(frozen=True)
class StaggeredGrid:
    """A box of cells, of which one direction may be stretched.

    Attributes
    ----------
    faces
        Along x, y and z: coordinates of the faces of cells, ``(n + 1,)``.
    periodic
        Whether the ends of each axis are joined.

    Raises
    ------
    SolverError
        For faces that do not ascend, too few cells, or more than one stretched axis, or a periodic one.
    """

    faces: tuple[Array, ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.faces) not in (2, 3) or len(self.periodic) != len(self.faces):
            raise SolverError("a staggered grid has two or three axes, each with its faces and whether it is periodic")
        object.__setattr__(self, "faces", tuple(np.asarray(line, dtype=np.float64) for line in self.faces))
        for k, faces in enumerate(self.faces):
            if faces.ndim != 1 or len(faces) <= _FEWEST or not (np.diff(faces) > 0).all():
                raise SolverError(f"faces along {'xyz'[k]}: at least {_FEWEST + 1} coordinates that ascend are wanted")
        uneven = [k for k in range(self.dimension) if not self._even(k)]
        if len(uneven) > 1:
            raise SolverError("only one direction of a staggered grid may be stretched: the pressure is transformed")
        if uneven and self.periodic[uneven[0]]:
            raise SolverError(f"{'xyz'[uneven[0]]} is periodic and stretched: only a direction with ends may be")

    def _even(self, axis: int) -> bool:
        widths = self.widths(axis)
        return bool(np.abs(widths / widths.mean() - 1.0).max() < _UNIFORM)

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.faces)

    @property
    def counts(self) -> tuple[int, ...]:
        """Cells along x, y, z."""
        return tuple(len(faces) - 1 for faces in self.faces)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.counts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along the axes of arrays, the slowest first."""
        return self.counts[::-1]

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Stored places along the axes of arrays."""
        return tuple(n + 2 * (not p) for n, p in zip(self.counts, self.periodic, strict=True))[::-1]

    @property
    def interior(self) -> tuple[slice, ...]:
        """Slices that cut the cells out of what is stored."""
        return tuple(slice(int(not p), int(not p) + n) for n, p in zip(self.counts, self.periodic, strict=True))[::-1]

    @cached_property
    def stretched(self) -> int:
        """The axis whose cells differ; -1: there is none."""
        return next((k for k in range(self.dimension) if not self._even(k)), -1)

    @property
    def inverse(self) -> tuple[float, ...]:
        """One over the width of cells along each axis, ``n / (x_n - x_0)``; of the stretched one that of the mean."""
        return tuple(n / float(f[-1] - f[0]) for n, f in zip(self.counts, self.faces, strict=True))

    @property
    def volume(self) -> float:
        """Of the box."""
        return prod(float(f[-1] - f[0]) for f in self.faces)

    def widths(self, axis: int) -> Array:
        """Return the widths of cells along an axis, ``x_{i+1} - x_i``."""
        return np.diff(self.faces[axis])

    def centres(self, axis: int) -> Array:
        """Return the middles of cells along an axis, ``(x_i + x_{i+1}) / 2``."""
        return 0.5 * (self.faces[axis][1:] + self.faces[axis][:-1])

    def stored(self, axis: int, values: Array) -> Array:
        """Return values of cells along an axis for all stored places: those beyond the ends are as their neighbours."""
        return values if self.periodic[axis] else np.concatenate([values[:1], values, values[-1:]])

    def along(self, axis: int, values: Array) -> Array:
        """Return values along an axis as an array that broadcasts to stored places."""
        shape = [1] * self.dimension
        shape[self.dimension - 1 - axis] = -1
        return values.reshape(shape)

    def metric(self) -> Array:
        """Return one over widths, and over distances from the lower neighbour, along the stretched axis.

        Of shape ``(*full_shape, 2)``.
        """
        widths = self.stored(self.stretched, self.widths(self.stretched))
        below = np.concatenate([widths[:1], widths[:-1]])
        lines = np.stack([1.0 / widths, 2.0 / (widths + below)], axis=-1)
        lead = self.along(self.stretched, lines[:, 0])[..., None].shape[:-1]
        return np.ascontiguousarray(np.broadcast_to(lines.reshape(*lead, 2), (*self.full_shape, 2)))

    def volumes(self) -> Array:
        """Return the volume of each stored place, ``dx * dy * dz``, zero beyond the sides."""
        found = np.zeros(self.full_shape)
        cell = np.ones(self.shape)
        for k in range(self.dimension):
            cell = cell * self.along(k, self.widths(k))
        found[self.interior] = cell
        return found

    def inside(self) -> npt.NDArray[np.uint8]:
        """Return 1 where a face lies between two cells, else 0: ``(*full_shape, d)``."""
        d = self.dimension
        found = np.zeros((*self.full_shape, d), dtype=np.uint8)
        for a in range(d):
            cut = list(self.interior)
            if not self.periodic[a]:
                cut[d - 1 - a] = slice(2, self.counts[a] + 1)
            found[(*cut, a)] = 1
        return found

    def face_window(self, component: int) -> tuple[slice, ...]:
        """Return slices that cut all faces across an axis, those of its sides too, out of stored places."""
        cut = list(self.interior)
        if not self.periodic[component]:
            cut[self.dimension - 1 - component] = slice(1, self.counts[component] + 2)
        return tuple(cut)

    def places(self, component: int) -> list[Array]:
        """Return the coordinates of the faces of `face_window`, x first, arrays that broadcast."""
        lines = [self.centres(k) for k in range(self.dimension)]
        faces = self.faces[component]
        lines[component] = faces[:-1] if self.periodic[component] else faces
        return [self.along(k, line) for k, line in enumerate(lines)]

    def offsets(self) -> tuple[list[tuple[int, ...]], list[list[int]]]:
        """Return the stencil of the momentum, and its leg one up along ``b`` and one down along ``a`` for each pair.

        Leg 0 is the place itself, ``1 + 2 a`` and ``2 + 2 a`` are its neighbours along ``a``.
        """
        d = self.dimension
        unit = [tuple(int(d - 1 - k == axis) for axis in range(d)) for k in range(d)]
        legs: list[tuple[int, ...]] = [(0,) * d]
        for way in unit:
            legs += [way, tuple(-n for n in way)]
        pair = [[0] * d for _ in range(d)]
        for a in range(d):
            for b in range(d):
                if a != b:
                    pair[a][b] = len(legs)
                    legs.append(tuple(up - down for up, down in zip(unit[b], unit[a], strict=True)))
        return legs, pair


def sides_of(grid: StaggeredGrid) -> Sequence[Side]:
    """Return the sides of a box that are not joined."""
    return [Side(k, upper) for k in range(grid.dimension) if not grid.periodic[k] for upper in (False, True)]
