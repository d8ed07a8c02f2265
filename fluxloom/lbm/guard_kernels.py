"""What guards look at in populations: least density, largest speed, cells that are lost; see `fluxloom.lbm.output`.

``sums`` counts the cells of fluid that are not finite and adds up ``rho - 1``; ``least`` is that of the density, and
``most`` that of the square of the velocity, of finite ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fluxloom.core.access import Const, Inc, Max, Min, Read
from fluxloom.kernel.frontend import Kernel, func, kernel
from fluxloom.kernel.intrinsics import isfinite, max, min, select, zeros
from fluxloom.lbm.output import set_moments

__all__ = ["LOOKS"]


@func
def look_at(g, pull, sums, least, most, velocities, unit):
    """Judge the populations of a cell."""
    above = zeros(1)
    u = zeros(len(velocities[0]))
    set_moments(g, pull, above, u, velocities, unit)
    square = 0.0
    for a in range(len(velocities[0])):
        square += u[a] * u[a]
    finite = isfinite(square + above[0])
    sums[0] += select(finite, 0.0, 1.0)
    sums[1] += above[0]
    least[0] = min(least[0], select(finite, 1.0 + above[0], 1.0e30))
    most[0] = max(most[0], select(finite, square, 0.0))


@kernel
def look_local(
    f: Read, pull: Read, fluid: Read, sums: Inc, least: Min, most: Max,
    *, velocities: Const[list[list[int]]], unit: Const[float],
):  # fmt: skip
    """Of populations in the cell itself."""
    if fluid[0] > 0:
        g = zeros(len(velocities))
        for k in range(len(velocities)):
            g[k] = f[k]
        look_at(g, pull, sums, least, most, velocities, unit)


@kernel
def look_ahead(
    f: Read, pull: Read, fluid: Read, sums: Inc, least: Min, most: Max,
    *, velocities: Const[list[list[int]]], unit: Const[float],
):  # fmt: skip
    """Of populations one cell further."""
    if fluid[0] > 0:
        g = zeros(len(velocities))
        for k in range(len(velocities)):
            g[k] = f[k][k]
        look_at(g, pull, sums, least, most, velocities, unit)


@kernel
def look_turned(
    f: Read, pull: Read, fluid: Read, sums: Inc, least: Min, most: Max,
    *, velocities: Const[list[list[int]]], opposite: Const[list[int]], unit: Const[float],
):  # fmt: skip
    """Of populations in the slots of the opposite directions."""
    if fluid[0] > 0:
        g = zeros(len(velocities))
        for k in range(len(velocities)):
            g[k] = f[opposite[k]]
        look_at(g, pull, sums, least, most, velocities, unit)


LOOKS: Mapping[str, Kernel] = MappingProxyType({"local": look_local, "ahead": look_ahead, "turned": look_turned})
"""``(f, force, fluid, sums, least, most)``."""
