r"""A stage of compressible flow as loops over faces that increment both cells: the form of hand-made solvers.

`fluxloom.fv.compressible.kernels` computes a stage in two passes over cells. The same terms are here as they are
commonly written: ten loops, numbered K1 to K10, most of them over faces, with everything a face has stored between two
loops, and sums that race. They are there to be measured: what renumbering, the way to resolve races, one launch a
component, and another set to loop over are worth (`fluxloom_lab.studies.face_loops_form` builds them).

States ``q = (rho, u_1 ... u_d, p, T)`` have ``m = d + 3`` components and live on elements, cells and then boundary
elements. A face leads from its first to its second element, ``area`` is its area vector, ``arms`` are the ways from
both centroids to it; that from a boundary element is zero. Gradients are those of Green and Gauss with values at nodes,

.. math:: q_n = \frac{\sum_{f \ni n} (q_l + q_r)}{2 \#\{f \ni n\}}, \quad
          \nabla q = \frac{1}{V} \sum_f \Big(\frac{1}{n_f} \sum_{n \in f} q_n\Big) A_f

so an element counts at a node once for each of its faces there. Boundary elements have ``1 / V = 0``, no gradient.

References
----------
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, sec. 5.3.4 and 5.4.2.
V. Venkatakrishnan: *Convergence to steady state solutions of the Euler equations on unstructured grids with limiters*.
J. Comput. Phys. 118, 1995.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Max, Min, Read, Write
from fluxloom.fv.compressible.fluxes import roe
from fluxloom.fv.compressible.gas import sutherland, viscous
from fluxloom.fv.compressible.spalart_allmaras import SIGMA, diffusivity, eddy_viscosity
from fluxloom.fv.compressible.viscous_flux import corrected
from fluxloom.fv.gradients.limiters import smooth_share
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import max, min, select, sqrt, zeros

__all__ = [
    "extremes_from_cells",
    "extremes_from_faces",
    "face_flux",
    "face_friction",
    "face_values",
    "green_gauss",
    "limit_pressure",
    "nodes_from_cells",
    "nodes_from_faces",
    "nodes_from_nodes",
    "own_pressure",
    "reconstruct",
    "sum_fluxes",
    "sum_turbulence",
    "turbulence_coefficients",
]


# --------------------------------------------------------------------------------------------------- gradients


@kernel
def nodes_from_faces(q: Read, weight: Read, corners: Read, node: Inc, *, nv: Const[int], legs: Const[int]):
    """K2 over faces: both elements of a face count at each of its ``corners`` nodes; the others of ``legs`` repeat."""
    for leg in range(legs):
        share = select(leg < corners[0], weight[leg], 0.0)
        for v in range(nv):
            node[leg][v] += share * (q[0][v] + q[1][v])


@kernel
def nodes_from_cells(q: Read, weight: Read, times: Read, node: Inc, *, nv: Const[int]):
    """K2 over elements: each counts at its nodes as many ``times`` as it has faces there."""
    for j in range(len(node)):
        share = weight[j] * times[j]
        for v in range(nv):
            node[j][v] += share * q[v]


@kernel
def nodes_from_nodes(q: Read, weight: Read, times: Read, node: Write, *, nv: Const[int]):
    """K2 over nodes: the mean of the elements around; nothing races."""
    total = zeros(nv)
    for j in range(len(q)):
        for v in range(nv):
            total[v] += times[j] * q[j][v]
    for v in range(nv):
        node[v] = weight[0] * total[v]


@kernel
def green_gauss(
    node: Read, corners: Read, area: Read, inverse: Read, slope: Inc, *, nv: Const[int], d: Const[int], legs: Const[int]
):
    """K1: add what a face brings to the gradients of both elements, ``d v + k``; ``inverse`` is ``1 / V``."""
    share = 1.0 / corners[0]
    for v in range(nv):
        total = 0.0
        for leg in range(legs):
            total += select(leg < corners[0], node[leg][v], 0.0)
        for k in range(d):
            push = share * total * area[k]
            slope[0][d * v + k] += inverse[0] * push
            slope[1][d * v + k] -= inverse[1] * push


# ---------------------------------------------------------------------------------------------------- limiter


@kernel
def own_pressure(q: Read, low: Write, high: Write, *, d: Const[int]):
    """What K8 over faces begins with."""
    low[0] = q[1 + d]
    high[0] = q[1 + d]


@kernel
def extremes_from_faces(q: Read, low: Min, high: Max, *, d: Const[int]):
    """K8 over faces: the least and the largest pressure of an element and those across its faces."""
    low[0][0] = min(low[0][0], q[1][1 + d])
    low[1][0] = min(low[1][0], q[0][1 + d])
    high[0][0] = max(high[0][0], q[1][1 + d])
    high[1][0] = max(high[1][0], q[0][1 + d])


@kernel
def extremes_from_cells(q: Read, near: Read, low: Write, high: Write, *, d: Const[int]):
    """K8 over elements; nothing races."""
    least = q[1 + d]
    most = q[1 + d]
    for j in range(len(near)):
        least = min(least, near[j][1 + d])
        most = max(most, near[j][1 + d])
    low[0] = least
    high[0] = most


@kernel
def limit_pressure(q: Read, slope: Read, low: Read, high: Read, arms: Read, share: Min, *, d: Const[int], rough: float):
    """K4: what share of the slopes keeps the pressure at a face among those around, of both elements."""
    first = 0.0
    second = 0.0
    for k in range(d):
        first += slope[0][d * (1 + d) + k] * arms[k]
        second += slope[1][d * (1 + d) + k] * arms[d + k]
    one = smooth_share(1.0, first, low[0][0] - q[0][1 + d], high[0][0] - q[0][1 + d], rough)
    two = smooth_share(1.0, second, low[1][0] - q[1][1 + d], high[1][0] - q[1][1 + d], rough)
    share[0][0] = min(share[0][0], one)
    share[1][0] = min(share[1][0], two)


# ----------------------------------------------------------------------------------------------------- fluxes


@kernel
def face_values(q: Read, left: Write, right: Write, *, nv: Const[int]):
    """K7: copy the states of both elements to the face."""
    for v in range(nv):
        left[v] = q[0][v]
        right[v] = q[1][v]


@kernel
def reconstruct(q: Read, slope: Read, share: Read, arms: Read, left: Write, right: Write, *, d: Const[int]):
    """K5: density, velocity and pressure at a face, by the limited slopes of both elements."""
    for v in range(2 + d):
        first = 0.0
        second = 0.0
        for k in range(d):
            first += slope[0][d * v + k] * arms[k]
            second += slope[1][d * v + k] * arms[d + k]
        left[v] = q[0][v] + share[0][0] * first
        right[v] = q[1][v] + share[1][0] * second


@kernel
def face_friction(
    left: Read, right: Read, slope: Read, nut: Read, area: Read, arms: Read, part: Read, out: Write,
    *, capacity: float, prandtl: float, prandtl_turbulent: float, mu0: float, t0: float, s: float, d: Const[int],
):  # fmt: skip
    """K3: friction and heat into the first element, with the mean of both gradients corrected along the way between.

    ``part`` is the first element's share of the mean, ``capacity`` the specific heat at constant pressure.
    """
    n = zeros(d)
    u = zeros(d)
    way = zeros(d)
    heat = zeros(d)
    g = zeros(d * d)
    f = zeros(2 + d)
    square = 0.0
    for k in range(d):
        n[k] = area[k]
        u[k] = 0.5 * (left[1 + k] + right[1 + k])
        way[k] = arms[k] - arms[d + k]
        square += way[k] * way[k]
        first = d * (2 + d) + k
        heat[k] = part[0] * slope[0][first] + (1.0 - part[0]) * slope[1][first]
    inverse = 1.0 / square
    corrected(heat, right[2 + d] - left[2 + d], way, inverse, 0, d)
    for i in range(d):
        for k in range(d):
            along = part[0] * slope[0][d * (1 + i) + k] + (1.0 - part[0]) * slope[1][d * (1 + i) + k]
            g[d * i + k] = along
        corrected(g, right[1 + i] - left[1 + i], way, inverse, d * i, d)
    mu = sutherland(0.5 * (left[2 + d] + right[2 + d]), mu0, t0, s)
    density = 0.5 * (left[0] + right[0])
    mut = density * eddy_viscosity(0.5 * (nut[0][0] + nut[1][0]), mu / density)
    viscous(u, g, heat, n, f, mu + mut, capacity * (mu / prandtl + mut / prandtl_turbulent), d)
    for v in range(2 + d):
        out[v] = f[v]


@kernel
def face_flux(
    left: Read, right: Read, viscous_flux: Read, area: Read, flux: Write, *, gamma: float, fix: float, d: Const[int]
):
    """Flux of Roe from the reconstructed states, times the area, less what friction and heat bring."""
    n = zeros(d)
    a = zeros(2 + d)
    b = zeros(2 + d)
    f = zeros(2 + d)
    square = 0.0
    for k in range(d):
        square += area[k] * area[k]
    size = sqrt(square)
    for k in range(d):
        n[k] = area[k] / size
    for v in range(2 + d):
        a[v] = left[v]
        b[v] = right[v]
    roe(a, b, n, f, gamma, d, fix, 0.0)
    for v in range(2 + d):
        flux[v] = size * f[v] - viscous_flux[v]


@kernel
def sum_fluxes(flux: Read, res: Inc, *, nv: Const[int]):
    """K6: what leaves the first element enters the second."""
    for v in range(nv):
        res[0][v] -= flux[v]
        res[1][v] += flux[v]


# ------------------------------------------------------------------------------------------------- turbulence


@kernel
def turbulence_coefficients(
    left: Read, right: Read, nut: Read, flux: Read, area: Read, arms: Read, out: Write, diagonal: Inc,
    *, mu0: float, t0: float, s: float, d: Const[int],
):  # fmt: skip
    """K9: the flux of the variable of Spalart and Allmaras is ``a_l nut_l + a_r nut_r``; and their sums in a cell.

    Upwind with the flow of mass, and central along the way between the elements.
    """
    square = 0.0
    through = 0.0
    for k in range(d):
        way = arms[k] - arms[d + k]
        square += area[k] * area[k]
        through += area[k] * way
    mu_left = sutherland(left[2 + d], mu0, t0, s)
    mu_right = sutherland(right[2 + d], mu0, t0, s)
    spread = left[0] * diffusivity(nut[0][0], mu_left / left[0])
    spread += right[0] * diffusivity(nut[1][0], mu_right / right[0])
    rate = 0.5 * spread / SIGMA * square / through
    a = max(flux[0], 0.0) + rate
    b = min(flux[0], 0.0) - rate
    out[0] = a
    out[1] = b
    diagonal[0][0] += a
    diagonal[1][0] -= b


@kernel
def sum_turbulence(coefficient: Read, nut: Read, res: Inc):
    """K10: what leaves the first element enters the second."""
    flow = coefficient[0] * nut[0][0] + coefficient[1] * nut[1][0]
    res[0][0] -= flow
    res[1][0] += flow
