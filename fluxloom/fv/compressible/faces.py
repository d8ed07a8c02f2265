"""Loops of a compressible flow over faces: each flux is computed once, stored, and summed over the faces of a cell.

The loops over cells (`fluxloom.fv.compressible.kernels`, `fluxloom.fv.compressible.viscous_flux`) compute each flux for
both of its cells. That costs little where arithmetic is free, and twice as much where it is not: on a processor. A
face stores, per unit of time,

======================  ==========================================================================================
``v < nv``              what leaves its first element, ``A (F - F_v)``; of a boundary face what its element holds
``nv``, ``nv + 1``      area times the fastest wave, ``A (|u_n| + c)``, of the first and of the second element
``nv + 2``              with friction ``A^2`` times what carries fastest (`fastest`): what it takes of a step
======================  ==========================================================================================

and a cell adds them up in the order of its row. So nothing races, and results have the same bits for any number of
threads and ranks. Both forms agree to round-off.

A warped face is of triangles whose area vectors differ. With the sum ``W_kn = sum A_k x_n`` over them, ``x`` from the
centre of the face, it adds ``W_kn dF_k/dx_n`` to the flux ``A F . n`` (`twist`).
"""

from __future__ import annotations

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.fv.compressible.fluxes import Flux
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.kernels import (
    flux_through,
    is_outer,
    kept_physical,
    steepness,
)
from fluxloom.fv.compressible.viscous_flux import TurbulenceModel, carriers, face_viscous_flux, fastest, step_share
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, select, sqrt, zeros

__all__ = ["gathered", "through_faces", "through_faces_viscous", "twisted"]


@func
def twist(w, g, warp, f, gamma, nv):
    """Write what a warped face adds to the flux through it, ``f = W_kn dF_k/dx_n``, of a state and its gradient ``g``.

    ``F_k`` is the flux of the Euler equations along axis ``k``, ``warp`` is ``W``; of what a model transports the mass
    flux times the value.
    """
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
def twisted(w, gradient, phi, near, far, kept, warp, f, gamma, nv):
    """Write what a warped face between two cells adds to the flux through it, times its area: ``W_kn dF_k/dx_n``.

    State ``(w_l + w_r) / 2`` and gradient ``(phi_l g_l + phi_r g_r) / 2`` are the means of both cells.
    """
    mean = zeros(nv)
    g = zeros(15)
    for v in range(nv):
        mean[v] = 0.5 * (w[v] + near[v])
    for v in range(5):
        for n in range(3):
            g[3 * v + n] = 0.5 * (phi[v] * gradient[3 * v + n] + kept[v] * far[3 * v + n])
    twist(mean, g, warp, f, gamma, nv)


@func
def continued_sides(w, gradient, phi, face, outer, level, left, right, d):
    """Write both states continued to the face, ``w_i + level phi_i g_i . v_i``; return whether all is physical.

    ``v`` is the cell-to-face vector, ``phi`` the limiter value, ``g`` the gradient; a boundary element is not
    continued.
    """
    part = level if d == 2 else 1.0  # of shares in the plane, of ways in space: so compilers find packs of faces
    reach = 1.0 if d == 2 else level
    for v in range(2 + d):
        here = 0.0
        there = 0.0
        for k in range(d):
            here += gradient[0][d * v + k] * (reach * face[d + 1 + k])
            there += gradient[1][d * v + k] * (reach * face[2 * d + 1 + k])
        left[v] = w[0][v] + part * phi[0][v] * here
        right[v] = w[1][v] + select(outer, 0.0, part * phi[1][v] * there)
    first = kept_physical(w[0], left, d)
    second = kept_physical(w[1], right, d)
    return first and second


@func
def convected(w, gradient, phi, face, warp, outer, out, gamma, nv, d, inviscid, moving, slow, warped):
    """Write what is carried out of the first element, ``A F(w_l, w_r, n)``, and both waves; return clipped sides.

    ``out = A F + W_kn dF_k/dx_n``, and behind it ``A (|u_n - u_f| + s c)`` of each element, with the speed ``u_f`` of
    the face and the factor ``s`` of `Flux.sound_factor`. At the boundary ``F`` is what the boundary element holds.
    """
    n = zeros(d)
    f = zeros(nv)
    left = zeros(nv)
    right = zeros(nv)
    pace = 0.0
    if moving == 1:
        pace = face[3 * d + 1]
    here = 0.0
    there = 0.0
    for k in range(d):
        n[k] = face[k]
        here += n[k] * w[0][1 + k]
        there += n[k] * w[1][1 + k]
    steep = 0.0
    if inviscid.resolves_contacts:
        through = 0.5 * (here + there) - pace
        steep = select(outer, 0.0, steepness(w[0], w[1], gradient[0], gradient[1], n, through, face[d], gamma, d))
    sound = continued_sides(w, gradient, phi, face, outer, 1.0 - steep, left, right, d)
    flux_through(left, right, n, f, pace, gamma, d, inviscid, steep, moving, slow)
    for v in range(2 + d, nv):
        f[v] = f[0] * select(f[0] > 0.0, w[0][v], w[1][v])
    area = face[d]
    for v in range(nv):
        out[v] = area * select(outer, phi[1][v], f[v])
    if warped == 1:
        twisted(w[0], gradient[0], phi[0], w[1], gradient[1], phi[1], warp, f, gamma, nv)
        for v in range(nv):
            out[v] += select(outer, 0.0, f[v])
    inverse = gamma * (1.0 / (w[0][0] * w[1][0]))  # the friction wants the same quotient
    faster = inviscid.sound_factor(here - pace, there - pace, w[0], w[1], gamma, d)
    out[nv] = area * (fabs(here - pace) + faster * sqrt(inverse * w[1][0] * w[0][1 + d]))
    out[nv + 1] = area * (fabs(there - pace) + faster * sqrt(inverse * w[0][0] * w[1][1 + d]))
    return select(sound, 0.0, select(outer, 1.0, 2.0))


