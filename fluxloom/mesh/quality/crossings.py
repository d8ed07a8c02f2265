"""Cells that cross themselves: every edge against every side that it does not touch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.elements import FOLDABLE, element
from fluxloom.mesh.data.mesh import FloatArray, MeshData
from fluxloom.mesh.geometry.jacobians import folded_elements

__all__ = ["crossed"]

Mask = npt.NDArray[np.bool_]
Faces = Sequence[Sequence[int]]

_ROUND = 1e-12
"""Areas and volumes below this times those of the box of a cell are round-off."""

_ASIDE = 1e-7
"""How far corners of polyhedra are moved, in parts of the box of a cell, lest an edge meets the rim of a side."""

_CHUNK = 1 << 12

_PAIRS = 1 << 16


def crossed(mesh: MeshData, cells: npt.NDArray[np.int64]) -> Mask:
    """Return which of some cells have sides that cross each other.

    Parameters
    ----------
    mesh
        The mesh.
    cells
        Numbers of the cells in question, ascending; a few of all.
    """
    found = np.zeros(cells.size, dtype=bool)
    for name, numbers in mesh.cell_ranges.items():
        rows = np.flatnonzero((cells >= numbers.start) & (cells < numbers.stop))
        block = mesh.cells[name][cells[rows] - numbers.start]
        if name in FOLDABLE:  # the determinant tells, of which faces as triangles are an approximation
            folded = folded_elements(mesh.points, block, name)[1]
            rows, block = rows[folded], block[folded]
        for start in range(0, rows.size, _CHUNK):
            some = slice(start, start + _CHUNK)
            found[rows[some]] = _crossed(mesh.points[block[some]], element(name).faces)
    more = mesh.polyhedra
    if more is None:
        return found
    for row in np.flatnonzero(cells >= mesh.n_elements):
        one = more.take(np.array([cells[row] - mesh.n_elements]))
        nodes, local = np.unique(one.faces.indices, return_inverse=True)
        faces = np.split(local, one.faces.offsets[1:-1])
        found[row] = _crossed(mesh.points[nodes][None], [face.tolist() for face in faces])[0]
    return found


def _crossed(corners: FloatArray, faces: Faces) -> Mask:
    """Return which cells with corners ``(m, k, d)`` and these faces cross themselves."""
    size = np.ptp(corners, axis=1).max(axis=1)
    corners = (corners - corners.mean(axis=1, keepdims=True)) / np.where(size > 0.0, size, 1.0)[:, None, None]
    return _polygon(corners, faces) if corners.shape[2] == 2 else _polyhedron(corners, faces)


def _polygon(corners: FloatArray, sides: Faces) -> Mask:
    found = np.zeros(len(corners), dtype=bool)
    for (a, b), (c, d) in combinations(sides, 2):
        if not {a, b} & {c, d}:
            p, q, r, s = (corners[:, k] for k in (a, b, c, d))
            found |= _apart(_area(p, q, r), _area(p, q, s)) & _apart(_area(r, s, p), _area(r, s, q))
    return found


def _polyhedron(corners: FloatArray, faces: Faces) -> Mask:
    """Take faces with four corners or more as triangles about the mean of these, as volumes do."""
    aside = np.sin(1.0 + 7.0 * np.arange(3 * corners.shape[1])).reshape(-1, 3)
    corners = corners + _ASIDE * aside  # edges that cross edges, by symmetry, cross sides beside them
    triangles: list[tuple[int, ...]] = []
    points = [corners]
    for face in faces:
        if len(face) == 3:
            triangles.append(tuple(face))
            continue
        middle = corners.shape[1] + len(points) - 1
        points.append(corners[:, list(face)].mean(axis=1, keepdims=True))
        triangles += [(middle, a, b) for a, b in zip(face, [*face[1:], face[0]], strict=True)]
    corners = np.concatenate(points, axis=1)
    segments = {tuple(sorted(pair)) for triangle in triangles for pair in combinations(triangle, 2)}
    pairs = np.array([(p, q, *t) for p, q in sorted(segments) for t in triangles if p not in t and q not in t])
    found, some = np.zeros(len(corners), dtype=bool), max(1, _PAIRS // max(1, len(corners)))
    for start in range(0, len(pairs), some):
        at = (corners[:, nodes].reshape(-1, 3) for nodes in pairs[start : start + some].T)
        found |= _pierced(*at).reshape(len(corners), -1).any(axis=1)
    return found


def _pierced(p: FloatArray, q: FloatArray, a: FloatArray, b: FloatArray, c: FloatArray) -> Mask:
    """Return where the segment from ``p`` to ``q`` goes through the triangle."""
    sides = [_volume(p, q, a, b), _volume(p, q, b, c), _volume(p, q, c, a)]
    within = np.ones(len(p), dtype=bool)
    for k in range(3):
        within &= ~_apart(sides[k], sides[k - 1]) & (np.abs(sides[k]) > _ROUND)
    return within & _apart(_volume(a, b, c, p), _volume(a, b, c, q))


def _apart(first: FloatArray, second: FloatArray) -> Mask:
    """Return where two numbers have different signs, and neither is round-off."""
    return ((first > _ROUND) & (second < -_ROUND)) | ((first < -_ROUND) & (second > _ROUND))


def _area(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    u, v = b - a, c - a
    return u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]


def _volume(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a))
