r"""Kernels of immersed boundaries.

Fields live on the grid: ``above`` (density less one), ``u`` (the velocity that arrives, without force) and ``force``.
Values of markers: ``sample``, the interpolated velocity ``U_k`` and behind it ``rho - 1``; ``pull``, the force ``F_k``
on the fluid that a marker spreads, with its weight; ``total``, what it has spread in this step.

.. math:: U_k = \sum_x \delta(x - X_k) \bigl(u + \tfrac{f}{2 \rho}\bigr)(x), \qquad
   F_k = 2 \epsilon_k \rho\, (U_d - U_k), \qquad f(x) = \sum_k \delta(x - X_k) F_k

With Guo's force the fluid's velocity is ``u + f / (2 rho)``: it meets the wanted one if ``f = 2 rho (U_d - U)``. Forces
that are already there, a uniform one or those of an iteration before, count in it.

Sources: M. Uhlmann, J. Comput. Phys. 209 (2005) 448 (direct forcing); A. Pinelli, I. Naqavi, U. Piomelli, J. Favier, J.
Comput. Phys. 229 (2010) 9073 (weights of markers).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import sqrt, zeros
from fluxloom.lbm.body_force import UniformForce
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming.output import set_moments

__all__ = [
    "advect", "arriving_turned", "bend", "clear", "force_marker", "interpolate", "place_2d", "place_3d", "rest",
    "shift", "spread", "stretch", "sums_2d", "sums_3d",
]  # fmt: skip


# ------------------------------------------------------------------------- what arrives at a cell
@kernel
def arriving_turned(f: Read, above: Write, u: Write, *, lattice: Const[Lattice], unit: Const[float]):
    """``rho - 1``, ``u`` of ``g_k = f_k'(x - c_k)``.

    In place, what arrives in odd steps is behind a cell, turned round. The stencil is that of the velocities.
    """
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[lattice.opposite[k]][lattice.opposite[k]]
    none = zeros(lattice.dimensions)
    set_moments(g, none, above, u, lattice, unit)


# ------------------------------------------------------------------------------- cells and markers
@kernel
def interpolate(weights: Read, u: Read, above: Read, force: Read, sample: Write, *, dimensions: Const[int]):
    """``U_k = sum_j delta_kj (u_j + f_j / 2 rho_j)``, ``rho_k - 1 = sum_j delta_kj (rho_j - 1)`` of cells ``j``."""
    found = zeros(dimensions + 1)
    for j in range(len(weights)):
        rho = 1.0 + above[j]
        for a in range(dimensions):
            found[a] += weights[j] * (u[j][a] + 0.5 * force[j][a] / rho)
        found[dimensions] += weights[j] * above[j]
    for a in range(dimensions + 1):
        sample[a] = found[a]


@func
def answer(above, weight, factor):
    """``w = eps factor rho``: force of a marker for a unit of missing velocity; ``factor`` is 2 with Guo's force."""
    return weight * factor * (1.0 + above)


@kernel
def force_marker(sample: Read, wanted: Read, weight: Read, pull: Write, total: Write | None, more: RW | None, *,
                 factor: float, dimensions: Const[int]):  # fmt: skip
    """``F_k = eps_k factor rho (U_d - U_k)``: the first force of a step, ``total``.

    A further one is added to ``more``.
    """
    for a in range(dimensions):
        given = answer(sample[dimensions], weight[0], factor) * (wanted[a] - sample[a])
        pull[a] = given
        if total is not None:
            total[a] = given
        if more is not None:
            more[a] = more[a] + given


@kernel
def spread(weights: Read, pull: Read, force: RW, *, dimensions: Const[int]):
    """``f(x) += sum_k delta(x - X_k) F_k`` of all markers around a cell."""
    found = zeros(dimensions)
    for j in range(len(weights)):
        for a in range(dimensions):
            found[a] += weights[j] * pull[j][a]
    for a in range(dimensions):
        force[a] = force[a] + found[a]


@kernel
def clear(force: Write, *, uniform: Const[UniformForce]):
    """``f = F``, the uniform force."""
    uniform(force)


@kernel
def shift(force: RW, *, uniform: Const[UniformForce]):
    """``f += Delta F``, by as much as the uniform force changes."""
    change = zeros(len(force))
    uniform(change)
    for a in range(len(force)):
        force[a] = force[a] + change[a]


# ------------------------------------------------------------------------------------ rigid bodies
# State of a body: centre (d), rotation matrix (d * d), velocity (d), spin (1 or 3); components the slowest axis first,
# so that in space the vector product has the other sign.
@kernel
def place_2d(reference: Read, own: Read, body: Read, x: Write, wanted: Write):
    """``x = X + R s``, ``U_d = V + Omega x R s + R U_own`` of a marker of a rigid body in the plane, ``(y, x)``."""
    ry = body[2] * reference[0] + body[3] * reference[1]
    rx = body[4] * reference[0] + body[5] * reference[1]
    x[0] = body[0] + ry
    x[1] = body[1] + rx
    wanted[0] = body[6] + body[8] * rx + body[2] * own[0] + body[3] * own[1]
    wanted[1] = body[7] - body[8] * ry + body[4] * own[0] + body[5] * own[1]


