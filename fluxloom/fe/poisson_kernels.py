r"""Kernels of Poisson's equation ``-div(kappa grad u) = f`` with Lagrange elements, one cell each.

With shape functions ``phi_i``, the map ``x(xi) = sum_c N_c(xi) x_c`` of the corners, ``J = dx / dxi`` and weights
``w_q``, the local matrix and load of a cell are

.. math:: K_{ij} = \sum_q \nabla\phi_i(q)^T G_q \nabla\phi_j(q), \quad
   G_q = \kappa w_q |\det J_q| J_q^{-1} J_q^{-T}, \quad
   l_i = \sum_q w_q |\det J_q| \phi_i(q) f(q)

with gradients in the reference cell. ``G_q``, the metric, is symmetric. There are three orders of the same sums:

- A (`local_matrix_a`): points outside; ``G_q`` is formed once, all entries are updated at every point.
- B (`local_matrix_b`): ``G_q`` of all points is stored first; then entry by entry, written once.
- C (`local_matrix_c`): entry by entry; ``G_q`` is formed again for each, nothing is stored but a sum.

Constants: ``phi[q][i]``, ``slope[q][i][a]`` of the shape functions, ``corner[q][c][a]`` of those of the corners,
``weight[q]``; ``n`` shape functions, ``d`` dimensions. Arguments: ``x[c]`` corners, ``kappa[0]``, and ``free[i]``, 1 or
0 for a degree of freedom whose value is prescribed: its row and column are left out.

Source: I. Z. Reguly, PhD thesis, Pazmany Peter Catholic University 2014, chapter 3.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.fe.cells.cell_map import form, metric, volume
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import rolled, zeros

__all__ = [
    "field_load",
    "formed_entry",
    "identity_diagonal",
    "identity_residual",
    "identity_rows",
    "local_diagonal",
    "local_matrix_a",
    "local_matrix_b",
    "local_matrix_c",
    "local_product",
    "matrix_free_product",
    "point_load",
    "square_error",
    "store_metrics",
    "stored_entry",
    "sum_points",
]


@func
def sum_points(x, kappa, free, slope, corner, weight, total, n, d):
    """``total[n i + j] = K_ij = free_i free_j sum_q grad phi_i(q) . G_q grad phi_j(q)``: points outside; 0 before."""
    jac = zeros(d * d)
    g = zeros(d * d)
    flux = zeros(d)
    for q in range(len(weight)):
        metric(x, corner[q], kappa * weight[q], jac, g, 0, d)
        for i in rolled(n):
            for a in range(d):
                flux[a] = 0.0
                for b in range(d):
                    flux[a] += g[d * a + b] * slope[q][i][b]
            for j in rolled(i, n):
                for a in range(d):
                    total[n * i + j] += flux[a] * slope[q][j][a]
    for i in rolled(n):
        for j in rolled(i, n):
            total[n * i + j] *= free[i] * free[j]
            total[n * j + i] = total[n * i + j]


@func
def store_metrics(x, kappa, corner, weight, g, d):
    """``g[d d q + d a + b] = (G_q)_ab``, ``G_q = kappa w_q |det J_q| J_q^-1 J_q^-T``, of all points."""
    jac = zeros(d * d)
    for q in range(len(weight)):
        metric(x, corner[q], kappa * weight[q], jac, g, q * d * d, d)


@func
def stored_entry(free, slope, weight, g, i, j, d):
    """``K_ij = free_i free_j sum_q grad phi_i(q) . G_q grad phi_j(q)``, from the metrics of all points."""
    total = 0.0
    for q in rolled(len(weight)):
        total += form(slope[q][i], slope[q][j], g, q * d * d, d)
    return total * (free[i] * free[j])


@func
def formed_entry(x, kappa, free, slope, corner, weight, jac, g, i, j, d):
    """``K_ij = free_i free_j sum_q grad phi_i(q) . G_q grad phi_j(q)``, the metric formed at each point.

    ``jac`` and ``g`` are room for it.
    """
    total = 0.0
    for q in range(len(weight)):
        metric(x, corner[q], kappa * weight[q], jac, g, 0, d)
        total += form(slope[q][i], slope[q][j], g, 0, d)
    return total * (free[i] * free[j])


@kernel
def local_matrix_a(
    x: Read, kappa: Read, free: Read, matrix: Write,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """Local matrix, ``matrix[n i + j] = K_ij``: points outside."""
    total = zeros(n * n)
    sum_points(x, kappa[0], free, slope, corner, weight, total, n, d)
    for i in rolled(n):
        for j in rolled(n):
            matrix[n * i + j] = total[n * i + j]


@kernel
def local_matrix_b(
    x: Read, kappa: Read, free: Read, matrix: Write,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``matrix[n i + j] = K_ij``, with the metrics of all points stored before the first entry."""
    g = zeros(len(weight) * d * d)
    store_metrics(x, kappa[0], corner, weight, g, d)
    for i in rolled(n):
        for j in rolled(i, n):
            total = stored_entry(free, slope, weight, g, i, j, d)
            matrix[n * i + j] = total
            matrix[n * j + i] = total


