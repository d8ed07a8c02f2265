"""Kernels of velocities that are given at a boundary and change in time: what they let through, how fast they are."""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Max, Read
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import max, sqrt

__all__ = ["fastest", "passing"]


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
