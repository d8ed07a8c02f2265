"""Closed surfaces of triangles from STL files, and their division into charts that can be meshed anew.

A chart is a connected part of the surface without sharp edges: either flat, or with normals within 60 degrees of one
axis and without holes, so that it can be laid out in the plane. Parts are cut along sharp edges, along the borders of
flat parts, and where normals turn from one axis to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray
from fluxloom.mesh.data.whole import coordinates
from fluxloom.mesh.io.stl import read_stl_corners
from fluxloom.mesh.quality.surface import linked_parts

__all__ = ["Surface", "charts_of", "read_stl"]

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SAME = 1e-7
"""Corners nearer to each other than this part of the extent are one."""

_FLAT = 1e-6
"""How far corners of a flat part may lie off its plane, as a part of the extent."""

_COPLANAR = 1e-3
"""Angle (radians) between neighbours in a flat part, at most."""

_PREFERENCE = (0.1, 0.05, 0.0)
"""Added to the components of normals, so that faces at 45 degrees to two axes do not waver between them."""

_SMOOTHINGS, _CUTS = 40, 12


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles in space.

    Attributes
    ----------
    path
        The file.
    points : (n, 3)
        Corners.
    triangles : (m, 3)
        Numbers of corners.
    """

    path: str
    points: FloatArray
    triangles: Index

    @property
    def extent(self) -> float:
        """Longest side of the box around it."""
        return float(np.ptp(self.points[self.triangles].reshape(-1, 3), axis=0).max())

    def vectors(self) -> FloatArray:
        """Return the area vectors, ``(m, 3)``."""
        a, b, c = self.points[self.triangles.T]
        return 0.5 * np.cross(b - a, c - a)

    def without(self, dropped: Mask) -> Surface:
        """Return the surface without some triangles, ``(m,)``."""
        return Surface(self.path, self.points, self.triangles[~dropped])

    def edges(self) -> tuple[Index, Index]:
        """Return the edges of the triangles one after the other, ``(3 m, 2)``, and the triangle of each."""
        t = self.triangles
        return np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]]), np.tile(np.arange(len(t)), 3)

    def check_closed(self) -> None:
        """Raise `MeshError` naming the file and a place, unless each edge joins two triangles that turn alike."""
        edges, owner = self.edges()
        ordered = np.sort(edges, axis=1)
        _, where, inverse, count = np.unique(
            ordered, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        turns = np.bincount(inverse.reshape(-1), np.where(edges[:, 0] < edges[:, 1], 1.0, -1.0))
        for wrong, problem, remedy in (
            (count == 1, "belong to one triangle only: the surface has holes", "close them"),
            (count > 2, "belong to more than two triangles", "remove what is there twice or inside"),
            (turns != 0.0, "join triangles that turn differently", "let all normals point outwards"),
        ):
            if wrong.any():
                at = where[wrong][0]
                first, last = (coordinates(self.points[node]) for node in edges[at])
                raise MeshError(
                    f"{self.path}: {np.count_nonzero(wrong)} edges {problem}; one is that from {first} to {last} of "
                    f"triangle {owner[at]}: {remedy}, or merge corners that ought to be one"
                )

    def outward(self) -> Surface:
        """Return the closed surface with those of its parts turned round whose normals point into the body.

        Such a part has a negative volume, and does not lie within the box around another one, of which it may be a
        hollow.
        """
        first, second, _ = _neighbours(self)
        part = linked_parts(len(self.triangles), first, second)
        count, corners = int(part.max()) + 1, self.points[self.triangles]
        volume = np.bincount(part, np.einsum("td,td->t", self.vectors(), corners.mean(axis=1) - corners.mean((0, 1))))
        low, high = _ends(count, part, corners)
        for k in np.flatnonzero(volume < 0.0):
            if np.all((low < low[k]) & (high > high[k]), axis=1).any():
                volume[k] = 0.0
        turned = (volume < 0.0)[part]
        triangles = np.where(turned[:, None], self.triangles[:, ::-1], self.triangles)
        return Surface(self.path, self.points, triangles)

    def samples(self, size: float) -> tuple[FloatArray, FloatArray]:
        """Return places on the surface about a size apart, ``(n, 3)``, and the unit normals there."""
        vectors = self.vectors()
        area = np.linalg.norm(vectors, axis=1)
        corners = self.points[self.triangles]
        sides = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
        first, longest = sides.argmax(axis=1), sides.max(axis=1)
        corners = corners[np.arange(len(corners))[:, None], (first[:, None] + np.arange(3)) % 3]
        spans = np.stack([longest, 2.0 * area / longest], axis=1)
        counts = np.clip(np.ceil(spans / size), 1, 400).astype(np.int64)
        places, owners = [], []
        for along, across in np.unique(counts, axis=0):
            chosen = np.flatnonzero((counts == (along, across)).all(axis=1))
            up, side = np.meshgrid((np.arange(across) + 0.5) / across, (np.arange(along) + 0.5) / along)
            weights = np.stack([(1.0 - up) * (1.0 - side), (1.0 - up) * side, up], axis=-1).reshape(-1, 3)
            places.append(np.einsum("qc,tcd->tqd", weights, corners[chosen]).reshape(-1, 3))
            owners.append(np.repeat(chosen, len(weights)))
        owner = np.concatenate(owners)
        return np.concatenate(places), vectors[owner] / area[owner, None]


def read_stl(path: str | Path) -> Surface:
    """Read an STL file, binary or text; corners at one place become one, triangles without an area go.

    Raises
    ------
    MeshError
        Where there is no such file, or it is no STL.
    """
    corners = read_stl_corners(path).reshape(-1, 3)
    near = np.round(corners / (_SAME * max(float(np.ptp(corners, axis=0).max()), 1e-300)))
    _, where, inverse = np.unique(near, axis=0, return_index=True, return_inverse=True)
    triangles = inverse.reshape(-1, 3).astype(np.int64)
    a, b, c = triangles.T
    surface = Surface(str(path), corners[where], triangles[(a != b) & (b != c) & (c != a)])
    return surface.without(~(np.linalg.norm(surface.vectors(), axis=1) > 0.0))


def charts_of(surface: Surface, angle: float, size: float) -> tuple[Index, Mask]:
    """Divide a surface into charts.

    Parameters
    ----------
    surface
        The surface; it may have borders.
    angle
        Between the normals of neighbours, degrees, beyond which their edge is sharp.
    size
        Of the triangles that are wanted; flat parts narrower than this are no charts of their own.

    Returns
    -------
    chart : (m,)
        Number of the chart of each triangle.
    flat
        Of each chart, whether it is flat.

    Raises
    ------
    MeshError
        Where curved parts keep holes however often they are cut.
    """
    vectors = surface.vectors()
    area = np.linalg.norm(vectors, axis=1)
    normals = vectors / area[:, None]
    first, second, length = _neighbours(surface)
    cosine = np.einsum("ij,ij->i", normals[first], normals[second])
    smooth, level = cosine > np.cos(np.radians(angle)), cosine > np.cos(_COPLANAR)
    parts = linked_parts(len(area), first[level], second[level])
    flat = _flat_parts(surface, parts, vectors, size)[parts]
    label = np.where(flat, 6 + parts, _axes(normals, first, second, np.where(smooth, length, 0.0), flat))
    chart = label
    for _ in range(_CUTS):
        joined = smooth & (label[first] == label[second])
        chart = linked_parts(len(area), first[joined], second[joined])
        holed = ~flat & (_characteristics(surface, chart) != 1)[chart]
        if not holed.any():
            break
        label = 2 * chart + (holed & _beyond_middle(surface, chart, area))
    else:
        raise MeshError(f"{surface.path}: curved parts with holes do not come apart; give another angle")
    even = np.zeros(int(chart.max()) + 1, dtype=bool)
    even[chart] = flat
    return chart, even


def _neighbours(surface: Surface) -> tuple[Index, Index, FloatArray]:
    """Return the two triangles and the length of each edge between two triangles."""
    edges, owner = surface.edges()
    edges = np.sort(edges, axis=1)
    order = np.lexsort(edges.T)
    edges, owner = edges[order], owner[order]
    same = np.flatnonzero((edges[1:] == edges[:-1]).all(axis=1))
    ends = surface.points[edges[same]]
    return owner[same], owner[same + 1], np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)


