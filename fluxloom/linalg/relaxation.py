"""Kernels of relaxation: rows of one colour, in place, for the values that the other colours have.

``d`` is the relaxation factor over the diagonal, ``lower`` and ``upper`` are entries that lead to earlier and to later
colours, ``y`` and ``z`` the same vector. Those ending in ``s`` are for several systems.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["again", "agains", "backward", "backwards", "first", "forward", "forwards"]


@kernel
def first(d: Read, r: Read, z: Write, *, factor: float, systems: Const[int]):
    """``z = factor d r``: what `forward` is where no earlier colour is met."""
    for k in range(systems):
        z[k] = factor * d[0] * r[k]


@kernel
def forward(lower: Read, y: Read, d: Read, r: Read, z: Write, *, factor: float):
    """``z = factor d (r - L y)``."""
    total = r[0]
    for j in range(len(lower)):
        total -= lower[j] * y[j]
    z[0] = factor * d[0] * total


@kernel
def forwards(lower: Read, y: Read, d: Read, r: Read, z: Write, *, factor: float, systems: Const[int]):
    """``z = factor d (r - L y)``."""
    total = zeros(systems)
    for k in range(systems):
        total[k] = r[k]
    for j in range(len(lower)):
        for k in range(systems):
            total[k] -= lower[j] * y[j][k]
    for k in range(systems):
        z[k] = factor * d[0] * total[k]


@kernel
def backward(upper: Read, y: Read, d: Read, z: RW, *, keep: float):
    """``z = keep z - d U y``."""
    total = 0.0
    for j in range(len(upper)):
        total += upper[j] * y[j]
    z[0] = keep * z[0] - d[0] * total


@kernel
def backwards(upper: Read, y: Read, d: Read, z: RW, *, keep: float, systems: Const[int]):
    """``z = keep z - d U y``."""
    total = zeros(systems)
    for j in range(len(upper)):
        for k in range(systems):
            total[k] += upper[j] * y[j][k]
    for k in range(systems):
        z[k] = keep * z[k] - d[0] * total[k]


@kernel
def again(
    lower: Read, y: Read, upper: Read, w: Read, d: Read, r: Read, z: RW, *, factor: float, omega: float
):  # fmt: skip
    """``z += factor (d (r - L y - U w) - omega z)``; ``y`` and ``w`` are one vector."""
    total = r[0]
    for j in range(len(lower)):
        total -= lower[j] * y[j]
    for j in range(len(upper)):
        total -= upper[j] * w[j]
    z[0] += factor * (d[0] * total - omega * z[0])


@kernel
def agains(
    lower: Read, y: Read, upper: Read, w: Read, d: Read, r: Read, z: RW,
    *, factor: float, omega: float, systems: Const[int],
):  # fmt: skip
    """``z += factor (d (r - L y - U w) - omega z)``; ``y`` and ``w`` are one vector."""
    total = zeros(systems)
    for k in range(systems):
        total[k] = r[k]
    for j in range(len(lower)):
        for k in range(systems):
            total[k] -= lower[j] * y[j][k]
    for j in range(len(upper)):
        for k in range(systems):
            total[k] -= upper[j] * w[j][k]
    for k in range(systems):
        z[k] += factor * (d[0] * total[k] - omega * z[k])
