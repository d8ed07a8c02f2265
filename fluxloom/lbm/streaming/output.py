r"""What one looks at: density, velocity, mass and energy of the populations that left each cell last.

.. math:: \rho = \sum_k f_k^*, \quad \rho u = \sum_k c_k f_k^* - \frac{1}{2} F

The star says after collision: with a force :math:`F` a collision adds all of it to the momentum, of which the
velocity has half (Z. Guo, C. Zheng, B. Shi, *Physical Review E* 65 (2002) 046308, eq. 4). Where the populations are
depends on the scheme of streaming (`fluxloom.lbm.streaming.schemes`), and `fluxloom.lbm.streaming.stored.Stored` tells
it to the kernels.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Max, Min, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import isfinite, max, min, select, zeros
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming.stored import Stored

__all__ = ["judged", "moments", "set_moments", "totals"]


@func
def set_moments(g, pull, above, u, lattice, unit):
    """``rho - 1 = sum g_k / U``, ``u = (sum c_k g_k / U - F / 2) / rho`` of stored populations; ``pull`` is ``F``."""
    total = 0.0
    for k in range(lattice.q):
        total += g[k]
    above[0] = total / unit
    for a in range(lattice.dimensions):
        momentum = 0.0
        for k in range(lattice.q):
            if lattice.velocities[k][a] != 0:
                momentum += lattice.velocities[k][a] * g[k]
        u[a] = (momentum / unit - 0.5 * pull[a]) / (1.0 + above[0])


@kernel
def moments(
    f: Read, pull: Read, above: Write, u: Write, *, stored: Const[Stored], lattice: Const[Lattice], unit: Const[float]
):
    """``rho - 1 = sum g_k / U``, ``u = (sum c_k g_k / U - F / 2) / rho``; the force is a global, or a dat."""
    g = zeros(lattice.q)
    stored.load(f, g, lattice)
    set_moments(g, pull, above, u, lattice, unit)


@kernel
def totals(
    f: Read, pull: Read, fluid: Read, sums: Inc,
    *, stored: Const[Stored], lattice: Const[Lattice], unit: Const[float],
):  # fmt: skip
    """``sums += (rho - 1, rho u^2 / 2)`` of cells where ``fluid`` is not zero."""
    if fluid[0] > 0:
        g = zeros(lattice.q)
        stored.load(f, g, lattice)
        above, u = zeros(1), zeros(lattice.dimensions)
        set_moments(g, pull, above, u, lattice, unit)
        square = 0.0
        for a in range(lattice.dimensions):
            square += u[a] * u[a]
        sums[0] += above[0]
        sums[1] += 0.5 * (1.0 + above[0]) * square


@kernel
def judged(
    f: Read, pull: Read, fluid: Read, sums: Inc, least: Min, most: Max,
    *, stored: Const[Stored], lattice: Const[Lattice], unit: Const[float],
):  # fmt: skip
    """``sums += (1 if not finite, rho - 1)``, ``least = min rho``, ``most = max u^2`` where ``fluid`` is not zero.

    For guards; the minimum and the maximum are those of finite cells.
    """
    if fluid[0] > 0:
        g = zeros(lattice.q)
        stored.load(f, g, lattice)
        above, u = zeros(1), zeros(lattice.dimensions)
        set_moments(g, pull, above, u, lattice, unit)
        square = 0.0
        for a in range(lattice.dimensions):
            square += u[a] * u[a]
        finite = isfinite(square + above[0])
        sums[0] += select(finite, 0.0, 1.0)
        sums[1] += above[0]
        least[0] = min(least[0], select(finite, 1.0 + above[0], 1.0e30))
        most[0] = max(most[0], select(finite, square, 0.0))
