"""Segments and triangles, each in its own frame, and the distance from points to them.

A frame turns and shifts, it does not scale: a point has a coordinate along the longest side ``u``, one across it in the
plane ``t``, and one off the plane ``n``. The distance to the plane is then one product, with an error of one rounding
of the length of the side, however thin the triangle is; that of barycentric coordinates would grow with the aspect
ratio. Triangles without an area are segments or points here, not errors.

References
----------
C. Ericson: *Real-Time Collision Detection*, 2005, section 5.1 (closest points, region by region).
G. H. Golub, C. F. Van Loan: *Matrix Computations*, 4th edition, 2013, section 5.2.8 (orthogonalising twice).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.mesh import FloatArray, Ragged

__all__ = ["ROUNDING", "Simplices", "corners_of"]

Index = npt.NDArray[np.integer]

_THIN = 1e-15
"""Height of a triangle, as a part of its longest side, below which it is taken as a segment."""

ROUNDING = 64 * np.finfo(np.float64).eps
"""More than the error of a distance, as a part of the distance and the longest side."""


@dataclass(frozen=True, eq=False)
class Simplices:
    """Segments in two dimensions or triangles in three; ``d`` of each, ``n`` of them.

    Attributes
    ----------
    corners : (n, d, d)
        Each in ascending order of the coordinates, so that no result depends on how a mesh lists them.
    origin : (d, n)
        First end of the longest side.
    axes : (d, d, n)
        Unit vectors ``u``, in three dimensions ``t``, and ``n``.
    length : (n,)
        Of the longest side: from 0 to ``(length, 0)`` in the plane.
    apex : (2, n)
        Third corner of a triangle in the plane, ``0 <= apex[0] <= length``, ``apex[1] >= 0``; 0 for a segment.
    """

    corners: FloatArray
    origin: FloatArray
    axes: FloatArray
    length: FloatArray
    apex: FloatArray

    @classmethod
    def of(cls, corners: FloatArray) -> Simplices:
        """Return the frames of simplices with corners ``(n, d, d)`` in any order."""
        corners = _sorted(corners)
        if corners.shape[2] == 2:
            u, length = _unit(corners[:, 1] - corners[:, 0])
            axes = np.stack([u.T, np.stack([-u[:, 1], u[:, 0]])])
            return cls(corners, _columns(corners[:, 0]), axes, length, np.zeros((2, len(corners))))
        start, end, third = _longest_first(corners)
        u, length = _unit(end - start)
        t = _across(u, third - start, length)
        apex = np.stack([_dot(third - start, u), np.maximum(_dot(third - start, t), 0.0)])
        axes = np.stack([u.T, t.T, np.cross(u, t).T])
        return cls(corners, _columns(start), axes, length, apex)

    def __len__(self) -> int:
        return self.length.size

    def squared_distance(self, points: FloatArray, numbers: Index) -> FloatArray:
        """Return the squared distance from points ``(d, m)`` to one simplex each, ``(m,)``."""
        away = [component - start[numbers] for component, start in zip(points, self.origin, strict=True)]
        local = [_along(away, axis, numbers) for axis in self.axes]
        length = self.length[numbers]
        beside = local[0] - np.minimum(np.maximum(local[0], 0.0), length)
        if len(local) == 2:
            return beside * beside + local[1] * local[1]
        across, off = local[1], local[2]
        flat = self._in_plane(local[0], across, length, beside * beside + across * across, numbers)
        return flat + off * off

    def _in_plane(
        self, x: FloatArray, y: FloatArray, length: FloatArray, first: FloatArray, numbers: Index
    ) -> FloatArray:
        """Return squared distances in the plane, given those to the longest side: 0 inside a triangle."""
        across, up = self.apex[0][numbers], self.apex[1][numbers]
        back, over = x - length, across - length
        inside = (y > 0.0) & (x * up > y * across) & (y * over > back * up)
        outside = np.minimum(_to_side(x, y, across, up), _to_side(back, y, over, up))
        return np.where(inside, 0.0, np.minimum(first, outside))


def corners_of(faces: Ragged, nodes: FloatArray) -> FloatArray:
    """Return the corners of the simplices of faces, ``(n, d, d)``.

    Lines and triangles are themselves; a face with four nodes or more is the triangles about their mean, as it is for
    `fluxloom.mesh.geometry.metrics`.

    Parameters
    ----------
    faces
        Face to nodes; two nodes in two dimensions, three or more in three.
    nodes : (m, d)
        Coordinates.
    """
    found = []
    for _, table in faces.by_width():
        around, width = nodes[table], table.shape[1]
        if width == nodes.shape[1]:
            found.append(around)
            continue
        ordered = _sorted(around)
        total = (ordered[:, 0] + ordered[:, 1]) + (ordered[:, 2] + ordered[:, 3])
        for k in range(4, width):
            total += ordered[:, k]
        middle = total / width
        found += [np.stack([middle, around[:, k], around[:, (k + 1) % width]], axis=1) for k in range(width)]
    return np.concatenate(found)


def _along(away: Sequence[FloatArray], axis: FloatArray, numbers: Index) -> FloatArray:
    """Return the components of vectors, ``d`` times ``(m,)``, along an axis of one simplex each, ``(m,)``."""
    total = away[0] * axis[0][numbers]
    for component, part in zip(away[1:], axis[1:], strict=True):
        total += component * part[numbers]
    return total


def _to_side(x: FloatArray, y: FloatArray, right: FloatArray, up: FloatArray) -> FloatArray:
    """Return the squared distance in the plane from ``(x, y)`` to the side from 0 to ``(right, up)``."""
    square = right * right + up * up
    share = (x * right + y * up) / np.where(square > 0.0, square, 1.0)
    share = np.minimum(np.maximum(share, 0.0), 1.0)
    right, up = x - share * right, y - share * up
    return right * right + up * up


def _sorted(corners: FloatArray) -> FloatArray:
    """Return corners ``(n, k, d)``, those of each simplex in ascending order of their coordinates."""
    order = np.lexsort([corners[..., axis] for axis in reversed(range(corners.shape[2]))], axis=1)
    return np.take_along_axis(corners, order[..., None], axis=1)


def _longest_first(corners: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ends of the longest side and the third corner of triangles, ``(n, d)`` each."""
    sides = np.stack([corners[:, (k + 1) % 3] - corners[:, k] for k in range(3)], axis=1)
    start = np.argmax(_dot(sides, sides), axis=1)
    rows = np.arange(len(corners))
    return tuple(corners[rows, (start + k) % 3] for k in range(3))  # type: ignore[return-value]


def _across(u: FloatArray, arm: FloatArray, length: FloatArray) -> FloatArray:
    """Return unit vectors at right angles to ``u`` in the plane of ``u`` and ``arm``; any where there is no plane."""
    t, height = _unit(arm - _dot(arm, u)[:, None] * u)
    if (thin := np.flatnonzero(height <= _THIN * length)).size:
        t[thin] = 0.0
        t[thin, np.argmin(np.abs(u[thin]), axis=1)] = 1.0
    return _unit(t - _dot(t, u)[:, None] * u)[0]


def _unit(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return vectors ``(n, d)`` divided by their lengths, and these; the first axis for a vector without length."""
    length = np.sqrt(_dot(vectors, vectors))
    unit = vectors / np.where(length > 0.0, length, 1.0)[:, None]
    unit[length == 0.0, 0] = 1.0
    return unit, length


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the sums over the last axis of products, in the order of the components."""
    total = a[..., 0] * b[..., 0]
    for k in range(1, a.shape[-1]):
        total = total + a[..., k] * b[..., k]
    return total


def _columns(rows: FloatArray) -> FloatArray:
    """Return rows ``(n, d)`` as ``(d, n)``, components contiguous."""
    return np.ascontiguousarray(rows.T)
