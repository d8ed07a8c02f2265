r"""Collision of central moments: those of the velocity relative to that of the fluid.

.. math:: \kappa_{abc} = \sum_i (c_{iz} - u_z)^a (c_{iy} - u_y)^b (c_{ix} - u_x)^c f_i, \quad a, b, c \in \{0, 1, 2\}

on lattices that are products of three velocities along each axis. Equilibrium is that of a Maxwellian, of all orders
that the lattice has: ``\rho`` times a third for each index 2, zero with an index 1. The trace of the stresses, the
other stresses, odd and higher even orders have a rate each.

M. Geier, A. Greiner, J. G. Korvink, Physical Review E 73 (2006) 066705; A. De Rosis, K. H. Luo, Physical Review E 99
(2019) 013301; force: L. Fei, K. H. Luo, Physical Review E 96 (2017) 053307.

Transforms go axis by axis (M. Geier, M. Schoenherr, A. Pasquali, M. Krafczyk, Computers & Mathematics with Applications
70 (2015) 507-547). What is transformed is the distance from the weights: with ``K`` the moment of the weights at
``u = 0`` (a constant), a line ``f_-, f_0, f_+`` with ``s = f_+ + f_-``, ``d = f_+ - f_-`` becomes

.. math:: \kappa_0 = s + f_0, \quad \kappa_1 = d - u (\kappa_0 + K), \quad \kappa_2 = s - u (d + \kappa_1)

and back ``d = u (\kappa_0 + K) + \kappa_1``, ``s = u (d + \kappa_1) + \kappa_2``, ``f_0 = \kappa_0 - s``. In these
terms equilibrium is ``A`` times the moments of the weights. With a force the moments are taken about ``u``, which has
half of it: those with one odd index are ``\phi = F / 2`` times the moments of the other axes below equilibrium before
collision, and as much above it after.
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.collisions.orders import relaxation_time

__all__ = ["relax_central", "relax_stresses", "set_velocity", "shift", "to_moments", "to_populations"]


@func
def to_moments(g, m, u, table, unit):
    """``kappa_0 = s + f_0``, ``kappa_1 = d - u (kappa_0 + K)``, ``kappa_2 = s - u (d + kappa_1)``, axis by axis.

    ``s = f_+ + f_-``, ``d = f_+ - f_-`` of a line; ``K`` is the moment of the weights (``offsets``) in the unit of
    storage. ``table`` is a `ProductMoments`.
    """
    for i in range(len(m)):
        m[i] = g[table.places[i]]
    for a in range(table.axes):
        for n in range(len(m) // 3):
            low = table.starts[a][n]
            mid, high = low + table.steps[a], low + 2 * table.steps[a]
            s, d = m[high] + m[low], m[high] - m[low]
            m[low] = s + m[mid]
            full = m[low]
            if table.offsets[a][n] > 0.0:
                full += table.offsets[a][n] * unit
            m[mid] = d - u[a] * full
            m[high] = s - u[a] * (d + m[mid])


@func
def to_populations(m, g, u, table, unit):
    """``d = u (kappa_0 + K) + kappa_1``, ``s = u (d + kappa_1) + kappa_2``, ``f_0 = kappa_0 - s``.

    ``f_+- = (s +- d) / 2``. The transform of `to_moments` backwards, the last axis first; the moments are lost.
    """
    for r in range(table.axes):
        a = table.axes - 1 - r
        for n in range(len(m) // 3):
            low = table.starts[a][n]
            mid, high = low + table.steps[a], low + 2 * table.steps[a]
            full = m[low]
            if table.offsets[a][n] > 0.0:
                full += table.offsets[a][n] * unit
            d = u[a] * full + m[mid]
            s = u[a] * (d + m[mid]) + m[high]
            m[mid] = m[low] - s
            m[high] = 0.5 * (s + d)
            m[low] = 0.5 * (s - d)
    for i in range(len(m)):
        g[table.places[i]] = m[i]


@func
def shift(m, force, table, lowest):
    """``kappa_i += F_a / 2 prod_{b != a} K_b`` of moments with one odd index, along ``a``.

    Only those from the order ``lowest`` up, and only where there is a force. ``K_b`` is the moment of the weights along
    the axis ``b`` (``halves``).
    """
    if force is not None:
        for i in range(len(m)):
            if table.along[i] >= 0 and table.orders[i] >= lowest:
                m[i] += table.halves[i] * force[table.along[i]]


@func
def relax_stresses(m, excess, u, one, table, rates, by):
    r"""Relax the moments of second order, off the diagonal ``kappa_ab' = (1 - omega_s) kappa_ab``.

    .. math::
       \kappa_{aa}' = \tfrac{A}{3} + (1 - \omega_s) (N_a - \bar N) + (1 - \omega_b) \bar N
       - (1 - \tfrac{\omega_s}{2}) (E_a - \bar E) - (1 - \tfrac{\omega_b}{2}) \bar E, \quad
       N_a = \kappa_{aa} - \tfrac{A}{3}

    with means over the axes. ``by`` is the operator: with ``has_subgrid`` there is a subgrid model, which the rate of
    the trace follows where ``bulk`` is None. With ``corrected`` the error of the diagonal stresses is taken out, which
    is there because ``c^3 = c`` on the lattice (M. Geier et al. 2015, here for any number of axes): ``E_a = 3 \rho
    u_a^2 D_a``, where ``D_a = -3 (\omega_s (N_a - mean N) + \omega_b mean N) / 2 \rho`` is the gradient of ``u_a``
    along its own axis.
    """
    axes = table.axes
    shear, bulk = rates.shear_kept, rates.bulk_kept
    n, c = zeros(axes), zeros(axes)
    for a in range(axes):
        n[a] = m[2 * table.steps[a]] - (1.0 / 3.0) * excess
    if by.has_subgrid:
        strain = 0.0
        for a in range(axes):
            strain += n[a] * n[a]
            for b in range(a + 1, axes):
                strain += 2.0 * m[table.steps[a] + table.steps[b]] * m[table.steps[a] + table.steps[b]]
        shear = 1.0 - 1.0 / relaxation_time(strain * one * one, 1.0 / (1.0 - rates.shear_kept), rates.eddy)
        if by.bulk is None:
            bulk = shear
    trace = n[0]
    for a in range(1, axes):
        trace += n[a]
    mean = (1.0 / axes) * trace
    for a in range(axes):
        c[a] = shear * (n[a] - mean) + bulk * mean
    if by.corrected:
        total = 0.0
        for a in range(axes):
            n[a] = -4.5 * u[a] * u[a] * ((1.0 - shear) * (n[a] - mean) + (1.0 - bulk) * mean)
            total += n[a]
        total = (1.0 / axes) * total
        for a in range(axes):
            c[a] -= (0.5 + 0.5 * shear) * (n[a] - total) + (0.5 + 0.5 * bulk) * total
    for a in range(axes):
        m[2 * table.steps[a]] = c[a] + (1.0 / 3.0) * excess
        for b in range(a + 1, axes):
            m[table.steps[a] + table.steps[b]] = shear * m[table.steps[a] + table.steps[b]]


@func
def set_velocity(u, momentum, force, one):
    """``u = J / R``, or ``(J + F / 2) / R`` with a force; ``one`` is ``1 / R``, ``R = U + A``."""
    for a in range(len(u)):
        u[a] = one * momentum[a] if force is None else one * (momentum[a] + 0.5 * force[a])


@func
def relax_others(m, excess, table, rates, by):
    """``kappa' = (1 - omega_o) kappa`` of odd orders from 3, ``(1 - omega_e) (kappa - K A) + K A`` of even ones from 4.

    ``K`` is the moment of the weights (``targets``); the first order becomes 0. ``by``, the operator, tells whether
    anything is kept.
    """
    odd, even = 2.0 * rates.half_odd, 2.0 * rates.half_even
    for i in range(len(m)):
        target = table.targets[i]
        if table.orders[i] % 2 == 1:
            m[i] = odd * m[i] if table.orders[i] > 1 and by.keeps_odd else 0.0
        elif table.orders[i] > 2:
            if by.keeps_even:
                m[i] = even * (m[i] - target * excess) + target * excess if target > 0.0 else even * m[i]
            else:
                m[i] = target * excess if target > 0.0 else 0.0


@func
def relax_central(g, excess, momentum, force, lattice, rates, by):
    """``kappa' = kappa - omega (kappa - kappa^eq)`` of all central moments; ``by`` is the operator."""
    table, m, u = lattice.product, zeros(lattice.q), zeros(lattice.dimensions)
    one = 1.0 / (rates.unit + excess)
    set_velocity(u, momentum, force, one)
    to_moments(g, m, u, table, rates.unit)
    shift(m, force, table, 3)
    m[0] = excess
    relax_stresses(m, excess, u, one, table, rates, by)
    relax_others(m, excess, table, rates, by)
    shift(m, force, table, 1)
    to_populations(m, g, u, table, rates.unit)
