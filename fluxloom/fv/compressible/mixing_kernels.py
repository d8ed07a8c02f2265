"""Loops that mix the states of some cycles towards a steady flow; see `fluxloom.solvers.compressible.mixing`.

What lies between two cycles are changes ``dw`` of states and ``dr`` of residuals. Changes are met four at a time,
``a``, ``b``, ``c`` and ``e``. ``rows`` has one number a component by which residuals are multiplied.

References
----------
T. Washio, C. W. Oosterlee: *Krylov subspace acceleration for nonlinear multigrid schemes*. Electron. Trans. Numer.
Anal. 6, 1997.
H. F. Walker, P. Ni: *Anderson acceleration for fixed-point iterations*. SIAM J. Numer. Anal. 49, 2011.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.kernel.frontend import kernel

__all__ = ["changes", "mixed", "products"]


@kernel
def changes(w: Read, res: Read, rows: Read, last_w: RW, last_r: RW, dw: Write, dr: Write, *, nv: Const[int]):
    """Changes since the last time, ``dw = w - w_last``, ``dr = rows R - r_last``; keep both for the next time."""
    for v in range(nv):
        r = res[v] * rows[v]
        dw[v] = w[v] - last_w[v]
        dr[v] = r - last_r[v]
        last_w[v] = w[v]
        last_r[v] = r


@kernel
def products(a: Read, b: Read, c: Read, e: Read, dr: Read, r: Read, h: Inc, *, nv: Const[int]):
    """Products of four changes of residuals, ``h_i += dr_i . dr`` with the last, ``h_{4+i} += dr_i . r`` with ``r``."""
    for v in range(nv):
        h[0] += a[v] * dr[v]
        h[1] += b[v] * dr[v]
        h[2] += c[v] * dr[v]
        h[3] += e[v] * dr[v]
        h[4] += a[v] * r[v]
        h[5] += b[v] * r[v]
        h[6] += c[v] * r[v]
        h[7] += e[v] * r[v]


@kernel
def mixed(a: Read, b: Read, c: Read, e: Read, part: Read, z: RW, *, nv: Const[int]):
    """States, or what is kept of them, less a part of four changes, ``z - sum_i part_i dw_i``."""
    for v in range(nv):
        z[v] -= part[0] * a[v] + part[1] * b[v] + part[2] * c[v] + part[3] * e[v]
