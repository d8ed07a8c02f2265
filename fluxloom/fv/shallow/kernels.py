"""The shallow-water equations by finite volumes: HLL flux, hydrostatic reconstruction, boundary states, Heun's stages.

Values of a cell: depth and momentum ``u = (H, Hu, Hv)``, and the bed ``zb``; the surface is ``H + zb``. A face has
its unit normal and length, ``(nx, ny, length)``; the normal points from its first cell to its second, at the boundary
outward.

What a face adds to the residual of a cell is the flux less ``g H^2 / 2`` of the cell, times the normal. These terms
add up to zero around a cell, and without them water at rest gives no residual at all, not even a rounded one::

    A dU/dt = -sum over faces of length (F - g h*^2 / 2 n + g / 2 (h + H)(e - E) n)

with the depths ``h`` and surfaces ``e`` at the face, ``h*`` above the higher bed of both sides, and ``H``, ``E`` of the
cell (Audusse et al. 2004, eq. 2.15 to 2.17, and Audusse and Bristeau 2005, sec. 4.2, rearranged). Without slopes
``h = H`` and ``e = E``.

References
----------
E. Audusse, F. Bouchut, M.-O. Bristeau, R. Klein, B. Perthame: *A fast and stable well-balanced scheme with hydrostatic
reconstruction for shallow water flows*. SIAM J. Sci. Comput. 25(6), 2004.
E. Audusse, M.-O. Bristeau: *A well-balanced positivity preserving second-order scheme for shallow water flows on
unstructured meshes*. J. Comput. Phys. 206, 2005.
E. F. Toro: *Shock-capturing methods for free-surface shallow flows*. Wiley, 2001, sec. 10.3 to 10.5.
D. Dutykh, R. Poncet, F. Dias: *The VOLNA code for the numerical modeling of tsunami waves*. Eur. J. Mech. B 30, 2011.
A. Kurganov, G. Petrova: *A second-order well-balanced positivity preserving central-upwind scheme for the Saint-Venant
system*. Commun. Math. Sci. 5(1), 2007 (velocities of thin water).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Max, Min, Read, Write
from fluxloom.fv.shallow.boundary_states import WaterState
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import cbrt, isfinite, select, sqrt, tanh

__all__ = [
    "DRY",
    "WALL",
    "boundary_flat",
    "boundary_linear",
    "correct",
    "desingularised",
    "drawn_in",
    "flux_flat",
    "flux_linear",
    "highest",
    "hll",
    "pour",
    "predict",
    "primitive",
    "sample_water",
    "sum_passed",
    "survey",
    "time_scale",
]

WALL = 0
"""Place of the formula of a wall among those of a flow, which faces become whose series have ended."""

DRY = -1.0e30
"""Highest surface of a cell that was never wet."""

_NOTHING, _FILM = 1.0e-12, 1.0e-3
"""Parts of the depth of thin water below which there is none, and below which it rests: no ever smaller numbers."""

_RUFFLED = 100.0
"""Depths of thin water from which on the wind has its whole stress."""

_STILL = 1.0e-18
"""Speed that counts as none, metres per second."""

_SMALL = 1.0e-6
"""Below it ``tanh(x) / x`` is 1."""

_TINY = 1.0e-30
_LARGE = 1.0e30


@func
def desingularised(h, eps):
    """``2 h / (h^2 + max(h^2, eps^2))``: momentum to velocity, ``1 / h`` but for water thinner than ``eps``."""
    square = h * h
    return 2.0 * h / (square + max(square, eps * eps))


@func
def hll(hl, ul, hr, ur, g):
    r"""Flux through a face between depths and normal velocities of both sides, of Harten, Lax and van Leer.

    .. math:: F = \frac{s_r F_l - s_l F_r + s_l s_r (U_r - U_l)}{s_r - s_l}, \quad F = (h u, h u^2 + \tfrac12 g h^2),
              \quad s_l \le 0 \le s_r

    Returns the mass flux, the flux of normal momentum less ``g hl^2 / 2``, and the same less ``g hr^2 / 2``.
    Speeds: Toro 2001, eq. 10.21 to 10.22, from the state between two rarefactions, ``u* = (ul + ur)/2 + cl - cr``,
    ``c* = (cl + cr)/2 + (ul - ur)/4``; beside dry ground that of the front, ``u +- 2 c`` (sec. 6.2).
    """
    cl = sqrt(g * hl)
    cr = sqrt(g * hr)
    middle = 0.5 * (ul + ur) + cl - cr
    cm = 0.5 * (cl + cr) + 0.25 * (ul - ur)
    slow = select(hl > 0.0, min(ul - cl, middle - cm), ur - 2.0 * cr)
    fast = select(hr > 0.0, max(ur + cr, middle + cm), ul + 2.0 * cl)
    slow = select(hr > 0.0, slow, ul - cl)
    fast = select(hl > 0.0, fast, ur + cr)
    slow = min(slow, 0.0)
    fast = max(fast, 0.0)
    share = slow / max(fast - slow, _TINY)
    ml = hl * ul
    mr = hr * ur
    rise = 0.5 * g * (hl - hr) * (hl + hr)
    mass = ml + share * (ml - mr + fast * (hr - hl))
    push = ml * ul + share * (ml * ul - mr * ur + rise + fast * (mr - ml))
    return mass, push, push + rise


@func
def face_flux(hl, el, al, bl, hr, er, ar, br, nx, ny, g):
    """Flux between two reconstructed states ``(depth, surface, velocity)`` over their beds, a unit of length.

    Hydrostatic reconstruction: ``h*_i = max(0, h_i - (z* - z_i))`` with the higher bed ``z* = max(z_l, z_r)`` (Audusse
    et al. 2004), then `hll`. Returns mass, momentum along x and y less the pressure of the first side, and what the
    second side has more of pressure. Momentum along the face is carried by the mass (Toro 2001, sec. 10.6).
    """
    zl = el - hl
    zr = er - hr
    bed = max(zl, zr)
    left = max(0.0, hl - (bed - zl))
    right = max(0.0, hr - (bed - zr))
    ul = al * nx + bl * ny
    ur = ar * nx + br * ny
    mass, push, other = hll(left, ul, right, ur, g)
    first = mass > 0.0
    along = select(first, bl * nx - al * ny, br * nx - ar * ny)
    carried = mass * along
    return mass, push * nx - carried * ny, push * ny + carried * nx, other - push


@func
def step_rate(clock, stage, cfl, longest, span):
    """One over the step, ``1 / dt``, for the fluxes of a stage: the step that `predict` will choose at most, or chose.

    ``dt = min(cfl scale, longest, span - t)``; in the second stage that of the clock.
    """
    dt = clock[0] - clock[1]
    if stage == 0:
        t = -clock[0]
        dt = t + min(min(cfl * clock[1], longest), max(0.0, span - t)) - t
    return 1.0 / max(dt, _TINY)


@func
def most_out(u, shape, nx, ny, rate, eps):
    """Mass that may leave a cell through a side, a unit of length and time, so that its depth does not get negative.

    With ``w = A / (P dt)`` it is ``H (max(0, u . n) + w - |u| / 2)``, or ``H min(max(0, u . n), w)`` where
    ``w < |u| / 2``. Round a cell ``sum l max(0, u . n) <= P |u| / 2``: what leaves is at most ``A H / dt``.
    """
    f = desingularised(u[0], eps)
    half = 0.5 * f * sqrt(u[1] * u[1] + u[2] * u[2])
    along = max(0.0, f * (u[1] * nx + u[2] * ny))
    most = min(0.5 * shape[1] * rate, _LARGE)
    return u[0] * select(most < half, min(along, most), along + most - half)


@func
def held_back(u, shape, mass, fx, fy, al, bl, ar, br, nx, ny, rate, eps):
    """Bound a flux of mass by `most_out` of the cell that gives it, ``F = min(max(F, -out_r), out_l)``.

    What is held back keeps its velocity: the flux of momentum changes by ``dF u``.
    """
    found = min(max(mass, -most_out(u[1], shape[1], -nx, -ny, rate, eps)), most_out(u[0], shape[0], nx, ny, rate, eps))
    less = found - mass
    return found, fx + less * select(less < 0.0, al, ar), fy + less * select(less < 0.0, bl, br)


@kernel
def flux_flat(
    u: Read, zb: Read, face: Read, shape: Read, clock: Read, res: Inc,
    *, g: float, eps: float, cfl: float, longest: float, span: float, stage: Const[int],
):  # fmt: skip
    """Flux through an interior face, values constant in the cells (first order): ``R_l += l F``, ``R_r -= l F``.

    With `face_flux` of ``(H, H + z_b, u)`` of both cells, bounded by `held_back`.
    """
    nx = face[0]
    ny = face[1]
    fl = desingularised(u[0][0], eps)
    fr = desingularised(u[1][0], eps)
    al = fl * u[0][1]
    bl = fl * u[0][2]
    ar = fr * u[1][1]
    br = fr * u[1][2]
    mass, fx, fy, more = face_flux(
        u[0][0], u[0][0] + zb[0], al, bl, u[1][0], u[1][0] + zb[1], ar, br, nx, ny, g
    )  # fmt: skip
    rate = step_rate(clock, stage, cfl, longest, span)
    mass, fx, fy = held_back(u, shape, mass, fx, fy, al, bl, ar, br, nx, ny, rate, eps)
    length = face[2]
    res[0][0] += length * mass
    res[1][0] -= length * mass
    res[0][1] += length * fx
    res[1][1] -= length * (fx + more * nx)
    res[0][2] += length * fy
    res[1][2] -= length * (fy + more * ny)


@func
def at_face(u, zb, gradient, dx, dy, eps):
    """Return depth, surface, velocity, and ``(h + H)(e - E) / 2`` at a point of a cell, given from its centroid.

    ``h = max(0, H + grad h . x)``, ``e = E + grad e . x``, ``u + grad u . x``.
    """
    f = desingularised(u[0], eps)
    rise = gradient[0] * dx + gradient[1] * dy
    h = max(0.0, u[0] + gradient[2] * dx + gradient[3] * dy)
    a = f * u[1] + gradient[4] * dx + gradient[5] * dy
    b = f * u[2] + gradient[6] * dx + gradient[7] * dy
    return h, u[0] + zb + rise, a, b, 0.5 * (h + u[0]) * rise


@kernel
def flux_linear(
    u: Read, zb: Read, gradient: Read, face: Read, arm: Read, shape: Read, clock: Read, res: Inc,
    *, g: float, eps: float, cfl: float, longest: float, span: float, stage: Const[int],
):  # fmt: skip
    """Flux through an interior face, values linear in the cells, ``R_l += l (F + g (h + H)(e - E) n / 2)``.

    Second order: the same is taken from the second cell, with its own ``h``, ``e`` (Audusse and Bristeau 2005, sec.
    4.2); ``arm`` leads from both centroids.
    """
    nx = face[0]
    ny = face[1]
    hl, el, al, bl, pl = at_face(u[0], zb[0], gradient[0], arm[0], arm[1], eps)
    hr, er, ar, br, pr = at_face(u[1], zb[1], gradient[1], arm[2], arm[3], eps)
    mass, fx, fy, more = face_flux(hl, el, al, bl, hr, er, ar, br, nx, ny, g)
    rate = step_rate(clock, stage, cfl, longest, span)
    mass, fx, fy = held_back(u, shape, mass, fx, fy, al, bl, ar, br, nx, ny, rate, eps)
    length = face[2]
    first = g * pl
    second = more + g * pr
    res[0][0] += length * mass
    res[1][0] -= length * mass
    res[0][1] += length * (fx + first * nx)
    res[1][1] -= length * (fx + second * nx)
    res[0][2] += length * (fy + first * ny)
    res[1][2] -= length * (fy + second * ny)


@func
def sample(series, begin, samples, spacing, t):
    """Value of a series, given at equal intervals, at a time since the first: ``s_k + (t / dt - k) (s_{k+1} - s_k)``.

    The last value holds for ever.
    """
    place = min(max(t / spacing, 0.0), samples - 1.0)
    k = min(int(place), samples - 2)
    first = series[begin + k]
    return first + (place - k) * (series[begin + k + 1] - first)


@func
def outside(kind, h, z, un, level, still, states, g):
    """Return depth and outward velocity beyond a boundary face, and those that the flux takes for the inside.

    ``(H_b, u_b) = states[kind](H, z_b, u_n, level, still, g)``; what is imposed counts on both sides.
    """
    depth = h
    speed = un
    near = h
    along = un
    for k in range(len(states)):
        if kind == k:
            depth, speed = states[k](h, z, un, level, still, g)
            if states[k].imposed:
                near = depth
                along = speed
    return depth, speed, near, along


@func
def boundary_flux(h, e, a, b, nx, ny, kind, level, still, states, g):
    """Mass and momentum less ``g H^2 / 2`` of the cell, out of a boundary face, a unit of length: `hll` of both states.

    ``(m, q n_x - m u_t n_y, q n_y + m u_t n_x)`` with the mass flux ``m``, that of normal momentum ``q``, and the
    velocity ``u_t`` along the face.
    """
    un = a * nx + b * ny
    z = e - h
    depth, speed, near, along = outside(kind, h, z, un, level, still, states, g)
    mass, push, _ = hll(near, along, depth, speed, g)
    push += 0.5 * g * (near - h) * (near + h)
    carried = mass * (b * nx - a * ny)
    return mass, push * nx - carried * ny, push * ny + carried * nx


@func
def boundary_state(kind, row, series, ends, clock, start, stage, samples, spacing):
    """Return the kind of a boundary face now, and its level: that of the series, ``s(t)``, and that of water at rest.

    ``t = -clock[stage]`` is the time of the stage since ``start``, when the series begin.
    """
    t = -clock[stage]
    now = select(start + t > ends[2 * row], WALL, kind)
    return now, sample(series, 0, samples, spacing, t), ends[2 * row + 1]


@kernel
def boundary_flat(
    u: Read, zb: Read, face: Read, shape: Read, kind: Read, row: Read, series: Read, ends: Read, clock: Read,
    res: Inc,
    *, g: float, eps: float, cfl: float, longest: float, span: float, start: float, spacing: float,
    samples: Const[int], stage: Const[int], states: Const[tuple[WaterState, ...]],
):  # fmt: skip
    """Flux through a boundary face, first order, ``R += l F``; the mass is noted a second time, for the balance."""
    now, level, still = boundary_state(kind[0], row[0], series, ends, clock, start, stage, samples, spacing)
    f = desingularised(u[0], eps)
    a = f * u[1]
    b = f * u[2]
    mass, fx, fy = boundary_flux(u[0], u[0] + zb[0], a, b, face[0], face[1], now, level, still, states, g)
    rate = step_rate(clock, stage, cfl, longest, span)
    found = min(mass, most_out(u, shape, face[0], face[1], rate, eps))
    fx += (found - mass) * a
    fy += (found - mass) * b
    mass = found
    length = face[2]
    res[0] += length * mass
    res[1] += length * fx
    res[2] += length * fy
    res[3] += length * mass


@kernel
def boundary_linear(
    u: Read, zb: Read, gradient: Read, face: Read, arm: Read, shape: Read, kind: Read, row: Read, series: Read,
    ends: Read, clock: Read, res: Inc,
    *, g: float, eps: float, cfl: float, longest: float, span: float, start: float, spacing: float,
    samples: Const[int], stage: Const[int], states: Const[tuple[WaterState, ...]],
):  # fmt: skip
    """Flux through a boundary face, second order at walls, ``R += l (F + g (h + H)(e - E) n / 2)``.

    The mass is noted a second time, for the balance. At open faces the values of the cell are taken: nothing limits a
    gradient towards the outside.
    """
    now, level, still = boundary_state(kind[0], row[0], series, ends, clock, start, stage, samples, spacing)
    near = 0.0
    for k in range(len(states)):
        if now == k and states[k].wall:
            near = 1.0
    h, e, a, b, p = at_face(u, zb[0], gradient, near * arm[0], near * arm[1], eps)
    mass, fx, fy = boundary_flux(h, e, a, b, face[0], face[1], now, level, still, states, g)
    rate = step_rate(clock, stage, cfl, longest, span)
    found = min(mass, most_out(u, shape, face[0], face[1], rate, eps))
    fx += (found - mass) * a
    fy += (found - mass) * b
    mass = found
    length = face[2]
    res[0] += length * mass
    res[1] += length * (fx + g * p * face[0])
    res[2] += length * (fy + g * p * face[1])
    res[3] += length * mass


@kernel
def pour(
    u: Read, shape: Read, given: Read, clock: Read, res: Inc,
    *, eps: float, spacing: float, samples: Const[int], stage: Const[int],
):  # fmt: skip
    """Add rain, m/s, and the stress of the wind over the density of the water, m^2/s^2, each a series of a cell.

    ``R_H -= A rain(t)``, ``R_u -= A min(H / (100 eps), 1) tau(t)``: on water below ``100 eps`` the stress falls with
    the depth. Rain has no momentum, and is noted a second time, for the balance.
    """
    t = -clock[stage]
    area = 1.0 / shape[0]
    rain = area * sample(given, 0, samples, spacing, t)
    part = area * min(u[0] / (_RUFFLED * eps), 1.0)
    res[0] -= rain
    res[1] -= part * sample(given, samples, samples, spacing, t)
    res[2] -= part * sample(given, 2 * samples, samples, spacing, t)
    res[3] -= rain


@func
def still(a):
    """Zero for a velocity with ``u^2 < 1e-36``: ahead of a wave they fall without end, into slow tiny numbers."""
    return select(a * a < _STILL * _STILL, 0.0, a)


@func
def settled(depth, hu, hv, eps):
    """Return depth and velocity of a new state, ``f(H) Hu`` by `desingularised`: no negative depth, thin water slowed.

    ``u = f(H) Hu``, ``H = 0`` for ``H < 1e-12 eps``, ``u = 0`` for ``H < 1e-3 eps``.
    """
    depth = select(depth < _NOTHING * eps, 0.0, depth)  # so written that NaN stays NaN
    f = select(depth < _FILM * eps, 0.0, desingularised(depth, eps))
    return depth, still(f * hu), still(f * hv)


@func
def rubbed(h, a, b, h0, hu0, hv0, dt, g, eps, manning):
    """Velocity at the end of a step under friction, from that without it and the state at the start.

    ``dv/dt = w - k |v| v`` with ``k = g n^2 / H^(4/3)`` and the acceleration ``w`` of fluxes and slope together. With
    ``s = tanh(x) / x dt``, ``x = dt sqrt(k |w|)``, and ``r = w - k |v0| v0`` the new velocity is ``v0 + s (r' / (1 + k
    |v0| s) + r" / (1 + k |v0| s / 2))``, ``r'`` along ``v0`` and ``r"`` across. That is a linearly implicit step of
    second order; it stays where slope and friction balance, and it is exact where ``w`` points along ``v0`` or is zero,
    ``v0 / (1 + k |v0| dt)``, however long the step.
    """
    f = desingularised(h0, eps)
    a0 = f * hu0
    b0 = f * hv0
    depth = max(0.5 * (h0 + h), eps)
    k = g * manning * manning / (depth * cbrt(depth))
    speed = sqrt(a0 * a0 + b0 * b0)
    da = a - a0
    db = b - b0
    x = sqrt(dt * k * sqrt(da * da + db * db))
    s = select(x > _SMALL, tanh(x) / max(x, _SMALL), 1.0)
    drag = dt * k * speed
    ra = da - drag * a0
    rb = db - drag * b0
    along = (ra * a0 + rb * b0) / max(speed * speed, _TINY)
    one = s / (1.0 + drag * s)
    half = s / (1.0 + 0.5 * drag * s)
    wet = select(h < _FILM * eps, 0.0, 1.0)
    a1 = a0 + half * ra + (one - half) * along * a0
    b1 = b0 + half * rb + (one - half) * along * b0
    return still(wet * a1), still(wet * b1)


@kernel
def predict(
    u: Read, shape: Read, ahead: Read, res: RW, mid: Write, now: Min, inflow: Inc,
    *, g: float, eps: float, manning: float, rough: Const[int], cfl: float, longest: float, span: float,
):  # fmt: skip
    """First stage, ``mid = U + dt L(U)``; chooses ``dt`` and tells it to the second.

    ``ahead`` is ``(-time, least time scale)``, ``now`` becomes ``(-time, -time after the step)``: both fall from step
    to step, so that their least values are those of the last one. The step ends at ``span`` exactly; two equal
    steps lead there where the last one would be a small rest, and at ``span`` time stands still. With friction
    (``rough`` is 1) the residual of the momentum stays, and the second stage adds to it.
    """
    t = -ahead[0]
    dt = min(cfl * ahead[1], longest)
    left = max(0.0, span - t)
    if left < 2.0 * dt:
        dt = 0.5 * left
    after = t + dt
    if left <= min(cfl * ahead[1], longest):
        after = max(span, t)
    dt = after - t
    now[0] = min(now[0], -t)
    now[1] = min(now[1], -after)
    rate = dt * shape[0]
    h, a, b = settled(u[0] - rate * res[0], u[1] - rate * res[1], u[2] - rate * res[2], eps)
    if rough == 1:
        a, b = rubbed(h, a, b, u[0], u[1], u[2], dt, g, eps, manning)
    mid[0] = h
    mid[1] = h * a
    mid[2] = h * b
    inflow[0] -= 0.5 * dt * res[3]
    res[0] = 0.0
    res[3] = 0.0
    if rough == 0:
        res[1] = 0.0
        res[2] = 0.0


@kernel
def correct(
    u: RW, mid: Read, shape: Read, now: Read, res: RW, ahead: Min, inflow: Inc,
    *, g: float, eps: float, manning: float, rough: Const[int],
):  # fmt: skip
    """Second stage, ``U = (U + mid + dt L(mid)) / 2``, and the time scale ``2 A / (P (|v| + c))`` of the result.

    Friction acts anew from the start of the step, under the mean of both accelerations.
    """
    dt = now[0] - now[1]
    rate = dt * shape[0]
    h, a, b = settled(mid[0] - rate * res[0], mid[1] - rate * res[1], mid[2] - rate * res[2], eps)
    depth = 0.5 * (u[0] + h)
    if rough == 1:
        depth, a, b = settled(depth, u[1] - 0.5 * rate * res[1], u[2] - 0.5 * rate * res[2], eps)
        a, b = rubbed(depth, a, b, u[0], u[1], u[2], dt, g, eps, manning)
    else:
        depth, a, b = settled(depth, 0.5 * (u[1] + h * a), 0.5 * (u[2] + h * b), eps)
    u[0] = depth
    u[1] = depth * a
    u[2] = depth * b
    speed = sqrt(a * a + b * b) + sqrt(g * depth)
    scale = shape[1] / select(depth > eps, speed, 1.0)
    ahead[0] = min(ahead[0], now[1])
    ahead[1] = min(ahead[1], select(depth > eps, scale, _LARGE))
    inflow[0] -= 0.5 * dt * res[3]
    for k in range(4):
        res[k] = 0.0


@kernel
def time_scale(u: Read, shape: Read, ahead: Min, *, g: float, eps: float):
    """The time scale of the present state, ``2 A / (P (|u| + sqrt(g H)))``, as `correct` finds it."""
    f = desingularised(u[0], eps)
    a = f * u[1]
    b = f * u[2]
    speed = sqrt(a * a + b * b) + sqrt(g * max(0.0, u[0]))
    scale = shape[1] / select(u[0] > eps, speed, 1.0)
    ahead[1] = min(ahead[1], select(u[0] > eps, scale, _LARGE))


@kernel
def highest(u: Read, zb: Read, top: RW, *, eps: float):
    """Highest surface so far, where there was water: ``top = max(top, H + z_b)``."""
    top[0] = max(top[0], select(u[0] > eps, u[0] + zb[0], DRY))


@kernel
def survey(u: Read, zb: Read, shape: Read, before: RW, sums: Inc, most: Max, *, eps: float):
    """Volume ``sum A H``, ``sum A (H - H_before)^2``, cells with NaN; highest surface ``H + z_b`` and speed ``|u|``."""
    area = 1.0 / shape[0]
    change = u[0] - before[0]
    sums[0] += area * u[0]
    sums[1] += area * change * change
    sums[2] += 0.0 if isfinite(u[0] + u[1] + u[2]) else 1.0
    before[0] = u[0]
    f = desingularised(u[0], eps)
    most[0] = max(most[0], select(u[0] > eps, u[0] + zb[0], DRY))
    most[1] = max(most[1], f * sqrt(u[1] * u[1] + u[2] * u[2]))


@kernel
def drawn_in(
    u: Read, face: Read, kind: Read, drawn: Inc, *, g: float, eps: float, states: Const[tuple[WaterState, ...]]
):  # fmt: skip
    """Volume that comes in through an outflow, a unit of time, ``-l H u_n`` where ``u_n < -0.001 sqrt(g H)``."""
    speed = desingularised(u[0], eps) * (u[1] * face[0] + u[2] * face[1])
    inward = -face[2] * u[0] * speed if speed < -1.0e-3 * sqrt(g * u[0]) else 0.0
    for k in range(len(states)):
        if kind[0] == k and states[k].unbounded:
            drawn[0] += inward


@kernel
def sum_passed(load: RW, u: Read, zb: Read, face: Read, chosen: Read, sums: Inc):
    """Add what leaves through chosen faces, ``sum l``, ``sum l H`` and ``sum l (H + z_b)`` behind them. Clear loads."""
    if chosen[0] == 1:
        sums[0] += load[3]
        sums[1] += face[2]
        sums[2] += face[2] * u[0]
        sums[3] += face[2] * (u[0] + zb[0])
    for k in range(4):
        load[k] = 0.0


@kernel
def primitive(u: Read, zb: Read, w: Write, *, eps: float):
    """Depth, surface and velocity of a cell, ``(H, H + z_b, Hu / H)``; the velocity is 0 where it is dry."""
    wet = u[0] > eps
    depth = u[0] if wet else 1.0
    w[0] = u[0]
    w[1] = u[0] + zb[0]
    w[2] = u[1] / depth if wet else 0.0
    w[3] = u[2] / depth if wet else 0.0


@kernel
def sample_water(u: Read, zb: Read, found: Write, *, eps: float):
    """Depth, surface and velocity of a cell, ``(H, H + z_b, f(H) Hu)`` by `desingularised`."""
    f = desingularised(u[0], eps)
    found[0] = u[0]
    found[1] = u[0] + zb[0]
    found[2] = f * u[1]
    found[3] = f * u[2]
