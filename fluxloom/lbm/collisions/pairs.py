r"""Collision in pairs of opposite directions: BGK and TRT, with few operations.

Let ``s`` and ``d`` be the sum and the difference of a pair. Even orders relax with the rate ``\omega_+``, odd ones with
``\omega_-`` (I. Ginzburg, F. Verhaeghe, D. d'Humieres, Communications in Computational Physics 3 (2008) 427-478):

.. math:: f_{k, k'}' = \tfrac{1 - \omega_+}{2} s \pm \tfrac{1 - \omega_-}{2} d + \omega_+ e_+ \pm \omega_- e_-,
   \quad e_+ = w \left( A + \frac{9 (c V)^2 - 3 V^2}{2 R} \right), \quad e_- = 3 w\, c V

with ``V = J`` and ``R = U + A``. BGK is the case of equal rates. With a force ``F`` (Z. Guo, C. Zheng, B. Shi, Physical
Review E 65 (2002) 046308) ``V = J + F / 2``, and

.. math:: \left(1 - \tfrac{\omega_+}{2}\right) w (9\, c u\, c F - 3\, u F) \pm
   \left(1 - \tfrac{\omega_-}{2}\right) 3 w\, c F

is added. In the odd part what depends on the rate cancels: with ``a = n w``, where ``n = 1 / w`` of the last direction,
``\omega_- e_-`` and the force give ``a c X``, ``X = o J + 3 F / n``, ``o = 3 \omega_- / n`` (``odd_gain``). The even
part is ``a (e A + 3 c V c W - V W)``, ``W = (1.5 e V + 3 (1 - \omega_+ / 2) F / n) / R``, ``e = \omega_+ / n``
(``even_gain``).
That nothing is multiplied by a third is on purpose: its rounding would be a trend of the mass.
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.moments import along, product

__all__ = ["relax_pairs"]


@func
def relax_pair(g, k, wave, flow, rates):
    """``g_k, g_k' = (1 - omega_+) s / 2 + wave +- ((1 - omega_-) d / 2 + flow)`` of a pair.

    ``s`` is its sum, ``d`` its difference. ``wave`` and ``flow`` are what the even and the odd part gain.
    """
    sums = rates.half_even * g[k] + wave
    differences = rates.half_odd * g[k + 1] + flow
    g[k] = sums + differences
    g[k + 1] = sums - differences


@func
def relax_rest(g, excess, base, lattice, rates):
    """``g_0 = (1 - omega_+) g_0 + a_0 base + r A``, ``a_0 = w_0 / w``.

    ``r``, ``rest_gain``, takes rounding from the mass.
    """
    g[0] = 2.0 * rates.half_even * g[0] + (lattice.ratios[0] * base + rates.rest_gain * excess)


@func
def relax_free(g, excess, momentum, lattice, rates):
    """Collide without a force: ``wave = a e (A + (9 (c J)^2 - 3 J^2) / 2 R)``, ``flow = a o c J``, ``R = U + A``.

    ``a = w_k / w``, ``e = omega_+ w``, ``o = 3 omega_- w`` with the least weight ``w``.
    """
    x = zeros(lattice.dimensions)
    for a in range(lattice.dimensions):
        x[a] = rates.odd_gain * momentum[a]
    third = rates.curvature / (rates.unit + excess)
    bend = 3.0 * third
    base = rates.even_gain * excess - third * product(x, x)
    relax_rest(g, excess, base, lattice, rates)
    for k in range(1, lattice.q, 2):
        p = along(lattice.velocities[k], x)
        relax_pair(g, k, lattice.ratios[k] * (base + bend * (p * p)), lattice.ratios[k] * p, rates)


@func
def relax_forced(g, excess, momentum, force, lattice, rates):
    """Collide with a force: ``wave = a (e A + 3 c V c W - V W)``, ``flow = a c X``, ``V = J + F / 2``; see the module.

    ``W = (3/2 e V + 3 (1 - omega_+ / 2) w F) / R``, ``X = o J + 3 w F`` with the least weight ``w``.
    """
    v, w, x = zeros(lattice.dimensions), zeros(lattice.dimensions), zeros(lattice.dimensions)
    one = 1.0 / (rates.unit + excess)
    square = 1.5 * rates.even_gain * one
    both = (1.5 * lattice.least + 3.0 * lattice.least * rates.half_even) * one
    for a in range(lattice.dimensions):
        v[a] = momentum[a] + 0.5 * force[a]
        w[a] = square * v[a] + both * force[a]
        x[a] = rates.odd_gain * momentum[a] + 3.0 * lattice.least * force[a]
    base = rates.even_gain * excess - product(v, w)
    for a in range(lattice.dimensions):
        w[a] = 3.0 * w[a]
    relax_rest(g, excess, base, lattice, rates)
    for k in range(1, lattice.q, 2):
        c = lattice.velocities[k]
        wave = base + along(c, v) * along(c, w)
        relax_pair(g, k, lattice.ratios[k] * wave, lattice.ratios[k] * along(c, x), rates)


@func
def relax_pairs(g, excess, momentum, force, lattice, rates):
    """``g' = Omega(g)`` with two rates, of sums and differences of pairs (`fluxloom.lbm.moments.pair_sums`)."""
    if force is None:
        relax_free(g, excess, momentum, lattice, rates)
    else:
        relax_forced(g, excess, momentum, force, lattice, rates)
