r"""One direction of a Poisson problem: the second difference with its boundary conditions, and what diagonalises it.

Unknowns :math:`u_i`, :math:`i = 0 \ldots n - 1`, with volumes :math:`w_i`, and distances :math:`d_i` from
:math:`u_{i-1}` to :math:`u_i` (at the ends: to the boundary value, infinite where the derivative is given):

.. math:: (T u)_i = \frac{1}{w_i} \left( \frac{u_{i+1} - u_i}{d_{i+1}} - \frac{u_i - u_{i-1}}{d_i} \right)

which is of second order on smooth grids, and symmetric in the inner product with weights :math:`w_i`. A boundary
value ``g`` is :math:`u_{-1}` or :math:`u_n`; an outward derivative ``g`` adds :math:`g / w_i` to the first or last row.

For equal spacing ``h`` the eigenvectors are sines and cosines, the eigenvalues

.. math:: \lambda = -\frac{4}{h^2} \sin^2 \frac{\theta}{2}

with the angles of `_ANGLES`.

References
----------
P. N. Swarztrauber: *The methods of cyclic reduction, Fourier analysis and the FACR algorithm for the discrete solution
of Poisson's equation on a rectangle*, SIAM Review 19 (1977), sections 2 and 3. U. Schumann, R. A. Sweet: *Fast Fourier
transforms for direct solution of Poisson's equation with staggered boundary conditions*, J. Comput. Phys. 75 (1988),
table 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.linalg.direct.poisson.bases import Basis, eigenvalues_of

__all__ = ["Direction", "read_direction"]

_Array = npt.NDArray[np.float64]

_KINDS = {
    ("cell", "neumann", "neumann"): "dct2",
    ("cell", "dirichlet", "dirichlet"): "dst2",
    ("cell", "neumann", "dirichlet"): "dct4",
    ("cell", "dirichlet", "neumann"): "dst4",
    ("node", "neumann", "neumann"): "dct1",
    ("node", "dirichlet", "dirichlet"): "dst1",
    ("node", "neumann", "dirichlet"): "dct3",
    ("node", "dirichlet", "neumann"): "dst3",
    ("cell", "periodic", "periodic"): "dft",
    ("node", "periodic", "periodic"): "dft",
}  # fmt: skip
"""The transform whose vectors are the eigenvectors: centring, low end, high end."""

_ANGLES: dict[str, Callable[[npt.NDArray[np.int64], int], _Array]] = {
    "dft": lambda k, n: 2 * np.pi * k / n,
    "dct1": lambda k, n: np.pi * k / (n - 1),
    "dct2": lambda k, n: np.pi * k / n,
    "dct3": lambda k, n: np.pi * (k + 0.5) / n,
    "dct4": lambda k, n: np.pi * (k + 0.5) / n,
    "dst1": lambda k, n: np.pi * (k + 1) / (n + 1),
    "dst2": lambda k, n: np.pi * (k + 1) / n,
    "dst3": lambda k, n: np.pi * (k + 0.5) / n,
    "dst4": lambda k, n: np.pi * (k + 0.5) / n,
}
"""Angle between neighbouring values of the mode ``k`` of ``n``, in the order of the transform's coefficients."""

_GAINS: dict[str, Callable[[int], float]] = {
    "dft": lambda n: n, "dct1": lambda n: 2 * (n - 1), "dct2": lambda n: 2 * n,
}  # fmt: skip
"""First coefficient of the transform of ones: of weighted sum over mean of any values."""


_ROOM = 1e4
"""Between squares of lengths and the ends of a type: for the sums and scales of the transforms."""


