r"""Loops of implicit steps in a compressible flow: a linearisation of first order, and sweeps that solve with it.

A step of backward Euler from the states ``w`` asks for increments ``z`` of the primitive variables,

.. math:: \frac{V}{\Delta t} \frac{\partial U}{\partial w} z - \frac{\partial R}{\partial w} z = R(w)

where the derivative of ``R`` is that of a scheme of first order: Roe's flux with its matrix held fast, and friction
and heat by the differences across each face alone (thin layers). Its rows, of cell ``i`` with the faces to ``j``, are

.. math:: D_i z_i + \sum_j O_{ij} z_j = R_i, \quad
          O_{ij} z = \tfrac{A}{2} \left(\frac{\partial F}{\partial w}(w_j) \cdot n - |\bar A|
          \frac{\partial U}{\partial w}\right) z - A \frac{\partial F_v}{\partial w} z

and of the blocks only the inverses of the ``D_i`` are stored. The ``O_ij`` are applied from the states whenever they
are needed, which costs about as much as a flux. Waves slower than a part `FLOOR` of the fastest one count as fast as
that, which keeps ``D_i`` regular in stagnant gas. At a boundary face the flux is that of the state which its condition
makes of ``w_i``, differentiated by differences. A model of turbulence is a row of its own behind the block: transport,
diffusion, and the derivative of its destruction.

The increments live on elements, and are zero on boundary elements.

References
----------
S. Yoon, A. Jameson: *Lower-upper symmetric-Gauss-Seidel method for the Euler and Navier-Stokes equations*. AIAA J. 26,
1988.
H. Luo, J. D. Baum, R. Loehner: *A fast, matrix-free implicit method for compressible flows on unstructured grids*. J.
Comput. Phys. 146, 1998.
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, sec. 6.2.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.fv.compressible.boundary_states import (
    FaceState,
    boundary_state,
    is_adiabatic,
    is_mirror,
    is_slip,
    transported,
)
from fluxloom.fv.compressible.fluxes import euler, mean_state, normal_velocity, rounded
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.viscous_flux import TurbulenceModel, molecular, turbulent, vorticity
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, select, sqrt, zeros

__all__ = ["FLOOR", "blocks", "clear", "conserved_change", "destruction_blocks", "lessen", "relax"]

FLOOR = 0.1
"""Part of the fastest wave's speed below which others are rounded (Harten)."""
_STEP = 1e-6
"""Of differences at boundary faces, as a part of the size of a variable."""


# -------------------------------------------------------------------------------------------- through a face


@func
def conserved_change(w, z, f, gamma, d):
    r"""Write the change of the conserved variables with that of the primitive ones, ``dU/dw z``.

    .. math:: (z_\rho,\; u z_\rho + \rho z_u,\; \tfrac12 |u|^2 z_\rho + \rho u \cdot z_u + z_p / (\gamma - 1))
    """
    kinetic = 0.0
    work = 0.0
    f[0] = z[0]
    for k in range(d):
        f[1 + k] = w[1 + k] * z[0] + w[0] * z[1 + k]
        kinetic += w[1 + k] * w[1 + k]
        work += w[1 + k] * z[1 + k]
    f[1 + d] = 0.5 * kinetic * z[0] + w[0] * work + z[1 + d] / (gamma - 1.0)


@func
def flux_change(w, n, z, f, gamma, d):
    r"""Write the change of the flux, ``d(F . n)/dw z``.

    .. math:: (m', \; m' u + \rho u_n z_u + z_p n, \; m' H + \rho u_n H'), \quad
              m' = u_n z_\rho + \rho z_u \cdot n, \quad
              H' = \frac{\gamma}{\gamma - 1} \frac{z_p - z_\rho p / \rho}{\rho} + u \cdot z_u
    """
    un = 0.0
    change = 0.0
    kinetic = 0.0
    work = 0.0
    for k in range(d):
        un += w[1 + k] * n[k]
        change += z[1 + k] * n[k]
        kinetic += w[1 + k] * w[1 + k]
        work += w[1 + k] * z[1 + k]
    ratio = gamma / (gamma - 1.0)
    mass = z[0] * un + w[0] * change
    f[0] = mass
    for k in range(d):
        f[1 + k] = mass * w[1 + k] + w[0] * un * z[1 + k] + z[1 + d] * n[k]
    heat = ratio * (z[1 + d] - w[1 + d] / w[0] * z[0]) / w[0]
    f[1 + d] = mass * (ratio * w[1 + d] / w[0] + 0.5 * kinetic) + w[0] * un * (heat + work)


