"""A discrete Poisson problem on a box: its directions, boundary data and shift, its matrix, and its modes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.poisson.boundary import Side, each_axis, read_conditions
from fluxloom.linalg.direct.poisson.directions import Direction, read_direction

__all__ = ["Load", "Problem", "read_problem"]

_Array = npt.NDArray[np.float64]

_MOST_AXES = 3

_DOUBLE = np.dtype(np.float64)

_EPSILON = float(np.finfo(_DOUBLE).eps)

_LOSS = {8: 1e-10, 4: 1e-5}
"""Relative error of the mean above which no systems are solved, for the bytes of a value."""

_LEAVE = "leave the shift 0: the mean is then removed"


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
    dtype
        Type in which it is solved.
    """

    directions: tuple[Direction, ...]
    sides: tuple[tuple[Side, Side], ...]
    shift: float
    dtype: np.dtype[Any] = _DOUBLE

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
        return self.shift == 0 and self.constant

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
        """Return what the boundary data add to ``L u``, ``factor g`` beside a side, of the shape of the unknowns."""
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

    @property
    def constant(self) -> bool:
        """Whether ``L`` annuls constants."""
        return all(direction.constant for direction in self.directions)

    def why_not_line(self, line: int) -> str:
        """Return why the mean of the solution is lost where systems are solved along an axis, or an empty string.

        Elimination finds the smallest eigenvalue, which is the shift, as what is left of the largest ones of the line,
        to the rounding of these; a division by eigenvalues has it as it is.
        """
        if not self.constant or not self.shift or self.directions[line].n == 1:
            return ""
        epsilon = float(np.finfo(self.dtype).eps)
        loss = epsilon * 2 * float(np.abs(self.directions[line].rows[1]).max()) / abs(self.shift)
        if loss <= _LOSS[self.dtype.itemsize]:
            return ""
        return (
            f"systems along axis {line} would find the mean of the solution to {loss:.1g} of it in {self.dtype} only, "
            f"for shift {self.shift!r} is small beside their eigenvalues: give line=None"
        )

    def check_shift(self, epsilon: float) -> None:
        """Raise `SolverError` when the shift is an eigenvalue of ``-L`` but for rounding; none of them is negative.

        A negative shift is refused where it is zero but for the rounding of double precision, in which it is given.
        """
        if self.shift <= 0:
            size = sum(2 * float(np.abs(direction.rows[1]).max()) for direction in self.directions)
            if self.constant and 0 < -self.shift <= 4 * _EPSILON * size:
                raise SolverError(f"poisson: shift {self.shift!r} is the rounding of zero: {_LEAVE}")
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
                if self.constant and self.shift <= 4 * epsilon * size:
                    raise SolverError(
                        f"poisson: shift {self.shift!r} is the rounding of zero, which is an eigenvalue of -L, that of "
                        f"mode {mode}: {_LEAVE}, or give one of more than {4 * epsilon * size:.2g}"
                    )
                raise SolverError(
                    f"poisson: shift {self.shift!r} is an eigenvalue of -L, that of mode {mode} "
                    f"(one number an axis, as the transforms count): the problem has no unique solution; change it by "
                    f"more than {4 * epsilon * size:.2g}"
                )


def read_problem(
    shape: Any, spacing: Any, bc: Any, centring: Any, shift: Any, dtype: npt.DTypeLike = np.float64
) -> Problem:
    """Return the problem that a user describes, solved in a floating type; see `Plan` for the parameters.

    Raises
    ------
    SolverError
        That says which axis is wrong, and how.
    """
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
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
    kind = np.dtype(dtype)
    for axis, direction in enumerate(directions):
        direction.check_range(axis, kind)
    return Problem(directions, tuple(sides), float(shift), kind)


def _spacings(spacing: Any, dimensions: int) -> list[Any]:
    """Return the spacing of each axis; in one dimension coordinates need not be in a list of one entry."""
    if dimensions == 1 and len(np.shape(spacing)) == 1 and np.size(spacing) > 1:
        return [spacing]
    return each_axis(spacing, dimensions, "spacing", (str,))
