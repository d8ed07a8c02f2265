"""Kernels of the products of a sparse matrix: one row of ``A x``, alone or with what a solver wants beside it.

With several systems, ``x`` has a component for each, and an entry of the matrix is loaded once for all of them
(the generalised product of the portable LES code: 27 flops for 108 bytes with three, where one has 9 for 76).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = [
    "spmm",
    "spmm_dot",
    "spmm_residual",
    "spmv",
    "spmv_dot",
    "spmv_residual",
]


@kernel
def spmv(a: Read, x: Read, y: Write):
    """One row of ``y = A x``."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


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
    total = b[0]
    for j in range(len(a)):
        total -= a[j] * x[j]
    r[0] = total


@kernel
def spmm(a: Read, x: Read, y: Write, *, systems: Const[int]):
    """One row of ``Y = A X``, several vectors at once."""
    total = zeros(systems)
    for j in range(len(a)):
        for k in range(systems):
            total[k] += a[j] * x[j][k]
    for k in range(systems):
        y[k] = total[k]


@kernel
def spmm_dot(a: Read, x: Read, own: Read, y: Write, result: Inc, *, systems: Const[int]):
    """One row of ``Y = A X``, and its part of ``result_k += x_k . y_k``."""
    total = zeros(systems)
    for j in range(len(a)):
        for k in range(systems):
            total[k] += a[j] * x[j][k]
    for k in range(systems):
        y[k] = total[k]
        result[k] += own[k] * total[k]


@kernel
def spmm_residual(a: Read, x: Read, b: Read, r: Write, *, systems: Const[int]):
    """One row of ``R = B - A X``."""
    total = zeros(systems)
    for k in range(systems):
        total[k] = b[k]
    for j in range(len(a)):
        for k in range(systems):
            total[k] -= a[j] * x[j][k]
    for k in range(systems):
        r[k] = total[k]
