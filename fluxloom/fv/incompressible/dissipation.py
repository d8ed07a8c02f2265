"""Kernel of the kinetic energy that viscosity takes from a flow.

F. X. Trias et al., J. Comput. Phys. 258, 2014, section 2 (the diffusive operator ``D``).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read
from fluxloom.kernel.frontend import kernel

__all__ = ["dissipation"]


@kernel
def dissipation(u: Read, spread: Read, nus: Read, total: Inc, *, d: Const[int]):
    """``sum nu_s A / delta |u_j - u_i|^2`` over the faces, which is ``u . D u``, with boundary values beyond walls."""
    for k in range(d):
        step = u[1][k] - u[0][k]
        total[0] += nus[0] * spread[0] * step * step