def _ends(count: int, parts: Index, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest values of each part, given those at corners of triangles, ``(m, k, ...)``."""
    low, high = np.full((count, *values.shape[2:]), np.inf), np.full((count, *values.shape[2:]), -np.inf)
    np.minimum.at(low, parts, values.min(axis=1))
    np.maximum.at(high, parts, values.max(axis=1))
    return low, high


def _flat_parts(surface: Surface, parts: Index, vectors: FloatArray, size: float) -> Mask:
    """Return which parts are flat and at no place much narrower than a size."""
    count, corners = int(parts.max()) + 1, surface.points[surface.triangles]
    total = np.stack([np.bincount(parts, vectors[:, k], count) for k in range(3)], axis=1)
    area = np.linalg.norm(total, axis=1)
    normal = total / np.maximum(area, 1e-300)[:, None]
    off = np.einsum("tcd,td->tc", corners, normal[parts])
    low, high = _ends(count, parts, off)
    first, second, length = _neighbours(surface)
    border = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).sum(axis=1)
    around = np.bincount(parts, border, count)
    within = parts[first] == parts[second]
    around -= 2.0 * np.bincount(parts[first[within]], length[within], count)
    return (high - low < _FLAT * surface.extent) & (2.0 * area > size * around)


def _axes(normals: FloatArray, first: Index, second: Index, length: FloatArray, flat: Mask) -> Index:
    """Return which of six axes each normal is near, such that neighbours agree where they may."""
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    along = normals @ axes.T
    label = (along + np.array(2 * _PREFERENCE)).argmax(axis=1)
    draw = np.random.default_rng(1)  # neighbours that change at a time would change places for ever
    rows, weight = np.arange(len(label)), np.where(flat[first] | flat[second], 0.0, length)
    for _ in range(_SMOOTHINGS):
        shared = np.zeros((len(label), 6))
        np.add.at(shared, (first, label[second]), weight)
        np.add.at(shared, (second, label[first]), weight)
        own = shared[rows, label]
        shared[along < 0.5] = -1.0
        best = shared.argmax(axis=1)
        better = (shared[rows, best] > own * (1.0 + 1e-12)) & (draw.random(len(rows)) < 0.5)
        label = np.where(better, best, label)
    return label


def _characteristics(surface: Surface, chart: Index) -> Index:
    """Return corners less edges plus triangles of each chart: 1 for what is a disc."""
    edges, owner = surface.edges()
    count = int(chart.max()) + 1
    corners = np.unique(np.stack([np.repeat(chart, 3), surface.triangles.reshape(-1)], axis=1), axis=0)
    lines = np.unique(np.concatenate([chart[owner, None], np.sort(edges, axis=1)], axis=1), axis=0)
    return np.bincount(corners[:, 0], minlength=count) - np.bincount(lines[:, 0], minlength=count) + np.bincount(chart)


def _beyond_middle(surface: Surface, chart: Index, area: FloatArray) -> Mask:
    """Return which triangles lie beyond the middle of their chart, along the longest side of the box around it."""
    count, centres = int(chart.max()) + 1, surface.points[surface.triangles].mean(axis=1)
    low, high = _ends(count, chart, centres[:, None])
    axis = (high - low).argmax(axis=1)[chart]
    along = centres[np.arange(len(chart)), axis]
    middle = np.bincount(chart, area * along, count) / np.bincount(chart, area, count)
    return along > middle[chart]
