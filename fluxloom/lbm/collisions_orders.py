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
from typing import Any

from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import sqrt, zeros
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.moments import along, whole_weights

__all__ = ["Subgrid", "order_collision"]


@dataclass(frozen=True)
class Subgrid:
    """Which rates follow that of the shear where a subgrid model changes it.

    Attributes
    ----------
    model
        Whether there is one.
    bulk, even, odd
        Whether these rates follow.
    magic
        Positive: the odd rate keeps this magic parameter instead of being equal.
    """

    model: bool = False
    bulk: bool = True
    even: bool = True
    odd: bool = True
    magic: float = 0.0


@func
def turned_time(strain, time, eddy):
    """Relaxation time with the eddy viscosity; ``strain`` is the sum of the squares of ``N / rho``."""
    return 0.5 * (time + sqrt(time * time + eddy * sqrt(strain)))


def order_collision(lattice: Lattice, with_force: bool, subgrid: Subgrid) -> Func[..., Any]:
    """Return the operator, which takes sums and differences of pairs and leaves populations after collision.

    Parameters
    ----------
    with_force
        Whether it adds a force.
    subgrid
        What follows the rate of the shear.
    """
    axes, inverse, model = lattice.dimensions, lattice.weights[-1], subgrid.model
    set_stresses, set_distance, leave = _stresses(lattice), _distance(lattice, with_force), _leave(lattice, with_force)
    local_rates = _local_rates(lattice, subgrid)

    @func
    def relax(g, above, j, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy):
        m, n, t = zeros(axes, axes), zeros(axes, axes), zeros(axes, axes)
        one = 1.0 / (unit + above)
        set_stresses(g, above, m)
        set_distance(m, j, force, one, n, t)
        shear, bulk, odd, even = keep_shear, keep_bulk, half_odd, half_even
        if model:
            shear, bulk, odd, even = local_rates(n, one, keep_shear, keep_bulk, half_odd, half_even, eddy)
        trace = n[0][0]
        for a in range(1, axes):
            trace += n[a][a]
        more = (bulk - shear) * (1.0 / axes) * trace
        base = (inverse - 2.0 * inverse * even) * above
        for a in range(axes):
            for b in range(a, axes):
                t[a][b] += shear * n[a][b] - 2.0 * even * m[a][b]
            t[a][a] = 4.5 * inverse * (t[a][a] + more)
            base -= (1.0 / 3.0) * t[a][a]
            for b in range(a + 1, axes):
                t[a][b] = 9.0 * inverse * t[a][b]
        leave(g, above, j, force, t, base, odd, even)

    return relax


def _stresses(lattice: Lattice) -> Func[..., Any]:
    """Return the helper that sets the upper triangle of ``M``."""
    q, axes, velocities = lattice.q, lattice.dimensions, lattice.velocities

    @func
    def set_stresses(g, above, m):
        for a in range(axes):
            for b in range(a, axes):
                terms = 0
                for k in range(1, q, 2):
                    sign = velocities[k][a] * velocities[k][b]
                    if sign != 0:
                        if terms > 0:
                            m[a][b] = m[a][b] + g[k] if sign > 0 else m[a][b] - g[k]
                        elif sign > 0:
                            m[a][b] = g[k]
                        else:
                            m[a][b] = -g[k]
                        terms += 1
            m[a][a] -= (1.0 / 3.0) * above

    return set_stresses


def _distance(lattice: Lattice, with_force: bool) -> Func[..., Any]:
    """Return the helper that sets ``n = M - M_eq + Phi`` and ``target = M_eq + Phi``."""
    axes = lattice.dimensions

    @func
    def set_distance(m, j, force, one, n, target):
        v = zeros(axes)
        for a in range(axes):
            v[a] = j[a]
            if with_force:
                v[a] += 0.5 * force[a]
        for a in range(axes):
            for b in range(a, axes):
                if with_force:
                    flux, push = v[a] * v[b], 0.5 * (v[a] * force[b] + force[a] * v[b])
                    target[a][b] = one * (flux + push)
                    n[a][b] = m[a][b] - one * (flux - push)
                else:
                    target[a][b] = one * v[a] * v[b]
                    n[a][b] = m[a][b] - target[a][b]

    return set_distance


def _local_rates(lattice: Lattice, subgrid: Subgrid) -> Func[..., Any]:
    """Return the helper that gives the rates of a cell: what is kept of shear and bulk, and the halves of the parts."""
    axes, bulk_follows, odd_follows, even_follows = lattice.dimensions, subgrid.bulk, subgrid.odd, subgrid.even
    magic = subgrid.magic

    @func
    def local_rates(n, one, keep_shear, keep_bulk, half_odd, half_even, eddy):
        strain = 0.0
        for a in range(axes):
            strain += n[a][a] * n[a][a]
            for b in range(a + 1, axes):
                strain += 2.0 * n[a][b] * n[a][b]
        time = turned_time(strain * one * one, 1.0 / (1.0 - keep_shear), eddy)
        shear = 1.0 - 1.0 / time
        bulk = shear if bulk_follows else keep_bulk
        even = 0.5 * shear if even_follows else half_even
        odd = half_odd
        if odd_follows:
            odd = 0.5 - 0.5 / (magic / (time - 0.5) + 0.5) if magic > 0.0 else 0.5 * shear
        return shear, bulk, odd, even

    return local_rates


def _leave(lattice: Lattice, with_force: bool) -> Func[..., Any]:
    """Return the helper that makes the populations of their second moments and what is kept of the parts."""
    q, axes, velocities, ratios, inverse = lattice.q, lattice.dimensions, *whole_weights(lattice)
    moving = tuple(sum(map(abs, c)) for c in velocities)

    @func
    def form(c, t):
        """Quadratic form of a velocity; the upper triangle is doubled off the diagonal."""
        value = 0.0
        terms = 0
        for a in range(axes):
            if c[a] != 0:
                value = value + t[a][a] if terms > 0 else t[a][a]
                terms += 1
        for a in range(axes):
            for b in range(a + 1, axes):
                if c[a] * c[b] != 0:
                    value = value + t[a][b] if c[a] * c[b] > 0 else value - t[a][b]
        return value

    @func
    def leave(g, above, j, force, t, base, odd, even):
        x, left = zeros(axes), zeros(axes)
        scale = 3.0 * inverse - 6.0 * inverse * odd
        for a in range(axes):
            x[a] = scale * j[a]
            left[a] = 0.5 * j[a]
            if with_force:
                x[a] += 3.0 * inverse * force[a]
                left[a] += 0.5 * force[a]
        sums = 0.0
        for i in range(1, q, 2):
            k = q - 1 - i  # diagonals first: the axes get what is left
            c = velocities[k]
            waves = even * g[k] + ratios[k] * (base + form(c, t))
            flows = 0.0
            if moving[k] > 1:
                flows = odd * g[k + 1] + ratios[k] * along(c, x)
                for a in range(axes):
                    if c[a] != 0:
                        left[a] = left[a] - flows if c[a] > 0 else left[a] + flows
            else:
                flows = along(c, left)
            sums += waves
            g[k] = waves + flows
            g[k + 1] = waves - flows
        g[0] = above - 2.0 * sums

    return leave
