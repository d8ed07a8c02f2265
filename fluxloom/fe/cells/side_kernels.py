r"""Kernels of what flows through faces of the boundary, one face each.

A face is the image of a reference cell of one dimension less under the map of its corners, ``x(xi) = sum_c N_c(xi)
x_c``. With its shape functions ``phi_i``, the traces of those of the cell behind it, and weights ``w_q``

.. math:: l_i = \sum_q w_q \, s_q \, \phi_i(q) \, g(q), \quad
   s = |\partial x / \partial \xi| \text{ in the plane}, \quad
   s = |\partial x / \partial \xi \times \partial x / \partial \eta| \text{ in space}

Constants: ``phi[q][i]`` of the shape functions, ``corner[q][c][b]`` gradients of those of the corners, ``weight[q]``;
``n`` shape functions, ``d`` dimensions of the mesh. Arguments: ``x[c]`` corners, and ``free[i]``, 1 or 0 for a degree
of freedom whose value is prescribed.

Source: T. J. R. Hughes: *The Finite Element Method*, Prentice Hall 1987, section 2.5, the term of the natural boundary
condition.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import rolled, sqrt, zeros

__all__ = ["side_load", "side_point_load"]


@func
def extent(x, corner, side, d):
    """``s = |dx/dxi|`` in the plane, ``|dx/dxi x dx/deta|`` in space, of one point; ``side`` is room for the tangents.

    ``side[d b + a] = dx_a / dxi_b = sum_c x_ca dN_c / dxi_b``.
    """
    for b in range(d - 1):
        for a in range(d):
            side[d * b + a] = 0.0
            for c in range(len(corner)):
                side[d * b + a] += x[c][a] * corner[c][b]
    square = 0.0
    if d == 2:
        square = side[0] * side[0] + side[1] * side[1]
    else:
        for a in range(3):
            r = (a + 1) % 3
            s = (a + 2) % 3
            normal = side[r] * side[3 + s] - side[s] * side[3 + r]
            square += normal * normal
    return sqrt(square)


@func
def add_side_load(x, g, free, load, phi, corner, weight, n, d, pointwise):
    """``l_i += free_i sum_q w_q s_q phi_i(q) g``; ``pointwise``: 1 for ``g[q]``, 0 for ``g[0]`` at all points."""
    side = zeros(d * (d - 1))
    total = zeros(n)
    for q in range(len(weight)):
        part = extent(x, corner[q], side, d)
        value = weight[q] * part * (g[q] if pointwise == 1 else g[0])
        for i in rolled(n):
            total[i] += phi[q][i] * value
    for i in rolled(n):
        load[i] += free[i] * total[i]


@kernel
def side_load(
    x: Read, g: Read, free: Read, load: Inc,
    *, phi: Const[list[list[float]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``l_i += free_i sum_q w_q s_q phi_i(q) g``: the load of one value ``g[0]`` on the whole face."""
    add_side_load(x, g, free, load, phi, corner, weight, n, d, 0)


@kernel
def side_point_load(
    x: Read, g: Read, free: Read, load: Inc,
    *, phi: Const[list[list[float]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``l_i += free_i sum_q w_q s_q phi_i(q) g_q``: the load of values at the points of the rule."""
    add_side_load(x, g, free, load, phi, corner, weight, n, d, 1)