@func
def add_upwinding(z, u, n, f, d, mean, un, kinetic, h, a, part):
    """Add ``part |A| dU/dw z`` of a mean state: density ``mean``, velocity ``u``, and what `mean_state` returns.

    The waves are those of `fluxloom.fv.compressible.fluxes.roe`, all `rounded` below ``FLOOR (|u_n| + c)``.
    """
    delta = FLOOR * (fabs(un) + a)
    inverse = 1.0 / delta
    slow = rounded(un - a, delta, inverse)
    fast = rounded(un + a, delta, inverse)
    middle = rounded(un, delta, inverse)
    jump = 0.0
    for k in range(d):
        jump += z[1 + k] * n[k]
    back = slow * (z[1 + d] - mean * a * jump) / (2.0 * a * a)
    ahead = fast * (z[1 + d] + mean * a * jump) / (2.0 * a * a)
    entropy = middle * (z[0] - z[1 + d] / (a * a))
    total = back + ahead + entropy
    work = 0.0
    f[0] += part * total
    for k in range(d):
        turn = middle * mean * (z[1 + k] - jump * n[k])
        work += u[k] * turn
        f[1 + k] += part * (total * u[k] + (ahead - back) * a * n[k] + turn)
    f[1 + d] += part * ((back + ahead) * h + (ahead - back) * a * un + entropy * 0.5 * kinetic + work)


@func
def add_viscous_flux(w, u, z, n, f, d, constant, mu, conductivity):
    """Add what a change on one side of a thin layer takes of momentum and energy, both viscosities over its width.

    ``f_u += mu (z_u + (z_u . n) n / 3)``, ``f_E += u . mu (...) + kappa (z_p - p / rho z_rho) / (rho R_g)`` (Blazek,
    sec. 6.2).
    """
    along = 0.0
    work = 0.0
    for k in range(d):
        along += z[1 + k] * n[k]
    for k in range(d):
        force = mu * (z[1 + k] + along / 3.0 * n[k])
        f[1 + k] += force
        work += u[k] * force
    f[1 + d] += work + conductivity * (z[1 + d] - w[1 + d] / w[0] * z[0]) / (w[0] * constant)


@func
def side_change(
    side, w, mean, u, z, n, f, rho, un, kinetic, h, a, mu, conductivity, spread,
    gas, closure, nv, d,
):  # fmt: skip
    """Write the change of the flux out of a cell, less the viscous one, with its state (``side`` 1) or the other (-1).

    ``(d(F . n)/dw z + side |A| dU/dw z) / 2 + side dF_v/dw z``, of a model ``((m + side |m|) / 2 + side D) z`` with the
    mass flow ``m = rho u_n`` and the diffusivity ``D``. ``w`` is the state that changes, ``mean`` that of the friction.
    """
    flux_change(w, n, z, f, gas.gamma, d)
    for v in range(2 + d):
        f[v] = 0.5 * f[v]
    add_upwinding(z, u, n, f, d, rho, un, kinetic, h, a, 0.5 * side)
    if gas.viscosity is not None:
        add_viscous_flux(mean, u, z, n, f, d, gas.constant, side * mu, side * conductivity)
    if nv == d + 3:
        mass = rho * un
        f[2 + d] = (0.5 * (mass + side * fabs(mass)) + side * spread) * z[2 + d]


