"""A loop that lets the shares of slopes follow what a limiter leaves of them."""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read
from fluxloom.kernel.frontend import kernel

__all__ = ["followed"]


@kernel
def followed(wanted: Read, share: RW, *, weight: float, nv: Const[int]):
    """``share += weight (wanted - share)``; the shares that a limiter leaves now are ``wanted``."""
    for v in range(nv):
        share[v] += weight * (wanted[v] - share[v])
