"""Kernels of the products of a sparse matrix: one row of ``A x``, alone or with what a solver wants beside it.

With several systems, ``x`` has a component for each, and an entry of the matrix is loaded once for all of them
(the generalised product of the portable LES code: 27 flops for 108 bytes with three, where one has 9 for 76).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = [
    "add_row",
    "add_rows",
    "begin_rows",
    "less_row",
    "less_rows",
    "spmm",
    "spmm_dot",
    "spmm_residual",
    "spmv",
    "spmv_dot",
    "spmv_residual",
]


@func
def add_row(a, x, total):
    """``total + sum_j a_j x_j`` of one row."""
    for j in range(len(a)):
        total += a[j] * x[j]
    return total


@func
def less_row(a, x, total):
    """``total - sum_j a_j x_j`` of one row."""
    for j in range(len(a)):
        total -= a[j] * x[j]
    return total


@func
def add_rows(a, x, total, systems):
    """``total_k += sum_j a_j x_jk`` of one row, for several vectors."""
    for j in range(len(a)):
        for k in range(systems):
            total[k] += a[j] * x[j][k]


@func
def less_rows(a, x, total, systems):
    """``total_k -= sum_j a_j x_jk`` of one row, for several vectors."""
    for j in range(len(a)):
        for k in range(systems):
            total[k] -= a[j] * x[j][k]


@func
def begin_rows(start, total, systems):
    """``total_k = start_k``."""
    for k in range(systems):
        total[k] = start[k]


@kernel
def spmv(a: Read, x: Read, y: Write):
    """One row of ``y = A x``, ``y_i = sum_j a_ij x_j``."""
    y[0] = add_row(a, x, 0.0)


@kernel
def spmv_dot(a: Read, x: Read, own: Read, y: Write, result: Inc):
    """One row of ``y = A x``, and its part of ``result += x . y``."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total
    result[0] += own[0] * total


@kernel
def spmv_residual(a: Read, x: Read, b: Read, r: Write):
    """One row of ``r = b - A x``."""
    r[0] = less_row(a, x, b[0])


@kernel
def spmm(a: Read, x: Read, y: Write, *, systems: Const[int]):
    """One row of ``Y = A X``, ``y_ik = sum_j a_ij x_jk``, several vectors at once."""
    total = zeros(systems)
    add_rows(a, x, total, systems)
    for k in range(systems):
        y[k] = total[k]


@kernel
def spmm_dot(a: Read, x: Read, own: Read, y: Write, result: Inc, *, systems: Const[int]):
    """One row of ``Y = A X``, and its part of ``result_k += x_k . y_k``."""
    total = zeros(systems)
    add_rows(a, x, total, systems)
    for k in range(systems):
        y[k] = total[k]
        result[k] += own[k] * total[k]


@kernel
def spmm_residual(a: Read, x: Read, b: Read, r: Write, *, systems: Const[int]):
    """One row of ``R = B - A X``."""
    total = zeros(systems)
    begin_rows(b, total, systems)
    less_rows(a, x, total, systems)
    for k in range(systems):
        r[k] = total[k]
