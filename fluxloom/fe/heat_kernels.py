r"""Kernels of heat conduction at points: the matrix of a stage, what its equations lack, and what patches give.

With the stiffness ``K`` of linear elements, whose rows add up to 0, the lumped mass ``M``, what flows in through
patches as ``h (outside - u)``, and the load ``l`` of sources and patches, the equation of a point is

.. math:: M_I \dot u_I = r_I, \quad r_I = l_I - \sum_J K_{IJ} (u_J - u_I) - h_I u_I

and a stage with ``u = w + tau du/dt`` solves ``(M + tau (K + h)) (u - w) = tau r(w)``. A steady state has ``tau = 1``
and no ``M``. Where ``u`` is given, ``free`` is 0, the row is that of the identity, and the column is left out.

Source: T. J. R. Hughes: *The Finite Element Method*, Prentice Hall 1987, chapter 8, semidiscrete heat equation.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Read, Write
from fluxloom.kernel.frontend import kernel

__all__ = ["correct", "defect", "exchange", "extrapolate", "rates", "system"]


@kernel
def system(
    stiffness: Read, diagonal: Read, free: Read, own: Read, mass: Read, h: Read, weights: Read, matrix: Write,
    inverse: Write,
):  # fmt: skip
    """The row of a point, ``A_IJ = tau K_IJ``, ``A_II = m M_I + tau (K_II + h_I)``, and ``1 / A_II``.

    ``weights`` are ``m``, 0 or 1, and ``tau``; ``diagonal`` is 1 at the entry of the point itself, else 0; ``free``
    those of the columns, ``own`` that of the row.
    """
    tau = weights[1]
    total = weights[0] * mass[0] + tau * h[0]
    for j in range(len(stiffness)):
        total += diagonal[j] * tau * stiffness[j]
    if own[0] == 0.0:
        total = 1.0
    for j in range(len(stiffness)):
        matrix[j] = diagonal[j] * total + (1.0 - diagonal[j]) * own[0] * free[j] * tau * stiffness[j]
    inverse[0] = 1.0 / total


@kernel
def exchange(h: Read, outside: Read, whole: RW, load: RW):
    """``h_I += h``, ``l_I += h u_out``: what flows in as ``h (u_out - u)`` through a point's part of a patch."""
    whole[0] += h[0]
    load[0] += h[0] * outside[0]


@kernel
def defect(
    stiffness: Read, u: Read, own: Read, h: Read, load: Read, free: Read, weights: Read, lacks: Write | None,
    right: Write | None, rise: Write | None,
):  # fmt: skip
    """``r_I = l_I - h_I u_I - sum_J K_IJ (u_J - u_I)``; or ``free_I tau r_I``, and a correction of 0."""
    total = load[0] - h[0] * own[0]
    for j in range(len(stiffness)):
        total -= stiffness[j] * (u[j] - own[0])
    if lacks is not None:
        lacks[0] = total
    if right is not None and rise is not None:
        right[0] = free[0] * weights[1] * total
        rise[0] = 0.0


@kernel
def correct(rise: Read, u: RW):
    """``u += rise``."""
    u[0] += rise[0]


@kernel
def extrapolate(start: Read, factor: Read, u: RW):
    """``u = start + factor (u - start)``."""
    u[0] = start[0] + factor[0] * (u[0] - start[0])


@kernel
def rates(u: Read, before: Read, mass: Read, weights: Read, rate: Write):
    """``M du/dt = m M (u - w) / tau`` at the end of a stage; ``weights`` are ``m``, 0 or 1, and ``tau``."""
    rate[0] = weights[0] * mass[0] * (u[0] - before[0]) / weights[1]
