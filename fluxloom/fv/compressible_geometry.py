r"""What loops over the sides of cells need: the faces, which way they point, and the weights of slopes.

Rows are those of *elements*, cells and behind them boundary elements, whose rows are empty. A face has numbers, so
that each is stored once, and an entry of a row only has which way the face points::

    faces : (faces, 3 d + 1)    unit normal, area, way from the centroid of the first and of the second element to it
    sign  : (entries,)          1: the normal leads out of the cell; -1: into it; 0: out of it, to a boundary element

Slopes are those of least squares, each difference weighted with the inverse square of its distance,

.. math:: \nabla q = \sum_j g_j (q_j - q), \quad g_j = G^{-1} \frac{v_j}{|v_j|^2}, \quad
          G = \sum_j \frac{v_j v_j^T}{|v_j|^2}

with the ways ``v_j`` to the elements across the sides: exact for linear fields on any mesh.

References
----------
D. J. Mavriplis: *Revisiting the least-squares procedure for gradient reconstruction on unstructured meshes*. AIAA
2003-3986.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.sides import Family, Sides

__all__ = ["CompressibleGeometry"]

Array = npt.NDArray[np.float64]

_FLAT = 1e-10
"""Eigenvalue over the largest one below which the neighbours of a cell lie in a plane: no slope along its normal."""
_CHUNK = 1 << 18


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
    volume : (elements,)
        Of the cells, 0 for boundary elements.
    """

    faces: Array
    signs: Family
    sides: Family
    weights: Array
    volume: Array

    @classmethod
    def of(cls, volumes: ControlVolumes) -> CompressibleGeometry:
        """Return what loops over the sides of some control volumes need."""
        sides = Sides.of(volumes)
        sign = np.where(sides.outside, 0.0, sides.sign)
        across = volumes.arms - volumes.ways
        across[volumes.interior :] = 0.0
        faces = np.concatenate([volumes.normals, volumes.area[:, None], volumes.arms, across], axis=1)
        volume = np.zeros(volumes.elements)
        volume[: volumes.cells] = volumes.volumes
        signs = Family(sides.offsets, sides.other, sign)
        return cls(faces, signs, Family(sides.offsets, sides.face, sign), _slope_weights(volumes, sides), volume)


def _slope_weights(volumes: ControlVolumes, sides: Sides) -> Array:
    """Return the weights of least squares, ``(entries, d)``, some cells at a time."""
    d, out = volumes.dimension, np.empty((sides.face.size, volumes.dimension))
    ways = volumes.ways
    for first in range(0, sides.cells, _CHUNK):
        last = min(first + _CHUNK, sides.cells)
        span = slice(int(sides.offsets[first]), int(sides.offsets[last]))
        way = ways[sides.face[span]] * sides.sign[span, None]
        near = way / np.einsum("ij,ij->i", way, way)[:, None]
        cell = sides.cell[span] - first
        moment = np.empty((last - first, d, d))
        for i in range(d):
            for j in range(i, d):
                moment[:, i, j] = moment[:, j, i] = np.bincount(cell, way[:, i] * near[:, j], minlength=last - first)
        out[span] = np.einsum("eij,ej->ei", _inverse(moment)[cell], near)
    return out


def _inverse(moment: Array) -> Array:
    """Return the inverses of symmetric matrices, along directions without neighbours zero."""
    size, vectors = np.linalg.eigh(moment)
    kept = size > _FLAT * size[:, -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, size, 1.0), 0.0)
    return np.einsum("nik,nk,njk->nij", vectors, inverse, vectors)
