r"""Elements whose map from the reference cell folds: :math:`\det J` changes its sign or vanishes within them.

The determinant is constant in triangles and tetrahedra, linear in quads, so that its least value is at a corner. In
prisms it is linear across the triangles and quadratic from one to the other, in hexahedra quadratic along each axis.
Of the latter most are near a parallelepiped: the edges, in the frame of the mean ones, are unit vectors up to
differences of less than one (sum of the absolute values), so that every Jacobian is diagonally dominant. The others
have the determinant's Bernstein coefficients computed, whose least is a lower bound, and where that is not positive
its values at points.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.elements import FOLDABLE, PARALLEL
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData
from fluxloom.mesh.data.whole import fail_cell
from fluxloom.mesh.geometry.metrics import corners_of, in_chunks

__all__ = ["concave_cells", "folded_elements", "require_elements_sound"]

Mask = npt.NDArray[np.bool_]

_ROUND = 1e-8
"""A determinant is negative below this times the product of the edges: a corner of 180 degrees may round to it."""

_FLAT = 1e-14


_ACROSS = ((1, 2), (0, 2), (0, 1))
"""The other axes of each, in the order of `PARALLEL`: the first of them varies faster."""


def require_elements_sound(mesh: MeshData, block: IntArray, kind: str) -> FloatArray:
    r"""Refuse elements that are flat, or whose :math:`\det J` changes its sign.

    Parameters
    ----------
    mesh
        The mesh, for messages and coordinates.
    block : (cells, corners)
        All of its cells: triangles, quads, tetrahedra or hexahedra, of either orientation.
    kind
        Which of them.

    Returns
    -------
    (cells,)
        The determinant in the middle, signed.

    Raises
    ------
    MeshError
        Naming the first such cell, its place and how many there are.
    """
    size, bad = folded_elements(mesh.points, block, kind)
    if bad.any():
        cell = int(np.argmax(bad))
        problem = "concave or tangled: det J changes its sign within it"
        if kind in ("triangle", "tetra") or size[cell] == 0.0:
            problem = "degenerate: it is flat"
        fail_cell(
            mesh, cell,
            f"{problem} ({int(bad.sum())} such cells), so that finite elements are wrong there; move its nodes, or "
            "divide it into simplices",
        )  # fmt: skip
    return size


def concave_cells(mesh: MeshData, hidden: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the concave cells of a sound mesh, ascending: control volumes may be concave, elements not.

    Of quads, prisms and hexahedra those whose determinant changes its sign, of polygons those with a corner of more
    than 180 degrees; of other cells those that are not seen as a whole from the mean of their nodes.

    Parameters
    ----------
    mesh
        The mesh.
    hidden
        Cells that are not seen so, from `fluxloom.mesh.quality.sound.hidden_cells`.
    """
    found = np.zeros(mesh.n_cells, dtype=bool)
    found[hidden] = True
    for kind, numbers in mesh.cell_ranges.items():
        block, part = mesh.cells[kind], slice(numbers.start, numbers.stop)
        if kind in ("quad", *FOLDABLE):
            found[part] = folded_elements(mesh.points, block, kind)[1]
        elif mesh.dimension == 2 and kind != "triangle":
            sides = mesh.points[np.roll(block, -1, axis=1)] - mesh.points[block]
            before = np.roll(sides, 1, axis=1)
            turn = before[:, :, 0] * sides[:, :, 1] - before[:, :, 1] * sides[:, :, 0]
            limit = np.linalg.norm(before, axis=2) * np.linalg.norm(sides, axis=2)
            found[part] |= (turn < -_ROUND * limit).any(axis=1)
    return np.flatnonzero(found)


def folded_elements(points: FloatArray, block: IntArray, kind: str) -> tuple[FloatArray, Mask]:
    r"""Return :math:`\det J` in the middle of elements, and whether it changes its sign or vanishes in them.

    Parameters
    ----------
    points : (n, d)
        Coordinates.
    block : (cells, corners)
        Triangles, quads, tetrahedra, prisms or hexahedra. Cells of any other kind are taken for sound.
    kind
        Which of them.
    """
    size, bad = np.ones(len(block)), np.zeros(len(block), dtype=bool)
    known = {"triangle": _simplex, "tetra": _simplex, "quad": _quad, "prism": _prism, "hexahedron": _hexahedron}
    measure = known.get(kind)
    columns = np.ascontiguousarray(points.T)

    def piece(start: int, stop: int) -> None:
        assert measure is not None
        part = slice(start, stop)
        size[part], bad[part] = measure(corners_of(columns, block[part]))

    if measure is not None:
        in_chunks(len(block), piece)
    return size, bad


def _simplex(corners: FloatArray) -> tuple[FloatArray, Mask]:
    sides = [corners[:, k] - corners[:, 0] for k in range(1, corners.shape[1])]
    size = _determinant(sides)
    return size, ~(np.abs(size) > _FLAT * _product(sides))


