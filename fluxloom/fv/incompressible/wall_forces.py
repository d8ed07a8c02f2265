"""Forces on boundary faces: pressure carried to the face, friction, and the momentum that flows through.

The pressure at a face ``b`` of a cell ``c`` is ``p_b = p_c + (x_b - x_c) . g``, exact for linear fields on meshes whose
interpolation is. The gradient ``g`` must know these very values, not those of the cell behind that the projection has:
Gauss's theorem, ``Omega g = sum A n p_f``, and ``p_b`` put into it give, with ``G p`` of the projection,

::

    (I - sum_b A_b n_b (x_b - x_c)^T / Omega) g = G p

over the boundary faces of the cell: one small system a cell, solved beforehand, in the sense of least squares where all
but one face of a cell are boundaries. For a flat wall along a rectangular cell ``g`` is twice ``G p`` along the normal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.fv.geometry.volumes import Family
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = [
    "add_outlets", "cells_behind", "load_sums", "outlet_gradients", "pressure_gradients", "scalar_gradient",
    "turning_friction", "wall_force",
]  # fmt: skip

Array = npt.NDArray[np.float64]

_EVEN = 1e-9
"""Difference of the distances of two cells from their face, as a part of their sum, that is round-off."""
_SINGULAR = 1e-6
"""Smallest part of the largest singular value of a cell's system that counts."""


@kernel
def scalar_gradient(g: Read, phi: Read, slope: Write, *, d: Const[int]):
    """One row of a gradient, ``slope = G phi``."""
    total = zeros(d)
    for j in range(len(g)):
        for k in range(d):
            total[k] += g[j][k] * phi[j]
    for k in range(d):
        slope[k] = total[k]


@kernel
def add_outlets(g: Read, level: Read, acting: Read, slope: RW, *, d: Const[int]):
    """What the pressure along outflows adds to a row of a gradient, ``slope += acting G level``."""
    for j in range(len(g)):
        for k in range(d):
            slope[k] += acting[0] * g[j][k] * level[j][0]


@kernel
def wall_force(kind: Read, normal: Read, reach: Read, side: Read, nus: Read, us: Read, phi: Read, slope: Read,
               inside: Read, u: Read, load: Write, pressure: Inc, friction: Inc, momentum: Inc, *,
               formulas: Const[tuple[Boundary, ...]], d: Const[int], tangential: Const[int]):  # fmt: skip
    """Force of the flow on a boundary element, outward normal ``n``: ``phi_b n A``, ``-nu A (u_b - u_c) / delta``.

    And the momentum that leaves, ``u_s A u_b``. ``phi_b = phi_c + reach . slope``, 0 where a formula is open. With
    ``tangential`` the part of the friction along ``n`` is left out: it vanishes at a wall, ``du_n / dn = 0``. ``load``
    is ``(pressure force, friction, phi_b, u_s A)`` of the element.
    """
    held = zeros(d + d + 2)
    along = 0.0
    for k in range(d):
        along += (u[k] - inside[k]) * normal[k] * tangential
    for j in range(len(side)):
        found = phi[j]
        for k in range(d):
            found += reach[k] * slope[j][k]
        for m in range(len(formulas)):
            if formulas[m].open and kind[0] == m:
                found = 0.0
        held[d + d] += found
        held[d + d + 1] += us[j] * side[j][0]
        for k in range(d):
            push = found * normal[k] * side[j][0]
            drag = nus[j] * side[j][0] / side[j][1] * (u[k] - inside[k] - along * normal[k])
            pressure[k] += push
            friction[k] -= drag
            momentum[k] += us[j] * side[j][0] * u[k]
            held[k] += push
            held[d + k] -= drag
    for k in range(d + d + 2):
        load[k] = held[k]


@kernel
def turning_friction(curvature: Read, side: Read, nus: Read, u: Read, load: RW, friction: Inc, *, d: Const[int]):
    """Part of the transposed gradient on a curved wall, ``F += nu A K u`` (`fluxloom.fv.geometry.wall_curvature`)."""
    for j in range(len(side)):
        for k in range(d):
            total = 0.0
            for m in range(d):
                total += curvature[d * k + m] * u[m]
            drag = nus[j] * side[j][0] * total
            friction[k] += drag
            load[d + k] += drag


