r"""Loops of a compressible flow over cells: the sum of fluxes, the step.

Everything lives on *elements* (`fluxloom.fv.geometry.cell_faces`): primitive states ``w = (rho, u_1 ... u_d, p)``,
with a model of turbulence its variable behind them, ``nv`` components; gradients ``(nv, d)`` at ``d v + k``, and the
share of each gradient that a limiter leaves. The shares of a boundary element are not shares: they are the flux out of
its face, per unit of area, which a loop over the boundary has put there. So no kernel over cells knows a kind of
boundary, and what the walls feel is there to be summed.

.. math:: V \frac{d U}{d t} = R, \quad R = -\sum_f A_f f(w_l, w_r, n_f)

Both cells of a face compute its flux from the same states in the same order, so what one loses the other gains, to the
last bit.

References
----------
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, ch. 5 and 6 (fluxes of
cell-centred schemes, explicit stages, local time steps).
C.-W. Shu, S. Osher: *Efficient implementation of essentially non-oscillatory shock-capturing schemes*. J. Comput. Phys.
77, 1988 (stages as means of states).
B. Perthame, C.-W. Shu: *On positivity preserving finite volume schemes for Euler equations*. Numer. Math. 73, 1996.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Min, Read, Write
from fluxloom.fv.compressible.boundary_states import FaceState, boundary_state, is_mirror, mirrored, transported
from fluxloom.fv.compressible.fluxes import Flux, euler
from fluxloom.fv.compressible.gas import Gas
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, isfinite, max, min, select, sqrt, zeros

__all__ = [
    "COLD",
    "LEAST",
    "LIFE",
    "add_coriolis",
    "add_source",
    "advance",
    "boundary_flux",
    "common_step",
    "face_states",
    "image_gradients",
    "image_number",
    "image_state",
    "image_states",
    "last_stage",
    "least_step",
    "local_step",
]  # fmt: skip

COLD = 1e-12
"""Part of the energy below which a pressure is round-off."""

LIFE = 20.0
"""Steps for which a cell is guarded after it was found bad, see `fluxloom.fv.compressible.positivity`."""

_STEEP, _STEEPER = 0.16, 2.0
"""``r_0^2`` and ``1 / (r_1^2 - r_0^2)`` of `steepness`."""

LEAST = 0.01
"""Part of a cell's density and pressure that is left, at least, at its faces."""


@func
def steepness(w, near, gradient, far, n, un, area, gamma, d):
    r"""Return how much of a shock there is whose pressure changes along a face between two cells, from 0 to 1.

    .. math:: \min\Big(\frac{r^2 - r_0^2}{r_1^2 - r_0^2}, 1\Big) \max(1 - M_n^2, 0) \quad
              \text{where} \quad r > r_0, \; \nabla \cdot u < 0; \qquad r = |\nabla_t p| L / p

    of the means of both cells: the gradient of the pressure along the face, ``L`` the size of the face, ``M_n`` of the
    flow through it, ``un``: what passes fast is damped upwind. Shocks along faces, sound, and what is weaker than a
    shock at Mach 1.5 leave it at 0, and fluxes as they are.
    """
    along = 0.0
    square = 0.0
    spread = 0.0
    for k in range(d):
        g = gradient[d * (1 + d) + k] + far[d * (1 + d) + k]
        along += g * n[k]
        square += g * g
        spread += gradient[d * (1 + k) + k] + far[d * (1 + k) + k]
    size = area * area if d == 2 else area
    both = w[1 + d] + near[1 + d]
    change = (square - along * along) * size
    part = 0.0
    if spread < 0.0 and change > _STEEP * both * both:
        inverse = 1.0 / both
        passing = 1.0 - un * un * (w[0] + near[0]) * inverse * (1.0 / gamma)
        part = min(_STEEPER * (change * inverse * inverse - _STEEP), 1.0) * max(passing, 0.0)
    return part


@func
def slowed(left, right, n, gamma, d):
    """Make the jump of the normal velocity ``min(M, 1)`` of what it is, with the larger Mach number of both sides.

    ``u_l += (1 - min(M, 1)) (du . n) n / 2``, ``u_r`` less the same, ``du = u_r - u_l``. Upwind fluxes damp it with the
    speed of sound, which is too much where flow is slow (B. Thornber et al.: *An improved reconstruction method for
    compressible flows with low Mach number features*. J. Comput. Phys. 227, 2008; F. Rieper: *A low-Mach number fix for
    Roe's approximate Riemann solver*. J. Comput. Phys. 230, 2011).
    """
    first = 0.0
    second = 0.0
    jump = 0.0
    for k in range(d):
        first += left[1 + k] * left[1 + k]
        second += right[1 + k] * right[1 + k]
        jump += (right[1 + k] - left[1 + k]) * n[k]
    square = max(first * left[0] / left[1 + d], second * right[0] / right[1 + d]) / gamma
    less = 0.5 * (1.0 - sqrt(min(square, 1.0))) * jump
    for k in range(d):
        left[1 + k] += less * n[k]
        right[1 + k] -= less * n[k]


