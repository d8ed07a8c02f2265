r"""Kernels of a viscosity that differs from place to place: at faces, and the transposed part of its stress.

.. math:: \nu_s = 1 / (w_1 / \nu_1 + w_2 / \nu_2), \quad
   F_i = -\nu_s \sum_k A_k \, \partial_i u_k

with the parts ``w`` of the way from one element to the other that are on either side of the face: a flow along layers
of different viscosity has the same shear stress on both sides. The rest of the stress is that of a constant one.

Source: S. V. Patankar: *Numerical Heat Transfer and Fluid Flow*, Hemisphere 1980, section 4.2-3, the conductivity at
an interface.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["layered_viscosity", "stress_work", "transposed_stress", "turning_stress"]


@kernel
def layered_viscosity(weight: Read, nu: Read, nus: Write):
    """The viscosity of a face from its two elements, ``1 / (w_1 / nu_1 + w_2 / nu_2)`` (Patankar, sec. 4.2-3)."""
    total = 0.0
    for j in range(len(weight)):
        total += weight[j] / nu[j][0]
    nus[0] = 1.0 / total


@kernel
def transposed_stress(weight: Read, gradient: Read, area: Read, kept: Read, nus: Read, flux: Write, *, d: Const[int]):
    """``F = -nu_s (a f + b (f . A) A)`` out of the first element, ``f_i = sum_k A_k du_k/dx_i``, ``(a, b)`` in `kept`.

    ``gradient`` has ``du_k/dx_i`` at place ``d k + i``; ``weight`` is that of the cells in the mean at the face.
    """
    total = zeros(d)
    through = 0.0
    for j in range(len(weight)):
        for i in range(d):
            for k in range(d):
                total[i] += weight[j] * area[k] * gradient[j][d * k + i]
    for i in range(d):
        through += area[i] * total[i]
    for i in range(d):
        flux[i] = -nus[0] * (kept[0] * total[i] + kept[1] * through * area[i])


@kernel
def turning_stress(curvature: Read, u: Read, nus: Read, flux: Write, *, d: Const[int]):
    """``F = nu_s A K u`` on a wall that turns, see `fluxloom.fv.geometry.wall_curvature`; ``curvature`` is ``A K``."""
    for i in range(d):
        total = 0.0
        for k in range(d):
            total += curvature[d * i + k] * u[1][k]
        flux[i] = nus[0] * total


@kernel
def stress_work(u: Read, flux: Read, total: Inc, *, d: Const[int]):
    """What a flux of momentum between two elements takes of their energy, ``-F . (u_2 - u_1)``."""
    for k in range(d):
        total[0] -= flux[k] * (u[1][k] - u[0][k])
