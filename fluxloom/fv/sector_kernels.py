"""Loops over the elements beyond the sides of sectors: states, slopes and shares of the partners, turned.

``kind`` is -1 less the number of the rotation, ``turns`` has the matrices ``T`` one behind the other, each row by row;
see `fluxloom.fv.sectors`.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.kernel.frontend import kernel

__all__ = ["image_number", "image_slopes", "image_state"]


@kernel
def image_state(kind: Read, turns: Read, w: Read, out: Write, *, nv: Const[int], d: Const[int]):
    """The state of the partner ``w``, its velocity turned, ``T u``."""
    base = (-1 - kind[0]) * d * d
    for v in range(nv):
        out[v] = w[v]
    for i in range(d):
        total = 0.0
        for k in range(d):
            total += turns[base + d * i + k] * w[1 + k]
        out[1 + i] = total


@kernel
def image_slopes(
    kind: Read, turns: Read, slope: Read, share: Read, out: Write, kept: Write, *, nv: Const[int], d: Const[int]
):
    """The slopes of the partner, turned: ``T g`` of a scalar, ``T g T^T`` of the velocity; and their shares."""
    base = (-1 - kind[0]) * d * d
    for v in range(nv):
        kept[v] = share[v]
        for k in range(d):
            total = 0.0
            for m in range(d):
                if 1 <= v <= d:
                    for i in range(d):
                        total += turns[base + d * (v - 1) + i] * turns[base + d * k + m] * slope[d * (1 + i) + m]
                else:
                    total += turns[base + d * k + m] * slope[d * v + m]
            out[d * v + k] = total


@kernel
def image_number(value: Read, out: Write):
    """The number of the partner."""
    out[0] = value[0]
