r"""Viscous fluxes of a compressible gas, and its viscosity.

.. math:: F_v = (0,\; \tau n,\; u \cdot \tau n + \lambda\, \partial T / \partial n), \quad
          \tau = \mu \left(\nabla u + \nabla u^T - \tfrac{2}{3} \nabla \cdot u\right), \quad
          \mu = \mu_0 \left(\frac{T}{T_0}\right)^{3/2} \frac{T_0 + S}{T + S}

in ``d`` = 2 or 3 dimensions. The flow of momentum and energy *into* the left side of a face is ``F_v`` times its area.

These are functions for kernels, ``@func``.

References
----------
W. Sutherland: *The viscosity of gases and molecular force*. Philos. Mag. 36, 1893. For air ``S`` = 110.4 K with
``T_0`` = 273.15 K (F. M. White: *Viscous Fluid Flow*, 3rd ed., table 1-2: 110.56 K).
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import sqrt

__all__ = ["sutherland", "sutherland_weighted", "viscous"]


@func
def sutherland_weighted(temperature, mu0, t0, s):
    """Return the viscosity at a temperature, times ``T + S``."""
    ratio = temperature * (1.0 / t0)
    return mu0 * ratio * sqrt(ratio) * (t0 + s)


@func
def sutherland(temperature, mu0, t0, s):
    """Return the viscosity at a temperature."""
    return sutherland_weighted(temperature, mu0, t0, s) / (temperature + s)


@func
def viscous(u, slopes, heat, n, f, mu, conductivity, d):
    """Write ``F_v``, ``(d + 2,)``, for a velocity, its gradient ``d u_i / d x_j`` at ``d i + j``, and ``grad T``."""
    spread = 0.0
    for k in range(d):
        spread += slopes[d * k + k]
    flow = 0.0
    work = 0.0
    for i in range(d):
        force = -2.0 / 3.0 * spread * n[i]
        for j in range(d):
            force += (slopes[d * i + j] + slopes[d * j + i]) * n[j]
        f[1 + i] = mu * force
        work += mu * force * u[i]
        flow += heat[i] * n[i]
    f[0] = 0.0
    f[1 + d] = work + conductivity * flow
