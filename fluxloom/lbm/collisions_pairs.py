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
``\omega_- e_-`` and the force give ``a c X``, ``X = scale J + 3 F / n``, ``scale = 3 \omega_- / n``. The even part is
``a (share A + 3 c V c W - V W)``, ``W = (1.5 share V + 3 (1 - \omega_+ / 2) F / n) / R``, ``share = \omega_+ / n``.
That nothing is multiplied by a third is on purpose: its rounding would be a trend of the mass.
"""

from __future__ import annotations

from typing import Any

from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.moments import along, product, whole_weights

__all__ = ["pair_collision"]


def pair_collision(lattice: Lattice, with_force: bool) -> Func[..., Any]:
    """Return the operator, which takes sums and differences and leaves populations after collision.

    Parameters
    ----------
    with_force
        Whether it adds a force.
    """
    q, axes, velocities, ratios, inverse = lattice.q, lattice.dimensions, *whole_weights(lattice)

    @func
    def relax_pair(g, k, wave, flow, half_odd, half_even):
        """Make populations of a pair: ``wave`` and ``flow`` are what its even and odd part gain."""
        sums = half_even * g[k] + wave
        differences = half_odd * g[k + 1] + flow
        g[k] = sums + differences
        g[k + 1] = sums - differences

    @func
    def relax_rest(g, above, base, half_even, rest):
        """Make the population at rest; ``rest`` takes the rounding of the other constants from the mass."""
        g[0] = 2.0 * half_even * g[0] + (ratios[0] * base + rest * above)

    @func
    def free(g, above, j, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy):
        x = zeros(axes)
        for a in range(axes):
            x[a] = scale * j[a]
        third = curve / (unit + above)
        bend = 3.0 * third
        base = share * above - third * product(x, x)
        relax_rest(g, above, base, half_even, rest)
        for k in range(1, q, 2):
            p = along(velocities[k], x)
            relax_pair(g, k, ratios[k] * (base + bend * (p * p)), ratios[k] * p, half_odd, half_even)

    @func
    def forced(g, above, j, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy):
        v, w, x = zeros(axes), zeros(axes), zeros(axes)
        one = 1.0 / (unit + above)
        square, both = 1.5 * share * one, (1.5 * inverse + 3.0 * inverse * half_even) * one
        for a in range(axes):
            v[a] = j[a] + 0.5 * force[a]
            w[a] = square * v[a] + both * force[a]
            x[a] = scale * j[a] + 3.0 * inverse * force[a]
        base = share * above - product(v, w)
        for a in range(axes):
            w[a] = 3.0 * w[a]
        relax_rest(g, above, base, half_even, rest)
        for k in range(1, q, 2):
            c = velocities[k]
            wave = base + along(c, v) * along(c, w)
            relax_pair(g, k, ratios[k] * wave, ratios[k] * along(c, x), half_odd, half_even)

    return forced if with_force else free
