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

from collections.abc import Mapping
from types import MappingProxyType

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.kernel.frontend import Kernel, func, kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["CELLS", "edge", "in_equilibrium", "load", "moments"]


@func
def load(f, g, unit):
    """Take populations out of their unit."""
    for k in range(len(g)):
        g[k] = f[k] / unit


@func
def known(g, velocities, axis, inward):
    """Return the sum of the known populations, those that leave counted twice."""
    value = 0.0
    for k in range(len(velocities)):
        if velocities[k][axis] == 0:
            value += g[k]
    for k in range(len(velocities)):
        if velocities[k][axis] * inward == -1:
            value += 2.0 * g[k]
    return value


@func
def from_velocity(g, u, pull, j, velocities, axis, inward):
    """Set the momentum of what arrives where the velocity is known; return ``rho - 1``."""
    speed = inward * u[axis]
    above = (known(g, velocities, axis, inward) - 0.5 * inward * pull[axis] + speed) / (1.0 - speed)
    for a in range(len(j)):
        j[a] = (1.0 + above) * u[a] - 0.5 * pull[a]
    return above


@func
def from_density(g, above, u, pull, j, v, velocities, axis, inward):
    """Set the momentum of what arrives, and the velocity; density and velocity along the side are known."""
    for a in range(len(j)):
        v[a] = u[a]
        j[a] = (1.0 + above) * u[a] - 0.5 * pull[a]
    j[axis] = inward * (above - known(g, velocities, axis, inward))
    v[axis] = (j[axis] + 0.5 * pull[axis]) / (1.0 + above)


@func
def complete(f, g, j, velocities, weights, opposite, axis, inward, unit):
    """Store the unknown populations: bounce-back of what is not in equilibrium, momentum along the side put right."""
    lack = zeros(len(j))
    for a in range(len(j)):
        if a != axis:
            lack[a] = j[a]
            for k in range(len(velocities)):
                if velocities[k][axis] == 0 and velocities[k][a] != 0:
                    lack[a] = lack[a] - velocities[k][a] * g[k]
    for k in range(len(velocities)):
        if velocities[k][axis] * inward == 1:
            value = 6.0 * inward * j[axis]
            for a in range(len(j)):
                if a != axis and velocities[k][a] != 0:
                    value += 18.0 * velocities[k][a] * lack[a]
            f[k] = unit * (g[opposite[k]] + weights[k] * value)


@func
def bounce(g, j, velocities, weights, opposite, axis, inward):
    """Set the unknown populations by bounce-back of what is not in equilibrium alone."""
    for k in range(len(velocities)):
        if velocities[k][axis] * inward == 1:
            value = 0.0
            for a in range(len(j)):
                if velocities[k][a] != 0:
                    value += velocities[k][a] * j[a]
            g[k] = g[opposite[k]] + 6.0 * weights[k] * value


@func
def stress(g, above, u, velocities, a, b):
    """Return a second moment of what is not in equilibrium."""
    value = -(1.0 + above) * u[a] * u[b]
    if a == b:
        value -= above / 3.0
    for k in range(len(velocities)):
        if velocities[k][a] * velocities[k][b] != 0:
            value += velocities[k][a] * velocities[k][b] * g[k]
    return value


@func
def regularise(f, g, above, j, u, velocities, weights, unit):
    """Store all populations, made of density, momentum, velocity and what the stress is beyond equilibrium."""
    d = len(j)
    pi = zeros(d * d)
    trace = 0.0
    square = 0.0
    for a in range(d):
        for b in range(a, d):
            pi[a * d + b] = stress(g, above, u, velocities, a, b)
        trace += pi[a * d + a]
        square += u[a] * u[a]
    rho = 1.0 + above
    for k in range(len(velocities)):
        cj = 0.0
        cu = 0.0
        ccpi = 0.0
        for a in range(d):
            if velocities[k][a] != 0:
                cj += velocities[k][a] * j[a]
                cu += velocities[k][a] * u[a]
                ccpi += pi[a * d + a]
                for b in range(a + 1, d):
                    if velocities[k][b] != 0:
                        ccpi += 2.0 * velocities[k][a] * velocities[k][b] * pi[a * d + b]
        value = above + 3.0 * cj + rho * (4.5 * cu * cu - 1.5 * square) + 4.5 * ccpi - 1.5 * trace
        f[k] = unit * weights[k] * value


@func
def in_equilibrium(c, weight, above, u):
    """Return ``f_k^eq - w_k``."""
    cu = 0.0
    square = 0.0
    for a in range(len(u)):
        square += u[a] * u[a]
        if c[a] != 0:
            cu += c[a] * u[a]
    return weight * (above + (1.0 + above) * (3.0 * cu + 4.5 * cu * cu - 1.5 * square))


