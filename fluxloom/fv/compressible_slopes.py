r"""Loops of a compressible flow over cells: slopes of the states, and what share of them a limiter leaves.

See `fluxloom.fv.compressible_geometry` for elements, rows and weights. Slopes of all ``nv`` components lie at
``d v + k``. A limiter keeps what they add at the faces of a cell within the extremes around it; both are found in one
pass, for it reads the same neighbours.
"""

from __future__ import annotations

from fluxloom.core.access import Const, Read, Write
from fluxloom.fv.limiters import bounded_parts, smooth_parts
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select, zeros

__all__ = ["BARTH", "NOT_LIMITED", "VENKATAKRISHNAN", "limited_slopes", "slopes"]

NOT_LIMITED, BARTH, VENKATAKRISHNAN = 0, 1, 2
"""Limiters."""


@kernel
def slopes(w: Read, near: Read, weights: Read, slope: Write, *, nv: Const[int], d: Const[int]):
    """Slopes by least squares, ``sum_j g_j (q_j - q)``."""
    g = zeros(nv * d)
    for j in range(len(near)):
        for v in range(nv):
            jump = near[j][v] - w[v]
            for k in range(d):
                g[d * v + k] += weights[j][k] * jump
    for i in range(nv * d):
        slope[i] = g[i]


@func
def is_inner(way, d):
    """Return 1 where a way leads to a face between two cells, 0 where it is that of a boundary."""
    reach = 0.0
    for k in range(d):
        reach += fabs(way[k])
    return select(reach > 0.0, 1.0, 0.0)


@kernel
def limited_slopes(
    w: Read, near: Read, weights: Read, ways: Read, rough: Read, scale: Read, slope: Write, share: Write,
    *, nv: Const[int], d: Const[int], limiter: Const[int],
):  # fmt: skip
    """`slopes`, and the share of each that keeps values at faces between the least and the largest ones around.

    ``ways`` lead from the cell to its faces, 0 to those of a boundary, which do not count, nor does what is there.
    ``rough`` is ``(K h)^3`` of the cell, ``scale`` the square of the size of each component: changes below
    ``rough * scale`` are not limited (Venkatakrishnan). The least of the faces' shares is found as a fraction: one
    division a component.
    """
    g = zeros(nv * d)
    low = zeros(nv)
    high = zeros(nv)
    top = zeros(nv)
    below = zeros(nv)
    for j in range(len(near)):
        inner = is_inner(ways[j], d)
        for v in range(nv):
            jump = near[j][v] - w[v]
            for k in range(d):
                g[d * v + k] += weights[j][k] * jump
            low[v] = min(low[v], inner * jump)
            high[v] = max(high[v], inner * jump)
    for v in range(nv):
        top[v] = 1.0
        below[v] = 1.0
    for j in range(len(near)):
        for v in range(nv):
            change = 0.0
            for k in range(d):
                change += g[d * v + k] * ways[j][k]
            if limiter == BARTH:
                a, b = bounded_parts(change, low[v], high[v])
            else:
                a, b = smooth_parts(change, low[v], high[v], rough[0] * scale[v])
            less = a * below[v] < top[v] * b
            top[v] = select(less, a, top[v])
            below[v] = select(less, b, below[v])
    for v in range(nv):
        share[v] = top[v] / below[v]
    for i in range(nv * d):
        slope[i] = g[i]
