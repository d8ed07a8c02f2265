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

__all__ = ["average_value", "average_velocity"]


@kernel
def average_velocity(
    u: Read, spread: Read | None, share: Read, mean: RW, moments: RW, *, d: Const[int], first: Const[int]
):  # fmt: skip
    """Means ``(u_1 .. u_d)``, covariances ``(u_1 u_1, u_1 u_2 .. u_d u_d)``; the velocity begins at ``first``.

    ``cov_ik = (1 - r) (cov_ik + r c_i c_k)``, then ``mean_i += r c_i``, ``c = u - mean``. ``spread`` is what squares
    have in an element beyond that of the value, of one that is a mean of several: ``cov_ii += r spread_i``.
    """
    r = share[0]
    change = zeros(d)
    for k in range(d):
        change[k] = u[first + k] - mean[k]
    place = 0
    for i in range(d):
        for k in range(i, d):
            moments[place] = (1.0 - r) * (moments[place] + r * change[i] * change[k])
            place += 1
    if spread is not None:
        place = 0
        for i in range(d):
            moments[place] = moments[place] + r * spread[i]
            place += d - i
    for k in range(d):
        mean[k] = mean[k] + r * change[k]


@kernel
def average_value(
    q: Read, scale: Read | None, u: Read | None, mean: Read | None, share: Read, moments: RW, *, place: Const[int],
    d: Const[int], first: Const[int],
):  # fmt: skip
    """Of one number: mean, variance, covariances with ``u``; ``mean``: that of the velocity before this sample.

    ``cov(q, u_k) = (1 - r) (cov + r c (u_k - mean_k))``, ``var = (1 - r) (var + r c^2)``, ``mean(q) += r c``, with
    ``c = q - mean(q)``.
    """
    r = share[0]
    change = q[place] - moments[0]
    if scale is not None:
        change = scale[0] * q[place] - moments[0]
    if u is not None and mean is not None:
        for k in range(d):
            moments[2 + k] = (1.0 - r) * (moments[2 + k] + r * change * (u[first + k] - mean[k]))
    moments[1] = (1.0 - r) * (moments[1] + r * change * change)
    moments[0] = moments[0] + r * change
