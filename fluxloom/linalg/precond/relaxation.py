"""Kernels of relaxation: rows of one colour, in place, for the values that the other colours have.

``d`` is the relaxation factor over the diagonal, ``lower`` and ``upper`` are entries that lead to earlier and to later
colours, ``y`` and ``z`` the same vector. Those ending in ``s`` are for several systems.

Source: Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, sections 4.1 (relaxation) and 12.4
(multicolouring).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.linalg.matrix.products import add_row, add_rows, begin_rows, less_row, less_rows

__all__ = ["again", "agains", "backward", "backwards", "first", "forward", "forwards"]


@kernel
def first(d: Read, r: Read, z: Write, *, factor: float, systems: Const[int]):
    """``z = factor d r``: what `forward` is where no earlier colour is met."""
    for k in range(systems):
        z[k] = factor * d[0] * r[k]


@kernel
def forward(lower: Read, y: Read, d: Read, r: Read, z: Write, *, factor: float):
    """``z = factor d (r - L y)``."""
    z[0] = factor * d[0] * less_row(lower, y, r[0])


@kernel
def forwards(lower: Read, y: Read, d: Read, r: Read, z: Write, *, factor: float, systems: Const[int]):
    """``z = factor d (r - L y)``."""
    total = zeros(systems)
    begin_rows(r, total, systems)
    less_rows(lower, y, total, systems)
    for k in range(systems):
        z[k] = factor * d[0] * total[k]


@kernel
def backward(upper: Read, y: Read, d: Read, z: RW, *, keep: float):
    """``z = keep z - d U y``."""
    z[0] = keep * z[0] - d[0] * add_row(upper, y, 0.0)


@kernel
def backwards(upper: Read, y: Read, d: Read, z: RW, *, keep: float, systems: Const[int]):
    """``z = keep z - d U y``."""
    total = zeros(systems)
    add_rows(upper, y, total, systems)
    for k in range(systems):
        z[k] = keep * z[k] - d[0] * total[k]


@kernel
def again(
    lower: Read, y: Read, upper: Read, w: Read, d: Read, r: Read, z: RW, *, factor: float, omega: float
):  # fmt: skip
    """``z += factor (d (r - L y - U w) - omega z)``; ``y`` and ``w`` are one vector."""
    z[0] += factor * (d[0] * less_row(upper, w, less_row(lower, y, r[0])) - omega * z[0])


@kernel
def agains(
    lower: Read, y: Read, upper: Read, w: Read, d: Read, r: Read, z: RW,
    *, factor: float, omega: float, systems: Const[int],
):  # fmt: skip
    """``z += factor (d (r - L y - U w) - omega z)``; ``y`` and ``w`` are one vector."""
    total = zeros(systems)
    begin_rows(r, total, systems)
    less_rows(lower, y, total, systems)
    less_rows(upper, w, total, systems)
    for k in range(systems):
        z[k] += factor * (d[0] * total[k] - omega * z[k])
