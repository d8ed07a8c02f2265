r"""Kernels of sides on which density or velocity are set: one element is a fluid cell at the side.

Let :math:`n` point into the box. What arrives along :math:`c_k n = 1` comes from beyond the side and is unknown; the
sums over the others, of :math:`g = f - w`, give what mass and momentum lack. With
:math:`G = \sum_{c_k n = 0} g_k + 2 \sum_{c_k n = -1} g_k` and the momentum :math:`j` of what arrives,

.. math:: \rho - 1 = G + j_n, \qquad j = \rho u - F / 2

so that the velocity along the normal gives the density, or the other way round (Q. Zou, X. He, *Physics of Fluids* 9
(1997) 1591). A force :math:`F` gives the cell its other half in the collision that follows.

Completed by bounce-back of what is not in equilibrium, with the transverse momentum put right (Zou, He; M. Hecht,
J. Harting, *Journal of Statistical Mechanics* (2010) P01018):

.. math:: g_k = g_{k'} + w_k \Bigl[6 j_n
   + 18 \sum_{t \perp n} c_{kt} \Bigl(j_t - \sum_{c_l n = 0} c_{lt} g_l\Bigr)\Bigr]

The shares :math:`18 w_k` follow from :math:`\sum_{c_k n = 1} w_k c_{kt}^2 = 1/18`: mass and momentum are met to the
last bit on D2Q9, D3Q19 and D3Q27 alike; on the first two this is what the papers have.

Regularised (J. Latt, B. Chopard, O. Malaspinas, M. Deville, A. Michler, *Physical Review E* 77 (2008) 056703, BC3):
unknown populations by bounce-back of what is not in equilibrium, then all of them again from density, velocity and the
second moments :math:`\Pi` of what is not in equilibrium,

.. math:: g_k = w_k \Bigl[\rho - 1 + 3 c_k j + \tfrac92 \rho (c_k u)^2 - \tfrac32 \rho u^2
   + \tfrac92 \bigl(c_k c_k : \Pi - \tfrac13 \mathrm{tr}\, \Pi\bigr)\Bigr]

which damps what the lattice cannot resolve: it is the more stable of the two.

Where two such sides meet too much is unknown; what is not in equilibrium is taken from the next cell inwards (Z. Guo,
C. Zheng, B. Shi, *Chinese Physics* 11 (2002) 366), and so is the density or the velocity, if neither side sets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.lattices import Lattice

__all__ = ["Completion", "Normal", "complete", "edge", "in_equilibrium", "load", "moments", "regularise", "zou_he"]


@dataclass(frozen=True)
class Normal:
    """Across a side: the axis of the grid, and -1 or 1, the way into the fluid."""

    axis: int
    inward: int


class Completion(Protocol):
    """How populations of a cell are completed whose density, momentum and velocity are known."""

    def complete(self, f: Any, g: Any, above: Any, j: Any, u: Any, lattice: Any, side: Any, unit: Any) -> None:
        """Store them."""
        ...


@func
def load(f, g, unit):
    """``g_k = f_k / U``: take populations out of their unit."""
    for k in range(len(g)):
        g[k] = f[k] / unit


@func
def known(g, lattice, side):
    """``G = sum_{c_k n = 0} g_k + 2 sum_{c_k n = -1} g_k``, the known populations, those that leave counted twice."""
    value = 0.0
    for k in range(lattice.q):
        if lattice.velocities[k][side.axis] == 0:
            value += g[k]
    for k in range(lattice.q):
        if lattice.velocities[k][side.axis] * side.inward == -1:
            value += 2.0 * g[k]
    return value


@func
def from_velocity(g, u, pull, j, lattice, side):
    """``rho - 1 = (G - F_n / 2 + u_n) / (1 - u_n)``, ``j = rho u - F / 2`` of what arrives.

    The velocity is known; returned is ``rho - 1``.
    """
    speed = side.inward * u[side.axis]
    above = (known(g, lattice, side) - 0.5 * side.inward * pull[side.axis] + speed) / (1.0 - speed)
    for a in range(len(j)):
        j[a] = (1.0 + above) * u[a] - 0.5 * pull[a]
    return above


@func
def from_density(g, above, u, pull, j, v, lattice, side):
    """``j_n = rho - 1 - G``, ``u_n = (j_n + F_n / 2) / rho``, ``j_t = rho u_t - F_t / 2``.

    ``rho`` and ``u_t`` are known.
    """
    for a in range(len(j)):
        v[a] = u[a]
        j[a] = (1.0 + above) * u[a] - 0.5 * pull[a]
    j[side.axis] = side.inward * (above - known(g, lattice, side))
    v[side.axis] = (j[side.axis] + 0.5 * pull[side.axis]) / (1.0 + above)


@func
def zou_he(f, g, above, j, u, lattice, side, unit):
    r"""Store the unknown populations: bounce-back of what is not in equilibrium, momentum along the side put right.

    .. math:: g_k = g_{k'} + w_k \Bigl[6 j_n
       + 18 \sum_{t \perp n} c_{kt} \Bigl(j_t - \sum_{c_l n = 0} c_{lt} g_l\Bigr)\Bigr]
    """
    lack = zeros(len(j))
    for a in range(len(j)):
        if a != side.axis:
            lack[a] = j[a]
            for k in range(lattice.q):
                if lattice.velocities[k][side.axis] == 0 and lattice.velocities[k][a] != 0:
                    lack[a] = lack[a] - lattice.velocities[k][a] * g[k]
    for k in range(lattice.q):
        if lattice.velocities[k][side.axis] * side.inward == 1:
            value = 6.0 * side.inward * j[side.axis]
            for a in range(len(j)):
                if a != side.axis and lattice.velocities[k][a] != 0:
                    value += 18.0 * lattice.velocities[k][a] * lack[a]
            f[k] = unit * (g[lattice.opposite[k]] + lattice.weights[k] * value)


@func
def bounce(g, j, lattice, side):
    """``g_k = g_k' + 6 w_k c_k j``: the unknown populations by bounce-back of what is not in equilibrium alone."""
    for k in range(lattice.q):
        if lattice.velocities[k][side.axis] * side.inward == 1:
            value = 0.0
            for a in range(len(j)):
                if lattice.velocities[k][a] != 0:
                    value += lattice.velocities[k][a] * j[a]
            g[k] = g[lattice.opposite[k]] + 6.0 * lattice.weights[k] * value


