"""Kernels that collide nothing: streaming, moments, and populations in equilibrium; see `.steps`.

Sources: Y. H. Qian, D. d'Humieres, P. Lallemand, Europhysics Letters 17 (1992) 479-484 (equilibrium); Z. Guo, C. Zheng,
B. Shi, Physical Review E 65 (2002) 046308 (half of the force in the velocity).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.body_force import UniformForce, set_force
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.moments import along, plain_sums, product
from fluxloom.lbm.streaming.stored import Stored

__all__ = ["arriving", "equilibrium", "macros", "stream"]


@kernel
def stream(f: Read, out: Write, *, lattice: Const[Lattice]):
    """``f_k(x, t + 1) = f_k(x - c_k, t)``: populations arrive through the legs of the sources."""
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k][k]
    for k in range(lattice.q):
        out[k] = g[k]


@kernel
def arriving(f: Read, above: Write, u: Write, *, lattice: Const[Lattice], unit: float):
    """``rho - 1 = A / U``, ``u = J / (U + A)`` of what arrives, ``g_k = f_k(x - c_k)``, without the force."""
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k][k]
    momentum = zeros(lattice.dimensions)
    excess = plain_sums(g, momentum, lattice)
    set_moments(excess, momentum, above, u, unit)


@kernel
def macros(
    f: Read, field: Read | None, above: Write, u: Write,
    *, lattice: Const[Lattice], unit: float, uniform: Const[UniformForce | None],
):  # fmt: skip
    """``rho - 1 = A / U``, ``u = (J + F / 2) / (U + A)`` of the cell's populations, before collision."""
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k]
    momentum, force = zeros(lattice.dimensions), zeros(lattice.dimensions)
    excess = plain_sums(g, momentum, lattice)
    if field is not None or uniform is not None:
        set_force(force, field, uniform, unit)
        for a in range(lattice.dimensions):
            momentum[a] += 0.5 * force[a]
    set_moments(excess, momentum, above, u, unit)


@func
def set_moments(excess, momentum, above, u, unit):
    """``above = rho - 1 = A / U``, ``u = J / (U + A)``."""
    above[0] = excess / unit
    for a in range(len(momentum)):
        u[a] = momentum[a] / (unit + excess)


@kernel
def equilibrium(
    above: Read, u: Read, f: Write,
    *, stored: Const[Stored], lattice: Const[Lattice], unit: float, uniform: Const[UniformForce | None],
):  # fmt: skip
    """``g_k = U (f_k^eq - w_k) + 3 w_k c_k F / 2``, where those are that left the cell; see `set_equilibrium`."""
    g = zeros(lattice.q)
    set_equilibrium(g, uniform, above, u, lattice, unit)
    stored.store(g, f, lattice)


@func
def set_equilibrium(g, uniform, above, u, lattice, unit):
    """``g_k = U w_k (rho - 1 + rho (3 c_k u + 9/2 (c_k u)^2 - 3/2 u^2)) + 3/2 w_k c_k F``.

    ``F`` is in the unit of storage. After collision the momentum has all of the force, of which the velocity has half.
    """
    excess = unit * above[0]
    rho = unit + excess
    v, t, force = zeros(lattice.dimensions), zeros(lattice.dimensions), zeros(lattice.dimensions)
    for a in range(lattice.dimensions):
        v[a] = u[a]
        t[a] = 3.0 * rho * u[a]
    if uniform is not None:
        uniform(force)
        for a in range(lattice.dimensions):
            t[a] += 1.5 * force[a]
    base = excess - 1.5 * rho * product(v, v)
    g[0] = lattice.weights[0] * base
    for k in range(1, lattice.q, 2):
        p = along(lattice.velocities[k], v)
        even = base + 4.5 * rho * (p * p)
        odd = along(lattice.velocities[k], t)
        g[k] = lattice.weights[k] * (even + odd)
        g[k + 1] = lattice.weights[k] * (even - odd)
