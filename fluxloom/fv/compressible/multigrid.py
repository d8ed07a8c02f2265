r"""Loops between the levels of multigrid for a compressible flow: states and residuals down, corrections up.

Coarse cells are groups of fine ones (`fluxloom.fv.geometry.agglomeration`). Down go the conserved variables as means
over the volumes, and the residuals as sums; the coarse level has a forcing that makes its residual the sum of the fine
ones (full approximation storage):

.. math:: \bar U_I = \frac{1}{V_I} \sum_{i \in I} V_i U_i, \quad P_I = \sum_{i \in I} (R_i + P_i) - R_I(\bar U),
          \quad V_I \frac{d U_I}{d t} = R_I + P_I

and up goes what the coarse level has changed, ``U_I - \bar U_I``, the same for all cells of a group, then smoothed by
sweeps of Jacobi over neighbours. States are primitive, as in `fluxloom.fv.compressible.kernels`; a forcing is one per
unit of volume, like a source. Boundary elements have no volume, and nothing is done to them.

References
----------
A. Brandt: *Multi-level adaptive solutions to boundary-value problems*. Math. Comp. 31, 1977 (full approximation).
A. Jameson: *Solution of the Euler equations for two dimensional transonic flow by a multigrid method*. Appl. Math.
Comput. 13, 1983.
D. J. Mavriplis, V. Venkatakrishnan: *Agglomeration multigrid for two-dimensional viscous flows*. Computers & Fluids
24, 1995.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.fv.compressible.boundary_states import FaceState, is_wall
from fluxloom.fv.compressible.fluxes import euler, mean_state, rusanov
from fluxloom.fv.compressible.implicit import add_upwinding
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select, sqrt, zeros

__all__ = [
    "coarse_residual",
    "corrected",
    "emptied",
    "forcing",
    "handed_down",
    "held",
    "means",
    "paced",
    "part_of",
    "restricted",
    "smoothed",
    "spread",
    "squares",
    "stepped",
    "stiff_wall",
    "wanted",
]  # fmt: skip


@func
def to_conserved(w, u, gamma, nv, d):
    """Write the conserved variables of a primitive state, ``U = (rho, rho u, p / (gamma - 1) + rho |u|^2 / 2, rho q)``.

    ``q`` is what a model transports.
    """
    square = 0.0
    u[0] = w[0]
    for k in range(d):
        u[1 + k] = w[0] * w[1 + k]
        square += w[1 + k] * w[1 + k]
    u[1 + d] = w[1 + d] / (gamma - 1.0) + 0.5 * w[0] * square
    for v in range(2 + d, nv):
        u[v] = w[0] * w[v]


@func
def to_primitive(u, w, gamma, nv, d):
    """Write the primitive state, ``u = m / rho``, ``p = (gamma - 1) (rho E - rho |u|^2 / 2)``, of a conserved one."""
    square = 0.0
    w[0] = u[0]
    for k in range(d):
        w[1 + k] = u[1 + k] / u[0]
        square += w[1 + k] * w[1 + k]
    w[1 + d] = (gamma - 1.0) * (u[1 + d] - 0.5 * u[0] * square)
    for v in range(2 + d, nv):
        w[v] = u[v] / u[0]


@func
def diffusive(left, right, n, f, more, gamma, d):
    """Write Rusanov's flux, its difference of both states ``1 + more`` times: ``F + more (F - (F_l + F_r) / 2)``."""
    a = zeros(2 + d)
    b = zeros(2 + d)
    rusanov(left, right, n, f, gamma, d)
    euler(left, n, a, gamma, d)
    euler(right, n, b, gamma, d)
    for v in range(2 + d):
        f[v] += more * (f[v] - 0.5 * (a[v] + b[v]))


@func
def linearised(left, right, n, f, gamma, d):
    """Write Roe's flux with the matrix that sweeps have, ``(F_l + F_r) / 2 - |A| dU/dw (w_r - w_l) / 2``.

    Its slow waves are rounded as there, see `fluxloom.fv.compressible.implicit.add_upwinding`.
    """
    a = zeros(2 + d)
    z = zeros(2 + d)
    u = zeros(d)
    euler(left, n, f, gamma, d)
    euler(right, n, a, gamma, d)
    un, kinetic, h, c = mean_state(left, right, u, n, gamma, d)
    for v in range(2 + d):
        f[v] = 0.5 * (f[v] + a[v])
        z[v] = right[v] - left[v]
    add_upwinding(z, u, n, f, d, sqrt(left[0] * right[0]), un, kinetic, h, c, -0.5)