@func
def stress(g, above, u, lattice, a, b):
    """``Pi_ab = sum_k c_ka c_kb g_k - rho u_a u_b - (rho - 1) delta_ab / 3``: what is not in equilibrium."""
    value = -(1.0 + above) * u[a] * u[b]
    if a == b:
        value -= above / 3.0
    for k in range(lattice.q):
        if lattice.velocities[k][a] * lattice.velocities[k][b] != 0:
            value += lattice.velocities[k][a] * lattice.velocities[k][b] * g[k]
    return value


@func
def store_regular(f, g, above, j, u, lattice, unit):
    r"""Store all populations, made of density, momentum, velocity and what the stress is beyond equilibrium.

    .. math:: g_k = w_k \Bigl[\rho - 1 + 3 c_k j + \tfrac92 \rho (c_k u)^2 - \tfrac32 \rho u^2
       + \tfrac92 c_k c_k : \Pi - \tfrac32 \mathrm{tr}\, \Pi\Bigr]
    """
    d = len(j)
    pi = zeros(d * d)
    trace = 0.0
    square = 0.0
    for a in range(d):
        for b in range(a, d):
            pi[a * d + b] = stress(g, above, u, lattice, a, b)
        trace += pi[a * d + a]
        square += u[a] * u[a]
    rho = 1.0 + above
    for k in range(lattice.q):
        cj = 0.0
        cu = 0.0
        ccpi = 0.0
        for a in range(d):
            if lattice.velocities[k][a] != 0:
                cj += lattice.velocities[k][a] * j[a]
                cu += lattice.velocities[k][a] * u[a]
                ccpi += pi[a * d + a]
                for b in range(a + 1, d):
                    if lattice.velocities[k][b] != 0:
                        ccpi += 2.0 * lattice.velocities[k][a] * lattice.velocities[k][b] * pi[a * d + b]
        value = above + 3.0 * cj + rho * (4.5 * cu * cu - 1.5 * square) + 4.5 * ccpi - 1.5 * trace
        f[k] = unit * lattice.weights[k] * value


