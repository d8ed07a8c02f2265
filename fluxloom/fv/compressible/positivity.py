r"""Loops that keep density and pressure of a compressible flow above 0, and lose nothing on the way.

A stage leads to :math:`U = U_L + \sum_f \theta_f P_f`. Here :math:`U_L` is what Rusanov's flux between the states of
the cells makes, which is physical in steps that are not too long, and :math:`P_f` what the flux of the scheme adds to
that through face ``f``. In a *guarded* cell :math:`U` is written as a mean of the states

.. math:: U_L + \theta_f P_f / m_f, \quad \sum_f m_f = 1,

each of which is physical for :math:`\theta_f \le \theta`: states with positive density and pressure are a convex set,
and the pressure is a concave function of the conserved variables. A face takes the least :math:`\theta` of its two
cells, so both see one flux. Cells are guarded that would else have lost their density or pressure, and stay so for some
steps; where no cell of a face is, its flux keeps its bits.

References
----------
X. Y. Hu, N. A. Adams, C.-W. Shu: *Positivity-preserving method for high-order conservative schemes solving compressible
Euler equations*. J. Comput. Phys. 242, 2013 (fluxes that are cut off).
J.-L. Guermond, M. Nazarov, B. Popov, I. Tomas: *Second-order invariant domain preserving approximation of the Euler
equations using convex limiting*. SIAM J. Sci. Comput. 40, 2018 (means of states, one a face).
B. Perthame, C.-W. Shu: *On positivity preserving finite volume schemes for Euler equations*. Numer. Math. 73, 1996
(Rusanov's flux).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.fv.compressible.boundary_states import FaceState, boundary_state, is_wall, transported
from fluxloom.fv.compressible.fluxes import Rusanov
from fluxloom.fv.compressible.kernels import COLD, LEAST, LIFE, flux_through, is_outer
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, max, min, select, zeros

__all__ = [
    "clip_cells",
    "differences",
    "lessened",
    "lessened_outside",
    "outside_differences",
    "replaced",
    "shares",
    "tally",
]

_LEFT, _FEW = 0.1, 100.0
"""Parts of density and heat under Rusanov's flux that are left at least; times ``COLD`` of the energy all of it is."""
_TINY = 1.0e-300
_ROBUST = Rusanov()


@func
def conserved(w, u, gamma, d):
    """Write density, momentum and energy of a state, ``U = (rho, rho u, p / (gamma - 1) + rho |u|^2 / 2)``."""
    square = 0.0
    u[0] = w[0]
    for k in range(d):
        u[1 + k] = w[0] * w[1 + k]
        square += w[1 + k] * w[1 + k]
    u[1 + d] = w[1 + d] / (gamma - 1.0) + 0.5 * w[0] * square


@func
def heat(u, d):
    """Return the energy that is no motion, ``p / (gamma - 1) = rho E - |m|^2 / (2 rho)``, of conserved variables."""
    square = 0.0
    for k in range(d):
        square += u[1 + k] * u[1 + k]
    return u[1 + d] - 0.5 * square / u[0]


@kernel
def outside_differences(
    kind: Read, par: Read, face: Read, w: Read, out: Read, change: Write,
    *, gamma: float, states: Const[tuple[FaceState, ...]], nv: Const[int], d: Const[int], moving: Const[int],
):  # fmt: skip
    """Rusanov's flux out of a boundary face less that there, ``F_R(w, b) - F``; a wall mirrors the cell behind it."""
    n = zeros(d)
    b = zeros(2 + d)
    f = zeros(nv)
    left = zeros(nv)
    right = zeros(nv)
    pace = 0.0
    if moving == 1:
        pace = face[3 * d + 1]
    here = 0.0
    there = 0.0
    for v in range(nv):
        left[v] = w[v]
    for k in range(d):
        n[k] = face[k]
    boundary_state(states, kind[0], par, n, left, b, gamma, d)
    nut = left[nv - 1]
    if nv == d + 3:
        nut = transported(states, kind[0], par, n, left, b, nut, d)
    for k in range(d):
        here += w[1 + k] * n[k]
        there += b[1 + k] * n[k]
    wall = is_wall(states, kind[0])
    for v in range(2 + d):
        right[v] = select(wall, w[v], b[v])
    for k in range(d):
        right[1 + k] += select(wall, 2.0 * (there - here) * n[k], 0.0)
    flux_through(left, right, n, f, pace, gamma, d, _ROBUST, 0.0, moving, 0)
    if nv == d + 3:
        f[nv - 1] = f[0] * select(f[0] > 0.0, w[nv - 1], nut)
    for v in range(nv):
        change[v] = f[v] - out[v]


