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

from itertools import product
from math import prod
from typing import Any

from fluxloom.core.errors import SolverError
from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.collisions_orders import Subgrid, turned_time
from fluxloom.lbm.lattices import Lattice

__all__ = ["central_collision", "check_product", "force_shifts", "moments_of", "stresses"]

LINE = (1 / 6, 2 / 3, 1 / 6)
"""Weights of the velocities -1, 0 and 1."""

EVEN = (1.0, 0.0, 1 / 3)
"""Their moments of order 0, 1 and 2."""


def check_product(name: str, lattice: Lattice) -> None:
    """Raise `SolverError` if a lattice has not all products of three velocities along each axis."""
    if lattice.q != 3**lattice.dimensions:
        raise SolverError(
            f"{name}: no {lattice.name}; it needs all products of velocities, which D2Q9 and D3Q27 have "
            "(on D3Q19 take trt or mrt)"
        )


def moments_of(lattice: Lattice) -> tuple[Func[..., Any], Func[..., Any]]:
    """Return the transform of populations ``g`` to central moments ``m``, and back.

    ``m`` has ``3^d`` values; that of orders ``(a, b, c)`` is the one of number ``9 a + 3 b + c``.
    """
    axes, q = lattice.dimensions, lattice.q
    digits = tuple(product(range(3), repeat=axes))
    places = tuple(lattice.velocities.index(tuple(n - 1 for n in digit)) for digit in digits)
    steps = tuple(3 ** (axes - 1 - a) for a in range(axes))
    starts = tuple(tuple(i for i, digit in enumerate(digits) if digit[a] == 0) for a in range(axes))
    offsets = tuple(
        tuple(prod(EVEN[n] if b < a else LINE[n] for b, n in enumerate(digits[i]) if b != a) for i in starts[a])
        for a in range(axes)
    )
    lines = q // 3

    @func
    def forward(g, m, u, unit):
        for i in range(q):
            m[i] = g[places[i]]
        for a in range(axes):
            for n in range(lines):
                low = starts[a][n]
                mid, high = low + steps[a], low + 2 * steps[a]
                s, d = m[high] + m[low], m[high] - m[low]
                m[low] = s + m[mid]
                full = m[low]
                if offsets[a][n] > 0.0:
                    full += offsets[a][n] * unit
                m[mid] = d - u[a] * full
                m[high] = s - u[a] * (d + m[mid])

    @func
    def backward(m, g, u, unit):
        for r in range(axes):
            a = axes - 1 - r
            for n in range(lines):
                low = starts[a][n]
                mid, high = low + steps[a], low + 2 * steps[a]
                full = m[low]
                if offsets[a][n] > 0.0:
                    full += offsets[a][n] * unit
                d = u[a] * full + m[mid]
                s = u[a] * (d + m[mid]) + m[high]
                m[mid] = m[low] - s
                m[high] = 0.5 * (s + d)
                m[low] = 0.5 * (s - d)
        for i in range(q):
            g[places[i]] = m[i]

    return forward, backward


def force_shifts(lattice: Lattice) -> Func[..., Any]:
    """Return the helper that adds what half of the force is in the odd moments from some order up."""
    q, axes = lattice.q, lattice.dimensions
    digits = tuple(product(range(3), repeat=axes))
    orders = tuple(sum(digit) for digit in digits)
    along = tuple(digit.index(1) if digit.count(1) == 1 else -1 for digit in digits)
    shares = tuple(0.5 * prod(EVEN[n] for n in digit if n != 1) for digit in digits)

    @func
    def shift(m, force, least):
        for i in range(q):
            if along[i] >= 0 and orders[i] >= least:
                m[i] += shares[i] * force[along[i]]

    return shift