@func
def from_face(f, n, pace, d):
    """Turn a flux seen from a face that moves along its normal into that of what is conserved where one stands still.

    With the velocity ``u' = u - g n`` one sees ``f'``: then ``F - g U`` is ``f'`` for the mass, ``f' + g n f'_mass``
    for the momentum and ``f' + g n . f'_momentum + g^2 / 2 f'_mass`` for the energy.
    """
    push = 0.0
    for k in range(d):
        push += n[k] * f[1 + k]
        f[1 + k] += pace * n[k] * f[0]
    f[1 + d] += pace * push + 0.5 * pace * pace * f[0]


@func
def flux_through(left, right, n, f, pace, gamma, d, inviscid, steep, moving, slow):
    """Write the flux ``F(w_l, w_r, n)`` through a face; with ``moving`` 1 it moves along its normal: ``F - u_f U``.

    ``pace`` is its speed ``u_f``, see `from_face`. With ``slow`` 1 the jump of the normal velocity is `slowed`.
    """
    if slow == 1:
        slowed(left, right, n, gamma, d)
    if moving == 1:
        for k in range(d):
            left[1 + k] -= pace * n[k]
            right[1 + k] -= pace * n[k]
    inviscid.near_shock(left, right, n, f, gamma, d, steep)
    if moving == 1:
        from_face(f, n, pace, d)


@kernel
def add_coriolis(
    w: Read, rate: Read, volume: Read, swept: Read, res: RW, *, gamma: float, nv: Const[int], d: Const[int]
):
    """Add ``R -= V rho omega x u``: the momentum of the gas seen from axes that turn with ``rate``, ``(3,)``.

    ``swept`` is the sum of the faces' areas times their speeds, 0 for a cell with planar faces, and is taken out,
    ``R -= swept U``: uniform flow stays uniform.
    """
    mass = volume[0] * w[0]
    kinetic = 0.0
    res[0] -= swept[0] * w[0]
    for k in range(d):
        kinetic += w[1 + k] * w[1 + k]
        res[1 + k] -= swept[0] * w[0] * w[1 + k]
    res[1 + d] -= swept[0] * (w[1 + d] / (gamma - 1.0) + 0.5 * w[0] * kinetic)
    for v in range(2 + d, nv):
        res[v] -= swept[0] * w[0] * w[v]
    if d == 2:
        res[1] += mass * rate[2] * w[2]
        res[2] -= mass * rate[2] * w[1]
    else:
        for k in range(3):
            i = (k + 1) % 3
            j = (k + 2) % 3
            res[1 + k] -= mass * (rate[i] * w[1 + j] - rate[j] * w[1 + i])


@func
def is_outer(face, d):
    """Return whether a face is one of the boundary: the way from its element there is 0, ``sum_k |v_k| = 0``."""
    reach = 0.0
    for k in range(d):
        reach += fabs(face[2 * d + 1 + k])
    return reach == 0.0


@func
def kept_physical(w, at_face, d):
    """Leave density and pressure at a face a part ``LEAST`` of the cell's; return whether they had as much.

    ``rho_f = max(rho_f, LEAST rho)``, ``p_f = max(p_f, LEAST p)``: a share of their gradients, as limiters leave one
    (Perthame and Shu 1996).
    """
    rho = LEAST * w[0]
    p = LEAST * w[1 + d]
    whole = at_face[0] >= rho and at_face[1 + d] >= p
    at_face[0] = max(at_face[0], rho)
    at_face[1 + d] = max(at_face[1 + d], p)
    return whole


@kernel
def add_source(source: Read, volume: Read, res: RW, *, nv: Const[int]):
    """Add what a given source brings, per unit of volume and time: ``R += V S``."""
    for v in range(nv):
        res[v] += volume[0] * source[v]


@func
def continued(w, gradient, phi, face, inside, nv, d):
    """Write the state of a cell continued to a face of it, ``w_f = w + phi grad w . v``; see `kept_physical`."""
    for v in range(nv):
        inside[v] = w[v]
        for k in range(d):
            inside[v] += phi[v] * gradient[d * v + k] * face[d + 1 + k]
    kept_physical(w, inside, d)


