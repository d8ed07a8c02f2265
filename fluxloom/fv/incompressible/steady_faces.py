"""Kernels of what velocities of faces carry on beside means of cells (`fluxloom.solvers.incompressible.steady`).

B. Yu, W.-Q. Tao, J.-J. Wei, Y. Kawaguchi, T. Tagawa, H. Ozoe: *Discussion on momentum interpolation method for
collocated grids of incompressible flow*. Numer. Heat Transfer B 42, 2002.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs

__all__ = ["carried", "fading", "set_apart"]


@kernel
def fading(out: Read, us: Read, nus: Read, volume: Read, rate: Write):
    """One over the time in which ``m`` fades in a cell, ``1 / tau = (sum |u_s| A / 2 + sum nu_s A / delta) / Omega``.

    ``out``: signed area outward, and ``A / delta``, of each face.
    """
    total = 0.0
    for j in range(len(out)):
        total += 0.5 * fabs(us[j] * out[j][0]) + nus[j] * out[j][1]
    rate[0] = total / volume[0]


@kernel
def carried(rate: Read, apart: Read, dt: Read, kept: Write, *, part: float):
    """What is carried on, ``max(0, 1 - part dt / tau) m``, with the greater ``1 / tau`` of both cells."""
    most = 0.0
    for j in range(len(rate)):
        most = max(most, rate[j])
    kept[0] = max(0.0, 1.0 - part * dt[0] * most) * apart[0]


@kernel
def set_apart(gamma: Read, u: Read, us: Read, through: Read, apart: Write, *, d: Const[int]):
    """``m = u_s - Gamma u``, less what passes oblique faces beside."""
    total = us[0] - through[0]
    for j in range(len(gamma)):
        for k in range(d):
            total -= gamma[j][k] * u[j][k]
    apart[0] = total
