"""Kernels of what `.linear_operators` adds to a fractional step; ``c`` components in ``d`` dimensions.

A gradient has ``dq_i / dx_k`` at place ``d i + k``. Symbols and sources are those of `.linear_operators`: ``k = n - v /
(n . v)`` and ``s = x_f - (x_i + x_j) / 2`` say by how much a face is oblique, ``C`` are its second moments.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import sqrt, zeros

__all__ = [
    "add_borrowed", "add_images", "borrow", "carry_pressure", "face_divergence", "face_gradient", "flux_corrections",
    "gradients", "mean_gradients", "oblique_dissipation", "oblique_force", "oblique_scalar_flux", "predict_faces",
    "project_faces", "push_faces", "raised_viscosity", "scalar_corrections", "sum_fluxes", "take_force",
    "warped_fluxes", "warped_force", "warped_scalar_flux",
]  # fmt: skip


@kernel
def gradients(weight: Read, q: Read, g: Write, *, c: Const[int], d: Const[int]):
    """One row of ``g = G q``: ``g_ik = sum_j G_jk q_ji``."""
    total = zeros(c * d)
    for j in range(len(weight)):
        for i in range(c):
            for k in range(d):
                total[d * i + k] += weight[j][k] * q[j][i]
    for m in range(c * d):
        g[m] = total[m]


@kernel
def face_gradient(weight: Read, steep: Read, g: Write, *, d: Const[int]):
    """One row of the gradient of what has the derivatives ``steep`` at faces, ``g = sum_j G_j t_j``."""
    total = zeros(d)
    for j in range(len(steep)):
        for k in range(d):
            total[k] += weight[j][k] * steep[j]
    for k in range(d):
        g[k] = total[k]


@kernel
def borrow(weight: Read, g: Read, lent: Write, *, c: Const[int], d: Const[int]):
    """One row of what the gradients of neighbours give to one that is not settled, ``lent = sum_j W_j g_j``."""
    total = zeros(c * d)
    for j in range(len(weight)):
        for i in range(c):
            for k in range(d):
                for m in range(d):
                    total[d * i + k] += weight[j][d * k + m] * g[j][d * i + m]
    for m in range(c * d):
        lent[m] = total[m]


@kernel
def add_borrowed(lent: Read, g: RW, *, n: Const[int]):
    """``g = g + lent``."""
    for m in range(n):
        g[m] = g[m] + lent[m]


@kernel
def mean_gradients(weight: Read, g: Read, mean: Write, *, n: Const[int]):
    """One row of the mean over a cell and its neighbours, ``mean = sum_j w_j g_j``."""
    total = zeros(n)
    for j in range(len(weight)):
        for m in range(n):
            total[m] += weight[j] * g[j][m]
    for m in range(n):
        mean[m] = total[m]


@kernel
def add_images(image: Read, g: Read, mean: RW, *, c: Const[int], d: Const[int]):
    """``mean = mean + sum w R g``, of a velocity ``R g R``, with ``R = I - 2 n n^T``; an `image` is ``(w, n)``."""
    total = zeros(c * d)
    turned = zeros(c * d)
    for j in range(len(image)):
        for i in range(c):
            along = 0.0
            for k in range(d):
                along += g[d * i + k] * image[j][1 + k]
            for k in range(d):
                turned[d * i + k] = g[d * i + k] - 2.0 * along * image[j][1 + k]
        if c == d:
            for k in range(d):
                across = 0.0
                for i in range(c):
                    across += turned[d * i + k] * image[j][1 + i]
                for i in range(c):
                    turned[d * i + k] -= 2.0 * across * image[j][1 + i]
        for m in range(c * d):
            total[m] += image[j][0] * turned[m]
    for m in range(c * d):
        mean[m] = mean[m] + total[m]


@kernel
def flux_corrections(half: Read, g: Read, us: Read, nus: Read, oblique: Read, moment: Read, normal: Read, flux: Write,
                     through: Write, extra: Write, *, d: Const[int]):  # fmt: skip
    """What is missing in the flux of momentum out of the first cell, and in the velocity through the face.

    ``q . g`` with ``q = us A s + A C (n . grad u) - nus A k + extra A (n - k)``, and ``n . (s . grad) u``. `oblique` is
    ``(A k, A s, A, b, p)``: the viscosity `extra` is ``b |us A s + A C (n . grad u)|``, ``p`` is ``1 / A`` where
    something passes, else 0.
    """
    mean = zeros(d * d)
    q = zeros(d)
    for j in range(len(half)):
        for m in range(d * d):
            mean[m] += half[j] * g[j][m]
    square = 0.0
    for m in range(d):
        q[m] = us[0] * oblique[d + m]
        for n in range(d):
            for k in range(d):
                q[m] += moment[d * m + n] * normal[k] * mean[d * k + n]
        square += q[m] * q[m]
    added = oblique[2 * d + 1] * sqrt(square)
    for m in range(d):
        q[m] += added * oblique[2 * d] * normal[m] - (nus[0] + added) * oblique[m]
    passing = 0.0
    for i in range(d):
        total = 0.0
        for m in range(d):
            total += q[m] * mean[d * i + m]
            passing += normal[i] * oblique[d + m] * mean[d * i + m]
        flux[i] = total
    through[0] = passing * oblique[2 * d + 2]
    extra[0] = added


@kernel
def warped_fluxes(u: Read, half: Read, g: Read, oblique: Read, warp: Read, flux: RW, through: RW, swept: Write, *,
                  d: Const[int]):  # fmt: skip
    """What a warped face adds to `flux_corrections`: ``swept . grad u``, and ``T : grad u`` to the velocity through it.

    ``swept_m = T_km u_k + N_knm du_k / dx_n``, with ``T`` and ``N`` of `fluxloom.mesh.geometry.metrics`; `warp` is
    ``(G, p, T_k., N_k.., ...)``, see `fluxloom.fv.incompressible.linear_operators.LinearOperators.warps`.
    """
    mean = zeros(d * d)
    q = zeros(d)
    passing = 0.0
    for j in range(len(half)):
        for m in range(d * d):
            mean[m] += half[j] * g[j][m]
    for k in range(d):
        centre = 0.0
        for j in range(len(u)):
            centre += u[j][k] / len(u)
        for n in range(d):
            centre += oblique[d + n] / oblique[2 * d] * mean[d * k + n]
        for n in range(d):
            once = warp[2 + 9 * k + n]
            slope = mean[d * k + n]
            passing += once * slope
            q[n] += once * centre
            for m in range(d):
                q[m] += warp[5 + 9 * k + min(n, m) * (5 - min(n, m)) // 2 + max(n, m)] * slope
    for i in range(d):
        total = 0.0
        for m in range(d):
            total += q[m] * mean[d * i + m]
        flux[i] = flux[i] + total
        swept[i] = q[i]
    through[0] = through[0] + warp[0] + warp[1] * passing


@kernel
def warped_scalar_flux(half: Read, g: Read, swept: Read, flux: RW, *, d: Const[int]):
    """What a warped face adds to `scalar_corrections`: ``flux += swept . grad q``, see `warped_fluxes`."""
    total = 0.0
    for j in range(len(half)):
        for m in range(d):
            total += half[j] * swept[m] * g[j][m]
    flux[0] = flux[0] + total


@kernel
def raised_viscosity(nus: Read, extra: Read, raised: Write):
    """The viscosity of the differences between two elements, ``nus + extra``."""
    raised[0] = nus[0] + extra[0]


@kernel
def scalar_corrections(half: Read, g: Read, gu: Read, us: Read, alpha: Read, extra: Read, oblique: Read, moment: Read,
                       normal: Read, flux: Write, *, d: Const[int]):  # fmt: skip
    """What is missing in the flux of a scalar out of the first cell, ``q . grad theta``; see `flux_corrections`.

    ``q = u_s A s + A C (n . grad u) - (alpha + extra) A k + extra A n``, gradients are the means of both elements.
    """
    mean = zeros(d)
    fluid = zeros(d * d)
    for j in range(len(half)):
        for m in range(d):
            mean[m] += half[j] * g[j][m]
        for m in range(d * d):
            fluid[m] += half[j] * gu[j][m]
    total = 0.0
    for m in range(d):
        q = us[0] * oblique[d + m] - (alpha[0] + extra[0]) * oblique[m] + extra[0] * oblique[2 * d] * normal[m]
        for n in range(d):
            for k in range(d):
                q += moment[d * m + n] * normal[k] * fluid[d * k + n]
        total += q * mean[m]
    flux[0] = total


@kernel
def sum_fluxes(sign: Read, flux: Read, inverse: Read, dt: Read, u: RW, *, c: Const[int]):
    """One row of ``u = u - dt Omega^-1 M_s f``; boundary elements have an empty one."""
    total = zeros(c)
    for j in range(len(sign)):
        for i in range(c):
            total[i] += sign[j] * flux[j][i]
    for i in range(c):
        u[i] = u[i] - dt[0] * inverse[0] * total[i]


@kernel
def predict_faces(gamma: Read, u: Read, through: Read, half: Read, g: Read, tangent: Read, damping: Read, steep: Read,
                  ratio: Read, us: Write, *, d: Const[int]):  # fmt: skip
    """``u_s = Gamma u_p + through - ratio (k . g + (1 - alpha) t)``, the second part of the pressure of the last solve.

    ``t`` is its derivative along the way between the elements, of which the implicit part has ``alpha``.
    """
    total = through[0]
    for j in range(len(gamma)):
        for k in range(d):
            total += gamma[j][k] * u[j][k]
    oblique = (1.0 - damping[0]) * steep[0]
    for j in range(len(half)):
        for k in range(d):
            oblique += half[j] * tangent[k] * g[j][k]
    us[0] = total - ratio[0] * oblique


@kernel
def project_faces(slope: Read, phi: Read, damping: Read, us: RW, steep: Write):
    """``u_s = u_s - alpha G_s phi``, and keep ``t = G_s phi``; ``slope`` is ``alpha G_s``."""
    total = 0.0
    for j in range(len(slope)):
        total += slope[j] * phi[j]
    us[0] = us[0] - total
    steep[0] = total / damping[0]


@kernel
def carry_pressure(weight: Read, g: Read, u: RW, *, d: Const[int]):
    """One row of ``u = u - B g``: what the gradients add to Gauss's theorem; boundary elements have an empty one."""
    total = zeros(d)
    for j in range(len(weight)):
        for k in range(d):
            for m in range(d):
                total[k] += weight[j][d * k + m] * g[j][m]
    for k in range(d):
        u[k] = u[k] - total[k]