def _quad(corners: FloatArray) -> tuple[FloatArray, Mask]:
    sides = [corners[:, (k + 1) % 4] - corners[:, k] for k in range(4)]
    at = [_determinant([sides[k], -sides[k - 1]]) for k in range(4)]
    middle = 0.25 * (at[0] + at[1] + at[2] + at[3])
    sign, least = np.sign(middle), np.full(middle.size, np.inf)
    for value in at:
        np.minimum(least, sign * value, out=least)
    bad = ~(least > 0.0) | ~(np.abs(middle) > 0.0)
    some = np.flatnonzero(bad)
    if some.size:
        limits = [_product([sides[k][:, some], sides[k - 1][:, some]]) for k in range(4)]
        folded = [sign[some] * value[some] < -_ROUND * limit for value, limit in zip(at, limits, strict=True)]
        flat = ~(np.abs(middle[some]) > _FLAT * np.maximum.reduce(limits))
        bad[some] = np.logical_or.reduce(folded) | flat
    return middle, bad


def _prism(corners: FloatArray) -> tuple[FloatArray, Mask]:
    low, high = corners[:, :3], corners[:, 3:]
    up = [high[:, k] - low[:, k] for k in range(3)]
    values = np.empty((3, 3, corners.shape[2]))  # at the ends and half-way, at each corner of the triangle
    limit = np.zeros(corners.shape[2])
    for row, at in enumerate((0.0, 0.5, 1.0)):
        first, second = ((1.0 - at) * (low[:, k] - low[:, 0]) + at * (high[:, k] - high[:, 0]) for k in (1, 2))
        for k in range(3):
            values[row, k] = _determinant([first, second, up[k]])
            np.maximum(limit, _ROUND * _product([first, second, up[k]]), out=limit)
    middle = values[1].mean(axis=0)
    begin, half, end = values * np.sign(middle)
    inner = 2.0 * half - 0.5 * (begin + end)  # Bernstein's coefficient: below 0 the least value may be between the ends
    between = np.sqrt(np.maximum(begin, 0.0) * np.maximum(end, 0.0)) + inner
    bad = ~(np.minimum(begin, end) > -limit) | ((inner < -limit) & ~(between > limit))
    return middle, bad.any(axis=0) | ~(np.abs(middle) > _FLAT / _ROUND * limit)


def _hexahedron(corners: FloatArray) -> tuple[FloatArray, Mask]:
    edges = [[corners[:, b] - corners[:, a] for a, b in along] for along in PARALLEL["hexahedron"]]
    mean = [0.25 * (a + b + c + d) for a, b, c, d in edges]
    middle = _determinant(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = [_cross(mean[(k + 1) % 3], mean[(k + 2) % 3]) / middle for k in range(3)]
        doubtful = np.zeros(middle.size, dtype=bool)
        for axis, along in enumerate(edges):
            for edge in along:
                off = sum(np.abs((row * edge).sum(axis=0) - (axis == k)) for k, row in enumerate(rows))
                doubtful |= ~(off < 1.0)
    some = np.flatnonzero(doubtful)
    if some.size:
        doubtful[some] = _changes([[edge[:, some] for edge in along] for along in edges], np.sign(middle[some]))
    return middle, doubtful


def _changes(edges: list[list[FloatArray]], sign: FloatArray) -> Mask:
    """Return where the determinant of hexahedra with these edges changes its sign."""
    limit = _ROUND * _product([np.sqrt(sum((e * e for e in along[1:]), along[0] ** 2).sum(axis=0)) for along in edges])
    values = sign * _samples(edges, 3)
    bad = ~(values.min(axis=(0, 1, 2)) > -limit) | (sign == 0.0)
    bounds = values.copy()
    for axis in range(3):  # from values at 0, 1/2 and 1 to Bernstein's coefficients of a quadratic
        low, mid, high = np.moveaxis(bounds, axis, 0)
        bounds = np.stack([low, 2.0 * mid - 0.5 * (low + high), high], axis=axis)
    open_ = np.flatnonzero(~bad & ~(bounds.min(axis=(0, 1, 2)) > 0.0))
    if open_.size:
        fine = sign[open_] * _samples([[edge[:, open_] for edge in along] for along in edges], 9)
        bad[open_] = ~(fine.min(axis=(0, 1, 2)) > -limit[open_])
    return bad


def _samples(edges: list[list[FloatArray]], count: int) -> FloatArray:
    """Return the determinant at ``count`` places along each axis, ``(count, count, count, cells)``."""
    places = np.linspace(0.0, 1.0, count)
    found = np.empty((count, count, count, edges[0][0].shape[1]))
    for place in np.ndindex(count, count, count):
        at = [places[k] for k in place]
        sides = []
        for axis, along in enumerate(edges):
            s, t = (at[k] for k in _ACROSS[axis])
            sides.append((1 - t) * ((1 - s) * along[0] + s * along[1]) + t * ((1 - s) * along[2] + s * along[3]))
        found[place] = _determinant(sides)
    return found


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _determinant(sides: list[FloatArray]) -> FloatArray:
    """Return the determinant of vectors ``(d, m)``, two of the plane or three of space."""
    if len(sides) == 2:
        return sides[0][0] * sides[1][1] - sides[0][1] * sides[1][0]
    return (sides[0] * _cross(sides[1], sides[2])).sum(axis=0)


def _product(sides: list[FloatArray]) -> FloatArray:
    """Return the product of the lengths of vectors ``(d, m)``, or of numbers ``(m,)``."""
    found = np.ones(sides[0].shape[-1])
    for side in sides:
        found *= side if side.ndim == 1 else np.sqrt((side * side).sum(axis=0))
    return found
