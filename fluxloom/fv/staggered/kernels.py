r"""Incompressible flow on a staggered grid: central differences of second order that keep the kinetic energy.

Component ``a`` of the velocity is at the lower face of a cell along ``a``, the pressure in the middle (F. H. Harlow,
J. E. Welch, *Physics of Fluids* 8 (1965) 2182-2189). The rate of a component is

.. math:: H_a = -\sum_b \delta_b (\overline{u_b}^{\,a} \, \overline{u_a}^{\,b}) + \nu \sum_b \delta_b \delta_b u_a + f_a

What is carried is the plain mean of two neighbours; what carries it, the flux through the side of the shifted cell, is
weighted with the halves of the cells beside the face. So the convective terms are skew-symmetric and do no work where
the divergence vanishes, on stretched grids too (Y. Morinishi, T. S. Lund, O. V. Vasilyev, P. Moin, *Journal of
Computational Physics* 143 (1998) 90-124; R. W. C. P. Verstappen, A. E. P. Veldman, *ibid.* 187 (2003) 343-368).

One axis may be stretched. Along it ``metric[0]`` is one over the width of a cell, and ``metric[1]`` one over the
distance from the middle of the lower neighbour; along the others both are the same everywhere (`Spacing`).
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.access import RW, Const, Inc, Max, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import fabs, zeros

__all__ = [
    "Spacing", "add_force", "add_impulse", "advance_outflow", "advance_outflow_in_time", "centred",
    "correct", "correct_and_look", "divergence", "divergence_and_flow", "fill_ghosts", "let_in", "momentum",
    "put_component", "sample", "scale_outflow", "scale_outflow_in_time", "side_force", "side_speed", "side_sums",
]  # fmt: skip


@dataclass(frozen=True)
class Spacing:
    """How wide cells are.

    Attributes
    ----------
    axis
        That is stretched; -1: none is.
    x, y, z
        One over the width of cells along the others.
    """

    axis: int
    x: float
    y: float
    z: float

    @func
    def along(self, m, leg, k, b):
        """Return component ``k`` of the metric at a leg, along the axis ``b``: ``1 / dx_b``."""
        value = self.x if b == 0 else (self.y if b == 1 else self.z)
        if b == self.axis:
            value = m[leg][k]
        return value


@func
def convect(carrier, low, high):
    """Flux of a component: what carries it times the mean of two neighbours, ``carrier (low + high) / 2``."""
    return 0.5 * carrier * (low + high)


@func
def rate(u, m, a, d, spacing, pair, nu):
    """Convection and diffusion of component ``a`` at its face, ``sum_b d_b(nu d_b u_a - mean(u_b) mean(u_a))``.

    See the module; ``pair[a][b]`` is the leg of component ``b`` beyond both faces.
    """
    total = 0.0
    below = spacing.along(m, 2 + 2 * a, 0, a)
    weight = 0.5
    if a == spacing.axis:
        weight = 0.5 * m[0][1] / below
    for b in range(d):
        here = u[0][a]
        up = u[1 + 2 * b][a]
        down = u[2 + 2 * b][a]
        cell = spacing.along(m, 0, 0, b)
        face = spacing.along(m, 0, 1, b)
        if a == b:
            high = convect(0.5 * (here + up), here, up) - nu * cell * (up - here)
            low = convect(0.5 * (down + here), down, here) - nu * below * (here - down)
            total -= face * (high - low)
        else:
            next_face = spacing.along(m, 1 + 2 * b, 1, b)
            above = weight * u[pair[a][b]][b] + (1.0 - weight) * u[1 + 2 * b][b]
            under = weight * u[2 + 2 * a][b] + (1.0 - weight) * u[0][b]
            high = convect(above, here, up) - nu * next_face * (up - here)
            low = convect(under, down, here) - nu * face * (here - down)
            total -= cell * (high - low)
    return total


@kernel
def momentum(
    u: Read, m: Read, inside: Read, old: RW, star: Write, *, d: Const[int], spacing: Const[Spacing],
    pair: Const[list[list[int]]], nu: float, now: float, before: float, fx: float, fy: float, fz: float,
):  # fmt: skip
    """``u* = u + now H + before H_before`` at faces between two cells; elsewhere the velocity stays."""
    for a in range(d):
        force = fx if a == 0 else (fy if a == 1 else fz)
        h = force + rate(u, m, a, d, spacing, pair, nu)
        step = now * h + before * old[a]
        star[a] = u[0][a] + (step if inside[a] > 0 else 0.0)
        old[a] = h if inside[a] > 0 else 0.0


@func
def leaving(u, m, d, spacing):
    """Return what leaves a cell over its volume, ``sum_a (u_a(x + dx_a) - u_a(x)) / dx_a``."""
    total = 0.0
    for a in range(d):
        total += spacing.along(m, 0, 0, a) * (u[1 + a][a] - u[0][a])
    return total


@kernel
def divergence(star: Read, m: Read, out: Write, *, d: Const[int], spacing: Const[Spacing]):
    """What leaves a cell over its volume, ``sum_a (u*_a(x + dx_a) - u*_a(x)) / dx_a``."""
    out[0] = leaving(star, m, d, spacing)


@kernel
def divergence_and_flow(
    star: Read, m: Read, fluid: Read, out: Write, flow: Inc, *, d: Const[int], spacing: Const[Spacing],
    kept: Const[int],
):  # fmt: skip
    """What leaves a cell over its volume, `leaving`; ``flow += V u_a`` of the component ``kept``, over faces of cells.

    ``fluid`` is the volume of a cell, zero outside; a component counts half of each of the two cells at its face.
    """
    out[0] = leaving(star, m, d, spacing)
    flow[0] += 0.5 * fluid[0] * (star[1 + kept][kept] + star[0][kept])


@func
def corrected(star, q, m, inside, flow, a, spacing, kept, mean, volume, part):
    """Return component ``a`` of ``u* - part grad q``, and what keeps the mean velocity along one axis (-1: none)."""
    value = star[a] - part * spacing.along(m, 0, 1, a) * (q[0] - q[1 + a])
    if a == kept:
        value += mean - flow[0] / volume
    return value if inside[a] > 0 else star[a]


@kernel
def correct(
    star: Read, q: Read, m: Read, inside: Read, flow: Read, u: Write, *, d: Const[int], spacing: Const[Spacing],
    kept: Const[int], mean: float, volume: float, part: float,
):  # fmt: skip
    """The velocity of a stage, ``u = u* - part grad q``: see `corrected`."""
    for a in range(d):
        u[a] = corrected(star, q, m, inside, flow, a, spacing, kept, mean, volume, part)


@kernel
def correct_and_look(
    star: Read, q: Read, m: Read, inside: Read, flow: Read, u: RW, fluid: Read, change: Inc, *, d: Const[int],
    spacing: Const[Spacing], kept: Const[int], mean: float, volume: float, part: float,
):  # fmt: skip
    """The velocity of a stage, ``u = u* - part grad q``, and ``sum V |u - u_before|^2``."""
    for a in range(d):
        value = corrected(star, q, m, inside, flow, a, spacing, kept, mean, volume, part)
        step = value - u[a]
        change[0] += fluid[0] * step * step
        u[a] = value


@kernel
def fill_ghosts(u: RW, keep: Read, slope: Read, value: Read, *, d: Const[int]):
    """Places beyond a side, leg 0: ``keep u + slope u_inner + value``; so the side has its velocity or its friction."""
    for a in range(d):
        u[0][a] = keep[a] * u[0][a] + slope[a] * u[1][a] + value[a]


@kernel
def advance_outflow(
    inner: Read, u: Read, star: RW, side: Read, total: Inc, *, d: Const[int], dt: float, speed: float
):  # fmt: skip
    """``du/dt + U du/dn = 0`` at faces of outflow; ``total`` is what leaves through them.

    ``side`` has the axis of the face, its outward sign over the distance to the next face, and sign times area.
    """
    for a in range(d):
        if side[0] == a:
            value = u[a] - dt * speed * fabs(side[1]) * (u[a] - inner[a])
            star[a] = value
            total[0] += side[2] * value


@kernel
def scale_outflow(star: RW, side: Read, total: Read, *, d: Const[int], inflow: float, area: float):
    """Add the same to all faces of outflow, ``(inflow - total) / area`` outward, so that what comes in goes out."""
    for a in range(d):
        if side[0] == a:
            sign = 1.0 if side[2] > 0.0 else -1.0
            star[a] += sign * (inflow - total[0]) / area


@kernel
def let_in(value: Read, side: Read, star: RW, inflow: Inc, *, d: Const[int]):
    """The velocity through faces of sides where it is given, ``u* = u``, and what comes in, ``(sum u A, sum |u| A)``.

    ``side`` has the axis of the face, and its area with the sign of what comes in.
    """
    for a in range(d):
        if side[0] == a:
            star[a] = value[0]
    inflow[0] += side[1] * value[0]
    inflow[1] += fabs(side[1] * value[0])


@kernel
def advance_outflow_in_time(
    inner: Read, u: Read, star: RW, side: Read, inflow: Read, total: Inc, *, d: Const[int], dt: float, area: float
):  # fmt: skip
    """`advance_outflow` where what comes in changes, ``U = max(inflow, 0) / area``."""
    speed = max(inflow[0], 0.0) / area
    for a in range(d):
        if side[0] == a:
            value = u[a] - dt * speed * fabs(side[1]) * (u[a] - inner[a])
            star[a] = value
            total[0] += side[2] * value


@kernel
def scale_outflow_in_time(star: RW, side: Read, total: Read, inflow: Read, *, d: Const[int], area: float):
    """`scale_outflow`, ``(inflow - total) / area``, where what comes in changes."""
    for a in range(d):
        if side[0] == a:
            sign = 1.0 if side[2] > 0.0 else -1.0
            star[a] += sign * (inflow[0] - total[0]) / area


@kernel
def side_speed(value: Read, most: Max, *, d: Const[int]):
    """The largest velocity along a side so far, ``max(|u_a|)``, where ``value = 2 u_a``."""
    for a in range(d):
        most[a] = max(most[a], 0.5 * fabs(value[a]))


@kernel
def put_component(value: Read, force: RW, *, component: Const[int]):
    """One component of a force, ``f_a = value``, at its faces."""
    force[component] = value[0]


@kernel
def add_force(force: Read, inside: Read, star: RW, old: RW, *, d: Const[int], now: float):
    """A force that differs from place to place, behind `momentum`: ``u* += now f``, ``H += f``."""
    for a in range(d):
        star[a] += now * force[a] if inside[a] > 0 else 0.0
        old[a] += force[a] if inside[a] > 0 else 0.0


@kernel
def sample(
    u: Read, m: Read, fluid: Read, energy: Inc, bulk: Inc, speed: Max, source: Max, *, d: Const[int],
    spacing: Const[Spacing],
):  # fmt: skip
    """Kinetic energy ``sum V u^2 / 2``, ``sum V u``, ``max sum |u_a| / dx_a``, and the most that leaves a cell."""
    fast = 0.0
    for a in range(d):
        cell = spacing.along(m, 0, 0, a)
        fast += cell * max(fabs(u[0][a]), fabs(u[1 + a][a]))
        bulk[a] += 0.5 * fluid[0] * (u[0][a] + u[1 + a][a])
        energy[0] += 0.25 * fluid[0] * (u[0][a] * u[0][a] + u[1 + a][a] * u[1 + a][a])
    speed[0] = max(speed[0], fast if fluid[0] > 0.0 else 0.0)
    source[0] = max(source[0], fluid[0] * fabs(leaving(u, m, d, spacing)))


@kernel
def add_impulse(q: Read, p: RW, *, part: float):
    """``p = q + part p``: the potential of the last stage, and what that of the step before did in the others."""
    p[0] = q[0] + part * p[0]


@kernel
def centred(u: Read, centre: Write, spread: Write, *, d: Const[int]):
    """Velocity in the middle of cells, ``(u_0 + u_1) / 2``, and ``(u_1 - u_0)^2 / 4``.

    The second is what the squares at the two faces have in the mean beyond the square of the first.
    """
    for a in range(d):
        centre[a] = 0.5 * (u[0][a] + u[1 + a][a])
        spread[a] = 0.25 * (u[1 + a][a] - u[0][a]) * (u[1 + a][a] - u[0][a])


@kernel
def side_force(
    u: Read, q: Read, friction: Read, push: Read, half: Read, force: Read, load: Write, total: Inc, *, d: Const[int],
    scale: float,
):  # fmt: skip
    """Force on a side, of unit density: friction ``nu A (u_1 - u_0) / h``, legs 0 beyond and 1 inside, and pressure.

    ``F_n = +-A (scale q + h / 2 f_e + (u_e / 2)^2 + nu u_e / h)`` of the pressure: that of the cell and what
    `fluxloom.fv.staggered.sides.side_weights` says, with the velocity ``u_e`` at the next face inside (leg 2). ``load``
    has both parts of the force, and the pressure.
    """
    load[d + d] = 0.0
    for a in range(d):
        more = half[0] * force[a] + half[1] * u[2][a] * u[2][a] + half[2] * u[2][a]
        total[a] += friction[a] * (u[1][a] - u[0][a]) + push[a] * (scale * q[0] + more)
        load[a] = push[a] * (scale * q[0] + more)
        load[d + a] = friction[a] * (u[1][a] - u[0][a])
        if push[a] != 0.0:
            load[d + d] = scale * q[0] + more


@kernel
def side_sums(load: Read, arm: Read, push: Read, u: Read, sums: Inc, *, d: Const[int], upper: Const[int]):
    """Sums over a side: force of the pressure, the moment of all of ``load``, what leaves, and means.

    ``arm`` has for each component of the force the place where it acts, ``(d, d)``; ``u`` is as of `side_force`, and
    the faces of an ``upper`` side are stored beyond it. The sums are the force, the moment, ``u . n A``, ``p A``,
    ``u^2 A / 2`` and ``A``.
    """
    push3 = zeros(3)
    whole = zeros(3)
    place = zeros(9)
    through = 0.0
    area = 0.0
    square = 0.0
    for a in range(d):
        push3[a] = load[a]
        whole[a] = load[a] + load[d + a]
        speed = 0.5 * (u[0][a] + u[1][a])
        if push[a] != 0.0:
            speed = u[0][a] if upper == 1 else u[1][a]
        through += speed * push[a]
        area += fabs(push[a])
        square += 0.5 * speed * speed
        for b in range(d):
            place[3 * a + b] = arm[d * a + b]
    for k in range(3):
        m = (k + 1) % 3
        n = (k + 2) % 3
        sums[k] += push3[k]
        sums[3 + k] += place[3 * n + m] * whole[n] - place[3 * m + n] * whole[m]
    sums[6] += through
    sums[7] += load[d + d] * area
    sums[8] += square * area
    sums[9] += area