@func
def mirror_flux(inside, n, f, gamma, d, inviscid, steep, slow):
    """Write the flux through a plane of symmetry, between a state and its image: ``F = (0, (n . f_u) n, 0)``.

    ``f_u`` is the flux of momentum of ``F(w, w - 2 u_n n)``.
    """
    image = zeros(2 + d)
    state = zeros(2 + d)
    for v in range(2 + d):
        state[v] = inside[v]
    mirrored(inside, n, image, d)
    flux_through(state, image, n, f, 0.0, gamma, d, inviscid, steep, 0, slow)
    push = 0.0
    for k in range(d):
        push += n[k] * f[1 + k]
    for k in range(d):
        f[1 + k] = push * n[k]
    f[0] = 0.0
    f[1 + d] = 0.0


@kernel
def boundary_flux(
    kind: Read, par: Read, face: Read, w: Read, gradient: Read, phi: Read, out: Write,
    *, gas: Const[Gas], states: Const[tuple[FaceState, ...]], nv: Const[int], d: Const[int], moving: Const[int],
    inviscid: Const[Flux],
    slow: Const[int],
):  # fmt: skip
    """The flux out of a boundary face, ``f = F(b)``, from the state of the cell behind, continued to the face.

    At a plane of symmetry it is the numerical flux between this state and its image, `mirror_flux`.

    A face that moves along its normal (``moving``, see `flux_through`) takes ``U(b)`` with it.
    """
    n = zeros(d)
    inside = zeros(nv)
    b = zeros(2 + d)
    f = zeros(2 + d)
    for k in range(d):
        n[k] = face[k]
    continued(w, gradient, phi, face, inside, nv, d)
    boundary_state(states, kind[0], par, n, inside, b, gas.gamma, d)
    if moving == 1:
        for k in range(d):
            b[1 + k] -= face[3 * d + 1] * n[k]
    euler(b, n, f, gas.gamma, d)
    if moving == 1:
        from_face(f, n, face[3 * d + 1], d)
    if is_mirror(states, kind[0], par):
        steep = 0.0
        if inviscid.resolves_contacts:
            steep = steepness(w, w, gradient, gradient, n, 0.0, face[d], gas.gamma, d)
        for v in range(2 + d):
            inside[v] -= steep * (inside[v] - w[v])
        mirror_flux(inside, n, f, gas.gamma, d, inviscid, steep, slow)
    for v in range(2 + d):
        out[v] = f[v]
    if nv == d + 3:
        out[nv - 1] = f[0] * transported(states, kind[0], par, n, inside, b, inside[nv - 1], d)


@kernel
def face_states(
    kind: Read, par: Read, face: Read, w: Read, gradient: Read, out: Write,
    *, gamma: float, states: Const[tuple[FaceState, ...]], nv: Const[int], d: Const[int],
):  # fmt: skip
    """The state of a boundary element, ``b(w + grad w . v)``: what gradients are found from.

    The cell behind is continued to the face with gradients that know no boundary: what a boundary takes from inside
    then changes no gradient, and what it prescribes does.
    """
    whole = zeros(nv)
    n = zeros(d)
    inside = zeros(nv)
    b = zeros(2 + d)
    for k in range(d):
        n[k] = face[k]
    for v in range(nv):
        whole[v] = 1.0
    continued(w, gradient, whole, face, inside, nv, d)
    boundary_state(states, kind[0], par, n, inside, b, gamma, d)
    for v in range(2 + d):
        out[v] = b[v]
    if nv == d + 3:
        out[nv - 1] = transported(states, kind[0], par, n, inside, b, inside[nv - 1], d)


@kernel
def image_states(face: Read, w: Read, out: Write, *, nv: Const[int], d: Const[int]):
    """The states of boundary elements in planes of symmetry: the images of the cells behind, ``u - 2 (u . n) n``."""
    n = zeros(d)
    b = zeros(2 + d)
    for k in range(d):
        n[k] = face[k]
    mirrored(w, n, b, d)
    for v in range(2 + d):
        out[v] = b[v]
    if nv == d + 3:
        out[nv - 1] = w[nv - 1]


@kernel
def least_step(volume: Read, speed: Read, least: Min):
    """The least time that a wave needs through a cell, ``2 V / sum A (|u_n| + c)``; -1 where a speed is not finite."""
    a = select(volume[0] > 0.0, speed[0], 1.0)  # boundary elements have neither a volume nor a speed
    time = select(isfinite(speed[0]), volume[0] / a, -1.0)
    least[0] = min(least[0], select(volume[0] > 0.0, time, 1.0e300))


@kernel
def local_step(speed: Read, volume: Read, step: Write, *, cfl: float):
    """``dt / V`` with each cell's own step, ``dt = 2 cfl V / sum A (|u_n| + c)``; 0 for boundary elements."""
    step[0] = select(volume[0] > 0.0, cfl / speed[0], 0.0)


@kernel
def common_step(volume: Read, dt: Read, step: Write):
    """``dt / V`` with one step for all; 0 for boundary elements."""
    step[0] = select(volume[0] > 0.0, dt[0] / volume[0], 0.0)


