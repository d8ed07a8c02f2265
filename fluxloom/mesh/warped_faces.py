r"""What the triangles of warped faces have beside their mean normal.

A velocity whose components are ``U_k = (u_k, du_k / dx_1, du_k / dx_2, du_k / dx_3)`` at the centre of a face, and a
quantity ``q`` alike, pass with

.. math:: \int u q \cdot dS = \sum_k U_k^T \left(\sum_t A_{tk} \overline{y y^T}^t\right) q, \qquad y = (1, x - c)

through the triangles ``t`` of the face, whose area vectors differ where it is warped. The part with the mean normal,
``A_k diag(1, C)`` with the second moments ``C`` of `fluxloom.mesh.geometry.face_moments`, is all that there is in plane
faces; the rest is told here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.geometry import face_geometry, face_moments, in_chunks
from fluxloom.mesh.mesh import FloatArray, Ragged

__all__ = ["TENSOR", "face_warps"]

Rows = npt.NDArray[np.intp]

TENSOR = 27
"""Numbers of a face: nine for each component ``k``, ``sum A_tk y_n``, then ``sum A_tk y_n y_m`` less ``A_k C_nm``."""

WARPS = TENSOR + 1
"""These, and behind them how far nodes are from the plane through the mean of all along the mean normal, at most."""

_PLANE = 1e-9
"""Distance of a node from the plane of its face, as a part of the root of the area, that is none."""

_UPPER = np.triu_indices(3)


def face_warps(points: FloatArray, faces: Ragged) -> tuple[Rows, FloatArray]:
    """Return which faces are warped, ``(m,)``, and what their triangles have beside the mean normal, ``(m, 28)``.

    Faces that are plane, but not seen as a whole from the mean of their nodes, are among them: their centre is not
    their centroid. Parameters are those of `fluxloom.mesh.geometry.face_geometry`.
    """
    found: list[tuple[Rows, FloatArray]] = []
    counts = faces.counts
    if points.shape[1] == 3:
        for width in np.unique(counts[counts > 3]).tolist():
            rows = np.flatnonzero(counts == width)

            def piece(start: int, stop: int, rows: Rows = rows, width: int = width) -> None:
                chosen = rows[start:stop]
                found.append(_warped(points, faces, chosen, width))

            in_chunks(rows.size, piece)
    if not found:
        return np.empty(0, dtype=np.intp), np.empty((0, WARPS))
    rows, tensors = np.concatenate([item[0] for item in found]), np.concatenate([item[1] for item in found])
    order = np.argsort(rows)
    return rows[order], tensors[order]


def _warped(points: FloatArray, faces: Ragged, rows: Rows, width: int) -> tuple[Rows, FloatArray]:
    """Return which of some faces with equally many nodes are warped, and their tensors."""
    nodes = faces.indices[faces.offsets[rows][:, None] + np.arange(width)]
    corners = points[nodes]
    middle = corners.mean(axis=1, keepdims=True)
    local = corners - middle
    areas = 0.5 * np.cross(local, np.roll(local, -1, axis=1))
    area = areas.sum(axis=1)
    size = np.sqrt(np.einsum("fi,fi->f", area, area))
    height = np.abs(np.einsum("fni,fi->fn", local, area)).max(axis=1)
    hidden = np.einsum("fni,fi->fn", areas, area).min(axis=1)
    warped = np.flatnonzero((height > _PLANE * size**1.5) | (hidden < -_PLANE * size**2))
    if not warped.size:
        return rows[:0], np.empty((0, WARPS))
    some = Ragged(np.arange(warped.size + 1) * width, nodes[warped].reshape(-1))
    _, centres = face_geometry(points, some)
    apex = middle[warped, 0] - centres
    first = corners[warped] - centres[:, None]
    second = np.roll(first, -1, axis=1)
    three = np.stack([np.broadcast_to(apex[:, None], first.shape), first, second], axis=2)
    total = three.sum(axis=2)
    products = (np.einsum("ftvn,ftvm->ftnm", three, three) + total[..., :, None] * total[..., None, :]) / 12.0
    once = np.einsum("ftk,ftn->fkn", areas[warped], total / 3.0)
    twice = np.einsum("ftk,ftnm->fknm", areas[warped], products)
    twice -= area[warped][:, :, None, None] * face_moments(points, some)[:, None]
    tensors = np.concatenate([once, twice[:, :, _UPPER[0], _UPPER[1]]], axis=2)
    away = height[warped] / size[warped]
    return rows[warped], np.concatenate([tensors.reshape(-1, TENSOR), away[:, None]], axis=1)