@kernel
def local_matrix_c(
    x: Read, kappa: Read, free: Read, matrix: Write,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``matrix[n i + j] = K_ij``, with the metric computed again for each entry."""
    jac = zeros(d * d)
    g = zeros(d * d)
    for i in rolled(n):
        for j in rolled(i, n):
            total = formed_entry(x, kappa[0], free, slope, corner, weight, jac, g, i, j, d)
            matrix[n * i + j] = total
            matrix[n * j + i] = total


@kernel
def local_product(matrix: Read, x: Read, y: Inc, *, sign: float, n: Const[int]):
    """``y += sign K x`` of one cell."""
    for i in rolled(n):
        total = 0.0
        for j in rolled(n):
            total += matrix[n * i + j] * x[j]
        y[i] += sign * total


@kernel
def matrix_free_product(
    x: Read, kappa: Read, u: Read, taken: Read, given: Read, y: Inc,
    *, sign: float, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]],
    weight: Const[list[float]], n: Const[int], d: Const[int],
):  # fmt: skip
    """``y_i += sign given_i sum_j K_ij taken_j u_j`` of one cell, no matrix: the flux at each point, then i."""
    jac = zeros(d * d)
    g = zeros(d * d)
    grad = zeros(d)
    flux = zeros(d)
    value = zeros(n)
    total = zeros(n)
    for i in rolled(n):
        value[i] = taken[i] * u[i]
    for q in range(len(weight)):
        metric(x, corner[q], kappa[0] * weight[q], jac, g, 0, d)
        for a in range(d):
            grad[a] = 0.0
        for j in rolled(n):
            for a in range(d):
                grad[a] += slope[q][j][a] * value[j]
        for a in range(d):
            flux[a] = 0.0
            for b in range(d):
                flux[a] += g[d * a + b] * grad[b]
        for i in rolled(n):
            for a in range(d):
                total[i] += flux[a] * slope[q][i][a]
    for i in rolled(n):
        y[i] += sign * given[i] * total[i]


@kernel
def local_diagonal(
    x: Read, kappa: Read, free: Read, diagonal: Inc,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``a_ii += free_i K_ii``, ``K_ii = sum_q grad phi_i(q) . G_q grad phi_i(q)``, of one cell."""
    jac = zeros(d * d)
    g = zeros(d * d)
    total = zeros(n)
    for q in range(len(weight)):
        metric(x, corner[q], kappa[0] * weight[q], jac, g, 0, d)
        for i in rolled(n):
            total[i] += form(slope[q][i], slope[q][i], g, 0, d)
    for i in rolled(n):
        diagonal[i] += free[i] * total[i]


@func
def add_load(x, f, free, load, phi, corner, weight, n, d, pointwise):
    """``l_i += free_i sum_q w_q |det J_q| phi_i(q) f(q)``.

    ``pointwise``: 1 for ``f(q) = f[q]``, 0 for ``f(q) = sum_j phi_j(q) f_j``.
    """
    jac = zeros(d * d)
    total = zeros(n)
    for q in range(len(weight)):
        value = 0.0
        if pointwise == 1:
            value = f[q]
        else:
            for j in rolled(n):
                value += phi[q][j] * f[j]
        part = volume(x, corner[q], weight[q], jac, d)
        value *= part
        for i in rolled(n):
            total[i] += phi[q][i] * value
    for i in rolled(n):
        load[i] += free[i] * total[i]


@kernel
def field_load(
    x: Read, f: Read, free: Read, load: Inc,
    *, phi: Const[list[list[float]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``l_i += free_i sum_j M_ij f_j``, ``M_ij = sum_q w_q |det J_q| phi_i(q) phi_j(q)``.

    The load of ``f = sum_j f_j phi_j``, values at the degrees of freedom.
    """
    add_load(x, f, free, load, phi, corner, weight, n, d, 0)


@kernel
def point_load(
    x: Read, f: Read, free: Read, load: Inc,
    *, phi: Const[list[list[float]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``l_i += free_i sum_q w_q |det J_q| phi_i(q) f_q``: the load of values at the points of the rule."""
    add_load(x, f, free, load, phi, corner, weight, n, d, 1)


@kernel
def square_error(
    x: Read, u: Read, exact: Read, result: Inc,
    *, phi: Const[list[list[float]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``result += sum_q w_q |det J_q| (sum_j phi_j(q) u_j - exact_q)^2``: part of ``int (u - exact)^2``."""
    jac = zeros(d * d)
    for q in range(len(weight)):
        value = -exact[q]
        for j in rolled(n):
            value += phi[q][j] * u[j]
        part = volume(x, corner[q], weight[q], jac, d)
        result[0] += value * value * part


@kernel
def identity_rows(x: Read, free: Read, y: Write):
    """``y_i = (1 - free_i) x_i``: what ``y = A x`` begins with, and a load: the value where it is prescribed."""
    y[0] = (1.0 - free[0]) * x[0]


@kernel
def identity_residual(x: Read, b: Read, free: Read, r: Write):
    """``r_i = b_i - (1 - free_i) x_i``: what ``r = b - A x`` begins with."""
    r[0] = b[0] - (1.0 - free[0]) * x[0]


@kernel
def identity_diagonal(free: Read, diagonal: Write):
    """``a_ii = 1 - free_i``, with which a diagonal begins."""
    diagonal[0] = 1.0 - free[0]