@func
def layer(w, other, temperature, far, share, gas, closure, nv, d):
    """Return viscosity, conductivity and diffusivity between two states, times ``share``, one over their distance.

    ``mu + mu_t``, ``gamma R_g / (gamma - 1) (mu / Pr + mu_t / Pr_t)``, ``rho (nu + f nu_tilde) / sigma``: means of
    both.
    """
    mu = 0.0
    conductivity = 0.0
    spread = 0.0
    if gas.viscosity is not None:
        here = molecular(gas, temperature)
        there = molecular(gas, far)
        eddy = 0.5 * (turbulent(w, here, closure, nv, d) + turbulent(other, there, closure, nv, d))
        mean = 0.5 * (here + there)
        mu = share * (mean + eddy)
        capacity = share * gas.gamma * gas.constant / (gas.gamma - 1.0)
        conductivity = capacity * (mean / gas.prandtl + eddy / gas.prandtl_turbulent)
        if nv == d + 3:
            spread = w[0] * closure.diffusivity(w[2 + d], here / w[0])
            spread += other[0] * closure.diffusivity(other[2 + d], there / other[0])
            spread = 0.5 * share * spread / closure.sigma
    return mu, conductivity, spread


@func
def outward(face, sign, n, d):
    """Write the normal of a face out of a cell; return ``v . n / |v|^2``, one over the distance of both sides."""
    side = select(sign < 0.0, -1.0, 1.0)
    along = 0.0
    square = 0.0
    for k in range(d):
        n[k] = side * face[k]
        way = side * (face[d + 1 + k] - face[2 * d + 1 + k])
        along += way * n[k]
        square += way * way
    return along / square


@func
def add_own(w, other, n, matrix, area, share, gas, closure, nv, d):
    """Add ``A (d(F . n)/dw + |A| dU/dw) / 2`` and the viscous part, of the own state, to ``D_i``; return the model's.

    That is ``A (max(rho u_n, 0) + D)``, with the diffusivity ``D`` of `layer`.
    """
    z = zeros(nv)
    f = zeros(nv)
    u = zeros(d)
    un, kinetic, h, a = mean_state(w, other, u, n, gas.gamma, d)
    rho = sqrt(w[0] * other[0])
    here = w[1 + d] / (w[0] * gas.constant)
    there = other[1 + d] / (other[0] * gas.constant)
    mu, conductivity, spread = layer(w, other, here, there, share, gas, closure, nv, d)  # fmt: skip
    for v in range(2 + d):
        for i in range(nv):
            z[i] = 0.0
        z[v] = 1.0
        side_change(1.0, w, w, u, z, n, f, rho, un, kinetic, h, a, mu, conductivity, spread,
                    gas, closure, nv, d)  # fmt: skip
        for i in range(2 + d):
            matrix[(2 + d) * i + v] += area * f[i]
    return area * (max(rho * un, 0.0) + spread)


# ------------------------------------------------------------------------------------------ at a boundary face


@func
def boundary_balance(states, kind, par, n, w, f, share, gas, d):
    """Write the flux out of a boundary face, ``F(b) . n - F_v``, from the state ``w`` of the cell behind.

    At a plane of symmetry the normal velocity meets its image: ``(rho c + 4/3 mu / delta) u_n n`` is added to the flux
    of momentum; ``share`` is ``1 / delta``.
    """
    push = 0.0
    b = zeros(2 + d)
    u = zeros(d)
    z = zeros(2 + d)
    g = zeros(2 + d)
    boundary_state(states, kind, par, n, w, b, gas.gamma, d)
    euler(b, n, f, gas.gamma, d)
    if is_mirror(states, kind, par):
        push = sqrt(gas.gamma * w[1 + d] * w[0])
    if gas.viscosity is not None:
        mu = share * molecular(gas, b[1 + d] / (b[0] * gas.constant))
        conductivity = gas.gamma * gas.constant / (gas.gamma - 1.0) * mu / gas.prandtl
        conductivity = select(is_adiabatic(states, kind), 0.0, conductivity)
        for v in range(2 + d):
            z[v] = w[v] - b[v]
            g[v] = 0.0
        for k in range(d):
            u[k] = b[1 + k]
        add_viscous_flux(w, u, z, n, g, d, gas.constant, mu, conductivity)
        for v in range(2 + d):
            f[v] += select(is_slip(states, kind), 0.0, g[v])
        push += select(is_mirror(states, kind, par), 4.0 / 3.0 * mu, 0.0)
    push *= normal_velocity(w, n, d)
    for k in range(d):
        f[1 + k] += push * n[k]


