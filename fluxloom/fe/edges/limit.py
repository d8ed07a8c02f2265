"""The kernel that bounds the steps of explicit methods on the edges of triangles and tetrahedra.

The rates are those of the terms of the momentum in `fluxloom.fe.edges.flow`; a row's bound is the sum of the magnitudes
of its entries (S. Gerschgorin, Izvestiya Akademii Nauk SSSR, 1931, 749-754).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Max, Read
from fluxloom.fe.edges.flow import length
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import abs, max, sqrt

__all__ = ["time_limit"]


@func
def slowest(u, nu, size, d, viscous, convective):
    """``1 / tau = c_1 nu / h^2 + c_2 |u| / h`` without the step, 1e-30 at least: 1/s."""
    return max(viscous * nu / (size * size) + convective * length(u, d) / size, 1.0e-30)


@func
def bounded(rest, weight, slow, dynamic, reach):
    """The rate ``r = rest + weight / (c_t r / reach + slow)``: steps are ``dt = reach / r``, also in ``tau``.

    The positive root of ``c_t r^2 / reach + m r - p = 0``, ``m = slow - c_t rest / reach``, ``p = weight + rest slow``;
    ``c_t`` is ``dynamic``.
    """
    middle = slow - dynamic * rest / reach
    product = weight + rest * slow
    if dynamic == 0.0:
        return product / slow
    root = sqrt(middle * middle + 4.0 * dynamic * product / reach)
    return 2.0 * product / (middle + root) if middle > 0.0 else 0.5 * reach * (root - middle) / dynamic


@kernel
def time_limit(
    edge: Read, u: Read, own: Read, nu: Read, nu_own: Read, size: Read, size_own: Read, mass: Read, rate: Max,
    *, d: Const[int], share: float, dynamic: float, viscous: float, convective: float, reach: float,
    transposed: Const[int],
):  # fmt: skip
    r"""Gershgorin's bound of the eigenvalues of convection, friction and stabilisation, 1/s: the larger one of two.

    .. math::
       r_1 &= \frac{1}{M_I} \sum_J \bigl(|\nabla_{IJ} \cdot u_I| + \nu_{IJ} |L_{IJ}|
          + \tau_I |u_I^T L^d_{IJ} u_I|\bigr) \\
       r_2 &= \frac{1}{M_I} \sum_J \bigl(\max(|\nabla_{IJ} \cdot u_I|, |\nabla_{IJ} \cdot \bar u|) + \nu_{IJ} |L_{IJ}|
          + \tau_{IJ} |\bar u^T L^d_{IJ} \bar u|\bigr)

    The first has ``u_I`` for all velocities of a row and ``tau`` without the step. The second has the mean velocity of
    an edge where that is larger, and in the stabilisation, as the subscales do: a point at rest beside fast ones has a
    long ``tau`` if ``dynamic`` is small; `bounded` has the step in its ``tau``. ``tau`` of an edge has this ``share``
    of that of the neighbour. The part of the projection is left out: it takes from the stabilisation. With the
    transposed gradient friction is at most twice as fast, that of velocities that are gradients.
    """
    slow = slowest(own, nu_own[0], size_own[0], d, viscous, convective)
    total = 0.0
    rest = 0.0
    weight = 0.0
    longest = 0.0
    for j in range(len(edge)):
        trace = 0.0
        along = 0.0
        middle = 0.0
        flux = 0.0
        through = 0.0
        for a in range(d):
            trace += edge[j][1 + (d + 1) * a]
            flux += edge[j][1 + d * d + a] * own[a]
            through += edge[j][1 + d * d + a] * 0.5 * (own[a] + u[j][a])
            for b in range(d):
                along += own[a] * edge[j][1 + d * a + b] * own[b]
                middle += 0.25 * (own[a] + u[j][a]) * edge[j][1 + d * a + b] * (own[b] + u[j][b])
        friction = 0.5 * (nu[j] + nu_own[0]) * abs(trace)
        if transposed == 1:
            friction = 2.0 * friction
        total += abs(flux) + friction + abs(along) / slow
        rest += max(abs(flux), abs(through)) + friction
        other = 1.0 / slowest(u[j], nu[j], size[j], d, viscous, convective)
        weight += abs(middle)
        longest += abs(middle) * (1.0 / slow + share * (other - 1.0 / slow))
    limit = total / mass[0]
    if weight > 0.0:
        limit = max(limit, bounded(rest / mass[0], weight / mass[0], weight / longest, dynamic, reach))
    rate[0] = max(rate[0], limit)
