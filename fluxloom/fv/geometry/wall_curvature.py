r"""The curvature of walls, for the stress on walls that turn.

The stress of the flow on a wall that slides along itself has, beside :math:`-\nu \, \partial u / \partial n`, the part
of the transposed gradient. As :math:`u \cdot n = 0` along the wall,

.. math:: -\nu \, n_k \partial_t u_k = \nu \, u_k \partial_t n_k = \nu \, (K u)_t, \quad K = \partial n / \partial x

with the derivatives along the wall: nothing on flat walls and where the wall is at rest. A cylinder that turns feels
three eighths of its torque by it in the gap between cylinders of radii 1 and 2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm

__all__ = ["wall_curvature"]

Array = npt.NDArray[np.float64]

_NEIGHBOURS = {2: 4, 3: 8}
_SHARP = 0.5
"""Cosine of the angle between normals, below which faces meet in an edge."""
_FLAT = 1e-9
"""Curvature times the distance of neighbours that is rounding."""


def wall_curvature(comm: Comm, places: Array, normals: Array) -> Array:
    """Return the derivatives of the normal along a wall, ``(n, d, d)``, by least squares. Collective.

    ``K = P (sum w dn dx^T) (sum w dx dx^T)^+ P``, made symmetric, with ``P = I - n n^T``, ``dx = P (x_j - x)`` and the
    weights ``w = 1 / |dx|^2`` of the nearest faces.

    Parameters
    ----------
    comm
        The ranks; each one has some of the faces.
    places, normals : (n, d)
        Of the faces, or of the points, of this rank.
    """
    from scipy.spatial import KDTree

    d = places.shape[1]
    every = np.concatenate([np.asarray(one).reshape(-1, 2 * d) for one in comm.allgather(np.hstack([places, normals]))])
    found = np.zeros((len(places), d, d))
    if not len(places) or len(every) < d:
        return found
    known, count = every[:, :d], min(_NEIGHBOURS[d] + 1, len(every))
    _, near = KDTree(known).query(places, k=count)
    dn = every[near, d:] - normals[:, None]
    tangents = np.eye(d) - normals[:, :, None] * normals[:, None, :]
    dx = np.einsum("nij,nkj->nki", tangents, known[near] - places[:, None])
    square = np.einsum("nki,nki->nk", dx, dx)
    good = (np.einsum("nki,ni->nk", every[near, d:], normals) > _SHARP) & (square > 0.0)
    weight = np.where(good, 1.0 / np.where(good, square, 1.0), 0.0)
    moments = np.einsum("nk,nki,nkj->nij", weight, dx, dx)
    found = np.einsum("nk,nki,nkj->nij", weight, dn, dx) @ np.linalg.pinv(moments, rcond=1e-6)
    found = tangents @ found @ tangents
    found = 0.5 * (found + found.transpose(0, 2, 1))
    size = np.sqrt(np.where(good, square, 0.0).max(axis=1))
    flat = np.abs(found).max(axis=(1, 2)) * size < _FLAT
    found[flat] = 0.0
    return found