@func
def add_boundary(states, kind, par, n, w, matrix, area, share, gas, closure, nv, d):
    """Add the derivative of `boundary_balance` to ``D_i``, ``A (f(w + eps e_v) - f(w)) / eps``; return the model's.

    That is ``A (max(f_0, 0) q + (1 - q) D / sigma)`` with ``q = d nut_b / d nut``; no diffusion at slip walls.
    """
    f = zeros(2 + d)
    g = zeros(2 + d)
    moved = zeros(nv)
    c = sqrt(gas.gamma * w[1 + d] / w[0])
    boundary_balance(states, kind, par, n, w, f, share, gas, d)
    for v in range(2 + d):
        for i in range(nv):
            moved[i] = w[i]
        step = _STEP * select(v == 0, w[0], select(v == 1 + d, w[1 + d], c))
        moved[v] += step
        boundary_balance(states, kind, par, n, moved, g, share, gas, d)
        for i in range(2 + d):
            matrix[(2 + d) * i + v] += area * (g[i] - f[i]) / step
    rate = 0.0
    if nv == d + 3:
        b = zeros(2 + d)
        boundary_state(states, kind, par, n, w, b, gas.gamma, d)
        follows = transported(states, kind, par, n, w, b, 1.0, d) - transported(states, kind, par, n, w, b, 0.0, d)
        nut = transported(states, kind, par, n, w, b, w[2 + d], d)
        spread = share * b[0] * closure.diffusivity(nut, molecular(gas, b[1 + d] / (b[0] * gas.constant)) / b[0])
        lost = select(is_slip(states, kind), 0.0, (1.0 - follows) * spread / closure.sigma)
        rate = area * (max(f[0], 0.0) * follows + lost)
    return rate


# ---------------------------------------------------------------------------------------------------- kernels


@func
def invert(matrix, q):
    """Replace a matrix ``(q, q)`` by its inverse, ``M = M^{-1}`` (Gauss and Jordan, pivots on the diagonal)."""
    for k in range(q):
        pivot = 1.0 / matrix[q * k + k]
        matrix[q * k + k] = 1.0
        for j in range(q):
            matrix[q * k + j] *= pivot
        for i in range(q):
            if i != k:
                factor = matrix[q * i + k]
                matrix[q * i + k] = 0.0
                for j in range(q):
                    matrix[q * i + j] -= factor * matrix[q * k + j]


@kernel
def blocks(
    w: Read, near: Read, kind: Read, par: Read, face: Read, sign: Read, rate: Read, volume: Read, block: Write,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], states: Const[tuple[FaceState, ...]],
    nv: Const[int], d: Const[int],
):  # fmt: skip
    """The inverses of the blocks ``D_i = V / dt dU/dw + sum_f A (d(F . n)/dw + |A| dU/dw) / 2 + ...``; see the module.

    ``(d + 2)^2`` numbers, and behind them the inverse of ``V / dt rho + sum_f A (max(rho u_n, 0) + D)`` of a model of
    turbulence. ``rate`` is ``V / dt``. Of boundary elements all are 0.
    """
    q = 2 + d
    matrix = zeros((2 + d) * (2 + d))
    z = zeros(nv)
    f = zeros(nv)
    n = zeros(d)
    model = rate[0] * w[0]
    for j in range(len(near)):
        area = face[j][d]
        share = outward(face[j], sign[j], n, d)
        if sign[j] == 0.0:
            outer = add_boundary(states, kind[j], par[j], n, w, matrix, area, share, gas, closure, nv, d)  # fmt: skip
            model += outer
        else:
            inner = add_own(w, near[j], n, matrix, area, share, gas, closure, nv, d)  # fmt: skip
            model += inner
    for v in range(2 + d):
        for i in range(nv):
            z[i] = 0.0
        z[v] = 1.0
        conserved_change(w, z, f, gas.gamma, d)
        for i in range(2 + d):
            matrix[q * i + v] += rate[0] * f[i]
    inside = volume[0] > 0.0
    for i in range(2 + d):
        matrix[q * i + i] = select(inside, matrix[q * i + i], 1.0)
    invert(matrix, 2 + d)
    for i in range((2 + d) * (2 + d)):
        block[i] = select(inside, matrix[i], 0.0)
    if nv == d + 3:
        block[(2 + d) * (2 + d)] = select(inside, 1.0 / select(inside, model, 1.0), 0.0)


