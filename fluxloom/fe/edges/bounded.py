r"""Kernels of bounded convection and diffusion of a scalar on the edges of linear triangles and tetrahedra.

With the integrals of `fluxloom.fe.edges.kernels` and the velocity ``v_IJ = (u_I + u_J) / 2`` of an edge,

.. math::
   F_{IJ} = \nabla_{IJ} \cdot v_{IJ}, \quad K_{IJ} = \kappa_{IJ} L_{IJ}, \quad
   D_{IJ} = \max(0, F_{IJ} + K_{IJ}, F_{JI} + K_{JI})

the step of low order is ``M dc_I/dt = sum_J (D_IJ - F_IJ - K_IJ) (c_J - c_I)``, whose coefficients are not negative: it
has no new extremum in steps of ``dt <= M / sum_J (D_IJ - F_IJ - K_IJ)``, whatever the divergence of the velocity. What
Galerkin's method with its consistent mass has more is a flux of each edge,

.. math:: f_{IJ} = m_{IJ} (\dot c_I - \dot c_J) + D_{IJ} (c_I - c_J)

with the rates of the low order; as much of it as `fluxloom.fv.incompressible.flux_correction` allows is added.

Source: D. Kuzmin, *Explicit and implicit FEM-FCT algorithms with flux linearization*, J. Comput. Phys. 228, 2009.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Max, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import max

__all__ = ["blend", "edge_fluxes", "low_order", "prepare"]


@kernel
def prepare(
    edge: Read, u: Read, own: Read, kappa: Read, kappa_own: Read, inverse: Read, pair: Write, rate: Max,
    *, d: Const[int],
):  # fmt: skip
    """``pair[j] = (D_IJ - F_IJ - K_IJ, D_IJ, m_IJ)``; ``rate = max_I sum_J (D_IJ - F_IJ - K_IJ) / M_I``.

    ``1 / rate`` is the longest bounded step; ``m_IJ = int N_I N_J``.
    """
    total = 0.0
    for j in range(len(edge)):
        out = 0.0
        back = 0.0
        trace = 0.0
        for a in range(d):
            v = 0.5 * (own[a] + u[j][a])
            trace += edge[j][1 + (d + 1) * a]
            out += edge[j][1 + d * d + a] * v
            back += edge[j][1 + d * d + d + a] * v
        spread = 0.5 * (kappa[j] + kappa_own[0]) * trace
        damp = max(0.0, max(out + spread, back + spread))
        pair[j][0] = damp - out - spread
        pair[j][1] = damp
        pair[j][2] = edge[j][0]
        total += damp - out - spread
    rate[0] = max(rate[0], total * inverse[0])


@kernel
def low_order(pair: Read, c: Read, own: Read, inverse: Read, source: Read, dt: Read, rate: Write, low: Write):
    """``rate = sum_J (D_IJ - F_IJ - K_IJ) (c_J - c_I) / M_I``, ``low = c_I + dt (rate + s_I)``, source ``s``."""
    total = 0.0
    for j in range(len(pair)):
        total += pair[j][0] * (c[j] - own[0])
    rate[0] = total * inverse[0]
    low[0] = own[0] + dt[0] * (total * inverse[0] + source[0])


@kernel
def edge_fluxes(pair: Read, c: Read, own: Read, rate: Read, rate_own: Read, flux: Write):
    """``flux[j] = f_IJ = m_IJ (c'_I - c'_J) + D_IJ (c_I - c_J)``, into the point; ``c'`` are the rates of low order."""
    for j in range(len(pair)):
        flux[j] = pair[j][2] * (rate_own[0] - rate[j]) + pair[j][1] * (own[0] - c[j])


@kernel
def blend(start: Read, c: RW, *, share: float):
    """``c = c + share (start - c)``: a stage of a Runge-Kutta method as convex sums of Euler steps.

    Source: C.-W. Shu, S. Osher, Journal of Computational Physics 77 (1988) 439-471.
    """
    c[0] = c[0] + share * (start[0] - c[0])