@dataclass(frozen=True, eq=False)
class Direction:
    """An axis of a Poisson problem.

    Attributes
    ----------
    n
        Unknowns.
    low, high
        ``"periodic"``, ``"dirichlet"`` or ``"neumann"`` at its ends.
    centring
        ``"cell"``: unknowns half way between faces, the boundary is a face; ``"node"``: the boundary is a node, which
        is an unknown where the derivative is given.
    intervals
        Distances between neighbouring faces or nodes, those of the boundary included.
    uniform
        Whether they are equal.
    """

    n: int
    low: str
    high: str
    centring: str
    intervals: _Array
    uniform: bool

    @property
    def periodic(self) -> bool:
        """Whether the last unknown is a neighbour of the first."""
        return self.low == "periodic"

    @property
    def constant(self) -> bool:
        """Whether the operator annuls constants."""
        return "dirichlet" not in (self.low, self.high)

    @cached_property
    def weights(self) -> _Array:
        """Volumes ``w_i``, ``(n,)``.

        Of the cells ``w_i = h_i``, or half the intervals beside a node, ``(h_{i-1} + h_i) / 2``.
        """
        s = self.intervals
        if self.centring == "cell":
            return s
        if self.periodic:
            return (np.roll(s, 1) + s) / 2
        left = s if self.low == "dirichlet" else np.concatenate(([0.0], s))
        right = s if self.high == "dirichlet" else np.concatenate((s, [0.0]))
        return (left[: self.n] + right[-self.n :]) / 2

    @cached_property
    def distances(self) -> _Array:
        """Distances ``d_i``, ``(n + 1,)``."""
        s = self.intervals
        if self.centring == "cell":
            ends = ((s[0] + s[-1]) / 2,) * 2 if self.periodic else (s[0] / 2, s[-1] / 2)
            found = np.concatenate(([ends[0]], (s[1:] + s[:-1]) / 2, [ends[1]]))
        elif self.periodic:
            found = np.concatenate((s[-1:], s))
        else:
            found = np.full(self.n + 1, np.inf)
            first = int(self.low == "neumann")
            found[first : first + s.size] = s
        found[0] = np.inf if self.low == "neumann" else found[0]
        found[-1] = np.inf if self.high == "neumann" else found[-1]
        return found

    @cached_property
    def rows(self) -> tuple[_Array, _Array, _Array]:
        """Coefficients of the unknown before, of the own, of the one after; ``a_0``, ``c_{n-1}`` only if periodic."""
        a, c = 1 / (self.weights * self.distances[:-1]), 1 / (self.weights * self.distances[1:])
        b = -(a + c)
        if not self.periodic:
            a[0] = c[-1] = 0.0
        return a, b, c

    def load(self, end: int) -> float:
        """Return what the data of the low (0) or high (-1) end are multiplied with in the row beside it.

        ``1 / w_i d_i`` of a given value, ``1 / w_i`` of a derivative.
        """
        kind = self.low if end == 0 else self.high
        return 1 / self.weights[end] / (self.distances[end] if kind == "dirichlet" else 1.0)

    def matrix(self) -> scipy.sparse.csr_array[Any]:
        """Return the operator ``T`` as a sparse matrix ``(n, n)``."""
        a, b, c = self.rows
        row = np.arange(self.n)
        columns = np.concatenate(((row - 1) % self.n, row, (row + 1) % self.n))
        entries = scipy.sparse.coo_array((np.concatenate((a, b, c)), (np.tile(row, 3), columns)), (self.n, self.n))
        return scipy.sparse.csr_array(entries)

    def check_range(self, axis: int, dtype: np.dtype[Any]) -> None:
        """Raise `SolverError` where squares of the spacing, or of the whole length, or their inverses overflow."""
        known = np.finfo(dtype)
        with np.errstate(over="ignore"):
            length = float(self.intervals.sum())
        least = float(self.intervals.min())
        shortest, longest = (_ROOM / float(known.max)) ** 0.5, (_ROOM * float(known.tiny)) ** -0.5
        if least < shortest or length > longest:
            raise SolverError(
                f"poisson: spacing of axis {axis}: intervals from {least:.3g} on, {length:.3g} in all; their squares "
                f"are beyond {dtype}, which takes lengths of {shortest:.1g} to {longest:.1g}: take another unit"
            )

    # ------------------------------------------------------------------------------------ eigenvectors
    @property
    def kind(self) -> str:
        """Transform that diagonalises the operator: a name of `fluxloom.linalg.direct.transforms`, or ``"matrix"``."""
        return _KINDS[self.centring, self.low, self.high] if self.uniform else "matrix"

    def eigenvalues(self, kind: str) -> _Array:
        """Return the eigenvalues ``-4 sin^2(theta / 2) / h^2``, ``(n,)``, in the order of a transform's coefficients.

        None is positive; those of stretched directions are found by `Basis`.
        """
        if kind == "matrix":
            return self.basis.eigenvalues
        angles = _ANGLES[kind](np.arange(self.n), self.n)
        return -4 / self.intervals[0] ** 2 * np.sin(angles / 2) ** 2

    @cached_property
    def basis(self) -> Basis:
        """Eigenvectors as dense matrices."""
        return Basis.of(*self.rows, self.weights, constant=self.constant)

    @property
    def spectrum(self) -> _Array:
        """All eigenvalues, ``(n,)``, in some order."""
        return self.eigenvalues(self.kind) if self.uniform else eigenvalues_of(*self.rows, self.weights)

    def gain(self, kind: str) -> float:
        """Return ``sum_i V^-1_0i``, the first coefficient of the transform of ones; the operator annuls constants."""
        return float(self.basis.forward[0].sum()) if kind == "matrix" else float(_GAINS[kind](self.n))


