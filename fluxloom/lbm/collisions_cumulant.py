r"""Collision of cumulants: combinations of central moments that are independent of each other in any flow.

M. Geier, M. Schoenherr, A. Pasquali, M. Krafczyk, Computers & Mathematics with Applications 70 (2015) 507-547. Up to
order 3 cumulants are central moments; above, products of lower moments are taken off, for example

.. math:: C_{211} = \kappa_{211} - (\kappa_{200} \kappa_{011} + 2 \kappa_{110} \kappa_{101}) / \rho, \quad
   C_{220} = \kappa_{220} - (\kappa_{200} \kappa_{020} + 2 \kappa_{110}^2) / \rho

and so on. In equilibrium all cumulants of order 3 and up are zero: each is multiplied by what its order
keeps, nothing by default, and the products of the new lower moments are added again. The stresses relax as in
`fluxloom.lbm.collisions_central`, with the correction that makes the viscosity Galilean invariant. In a plane the only
cumulant above order 3 is ``C_{22}``.

What is transformed is the distance from the weights (see there). Sums of products are written in these terms, so that
constants which cancel are not added first.
"""

from __future__ import annotations

from typing import Any

from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.collisions_central import force_shifts, moments_of, stresses
from fluxloom.lbm.collisions_orders import Subgrid
from fluxloom.lbm.lattices import Lattice

__all__ = ["cumulant_collision"]

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
def square_product(p, q, shear, above, unit, one):
    """Products of ``kappa_220``, less its value at rest, from the distances ``p`` and ``q`` of 200 and 020."""
    third = (1.0 / 3.0) * unit
    return (p * q + 2.0 * shear * shear + third * (p + q) - third * (1.0 / 3.0) * above) * one


@func
def twist_product(m, a, unit, one):
    """Products of ``kappa_211``, ``kappa_121`` or ``kappa_112``: ``a`` is the axis of the two."""
    b, c = (a + 1) % 3, (a + 2) % 3
    full = m[STRESSES[a]] + (1.0 / 3.0) * unit
    return (full * m[SHEARS[a]] + 2.0 * m[SHEARS[b]] * m[SHEARS[c]]) * one


@func
def fifth_product(m, a, unit, one):
    """Products of ``kappa_122``, ``kappa_212`` or ``kappa_221``: ``a`` is the axis of the one."""
    b, c = (a + 1) % 3, (a + 2) % 3
    third = (1.0 / 3.0) * unit
    value = (m[STRESSES[c]] + third) * m[THIRD[a][b]] + (m[STRESSES[b]] + third) * m[THIRD[a][c]]
    value += 4.0 * m[SHEARS[a]] * m[13]
    return (value + 2.0 * (m[SHEARS[b]] * m[THIRD[c][b]] + m[SHEARS[c]] * m[THIRD[b][c]])) * one


@func
def sixth_product(m, above, unit, one, odd):
    """Products of ``kappa_222``, less its value at rest; ``odd``: whether moments of order 3 are not zero."""
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
    share = above * one
    return (pairs - cubes * one) * one + (1.0 / 27.0) * unit * share * (1.0 - 2.0 * share)


def cumulant_collision(lattice: Lattice, with_force: bool, subgrid: Subgrid) -> Func[..., Any]:
    """Return the operator.

    Parameters
    ----------
    with_force
        Whether it adds a force.
    subgrid
        ``model`` and ``bulk`` as everywhere; ``odd`` and ``even``: whether anything is kept of these orders.
    """
    q, axes, singles = lattice.q, lattice.dimensions, tuple(3**a for a in range(lattice.dimensions))
    forward, backward = moments_of(lattice)
    shift, relax_stresses = force_shifts(lattice), stresses(lattice, subgrid, True)
    take, put = (_take_plane(subgrid), _put_plane()) if axes == 2 else (_take(subgrid), _put(subgrid))

    @func
    def relax(g, above, j, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy):
        m, u = zeros(q), zeros(axes)
        one = 1.0 / (unit + above)
        for a in range(axes):
            u[a] = one * (j[a] + 0.5 * force[a]) if with_force else one * j[a]
        forward(g, m, u, unit)
        if with_force:
            shift(m, force, 3)
        m[0] = above
        take(m, above, unit, one, 2.0 * half_odd, 2.0 * half_even)
        relax_stresses(m, above, u, one, keep_shear, keep_bulk, eddy)
        put(m, above, unit, one)
        for a in range(axes):
            m[singles[a]] = 0.0
        if with_force:
            shift(m, force, 1)
        backward(m, g, u, unit)

    return relax


def _take(subgrid: Subgrid) -> Func[..., Any]:
    """Return the helper that makes relaxed cumulants of the moments of order 3 and up."""
    odd_kept, even_kept = subgrid.odd, subgrid.even

    @func
    def take(m, above, unit, one, odd, even):
        sixth = even * (m[26] - sixth_product(m, above, unit, one, True)) if even_kept else 0.0
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            m[FIFTH[a]] = odd * (m[FIFTH[a]] - fifth_product(m, a, unit, one)) if odd_kept else 0.0
            if even_kept:
                planes = square_product(m[STRESSES[b]], m[STRESSES[c]], m[SHEARS[a]], above, unit, one)
                m[PLANES[a]] = even * (m[PLANES[a]] - planes)
                m[TWISTS[a]] = even * (m[TWISTS[a]] - twist_product(m, a, unit, one))
            else:
                m[PLANES[a]] = 0.0
                m[TWISTS[a]] = 0.0
        for one_of in range(3):
            for two_of in range(3):
                if one_of != two_of:
                    m[THIRD[one_of][two_of]] = odd * m[THIRD[one_of][two_of]] if odd_kept else 0.0
        m[13] = odd * m[13] if odd_kept else 0.0
        m[26] = sixth

    return take


def _put(subgrid: Subgrid) -> Func[..., Any]:
    """Return the helper that makes moments of the cumulants of order 4 and up, lower ones first."""
    odd_kept = subgrid.odd

    @func
    def put(m, above, unit, one):
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            m[PLANES[a]] += square_product(m[STRESSES[b]], m[STRESSES[c]], m[SHEARS[a]], above, unit, one)
            m[TWISTS[a]] += twist_product(m, a, unit, one)
            if odd_kept:
                m[FIFTH[a]] += fifth_product(m, a, unit, one)
        m[26] += sixth_product(m, above, unit, one, odd_kept)

    return put


def _take_plane(subgrid: Subgrid) -> Func[..., Any]:
    """Return the helper that makes relaxed cumulants of the moments 21, 12 and 22."""
    odd_kept, even_kept = subgrid.odd, subgrid.even

    @func
    def take(m, above, unit, one, odd, even):
        m[8] = even * (m[8] - square_product(m[6], m[2], m[4], above, unit, one)) if even_kept else 0.0
        m[7] = odd * m[7] if odd_kept else 0.0
        m[5] = odd * m[5] if odd_kept else 0.0

    return take


def _put_plane() -> Func[..., Any]:
    """Return the helper that makes the moment 22 of its cumulant."""

    @func
    def put(m, above, unit, one):
        m[8] += square_product(m[6], m[2], m[4], above, unit, one)

    return put
