r"""What loops over the sides of cells need: the faces, which way they point, and the weights of slopes.

Rows are those of *elements*, cells and behind them boundary elements, whose rows are empty. A face has numbers, so
that each is stored once, and an entry of a row only has which way the face points::

    faces : (faces, 3 d + 1)    unit normal, area, way from the centroid of the first and of the second element to it,
                                and where the mesh turns a last one, the speed of the face along its normal
    sign  : (entries,)          1: the normal leads out of the cell; -1: into it; 0: out of it, to a boundary element

Slopes are those of least squares, each difference weighted with the inverse square of its distance,

.. math:: \nabla q = \sum_j g_j (q_j - q), \quad g_j = G^{-1} \frac{v_j}{|v_j|^2}, \quad
          G = \sum_j \frac{v_j v_j^T}{|v_j|^2}

with the ways ``v_j`` to the elements across the sides: exact for linear fields on any mesh. Thin cells, as in boundary
layers, have other weights (`fluxloom.fv.thin_slopes`).

References
----------
D. J. Mavriplis: *Revisiting the least-squares procedure for gradient reconstruction on unstructured meshes*. AIAA
2003-3986.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.thin_slopes import Across, thin_inner_slopes, thin_slopes
from fluxloom.fv.volumes import ControlVolumes, Family, Sides

__all__ = ["CompressibleGeometry", "Rotation", "least_squares"]

Array = npt.NDArray[np.float64]

_FLAT = 1e-10
"""Eigenvalue over the largest one below which the neighbours of a cell lie in a plane: no slope along its normal."""
_POOR = 1e-6
"""Determinant over that of as large a multiple of one, below which a matrix is inverted by its eigenvectors."""
_CHUNK = 1 << 12


@dataclass(frozen=True)
class Rotation:
    """A mesh that turns about an axis, with everything that is fixed to it.

    Attributes
    ----------
    rate
        Angular velocity, rad/s: about ``z`` in two dimensions, about each axis, ``(3,)``, in three.
    centre
        A place on the axis; the origin by default.

    Raises
    ------
    SolverError
        If a number is not finite.
    """

    rate: float | Sequence[float]
    centre: Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.vector.shape != (3,) or not np.isfinite([*self.vector, *self.centre]).all():
            raise SolverError(
                f"rotation: one or three finite numbers are wanted, not {self.rate!r} about {self.centre!r}"
            )

    @property
    def vector(self) -> Array:
        """The angular velocity, ``(3,)``."""
        given = np.atleast_1d(np.asarray(self.rate, dtype=np.float64))
        return np.array([0.0, 0.0, given[0]]) if given.shape == (1,) else given

    def velocity(self, places: Array) -> Array:
        """Return ``omega x r`` at places ``(n, d)``: what walls that turn with the mesh have."""
        d = places.shape[1]
        arm = np.zeros((len(places), 3))
        arm[:, :d] = places - np.asarray(self.centre, dtype=np.float64)[:d]
        return np.cross(self.vector, arm)[:, :d]


@dataclass(frozen=True, eq=False)
class CompressibleGeometry:
    """See the module.

    Attributes
    ----------
    faces : (faces, 3 d + 1)
        Unit normal, area, and the ways to the face from both sides.
    signs
        Rows of cells: the elements across, and which way the face points.
    sides
        The same rows with the faces.
    weights
        The same rows with the weights of slopes ``(entries, d)``.
    inner
        Rows of the cells at boundaries: the cells across, images beyond planes of symmetry among them, and weights of
        slopes without what is at the boundary.
    volume : (elements,)
        Of the cells, 0 for boundary elements.
    swept : (elements,)
        Of a mesh that turns the sum of the faces' areas times their speeds: 0 to round-off where faces are planar.
    mirrored : (entries,)
        Which entries are of images beyond planes of symmetry (`fluxloom.fv.symmetry_planes`).
    """

    faces: Array
    signs: Family
    sides: Family
    weights: Array
    inner: Family
    volume: Array
    swept: Array | None = None
    mirrored: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        volumes: ControlVolumes,
        rotation: Rotation | None = None,
        mirrors: npt.NDArray[np.integer[Any]] | None = None,
        axis: Array | None = None,
    ) -> CompressibleGeometry:
        """Return what loops over the sides of some control volumes need.

        Parameters
        ----------
        volumes
            Control volumes.
        rotation
            They turn.
        mirrors
            Boundary elements in planes of symmetry.
        axis
            Along which the mesh is a plane one, extruded; see `fluxloom.fv.symmetry_planes.extruded_along`.
        """
        sides = Sides.of(volumes)
        sign = np.where(sides.outside, 0.0, sides.sign)
        d, ways = volumes.dimension, volumes.ways
        faces = np.empty((len(volumes.faces), 3 * d + 1 + (rotation is not None)))
        np.divide(volumes.areas, volumes.area[:, None], out=faces[:, :d])
        faces[:, d], faces[:, d + 1 : 2 * d + 1] = volumes.area, volumes.arms
        np.subtract(volumes.arms, ways, out=faces[:, 2 * d + 1 : 3 * d + 1])
        faces[volumes.outer - volumes.cells + volumes.interior, 2 * d + 1 : 3 * d + 1] = 0.0
        swept = None
        if rotation is not None:
            middles = volumes.centres[volumes.faces[:, 0]] + volumes.arms
            pace = faces[:, -1] = np.einsum("ij,ij->i", rotation.velocity(middles), volumes.normals)
            swept = np.zeros(volumes.elements)
            swept[: sides.cells] = sides.sum(sides.sign * (pace * volumes.area)[sides.face])
        volume = np.zeros(volumes.elements)
        volume[: volumes.cells] = volumes.volumes
        signs = Family(sides.offsets, sides.other, sign)
        across_faces = Family(sides.offsets, sides.face, sign)
        mirrored = None
        if mirrors is not None and mirrors.size:
            face, mirrored = mirrors - volumes.cells + volumes.interior, np.isin(sides.other, mirrors)
            ways[face] = 2.0 * np.einsum("ij,ij,ik->ik", volumes.arms[face], faces[face, :d], faces[face, :d])
            sides = replace(sides, outside=sides.outside & ~mirrored)
        across = Across(volumes, sides, ways, axis)
        weights = thin_slopes(across, _slope_weights(ways, sides))
        return cls(faces, signs, across_faces, weights, _inner_weights(across), volume, swept, mirrored)

    def ways(self) -> Array:
        """Return the ways from the cells to their faces, entry by entry ``(entries, d)``; 0 to those of a boundary."""
        d, sign = self.weights.shape[1], self.signs.values
        out = np.zeros_like(self.weights)
        own = sign > 0.0 if self.mirrored is None else (sign > 0.0) | self.mirrored
        for chosen, first in ((own, d + 1), (sign < 0.0, 2 * d + 1)):
            out[chosen] = self.faces[self.sides.columns[chosen], first : first + d]
        return out


def _slope_weights(ways: Array, sides: Sides) -> Array:
    """Return the weights of least squares, ``(entries, d)``, some cells at a time."""
    out = np.empty((sides.face.size, ways.shape[1]))
    for first in range(0, sides.cells, _CHUNK):
        last = min(first + _CHUNK, sides.cells)
        span = slice(int(sides.offsets[first]), int(sides.offsets[last]))
        way = ways[sides.face[span]] * sides.sign[span, None]
        out[span] = least_squares(way, sides.cell[span] - first, last - first)
    return out


def _inner_weights(across: Across) -> Family:
    """Return the rows of the cells at boundaries, without what is at the boundary.

    They are empty for cells with no more inner neighbours than dimensions, such as triangles at a wall: slopes through
    all values, continued to the wall, would make noise grow without end. Of a plane mesh that is extruded, neighbours
    and dimensions are those of the plane one.
    """
    sides, ways, d = across.sides, across.ways, across.volumes.dimension
    chosen, counted = np.zeros(sides.cells, dtype=bool), ~sides.outside
    chosen[sides.cell[sides.outside]] = True
    if across.axis is not None:
        counted, d = counted & across.plane, 2
    chosen &= np.bincount(sides.cell[counted], minlength=sides.cells) > d
    kept = np.flatnonzero(chosen[sides.cell] & ~sides.outside)
    lengths = np.bincount(sides.cell[kept], minlength=sides.cells)
    number = np.cumsum(chosen) - 1
    way = ways[sides.face[kept]] * sides.sign[kept, None]
    weights = least_squares(way, number[sides.cell[kept]], int(chosen.sum()))
    weights = thin_inner_slopes(across, kept, weights)
    return Family(np.concatenate([[0], np.cumsum(lengths)]), sides.other[kept], weights)


def least_squares(way: Array, cell: npt.NDArray[np.integer[Any]], cells: int) -> Array:
    """Return the weights of least squares of the ways to the neighbours of cells with numbers below ``cells``."""
    d, cell = way.shape[1], cell.astype(np.intp)
    columns = np.ascontiguousarray(way.T)
    near = columns / sum(column * column for column in columns)
    moment = np.empty((d, d, cells))
    for i in range(d):
        for j in range(i, d):
            moment[i, j] = moment[j, i] = np.bincount(cell, columns[i] * near[j], minlength=cells)
    inverse, out = _inverse(moment), np.empty_like(way)
    for i in range(d):
        out[:, i] = sum(inverse[i, j][cell] * near[j] for j in range(d))
    return out


def _inverse(moment: Array) -> Array:
    """Return the inverses of symmetric matrices ``(d, d, n)``, along directions without neighbours zero."""
    d = len(moment)
    inverse = np.empty_like(moment)
    for i, j in combinations_with_replacement(range(d), 2):
        inverse[i, j] = inverse[j, i] = _cofactor(moment, i, j)
    determinant = np.asarray(sum(moment[0, j] * inverse[0, j] for j in range(d)))
    size = np.trace(moment) / d
    poor = np.flatnonzero(~(determinant > _POOR * size**d))
    determinant[poor] = 1.0
    inverse /= determinant
    if poor.size:
        values, vectors = np.linalg.eigh(moment[..., poor].transpose(2, 0, 1))
        kept = values > _FLAT * values[:, -1:]
        values = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
        inverse[..., poor] = np.einsum("nik,nk,njk->ijn", vectors, values, vectors)
    return inverse


def _cofactor(matrix: Array, i: int, j: int) -> Array:
    """Return the cofactors of matrices ``(2, 2, n)`` or ``(3, 3, n)``."""
    if len(matrix) == 2:
        return matrix[1 - i, 1 - j] * (1.0 if i == j else -1.0)
    (a, b), (c, e) = (((k + 1) % 3, (k + 2) % 3) for k in (i, j))
    return matrix[a, c] * matrix[b, e] - matrix[a, e] * matrix[b, c]
