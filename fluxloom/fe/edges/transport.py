r"""Kernels of convection and diffusion of a scalar on the edges of linear triangles and tetrahedra.

With the integrals of the edges of `fluxloom.fe.edges.kernels`, a velocity ``u`` and a diffusivity ``k``, both at the
points, `prepare` makes three numbers of each entry and one of each point once the velocity is known,

.. math::
   F_{IJ} = \nabla_{IJ} \cdot w_{IJ}, \quad
   K_{IJ} = \kappa_{IJ} L_{IJ} + \tau_{IJ} \, v_{IJ}^T L^d_{IJ} v_{IJ}, \quad
   W_{IJ} = \tau_{IJ} \, G_{IJ} \cdot v_{IJ}, \quad
   S_I = \sum_J \tau_{IJ} \nabla_{IJ} \cdot v_{IJ}

and the scalar then needs nothing else of the edges:

.. math::
   M \xi_I &= \sum_J F_{IJ} (c_J - c_I) \; [+ c_I \sum_J F_{IJ}] \\
   M \dot c_I &= M (s - \xi_I) - \sum_J K_{IJ} (c_J - c_I) + \sum_J W_{IJ} \xi_J - S_I \xi_I

``w_IJ`` and the term in brackets are those of the momentum in `fluxloom.fe.edges.flow`: the advective form, or the
skew-symmetric one, which leaves ``sum M c^2`` alone. The terms with ``tau`` are the stabilisation by orthogonal
subscales, with means ``v_IJ = (u_I + u_J) / 2`` of the edge and not the values of the row: as ``L^d`` and ``G`` of
``JI`` are those of ``IJ`` turned round, it then neither makes nor takes any of the scalar.

Sources: R. Codina, Computer Methods in Applied Mechanics and Engineering 190 (2000) 1579-1599 (orthogonal subscales);
R. Codina, A. Folch, International Journal for Numerical Methods in Fluids 44 (2004) 483-503 (nodal implementation).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Max, Min, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import max, min

__all__ = ["add", "hold", "prepare", "projection", "totals", "transport_stage"]


@kernel
def prepare(
    edge: Read, u: Read, own: Read, kappa: Read, kappa_own: Read, tau: Read, tau_own: Read, flux: Write, rest: Write,
    strong: Write, *, d: Const[int], skew: float,
):  # fmt: skip
    """``flux[j] = F_IJ``, ``rest[j] = (K_IJ, W_IJ)``, ``strong = S_I``; ``skew``: 0 (advective) or 1/2."""
    total = 0.0
    for j in range(len(edge)):
        trace = 0.0
        through = 0.0
        weak = 0.0
        along = 0.0
        level = 0.0
        for a in range(d):
            v = 0.5 * (own[a] + u[j][a])
            trace += edge[j][1 + (d + 1) * a]
            through += edge[j][1 + d * d + a] * (own[a] + skew * (u[j][a] - own[a]))
            level += edge[j][1 + d * d + a] * v
            weak += edge[j][1 + d * d + d + a] * v
            for b in range(d):
                along += v * edge[j][1 + d * a + b] * 0.5 * (own[b] + u[j][b])
        mean = 0.5 * (tau[j] + tau_own[0])
        flux[j] = through
        rest[j][0] = 0.5 * (kappa[j] + kappa_own[0]) * trace + mean * along
        rest[j][1] = mean * weak
        total += mean * level
    strong[0] = total


@kernel
def projection(flux: Read, c: Read, own: Read, mass: Read, xi: Write, *, skew: float):
    """``xi_I = sum_J F_IJ (c_J - c_I + 2 skew c_I) / M_I``: nodal projection of ``u . grad c``; ``skew``: 0 or 1/2."""
    total = 0.0
    for j in range(len(flux)):
        total += flux[j] * (c[j] - own[0] + 2.0 * skew * own[0])
    xi[0] = total / mass[0]


@kernel
def transport_stage(
    rest: Read, strong: Read, c: Read, own: Read, xi: Read, xi_own: Read, mass: Read, source: Read, start: Read,
    dt: Read, sums: RW, out: Write, *, place: Const[int], ahead: float, weight: float,
):  # fmt: skip
    """A stage of Runge and Kutta's method; ``place``, ``ahead`` and ``weight`` as in `fluxloom.fe.edges.flow.stage`.

    ``k = dt (s - xi_I + [-sum_J K_IJ (c_J - c_I) + sum_J W_IJ xi_J - S_I xi_I] / M_I)``, ``sums += weight k``, ``out =
    start + ahead k``.
    """
    rate = -strong[0] * xi_own[0]
    for j in range(len(rest)):
        rate += rest[j][1] * xi[j] - rest[j][0] * (c[j] - own[0])
    k = dt[0] * (rate / mass[0] + source[0] - xi_own[0])
    if place == 0:
        sums[0] = start[0] + weight * k
        out[0] = start[0] + ahead * k
    elif place == 1:
        sums[0] += weight * k
        out[0] = start[0] + ahead * k
    else:
        out[0] = sums[0] + weight * k


@kernel
def hold(given: Read, c: Write):
    """``c_I = g_I`` where the scalar is given."""
    c[0] = given[0]


@kernel
def add(value: Read, total: RW):
    """``total += value`` of each point."""
    total[0] += value[0]


@kernel
def totals(c: Read, mass: Read, amount: Inc, square: Inc, least: Min, most: Max):
    """``amount = sum M c``, ``square = sum M c^2``, ``least = min c``, ``most = max c``."""
    amount[0] += mass[0] * c[0]
    square[0] += mass[0] * c[0] * c[0]
    least[0] = min(least[0], c[0])
    most[0] = max(most[0], c[0])
