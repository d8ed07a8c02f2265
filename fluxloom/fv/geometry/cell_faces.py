r"""What loops over the sides of cells need: the faces, which way they point, and the weights of slopes.

Rows are those of *elements*, cells and behind them boundary elements, whose rows are empty. A face has numbers, so
that each is stored once, and an entry of a row only has which way the face points::

    faces : (faces, 3 d + 1)    unit normal, area, way from the centroid of the first and of the second element to it,
                                and where the mesh turns a last one, the speed of the face along its normal
    sign  : (entries,)          1: the normal leads out of the cell; -1: into it; 0: out of it, to a boundary element

Slopes are those of least squares, each difference weighted with the inverse square of its distance,

.. math:: \nabla q = \sum_j g_j (q_j - q), \quad g_j = G^{-1} \frac{v_j}{|v_j|^2}, \quad
          G = \sum_j \frac{v_j v_j^T}{|v_j|^2}

with the ways ``v_j`` to the elements across the sides: exact for linear fields on any mesh.

Thin cells, as in boundary layers, have slopes by Green and Gauss with values between the cells across faces.
Least squares fail there. The lines that lead away from a wall are never quite straight, and in a cell a thousand times
longer than high the ways ``v`` to the cells above and below differ in direction by far more than the cell's own angles.
A mode that alternates from layer to layer then looks like a slope *along* the layers, of its size over the height of
the cell; continued over the length of the cell it is the mode a hundred times over, and uniform flow with noise of 1e-6
ends within ten steps. A correction of Green's and Gauss's slopes so that they are exact for linear fields has the same
fault on curved walls: a field that is constant along curved layers gets a slope along them. The plain sum

.. math:: \nabla q = \sum_j g_j (q_j - q), \quad g_j = \frac{A_j}{V} \frac{a_j \cdot n_j}{v_j \cdot n_j} n_j

with the ways ``a_j`` to the faces is free of both. It is exact for linear fields where the line between two cells meets
the middle of their face, and off by the sine of the layers' changes of direction elsewhere.

Where a cell is continued to the boundary, slopes know no values there: these are the continued ones themselves,

.. math:: \Big(V I - \sum_b A_b n_b a_b^T\Big) \nabla q = V \sum_{j \ne b} g_j (q_j - q).

A cell is thin by the longest of its ways to faces over the shortest. Simplices and pyramids are left out (but for flat
pyramids with the base at a narrow side, which pass for prisms): in layers of them the lines between cells miss the
middles of faces by as much as cells are long. So do the lines between the prisms of a layer. Their slopes are those of
least squares in the plane of the layer, with the ways to the three cells at their sides as far as they lie in it, and
across it those of Green and Gauss of what is left. That is exact for linear fields wherever layers are plane, in prisms
that are thin along any direction.

References
----------
D. J. Mavriplis: *Revisiting the least-squares procedure for gradient reconstruction on unstructured meshes*. AIAA
2003-3986.
E. Shima, K. Kitamura, T. Haga: *Green-Gauss/weighted-least-squares hybrid gradient reconstruction for arbitrary
polyhedra unstructured grids*. AIAA J. 51, 2013 (least squares for thick cells, Green and Gauss for thin ones).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.volumes import ControlVolumes, Family, Sides

__all__ = ["Across", "CompressibleGeometry", "Rotation", "least_squares", "thin_gradients", "thin_inner_gradients"]

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
        Which entries are of images beyond planes of symmetry (`fluxloom.fv.geometry.symmetry_planes`).
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
        """Return what loops over the sides of some control volumes need; faces that turn have ``n . (omega x x)``.

        Parameters
        ----------
        volumes
            Control volumes.
        rotation
            They turn.
        mirrors
            Boundary elements in planes of symmetry.
        axis
            Along which the mesh is a plane one, extruded; see `fluxloom.fv.geometry.symmetry_planes.extruded_along`.
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
        weights = thin_gradients(across, _gradient_weights(ways, sides))
        return cls(faces, signs, across_faces, weights, _inner_weights(across), volume, swept, mirrored)

    def ways(self) -> Array:
        """Return the ways from the cells to their faces, entry by entry ``(entries, d)``; 0 to those of a boundary."""
        d, sign = self.weights.shape[1], self.signs.values
        out = np.zeros_like(self.weights)
        own = sign > 0.0 if self.mirrored is None else (sign > 0.0) | self.mirrored
        for chosen, first in ((own, d + 1), (sign < 0.0, 2 * d + 1)):
            out[chosen] = self.faces[self.sides.columns[chosen], first : first + d]
        return out


def _gradient_weights(ways: Array, sides: Sides) -> Array:
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
    weights = thin_inner_gradients(across, kept, weights)
    return Family(np.concatenate([[0], np.cumsum(lengths)]), sides.other[kept], weights)