@func
def stage(start, w, res, new, gamma, nv, d, a, b, rate):
    """Write ``a U_start + b U + rate R`` as a primitive state; return whether density and pressure are positive.

    A pressure below a part ``COLD`` of the energy is none: it is round-off. Boundary elements, whose step is 0, are not
    asked: what comes from a cold cell beside them may be extrapolated to less.
    """
    before = 0.0
    now = 0.0
    for k in range(d):
        before += start[1 + k] * start[1 + k]
        now += w[1 + k] * w[1 + k]
    rho = a * start[0] + b * w[0] + rate * res[0]
    energy = a * (start[1 + d] / (gamma - 1.0) + 0.5 * start[0] * before)
    energy += b * (w[1 + d] / (gamma - 1.0) + 0.5 * w[0] * now) + rate * res[1 + d]
    kinetic = 0.0
    new[0] = rho
    for k in range(d):
        new[1 + k] = (a * start[0] * start[1 + k] + b * w[0] * w[1 + k] + rate * res[1 + k]) / rho
        kinetic += new[1 + k] * new[1 + k]
    new[1 + d] = (gamma - 1.0) * (energy - 0.5 * rho * kinetic)
    for v in range(d + 2, nv):
        new[v] = (a * start[0] * start[v] + b * w[0] * w[v] + rate * res[v]) / rho
    return rate == 0.0 or (new[0] > 0.0 and new[1 + d] > COLD * energy)


@kernel
def advance(
    start: Read, w: Read, res: Read, step: Read, out: Write, norm: Inc, bad: Inc, guard: RW | None,
    *, gamma: float, nv: Const[int], d: Const[int], a: float, b: float, c: float,
):  # fmt: skip
    """A stage, ``U = a U_start + b U + c dt R / V``; squares of the residuals, and cells with a bad result.

    A cell whose new density or pressure is not positive keeps its state for this stage: the step has then to be made
    again. With ``guard`` it is guarded from then on (`fluxloom.fv.compressible.positivity`).
    """
    new = zeros(nv)
    sound = stage(start, w, res, new, gamma, nv, d, a, b, c * step[0])
    bad[0] += select(sound, 0.0, 1.0)
    if guard is not None:
        guard[0] = select(sound, guard[0], LIFE)
    for v in range(nv):
        out[v] = select(sound, new[v], w[v])
        norm[v] += res[v] * res[v]


@kernel
def last_stage(
    w: Read, res: Read, step: Read, out: RW, kept: Write, norm: Inc, bad: Inc, guard: RW | None,
    *, gamma: float, nv: Const[int], d: Const[int], a: float, b: float, c: float,
):  # fmt: skip
    """The last stage, ``U = a U_start + b U + c dt R / V``, which ends where the step began; see `advance`.

    ``kept`` is what was there, ``w_start``.
    """
    new = zeros(nv)
    start = zeros(nv)
    for v in range(nv):
        start[v] = out[v]
        kept[v] = start[v]
    sound = stage(start, w, res, new, gamma, nv, d, a, b, c * step[0])
    bad[0] += select(sound, 0.0, 1.0)
    if guard is not None:
        guard[0] = select(sound, guard[0], LIFE)
    for v in range(nv):
        out[v] = select(sound, new[v], w[v])
        norm[v] += res[v] * res[v]


@kernel
def image_state(kind: Read, turns: Read, w: Read, out: Write, *, nv: Const[int], d: Const[int]):
    """The state of the partner ``w``, its velocity turned: ``u = T u_partner``."""
    base = (-1 - kind[0]) * d * d
    for v in range(nv):
        out[v] = w[v]
    for i in range(d):
        total = 0.0
        for k in range(d):
            total += turns[base + d * i + k] * w[1 + k]
        out[1 + i] = total


@kernel
def image_gradients(
    kind: Read, turns: Read, gradient: Read, phi: Read, out: Write, kept: Write, *, nv: Const[int], d: Const[int]
):
    """The gradients of the partner, turned: ``T g`` of a scalar, ``T g T^T`` of the velocity; and their shares."""
    base = (-1 - kind[0]) * d * d
    for v in range(nv):
        kept[v] = phi[v]
        for k in range(d):
            total = 0.0
            for m in range(d):
                if 1 <= v <= d:
                    for i in range(d):
                        total += turns[base + d * (v - 1) + i] * turns[base + d * k + m] * gradient[d * (1 + i) + m]
                else:
                    total += turns[base + d * k + m] * gradient[d * v + m]
            out[d * v + k] = total


@kernel
def image_number(value: Read, out: Write):
    """The number of the partner, ``out = value``."""
    out[0] = value[0]