@kernel
def differences(
    w: Read, change: Read, face: Read, flux: Read, diff: Write,
    *, gamma: float, nv: Const[int], d: Const[int], moving: Const[int],
):  # fmt: skip
    """Rusanov's flux between the states of both cells less what the face stores, ``A F_R(w_l, w_r) - A F``."""
    n = zeros(d)
    f = zeros(nv)
    left = zeros(nv)
    right = zeros(nv)
    pace = 0.0
    if moving == 1:
        pace = face[3 * d + 1]
    for v in range(nv):
        left[v] = w[0][v]
        right[v] = w[1][v]
    for k in range(d):
        n[k] = face[k]
    flux_through(left, right, n, f, pace, gamma, d, _ROBUST, 0.0, moving, 0)
    for v in range(2 + d, nv):
        f[v] = f[0] * select(f[0] > 0.0, w[0][v], w[1][v])
    outer = is_outer(face, d)
    area = face[d]
    for v in range(nv):
        diff[v] = select(outer, area * change[1][v], area * f[v] - flux[v])


@func
def face_share(low, add, weight, rest, least, d):
    """Return which part ``s`` of ``add / weight`` leaves ``low`` a part of its density, and the heat ``least``.

    ``rho_L + s P_rho / m >= LEFT rho_L``, then ``s = s (e_L - least) / (e_L - e(U_L + s P / m))`` where the heat ``e``
    is less; ``rest`` is ``e_L``.
    """
    u = zeros(2 + d)
    fall = -add[0] / weight
    room = (1.0 - _LEFT) * low[0]
    part = select(fall > room, room / max(fall, _TINY), 1.0)
    for v in range(2 + d):
        u[v] = low[v] + part * add[v] / weight
    found = heat(u, d)
    return select(found < least, part * (rest - least) / max(rest - found, _TINY), part)


@kernel
def shares(
    start: Read, w: Read, res: Read, step: Read, diff: Read, sign: Read, guard: RW, theta: Write,
    *, gamma: float, nv: Const[int], d: Const[int], a: float, b: float, c: float,
):  # fmt: skip
    """The largest ``theta <= 1`` that keeps all ``U_L + theta P_f / m_f`` of a guarded cell physical; else 1.

    ``m_f`` is the part of face ``f`` of ``sum_f |P_rho| / rho_L + |P_E| / E_L``; see `face_share`.
    """
    old = zeros(nv)
    now = zeros(nv)
    u = zeros(2 + d)
    low = zeros(2 + d)
    add = zeros(2 + d)
    rate = c * step[0]
    conserved(start, old, gamma, d)
    conserved(w, now, gamma, d)
    for v in range(2 + d):
        u[v] = a * old[v] + b * now[v] + rate * res[v]
        low[v] = u[v]
    sound = u[0] > 0.0 and heat(u, d) > COLD * u[1 + d]
    left = select(sound, guard[0], LIFE)
    guard[0] = left
    share = 1.0
    if left > 0.0 and step[0] > 0.0:
        for j in range(len(diff)):
            push = select(sign[j] < 0.0, rate, -rate)
            for v in range(2 + d):
                low[v] += push * diff[j][v]
        rest = heat(low, d)
        safe = low[0] > 0.0 and rest > 0.0
        least = min(rest, max(_LEFT * rest, _FEW * COLD * low[1 + d]))
        whole = _TINY
        for j in range(len(diff)):
            whole += rate * (fabs(diff[j][0]) / max(low[0], _TINY) + fabs(diff[j][1 + d]) / max(low[1 + d], _TINY))
        for j in range(len(diff)):
            push = select(sign[j] < 0.0, -rate, rate)
            size = fabs(diff[j][0]) / max(low[0], _TINY) + fabs(diff[j][1 + d]) / max(low[1 + d], _TINY)
            for v in range(2 + d):
                add[v] = push * diff[j][v]
            weight = max(rate * size / whole, 1.0e-6)
            share = min(share, face_share(low, add, weight, rest, least, d))
        share = select(safe, share, 0.0)
    theta[0] = share


