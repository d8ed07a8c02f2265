r"""Collision by orders of moments: MRT, regularised BGK, and BGK and TRT with the Smagorinsky model.

Moments are those of Hermite polynomials, which are orthogonal with the weights of the lattice. The relaxation of all
moments of one order with one rate needs no basis: the part :math:`P_n f` of the populations in that order is a
projection.

.. math:: f' = \sum_n (1 - \omega_n) P_n f + \omega_n P_n f^{eq}, \quad
   P_2 f = \tfrac{9}{2} w (c c - \tfrac{1}{3} I) : M, \quad M = \sum_i (c_i c_i - \tfrac{1}{3} I) f_i

Orders 0 and 1 are conserved. Order 2 is split into its trace (rate of bulk viscosity) and the rest (shear viscosity).
What is left of the even part after orders 0 and 2 has one rate, and what is left of the odd part after order 1 has
one: only ``M`` has to be computed. Equilibrium is that of BGK, of orders 0 to 2. With all rates equal this is BGK;
with the last two equal to one it is the regularised BGK of J. Latt, B. Chopard, Mathematics and Computers in
Simulation 72 (2006) 165-168. Basis: X. Shan, X.-F. Yuan, H. Chen, Journal of Fluid Mechanics 550 (2006) 413-441;
multiple rates: D. d'Humieres, I. Ginzburg, M. Krafczyk, P. Lallemand, L.-S. Luo, Philosophical Transactions A 360
(2002) 437-451.

With a force, ``M^{eq} = V V / R``, ``\Phi = (V F + F V) / 2 R`` and ``N = M - M^{eq} + \Phi``, Guo's force term becomes

.. math:: M' = M^{eq} + \Phi + (1 - \omega) N

Subgrid model (S. Hou, J. Sterling, S. Chen, G. Doolen, Fields Institute Communications 6 (1996) 151-166): the strain
rate is ``S = -3 N / (2 \rho \tau)``, so ``\tau = \tau_0 + 3 C^2 |S|``, ``|S| = \sqrt{2 S : S}``, is a quadratic
equation,

.. math:: \tau = \tfrac{1}{2} \left( \tau_0 + \sqrt{\tau_0^2 + 18 \sqrt 2\, C^2 |N| / \rho} \right)

The population at rest and those along the axes are what mass and momentum leave for them: rates that differ from cell
to cell make no trend.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import sqrt, zeros
from fluxloom.lbm.moments import along

__all__ = ["Subgrid", "relax_orders", "relaxation_time"]


@dataclass(frozen=True)
class Subgrid:
    """Which rates follow that of the shear, which a subgrid model changes from cell to cell."""

    bulk: bool = True
    even: bool = True
    odd: bool = True


@func
def relaxation_time(strain, time, eddy):
    """``tau = (tau_0 + sqrt(tau_0^2 + 18 sqrt(2) C^2 |N| / rho)) / 2``; ``strain`` is ``|N|^2 / rho^2``."""
    return 0.5 * (time + sqrt(time * time + eddy * sqrt(strain)))


@func
def relax_orders(g, excess, momentum, force, lattice, rates, by):
    r"""Make populations after collision of sums and differences of pairs (`fluxloom.lbm.moments.pair_sums`).

    .. math::
       M' &= M^{eq} + \Phi + (1 - \omega_s) N + (\omega_s - \omega_b) \tfrac{1}{d} \mathrm{tr} N \, I \\
       f_+' &= (1 - \omega_e) f_+ + \omega_e w A
          + \tfrac92 w (c c - \tfrac13 I) : \bigl(M' - (1 - \omega_e) M\bigr) \\
       f_-' &= (1 - \omega_o) f_- + 3 w\, c \cdot (\omega_o J + F)

    ``by`` is the operator, which has a `Subgrid`, or None without a model, and says how the odd rate follows.
    """
    axes, least = lattice.dimensions, lattice.least
    m, n, t = zeros(axes, axes), zeros(axes, axes), zeros(axes, axes)
    one = 1.0 / (rates.unit + excess)
    set_stresses(g, excess, m, lattice)
    set_distance(m, momentum, force, one, n, t)
    shear, bulk, odd, even = rates.shear_kept, rates.bulk_kept, rates.half_odd, rates.half_even
    if by.subgrid is not None:
        shear, bulk, odd, even = local_rates(n, one, rates, by)
    trace = n[0][0]
    for a in range(1, axes):
        trace += n[a][a]
    more = (bulk - shear) * (1.0 / axes) * trace
    base = (least - 2.0 * least * even) * excess
    for a in range(axes):
        for b in range(a, axes):
            t[a][b] += shear * n[a][b] - 2.0 * even * m[a][b]
        t[a][a] = 4.5 * least * (t[a][a] + more)
        base -= (1.0 / 3.0) * t[a][a]
        for b in range(a + 1, axes):
            t[a][b] = 9.0 * least * t[a][b]
    leave(g, excess, momentum, force, t, base, odd, even, lattice)


@func
def set_stresses(g, excess, m, lattice):
    """``M_ab = sum_i (c_ia c_ib - delta_ab / 3) g_i``, the upper triangle."""
    for a in range(lattice.dimensions):
        for b in range(a, lattice.dimensions):
            terms = 0
            for k in range(1, lattice.q, 2):
                sign = lattice.velocities[k][a] * lattice.velocities[k][b]
                if sign != 0:
                    if terms > 0:
                        m[a][b] = m[a][b] + g[k] if sign > 0 else m[a][b] - g[k]
                    elif sign > 0:
                        m[a][b] = g[k]
                    else:
                        m[a][b] = -g[k]
                    terms += 1
        m[a][a] -= (1.0 / 3.0) * excess


@func
def set_distance(m, momentum, force, one, n, target):
    """``n = N = M - M_eq + Phi``, ``target = M_eq + Phi``.

    ``M_eq = V V / R``, ``Phi = (V F + F V) / 2 R``, ``V = J + F / 2``.
    """
    axes = len(momentum)
    v = zeros(axes)
    for a in range(axes):
        v[a] = momentum[a]
        if force is not None:
            v[a] += 0.5 * force[a]
    for a in range(axes):
        for b in range(a, axes):
            if force is not None:
                flux, push = v[a] * v[b], 0.5 * (v[a] * force[b] + force[a] * v[b])
                target[a][b] = one * (flux + push)
                n[a][b] = m[a][b] - one * (flux - push)
            else:
                target[a][b] = one * v[a] * v[b]
                n[a][b] = m[a][b] - target[a][b]


@func
def local_rates(n, one, rates, by):
    """``1 - omega_s = 1 - 1 / tau``, ``1 - omega_b``, ``(1 - omega_o) / 2``, ``(1 - omega_e) / 2`` of one cell.

    Those that follow the shear (`Subgrid`) have its rate, or that of the operator's ``half_odd``.
    """
    strain = 0.0
    for a in range(len(n)):
        strain += n[a][a] * n[a][a]
        for b in range(a + 1, len(n)):
            strain += 2.0 * n[a][b] * n[a][b]
    time = relaxation_time(strain * one * one, 1.0 / (1.0 - rates.shear_kept), rates.eddy)
    shear = 1.0 - 1.0 / time
    bulk = shear if by.subgrid.bulk else rates.bulk_kept
    even = 0.5 * shear if by.subgrid.even else rates.half_even
    odd = by.half_odd(shear, time) if by.subgrid.odd else rates.half_odd
    return shear, bulk, odd, even


@func
def form(c, t):
    """``c . T c = sum_a T_aa c_a^2 + sum_{a < b} T_ab c_a c_b``; the upper triangle is doubled off the diagonal."""
    value = 0.0
    terms = 0
    for a in range(len(c)):
        if c[a] != 0:
            value = value + t[a][a] if terms > 0 else t[a][a]
            terms += 1
    for a in range(len(c)):
        for b in range(a + 1, len(c)):
            if c[a] * c[b] != 0:
                value = value + t[a][b] if c[a] * c[b] > 0 else value - t[a][b]
    return value


@func
def leave(g, excess, momentum, force, t, base, odd, even, lattice):
    """``f_k, f_k' = f_+' +- f_-'`` of a pair.

    ``f_0 = A - 2 sum f_+'``, and the axes have the momentum that diagonals leave. See `relax_orders`: ``f_+' = even s +
    a (base + c . T c)``, ``f_-' = odd d + a c X`` with ``a = w_k / w``, ``X = 3 w (omega_o J + F)``, and along an axis
    ``f_-' = c . (J + F) / 2 - sum (c . c_l) f_-,l'`` over the pairs of diagonals.
    """
    axes, q, least = lattice.dimensions, lattice.q, lattice.least
    x, left = zeros(axes), zeros(axes)
    gain = 3.0 * least - 6.0 * least * odd
    for a in range(axes):
        x[a] = gain * momentum[a]
        left[a] = 0.5 * momentum[a]
        if force is not None:
            x[a] += 3.0 * least * force[a]
            left[a] += 0.5 * force[a]
    sums = 0.0
    for i in range(1, q, 2):
        k = q - 1 - i  # diagonals first: the axes get what is left
        c = lattice.velocities[k]
        moving = 0
        for a in range(axes):
            moving += c[a] * c[a]
        waves = even * g[k] + lattice.ratios[k] * (base + form(c, t))
        flows = 0.0
        if moving > 1:
            flows = odd * g[k + 1] + lattice.ratios[k] * along(c, x)
            for a in range(axes):
                if c[a] != 0:
                    left[a] = left[a] - flows if c[a] > 0 else left[a] + flows
        else:
            flows = along(c, left)
        sums += waves
        g[k] = waves + flows
        g[k + 1] = waves - flows
    g[0] = excess - 2.0 * sums
