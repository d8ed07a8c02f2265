"""Sums over the populations of a cell, written for the kernel language.

What is stored is ``g_i = U (f_i - w_i)``, with the unit ``U`` of `fluxloom.lbm.units`. The sums are ``A = sum g_i =
U (rho - 1)`` and ``J = sum c_i g_i = U rho u``, so that ``U rho = U + A``.

Source: P. A. Skordos, Physical Review E 48 (1993) 4823-4842 (populations less their weights).
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func

__all__ = ["along", "pair_sums", "plain_sums", "product"]


@func
def along(c, v):
    """``c . v = sum_a c_a v_a`` of a lattice velocity of components -1, 0 and 1; the fastest axis comes first."""
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
    """``a . b = sum_i a_i b_i``."""
    value = a[0] * b[0]
    for i in range(1, len(a)):
        value += a[i] * b[i]
    return value


@func
def pair_sums(g, momentum, lattice):
    """Set ``J = sum_i c_i g_i``, return ``A = sum_i g_i``; ``g_k``, ``g_k'`` become ``g_k + g_k'``, ``g_k - g_k'``."""
    excess = g[0]
    for k in range(1, lattice.q, 2):
        both = g[k] + g[k + 1]
        g[k + 1] = g[k] - g[k + 1]
        g[k] = both
        excess += both
    for a in range(lattice.dimensions):
        terms = 0
        for k in range(1, lattice.q, 2):
            c = lattice.velocities[k]
            if c[a] != 0:
                if terms == 0:
                    momentum[a] = g[k + 1] if c[a] > 0 else -g[k + 1]
                else:
                    momentum[a] = momentum[a] + g[k + 1] if c[a] > 0 else momentum[a] - g[k + 1]
                terms += 1
    return excess


@func
def plain_sums(g, momentum, lattice):
    """Set ``J = sum_i c_i g_i``, return ``A = sum_i g_i``; the populations stay as they are."""
    excess = g[0]
    for k in range(1, lattice.q, 2):
        excess += g[k] + g[k + 1]
    for a in range(lattice.dimensions):
        terms = 0
        for k in range(1, lattice.q, 2):
            c = lattice.velocities[k]
            if c[a] != 0:
                one = g[k] - g[k + 1]
                if terms == 0:
                    momentum[a] = one if c[a] > 0 else -one
                else:
                    momentum[a] = momentum[a] + one if c[a] > 0 else momentum[a] - one
                terms += 1
    return excess
