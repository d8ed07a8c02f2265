"""Kernels of pressures that outflows of flow on edges are given, see `fluxloom.solvers.edges.pressures`."""

from __future__ import annotations

from fluxloom.core.access import RW, Read, Write
from fluxloom.fe.edges.subscales import weight
from fluxloom.kernel.frontend import kernel

__all__ = ["lift", "outlet_rise", "tracked_lift", "whole_rise"]


@kernel
def outlet_rise(want: Read, base: Read, p: Read, acting: Read, rise: Write):
    """``g``: by what the pressure of a point of an outflow has to rise."""
    rise[0] = acting[0] * (want[0] + base[0] - p[0])


@kernel
def whole_rise(rise: Read, outlet: Read, whole: Write):
    """``r = r_0 + g``."""
    whole[0] = rise[0] + outlet[0]


@kernel
def lift(k: Read, tau: Read, tau_own: Read, g: Read, g_own: Read, free: Read, dt: Read, b: RW):
    """``b = b - H g`` of a row, with the ``H`` of `fluxloom.fe.edges.flow.fill`, where the pressure is free."""
    total = 0.0
    for j in range(len(k)):
        total += (0.5 * (tau[j] + tau_own[0]) + 0.5 * dt[0]) * k[j] * (g[j] - g_own[0])
    b[0] = b[0] - free[0] * total


@kernel
def tracked_lift(k: Read, rate: Read, rate_own: Read, g: Read, g_own: Read, free: Read, dt: Read, b: RW):
    """The same with that of `fluxloom.fe.edges.subscales.tracked_fill`."""
    total = 0.0
    for j in range(len(k)):
        total += (weight(dt[0], 0.5 * (rate[j] + rate_own[0])) + 0.5 * dt[0]) * k[j] * (g[j] - g_own[0])
    b[0] = b[0] - free[0] * total
