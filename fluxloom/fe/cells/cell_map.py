r"""Functions for kernels on cells that are images of a reference cell under the map of their corners.

.. math:: x(\xi) = \sum_c N_c(\xi) x_c, \quad J_{ab} = \partial x_a / \partial \xi_b, \quad
   G = \kappa w |\det J| J^{-1} J^{-T}

``x[c][a]`` are the coordinates of the corners, ``corner[c][b]`` the gradients of ``N_c`` at one point, ``d`` the
dimensions. Cells may be of either orientation; ``det J = 0`` gives infinite metrics: see `fluxloom.mesh.quality.check`.

Source: T. J. R. Hughes: *The Finite Element Method*, Prentice Hall 1987, chapter 3.
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func

__all__ = ["determinant", "form", "jacobian", "metric", "minor", "volume"]


@func
def jacobian(x, corner, jac, d):
    """``jac[d a + b] = J_ab = dx_a / dxi_b = sum_c x_ca dN_c / dxi_b`` at one point.

    ``corner[c][b]`` is ``dN_c / dxi_b``.
    """
    for a in range(d):
        for b in range(d):
            total = 0.0
            for c in range(len(corner)):
                total += x[c][a] * corner[c][b]
            jac[d * a + b] = total


@func
def minor(jac, a, b):
    """Cofactor ``C_ab = d det J / d J_ab = J_rt J_su - J_ru J_st`` in space.

    ``r, s = a + 1, a + 2`` and ``t, u = b + 1, b + 2``, modulo 3; ``jac[3 a + b] = J_ab``.
    """
    r = (a + 1) % 3
    s = (a + 2) % 3
    t = (b + 1) % 3
    u = (b + 2) % 3
    return jac[3 * r + t] * jac[3 * s + u] - jac[3 * r + u] * jac[3 * s + t]


@func
def determinant(jac, d):
    """``det J = J_00 J_11 - J_01 J_10`` in the plane, ``det J = sum_b J_0b C_0b`` in space."""
    value = 0.0
    if d == 2:
        value = jac[0] * jac[3] - jac[1] * jac[2]
    else:
        for b in range(3):
            value += jac[b] * minor(jac, 0, b)
    return value


@func
def volume(x, corner, weight, jac, d):
    """``dV = w |det J|`` at one point; ``jac`` is room for the Jacobian."""
    jacobian(x, corner, jac, d)
    return weight * abs(determinant(jac, d))


@func
def metric(x, corner, factor, jac, g, start, d):
    """``g[start + d a + b] = G_ab``, with ``G = kappa w |det J| J^-1 J^-T = factor C^T C / |det J|`` at one point.

    ``factor`` is ``kappa w``, ``C = det(J) J^-T`` are the cofactors.
    """
    jacobian(x, corner, jac, d)
    det = determinant(jac, d)
    scale = factor / abs(det)
    if d == 2:
        g[start] = scale * (jac[1] * jac[1] + jac[3] * jac[3])
        g[start + 3] = scale * (jac[0] * jac[0] + jac[2] * jac[2])
        g[start + 1] = -scale * (jac[0] * jac[1] + jac[2] * jac[3])
        g[start + 2] = g[start + 1]
    else:
        for a in range(3):
            for b in range(a, 3):
                total = 0.0
                for r in range(3):
                    total += minor(jac, r, a) * minor(jac, r, b)
                g[start + 3 * a + b] = scale * total
                g[start + 3 * b + a] = g[start + 3 * a + b]


@func
def form(left, right, g, start, d):
    """``left . G right = sum_ab left_a G_ab right_b`` of two gradients in the reference cell."""
    total = 0.0
    for a in range(d):
        for b in range(d):
            total += left[a] * g[start + d * a + b] * right[b]
    return total
