"""Sums over the populations of a cell, written for the kernel language; and the rest of a pass that collides nothing.

What is stored is ``g_i = U (f_i - w_i)``, with the unit ``U`` of `fluxloom.lbm.units`. The sums are ``A = sum g_i =
U (rho - 1)`` and ``J = sum c_i g_i = U rho u``, so that ``U rho = U + A``.
"""

from __future__ import annotations

from typing import Any

from fluxloom.kernel.frontend import Func, func
from fluxloom.lbm.lattices import Lattice

__all__ = ["along", "pair_sums", "plain_sums", "product", "whole_weights"]


@func
def along(c, v):
    """Product of a lattice velocity of components -1, 0 and 1 with a vector; the fastest axis comes first."""
    value = 0.0
    terms = 0
    for b in range(len(c)):
        a = len(c) - 1 - b
        if c[a] != 0:
            if terms > 0:
                value = value + v[a] if c[a] > 0 else value - v[a]
            elif c[a] > 0:
                value = v[a]
            else:
                value = -v[a]
            terms += 1
    return value


@func
def product(a, b):
    """Product of two vectors."""
    value = a[0] * b[0]
    for i in range(1, len(a)):
        value += a[i] * b[i]
    return value


def pair_sums(lattice: Lattice) -> Func[..., Any]:
    """Return ``prepare`` for operators on pairs: ``g_k``, ``g_k'`` become their sum and their difference."""
    q, velocities, axes = lattice.q, lattice.velocities, lattice.dimensions

    @func
    def pairs(g, j):
        above = g[0]
        for k in range(1, q, 2):
            both = g[k] + g[k + 1]
            g[k + 1] = g[k] - g[k + 1]
            g[k] = both
            above += both
        for a in range(axes):
            terms = 0
            for k in range(1, q, 2):
                if velocities[k][a] != 0:
                    if terms == 0:
                        j[a] = g[k + 1] if velocities[k][a] > 0 else -g[k + 1]
                    else:
                        j[a] = j[a] + g[k + 1] if velocities[k][a] > 0 else j[a] - g[k + 1]
                    terms += 1
        return above

    return pairs


def plain_sums(lattice: Lattice) -> Func[..., Any]:
    """Return ``prepare`` that leaves the populations as they are."""
    q, velocities, axes = lattice.q, lattice.velocities, lattice.dimensions

    @func
    def sums(g, j):
        above = g[0]
        for k in range(1, q, 2):
            above += g[k] + g[k + 1]
        for a in range(axes):
            terms = 0
            for k in range(1, q, 2):
                if velocities[k][a] != 0:
                    one = g[k] - g[k + 1]
                    if terms == 0:
                        j[a] = one if velocities[k][a] > 0 else -one
                    else:
                        j[a] = j[a] + one if velocities[k][a] > 0 else j[a] - one
                    terms += 1
        return above

    return sums


def whole_weights(lattice: Lattice) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...], float]:
    """Return the velocities, the weights over the last one, which are whole numbers, and the last weight."""
    last = lattice.weights[-1]
    return lattice.velocities, tuple(float(round(weight / last)) for weight in lattice.weights), last
