r"""Bhatnagar-Gross-Krook collision with pull streaming, one pass over the populations a step.

.. math:: f_i(x, t+1) = (1 - \omega) f_i(x - c_i, t) + \omega f_i^{eq}(\rho, u), \quad
   f_i^{eq} = w_i \rho (1 + 3 c_i u + 4.5 (c_i u)^2 - 1.5 u^2), \quad \nu = (1/\omega - 1/2) / 3

Y. H. Qian, D. d'Humieres, P. Lallemand, Europhysics Letters 17 (1992) 479-484; pull
streaming: M. Wittmann, T. Zeiser, G. Hager, G. Wellein, Computers & Mathematics with Applications 65
(2013) 924-935.

What is stored is ``g_i = f_i - w_i``: near rest the populations are small numbers, and single
precision keeps the digits that carry the flow (P. A. Skordos, Physical Review E 48 (1993) 4823). The
sums become ``rho - 1 = sum g_i`` and ``j = rho u = sum c_i g_i``.

Collision with few operations. Let ``s = omega / 36``, the rate times the weight of the diagonal
directions, ``m = 3 s j`` and ``p = c_i m``. Then, with ``a_i = 36 w_i``,

.. math:: \omega (f_i^{eq} - w_i) = a_i (b + 3 t p^2 + p), \quad
   t = \frac{1}{6 s \rho}, \quad b = s (\rho - 1) - t m^2

so that opposite directions share all but the sign of ``p``, all directions share ``b`` and ``t``, and
``a_i`` is 1 for most of them. `relaxation` rounds the rate such that ``keep = 1 - omega`` and
``scale = 3 s`` are exact and ``keep + 12 scale = 1``: rounding of constants then leaves no trend in the
momentum.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.kernel.frontend import Kernel, func, kernel
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED, Lattice

__all__ = [
    "equilibrium",
    "kinetic_energy",
    "moments",
    "relaxation",
    "stream_collide",
    "stream_collide_d2q9",
    "stream_collide_d3q19",
]


@func
def difference(f, k):
    """Arriving population ``k`` less its opposite."""
    return f[k][k] - f[k + 1][k + 1]


@func
def excess(f, q):
    """Density less one."""
    total = f[0][0]
    for k in range(1, q, 2):
        total += f[k][k] + f[k + 1][k + 1]
    return total


@func
def relax(f, out, k, p, ratio, base, curve, keep):
    """Write direction ``k`` and its opposite: ``keep g + ratio (base + curve p^2 +- p)``."""
    even = base + curve * (p * p)
    out[k] = keep * f[k][k] + ratio * (even + p)
    out[k + 1] = keep * f[k + 1][k + 1] + ratio * (even - p)


@kernel
def stream_collide_d3q19(f: Read, out: Write, *, keep: float, scale: float):
    """One step of D3Q19 BGK: population ``k`` arrives through leg ``k``, relaxes and is stored."""
    xy = difference(f, 7)
    yx = difference(f, 9)
    xz = difference(f, 11)
    zx = difference(f, 13)
    yz = difference(f, 15)
    zy = difference(f, 17)
    x = scale * (difference(f, 1) + (xy + yx) + (xz + zx))
    y = scale * (difference(f, 3) + (xy - yx) + (yz + zy))
    z = scale * (difference(f, 5) + (xz - zx) + (yz - zy))
    above = excess(f, 19)
    third = 0.5 / (scale * (1.0 + above))
    curve = 3.0 * third
    base = (1.0 / 3.0) * scale * above - third * (x * x + y * y + z * z)
    out[0] = keep * f[0][0] + 12.0 * base
    relax(f, out, 1, x, 2.0, base, curve, keep)
    relax(f, out, 3, y, 2.0, base, curve, keep)
    relax(f, out, 5, z, 2.0, base, curve, keep)
    relax(f, out, 7, x + y, 1.0, base, curve, keep)
    relax(f, out, 9, x - y, 1.0, base, curve, keep)
    relax(f, out, 11, x + z, 1.0, base, curve, keep)
    relax(f, out, 13, x - z, 1.0, base, curve, keep)
    relax(f, out, 15, y + z, 1.0, base, curve, keep)
    relax(f, out, 17, y - z, 1.0, base, curve, keep)


@kernel
def stream_collide_d2q9(f: Read, out: Write, *, keep: float, scale: float):
    """One step of D2Q9 BGK: population ``k`` arrives through leg ``k``, relaxes and is stored."""
    xy = difference(f, 5)
    yx = difference(f, 7)
    x = scale * (difference(f, 1) + (xy + yx))
    y = scale * (difference(f, 3) + (xy - yx))
    above = excess(f, 9)
    third = 0.5 / (scale * (1.0 + above))
    curve = 3.0 * third
    base = (1.0 / 3.0) * scale * above - third * (x * x + y * y)
    out[0] = keep * f[0][0] + 16.0 * base
    relax(f, out, 1, x, 4.0, base, curve, keep)
    relax(f, out, 3, y, 4.0, base, curve, keep)
    relax(f, out, 5, x + y, 1.0, base, curve, keep)
    relax(f, out, 7, x - y, 1.0, base, curve, keep)


@func
def along(velocity, vector):
    """Product of a lattice velocity with a vector."""
    total = 0.0
    for a in range(len(velocity)):
        if velocity[a] != 0:
            total += velocity[a] * vector[a]
    return total


@func
def total(f, velocities):
    """Sum of a cell's populations."""
    value = f[0]
    for k in range(1, len(velocities)):
        value += f[k]
    return value