@kernel
def place_3d(reference: Read, own: Read, body: Read, x: Write, wanted: Write):
    """``x = X + R s``, ``U_d = V + Omega x R s + R U_own`` of a marker of a rigid body in space, ``(z, y, x)``."""
    r = zeros(3)
    s = zeros(3)
    for a in range(3):
        for b in range(3):
            r[a] += body[3 + 3 * a + b] * reference[b]
            s[a] += body[3 + 3 * a + b] * own[b]
        x[a] = body[a] + r[a]
    wanted[0] = body[12] + s[0] - (body[16] * r[2] - body[17] * r[1])
    wanted[1] = body[13] + s[1] - (body[17] * r[0] - body[15] * r[2])
    wanted[2] = body[14] + s[2] - (body[15] * r[1] - body[16] * r[0])


@kernel
def sums_2d(x: Read, sample: Read, wanted: Read, weight: Read, body: Read, sums: Write, *, factor: float):
    """What a body in the plane would give to the fluid, and how that changes with its velocity and spin.

    With ``w = eps factor rho`` and ``r = x - X``: ``sum w``, ``sum w r`` (2), ``sum w r^2``, force ``sum F``, ``F = w
    (U_d - U)`` (2), torque ``sum r x F``.
    """
    found = zeros(7)
    for j in range(len(x)):
        w = answer(sample[j][2], weight[j], factor)
        ry = x[j][0] - body[0]
        rx = x[j][1] - body[1]
        fy = w * (wanted[j][0] - sample[j][0])
        fx = w * (wanted[j][1] - sample[j][1])
        found[0] += w
        found[1] += w * ry
        found[2] += w * rx
        found[3] += w * (ry * ry + rx * rx)
        found[4] += fy
        found[5] += fx
        found[6] += rx * fy - ry * fx
    for a in range(7):
        sums[a] = found[a]


@kernel
def sums_3d(x: Read, sample: Read, wanted: Read, weight: Read, body: Read, sums: Write, *, factor: float):
    """What a body in space would give to the fluid, and how that changes with its velocity and spin.

    With ``w = eps factor rho`` and ``r = x - X``: ``sum w``, ``sum w r`` (3), ``sum w r r`` (6: upper triangle), force
    ``sum F``, ``F = w (U_d - U)`` (3), torque ``sum r x F`` (3).
    """
    found = zeros(16)
    r = zeros(3)
    f = zeros(3)
    for j in range(len(x)):
        w = answer(sample[j][3], weight[j], factor)
        for a in range(3):
            r[a] = x[j][a] - body[a]
            f[a] = w * (wanted[j][a] - sample[j][a])
            found[1 + a] += w * r[a]
            found[10 + a] += f[a]
        found[0] += w
        found[4] += w * r[0] * r[0]
        found[5] += w * r[0] * r[1]
        found[6] += w * r[0] * r[2]
        found[7] += w * r[1] * r[1]
        found[8] += w * r[1] * r[2]
        found[9] += w * r[2] * r[2]
        found[13] -= r[1] * f[2] - r[2] * f[1]
        found[14] -= r[2] * f[0] - r[0] * f[2]
        found[15] -= r[0] * f[1] - r[1] * f[0]
    for a in range(16):
        sums[a] = found[a]


# ---------------------------------------------------------------------------------- elastic bodies
@kernel
def rest(pull: Write, *, dimensions: Const[int]):
    """``F_k = 0``."""
    for a in range(dimensions):
        pull[a] = 0.0


@kernel
def stretch(x: Read, spring: Read, pull: Inc, *, dimensions: Const[int]):
    """``F_0 += k (l - l_0) (x_1 - x_0) / l``, ``F_1 -=`` the same.

    A spring between two markers, ``l = |x_1 - x_0|``. Source: C. Peskin, Acta Numerica 11 (2002) 479.

    A spring between two markers, ``l = |x_1 - x_0|``.
    """
    square = 0.0
    for a in range(dimensions):
        square += (x[1][a] - x[0][a]) ** 2
    length = sqrt(square)
    tension = spring[0] * (length - spring[1]) / length if length > 0.0 else 0.0
    for a in range(dimensions):
        pull[0][a] += tension * (x[1][a] - x[0][a])
        pull[1][a] -= tension * (x[1][a] - x[0][a])


@kernel
def bend(x: Read, stiffness: Read, pull: Inc, *, dimensions: Const[int]):
    """``F = -dE/dx``, ``E = k |x_0 - 2 x_1 + x_2|^2 / 2``: bending at the middle one of three markers.

    ``f = k (x_0 - 2 x_1 + x_2)``: ``F_0 -= f``, ``F_1 += 2 f``, ``F_2 -= f``.
    """
    for a in range(dimensions):
        f = stiffness[0] * (x[0][a] - 2.0 * x[1][a] + x[2][a])
        pull[0][a] -= f
        pull[1][a] += 2.0 * f
        pull[2][a] -= f


@kernel
def advect(sample: Read, pull: Read, x: RW, total: Write, *, dimensions: Const[int]):
    """``X_k += U_k`` in a step; the force ``F_k`` is kept."""
    for a in range(dimensions):
        x[a] = x[a] + sample[a]
        total[a] = pull[a]
