"""Kernels of running means: a sample changes means and covariances, so that nothing grows and no digits are lost.

With the share ``r = w / sum w`` of a sample in the whole and ``c = x - mean(x)`` before it,

::

    mean(x) += r c,    cov(x, y) = (1 - r) (cov(x, y) + r c_x c_y)

Source: D. H. D. West, *Updating mean and variance estimates: an improved method*. Commun. ACM 22, 1979.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

__all__ = ["average_flow", "average_scalar", "average_states"]


@kernel
def average_flow(u: Read, phi: Read, scale: Read, share: Read, mean: RW, moments: RW, *, d: Const[int]):
    """Means ``(u_1 .. u_d, p)``, covariances ``(u_1 u_1, u_1 u_2 .. u_d u_d, p p)``; ``p = scale phi``."""
    r = share[0]
    change = zeros(d + 1)
    for k in range(d):
        change[k] = u[k] - mean[k]
    change[d] = scale[0] * phi[0] - mean[d]
    place = 0
    for i in range(d):
        for k in range(i, d):
            moments[place] = (1.0 - r) * (moments[place] + r * change[i] * change[k])
            place += 1
    moments[place] = (1.0 - r) * (moments[place] + r * change[d] * change[d])
    for k in range(d + 1):
        mean[k] = mean[k] + r * change[k]


@kernel
def average_scalar(theta: Read, u: Read, mean: Read, share: Read, moments: RW, *, d: Const[int]):
    """Of a scalar: mean, variance, covariances with ``u``; ``mean``: that of the velocity before this sample."""
    r = share[0]
    change = theta[0] - moments[0]
    for k in range(d):
        moments[2 + k] = (1.0 - r) * (moments[2 + k] + r * change * (u[k] - mean[k]))
    moments[1] = (1.0 - r) * (moments[1] + r * change * change)
    moments[0] = moments[0] + r * change


@kernel
def average_states(w: Read, share: Read, mean: RW, moments: RW, *, nv: Const[int], d: Const[int]):
    """Means of primitive states ``(rho, u, p, ..)``; variances of each, then ``(u_1 u_2, u_1 u_3, u_2 u_3)``."""
    r = share[0]
    change = zeros(nv)
    for v in range(nv):
        change[v] = w[v] - mean[v]
        moments[v] = (1.0 - r) * (moments[v] + r * change[v] * change[v])
    place = nv
    for i in range(d):
        for k in range(i + 1, d):
            moments[place] = (1.0 - r) * (moments[place] + r * change[1 + i] * change[1 + k])
            place += 1
    for v in range(nv):
        mean[v] = mean[v] + r * change[v]