def least_squares(way: Array, cell: npt.NDArray[np.integer[Any]], cells: int) -> Array:
    """Return the weights ``g_j = M^{-1} d_j / |d_j|^2`` of least squares, ``M = sum_j d_j d_j^T / |d_j|^2``.

    ``d_j`` are the ways to the neighbours of cells with numbers below ``cells``: the gradient is
    ``sum_j g_j (q_j - q)``.
    """
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


Index = npt.NDArray[np.integer[Any]]

_THICK, _THIN = 5.0, 10.0
"""Longest over shortest way to a face up to which slopes are those of least squares, and from which none are."""
_NO_NEIGHBOUR = 1e-6
"""Part of a matrix's largest value, below which there are no inner neighbours along a direction, and no slope."""
_OPPOSITE = 0.3
"""Sum of the area vectors of two faces over that of their sizes, up to which they are the triangles of a prism."""
_ALONG = 1e-6
"""Cosine of the angle between the axis of an extrusion and a face of the plane mesh, at most."""
_TINY = 1e-300
_LEAST, _MOST = 0.05, 1.0
"""Bounds of the place of a face between two cells, for cells so distorted that it is not between them."""


class _Prisms(NamedTuple):
    """Prisms: which cells, which sides are their triangles, the unit normal of their layer; cells that are pyramids."""

    cells: npt.NDArray[np.bool_]
    ends: npt.NDArray[np.bool_]
    normal: Array
    pyramids: Index


@dataclass(frozen=True, eq=False)
class Across:
    """The sides of control volumes, and what is across them.

    Attributes
    ----------
    volumes, sides
        Control volumes and their sides, those to images beyond planes of symmetry being no boundaries.
    ways : (faces, d)
        From the first to the second element of each face, or to the image.
    axis
        Along which the mesh is a plane one, extruded: whether cells are thin is asked in the plane then.
    """

    volumes: ControlVolumes
    sides: Sides
    ways: Array
    axis: Array | None = None

    @cached_property
    def plane(self) -> npt.NDArray[np.bool_]:
        """Which sides are those of the plane mesh."""
        if self.axis is None:
            return np.ones(self.sides.face.size, dtype=bool)
        return np.abs(self.volumes.normals @ self.axis)[self.sides.face] < _ALONG

    @cached_property
    def thinness(self) -> Array:
        """0 for thick cells, 1 for thin ones, between them ``(l_max / l_min - THICK) / (THIN - THICK)``, ``(cells,)``.

        ``l`` are the lengths of the cell-to-face vectors.

        It is 0 for simplices, see the module.
        """
        volumes, sides, chosen = self.volumes, self.sides, np.flatnonzero(self.plane)
        cell, face, out = sides.cell[chosen], sides.face[chosen], sides.sign[chosen] > 0.0
        way = volumes.arms[face]
        way[~out] -= self.ways[face[~out]]
        size = np.linalg.norm(way, axis=1)
        longest, shortest = np.zeros(sides.cells), np.full(sides.cells, np.inf)
        np.maximum.at(longest, cell, size)
        np.minimum.at(shortest, cell, size)
        found = np.clip((longest / shortest - _THICK) / (_THIN - _THICK), 0.0, 1.0)
        dimension = volumes.dimension - (self.axis is not None)
        found[np.bincount(cell, minlength=sides.cells) <= dimension + 1] = 0.0
        found[self.prisms.pyramids] = 0.0
        return found

    @cached_property
    def prisms(self) -> _Prisms:
        """Which cells are prisms, of those with five sides in space; the others are pyramids."""
        volumes, sides = self.volumes, self.sides
        ends, normal = np.zeros(sides.face.size, dtype=bool), np.zeros((sides.cells, volumes.dimension))
        five = np.flatnonzero(np.diff(sides.offsets) == 5) if volumes.dimension == 3 else np.empty(0, dtype=np.int64)
        rows = sides.offsets[five][:, None] + np.arange(5)
        area = volumes.areas[sides.face[rows]] * sides.sign[rows][..., None]
        size, first, second = np.linalg.norm(area, axis=2), *np.triu_indices(5, 1)
        apart = np.linalg.norm(area[:, first] + area[:, second], axis=2) / (size[:, first] + size[:, second])
        pair, cells = apart.argmin(axis=1), np.arange(five.size)
        top, bottom = first[pair], second[pair]
        whole = apart[cells, pair] < _OPPOSITE
        ends[rows[cells, top][whole]] = ends[rows[cells, bottom][whole]] = True
        way = area[cells, top] - area[cells, bottom]
        normal[five] = way / np.linalg.norm(way, axis=1)[:, None]
        is_prism = np.zeros(sides.cells, dtype=bool)
        is_prism[five[whole]] = True
        return _Prisms(is_prism, ends, normal, five[~whole])


