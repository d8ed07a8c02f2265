"""Slopes in cells by weighted least squares, limited, and the geometry they need.

Neighbours and corners of a cell come through tables as wide as the largest cell has sides; what is missing is padded
with the cell itself, or its last corner, and has no weight.

References
----------
T. J. Barth, D. C. Jespersen: *The design and application of upwind schemes on unstructured meshes*. AIAA 89-0366.
D. J. Mavriplis: *Revisiting the least-squares procedure for gradient reconstruction on unstructured meshes*. AIAA
2003-3986.
Y. Xing, X. Zhang, C.-W. Shu: *Positivity-preserving high order well-balanced discontinuous Galerkin methods for the
shallow water equations*. Adv. Water Resour. 33, 2010 (depths at the faces, sec. 3).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.fv.gradients.limiters import bounded, minor
from fluxloom.fv.shallow.kernels import desingularised
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select, sqrt, zeros

__all__ = ["arms", "boundary_arms", "cell_shape", "crossings", "least_squares", "shallow_gradients", "unit_normals"]

_FLAT = 1.0e-10
"""Determinant over squared trace below which neighbours lie on a line."""

_LARGE = 1.0e30
_TINY = 1.0e-30


@func
def set_shape(x, centre, area, shape, middle, legs):
    """Write ``(1 / A, 2 A / P)`` of a cell, and the middles of its sides from the centroid, 0 of no side."""
    around = 0.0
    for j in range(legs):
        k = (j + 1) % legs
        dx = x[k][0] - x[j][0]
        dy = x[k][1] - x[j][1]
        length = sqrt(dx * dx + dy * dy)
        around += length
        middle[2 * j] = select(length > 0.0, 0.5 * (x[k][0] + x[j][0]) - centre[0], 0.0)
        middle[2 * j + 1] = select(length > 0.0, 0.5 * (x[k][1] + x[j][1]) - centre[1], 0.0)
    shape[0] = 1.0 / area[0]
    shape[1] = 2.0 * area[0] / around


@kernel
def cell_shape(x: Read, centre: Read, area: Read, shape: Write, middle: Write, *, legs: Const[int]):
    """Write ``(1 / A, 2 A / P)`` of a cell with the perimeter ``P``, and the middles of its sides; see `set_shape`."""
    set_shape(x, centre, area, shape, middle, legs)



@kernel
def unit_normals(normal: Read, face: Write):
    """Unit normal and length of a face, ``(n / |n|, |n|)``."""
    length = sqrt(normal[0] * normal[0] + normal[1] * normal[1])
    face[0] = normal[0] / length
    face[1] = normal[1] / length
    face[2] = length


@kernel
def arms(middle: Read, centre: Read, arm: Write):
    """Cell-to-face vectors of both cells, ``x_f - x_l`` and ``x_f - x_r``, from centroids to the middle of the face."""
    arm[0] = middle[0] - centre[0][0]
    arm[1] = middle[1] - centre[0][1]
    arm[2] = middle[0] - centre[1][0]
    arm[3] = middle[1] - centre[1][1]


@kernel
def boundary_arms(middle: Read, centre: Read, arm: Write):
    """Cell-to-face vector, ``x_f - x``, from the centroid of the cell to the middle of its boundary face."""
    arm[0] = middle[0] - centre[0]
    arm[1] = middle[1] - centre[1]


@kernel
def crossings(face: Read, arm: Read, centre: Read, middle: Read, point: Inc, *, legs: Const[int]):
    """Move the point of the side, from its middle, to where the line between both centroids crosses it.

    ``point = (v . n) / (dx . n) dx`` from the centroid, with the cell-to-face vector ``v`` and the way ``dx`` between
    the centroids. There a linear field is between its values in both cells, whatever their shapes.
    """
    dx = centre[1][0] - centre[0][0]
    dy = centre[1][1] - centre[0][1]
    across = dx * face[0] + dy * face[1]
    for i in range(2):
        ax = arm[2 * i]
        ay = arm[2 * i + 1]
        part = (1 - 2 * i) * min(fabs(ax * face[0] + ay * face[1]) / max(across, _TINY), 1.0)
        least = _LARGE
        for j in range(legs):
            mx = middle[i][2 * j] - ax
            my = middle[i][2 * j + 1] - ay
            least = min(least, mx * mx + my * my)
        for j in range(legs):
            mx = middle[i][2 * j] - ax
            my = middle[i][2 * j + 1] - ay
            found = mx * mx + my * my <= least
            point[i][2 * j] += select(found, part * dx - ax, 0.0)
            point[i][2 * j + 1] += select(found, part * dy - ay, 0.0)


@func
def set_weights(centre, around, weights, legs):
    """Weights ``w_j`` of the gradient ``sum w_j (q_j - q)`` that fits best, ``w_j = M^+ d_j / |d_j|^2``.

    ``M = sum_j d_j d_j^T / |d_j|^2`` with the ways ``d_j`` to the neighbours: each difference is weighted with
    1/distance^2. Neighbours on one line give the gradient along it alone.
    """
    xx = 0.0
    xy = 0.0
    yy = 0.0
    for j in range(legs):
        dx = around[j][0] - centre[0]
        dy = around[j][1] - centre[1]
        square = dx * dx + dy * dy
        if square > 0.0:
            xx += dx * dx / square
            xy += dx * dy / square
            yy += dy * dy / square
    trace = xx + yy
    det = xx * yy - xy * xy
    a = 0.0
    b = 0.0
    c = 0.0
    if det > _FLAT * trace * trace:
        a = yy / det
        b = -xy / det
        c = xx / det
    elif trace > 0.0:
        a = xx / (trace * trace)
        b = xy / (trace * trace)
        c = yy / (trace * trace)
    for j in range(legs):
        dx = around[j][0] - centre[0]
        dy = around[j][1] - centre[1]
        square = dx * dx + dy * dy
        near = 0.0
        if square > 0.0:
            near = 1.0 / square
        weights[2 * j] = near * (a * dx + b * dy)
        weights[2 * j + 1] = near * (b * dx + c * dy)


@kernel
def least_squares(centre: Read, around: Read, weights: Write, *, legs: Const[int]):
    """Weights of gradients, ``w_j = M^+ d_j / |d_j|^2``; see `set_weights`."""
    set_weights(centre, around, weights, legs)


@func
def surface_share(ex, ey, low, high, middle, point, legs):
    """What is kept of the gradient of the surface, ``min_j phi(grad e . x_j, low, high)``.

    At most ``(high - low) / max_j |grad e . m_j|``. ``x_j`` are the points and ``m_j`` the middles of the sides from
    the centroid, ``phi`` that of Barth and Jespersen.
    """
    share = 1.0
    steepest = 0.0
    for j in range(legs):
        rise = ex * point[2 * j] + ey * point[2 * j + 1]
        share = bounded(share, rise, low, high, minor(rise * rise, (high - low) * (high - low)))
        steepest = max(steepest, fabs(ex * middle[2 * j] + ey * middle[2 * j + 1]))
    return min(share, (high - low) / max(steepest, _TINY))


@func
def velocity_share(ax, ay, bx, by, reach, across, middle, point, legs):
    """What is kept of the gradients of the velocity, along its own changes ``c_j = grad u . x_j``; see `surface_share`.

    ``min_j phi(|c_j|^2, 0, max_i c_j . (u_i - u))``, at most ``sqrt(reach) / max_j |grad u . m_j|``; ``reach`` is
    ``max_i |u_i - u|^2``.
    """
    share = 1.0
    fastest = 0.0
    for j in range(legs):
        ca = ax * point[2 * j] + ay * point[2 * j + 1]
        cb = bx * point[2 * j] + by * point[2 * j + 1]
        square = ca * ca + cb * cb
        along = 0.0
        for i in range(legs):
            along = max(along, ca * across[2 * i] + cb * across[2 * i + 1])
        share = bounded(share, square, 0.0, along, minor(square, reach) * square)
        ma = ax * middle[2 * j] + ay * middle[2 * j + 1]
        mb = bx * middle[2 * j] + by * middle[2 * j + 1]
        fastest = max(fastest, ma * ma + mb * mb)
    return min(share, sqrt(reach / max(fastest, _TINY)))


@func
def set_gradients(u, near, zb, zn, weights, middle, point, gradient, legs, eps):
    """Gradients of surface, depth and velocity, ``(ex, ey, hx, hy, ax, ay, bx, by)``.

    ``grad e = s phi_e sum w_j (e_j - e)``, ``grad h = s (phi_e sum w_j (e_j - e) - sum w_j (z_j - z))``,
    ``grad u = s phi_u sum w_j (u_j - u)``: surface and velocity are limited, the velocity along its own changes
    (`fluxloom.fv.gradients.limiters`), where the lines to the neighbours cross the sides: linear fields are not
    limited. In the middles of sides both change by no more than the range round the cell. The depth follows from the
    surface and the slope of the bed, both reduced by ``s`` as far as no depth at a side is negative (Xing, Zhang and
    Shu 2010, sec. 3). Dry neighbours above the surface, and the velocity of dry ones, do not count: then the surface of
    water at rest has no gradient at any shore. Dry cells have no gradients.
    """
    h = u[0]
    f = desingularised(h, eps)
    e = h + zb[0]
    ex, ey, ax, ay, bx, by, zx, zy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    low = 0.0
    high = 0.0
    reach = 0.0
    across = zeros(2 * legs)
    for j in range(legs):
        wx = weights[2 * j]
        wy = weights[2 * j + 1]
        wet = near[j][0] > eps
        fn = desingularised(near[j][0], eps)
        de = near[j][0] + zn[j] - e
        de = select(wet or de < 0.0, de, 0.0)
        da = select(wet, fn * near[j][1] - f * u[1], 0.0)
        db = select(wet, fn * near[j][2] - f * u[2], 0.0)
        dz = zn[j] - zb[0]
        ex += wx * de
        ey += wy * de
        ax += wx * da
        ay += wy * da
        bx += wx * db
        by += wy * db
        zx += wx * dz
        zy += wy * dz
        low = min(low, de)
        high = max(high, de)
        reach = max(reach, da * da + db * db)
        across[2 * j] = da
        across[2 * j + 1] = db
    se = surface_share(ex, ey, low, high, middle, point, legs)
    su = velocity_share(ax, ay, bx, by, reach, across, middle, point, legs)
    hx = se * ex - zx
    hy = se * ey - zy
    share = 1.0
    for j in range(legs):
        change = hx * middle[2 * j] + hy * middle[2 * j + 1]
        share = select(share * change < -h, -h / change, share)
    share = select(h > eps, share, 0.0)
    gradient[0] = share * se * ex
    gradient[1] = share * se * ey
    gradient[2] = share * hx
    gradient[3] = share * hy
    gradient[4] = share * su * ax
    gradient[5] = share * su * ay
    gradient[6] = share * su * bx
    gradient[7] = share * su * by


@kernel
def shallow_gradients(
    u: Read, near: Read, zb: Read, zn: Read, weights: Read, middle: Read, point: Read, gradient: Write,
    *, legs: Const[int], eps: float,
):  # fmt: skip
    """Gradients of surface, depth and velocity, ``sum w_j (q_j - q)``, limited; see `set_gradients`."""
    set_gradients(u, near, zb, zn, weights, middle, point, gradient, legs, eps)