def stresses(lattice: Lattice, subgrid: Subgrid, corrected: bool) -> Func[..., Any]:
    r"""Return the helper that relaxes the moments of second order.

    Parameters
    ----------
    subgrid
        ``model`` and ``bulk``: whether there is a subgrid model, and whether the rate of the trace follows it.
    corrected
        Whether the error of the diagonal stresses is taken out, which is there because ``c^3 = c`` on the lattice (M.
        Geier et al. 2015, here for any number of axes): with ``N`` the distance from equilibrium,
        ``D_a = -3 (\omega_s dev N + \omega_b tr N / d)_a / 2 \rho`` is the gradient of ``u_a`` along its own axis, and
        ``3 \rho u_a^2 D_a`` is subtracted with the factors ``1 - \omega / 2``.
    """
    axes, model, bulk_follows = lattice.dimensions, subgrid.model, subgrid.bulk
    steps = tuple(3 ** (axes - 1 - a) for a in range(axes))

    @func
    def relax_stresses(m, above, u, one, shear, bulk, eddy):
        n, c = zeros(axes), zeros(axes)
        for a in range(axes):
            n[a] = m[2 * steps[a]] - (1.0 / 3.0) * above
        if model:
            strain = 0.0
            for a in range(axes):
                strain += n[a] * n[a]
                for b in range(a + 1, axes):
                    strain += 2.0 * m[steps[a] + steps[b]] * m[steps[a] + steps[b]]
            kept = 1.0 - 1.0 / turned_time(strain * one * one, 1.0 / (1.0 - shear), eddy)
            if bulk_follows:
                bulk = kept
            shear = kept
        trace = n[0]
        for a in range(1, axes):
            trace += n[a]
        mean = (1.0 / axes) * trace
        for a in range(axes):
            c[a] = shear * (n[a] - mean) + bulk * mean
        if corrected:
            total = 0.0
            for a in range(axes):
                n[a] = -4.5 * u[a] * u[a] * ((1.0 - shear) * (n[a] - mean) + (1.0 - bulk) * mean)
                total += n[a]
            total = (1.0 / axes) * total
            for a in range(axes):
                c[a] -= (0.5 + 0.5 * shear) * (n[a] - total) + (0.5 + 0.5 * bulk) * total
        for a in range(axes):
            m[2 * steps[a]] = c[a] + (1.0 / 3.0) * above
            for b in range(a + 1, axes):
                m[steps[a] + steps[b]] = shear * m[steps[a] + steps[b]]

    return relax_stresses


def central_collision(lattice: Lattice, with_force: bool, subgrid: Subgrid, corrected: bool) -> Func[..., Any]:
    """Return the operator.

    Parameters
    ----------
    with_force
        Whether it adds a force.
    subgrid
        ``model`` and ``bulk`` as everywhere; ``odd`` and ``even``: whether anything is kept of these orders.
    corrected
        See `stresses`.
    """
    q, axes, odd_kept, even_kept = lattice.q, lattice.dimensions, subgrid.odd, subgrid.even
    digits = tuple(product(range(3), repeat=axes))
    orders = tuple(sum(digit) for digit in digits)
    targets = tuple(prod(EVEN[n] for n in digit) for digit in digits)
    forward, backward = moments_of(lattice)
    shift, relax_stresses = force_shifts(lattice), stresses(lattice, subgrid, corrected)

    @func
    def relax_others(m, above, odd, even):
        for i in range(q):
            if orders[i] % 2 == 1:
                if orders[i] > 1 and odd_kept:
                    m[i] = odd * m[i]
                else:
                    m[i] = 0.0
            elif orders[i] > 2:
                if even_kept:
                    m[i] = even * (m[i] - targets[i] * above) + targets[i] * above if targets[i] > 0.0 else even * m[i]
                else:
                    m[i] = targets[i] * above if targets[i] > 0.0 else 0.0

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
        relax_stresses(m, above, u, one, keep_shear, keep_bulk, eddy)
        relax_others(m, above, 2.0 * half_odd, 2.0 * half_even)
        if with_force:
            shift(m, force, 1)
        backward(m, g, u, unit)

    return relax