@kernel
def face_divergence(out: Read, us: Read, b: Write):
    """One row of ``b = -M_s u_s``; ``out`` is the signed area outward of each face."""
    total = 0.0
    for j in range(len(us)):
        total -= out[j] * us[j]
    b[0] = total


@kernel
def push_faces(force: Read, dt: Read, damping: Read, us: RW):
    """``u_s = u_s + alpha dt f_s``."""
    us[0] = us[0] + damping[0] * dt[0] * force[0]


@kernel
def take_force(force: Read, dt: Read, steep: RW):
    """``t = t - dt f_s``: the slope of the pressure that a force does not balance."""
    steep[0] = steep[0] - dt[0] * force[0]


@kernel
def oblique_force(side: Read, oblique: Read, normal: Read, nus: Read, us: Read, moment: Read, g: Read, load: RW,
                  friction: Inc, momentum: Inc, *, d: Const[int], tangential: Const[int]):  # fmt: skip
    """What `.wall_forces.wall_force` lacks: ``-nu A k . g``, ``(u_s A s + A C (n . grad u)) . g``.

    Of the cell behind; `oblique` is ``(k, s)``. With ``tangential`` the part of the friction along ``n`` is left out.
    """
    for j in range(len(side)):
        q = zeros(d)
        along = 0.0
        for m in range(d):
            q[m] = us[j] * side[j][0] * oblique[d + m]
            for i in range(d):
                along += normal[i] * oblique[m] * g[j][d * i + m] * tangential
                for n in range(d):
                    q[m] += moment[j][d * m + n] * normal[i] * g[j][d * i + n]
        for i in range(d):
            total = -along * normal[i]
            carried = 0.0
            for m in range(d):
                total += oblique[m] * g[j][d * i + m]
                carried += q[m] * g[j][d * i + m]
            drag = nus[j] * side[j][0] * total
            friction[i] -= drag
            momentum[i] += carried
            load[d + i] -= drag


