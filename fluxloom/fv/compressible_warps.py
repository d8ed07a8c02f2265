r"""What warped faces add to the convective fluxes of a compressible flow.

The flux through a face is that at its centre, times its area vector. Where the face is warped its triangles have other
normals, and a flux that changes along the face adds, to first order,

.. math:: \sum_k \frac{\partial F_k}{\partial w} \sum_n T_{kn} \frac{\partial w}{\partial x_n}

with :math:`T_{kn}` of `fluxloom.mesh.geometry` and the means of state and gradient of both cells: with it what
linear states bring into a cell is exact to first order in their change. At the boundary the state at the centre of a
face is that of all of it.
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import zeros

__all__ = ["twisted"]


@func
def twist(w, g, warp, f, gamma, nv):
    """Write what a warped face adds to the flux through it, of a state and its gradient; see the module."""
    heat = gamma / (gamma - 1.0)
    square = 0.0
    for i in range(3):
        square += w[1 + i] * w[1 + i]
    total = heat * w[4] / w[0] + 0.5 * square
    for v in range(nv):
        f[v] = 0.0
    for k in range(3):
        change = zeros(5)
        for v in range(5):
            for n in range(3):
                change[v] += warp[3 * k + n] * g[3 * v + n]
        mass = w[0] * change[1 + k] + w[1 + k] * change[0]
        rise = heat * (change[4] - w[4] / w[0] * change[0])
        for i in range(3):
            f[1 + i] += w[1 + i] * mass + w[0] * w[1 + k] * change[1 + i]
            rise += w[0] * w[1 + i] * change[1 + i]
        f[0] += mass
        f[1 + k] += change[4]
        f[4] += total * mass + w[1 + k] * rise
    for v in range(5, nv):
        f[v] = f[0] * w[v]


@func
def twisted(w, slope, share, near, far, kept, warp, f, gamma, nv):
    """Write what a warped face between two cells adds to the flux through it, times its area."""
    mean = zeros(nv)
    g = zeros(15)
    for v in range(nv):
        mean[v] = 0.5 * (w[v] + near[v])
    for v in range(5):
        for n in range(3):
            g[3 * v + n] = 0.5 * (share[v] * slope[3 * v + n] + kept[v] * far[3 * v + n])
    twist(mean, g, warp, f, gamma, nv)