@kernel
def destruction_blocks(
    w: Read, gradient: Read, distance: Read, volume: Read, block: RW,
    *, gas: Const[Gas], closure: Const[TurbulenceModel], d: Const[int],
):  # fmt: skip
    """Add ``V rho max(-dS / dnut, 0)`` of the source of a model of turbulence to the diagonal; what it gains is left.

    ``1 / (D + r) = D^{-1} / (1 + D^{-1} r)``.
    """
    nut = w[2 + d]
    nu = molecular(gas, w[1 + d] / (w[0] * gas.constant)) / w[0]
    spin = vorticity(gradient, d)
    step = _STEP * (fabs(nut) + nu)
    loss = closure.source(nut, nu, spin, distance[0]) - closure.source(nut + step, nu, spin, distance[0])
    rate = volume[0] * w[0] * max(loss, 0.0) / step
    inverse = block[(2 + d) * (2 + d)]
    block[(2 + d) * (2 + d)] = inverse / (1.0 + inverse * rate)


@func
def add_neighbours(
    w, near, far, face, sign, total, gas, closure, nv, d
):
    """Take what the cells across add from a residual, ``total -= sum_j O_ij z_j``."""
    z = zeros(nv)
    f = zeros(nv)
    n = zeros(d)
    u = zeros(d)
    temperature = w[1 + d] / (w[0] * gas.constant)
    for j in range(len(near)):
        share = outward(face[j], sign[j], n, d)
        for v in range(nv):
            z[v] = far[j][v]
        un, kinetic, h, a = mean_state(w, near[j], u, n, gas.gamma, d)
        rho = sqrt(w[0] * near[j][0])
        other = near[j][1 + d] / (near[j][0] * gas.constant)
        mu, conductivity, spread = layer(w, near[j], temperature, other, share, gas, closure, nv, d)  # fmt: skip
        side_change(-1.0, near[j], near[j], u, z, n, f, rho, un, kinetic, h, a, mu, conductivity, spread,
                    gas, closure, nv, d)  # fmt: skip
        for v in range(nv):
            total[v] -= face[j][d] * f[v]


@kernel
def clear(z: Write, *, nv: Const[int]):
    """No increments, ``z = 0``."""
    for v in range(nv):
        z[v] = 0.0


@kernel
def lessen(
    w: Read, near: Read, far: Read, face: Read, sign: Read, r: Read, out: Write,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], nv: Const[int], d: Const[int],
):  # fmt: skip
    """``r - sum_j O_ij z_j``; ``far`` are the increments across: what cells of other ranks leave of a residual."""
    total = zeros(nv)
    for v in range(nv):
        total[v] = r[v]
    add_neighbours(w, near, far, face, sign, total, gas, closure, nv, d)
    for v in range(nv):
        out[v] = total[v]


@kernel
def relax(
    w: Read, near: Read, far: Read, face: Read, sign: Read, block: Read, r: Read, z: Write,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], nv: Const[int], d: Const[int],
):  # fmt: skip
    """Solve the row of a cell for its own increments, ``z = D_i^{-1} (r - sum_j O_ij z_j)`` (Gauss and Seidel)."""
    total = zeros(nv)
    for v in range(nv):
        total[v] = r[v]
    add_neighbours(w, near, far, face, sign, total, gas, closure, nv, d)
    for i in range(2 + d):
        change = 0.0
        for k in range(2 + d):
            change += block[(2 + d) * i + k] * total[k]
        z[i] = change
    if nv == d + 3:
        z[2 + d] = block[(2 + d) * (2 + d)] * total[2 + d]
