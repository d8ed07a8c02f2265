r"""Kernels of a viscosity that differs from place to place: at faces, and the transposed part of its stress.

.. math:: \nu_s = 1 / (w_1 / \nu_1 + w_2 / \nu_2), \quad
   F_i = \nu_s \sum_k A_k \, \partial_i u_k

with the parts ``w`` of the way from one element to the other that are on either side of the face: a linear velocity in
each of two layers has the same stress on both sides. The rest of the stress, ``nu grad u``, is that of a constant one.

Source: S. V. Patankar: *Numerical Heat Transfer and Fluid Flow*, Hemisphere 1980, section 4.2-3, the conductivity at
an interface.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["layered_viscosity", "transposed_stress"]


@kernel
def layered_viscosity(weight: Read, nu: Read, nus: Write):
    """The viscosity of a face from those of its two elements."""
    total = 0.0
    for j in range(len(weight)):
        total += weight[j] / nu[j][0]
    nus[0] = 1.0 / total


@kernel
def transposed_stress(weight: Read, gradient: Read, area: Read, nus: Read, flux: Write, *, d: Const[int]):
    """``-nu_s sum_k A_k du_k/dx_i``, out of the first element; gradients as `velocity_gradient` has them."""
    total = zeros(d)
    for j in range(len(weight)):
        for i in range(d):
            for k in range(d):
                total[i] -= weight[j] * area[k] * gradient[j][3 * k + i]
    for i in range(d):
        flux[i] = nus[0] * total[i]
