r"""Supports of markers, interpolation as a matrix, and how much force a marker spreads.

With the matrix ``W``, ``W_kx = delta(x - X_k)``, values at markers are ``U = W u`` and forces on cells
``f = W^T (eps F)``. The weights ``eps`` are such that a force which is the same at all markers, spread and interpolated
back, is that force again (A. Pinelli, I. Naqavi, U. Piomelli, J. Favier, J. Comput. Phys. 229 (2010) 9073, eq. 15):

.. math:: A\, \epsilon = 1, \qquad A = W W^T

On curved surfaces in space that system is nearly singular where markers are a cell apart, and some weights negative.
`balanced` finds positive ones that fulfil it within a per cent or so. Markers of a plane that are ``s`` apart have
``eps = s / C`` with the sum ``C`` of squares of the delta function, wherever they are among the cells; that form,
with the measure of a marker for ``s``, serves bodies that move.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed.markers.deltas import Delta

__all__ = [
    "Balanced", "MarkerWeights", "Pinelli", "Plane", "balanced", "epsilon", "interpolation", "plane_weights", "support",
    "support_places",
]  # fmt: skip

Numbers = npt.NDArray[np.int64]

_ROUNDS = 30
"""Rounds of balancing."""

_SHARP = 1e-6
"""Residual of the weights past which the matrix is singular to rounding."""


def support_places(box: Box, first: Numbers, points: int, names: Sequence[str] = ()) -> Numbers:
    """Return the numbers in the grid of the cells of supports.

    Parameters
    ----------
    first : (n, d)
        First cell along each axis, maybe beyond ends that are periodic.
    points
        Cells along each axis.
    names
        Of the body of each marker, for messages.

    Returns
    -------
    (n, points**d)
        The last axis of the grid runs fastest.

    Raises
    ------
    SolverError
        If a support leaves the box through a side that is not periodic.
    """
    for axis, (length, joined) in enumerate(zip(box.shape, box.periodic, strict=True)):
        beyond = (first[:, axis] < 0) | (first[:, axis] + points > length)
        if not joined and beyond.any():
            k = int(np.argmax(beyond))
            body = f"body {names[k]!r}" if len(names) else "a body"
            raise SolverError(
                f"{body}: the support of marker {k} leaves the box along axis {axis} (cells {first[k, axis]} ... "
                f"{first[k, axis] + points - 1} of 0 ... {length - 1}); keep bodies {points // 2 + 1} cells from sides"
            )
    offsets = np.stack(np.meshgrid(*[np.arange(points)] * box.dimensions, indexing="ij"), axis=-1)
    cells = first[:, None, :] + offsets.reshape(1, -1, box.dimensions)
    return box.place([cells[..., k] for k in range(box.dimensions)])


def support(box: Box, first: Numbers, points: int, margin: int = 0) -> Numbers:
    """Return the cells of all supports together, in ascending order, with a margin of cells around each.

    The margin is cut off at sides that are not periodic. All supports have the same shape, so that their union is the
    set of their first cells, widened along one axis after the other.
    """
    if not len(first):
        return np.zeros(0, dtype=np.int64)
    low, width = np.where(box.periodic, np.mod(first, box.shape), first) - margin, points + 2 * margin
    base = low.min(axis=0)
    extent = low.max(axis=0) - base + width
    found = np.unique(np.ravel_multi_index(tuple((low - base).T), tuple(extent)))
    for axis in range(box.dimensions):
        found = _widened(found, width, int(np.prod(extent[axis + 1 :])))
    cells = [values + base[k] for k, values in enumerate(np.unravel_index(found, tuple(extent)))]
    inside = np.ones(found.size, dtype=bool)
    for values, length, joined in zip(cells, box.shape, box.periodic, strict=True):
        if not joined:
            inside &= (values >= 0) & (values < length)
    return np.unique(box.place([values[inside] for values in cells]))


def _widened(numbers: Numbers, width: int, stride: int) -> Numbers:
    """Return all ``numbers + k stride`` with ``0 <= k < width``, in ascending order."""
    done = 1
    while done < width:
        more = min(done, width - done)
        both = np.concatenate([numbers, numbers + more * stride])
        both.sort(kind="stable")  # two runs in order
        numbers = both[np.concatenate([[True], both[1:] != both[:-1]])]
        done += more
    return numbers


def interpolation(box: Box, delta: Delta, positions: npt.ArrayLike, names: Sequence[str] = ()) -> csr_array:
    """Return the matrix ``W_kx = delta(x - X_k)``: a row a marker, a column a cell of the grid.

    A marker whose support wraps round onto itself counts a cell as often as it meets it.
    """
    first, weights = delta.weights(positions)
    places = support_places(box, first, delta.points, names)
    values = weights[:, 0]
    for axis in range(1, box.dimensions):
        values = (values[:, :, None] * weights[:, axis, None, :]).reshape(len(values), -1)
    offsets = np.arange(len(values) + 1) * values.shape[1]
    columns = int(np.prod(box.grid_shape))
    return csr_array((values.ravel(), places.ravel(), offsets), shape=(len(values), columns))


def epsilon(matrix: csr_array) -> npt.NDArray[np.float64]:
    """Return the weights ``eps`` of markers that do not move, ``W W^T eps = 1``, from the matrix of interpolation.

    Raises
    ------
    SolverError
        If there are none that are positive: markers are too near to each other.
    """
    products = (matrix @ matrix.T).tocsc()
    ones = np.ones(matrix.indptr.size - 1)
    try:
        found = splu(products).solve(ones)
    except RuntimeError:  # exactly singular
        found = np.full_like(ones, np.nan)
    residual = float(np.abs(products @ found - ones).max())
    if not residual < _SHARP or not (found > 0).all():
        raise SolverError(
            f"markers: no positive weights spread forces evenly (least {np.min(found):.2g}, residual {residual:.1g}): "
            "markers are too near to each other; keep them a cell apart or more, or take weights=Balanced()"
        )
    return found


def balanced(matrix: csr_array, start: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return positive weights with ``A eps`` near one: each round sets ``eps_k = eps_k / (A eps)_k``, ``A = W W^T``.

    Parameters
    ----------
    matrix
        Of the interpolation.
    start
        Positive, such as `plane_weights`.
    """
    products = (matrix @ matrix.T).tocsr()
    found = start
    for _ in range(_ROUNDS):
        found = found / (products @ found)
    return found


def plane_weights(delta: Delta, measures: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the weights ``eps = s / C`` of markers of a plane.

    Their measures ``s`` over the sum of squares of the delta.
    """
    return np.asarray(measures, dtype=np.float64) / delta.square


class MarkerWeights(Strategy, ABC, what="kind of marker weights", group="fluxloom.marker_weights"):
    """How the weights of markers that do not move are found."""

    @abstractmethod
    def __call__(self, matrix: csr_array, flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the weights, from the matrix of the interpolation and the weights of a plane."""


@dataclass(frozen=True)
class Pinelli(MarkerWeights, name="pinelli"):
    """Exactly those that spread forces evenly."""

    def __call__(self, matrix: csr_array, flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the solution of the system."""
        return epsilon(matrix)


@dataclass(frozen=True)
class Balanced(MarkerWeights, name="balanced"):
    """Positive ones that nearly do it."""

    def __call__(self, matrix: csr_array, flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return them, found from those of a plane."""
        return balanced(matrix, flat)


@dataclass(frozen=True)
class Plane(MarkerWeights, name="plane"):
    """Those of a plane."""

    def __call__(self, matrix: csr_array, flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return what is given."""
        return flat
