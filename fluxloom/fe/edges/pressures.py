"""Kernels of pressures that outflows of flow on edges are given, see `fluxloom.solvers.edges.pressures`.

With the rise ``r`` of the pressure in a step and that of the outflows, ``g``, the system ``H r = b`` of
`fluxloom.fe.edges.flow` is solved for ``r_0 = r - g``, which is 0 where the pressure is given: ``H r_0 = b - H g``.

Source of the system: R. Codina, A. Folch, International Journal for Numerical Methods in Fluids 44 (2004) 483-503.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Read, Write
from fluxloom.fe.edges.subscales import weight
from fluxloom.kernel.frontend import kernel

__all__ = ["lift", "outlet_rise", "tracked_lift", "whole_rise"]


@kernel
def outlet_rise(want: Read, base: Read, p: Read, acting: Read, rise: Write):
    """``g_I = acting_I (want_I + base_I - p_I)``: by what the pressure of a point of an outflow has to rise."""
    rise[0] = acting[0] * (want[0] + base[0] - p[0])


@kernel
def whole_rise(rise: Read, outlet: Read, whole: Write):
    """``r_I = r_0I + g_I``."""
    whole[0] = rise[0] + outlet[0]


@kernel
def lift(k: Read, tau: Read, tau_own: Read, g: Read, g_own: Read, free: Read, dt: Read, b: RW):
    """``b_I = b_I - sum_J H_IJ (g_J - g_I)``, ``H_IJ = (tau_IJ + dt / 2) L_IJ``, where the pressure is free.

    ``H`` is that of `fluxloom.fe.edges.flow.assemble_pressure`; ``k[j] = L_IJ``.
    """
    total = 0.0
    for j in range(len(k)):
        total += (0.5 * (tau[j] + tau_own[0]) + 0.5 * dt[0]) * k[j] * (g[j] - g_own[0])
    b[0] = b[0] - free[0] * total


@kernel
def tracked_lift(k: Read, rate: Read, rate_own: Read, g: Read, g_own: Read, free: Read, dt: Read, b: RW):
    """``b_I = b_I - sum_J H_IJ (g_J - g_I)``, ``H_IJ = (w_IJ + dt / 2) L_IJ``, where the pressure is free.

    ``H`` is that of `fluxloom.fe.edges.subscales.tracked_fill`; ``k[j] = L_IJ``.
    """
    total = 0.0
    for j in range(len(k)):
        total += (weight(dt[0], 0.5 * (rate[j] + rate_own[0])) + 0.5 * dt[0]) * k[j] * (g[j] - g_own[0])
    b[0] = b[0] - free[0] * total
