"""Kernels of velocities that are given at a boundary and change in time: along walls, and what they let through."""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Max, Read
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs, max, sqrt

__all__ = ["fastest", "passing", "slide"]


@kernel
def slide(normal: Read, given: RW, through: Max, speed: Max, *, d: Const[int]):
    """Leave out what the velocity of a wall has along its normal; its largest size, and the largest speed."""
    along = 0.0
    square = 0.0
    for k in range(d):
        along += given[k] * normal[k]
        square += given[k] * given[k]
    through[0] = max(through[0], fabs(along))
    speed[0] = max(speed[0], sqrt(square))
    for k in range(d):
        given[k] = given[k] - along * normal[k]


@kernel
def passing(given: Read, area: Read, sums: Inc, *, d: Const[int]):
    """``u . A`` and ``|u| A`` of a boundary element with the outward area vector ``A``."""
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
    """The largest speed that was given so far."""
    square = 0.0
    for k in range(d):
        square += given[k] * given[k]
    speed[0] = max(speed[0], sqrt(square))
