r"""Kernels of scalars with bounds in an incompressible flow.

The convection ``C_ij`` and the diffusion ``D_ij`` between two cells are those of
`fluxloom.fv.incompressible.operators`. With ``d_ij = max(0, |C_ij| + D_ij)`` between cells, and of what flows out where
a boundary element is across, the step of low order

.. math:: \Omega_i (c^L_i - c_i) / \Delta t = \sum_j (d_{ij} - C_{ij} - D_{ij}) (c_j - c_i) + \Omega_i s_i

has no new extremum: upwind where convection is more than diffusion, central where it is not. What the scheme without
bounds has more, with ``e = c_e - c`` of the values in the middle of the step, is a flux of each pair of cells,

.. math:: f_{ij} = d_{ij} (c_i - c_j) - C_{ij} (e_i + e_j) - D_{ij} (e_j - e_i)

of which, with what two points lack on oblique meshes, `fluxloom.fv.incompressible.flux_correction` takes a part.
Differences ``c_j - c_i`` keep the bounds although the pressure is solved to a tolerance; what the sum of the
scalar changes by is the scalar times the divergence that is left.

References
----------
D. Kuzmin, R. Loehner, S. Turek (eds.): *Flux-corrected transport*. Springer, 2012, chapter "Algebraic flux correction"
(``d_ij``, the step of low order).
S. T. Zalesak: *Fully multidimensional flux-corrected transport algorithms for fluids*. J. Comput. Phys. 31, 1979.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Max, Min, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select

__all__ = ["bounded_limit", "bounded_transport", "cell_fluxes", "low_order", "oblique_part"]


@func
def damping(link, convection, diffusion):
    """Return ``d_ij = max(0, |C_ij| + D_ij)``, at the boundary ``max(0, C_ij + D_ij)``; ``link`` is 1 between cells."""
    return max(0.0, (fabs(convection) if link > 0.0 else convection) + diffusion)


@kernel
def bounded_transport(weight: Read, us: Read, nus: Read, pair: Write):
    """One entry of ``C_ij = sum E_C u_s`` and ``D_ij = sum E_D nu_s``, and no `oblique_part`."""
    convection = 0.0
    diffusion = 0.0
    for j in range(len(us)):
        convection += weight[j][0] * us[j]
        diffusion += weight[j][1] * nus[j]
    pair[0] = convection
    pair[1] = diffusion
    pair[2] = 0.0


@kernel
def oblique_part(weight: Read, flux: Read, pair: RW):
    """What two points lack of the flux out of a cell, ``sum +-f``.

    See `fluxloom.solvers.incompressible.scalar_corrections`.
    """
    for j in range(len(flux)):
        pair[2] += select(weight[j][0] > 0.0, flux[j][0], -flux[j][0])


@kernel
def low_order(
    pair: Read, link: Read, c: Read, own: Read, inverse: Read, source: Read, dt: Read, low: Write, before: Write,
    worst: Max,
):  # fmt: skip
    """A step of low order, ``c_L = c + dt / Omega sum_j (d_ij - C_ij - D_ij) (c_j - c) + dt s``, and ``c`` before it.

    ``worst`` is ``dt / Omega sum_j (d_ij - C_ij - D_ij)``: ``dt`` over the longest one that is bounded.
    """
    total = 0.0
    away = 0.0
    for j in range(len(pair)):
        share = damping(link[j], pair[j][0], pair[j][1]) - pair[j][0] - pair[j][1]
        total += share * (c[j][0] - own[0])
        away += share if link[j] >= 0.0 else 0.0
    scale = dt[0] * inverse[0]
    before[0] = own[0]
    low[0] = own[0] + scale * total + (dt[0] * source[0] if inverse[0] > 0.0 else 0.0)
    worst[0] = max(worst[0], scale * away)


@kernel
def cell_fluxes(pair: Read, link: Read, c: Read, own: Read, ahead: Read, ahead_own: Read, flux: Write):
    """Fluxes of a row, into the cell: ``f_ij = d_ij (c_i - c_j) - C_ij (e_i + e_j) - D_ij (e_j - e_i)``.

    Less `oblique_part`, with ``e = c_e - c``; across the boundary there is what two points lack alone.
    """
    for j in range(len(pair)):
        mine = ahead_own[0] - own[0]
        other = ahead[j][0] - c[j]
        moved = pair[j][0] * (mine + other) + pair[j][1] * (other - mine)
        damp = damping(link[j], pair[j][0], pair[j][1])
        more = damp * (own[0] - c[j]) - moved if link[j] > 0.0 else 0.0
        flux[j] = more - pair[j][2] if link[j] >= 0.0 else 0.0


@kernel
def bounded_limit(out: Read, us: Read, alpha: Read, volume: Read, step: Min):
    """The longest bounded step, ``0.9 Omega / sum (|u_s| A / 2 + alpha A / delta)``; ``out`` as in `time_limit`."""
    away = 1.0e-30
    for j in range(len(out)):
        away += 0.5 * fabs(us[j] * out[j][0]) + alpha[j] * out[j][1]
    step[0] = min(step[0], 0.9 * volume[0] / away)