def read_direction(axis: int, n: int, spacing: Any, ends: tuple[str, str], centring: Any) -> Direction:
    """Return an axis of ``n`` unknowns.

    Parameters
    ----------
    spacing
        A distance, or the coordinates of all faces or nodes, those of the boundary included.
    ends
        Conditions at the low and the high end.

    Raises
    ------
    SolverError
        For an unknown centring, too few unknowns, or distances that are not positive or not as many as needed.
    """
    if centring not in ("cell", "node"):
        hint = did_you_mean(str(centring), ("cell", "node"))
        raise SolverError(f"poisson: centring of axis {axis} is 'cell' or 'node', not {centring!r}{hint}")
    count = n if centring == "cell" or "periodic" in ends else n - 1 + ends.count("dirichlet")
    if n < 1 or count < 1:
        raise SolverError(f"poisson: axis {axis} has {n} unknowns; with {ends[0]} and {ends[1]} ends, give more")
    intervals, uniform = _intervals(axis, spacing, count, "faces" if centring == "cell" else "nodes")
    return Direction(n, *ends, centring, intervals, uniform)


def _numbers(axis: int, spacing: Any) -> _Array:
    """Return a spacing as numbers; what only looks like them is refused."""
    if isinstance(spacing, np.ma.MaskedArray):
        raise SolverError(f"poisson: spacing of axis {axis} is a masked array: give coordinates without gaps")
    try:
        values = np.array(spacing)
    except (TypeError, ValueError):
        values = None
    if values is None or values.dtype.kind not in "iuf":
        raise SolverError(f"poisson: spacing of axis {axis} is a number or coordinates, not {spacing!r}")
    return values.astype(np.float64)


def _intervals(axis: int, spacing: Any, count: int, what: str) -> tuple[_Array, bool]:
    values = _numbers(axis, spacing)
    if values.ndim == 0:
        if not (np.isfinite(values) and values > 0):
            raise SolverError(f"poisson: spacing of axis {axis} is a positive length, not {float(values)}")
        try:
            return np.full(count, float(values)), True
        except MemoryError:
            raise SolverError(f"poisson: axis {axis} of {count} {what} is too long for the memory") from None
    if values.shape != (count + 1,):
        raise SolverError(
            f"poisson: spacing of axis {axis} has shape {values.shape}: give a number, or the coordinates of all "
            f"{count + 1} {what}, those of the boundary included"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.diff(values)
    if not (found > 0).all() or not np.isfinite(values).all():
        at = int(np.argmin(np.where(np.isfinite(found), found, -np.inf)))
        raise SolverError(
            f"poisson: spacing of axis {axis}: coordinates increase, but not from number {at} to {at + 1}"
        )
    if np.ptp(found) <= 4 * np.finfo(np.float64).eps * np.abs(values).max():
        return np.full(count, (values[-1] - values[0]) / count), True
    return found, False