@kernel
def coarse_residual(
    w: Read, near: Read, out: Read, face: Read, wetted: Read, sign: Read, res: Write, speed: Write,
    *, gamma: float, nv: Const[int], d: Const[int], stages: Const[int],
):  # fmt: skip
    """``R`` of a group of cells, of first order, and half the sum over its faces of area times the fastest wave.

    For explicit ``stages`` (1) fluxes are those of Rusanov, ``A (F_l + F_r) . n / 2 - B max(|u_n| + c) (U_r - U_l) /
    2``, with the area ``A`` of the face and the sum ``B`` of the areas of the fine faces in it. So a coarse level damps
    at least as much as the fine one does for changes between groups: with less, what stages return overshoots. For
    sweeps (0) they are Roe's, with the matrix of the linearisation that is swept through: what it solves is what the
    level has.
    """
    total = zeros(nv)
    waves = 0.0
    n = zeros(d)
    f = zeros(nv)
    left = zeros(nv)
    right = zeros(nv)
    c = sqrt(gamma * w[1 + d] / w[0])
    for j in range(len(near)):
        into = sign[j] < 0.0
        outer = sign[j] == 0.0
        un = 0.0
        for k in range(d):
            n[k] = face[j][k]
            un += n[k] * w[1 + k]
        for v in range(nv):
            left[v] = select(into, near[j][v], w[v])
            right[v] = select(into, w[v], near[j][v])
        area = face[j][d]
        more = select(outer, 0.0, wetted[j] / area - 1.0)
        if stages == 1:
            diffusive(left, right, n, f, more, gamma, d)
        else:
            linearised(left, right, n, f, gamma, d)
        for v in range(2 + d, nv):
            f[v] = f[0] * select(f[0] > 0.0, left[v], right[v])
        push = select(into, area, -area)
        for v in range(nv):
            total[v] += push * select(outer, out[j][v], f[v])
        waves += area * (1.0 + more) * (fabs(un) + c)
    for v in range(nv):
        res[v] = total[v]
    speed[0] = 0.5 * waves


@kernel
def stiff_wall(
    kind: Read, par: Read, face: Read, w: Read, out: RW,
    *, gamma: float, states: Const[tuple[FaceState, ...]], nv: Const[int], d: Const[int],
):  # fmt: skip
    """Add ``f += rho c u_n n`` to the flux of momentum at a wall, with the velocity ``u_n`` of the cell towards it.

    That is the pressure of a wave which the wall sends back (Riemann's problem with the mirrored state). Without it
    nothing damps, on coarse levels, what goes to and fro between a wall and the first cells, and V cycles diverge.
    """
    un = 0.0
    for k in range(d):
        un += (w[1 + k] - par[1 + k]) * face[k]
    wall = is_wall(states, kind[0])
    push = select(wall, sqrt(gamma * w[0] * w[1 + d]) * un, 0.0)
    for k in range(d):
        out[1 + k] += push * face[k]


@kernel
def restricted(
    states: Read, sizes: Read, sums: Read, volume: Read, w: RW, start: Write, total: Write, source: Write,
    *, gamma: float, nv: Const[int], d: Const[int],
):  # fmt: skip
    """Means of a group, ``U_I = sum_i V_i U_i / V_I``, as the state, and in ``start``; its residuals, ``sum_i R_i``.

    ``states``, ``sizes`` and ``sums`` are states, volumes and residuals of the fine cells. The forcing is set to 0.
    """
    mean = zeros(nv)
    u = zeros(nv)
    q = zeros(nv)
    whole = zeros(nv)
    for j in range(len(states)):
        for v in range(nv):
            q[v] = states[j][v]
            whole[v] += sums[j][v]
        to_conserved(q, u, gamma, nv, d)
        for v in range(nv):
            mean[v] += sizes[j] / volume[0] * u[v]
    for v in range(nv):
        q[v] = w[v]
    if volume[0] > 0.0:
        to_primitive(mean, q, gamma, nv, d)
    for v in range(nv):
        w[v] = q[v]
        start[v] = q[v]
        total[v] = whole[v]
        source[v] = 0.0


@kernel
def means(values: Read, sizes: Read, volume: Read, out: Write, *, nv: Const[int]):
    """Means over the cells of a group, ``sum_i V_i q_i / V_I``; 0 for boundary elements."""
    mean = zeros(nv)
    for j in range(len(values)):
        for v in range(nv):
            mean[v] += sizes[j] * values[j][v]
    for v in range(nv):
        out[v] = mean[v] / select(volume[0] > 0.0, volume[0], 1.0)