@kernel
def through_faces(
    w: Read, gradient: Read, phi: Read, face: Read, warp: Read, flux: Write, fixed: Inc,
    *, gas: Const[Gas], nv: Const[int], d: Const[int], inviscid: Const[Flux], moving: Const[int],
    slow: Const[int], warped: Const[int],
):  # fmt: skip
    """What a face stores without viscosity: ``flux = (A F, A (|u_n| + c)_1, A (|u_n| + c)_2)``; see the module.

    ``w``, ``gradient`` and ``phi`` are those of both elements; constants are those of `gathered` and `Flux`.
    """
    out = zeros(nv + 2)
    poor = convected(w, gradient, phi, face, warp, is_outer(face, d), out, gas.gamma, nv, d, inviscid, moving, slow,
                     warped)  # fmt: skip
    fixed[0] += poor
    for v in range(nv + 2):
        flux[v] = out[v]


@kernel
def through_faces_viscous(
    w: Read, gradient: Read, phi: Read, face: Read, warp: Read, flux: Write, fixed: Inc,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], nv: Const[int], d: Const[int],
    inviscid: Const[Flux], moving: Const[int], slow: Const[int], warped: Const[int],
):  # fmt: skip
    """What a face stores with viscosity and heat: ``A (F - F_v)``, both waves, and ``A^2`` times `fastest`.

    ``F_v`` is that of `fluxloom.fv.compressible.viscous_flux.face_viscous_flux`.
    """
    out = zeros(nv + 2)
    n = zeros(d)
    way = zeros(d)
    aside = zeros(d)
    f = zeros(nv)
    outer = is_outer(face, d)
    poor = convected(w, gradient, phi, face, warp, outer, out, gas.gamma, nv, d, inviscid, moving, slow,
                     warped)  # fmt: skip
    fixed[0] += poor
    for k in range(d):
        n[k] = face[k]
        way[k] = face[d + 1 + k] - face[2 * d + 1 + k]
        aside[k] = 0.5 * (face[d + 1 + k] + face[2 * d + 1 + k])
    inverse = 1.0 / (w[0][0] * w[1][0])
    light = w[1][0] * inverse
    thin = w[0][0] * inverse
    over_r = 1.0 / gas.constant
    first = w[0][1 + d] * light * over_r
    second = w[1][1 + d] * thin * over_r
    mu, mut, spread = carriers(w[0], w[1], light, thin, first, second, gas.viscosity, closure, nv, d)
    conducted = mu * (1.0 / gas.prandtl) + mut * (1.0 / gas.prandtl_turbulent)
    face_viscous_flux(w[0], gradient[0], w[1], gradient[1], n, way, aside, light, thin, second - first, mu + mut,
                  gas.gamma * gas.constant / (gas.gamma - 1.0) * conducted, spread, f, over_r, nv, d)  # fmt: skip
    area = select(outer, 0.0, face[d])
    for v in range(nv):
        flux[v] = out[v] - area * f[v]
    flux[nv] = out[nv]
    flux[nv + 1] = out[nv + 1]
    flux[nv + 2] = area * area * fastest(conducted, spread, gas.gamma)


@kernel
def gathered(
    flux: Read, sign: Read, w: Read | None, volume: Read | None, res: Write, speed: Write, *, nv: Const[int]
):
    """Residual of a cell from what its faces store, ``R = -sum_f A (F - F_v)``, and ``sum_f A (|u_n| + c) / 2``.

    ``w`` and ``volume`` are there where faces have viscosity and heat: then what both take of the step is added,
    `step_share`.
    """
    total = zeros(nv)
    waves = 0.0
    spread = 0.0
    for j in range(len(flux)):
        into = sign[j] < 0.0
        for v in range(nv):
            total[v] += select(into, flux[j][v], -flux[j][v])
        waves += select(into, flux[j][nv + 1], flux[j][nv])
        if w is not None:
            spread += flux[j][nv + 2]
    for v in range(nv):
        res[v] = total[v]
    if w is None:
        speed[0] = 0.5 * waves
    else:
        speed[0] = 0.5 * waves + step_share(spread, w[0], volume[0])  # type: ignore[index] - it is there with w