@kernel
def load_sums(load: Read, u: Read, site: Read, sums: Inc, *, d: Const[int], x: float, y: float, z: float):
    """Sums over boundary elements: moments of both parts of ``load`` about ``(x, y, z)``, what leaves, and means.

    ``sum (x - x_0) x F_p``, ``sum (x - x_0) x F_nu``, ``sum u_s A``, ``sum phi_b A``, ``sum u_b^2 A / 2``, ``sum A``;
    ``site`` is ``(place, A)``.
    """
    arm = zeros(3)
    push = zeros(3)
    drag = zeros(3)
    square = 0.0
    for k in range(d):
        arm[k] = site[k]
        push[k] = load[k]
        drag[k] = load[d + k]
        square += u[k] * u[k]
    arm[0] -= x
    arm[1] -= y
    arm[2] -= z
    for k in range(3):
        m = (k + 1) % 3
        n = (k + 2) % 3
        sums[k] += arm[m] * push[n] - arm[n] * push[m]
        sums[3 + k] += arm[m] * drag[n] - arm[n] * drag[m]
    sums[6] += load[d + d + 1]
    sums[7] += load[d + d] * site[d]
    sums[8] += 0.5 * square * site[d]
    sums[9] += site[d]


def cells_behind(matrices: FlowMatrices) -> Family:
    """Return for each boundary element the cell behind it, elements by cells; cells have no entries."""
    cv = matrices.volumes
    count = cv.elements - cv.cells
    offsets = np.concatenate([np.zeros(cv.cells, dtype=np.int64), np.arange(count + 1)])
    return Family(offsets, matrices.owners[cv.cells :].astype(np.int32), np.ones(count))


def pressure_gradients(matrices: FlowMatrices) -> Family:
    """Return the gradient ``g`` that carries pressure to walls and into cells, cells by cells, see above.

    Away from boundaries it is that of the projection on even cells; elsewhere values at faces are weighted by distance,
    exact for linear fields on orthogonal meshes. At an outflow the pressure is zero; see `outlet_gradients`.
    """
    found = matrices.pressure_gradient(_excess(matrices))
    which = np.repeat(np.arange(found.offsets.size - 1), np.diff(found.offsets))
    return found._replace(values=_carried(matrices, which, found.values))


def outlet_gradients(matrices: FlowMatrices) -> Family:
    """Return what a pressure at outflows adds to `pressure_gradients`, ``A n p_b / Omega``, cells by elements."""
    cv, sides = matrices.volumes, matrices.operators.sides
    values = _carried(matrices, sides.cell, cv.areas[sides.face] * (sides.sign / cv.volumes[sides.cell])[:, None])
    return sides.rows(values, values, np.zeros(sides.cells, dtype=bool), sides.outside)


def _carried(matrices: FlowMatrices, rows: npt.NDArray[np.integer], values: Array) -> Array:
    """Return entries of ``G`` in rows of some cells as those of the ``g`` that knows what it carries to boundaries."""
    cv, d = matrices.volumes, matrices.volumes.dimension
    outer = np.arange(cv.interior, len(cv.faces))[~matrices.conditions.open]
    behind = cv.faces[outer, 0]
    reach = cv.centres[cv.faces[outer, 1]] - cv.centres[behind]
    terms = cv.areas[outer][:, :, None] * reach[:, None, :] / cv.volumes[behind][:, None, None]
    cells, place = np.unique(behind, return_inverse=True)
    systems = np.tile(np.eye(d), (cells.size, 1, 1))
    np.subtract.at(systems, place, terms)
    inverse = np.linalg.pinv(systems, rcond=_SINGULAR)
    which = np.full(cv.cells, -1, dtype=np.int64)
    which[cells] = np.arange(cells.size)
    which = which[rows]
    values, changed = values.copy(), which >= 0
    values[changed] = np.einsum("nij,nj->ni", inverse[which[changed]], values[changed])
    return values


def _excess(matrices: FlowMatrices) -> Array:
    """Return how much more than a half of the value across is in that at a side, times two; 0 where cells are even."""
    cv, sides = matrices.volumes, matrices.operators.sides
    normals, ways = cv.normals[sides.face], cv.ways[sides.face]
    first = np.einsum("ij,ij->i", cv.arms[sides.face], normals)
    second = np.einsum("ij,ij->i", ways, normals) - first
    found = sides.sign * (first - second) / (first + second)
    return np.where(sides.outside | (np.abs(found) < _EVEN), 0.0, np.clip(found, -1.0, 1.0))
