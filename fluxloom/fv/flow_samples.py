"""Values of a flow at points: where a point is, and the kernels that keep what is there, sample after sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.mesh.geometry.search import search

__all__ = ["keep_sample", "locate", "sample_flow", "sample_oblique", "sample_scalar", "sample_states"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_RIM = 1.0 + 1e-9
"""How far out a point on the boundary is, with room for rounding."""

_NEAR = 1.2
"""How far out a point between cells that are neither simplices nor bricks may be."""


_FARTHEST = _NEAR + 1e-6
"""The same, with room for rounding: who is farther out is in no cell."""


@kernel
def sample_flow(weight: Read, u: Read, share: Read, phi: Read, scale: Read, found: Write, *, d: Const[int]):
    """Velocity and pressure at a point, ``u = sum w_j u_j`` and ``p = scale sum w_j phi_j``."""
    total = zeros(d + 1)
    for j in range(len(weight)):
        for k in range(d):
            total[k] += weight[j] * u[j][k]
    for j in range(len(share)):
        total[d] += scale[0] * share[j] * phi[j]
    for k in range(d + 1):
        found[k] = total[k]


@kernel
def sample_oblique(
    weight: Read, u: Read, share: Read, phi: Read, g: Read, mean: Read, scale: Read, found: Write, *, d: Const[int]
):  # fmt: skip
    """``sum w_j u_j``, ``scale sum (m_j phi_j + a_j . g_j + b_j . mean_j)`` at a point; a `share` is ``(m, a, b)``."""
    total = zeros(d + 1)
    for j in range(len(weight)):
        for k in range(d):
            total[k] += weight[j] * u[j][k]
    for j in range(len(share)):
        total[d] += scale[0] * share[j][0] * phi[j]
        for k in range(d):
            total[d] += scale[0] * (share[j][1 + k] * g[j][k] + share[j][1 + d + k] * mean[j][k])
    for k in range(d + 1):
        found[k] = total[k]


@kernel
def sample_scalar(weight: Read, theta: Read, found: Write):
    """A scalar at a point, ``theta = sum w_j theta_j``."""
    total = 0.0
    for j in range(len(weight)):
        total += weight[j] * theta[j][0]
    found[0] = total


@kernel
def sample_states(weight: Read, w: Read, found: Write, *, nv: Const[int], d: Const[int]):
    """Primitive state at a point, ``w = sum w_j W_j``; that of the first where density or pressure are not positive."""
    total = zeros(nv)
    for j in range(len(weight)):
        for v in range(nv):
            total[v] += weight[j] * w[j][v]
    sound = total[0] > 0.0 and total[1 + d] > 0.0
    for v in range(nv):
        found[v] = total[v] if sound else w[0][v]


@kernel
def keep_sample(number: Read, slot: Read, found: Read, record: RW, *, width: Const[int]):
    """Keep what was found at a point in one slot of many, that with the number ``slot``: ``record_slot = found``."""
    chosen = number[0] == slot[0]
    for k in range(width):
        record[k] = found[k] if chosen else record[k]


def locate(volumes: ControlVolumes, points: Array) -> tuple[Index, Array]:
    """Return the owned cell that each point is in, and how far out it is, ``max_f n_f . (x - x_c) / r_f``.

    In units of the distance from the centre of a cell to a face, along its normal, a point is as far out as it is in
    the direction in which it is farthest: less than 1 inside. The distance of two cells is divided in proportion
    to their volumes, exact for simplices and bricks. Of all cells the one counts in which a point is least far out.

    Parameters
    ----------
    volumes
        The control volumes.
    points : (m, d)
        Coordinates.

    Returns
    -------
    cells : (m,)
        -1 for points that are in no cell: beyond the boundary face of the nearest one, or 20 % farther out than faces.
    out : (m,)
        How far out they are, infinite for those in no cell.
    """
    inner = volumes.faces[: volumes.interior]
    count = volumes.interior
    cell = np.concatenate([volumes.faces[:, 0], inner[:, 1]])
    sign = np.concatenate([np.ones(len(volumes.faces)), -np.ones(count)])
    face = np.concatenate([np.arange(len(volumes.faces)), np.arange(count)])
    order = np.argsort(cell, kind="stable")
    order = order[cell[order] < volumes.owned]
    cell, face, sign = cell[order], face[order], sign[order]
    edge = face >= count
    other = volumes.faces[face].sum(axis=1) - cell
    size = np.concatenate([volumes.volumes, np.zeros(volumes.elements - volumes.cells)])
    reach = volumes.spacing[face] * size[cell] / (size[cell] + size[other])
    unit = volumes.normals[face] * (sign / reach)[:, None]
    known, starts, counts = np.unique(cell, return_index=True, return_counts=True)
    found, out = np.full(len(points), -1, dtype=np.int64), np.full(len(points), np.inf)

    def faces_of(rows: Index) -> tuple[Index, Index]:
        """Return the rows of the faces of some of the known cells, and where those of each begin."""
        begins = np.cumsum(counts[rows]) - counts[rows]
        return np.arange(int(counts[rows].sum())) + np.repeat(starts[rows] - begins, counts[rows]), begins

    def near(rows: Index, low: Array, high: Array) -> Index:
        """Return those that a point of a box may be in: no face has the whole box too far out."""
        if not rows.size:
            return rows
        faces, begins = faces_of(rows)
        least = np.einsum("nd,nd->n", unit[faces], 0.5 * (low + high) - volumes.centres[cell[faces]])
        least -= np.abs(unit[faces]) @ (0.5 * (high - low))
        return rows[np.maximum.reduceat(least, begins) <= _FARTHEST]

    for rows, cells in search(points, np.arange(known.size), near):
        if not cells.size:
            continue
        faces, begins = faces_of(cells)
        centres, most = volumes.centres[cell[faces]], np.where(edge[faces], _RIM, _NEAR)
        for k in rows.tolist():
            away = np.einsum("nd,nd->n", unit[faces], points[k] - centres)
            beyond = np.logical_or.reduceat(away > most, begins)
            worst = np.maximum.reduceat(away, begins)
            inside = ~beyond & (worst <= _RIM)
            best = int(np.argmin(np.where(inside, worst, np.inf) if inside.any() else worst))
            if not beyond[best]:
                found[k], out[k] = known[cells[best]], worst[best]
    return found, out