@func
def momentum(f, velocities, a):
    """Sum of the momentum of a cell's populations along one axis."""
    value = 0.0
    for k in range(len(velocities)):
        if velocities[k][a] != 0:
            value += velocities[k][a] * f[k]
    return value


@func
def set_equilibrium(above, u, f, velocities, weights):
    """Set ``f_i^eq - w_i = w_i (rho - 1 + rho (3 c_i u + 4.5 (c_i u)^2 - 1.5 u^2))``."""
    square = 0.0
    for a in range(len(velocities[0])):
        square += u[a] * u[a]
    for k in range(len(velocities)):
        cu = along(velocities[k], u)
        f[k] = weights[k] * (above[0] + (1.0 + above[0]) * (3.0 * cu + 4.5 * cu * cu - 1.5 * square))


@func
def set_moments(f, above, u, velocities):
    """Set ``rho - 1 = sum g_i`` and the velocity ``sum c_i g_i / rho``."""
    above[0] = total(f, velocities)
    for a in range(len(velocities[0])):
        u[a] = momentum(f, velocities, a) / (1.0 + above[0])


@func
def add_energy(f, energy, velocities):
    """Add ``rho u^2 / 2``."""
    rho = 1.0 + total(f, velocities)
    for a in range(len(velocities[0])):
        energy[0] += 0.5 * momentum(f, velocities, a) ** 2 / rho


@kernel
def equilibrium(above: Read, u: Read, f: Write, *, velocities: Const[list[list[int]]], weights: Const[list[float]]):
    """Populations in equilibrium, of any lattice, from ``rho - 1`` and the velocity along each axis."""
    set_equilibrium(above, u, f, velocities, weights)


@kernel
def moments(f: Read, above: Write, u: Write, *, velocities: Const[list[list[int]]]):
    """``rho - 1`` and the velocity along each axis, of any lattice."""
    set_moments(f, above, u, velocities)


@kernel
def kinetic_energy(f: Read, energy: Inc, *, velocities: Const[list[list[int]]]):
    """Sum of ``rho u^2 / 2`` over the cells, of any lattice."""
    add_energy(f, energy, velocities)


SINGLE_PLACES, DOUBLE_PLACES = 26, 55
"""Binary places of a number below 1/4 in each precision."""

KERNELS: Mapping[str, Kernel] = MappingProxyType({"D2Q9": stream_collide_d2q9, "D3Q19": stream_collide_d3q19})


def stream_collide(lattice: Lattice) -> Kernel:
    """Return the step of a lattice.

    Raises
    ------
    SolverError
        If there is none.
    """
    if lattice.name not in KERNELS:
        raise SolverError(f"no BGK kernel for the lattice {lattice.name!r} (there are: {', '.join(KERNELS)})")
    return KERNELS[lattice.name]


def relaxation(viscosity: float, dtype: npt.DTypeLike) -> tuple[float, float]:
    """Return ``keep = 1 - omega`` and ``scale = omega / 12``, with ``omega = 1 / (nu / c_s^2 + 1/2)``.

    Parameters
    ----------
    viscosity
        Kinematic, in lattice units.
    dtype
        Of the populations. The rate is rounded to a multiple of 12 times the place of the last bit that
        ``scale < 1/6`` can have: both numbers then are exact in the arithmetic, and
        ``keep + 12 scale = 1``, on which the momentum depends.

    Raises
    ------
    SolverError
        If the viscosity is not positive.
    """
    if not viscosity > 0:
        raise SolverError(f"the viscosity must be positive, not {viscosity!r} (lattice units: cells^2 a step)")
    one = 1 << (SINGLE_PLACES if np.dtype(dtype).itemsize < 8 else DOUBLE_PLACES)
    scale = round(one / (viscosity / SOUND_SPEED_SQUARED + 0.5) / 12.0)
    return (one - 12 * scale) / one, scale / one