@kernel
def warped_force(side: Read, oblique: Read, warp: Read, u: Read, g: Read, slope: Read, load: RW, pressure: Inc,
                 momentum: Inc, *, d: Const[int]):  # fmt: skip
    """What a warped boundary element adds to the force on it, ``T . grad p``, and to the momentum, ``swept . grad u``.

    ``swept_m = p (T_km u_k + N_knm du_k / dx_n)`` as in `warped_fluxes`; `warp` is ``(p, T_k., N_k.., ...)``: ``p`` is
    1 where something passes, else 0.
    """
    for j in range(len(side)):
        q = zeros(d)
        for k in range(d):
            centre = u[k]
            for n in range(d):
                centre += oblique[d + n] * g[j][d * k + n]
            for n in range(d):
                once = warp[1 + 9 * k + n]
                push = once * slope[j][n]
                pressure[k] += push
                load[k] += push
                q[n] += warp[0] * once * centre
                for m in range(d):
                    place = 4 + 9 * k + min(n, m) * (5 - min(n, m)) // 2 + max(n, m)
                    q[m] += warp[0] * warp[place] * g[j][d * k + n]
        for i in range(d):
            for m in range(d):
                momentum[i] += q[m] * g[j][d * i + m]


@kernel
def oblique_scalar_flux(side: Read, oblique: Read, alpha: Read, us: Read, g: Read, entering: RW, sums: Inc, *,
                        d: Const[int]):  # fmt: skip
    """What `fluxloom.fv.incompressible.scalar_transport.scalar_flux` lacks: ``+alpha A k . g``, ``-u_s A s . g``."""
    for j in range(len(side)):
        for m in range(d):
            diffused = alpha[j] * side[j][0] * oblique[m] * g[j][m]
            entering[0] += diffused
            sums[0] += diffused
            sums[1] -= us[j] * side[j][0] * oblique[d + m] * g[j][m]


@kernel
def oblique_dissipation(u: Read, half: Read, g: Read, oblique: Read, nus: Read, total: Inc, *, d: Const[int]):
    """``nu A (k . g) . (u_j - u_i)``: what two-point derivatives lack of the dissipation; `oblique` has ``A k``."""
    for j in range(len(half)):
        for i in range(d):
            for m in range(d):
                total[0] += nus[0] * half[j] * oblique[m] * g[j][d * i + m] * (u[1][i] - u[0][i])
