"""Kernels of the fractional step: rows of sparse matrices and pointwise updates; components ``k`` of ``d`` dimensions.

The operators are those of `fluxloom.fv.incompressible.operators`; ``phi = dt p`` stands for the pressure.

Sources: F. X. Trias et al., J. Comput. Phys. 258, 2014, section 4; the sub-steps as matrices: X. Alvarez et al.,
Comput. Fluids 173, 2018.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Max, Min, Read, Write
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import fabs, zeros

__all__ = [
    "boundary_values",
    "correct",
    "divergence",
    "extrapolate",
    "face_velocity",
    "face_viscosity",
    "kinetic_energy",
    "predict",
    "relax",
    "time_limit",
    "transport",
    "velocity_gradient",
]


@kernel
def transport(weight: Read, us: Read, nus: Read, c: Write):
    """One entry of ``C(u_s) + D(nu_s)``: ``sum E_C u_s + E_D nu_s`` over its faces."""
    total = 0.0
    for j in range(len(us)):
        total += weight[j][0] * us[j] + weight[j][1] * nus[j]
    c[0] = total


@kernel
def extrapolate(u: Read, share: Read, old: RW, ahead: Write, *, d: Const[int]):
    """``u_e = u + share (u - u_old)``, then ``u_old = u``; ``share = dt / (2 dt_old)``, half at equal steps."""
    for k in range(d):
        ahead[k] = u[k] + share[0] * (u[k] - old[k])
        old[k] = u[k]


@kernel
def predict(c: Read, ahead: Read, inverse: Read, force: Read, dt: Read, u: RW, *, d: Const[int]):
    """One row of ``u_p = u + dt (f - Omega^-1 (C + D) u_e)``; boundary elements have no volume and stay."""
    total = zeros(d)
    for j in range(len(c)):
        for k in range(d):
            total[k] += c[j] * ahead[j][k]
    scale = dt[0] * inverse[0]
    inside = 1.0 if inverse[0] > 0.0 else 0.0
    for k in range(d):
        u[k] = u[k] - scale * total[k] + inside * dt[0] * force[k]


@kernel
def relax(old: Read, share: Read, u: RW, *, d: Const[int]):
    """A stage of Shu and Osher's: ``u = u + share (old - u)``."""
    for k in range(d):
        u[k] = u[k] + share[0] * (old[k] - u[k])


@kernel
def divergence(m: Read, u: Read, b: Write, *, d: Const[int]):
    """One row of ``b = -M u``."""
    total = 0.0
    for j in range(len(m)):
        for k in range(d):
            total -= m[j][k] * u[j][k]
    b[0] = total


@kernel
def face_velocity(gamma: Read, u: Read, slope: Read, phi: Read, us: Write, *, d: Const[int]):
    """``u_s = Gamma u_p - G_s phi``: without divergence where ``L phi = M u_p``."""
    total = 0.0
    for j in range(len(gamma)):
        for k in range(d):
            total += gamma[j][k] * u[j][k]
    for j in range(len(slope)):
        total -= slope[j] * phi[j]
    us[0] = total


@kernel
def correct(g: Read, phi: Read, u: RW, *, d: Const[int]):
    """One row of ``u = u_p - G phi``."""
    total = zeros(d)
    for j in range(len(g)):
        for k in range(d):
            total[k] += g[j][k] * phi[j]
    for k in range(d):
        u[k] = u[k] - total[k]


@kernel
def boundary_values(
    kind: Read, normal: Read, given: Read, inside: Read, u: Write, *, formulas: Const[tuple[Boundary, ...]],
    d: Const[int],
):  # fmt: skip
    """Velocity of a boundary element, ``u_b = formula(given, u, n, u . n)``; ``inside`` is ``u`` in the cell behind."""
    through = 0.0
    for k in range(d):
        through += inside[k] * normal[k]
    for k in range(d):
        value = given[k]
        for c in range(len(formulas)):
            if kind[0] == c:
                value = formulas[c](given[k], inside[k], normal[k], through)
        u[k] = value


@kernel
def time_limit(out: Read, us: Read, nus: Read, raised: Read, volume: Read, step: Min, worst: Max, *,
               c1: float, c2: float):  # fmt: skip
    """Largest stable step of a cell, ``min(c1 2 Omega / sum |u_s| A, c2 Omega / sum nu_s A / delta)``.

    And the largest imbalance of a cell, ``|sum u_s A|``. ``out``: signed area outward, and ``A / delta``, of each face.
    ``nu_s = (nus + raised) / 2``: of what damps beside the viscosity, half counts.
    """
    flux = 1.0e-30
    diffusion = 1.0e-30
    balance = 0.0
    for j in range(len(out)):
        flux += fabs(us[j] * out[j][0])
        balance += us[j] * out[j][0]
        diffusion += 0.5 * (nus[j] + raised[j]) * out[j][1]
    step[0] = min(step[0], min(2.0 * c1 * volume[0] / flux, c2 * volume[0] / diffusion))
    worst[0] = max(worst[0], fabs(balance))


@kernel
def kinetic_energy(u: Read, volume: Read, energy: Inc, momentum: Inc, *, d: Const[int]):
    """``sum Omega u . u / 2`` and ``sum Omega u``."""
    for k in range(d):
        energy[0] += 0.5 * volume[0] * u[k] * u[k]
        momentum[k] += volume[0] * u[k]


@kernel
def velocity_gradient(g: Read, u: Read, gradient: Write, *, d: Const[int]):
    """One row of ``g_ik = du_i / dx_k`` at place ``3 i + k``; what a second dimension lacks is zero."""
    total = zeros(9)
    for j in range(len(g)):
        for i in range(d):
            for k in range(d):
                total[3 * i + k] += g[j][k] * u[j][i]
    for m in range(9):
        gradient[m] = total[m]


@kernel
def face_viscosity(weight: Read, nut: Read, nus: Write, *, nu: float):
    """One row of ``nu_s = nu + P nu_t``: the mean of both cells, nothing at walls and where velocity is prescribed."""
    total = nu
    for j in range(len(nut)):
        total += weight[j] * nut[j]
    nus[0] = total