@kernel
def lessened(theta: Read, diff: RW, *, nv: Const[int]):
    """What a face takes of the difference to Rusanov's flux, ``(1 - min(theta_l, theta_r)) A (F_R - F)``."""
    part = 1.0 - min(theta[0], theta[1])
    for v in range(nv):
        diff[v] = select(part > 0.0, part * diff[v], 0.0)


@kernel
def lessened_outside(theta: Read, change: Read, out: RW, *, nv: Const[int]):
    """The same of a boundary face, added to the flux out of it: ``F += (1 - theta) (F_R - F)``."""
    part = 1.0 - theta[0]
    for v in range(nv):
        out[v] += select(part > 0.0, part * change[v], 0.0)


@kernel
def replaced(diff: Read, sign: Read, res: RW, touched: RW, *, first: Const[int], nv: Const[int]):
    """Add what faces took of Rusanov's flux, ``R -= sum_f (1 - theta) A (F_R - F)``.

    ``touched`` counts the stages of a step with such a face.
    """
    total = zeros(nv)
    size = 0.0
    for j in range(len(diff)):
        for v in range(nv):
            total[v] += select(sign[j] < 0.0, diff[j][v], -diff[j][v])
            size += fabs(diff[j][v])
    for v in range(nv):
        res[v] += total[v]
    before = touched[0] if first == 0 else 0.0
    touched[0] = before + select(size > 0.0, 1.0, 0.0)


@kernel
def tally(volume: Read, touched: Read, guard: RW, limited: RW, recent: Write, counts: Inc):
    """Count a step where fluxes were limited or a cell kept its state; add up such cells, and those still guarded.

    ``guard = max(guard - 1, 0)``; ``recent`` is 1 for such a cell of this step, ``limited`` counts all steps.
    """
    hit = select((touched[0] > 0.0 or guard[0] >= LIFE) and volume[0] > 0.0, 1.0, 0.0)
    recent[0] = hit
    left = max(guard[0] - 1.0, 0.0)
    limited[0] += hit
    counts[0] += hit
    counts[1] += select(left > 0.0, 1.0, 0.0)
    guard[0] = left


@kernel
def clip_cells(
    w: Read, gradient: Read, share: Read, face: Read, sign: Read, limited: RW, recent: RW, count: Inc,
    *, kept: float, d: Const[int],
):  # fmt: skip
    """Count a step where the linear state of a cell has too little density or pressure at one of its faces.

    ``rho + phi grad rho . v < LEAST rho``, or the same of ``p``. With ``kept`` 1 what `tally` found in the same step
    stays in ``recent``, and counts once; with 0 it is of another.
    """
    poor = 0.0
    for j in range(len(face)):
        rho = 0.0
        p = 0.0
        for k in range(d):
            way = select(sign[j] < 0.0, face[j][2 * d + 1 + k], face[j][d + 1 + k])
            rho += gradient[k] * way
            p += gradient[d * (1 + d) + k] * way
        few = w[0] + share[0] * rho < LEAST * w[0] or w[1 + d] + share[1 + d] * p < LEAST * w[1 + d]
        poor = select(few, 1.0, poor)
    before = kept * recent[0]
    limited[0] += max(poor - before, 0.0)
    recent[0] = max(before, poor)
    count[0] += recent[0]
