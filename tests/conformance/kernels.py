"""Kernels that several conformance tests share."""

from __future__ import annotations

import fluxloom as fl
from fluxloom import Const, Inc, Max, Min, Read


@fl.kernel
def flux(w: Read, u: Read, r: Inc, *, n: Const[int]):
    """Weighted difference of every component, added to one side and taken from the other."""
    for k in range(n):
        f = w[0] * (u[0][k] - u[1][k])
        r[0][k] += f
        r[1][k] -= f


@fl.kernel
def flux_scalar(w: Read, u: Read, r: Inc):
    f = w[0] * (u[0] - u[1])
    r[0] += f
    r[1] -= f


@fl.kernel
def uneven(w: Read, u: Read, r: Inc):
    """Different updates of both sides, some components untouched, some conditional."""
    d = u[0][0] - u[1][1]
    r[0][0] += w[0] * d
    r[0][2] -= d * d
    if d > 0.0:
        r[1][1] += w[0]
        r[0][0] += 0.5
    else:
        r[1][1] -= 2.0 * w[0]


@fl.kernel
def matrix_flux(w: Read, u: Read, r: Inc):
    for i in range(2):
        for j in range(3):
            f = w[0] * (u[0][i, j] + (i + 1) * u[1][i, j])
            r[0][i, j] += f
            r[1][i, j] -= (j + 1) * f


@fl.kernel
def one_side(w: Read, u: Read, r: Inc):
    r[0] += w[0] * u[0]
    r[1] -= w[0] * u[1]


@fl.kernel
def each_side(w: Read, r0: Inc, r1: Inc):
    r0[0] += w[0]
    r0[1] += 2.0 * w[0]
    r1[0] -= 3.0 * w[0]
    r1[1] += w[0] * w[0]


@fl.kernel
def extremes(w: Read, u: Read, low: Min, high: Max):
    v = w[0] * u[0][0]
    low[0][0] = min(low[0][0], v)
    high[1][0] = max(high[1][0], v)
    low[1][1] = min(low[1][1], v + u[1][1])
    if v > 0.4:
        high[0][1] = max(high[0][1], 2.0 * v)


@fl.kernel
def counts(c: Read, r: Inc, low: Min, high: Max):
    r[0] += 1
    r[1] += c[0]
    if c[0] > 3:
        low[0] = min(low[0], c[0])
        high[1] = max(high[1], c[0] * 2)


@fl.kernel
def flux_and_sums(w: Read, u: Read, r: Inc, total: Inc, low: Min, high: Max, n: Inc):
    f = w[0] * (u[0][0] - u[1][0])
    r[0][0] += f
    r[1][0] -= f
    r[0][1] += 1.0
    total[0] += f * f
    total[1] += w[0]
    low[0] = min(low[0], f)
    high[0] = max(high[0], f)
    if f > 0.0:
        n[0] += 1