@func
def moments(g, pull, u, velocities, half):
    """Set the velocity, with ``half`` of the force; return ``rho - 1``."""
    above = 0.0
    for k in range(len(velocities)):
        above += g[k]
    for a in range(len(u)):
        u[a] = half * pull[a]
        for k in range(len(velocities)):
            if velocities[k][a] != 0:
                u[a] += velocities[k][a] * g[k]
        u[a] = u[a] / (1.0 + above)
    return above


@kernel
def zou_he_velocity(
    f: RW, u: Read, pull: Read,
    *, velocities: Const[list[list[int]]], weights: Const[list[float]], opposite: Const[list[int]],
    axis: Const[int], inward: Const[int], unit: Const[float],
):  # fmt: skip
    """Velocity set; unknown populations completed."""
    g = zeros(len(velocities))
    j = zeros(len(velocities[0]))
    load(f, g, unit)
    from_velocity(g, u, pull, j, velocities, axis, inward)
    complete(f, g, j, velocities, weights, opposite, axis, inward, unit)


@kernel
def zou_he_density(
    f: RW, above: Read, u: Read, pull: Read,
    *, velocities: Const[list[list[int]]], weights: Const[list[float]], opposite: Const[list[int]],
    axis: Const[int], inward: Const[int], unit: Const[float],
):  # fmt: skip
    """Density set, and the velocity along the side; unknown populations completed."""
    g = zeros(len(velocities))
    j = zeros(len(velocities[0]))
    v = zeros(len(velocities[0]))
    load(f, g, unit)
    from_density(g, above[0], u, pull, j, v, velocities, axis, inward)
    complete(f, g, j, velocities, weights, opposite, axis, inward, unit)


@kernel
def regularised_velocity(
    f: RW, u: Read, pull: Read,
    *, velocities: Const[list[list[int]]], weights: Const[list[float]], opposite: Const[list[int]],
    axis: Const[int], inward: Const[int], unit: Const[float],
):  # fmt: skip
    """Velocity set; all populations regularised."""
    g = zeros(len(velocities))
    j = zeros(len(velocities[0]))
    load(f, g, unit)
    above = from_velocity(g, u, pull, j, velocities, axis, inward)
    bounce(g, j, velocities, weights, opposite, axis, inward)
    regularise(f, g, above, j, u, velocities, weights, unit)


@kernel
def regularised_density(
    f: RW, above: Read, u: Read, pull: Read,
    *, velocities: Const[list[list[int]]], weights: Const[list[float]], opposite: Const[list[int]],
    axis: Const[int], inward: Const[int], unit: Const[float],
):  # fmt: skip
    """Density set, and the velocity along the side; all populations regularised."""
    g = zeros(len(velocities))
    j = zeros(len(velocities[0]))
    v = zeros(len(velocities[0]))
    load(f, g, unit)
    from_density(g, above[0], u, pull, j, v, velocities, axis, inward)
    bounce(g, j, velocities, weights, opposite, axis, inward)
    regularise(f, g, above[0], j, v, velocities, weights, unit)


@kernel
def edge(
    near: Read, above: Read, u: Read, pull: Read, f: Write,
    *, velocities: Const[list[list[int]]], weights: Const[list[float]],
    density: Const[int], velocity: Const[int], unit: Const[float],
):  # fmt: skip
    """All populations from the next cell inwards, with the equilibrium of what is set here.

    ``above`` is the density less one, or by how much it differs from that of the next cell.
    """
    g = zeros(len(velocities))
    there = zeros(len(velocities[0]))
    here = zeros(len(velocities[0]))
    load(near, g, unit)
    over = moments(g, pull, there, velocities, 0.5)
    value = above[0] if density != 0 else over + above[0]
    for a in range(len(here)):
        here[a] = u[a] if velocity != 0 else there[a]
    for k in range(len(velocities)):
        new = in_equilibrium(velocities[k], weights[k], value, here)
        old = in_equilibrium(velocities[k], weights[k], over, there)
        f[k] = unit * (g[k] + (new - old))


CELLS: Mapping[tuple[str, str], Kernel] = MappingProxyType(
    {
        ("velocity", "zou-he"): zou_he_velocity,
        ("velocity", "regularised"): regularised_velocity,
        ("density", "zou-he"): zou_he_density,
        ("density", "regularised"): regularised_density,
    }
)
"""Kernels by what is set, and the scheme."""