@kernel
def forcing(total: Read, res: Read, volume: Read, source: Write, *, nv: Const[int]):
    """What makes a coarse residual the sum of the fine ones, per volume: ``P_I / V_I = (sum_i R_i - R_I) / V_I``."""
    for v in range(nv):
        source[v] = select(volume[0] > 0.0, (total[v] - res[v]) / select(volume[0] > 0.0, volume[0], 1.0), 0.0)


@kernel
def wanted(w: Read, start: Read, change: Write, *, gamma: float, nv: Const[int], d: Const[int]):
    """What a coarse level has changed, ``dU = U(w) - U(start)``."""
    now = zeros(nv)
    before = zeros(nv)
    to_conserved(w, now, gamma, nv, d)
    to_conserved(start, before, gamma, nv, d)
    for v in range(nv):
        change[v] = now[v] - before[v]


@kernel
def spread(change: Read, out: Write, *, nv: Const[int]):
    """The same for all elements of a group, ``dU_i = dU_I``."""
    for v in range(nv):
        out[v] = change[v]


@kernel
def smoothed(change: Read, near: Read, sign: Read, out: Write, *, weight: float, nv: Const[int]):
    """A sweep of Jacobi, ``(c + weight sum_j c_j) / (1 + weight n)`` over the ``n`` cells across."""
    total = zeros(nv)
    count = 1.0
    for v in range(nv):
        total[v] = change[v]
    for j in range(len(near)):
        part = select(sign[j] == 0.0, 0.0, weight)
        count += part
        for v in range(nv):
            total[v] += part * near[j][v]
    for v in range(nv):
        out[v] = total[v] / count


@kernel
def corrected(
    change: Read, volume: Read, w: RW, lessened: Inc,
    *, most: float, gamma: float, nv: Const[int], d: Const[int],
):  # fmt: skip
    """Add a change of the conserved variables to the state of a cell, ``U + s dU``.

    ``s`` is the largest part that lets density and pressure fall by a part ``most`` of themselves, the density grow as
    much; the pressure is a concave function of the conserved variables. Where ``s < 1``, ``lessened`` counts.
    """
    u = zeros(nv)
    new = zeros(nv)
    q = zeros(nv)
    to_conserved(w, u, gamma, nv, d)
    share = min(1.0, most * w[0] / max(fabs(change[0]), 1.0e-300))
    for v in range(nv):
        new[v] = u[v] + share * change[v]
    to_primitive(new, q, gamma, nv, d)
    fall = w[1 + d] - q[1 + d]
    less = most * w[1 + d] / max(fall, most * w[1 + d])
    for v in range(nv):
        new[v] = u[v] + less * share * change[v]
    to_primitive(new, q, gamma, nv, d)
    inside = volume[0] > 0.0
    for v in range(nv):
        w[v] = select(inside, q[v], w[v])
    lessened[0] += select(inside and less * share < 1.0, 1.0, 0.0)


@kernel
def handed_down(state: Read, volume: Read, w: RW, *, nv: Const[int]):
    """The state of the coarse cell, ``w_i = w_I``, for a start."""
    for v in range(nv):
        w[v] = select(volume[0] > 0.0, state[v], w[v])


@kernel
def emptied(source: Write, *, nv: Const[int]):
    """No source, ``S = 0``."""
    for v in range(nv):
        source[v] = 0.0


@kernel
def held(res: RW, *, nv: Const[int]):
    """What a model of turbulence transports stands still, ``R = 0``."""
    res[nv - 1] = 0.0


@kernel
def paced(speed: Read, volume: Read, rate: Write, *, cfl: float):
    """``V / dt`` of a step of ``cfl``, ``dt = 2 cfl V / sum A (|u_n| + c)``; 0 for boundary elements."""
    rate[0] = select(volume[0] > 0.0, speed[0] / cfl, 0.0)


@kernel
def part_of(res: Read, out: Write, *, part: float, nv: Const[int]):
    """A part of the residuals, of a stage: ``out = part R``."""
    for v in range(nv):
        out[v] = part * res[v]


@kernel
def stepped(w: Read, z: Read, out: Write, *, most: float, nv: Const[int], d: Const[int]):
    """State after an increment, ``w + s z``, ``s = min(1, most rho / |z_rho|, most p / |z_p|)``."""
    rho = most * w[0] / max(fabs(z[0]), 1.0e-300)
    p = most * w[1 + d] / max(fabs(z[1 + d]), 1.0e-300)
    share = min(1.0, min(rho, p))
    for v in range(nv):
        out[v] = w[v] + share * z[v]


@kernel
def squares(res: Read, norm: Inc, *, nv: Const[int]):
    """Sums of the squares of the residuals, ``sum R^2``."""
    for v in range(nv):
        norm[v] += res[v] * res[v]
