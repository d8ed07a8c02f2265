r"""What guards look at: sums, least and largest values of a flow, found by one loop over its elements.

Each kernel adds to ``sums``, whose first component counts the elements with a value that is not finite; such values do
not count among the least (``least``) and the largest (``most``). Elements without a volume are left out.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Max, Min, Read
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs, isfinite, max, min, select, sqrt

__all__ = [
    "all_that_passed", "look_at_conserved", "look_at_gas", "look_at_scalar", "look_at_velocity",
    "look_at_viscosity", "look_at_water", "slow_inlets", "slow_outlets", "take_back", "through_boundary",
]  # fmt: skip

@kernel
def look_at_gas(
    w: Read, volume: Read, sums: Inc, least: Min, most: Max, *, gamma: float, nv: Const[int], d: Const[int]
):
    r"""Of primitive states: mass and energy, least density and pressure, and the largest value of a model.

    .. math:: \sum V \rho, \quad \sum V \Big(\frac{p}{\gamma - 1} + \tfrac12 \rho |u|^2\Big), \quad
              \min \rho, \quad \min p, \quad \max |\tilde\nu|
    """
    if volume[0] > 0.0:
        square = 0.0
        for k in range(d):
            square += w[1 + k] * w[1 + k]
        last = w[nv - 1]
        finite = isfinite(w[0] + square + w[1 + d] + last)
        sums[0] += select(finite, 0.0, 1.0)
        sums[1] += volume[0] * w[0]
        sums[2] += volume[0] * (w[1 + d] / (gamma - 1.0) + 0.5 * w[0] * square)
        least[0] = min(least[0], select(finite, w[0], 1.0e30))
        least[1] = min(least[1], select(finite, w[1 + d], 1.0e30))
        if nv == d + 3:
            most[0] = max(most[0], select(finite, fabs(last), 0.0))


@kernel
def look_at_conserved(q: Read, sums: Inc, least: Min, *, gm1: float):
    """Of conserved states in the plane: ``sum rho E``, least ``rho``, ``p = (gamma - 1) (rho E - rho |u|^2 / 2)``."""
    p = gm1 * (q[3] - 0.5 * (q[1] * q[1] + q[2] * q[2]) / q[0])
    finite = isfinite(q[0] + q[1] + q[2] + q[3])
    sums[0] += select(finite, 0.0, 1.0)
    sums[1] += q[3]
    least[0] = min(least[0], select(finite, q[0], 1.0e30))
    least[1] = min(least[1], select(isfinite(p), p, 1.0e30))


@kernel
def look_at_velocity(u: Read, volume: Read, sums: Inc, most: Max, *, d: Const[int]):
    """Of velocities: kinetic energy ``sum V |u|^2 / 2``, and the largest ``|u|^2``."""
    if volume[0] > 0.0:
        square = 0.0
        for k in range(d):
            square += u[k] * u[k]
        sums[0] += select(isfinite(square), 0.0, 1.0)
        sums[1] += 0.5 * volume[0] * square
        most[0] = max(most[0], select(isfinite(square), square, 0.0))


@kernel
def look_at_viscosity(nu: Read, laminar: Read, sums: Inc, most: Max):
    """Of an eddy viscosity: the largest one, ``max (nu - nu_laminar)``, less the molecular part that is in it."""
    eddy = nu[0] - laminar[0]
    sums[0] += select(isfinite(eddy), 0.0, 1.0)
    most[0] = max(most[0], select(isfinite(eddy), eddy, 0.0))


@kernel
def look_at_scalar(c: Read, volume: Read, sums: Inc, most: Max):
    """Of a scalar: its integral ``sum V c = total``, and the largest ``|c|``."""
    if volume[0] > 0.0:
        finite = isfinite(c[0])
        sums[0] += select(finite, 0.0, 1.0)
        sums[1] += volume[0] * c[0]
        most[0] = max(most[0], select(finite, fabs(c[0]), 0.0))


@kernel
def look_at_water(u: Read, sums: Inc, least: Min):
    """Of shallow water ``(H, Hu, Hv)``: the least depth, ``least = min H``."""
    finite = isfinite(u[0] + u[1] + u[2])
    sums[0] += select(finite, 0.0, 1.0)
    least[0] = min(least[0], select(finite, u[0], 1.0e30))


@kernel
def slow_outlets(
    kind: Read, face: Read, w: Read, slow: Inc, least: Min,
    *, gamma: float, which: Const[int], d: Const[int], moving: Const[int],
):
    """Supersonic outlets through which gas does not leave faster than sound, or enters; the least Mach number there.

    They are the faces of the kind ``which``. ``M_n = (u_n - u_f) / c`` is that along the normal, of the cell behind
    ``w``, with the speed ``u_f`` of a face that moves. Gas at rest does not count.
    """
    if kind[0] == which:
        un = 0.0
        for k in range(d):
            un += w[1 + k] * face[k]
        if moving == 1:
            un -= face[3 * d + 1]
        mach = un / sqrt(gamma * w[1 + d] / w[0])
        found = mach < 1.0 and fabs(mach) > 1.0e-6
        slow[0] += select(found, 1.0, 0.0)
        least[0] = min(least[0], select(found, mach, 1.0))


@kernel
def slow_inlets(kind: Read, w: Read, slow: Inc, *, gamma: float, which: Const[int], d: Const[int]):
    """Faces of the kind ``which``, where all is given, before a cell with gas slower than sound, ``|u|^2 < c^2``."""
    square = 0.0
    for k in range(d):
        square += w[1 + k] * w[1 + k]
    slow[0] += select(kind[0] == which and square * w[0] < gamma * w[1 + d], 1.0, 0.0)


@kernel
def through_boundary(
    flux: Read, face: Read, dt: Read, passed: RW, *, weight: float, first: Const[int], d: Const[int]
):  # fmt: skip
    """Mass and energy that leave through a boundary face in a stage, ``passed += weight dt A f``.

    ``passed`` has what left in steps before, and then what left in this one, whose ``first`` stage adds the two.
    """
    if first == 1:
        for k in range(2):
            passed[k] += passed[2 + k]
            passed[2 + k] = 0.0
    area = weight * dt[0] * face[d]
    passed[2] += area * flux[0]
    passed[3] += area * flux[1 + d]


@kernel
def take_back(passed: RW):
    """Nothing left in this step, which is made anew: ``passed = 0``."""
    passed[2] = 0.0
    passed[3] = 0.0


@kernel
def all_that_passed(passed: Read, sums: Inc):
    """Mass and energy that left through all boundary faces, ``sums += passed``, in steps before and in this one."""
    mass = passed[0] + passed[2]
    energy = passed[1] + passed[3]
    sums[0] += select(isfinite(mass + energy), 0.0, 1.0)
    sums[1] += mass
    sums[2] += energy
