r"""Kernels of subscales of the pressure that are followed in time, on the edges of triangles and tetrahedra.

With ``e_IJ = L_IJ (p_J - p_I) - G_IJ . pi_J + grad_IJ . pi_I``, what the pressure has beyond its projected slope, the
subscales of `fluxloom.fe.edges.flow` are ``tau_IJ e_IJ`` at once; here they have a memory,

.. math:: \dot s_{IJ} = e_{IJ} - \rho_{IJ} s_{IJ}, \quad \rho = c_1 \nu / h^2 + c_2 |u| / h, \quad
   0 = \sum_J \nabla_{IJ} \cdot (u_J - u_I) + \sum_J s_{IJ}

whose steady state is ``e_IJ / rho_IJ`` with the mean ``rho`` of an edge. ``s_IJ = -s_JI``. A step takes
``s^{n+1} = a s^n + w (e^n + e^{n+1})`` with ``k = dt rho / 2``, ``a = 1 / (1 + 2k + 2k^2)``, ``w = dt (1 + k) a / 2``
(second order, without overshoot however large ``k`` is, and with that steady state). The system of the pressure has
``pi^n`` for ``pi^{n+1}``, as its matrix has neighbours alone; what that leaves out of ``s`` is made good as soon as the
new slope is there.

Sources: R. Codina, J. Principe, O. Guasch, S. Badia, Computer Methods in Applied Mechanics and Engineering 196 (2007)
2413-2430 (time dependent subscales); S. Badia, R. Codina, SIAM Journal on Numerical Analysis 47 (2009) 2052-2071 (why
small steps ask for them).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Max, Read, Write
from fluxloom.fe.edges.flow import excess, length
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import abs, max

__all__ = ["leftover", "relaxation_rate", "seeded", "tracked", "tracked_continuity", "tracked_fill"]


@func
def memory(dt, rate):
    """``a = 1 / (1 + 2 k + 2 k^2)``, ``k = dt rho / 2``: what is left of a subscale after a step."""
    k = 0.5 * dt * rate
    return 1.0 / (1.0 + 2.0 * k + 2.0 * k * k)


@func
def weight(dt, rate):
    """``w = dt (1 + k) / 2 (1 + 2 k + 2 k^2)``, ``k = dt rho / 2``: what each end of a step adds to a subscale."""
    k = 0.5 * dt * rate
    return 0.5 * dt * (1.0 + k) / (1.0 + 2.0 * k + 2.0 * k * k)


@kernel
def relaxation_rate(
    u: Read, before: Read, nu: Read, size: Read, rate: Write,
    *, d: Const[int], factor: float, viscous: float, convective: float,
):  # fmt: skip
    """``rate = (c_1 nu / h^2 + c_2 (|u^n| + |u^{n+1}|) / 2 h) / factor``: ``rho`` with the mean speed of the step."""
    speed = 0.5 * (length(u, d) + length(before, d))
    rate[0] = (viscous * nu[0] / (size[0] * size[0]) + convective * speed / size[0]) / factor


@kernel
def tracked_fill(k: Read, rate: Read, rate_own: Read, free: Read, free_own: Read, dt: Read, h: Write, diagonal: Write):
    """A row of the pressure matrix ``H_IJ = (w_IJ + dt / 2) L_IJ``, and its diagonal ``H_II = -sum_J H_IJ``."""
    total = 0.0
    for j in range(len(k)):
        value = (weight(dt[0], 0.5 * (rate[j] + rate_own[0])) + 0.5 * dt[0]) * k[j]
        total -= value
        h[j] = free_own[0] * free[j] * value
    diagonal[0] = total


@kernel
def seeded(k: Read, rate: Read, rate_own: Read, r: Read, r_own: Read, dt: Read, s: Write):
    """``s_IJ = (w_IJ + dt / 2) L_IJ (r_J - r_I)``: subscales whose sum is what the matrix makes of ``r``."""
    for j in range(len(k)):
        share = weight(dt[0], 0.5 * (rate[j] + rate_own[0])) + 0.5 * dt[0]
        s[j] = share * k[j] * (r[j] - r_own[0])


@kernel
def tracked_continuity(
    edge: Read, u: Read, own: Read, p: Read, p_own: Read, rate: Read, rate_own: Read, slope: Read, slope_own: Read,
    free: Read, dt: Read, s: RW, b: Write, *, d: Const[int],
):  # fmt: skip
    """``b_I = -sum_J [grad_IJ . (u_J - u_I) + a s_IJ + 2 w e_IJ]`` for the rise of ``p``; ``s = a s + w e``.

    The other ``w e``, that of the end of the step, is added to ``s`` by `tracked`.
    """
    total = 0.0
    for j in range(len(edge)):
        mean = 0.5 * (rate[j] + rate_own[0])
        part = weight(dt[0], mean) * excess(edge[j], p[j], p_own[0], slope[j], slope_own, d)
        half = memory(dt[0], mean) * s[j] + part
        for a in range(d):
            total += edge[j][1 + d * d + a] * (u[j][a] - own[a])
        total += half + part
        s[j] = half
    b[0] = -free[0] * total


@kernel
def tracked(
    edge: Read, p: Read, p_own: Read, rate: Read, rate_own: Read, slope: Read, slope_own: Read, before: Read, s: RW,
    *, d: Const[int],
):  # fmt: skip
    """``s_IJ = s_IJ + w e_IJ`` with the pressure at the end of the step before, whose length is ``before``."""
    for j in range(len(edge)):
        part = excess(edge[j], p[j], p_own[0], slope[j], slope_own, d)
        s[j] += weight(before[0], 0.5 * (rate[j] + rate_own[0])) * part


@kernel
def leftover(h: Read, rise: Read, b: Read, worst: Max):
    """``worst = max_I |b_I - sum_J H_IJ r_J|``: what the pressure solver has left of continuity in a point's volume."""
    total = b[0]
    for j in range(len(h)):
        total -= h[j] * rise[j]
    worst[0] = max(worst[0], abs(total))
