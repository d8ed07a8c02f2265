r"""Loops of a compressible flow over cells: gradients of the states, and what part of them a limiter leaves.

.. math:: \nabla q = \sum_j g_j (q_j - q), \qquad q_f = q + \phi\, \nabla q \cdot v_f, \qquad
          \phi = \min_f \phi(\nabla q \cdot v_f, \min_j (q_j - q), \max_j (q_j - q))

See `fluxloom.fv.geometry.cell_faces` for elements, rows and the weights ``g_j``. Gradients of all ``nv`` components lie
at ``d v + k``. A limiter keeps what they add at the faces of a cell, with the cell-to-face vector ``v_f``, within the
extremes around it; both are found in one pass, for it reads the same neighbours.

References
----------
T. J. Barth, D. C. Jespersen: *The design and application of upwind schemes on unstructured meshes*. AIAA 89-0366.
D. J. Mavriplis: *Revisiting the least-squares procedure for gradient reconstruction on unstructured meshes*. AIAA
2003-3986.
V. Venkatakrishnan: *Convergence to steady state solutions of the Euler equations on unstructured grids with limiters*.
J. Comput. Phys. 118, 1995.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.fv.gradients.limiters import Limiter, minor
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select, sqrt, zeros

__all__ = ["gradients", "limited_gradients", "limited_gradients_of_few", "relax_limiter"]


@kernel
def gradients(w: Read, near: Read, weights: Read, gradient: Write, *, nv: Const[int], d: Const[int]):
    """Gradients by least squares, ``dq/dx = sum_j g_j (q_j - q)``."""
    g = zeros(nv * d)
    for j in range(len(near)):
        for v in range(nv):
            jump = near[j][v] - w[v]
            for k in range(d):
                g[d * v + k] += weights[j][k] * jump
    for i in range(nv * d):
        gradient[i] = g[i]


@func
def is_inner(way, d):
    """Return 1 where a way leads to a face between two cells, ``sum_k |v_k| > 0``, 0 where it is that of a boundary."""
    reach = 0.0
    for k in range(d):
        reach += fabs(way[k])
    return select(reach > 0.0, 1.0, 0.0)


@func
def least_share(top, below, v, a, b):
    """Keep the lesser of two fractions, ``phi_v = min(top_v / below_v, a / b)``, as numerator and denominator."""
    less = a * below[v] < top[v] * b
    top[v] = select(less, a, top[v])
    below[v] = select(less, b, below[v])


@func
def unlimited_part(way, k_cubed, most, d):
    """Return the part of the square of a flow's size below which changes towards a face are not limited.

    ``min(k_cubed |v|^3, most)`` with the cell-to-face vector ``v``: ``(K h)^3`` of Venkatakrishnan.
    """
    size = 0.0
    for k in range(d):
        size += way[k] * way[k]
    return min(k_cubed * size * sqrt(size), most)


@func
def differences(w, near, weights, ways, g, low, high, nv, d):
    """Find gradients ``g = sum_j g_j (q_j - q)``, least and largest ``q_j - q``; return ``max_j |u_j - u|^2``."""
    reach = 0.0
    for j in range(len(near)):
        inner = is_inner(ways[j], d)
        size = 0.0
        for v in range(nv):
            jump = near[j][v] - w[v]
            for k in range(d):
                g[d * v + k] += weights[j][k] * jump
            low[v] = min(low[v], inner * jump)
            high[v] = max(high[v], inner * jump)
            size += jump * jump if 1 <= v <= d else 0.0
        reach = max(reach, inner * size)
    return reach


@func
def along_changes(w, near, ways, push, along, faces, d):
    """Find ``along_i = max(0, max_j c_i . (u_j - u))`` for each change ``c_i`` of the velocity at a face, `push`."""
    jump = zeros(d)
    for j in range(len(near)):
        inner = is_inner(ways[j], d)
        for k in range(d):
            jump[k] = inner * (near[j][1 + k] - w[1 + k])
        for i in range(faces):
            dot = 0.0
            for k in range(d):
                dot += push[d * i + k] * jump[k]
            along[i] = max(along[i], dot)


@func
def reached_along(w, near, ways, push, d):
    """Return ``max(0, max_j c . (u_j - u))`` for one change ``c`` of the velocity, `push`; see `along_changes`."""
    most = 0.0
    for i in range(len(near)):
        dot = 0.0
        for k in range(d):
            dot += push[k] * (is_inner(ways[i], d) * (near[i][1 + k] - w[1 + k]))
        most = max(most, dot)
    return most


@kernel
def limited_gradients(
    w: Read, near: Read, weights: Read, ways: Read, scale: Read, gradient: Write, phi: Write,
    *, nv: Const[int], d: Const[int], limiter: Const[Limiter], faces: Const[int], wide: Const[int], k_cubed: float,
    most: float,
):  # fmt: skip
    """`gradients`, and the limiter value of each that keeps values at faces between those around.

    ``phi_v = min_f phi(c_f, low_v, high_v, e)`` with ``c_f = g_v . v_f``; of the velocity ``phi(|c_f|^2, 0, max_j c_f .
    (u_j - u), e |c_f|^2)``, along its own changes (`fluxloom.fv.gradients.limiters`), so that it does not depend on the
    axes.

    ``ways`` are the cell-to-face vectors, 0 to faces of a boundary, which do not count, nor does what is there. Squares
    of changes below ``k_cubed h^3`` of ``scale``, the square of the size of each component, are not limited, with ``h``
    twice the way to the face, at most below the part ``most`` (Venkatakrishnan). Nor are changes that are small beside
    the range of values around the cell (`fluxloom.fv.gradients.limiters.minor`). The least of the faces' values is
    found as a fraction: one division a component. ``faces`` are the most that a row has, with ``wide`` 1, where
    elements around are not those across faces, one more: their changes are kept until all differences are known. With 1
    none are, and each looks at all differences: work items have no memory of their own to keep them in. For those with
    few faces there is `limited_gradients_of_few`.
    """
    g = zeros(nv * d)
    low = zeros(nv)
    high = zeros(nv)
    top = zeros(nv)
    below = zeros(nv)
    push = zeros(faces * d)
    square = zeros(faces)
    along = zeros(faces)
    unlimited = zeros(faces)
    place = 0
    reach = differences(w, near, weights, ways, g, low, high, nv, d)
    for v in range(nv):
        top[v] = 1.0
        below[v] = 1.0
    for j in range(len(near)):
        if faces == 1:
            square[0] = 0.0
        elif wide == 0:
            place = j
        rest = unlimited_part(ways[j], k_cubed, most, d) if limiter.has_threshold else 0.0
        for v in range(nv):
            change = 0.0
            for k in range(d):
                change += g[d * v + k] * ways[j][k]
            if 1 <= v <= d:
                push[d * place + v - 1] = change
                square[place] += change * change
            else:
                eps2 = rest * scale[v] + minor(change * change, (high[v] - low[v]) * (high[v] - low[v]))
                a, b = limiter(change, low[v], high[v], eps2)
                least_share(top, below, v, a, b)
        unlimited[place] = rest * scale[1]
        if faces == 1:
            along[0] = reached_along(w, near, ways, push, d)
            a, b = limiter(square[0], 0.0, along[0], (unlimited[0] + minor(square[0], reach)) * square[0])
            least_share(top, below, 1, a, b)
        elif wide == 1:
            place += 1 if is_inner(ways[j], d) > 0.0 else 0
    if faces > 1:
        along_changes(w, near, ways, push, along, faces, d)
        for i in range(faces):
            a, b = limiter(square[i], 0.0, along[i], (unlimited[i] + minor(square[i], reach)) * square[i])
            least_share(top, below, 1, a, b)
    for v in range(nv):
        phi[v] = top[1] / below[1] if 1 <= v <= d else top[v] / below[v]
    for i in range(nv * d):
        gradient[i] = g[i]


@kernel
def limited_gradients_of_few(
    w: Read, near: Read, weights: Read, ways: Read, scale: Read, gradient: Write, phi: Write,
    *, nv: Const[int], d: Const[int], limiter: Const[Limiter], faces: Const[int], k_cubed: float, most: float,
):  # fmt: skip
    """`limited_gradients` of cells with at most some faces, by work items: ``phi_v = min_f phi(g_v . v_f)``.

    Loops over faces are unrolled, so that differences of the velocity are kept in registers.
    """
    g = zeros(nv * d)
    low = zeros(nv)
    high = zeros(nv)
    top = zeros(nv)
    below = zeros(nv)
    jumps = zeros(faces * d)
    push = zeros(d)
    reach = 0.0
    for i in range(faces):
        if i < len(near):
            inner = is_inner(ways[i], d)
            size = 0.0
            for v in range(nv):
                jump = near[i][v] - w[v]
                for k in range(d):
                    g[d * v + k] += weights[i][k] * jump
                low[v] = min(low[v], inner * jump)
                high[v] = max(high[v], inner * jump)
                if 1 <= v <= d:
                    jumps[d * i + v - 1] = inner * jump
                    size += jump * jump
            reach = max(reach, inner * size)
    for v in range(nv):
        top[v] = 1.0
        below[v] = 1.0
    for i in range(faces):
        if i < len(near):
            rest = unlimited_part(ways[i], k_cubed, most, d) if limiter.has_threshold else 0.0
            square = 0.0
            for v in range(nv):
                change = 0.0
                for k in range(d):
                    change += g[d * v + k] * ways[i][k]
                if 1 <= v <= d:
                    push[v - 1] = change
                    square += change * change
                else:
                    eps2 = rest * scale[v] + minor(change * change, (high[v] - low[v]) * (high[v] - low[v]))
                    a, b = limiter(change, low[v], high[v], eps2)
                    least_share(top, below, v, a, b)
            along = 0.0
            for j in range(faces):
                dot = 0.0
                for k in range(d):
                    dot += push[k] * jumps[d * j + k]
                along = max(along, dot)
            a, b = limiter(square, 0.0, along, (rest * scale[1] + minor(square, reach)) * square)
            least_share(top, below, 1, a, b)
    for v in range(nv):
        phi[v] = top[1] / below[1] if 1 <= v <= d else top[v] / below[v]
    for i in range(nv * d):
        gradient[i] = g[i]


@kernel
def relax_limiter(wanted: Read, phi: RW, *, weight: float, nv: Const[int]):
    """Limiter values that follow those wanted now, ``phi += weight (wanted - phi)``."""
    for v in range(nv):
        phi[v] += weight * (wanted[v] - phi[v])
