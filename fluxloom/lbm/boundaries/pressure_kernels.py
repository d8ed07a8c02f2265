r"""Kernels of sides on which the pressure is set half a cell beyond the cells: one element is a fluid cell at the side.

Anti-bounce-back (I. Ginzburg, F. Verhaeghe, D. d'Humieres, *Communications in Computational Physics* 3 (2008) 427;
T. Krueger et al., *The Lattice Boltzmann Method* (2017), eq. 5.53):

.. math:: g_k = -g_{k'} + 2 w_k \bigl[\rho_w - 1 + \rho_w (\tfrac92 (c_k u_w)^2 - \tfrac32 u_w^2)\bigr]

with what left the cell on the right and :math:`u_w` from this cell and the next one inwards, extrapolated to the side.
A force along the side adds :math:`-\tfrac32 c_k F` to the density: what arrives crosses the side half a step of
:math:`c_k` away, where the fluid that stands above weighs so much less.

A pressure that is held reflects waves whole, with the opposite sign; so does a velocity that is set at the other end,
and what an abrupt start has made goes to and fro for long. The kernel that absorbs lets the density go with the wave.
Of a wave that leaves along the normal :math:`n`, :math:`\rho' = \rho u_n' / c_s`, and
:math:`\partial_t u_n = (1 + u_n / c_s)\, D u_n / D t`, while of a vortex that is carried out
:math:`D u_n / D t` is nearly zero, with :math:`D / D t = \partial_t + u_n \partial_n`. So the distance of the density
from what is set, :math:`\rho_w = \rho_0 + e`, follows

.. math:: e(t+1) = (1 - K)\, e(t) + \frac{1 + u_n / c_s}{c_s}
   \bigl[u_n(t+1) - u_n(t) + \max(u_n, 0) (\partial_n u_n - \overline{\partial_n u_n})\bigr]

The bar is a running mean with the same :math:`K`: in a steady flow the density is the one that is set. Without the
convective part these are the local one-dimensional relations of T. J. Poinsot, S. K. Lele (*Journal of Computational
Physics* 101 (1992) 104, section 3.3), for lattices S. Izquierdo, N. Fueyo (*Physical Review E* 78 (2008) 046707); they
take a vortex for a wave, as C. S. Yoo, H. G. Im (*Combustion Theory and Modelling* 11 (2007) 259) say.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.boundaries.cell_kernels import Normal, load, moments
from fluxloom.lbm.lattices import Lattice

__all__ = ["Absorption", "anti_bounce_back", "remember"]

SLOWNESS = 1.7320508075688772
"""One over the speed of sound."""


@dataclass(frozen=True)
class Absorption:
    """What is kept in a step of the distance from the density that is set, where waves leave."""

    keep: float


@func
def velocities_near(near, further, pull, g, u, v, lattice, unit):
    """``u = (sum_k c_k g_k - F / 2) / rho`` of what left the cell, and ``v`` of the next one inwards.

    ``g`` is loaded with what left the cell.
    """
    h = zeros(lattice.q)
    load(near, g, unit)
    load(further, h, unit)
    moments(g, pull, u, lattice, -0.5)
    moments(h, pull, v, lattice, -0.5)


@func
def turn(g, above, pull, u, v, back, lattice, unknown, side, unit):
    """``g_k = -g_k' + 2 w_k [rho - 1 + rho (9/2 (c_k u_w)^2 - 3/2 u_w^2) - 3/2 c_kt F_t]``, ``u_w = 3/2 u - 1/2 v``.

    The unknown populations; a force along the side changes the density to where they cross it.
    """
    for a in range(len(u)):
        u[a] = 1.5 * u[a] - 0.5 * v[a]
    square = 0.0
    for a in range(len(u)):
        square += u[a] * u[a]
    for m in range(len(unknown)):
        cu = 0.0
        lift = 0.0
        for a in range(len(u)):
            if lattice.velocities[unknown[m]][a] != 0:
                cu += lattice.velocities[unknown[m]][a] * u[a]
                if a != side.axis:
                    lift -= 1.5 * lattice.velocities[unknown[m]][a] * pull[a]
        value = above + (1.0 + above) * (4.5 * cu * cu - 1.5 * square)
        back[m] = unit * (2.0 * lattice.weights[unknown[m]] * (value + lift) - g[lattice.opposite[unknown[m]]])


@kernel
def anti_bounce_back(
    near: Read, further: Read, above: Read, pull: Read, memory: RW | None, back: Write,
    *, lattice: Const[Lattice], unknown: Const[list[int]], side: Const[Normal], unit: Const[float],
    absorption: Const[Absorption | None],
):  # fmt: skip
    r"""The pressure is held, ``rho_w = rho_0``, or waves leave, ``rho_w = rho_0 + e``; see `turn`.

    .. math:: e(t+1) = (1 - K)\, e(t) + \frac{1 + u_n / c_s}{c_s}
       \bigl[u_n(t+1) - u_n(t) + \max(u_n, 0) (\partial_n u_n - \overline{\partial_n u_n})\bigr]

    ``near`` left the cell, ``further`` the next one inwards; ``u_n`` is the mean of both. ``memory`` has ``e``, ``u_n``
    and the mean of its slope.
    """
    g = zeros(lattice.q)
    u = zeros(lattice.dimensions)
    v = zeros(lattice.dimensions)
    velocities_near(near, further, pull, g, u, v, lattice, unit)
    if memory is None or absorption is None:
        turn(g, above[0], pull, u, v, back, lattice, unknown, side, unit)
    else:
        out = -0.5 * side.inward * (u[side.axis] + v[side.axis])
        slope = -side.inward * (u[side.axis] - v[side.axis])
        carried = max(out, 0.0) * (slope - memory[2])
        away = absorption.keep * memory[0] + SLOWNESS * (1.0 + SLOWNESS * out) * (out - memory[1] + carried)
        memory[0] = away
        memory[1] = out
        memory[2] = slope + absorption.keep * (memory[2] - slope)
        turn(g, above[0] + away, pull, u, v, back, lattice, unknown, side, unit)


@kernel
def remember(
    near: Read, further: Read, pull: Read, memory: Write,
    *, lattice: Const[Lattice], side: Const[Normal], unit: Const[float],
):  # fmt: skip
    """``e = 0``, ``u_n = n . (u + v) / 2``, mean slope ``n . (u - v)``.

    The memory of a flow that begins, ``n`` outwards.
    """
    g = zeros(lattice.q)
    u = zeros(lattice.dimensions)
    v = zeros(lattice.dimensions)
    velocities_near(near, further, pull, g, u, v, lattice, unit)
    memory[0] = 0.0
    memory[1] = -0.5 * side.inward * (u[side.axis] + v[side.axis])
    memory[2] = -side.inward * (u[side.axis] - v[side.axis])
