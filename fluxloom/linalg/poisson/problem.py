"""A discrete Poisson problem on a box: its directions, boundary data and shift, its matrix, and its modes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from fluxloom.core.errors import SolverError
from fluxloom.linalg.poisson.boundary import Side, each_axis, read_conditions
from fluxloom.linalg.poisson.directions import Direction, read_direction

__all__ = ["Load", "Problem", "read_problem"]

_Array = npt.NDArray[np.float64]

_MOST_AXES = 3


@dataclass(frozen=True, eq=False)
class Load:
    """Boundary data of a side: ``factor`` times the data are taken from the values beside it.

    Attributes
    ----------
    axis, end
        The side: low (0) or high (-1) end of an axis.
    data
        A number, or values over the side.
    factor
        See `Direction.load`.
    """

    axis: int
    end: int
    data: _Array
    factor: float


@dataclass(frozen=True, eq=False)
class Problem:
    """``(L + shift) u = f`` with ``L`` the sum of the second differences of all directions.

    Attributes
    ----------
    directions
        One for each axis.
    sides
        Conditions at the low and the high end of each axis.
    shift
        Is added to the diagonal.
    """

    directions: tuple[Direction, ...]
    sides: tuple[tuple[Side, Side], ...]
    shift: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Unknowns along each axis."""
        return tuple(direction.n for direction in self.directions)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return prod(self.shape)

    @property
    def singular(self) -> bool:
        """Whether the solution is determined up to a constant only."""
        return self.shift == 0 and all(direction.constant for direction in self.directions)

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """Boundary data that are not zero."""
        return tuple(
            Load(axis, end, side.data, self.directions[axis].load(end))
            for axis, pair in enumerate(self.sides)
            for end, side in zip((0, -1), pair, strict=True)
            if side.data is not None
        )

    def boundary(self) -> _Array:
        """Return what the boundary data add to ``L u``, of the shape of the unknowns."""
        found = np.zeros(self.shape)
        for load in self.loads:
            np.moveaxis(found, load.axis, 0)[load.end] += load.factor * load.data
        return found

    def volumes(self) -> _Array:
        """Return the volumes of cells or of what surrounds nodes, of the shape of the unknowns."""
        return reduce(np.multiply.outer, (direction.weights for direction in self.directions))

    def matrix(self) -> scipy.sparse.csr_array[Any]:
        """Return ``L + shift`` as a sparse matrix, unknowns in C order."""
        found = scipy.sparse.csr_array((self.size, self.size))
        for axis, direction in enumerate(self.directions):
            before, after = prod(self.shape[:axis]), prod(self.shape[axis + 1 :])
            inner = scipy.sparse.kron(direction.matrix(), scipy.sparse.eye_array(after))
            found = found + scipy.sparse.csr_array(scipy.sparse.kron(scipy.sparse.eye_array(before), inner))
        return scipy.sparse.csr_array(found + self.shift * scipy.sparse.eye_array(self.size))

    def check_shift(self, epsilon: float) -> None:
        """Raise `SolverError` when the shift is an eigenvalue of ``-L`` but for rounding; all of them are positive."""
        if self.shift <= 0:
            return
        spectra = [direction.spectrum for direction in self.directions]
        order = np.argsort(spectra[-1])
        last = spectra[-1][order]
        others = reduce(np.add.outer, spectra[:-1], np.array(self.shift))
        place = np.clip(np.searchsorted(last, -others), 1, max(1, last.size - 1))
        size = self.shift + sum(float(np.abs(one).max()) for one in spectra)
        for near in (place - 1, np.minimum(place, last.size - 1)):
            rest = np.abs(others + last[near])
            if rest.min() <= 4 * epsilon * size:
                at = np.unravel_index(int(np.argmin(rest)), others.shape)
                mode = (*(int(k) for k in at), int(order[near[at]]))
                raise SolverError(
                    f"poisson: shift {self.shift!r} is an eigenvalue of -L, that of mode {mode} "
                    f"(one number an axis, as the transforms count): the problem has no unique solution; change it by "
                    f"more than {4 * epsilon * size:.2g}"
                )


def read_problem(shape: Any, spacing: Any, bc: Any, centring: Any, shift: Any) -> Problem:
    """Return the problem that a user describes; see `Plan` for the parameters.

    Raises
    ------
    SolverError
        That says which axis is wrong, and how.
    """
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in sizes)
    if not 1 <= len(sizes) <= _MOST_AXES or not whole:
        raise SolverError(f"poisson: shape is one to three positive whole numbers, not {shape!r}")
    sizes = tuple(int(n) for n in sizes)
    if not isinstance(shift, int | float | np.number) or isinstance(shift, bool) or not isfinite(shift):
        raise SolverError(f"poisson: shift is a finite number, not {shift!r}")
    sides = read_conditions(bc, sizes)
    centrings = each_axis(centring, len(sizes), "centring", (str,))
    spacings = _spacings(spacing, len(sizes))
    directions = tuple(
        read_direction(axis, n, spacings[axis], (sides[axis][0].kind, sides[axis][1].kind), centrings[axis])
        for axis, n in enumerate(sizes)
    )
    return Problem(directions, tuple(sides), float(shift))


def _spacings(spacing: Any, dimensions: int) -> list[Any]:
    """Return the spacing of each axis; in one dimension coordinates need not be in a list of one entry."""
    if dimensions == 1 and len(np.shape(spacing)) == 1 and np.size(spacing) > 1:
        return [spacing]
    return each_axis(spacing, dimensions, "spacing", (str,))
