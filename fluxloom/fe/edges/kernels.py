r"""Kernels of the constant operators of edges, on linear triangles and tetrahedra.

``d`` is the number of dimensions. The numbers of the edge from the point ``I`` to its neighbour ``J`` are packed as

============================== ====================================================== ================
place                          number                                                 unit
============================== ====================================================== ================
0                              :math:`\int N_I N_J`                                   m^d
1 + d a + b                    :math:`\int \partial_a N_I \, \partial_b N_J`          m^(d-2)
1 + d^2 + a                    :math:`\nabla_{IJ} = \int N_I \, \partial_a N_J`       m^(d-1)
1 + d^2 + d + a                :math:`G_{IJ} = \int \partial_a N_I \, N_J`            m^(d-1)
============================== ====================================================== ================

which are 9 in the plane and 16 in space. In a cell of volume ``V`` gradients are constant, so that the integrals are
:math:`V / ((d+1)(d+2))`, :math:`V \nabla N_I \otimes \nabla N_J`, :math:`V \nabla N_J / (d+1)` and
:math:`V \nabla N_I / (d+1)`.

The shape functions add up to 1, and so do rows of the stiffness matrix and of the gradient to 0: kernels over the
neighbours take differences, ``sum_J A_IJ (u_J - u_I)``, and what a point has with itself does not count. The diagonal
of ``G`` is that of the gradient, so that ``int grad N_I p = sum_J (G_IJ p_J - grad_IJ p_I)``, the point itself among
the ``J`` or not; the rows of ``G`` add up to 0 inside the boundary alone.

Source: R. Codina, A. Folch, "A stabilized finite element predictor-corrector scheme for the incompressible
Navier-Stokes equations using a nodal-based implementation", International Journal for Numerical Methods in Fluids 44
(2004) 483-503: integrals of edges, computed beforehand.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.fe.cells.cell_map import determinant, minor
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["edge_integrals", "laplacian", "lumped_mass", "strong_gradient"]


@func
def sides(x, jac, d):
    """``jac[d a + b] = J_ab = x_{b+1, a} - x_{0, a}`` of a simplex; returns ``det J``."""
    for a in range(d):
        for b in range(d):
            jac[d * a + b] = x[b + 1][a] - x[0][a]
    return determinant(jac, d)


@func
def plane_minor(jac, a, b):
    """Cofactor ``C_ab = d det J / d J_ab = (-1)^(a + b) J_{1-a, 1-b}`` of two dimensions; ``jac[2 a + b] = J_ab``."""
    return (1 - 2 * ((a + b) % 2)) * jac[2 * (1 - a) + 1 - b]


@func
def slopes(jac, det, slope, d):
    """``slope[d i + a] = d_a N_i``, with ``d_a N_{b+1} = C_ab / det J``, ``d_a N_0 = -sum_b C_ab / det J``.

    ``C`` are the cofactors.
    """
    for a in range(d):
        slope[a] = 0.0
        for b in range(d):
            part = plane_minor(jac, a, b) if d == 2 else minor(jac, a, b)
            slope[d * (b + 1) + a] = part / det
            slope[a] -= part / det


@kernel
def edge_integrals(x: Read, edge: Inc, *, d: Const[int]):
    r"""Add what one cell has of the numbers of its edges, both ways, and of its corners with themselves.

    .. math::
       \int N_i N_j = \frac{(1 + \delta_{ij}) V}{(d + 1)(d + 2)}, \quad
       \int \partial_a N_i \partial_b N_j = V \partial_a N_i \partial_b N_j, \quad
       \nabla_{ij} = \frac{V \nabla N_j}{d + 1}, \quad G_{ij} = \frac{V \nabla N_i}{d + 1}, \quad
       V = \frac{|\det J|}{d!}

    ``edge[(d + 1) i + j]`` leads from the corner ``i`` to the corner ``j``.
    """
    jac = zeros(d * d)
    slope = zeros(d * (d + 1))
    det = sides(x, jac, d)
    slopes(jac, det, slope, d)
    volume = abs(det) / (d * (d - 1))
    for i in range(d + 1):
        for j in range(d + 1):
            leg = (d + 1) * i + j
            edge[leg][0] += (2.0 if i == j else 1.0) * volume / ((d + 1) * (d + 2))
            for a in range(d):
                for b in range(d):
                    edge[leg][1 + d * a + b] += volume * slope[d * i + a] * slope[d * j + b]
                edge[leg][1 + d * d + a] += volume / (d + 1) * slope[d * j + a]
                edge[leg][1 + d * d + d + a] += volume / (d + 1) * slope[d * i + a]


@kernel
def lumped_mass(x: Read, mass: Inc, *, d: Const[int]):
    """``M_I += sum_J int N_I N_J = V / (d + 1)`` at each corner of one cell, with ``V = |det J| / d!``."""
    jac = zeros(d * d)
    det = sides(x, jac, d)
    share = abs(det) / (d * (d - 1) * (d + 1))
    for i in range(d + 1):
        mass[i] += share


@kernel
def strong_gradient(edge: Read, p: Read, own: Read, gradient: Write, *, d: Const[int]):
    """``int N_I grad p = sum_J grad_IJ (p_J - p_I)`` at one point; ``own`` is ``p`` there."""
    total = zeros(d)
    for j in range(len(edge)):
        rise = p[j] - own[0]
        for a in range(d):
            total[a] += edge[j][1 + d * d + a] * rise
    for a in range(d):
        gradient[a] = total[a]


@kernel
def laplacian(edge: Read, u: Read, own: Read, result: Write, *, d: Const[int]):
    """``int grad N_I . grad u = sum_J L_IJ (u_J - u_I)`` at one point; ``L_IJ = int grad N_I . grad N_J``."""
    total = 0.0
    for j in range(len(edge)):
        stiffness = 0.0
        for a in range(d):
            stiffness += edge[j][1 + (d + 1) * a]
        total += stiffness * (u[j] - own[0])
    result[0] = total