def thin_gradients(across: Across, weights: Array) -> Array:
    """Return weights of slopes, those of thin cells by Green and Gauss; a new array where there are such cells.

    Parameters
    ----------
    across
        The sides.
    weights : (entries, d)
        Of all cells, by least squares.
    """
    share = across.thinness[across.sides.cell]
    thin = np.flatnonzero(share)
    return _mixed(weights, share, thin, _layered(across, thin, _green_gauss(across, thin))) if thin.size else weights


def thin_inner_gradients(across: Across, kept: Index, weights: Array) -> Array:
    """Return weights of slopes without what is at the boundary, those of thin cells by Green and Gauss.

    Parameters
    ----------
    across
        The sides.
    kept : (n,)
        Numbers of the sides that have a weight: the inner ones of cells at the boundary.
    weights : (n, d)
        By least squares.
    """
    sides = across.sides
    share = across.thinness[sides.cell[kept]]
    thin = np.flatnonzero(share)
    if not thin.size:
        return weights
    cells, number = np.unique(sides.cell[kept[thin]], return_inverse=True)
    inverse = np.linalg.pinv(np.eye(across.volumes.dimension) - _continued(across, cells), rcond=_NO_NEIGHBOUR)
    found = np.einsum("nij,nj->ni", inverse[number], _green_gauss(across, kept[thin]))
    return _mixed(weights, share, thin, _layered(across, kept[thin], found))


def _mixed(weights: Array, share: Array, thin: Index, found: Array) -> Array:
    """Return weights with a share of others for some entries."""
    out, part = weights.copy(), share[thin, None]
    out[thin] = (1.0 - part) * weights[thin] + part * found
    return out


def _green_gauss(across: Across, chosen: Index) -> Array:
    """Return the weights of some sides, ``(n, d)``."""
    volumes, sides = across.volumes, across.sides
    face, sign = sides.face[chosen], sides.sign[chosen, None]
    normals, ways, arms = volumes.normals[face], across.ways[face], volumes.arms[face]
    arms = np.where(sign > 0.0, arms, ways - arms)
    place = np.einsum("ij,ij->i", arms, normals) / np.einsum("ij,ij->i", ways, normals)
    place = np.clip(place, _LEAST, _MOST) * volumes.area[face] / volumes.volumes[sides.cell[chosen]]
    return sign * normals * place[:, None]


def _layered(across: Across, chosen: Index, found: Array) -> Array:
    """Return weights of some sides, those of prisms by least squares in their layer and Green and Gauss across it."""
    volumes, sides, prisms = across.volumes, across.sides, across.prisms
    rows = np.flatnonzero(prisms.cells[sides.cell[chosen]])
    if not rows.size:
        return found
    cells, cell = np.unique(sides.cell[chosen[rows]], return_inverse=True)
    face, sign, end = sides.face[chosen[rows]], sides.sign[chosen[rows], None], prisms.ends[chosen[rows], None]
    normal, d = prisms.normal[cells], volumes.dimension
    way = sign * across.ways[face]
    arm = np.where(sign > 0.0, volumes.arms[face], volumes.arms[face] - across.ways[face])
    up = np.einsum("ij,ij->i", way, normal[cell])
    flat = way - up[:, None] * normal[cell]
    near = np.where(end, 0.0, flat / np.einsum("ij,ij->i", flat, flat)[:, None].clip(_TINY))
    moment = np.zeros((cells.size, d, d))
    np.add.at(moment, cell, near[:, :, None] * flat[:, None, :])
    plane = np.einsum("nij,nj->ni", np.linalg.pinv(moment, rcond=_NO_NEIGHBOUR, hermitian=True)[cell], near)
    reach = np.where(end[:, 0], np.abs(np.einsum("ij,ij->i", arm, normal[cell])), 0.0)
    height = np.bincount(cell, reach)[cell]
    part = np.divide(reach, height * up, out=np.zeros(up.size), where=reach > 0.0)
    lean = np.zeros((cells.size, d))
    np.add.at(lean, cell, part[:, None] * way)
    out = found.copy()
    out[rows] = plane + (part - np.einsum("ij,ij->i", plane, lean[cell]))[:, None] * normal[cell]
    return out


def _continued(across: Across, cells: Index) -> Array:
    """Return the sums of ``A n a / V`` over the boundary faces of some cells, ``(cells, d, d)``."""
    volumes, sides = across.volumes, across.sides
    number = np.full(sides.cells, -1)
    number[cells] = np.arange(cells.size)
    edge = np.flatnonzero(sides.outside & (number[sides.cell] >= 0))
    face, cell = sides.face[edge], sides.cell[edge]
    parts = volumes.normals[face][:, :, None] * volumes.arms[face][:, None, :]
    parts *= (volumes.area[face] / volumes.volumes[cell])[:, None, None]
    found = np.zeros((cells.size, volumes.dimension, volumes.dimension))
    np.add.at(found, number[cell], parts)
    return found