@func
def in_equilibrium(c, weight, above, u):
    """``f_k^eq - w_k = w_k (rho - 1 + rho (3 c_k u + 9/2 (c_k u)^2 - 3/2 u^2))``."""
    cu = 0.0
    square = 0.0
    for a in range(len(u)):
        square += u[a] * u[a]
        if c[a] != 0:
            cu += c[a] * u[a]
    return weight * (above + (1.0 + above) * (3.0 * cu + 4.5 * cu * cu - 1.5 * square))


@func
def moments(g, pull, u, lattice, half):
    """``rho - 1 = sum_k g_k``, ``u = (sum_k c_k g_k + half F) / rho``: sets the velocity, returns ``rho - 1``."""
    above = 0.0
    for k in range(lattice.q):
        above += g[k]
    for a in range(len(u)):
        u[a] = half * pull[a]
        for k in range(lattice.q):
            if lattice.velocities[k][a] != 0:
                u[a] += lattice.velocities[k][a] * g[k]
        u[a] = u[a] / (1.0 + above)
    return above


@func
def regularise(f, g, above, j, u, lattice, side, unit):
    """``g_k = g_k' + 6 w_k c_k j`` of the unknown ones, then all populations as `store_regular`."""
    bounce(g, j, lattice, side)
    store_regular(f, g, above, j, u, lattice, unit)


@kernel
def complete(
    f: RW, above: Read | None, u: Read, pull: Read,
    *, lattice: Const[Lattice], scheme: Const[Completion], side: Const[Normal], unit: Const[float],
):  # fmt: skip
    """The velocity is set, ``rho - 1 = (G - F_n / 2 + u_n) / (1 - u_n)``; or the density, ``j_n = rho - 1 - G``.

    With a density the velocity along the side is set too; the populations are completed by the scheme.
    """
    g = zeros(lattice.q)
    j = zeros(lattice.dimensions)
    if above is None:
        load(f, g, unit)
        found = from_velocity(g, u, pull, j, lattice, side)
        scheme.complete(f, g, found, j, u, lattice, side, unit)
    else:
        v = zeros(lattice.dimensions)
        load(f, g, unit)
        from_density(g, above[0], u, pull, j, v, lattice, side)
        scheme.complete(f, g, above[0], j, v, lattice, side, unit)


@kernel
def edge(
    near: Read, above: Read, u: Read, pull: Read, f: Write,
    *, lattice: Const[Lattice], density: Const[bool], velocity: Const[bool], unit: Const[float],
):  # fmt: skip
    """``f_k(x) = f_k(x + n) + f_k^eq(rho', u') - f_k^eq(rho, u)``, with ``rho, u`` of the next cell inwards.

    ``rho'``, ``u'`` are what is set here, else those of the next cell. ``above`` is the density less one, or by how
    much it differs from that of the next cell. Z. Guo, C. Zheng, B. Shi, *Chinese Physics* 11 (2002) 366.
    """
    g = zeros(lattice.q)
    there = zeros(lattice.dimensions)
    here = zeros(lattice.dimensions)
    load(near, g, unit)
    over = moments(g, pull, there, lattice, 0.5)
    value = above[0] if density else over + above[0]
    for a in range(len(here)):
        here[a] = u[a] if velocity else there[a]
    for k in range(lattice.q):
        new = in_equilibrium(lattice.velocities[k], lattice.weights[k], value, here)
        old = in_equilibrium(lattice.velocities[k], lattice.weights[k], over, there)
        f[k] = unit * (g[k] + (new - old))
