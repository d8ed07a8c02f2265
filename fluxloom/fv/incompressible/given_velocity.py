"""Kernels of velocities that are given at a boundary and change in time: what they let through, how fast they are.

And what an inflow that becomes faster does to the cell behind it. There the pressure has the slope ``-du_n/dt`` along
the normal, while that of the projection (`fluxloom.fv.incompressible.operators`) is that of the cell behind. What it
lacks is, with the area ``A`` of the face, its distance ``delta`` and the volume ``Omega`` of the cell,

::

    u = u + A delta / Omega n (u_b^{n+1} - u_b^n) . n
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Max, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import max, sqrt

__all__ = ["fastest", "passing", "push_behind", "rising"]


@kernel
def passing(given: Read, area: Read, sums: Inc, *, d: Const[int]):
    """What passes a boundary element with the outward area vector ``A``, ``sums += (u . A, |u| |A|)``."""
    through = 0.0
    square = 0.0
    size = 0.0
    for k in range(d):
        through += given[k] * area[k]
        square += given[k] * given[k]
        size += area[k] * area[k]
    sums[0] += through
    sums[1] += sqrt(square * size)


@kernel
def fastest(given: Read, speed: Max, *, d: Const[int]):
    """The largest speed that was given so far, ``max |u_b|``: ``speed = max(speed, sqrt(u . u))``."""
    square = 0.0
    for k in range(d):
        square += given[k] * given[k]
    speed[0] = max(speed[0], sqrt(square))


@kernel
def rising(given: Read, normal: Read, u: Read, rise: Write, *, d: Const[int]):
    """By how much more passes than before, ``(u_b - u) . n``."""
    total = 0.0
    for k in range(d):
        total += (given[k] - u[k]) * normal[k]
    rise[0] = total


@kernel
def push_behind(rise: Read, normal: Read, share: Read, u: Inc, *, d: Const[int]):
    """What that does to the cell behind, ``u += share rise n``; ``share`` is ``A delta / Omega``."""
    for k in range(d):
        u[k] += share[0] * rise[0] * normal[k]
