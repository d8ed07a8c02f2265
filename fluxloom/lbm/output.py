r"""What one looks at: density, velocity, mass and energy of the populations that left each cell last.

.. math:: \rho = \sum_k f_k^*, \quad \rho u = \sum_k c_k f_k^* - \frac{1}{2} F

The star says after collision: with a force :math:`F` a collision adds all of it to the momentum, of which the
velocity has half (Z. Guo, C. Zheng, B. Shi, *Physical Review E* 65 (2002) 046308, eq. 4). Where the populations are
depends on the scheme of streaming: see `fluxloom.lbm.streaming`. Each kernel has a form for every place: ``local``,
``ahead`` (one cell further, through the stencil of the velocities) and ``turned`` (in the slots of the opposite
directions).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.kernel.frontend import Kernel, func, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming import Streaming

__all__ = ["MOMENTS", "TOTALS", "form_of"]


@func
def set_moments(g, pull, above, u, velocities, unit):
    """Set ``rho - 1`` and the velocity from stored populations; ``pull`` is the force along each axis."""
    total = 0.0
    for k in range(len(velocities)):
        total += g[k]
    above[0] = total / unit
    for a in range(len(velocities[0])):
        momentum = 0.0
        for k in range(len(velocities)):
            if velocities[k][a] != 0:
                momentum += velocities[k][a] * g[k]
        u[a] = (momentum / unit - 0.5 * pull[a]) / (1.0 + above[0])


@func
def add_totals(g, pull, totals, velocities, unit):
    """Add ``rho - 1`` and ``rho u^2 / 2``."""
    above = zeros(1)
    u = zeros(len(velocities[0]))
    set_moments(g, pull, above, u, velocities, unit)
    energy = 0.0
    for a in range(len(velocities[0])):
        energy += u[a] * u[a]
    totals[0] += above[0]
    totals[1] += 0.5 * (1.0 + above[0]) * energy


@kernel
def moments_local(
    f: Read, pull: Read, above: Write, u: Write, *, velocities: Const[list[list[int]]], unit: Const[float]
):
    """Moments of populations in the cell itself."""
    g = zeros(len(velocities))
    for k in range(len(velocities)):
        g[k] = f[k]
    set_moments(g, pull, above, u, velocities, unit)


@kernel
def moments_ahead(
    f: Read, pull: Read, above: Write, u: Write, *, velocities: Const[list[list[int]]], unit: Const[float]
):
    """Moments of populations one cell further."""
    g = zeros(len(velocities))
    for k in range(len(velocities)):
        g[k] = f[k][k]
    set_moments(g, pull, above, u, velocities, unit)


@kernel
def moments_turned(
    f: Read, pull: Read, above: Write, u: Write, *,
    velocities: Const[list[list[int]]], opposite: Const[list[int]], unit: Const[float],
):  # fmt: skip
    """Moments of populations in the slots of the opposite directions."""
    g = zeros(len(velocities))
    for k in range(len(velocities)):
        g[k] = f[opposite[k]]
    set_moments(g, pull, above, u, velocities, unit)


@kernel
def totals_local(
    f: Read, pull: Read, fluid: Read, totals: Inc, *, velocities: Const[list[list[int]]], unit: Const[float]
):
    """Sums over the fluid of populations in the cell itself."""
    if fluid[0] > 0:
        g = zeros(len(velocities))
        for k in range(len(velocities)):
            g[k] = f[k]
        add_totals(g, pull, totals, velocities, unit)


@kernel
def totals_ahead(
    f: Read, pull: Read, fluid: Read, totals: Inc, *, velocities: Const[list[list[int]]], unit: Const[float]
):
    """Sums over the fluid of populations one cell further."""
    if fluid[0] > 0:
        g = zeros(len(velocities))
        for k in range(len(velocities)):
            g[k] = f[k][k]
        add_totals(g, pull, totals, velocities, unit)


@kernel
def totals_turned(
    f: Read, pull: Read, fluid: Read, totals: Inc, *,
    velocities: Const[list[list[int]]], opposite: Const[list[int]], unit: Const[float],
):  # fmt: skip
    """Sums over the fluid of populations in the slots of the opposite directions."""
    if fluid[0] > 0:
        g = zeros(len(velocities))
        for k in range(len(velocities)):
            g[k] = f[opposite[k]]
        add_totals(g, pull, totals, velocities, unit)


MOMENTS: Mapping[str, Kernel] = MappingProxyType(
    {"local": moments_local, "ahead": moments_ahead, "turned": moments_turned}
)
"""``(f, force, rho - 1, u)``: the force is a global, or a dat."""

TOTALS: Mapping[str, Kernel] = MappingProxyType({"local": totals_local, "ahead": totals_ahead, "turned": totals_turned})
"""``(f, force, fluid, totals)``: adds ``rho - 1`` and ``rho u^2 / 2`` of cells where ``fluid`` is not zero."""


def form_of(streaming: Streaming, lattice: Lattice, parity: int) -> tuple[str, dict[str, Any]]:
    """Return which form of a kernel looks at the populations between two steps, and its baked constants."""
    ahead, turned = streaming.stored(parity)
    constants: dict[str, Any] = {"velocities": lattice.velocities}
    if turned:
        return "turned", constants | {"opposite": lattice.opposite}
    return ("ahead" if ahead else "local"), constants
