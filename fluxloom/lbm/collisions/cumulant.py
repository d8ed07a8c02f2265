r"""Collision of cumulants: combinations of central moments that are independent of each other in any flow.

M. Geier, M. Schoenherr, A. Pasquali, M. Krafczyk, Computers & Mathematics with Applications 70 (2015) 507-547. Up to
order 3 cumulants are central moments; above, products of lower moments are taken off, for example

.. math:: C_{211} = \kappa_{211} - (\kappa_{200} \kappa_{011} + 2 \kappa_{110} \kappa_{101}) / \rho, \quad
   C_{220} = \kappa_{220} - (\kappa_{200} \kappa_{020} + 2 \kappa_{110}^2) / \rho

and so on. In equilibrium all cumulants of order 3 and up are zero: each is multiplied by what its order
keeps, nothing by default, and the products of the new lower moments are added again. The stresses relax as in
`fluxloom.lbm.collisions.central`, with the correction that makes the viscosity Galilean invariant. In a plane the only
cumulant above order 3 is ``C_{22}``.

What is transformed is the distance from the weights (see there). Sums of products are written in these terms, so that
constants which cancel are not added first.
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.collisions.central import relax_stresses, set_velocity, shift, to_moments, to_populations

__all__ = ["relax_cumulants"]

STRESSES = (18, 6, 2)
"""Numbers of the moments 200, 020 and 002."""

SHEARS = (4, 10, 12)
"""Numbers of 011, 101 and 110: those without the axis 0, 1 and 2."""

PLANES = (8, 20, 24)
"""Numbers of 022, 202 and 220."""

TWISTS = (22, 16, 14)
"""Numbers of 211, 121 and 112."""

FIFTH = (17, 23, 25)
"""Numbers of 122, 212 and 221."""

THIRD = ((0, 15, 11), (21, 0, 5), (19, 7, 0))
"""``THIRD[a][b]``: number of the moment with one ``a`` and two ``b``."""


@func
def square_product(p, q, shear, excess, unit, one):
    """``(kappa_200 kappa_020 + 2 kappa_110^2) / rho``, less its value at rest, from the distances ``p`` and ``q``.

    ``p = kappa_200 - U / 3``, ``q = kappa_020 - U / 3``, and ``rho = U + A``; the value at rest is ``U / 9``.
    """
    third = (1.0 / 3.0) * unit
    return (p * q + 2.0 * shear * shear + third * (p + q) - third * (1.0 / 3.0) * excess) * one


@func
def twist_product(m, a, unit, one):
    """``(kappa_200 kappa_011 + 2 kappa_110 kappa_101) / rho``, of ``kappa_211`` for ``a = 0``, the axis of the two."""
    b, c = (a + 1) % 3, (a + 2) % 3
    full = m[STRESSES[a]] + (1.0 / 3.0) * unit
    return (full * m[SHEARS[a]] + 2.0 * m[SHEARS[b]] * m[SHEARS[c]]) * one


@func
def fifth_product(m, a, unit, one):
    r"""The products of ``kappa_122`` for ``a = 0``, the axis of the one.

    .. math:: \bigl(\kappa_{002} \kappa_{120} + \kappa_{020} \kappa_{102} + 4 \kappa_{011} \kappa_{111}
       + 2 (\kappa_{101} \kappa_{021} + \kappa_{110} \kappa_{012})\bigr) / \rho
    """
    b, c = (a + 1) % 3, (a + 2) % 3
    third = (1.0 / 3.0) * unit
    value = (m[STRESSES[c]] + third) * m[THIRD[a][b]] + (m[STRESSES[b]] + third) * m[THIRD[a][c]]
    value += 4.0 * m[SHEARS[a]] * m[13]
    return (value + 2.0 * (m[SHEARS[b]] * m[THIRD[c][b]] + m[SHEARS[c]] * m[THIRD[b][c]])) * one


@func
def sixth_product(m, excess, unit, one, odd):
    r"""The products of ``kappa_222``, less ``U / 27`` at rest; ``odd``: whether moments of order 3 are not zero.

    .. math::
       \tfrac{1}{\rho} &\bigl(4 \kappa_{111}^2 + \textstyle\sum_3 [\kappa_{200} \kappa_{022}
       + 4 \kappa_{011} \kappa_{211} + 2 \kappa_{120} \kappa_{102}]\bigr) \\
       - \tfrac{1}{\rho^2} &\bigl(16 \kappa_{110} \kappa_{101} \kappa_{011} + 2 \kappa_{200} \kappa_{020} \kappa_{002}
       + 4 \textstyle\sum_3 \kappa_{011}^2 \kappa_{200}\bigr)

    with sums over the three axes.
    """
    third, ninth = (1.0 / 3.0) * unit, (1.0 / 9.0) * unit
    pairs = 0.0
    if odd:
        pairs = 4.0 * m[13] * m[13]
    cubes = 16.0 * m[4] * m[10] * m[12] + 2.0 * m[18] * m[6] * m[2]
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        p, shear = m[STRESSES[a]], m[SHEARS[a]]
        pairs += p * (m[PLANES[a]] + ninth) + third * m[PLANES[a]] + 4.0 * shear * m[TWISTS[a]]
        if odd:
            pairs += 2.0 * m[THIRD[a][b]] * m[THIRD[a][c]]
        cubes += 4.0 * shear * shear * (p + third) + 2.0 * third * (m[STRESSES[b]] * m[STRESSES[c]] + third * p)
    part = excess * one
    return (pairs - cubes * one) * one + (1.0 / 27.0) * unit * part * (1.0 - 2.0 * part)


@func
def to_cumulants(m, excess, rates, one, by):
    """``C' = (1 - omega) (kappa - products)`` of the moments of order 3 and up, in their place.

    ``by``, the operator, tells whether anything is kept.
    """
    unit, odd, even = rates.unit, 2.0 * rates.half_odd, 2.0 * rates.half_even
    sixth = even * (m[26] - sixth_product(m, excess, unit, one, True)) if by.keeps_even else 0.0
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        m[FIFTH[a]] = odd * (m[FIFTH[a]] - fifth_product(m, a, unit, one)) if by.keeps_odd else 0.0
        if by.keeps_even:
            planes = square_product(m[STRESSES[b]], m[STRESSES[c]], m[SHEARS[a]], excess, unit, one)
            m[PLANES[a]] = even * (m[PLANES[a]] - planes)
            m[TWISTS[a]] = even * (m[TWISTS[a]] - twist_product(m, a, unit, one))
        else:
            m[PLANES[a]] = 0.0
            m[TWISTS[a]] = 0.0
    for one_of in range(3):
        for two_of in range(3):
            if one_of != two_of:
                m[THIRD[one_of][two_of]] = odd * m[THIRD[one_of][two_of]] if by.keeps_odd else 0.0
    m[13] = odd * m[13] if by.keeps_odd else 0.0
    m[26] = sixth


@func
def from_cumulants(m, excess, unit, one, by):
    """``kappa = C + products`` of the cumulants of order 4 and up, lower ones first."""
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        m[PLANES[a]] += square_product(m[STRESSES[b]], m[STRESSES[c]], m[SHEARS[a]], excess, unit, one)
        m[TWISTS[a]] += twist_product(m, a, unit, one)
        if by.keeps_odd:
            m[FIFTH[a]] += fifth_product(m, a, unit, one)
    m[26] += sixth_product(m, excess, unit, one, by.keeps_odd)


@func
def to_cumulants_in_plane(m, excess, rates, one, by):
    """``C_21' = (1 - omega_o) kappa_21``, ``C_12'`` alike, ``C_22' = (1 - omega_e) (kappa_22 - products)``."""
    odd, even = 2.0 * rates.half_odd, 2.0 * rates.half_even
    m[8] = even * (m[8] - square_product(m[6], m[2], m[4], excess, rates.unit, one)) if by.keeps_even else 0.0
    m[7] = odd * m[7] if by.keeps_odd else 0.0
    m[5] = odd * m[5] if by.keeps_odd else 0.0


@func
def relax_cumulants(g, excess, momentum, force, lattice, rates, by):
    """``C' = (1 - omega) C`` of all cumulants from order 3 on, stresses as in `relax_stresses`.

    ``by`` is the operator.
    """
    table, m, u = lattice.product, zeros(lattice.q), zeros(lattice.dimensions)
    one = 1.0 / (rates.unit + excess)
    set_velocity(u, momentum, force, one)
    to_moments(g, m, u, table, rates.unit)
    shift(m, force, table, 3)
    m[0] = excess
    if table.axes == 2:
        to_cumulants_in_plane(m, excess, rates, one, by)
        relax_stresses(m, excess, u, one, table, rates, by)
        m[8] += square_product(m[6], m[2], m[4], excess, rates.unit, one)
    else:
        to_cumulants(m, excess, rates, one, by)
        relax_stresses(m, excess, u, one, table, rates, by)
        from_cumulants(m, excess, rates.unit, one, by)
    for a in range(table.axes):
        m[table.steps[a]] = 0.0
    shift(m, force, table, 1)
    to_populations(m, g, u, table, rates.unit)
