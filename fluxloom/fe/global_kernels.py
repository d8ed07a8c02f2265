"""Kernels that add the local matrices of Poisson's equation to the entries of a global one.

The sums and their three orders are those of `fluxloom.fe.poisson_kernels`, which describes their arguments. Here what
a cell has is added to entries that it shares with its neighbours, ``matrix[n i + j]`` being that of the pair ``i, j``.
Only ``j >= i`` is computed.

Source: I. Z. Reguly, PhD thesis, Pazmany Peter Catholic University 2014, chapter 3.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.fe.poisson_kernels import formed_entry, store_metrics, stored_entry, sum_points
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import rolled, zeros

__all__ = ["add_matrix_a", "add_matrix_b", "add_matrix_c", "clear_entry", "identity_entry"]


@kernel
def clear_entry(value: Write):
    """``a_ij = 0``, with which a sum begins."""
    value[0] = 0.0


@kernel
def identity_entry(value: Write):
    """``a_ii = 1``, the diagonal of a row of the identity."""
    value[0] = 1.0


@kernel
def add_matrix_a(
    x: Read, kappa: Read, free: Read, matrix: Inc,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``a_ij += free_i free_j sum_q grad phi_i(q) . G_q grad phi_j(q)``: the local matrix of a cell, points outside."""
    total = zeros(n * n)
    sum_points(x, kappa[0], free, slope, corner, weight, total, n, d)
    for i in rolled(n):
        for j in rolled(n):
            matrix[n * i + j] += total[n * i + j]


@kernel
def add_matrix_b(
    x: Read, kappa: Read, free: Read, matrix: Inc,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``a_ij += K_ij`` as `add_matrix_a`, with the metrics ``G_q`` of all points stored before the first entry."""
    g = zeros(len(weight) * d * d)
    store_metrics(x, kappa[0], corner, weight, g, d)
    for i in rolled(n):
        for j in rolled(i, n):
            total = stored_entry(free, slope, weight, g, i, j, d)
            matrix[n * i + j] += total
            if j > i:
                matrix[n * j + i] += total


@kernel
def add_matrix_c(
    x: Read, kappa: Read, free: Read, matrix: Inc,
    *, slope: Const[list[list[list[float]]]], corner: Const[list[list[list[float]]]], weight: Const[list[float]],
    n: Const[int], d: Const[int],
):  # fmt: skip
    """``a_ij += K_ij`` as `add_matrix_a`, with the metric ``G_q`` computed again for each entry."""
    jac = zeros(d * d)
    g = zeros(d * d)
    for i in rolled(n):
        for j in rolled(i, n):
            total = formed_entry(x, kappa[0], free, slope, corner, weight, jac, g, i, j, d)
            matrix[n * i + j] += total
            if j > i:
                matrix[n * j + i] += total
