"""Kernels of scalars, heat or a concentration, that the velocities of `fluxloom.fv.incompressible.kernels` carry.

::

    d theta/dt + div(u_s theta) = div(alpha grad theta) + s

A scalar has the operators of a component of the velocity, ``C(u_s) + D(alpha_s)`` on the same pattern, and is advanced
by the same kernels (`transport`, `extrapolate`, `predict`, `relax`). Here is what a scalar has beside them. As
``C + C^T = 0``, convection changes neither ``sum Omega theta`` nor ``sum Omega theta^2``.

Source: F. X. Trias et al., J. Comput. Phys. 258, 2014, section 2, for the operators.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Max, Min, Read, Write
from fluxloom.fv.incompressible.scalar_boundary import ScalarBoundary
from fluxloom.kernel.frontend import kernel

__all__ = [
    "NOTHING_YET",
    "scalar_boundary",
    "scalar_content",
    "scalar_diffusivity",
    "scalar_flux",
]

NOTHING_YET = 1.0e300
"""Least value of no cells; its negative is the largest."""


@kernel
def scalar_boundary(
    kind: Read, given: Read, side: Read, alpha: Read, inside: Read, theta: Write, *,
    formulas: Const[tuple[ScalarBoundary, ...]],
):  # fmt: skip
    """Value of a boundary element with its one face: given, or ``theta_b = formula(given, theta_c, delta, alpha)``.

    ``side`` is ``(A, delta)``.
    """
    value = given[0]
    for k in range(len(formulas)):
        if kind[0] == k:
            for j in range(len(alpha)):
                value = formulas[k](given[0], inside[0], side[j][1], alpha[j])
    theta[0] = value


@kernel
def scalar_diffusivity(nus: Read, alpha: Write, *, molecular: float, nu: float, prandtl: float):
    """``alpha_s = alpha + (nu_s - nu) / Pr_t``: what an eddy viscosity carries of a scalar."""
    alpha[0] = molecular + (nus[0] - nu) / prandtl


@kernel
def scalar_flux(side: Read, alpha: Read, us: Read, inside: Read, theta: Read, entering: Write, sums: Inc):
    """What enters through a boundary element: ``alpha A (theta_b - theta_c) / delta``, ``-u_s A theta_b``, and ``A``.

    These are the terms that the operators add to the cell behind; ``side`` is ``(A, delta)``. And ``A theta_b``; the
    first term is ``entering``, too.
    """
    total = 0.0
    for j in range(len(side)):
        diffused = alpha[j] * side[j][0] * (theta[0] - inside[0]) / side[j][1]
        total += diffused
        sums[0] += diffused
        sums[1] -= us[j] * side[j][0] * theta[0]
        sums[2] += side[j][0]
        sums[3] += side[j][0] * theta[0]
    entering[0] = total


@kernel
def scalar_content(theta: Read, volume: Read, sums: Inc, low: Min, high: Max):
    """``sum Omega theta``, ``sum Omega theta^2``, least and largest value of the cells."""
    sums[0] += volume[0] * theta[0]
    sums[1] += volume[0] * theta[0] * theta[0]
    low[0] = min(low[0], theta[0] if volume[0] > 0.0 else NOTHING_YET)
    high[0] = max(high[0], theta[0] if volume[0] > 0.0 else -NOTHING_YET)
