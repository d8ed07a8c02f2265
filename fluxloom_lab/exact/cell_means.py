"""Means of functions over cells, by quadrature: what a finite-volume scheme computes, to the order of the rule.

A mean and the value at the centroid differ by the second order of the cell size, so schemes of second order may be
compared with values; means are for sharper comparisons and for states that conserve exactly what is given.

References
----------
A. H. Stroud: *Approximate Calculation of Multiple Integrals*. Prentice-Hall 1971, sec. 2.4 (conical products).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.mesh.data.elements import ElementType, element
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.quadrature import simplex_rule

__all__ = ["box_means", "cell_means"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]

_CHUNK = 1 << 14
"""Cells at a time, which bounds the memory."""


def cell_means(mesh: MeshData, function: Function, points: int = 3) -> Array:
    """Return the means of a function over the cells of a mesh, ``(n_cells, ...)``.

    Cells are cut into the simplices of which `fluxloom.mesh.geometry.metrics` makes their volumes.

    Parameters
    ----------
    mesh
        Any mesh.
    function
        Of points ``(n, d)``, gives ``(n, ...)``. Give conserved quantities to get means that conserve.
    points
        Of `simplex_rule`.
    """
    if mesh.polyhedra is not None:
        raise SolverError(f"{mesh.source.path}: means over polyhedra are not there; take the values at their centroids")
    places, weights = simplex_rule(mesh.dimension, points)
    found: list[Array] = []
    for name in mesh.cell_ranges:
        kind, block = element(name), mesh.cells[name]
        for start in range(0, len(block), _CHUNK):
            found.append(_means(mesh.points[block[start : start + _CHUNK]], kind, function, places, weights))
    return np.concatenate(found)


def _means(corners: Array, kind: ElementType, function: Function, places: Array, weights: Array) -> Array:
    """Return the means over cells of one kind with the corners ``(n, k, d)``."""
    total, volume = 0.0, np.zeros(len(corners))
    for simplex in _simplices(corners, kind):
        at = np.einsum("qk,nkd->nqd", places, simplex)
        values = np.asarray(function(at.reshape(-1, corners.shape[2])), dtype=np.float64)
        values = values.reshape(len(corners), len(weights), *values.shape[1:])
        size = np.linalg.det(simplex[:, 1:] - simplex[:, :1])
        total = total + np.einsum("n,q,nq...->n...", size, weights, values)
        volume += size
    return np.asarray(total / np.expand_dims(volume, tuple(range(1, np.ndim(total)))))


def _simplices(corners: Array, kind: ElementType) -> Iterator[Array]:
    """Yield the triangles or tetrahedra ``(n, d + 1, d)`` of cells with the corners ``(n, k, d)``."""
    if len(kind.faces) == corners.shape[2] + 1:
        yield corners
        return
    middle = corners.mean(axis=1)
    for face in kind.faces:
        if len(face) < 4:
            yield np.stack([middle, *(corners[:, k] for k in face)], axis=1)
            continue
        centre = corners[:, list(face)].mean(axis=1)
        for a, b in zip(face, (*face[1:], face[0]), strict=True):
            yield np.stack([middle, centre, corners[:, a], corners[:, b]], axis=1)


def box_means(centres: Array, widths: npt.ArrayLike, function: Function, points: int = 3) -> Array:
    """Return the means of a function over boxes, ``(n, ...)``, by Gauss's rule along each axis.

    Parameters
    ----------
    centres : (n, d)
        Of the boxes.
    widths : (d,) or (n, d)
        Along the axes.
    function
        Of points ``(m, d)``, gives ``(m, ...)``.
    points
        Along each axis; polynomials of the degree ``2 points - 1`` in each coordinate are integrated exactly.

    Raises
    ------
    SolverError
        For fewer than 1 point.
    """
    if points < 1:
        raise SolverError(f"a rule of at least 1 point is wanted, not {points!r}")
    node, weight = np.polynomial.legendre.leggauss(points)
    n, d = centres.shape
    halves = 0.5 * np.broadcast_to(np.asarray(widths, dtype=np.float64), (n, d))
    total = 0.0
    for index in np.ndindex(*(points,) * d):
        offset = node[list(index)]
        total = total + weight[list(index)].prod() / 2.0**d * np.asarray(function(centres + offset * halves))
    return np.asarray(total, dtype=np.float64)
