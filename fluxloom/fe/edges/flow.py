r"""Kernels of incompressible flow on the edges of linear triangles and tetrahedra.

Each kernel belongs to one point ``I`` and gathers from its neighbours ``J``; ``edge[j]`` are the packed integrals of
`fluxloom.fe.edges.kernels`. With the lumped mass ``M``, and the nodal projections ``xi`` of convection and ``pi`` of
the slope of the pressure,

.. math::
   M \xi_I &= \sum_J (\nabla_{IJ} \cdot w_{IJ}) (u_J - u_I) \; [+ \tfrac12 u_I \sum_J \nabla_{IJ} \cdot (u_J - u_I)] \\
   M \pi_I &= \sum_J \nabla_{IJ} (p_J - p_I) \\
   M \dot u_I &= M (b - \xi - \pi) - \sum_J \nu_{IJ} L_{IJ} (u_J - u_I) - \tau_I \Big[
      \sum_J (\bar u^T L^d_{IJ} \bar u) (u_J - u_I)
      - \sum_J (G_{IJ} \cdot u_I) \xi_J - (\nabla_{IJ} \cdot u_I) \xi_I \Big] \\
   0 &= \sum_J \nabla_{IJ} \cdot (u_J - u_I) + \sum_J \tau_{IJ} \big[ L_{IJ} (p_J - p_I)
      - G_{IJ} \cdot \pi_J + \nabla_{IJ} \cdot \pi_I \big]

``L`` is the trace of ``L^d``. The brackets are the stabilisation by orthogonal subscales, split into that of convection
and that of pressure. ``w_IJ = u_I`` is the advective form of the nodal implementation; with ``w_IJ = (u_I + u_J) / 2``
and the term in brackets convection is skew-symmetric, and neither makes nor takes kinetic energy. The subscales take
this mean, ``u`` with a bar, in either form: with ``u_I`` instead the two sums differ by ``M ((u . grad) u) . grad u``
where the flow is smooth, an error of first order as ``tau`` is.

Sources: R. Codina, Applied Numerical Mathematics 58 (2008) 264-283 (orthogonal subscales, split); R. Codina, A. Folch,
International Journal for Numerical Methods in Fluids 44 (2004) 483-503 (nodal implementation, fractional steps).
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Max, Read, Write
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import abs, exp, log, max, min, sqrt, zeros

__all__ = [
    "assemble_pressure",
    "constrain",
    "continuity",
    "continuity_terms",
    "convection",
    "correct",
    "energy",
    "fill_diagonal",
    "friction",
    "imbalance",
    "load_sums",
    "mirror_tensor",
    "mirror_vector",
    "pressure_slope",
    "reaction",
    "relaxation",
    "show",
    "stage",
    "stiffness",
    "total_viscosity",
    "turning_friction",
    "velocity_gradient",
]


@func
def subscale_time(speed, nu, size, dt, dynamic, viscous, convective):
    """``tau = 1 / (c_t / dt + c_1 nu / h^2 + c_2 |u| / h)``, s."""
    return 1.0 / (dynamic / dt + viscous * nu / (size * size) + convective * speed / size)


@func
def length(u, d):
    """``|u| = sqrt(sum_a u_a^2)``."""
    total = 0.0
    for a in range(d):
        total += u[a] * u[a]
    return sqrt(total)


@kernel
def stiffness(edge: Read, result: Write, *, d: Const[int]):
    """``L_IJ = tr L^d_IJ = sum_a int d_a N_I d_a N_J`` of one entry."""
    total = 0.0
    for a in range(d):
        total += edge[1 + (d + 1) * a]
    result[0] = total


@kernel
def convection(edge: Read, u: Read, own: Read, mass: Read, xi: Write, *, d: Const[int], skew: Const[float]):
    """``M xi_I = sum_J (grad_IJ . w_IJ) (u_J - u_I) + skew u_I sum_J grad_IJ . (u_J - u_I)``.

    The nodal projection of ``(u . grad) u``, with ``w_IJ = u_I + skew (u_J - u_I)``; ``skew``: 0 for the advective
    form, 1/2 for the skew-symmetric one.
    """
    total = zeros(d)
    divergence = 0.0
    for j in range(len(edge)):
        flux = 0.0
        for a in range(d):
            rise = u[j][a] - own[a]
            flux += edge[j][1 + d * d + a] * (own[a] + skew * rise)
            divergence += edge[j][1 + d * d + a] * rise
        for a in range(d):
            total[a] += flux * (u[j][a] - own[a])
    for a in range(d):
        xi[a] = (total[a] + skew * divergence * own[a]) / mass[0]


@kernel
def pressure_slope(edge: Read, p: Read, own: Read, mass: Read, slope: Write, *, d: Const[int]):
    """``pi_I = sum_J grad_IJ (p_J - p_I) / M_I``, the nodal projection of ``grad p``."""
    total = zeros(d)
    for j in range(len(edge)):
        rise = p[j] - own[0]
        for a in range(d):
            total[a] += edge[j][1 + d * d + a] * rise
    for a in range(d):
        slope[a] = total[a] / mass[0]


@func
def uneven(edge, u, own, nu, nu_own, mass, ends, twist, d):
    """``twist_a = M (d_a u_b d_b nu - d_b u_b d_a nu) / 2 + nu d_a u_b A_b``, summed over ``b``; ``ends`` is ``A``.

    The first part edges lack of the transposed gradient: ``int d_b N_I d_a N_J - d_a N_I d_b N_J`` of an edge is 0
    inside, whatever its cells have, so that its mean viscosity leaves out what differs from cell to cell. The second
    is its traction on the area ``ends`` of outflows, where ``nu du/dn`` alone is free, and of inflows, so that walls
    beside them do not bear it.
    """
    layer = zeros(d)
    slope = zeros(d * d)
    for j in range(len(edge)):
        for a in range(d):
            layer[a] += edge[j][1 + d * d + a] * (nu[j] - nu_own[0])
            for b in range(d):
                slope[d * a + b] += edge[j][1 + d * d + a] * (u[j][b] - own[b])
    for a in range(d):
        total = 0.0
        for b in range(d):
            total += slope[d * a + b] * layer[b] - slope[d * b + b] * layer[a]
        twist[a] = 0.5 * total / mass[0]
        for b in range(d):
            twist[a] += nu_own[0] * slope[d * a + b] * ends[b] / mass[0]


@kernel
def stage(
    edge: Read, u: Read, own: Read, xi: Read, xi_own: Read, nu: Read, nu_own: Read, mass: Read, size: Read,
    load: Read, slope: Read, start: Read, dt: Read, ends: Read | None, sums: RW, out: Write,
    *, d: Const[int], transposed: Const[int], place: Const[int], ahead: Const[float], weight: Const[float],
    dynamic: float, viscous: float, convective: float,
):  # fmt: skip
    r"""A stage of Runge and Kutta's method, ``k = du/dt``: ``sums += weight dt k``, ``out = start + ahead dt k``.

    .. math::
       k_I = b - \pi_I - \xi_I - \frac{1}{M_I} \sum_J \bigl[(\nu_{IJ} L_{IJ}
       + \tau_I \bar u^T L^d_{IJ} \bar u) (u_J - u_I) - \tau_I (G_{IJ} \cdot u_I) \xi_J\bigr]

    ``place``: 0 for the first stage, which begins the sums; 2 for the last one, where ``out`` is the new velocity. As
    rows of the gradient add up to 0, ``sum_J (grad_IJ . u_I) xi_I`` is left out; each point is its own neighbour too.
    ``transposed``: 1 adds ``-sum_J nu_IJ (L^d_IJ)^T (u_J - u_I) / M_I``, ``ends`` adds ``twist / M_I`` (`uneven`).
    """
    rate = zeros(d)
    tau = subscale_time(length(own, d), nu_own[0], size[0], dt[0], dynamic, viscous, convective)
    for j in range(len(edge)):
        trace = 0.0
        along = 0.0
        weak = 0.0
        for a in range(d):
            trace += edge[j][1 + (d + 1) * a]
            weak += edge[j][1 + d * d + d + a] * own[a]
            for b in range(d):
                along += 0.25 * (own[a] + u[j][a]) * edge[j][1 + d * a + b] * (own[b] + u[j][b])
        mean = 0.5 * (nu[j] + nu_own[0])
        for a in range(d):
            rise = u[j][a] - own[a]
            rate[a] -= (mean * trace + tau * along) * rise - tau * weak * xi[j][a]
            if transposed == 1:
                for b in range(d):
                    rate[a] -= mean * edge[j][1 + d * b + a] * (u[j][b] - own[b])
    if ends is not None:
        twist = zeros(d)
        uneven(edge, u, own, nu, nu_own, mass, ends, twist, d)
        for a in range(d):
            rate[a] += twist[a]
    for a in range(d):
        k = dt[0] * (rate[a] / mass[0] + load[a] - slope[a] - xi_own[a])
        if place == 0:
            sums[a] = start[a] + weight * k
            out[a] = start[a] + ahead * k
        elif place == 1:
            sums[a] += weight * k
            out[a] = start[a] + ahead * k
        else:
            out[a] = sums[a] + weight * k


@kernel
def constrain(projection: Read, given: Read, u: RW, *, d: Const[int]):
    """``u_a = g_a + sum_b P_ab u_b`` at a point of the boundary: ``projection`` is ``P``, ``given`` is ``g``."""
    before = zeros(d)
    for a in range(d):
        before[a] = u[a]
    for a in range(d):
        total = given[a]
        for b in range(d):
            total += projection[d * a + b] * before[b]
        u[a] = total


@kernel
def mirror_vector(normals: Read, u: RW, *, d: Const[int]):
    """``u = u - (u . n_m) n_m`` for the unit normals ``n_m`` of planes of symmetry: with its image it adds up to 0."""
    for m in range(d):
        along = 0.0
        for a in range(d):
            along += normals[d * m + a] * u[a]
        for a in range(d):
            u[a] -= along * normals[d * m + a]


@kernel
def mirror_tensor(normals: Read, tensor: RW, *, d: Const[int]):
    """``g = (g + R g R) / 2``, ``R = I - 2 n n^T``, of the gradient ``(3, 3)`` at a point in planes of symmetry.

    The mean of the gradient and of its images: ``g - n n^T g - g n n^T + 2 n (n^T g n) n^T``.
    """
    first = zeros(d)
    second = zeros(d)
    for m in range(d):
        both = 0.0
        for a in range(d):
            first[a] = 0.0
            second[a] = 0.0
            for b in range(d):
                first[a] += tensor[3 * a + b] * normals[d * m + b]
                second[a] += tensor[3 * b + a] * normals[d * m + b]
            both += first[a] * normals[d * m + a]
        for a in range(d):
            for b in range(d):
                tensor[3 * a + b] += (
                    2.0 * both * normals[d * m + a] * normals[d * m + b]
                    - first[a] * normals[d * m + b]
                    - normals[d * m + a] * second[b]
                )


@kernel
def relaxation(
    u: Read, nu: Read, size: Read, dt: Read, tau: Write,
    *, d: Const[int], factor: float, dynamic: float, viscous: float, convective: float,
):  # fmt: skip
    """``tau_I = factor / (c_t / dt + c_1 nu / h^2 + c_2 |u| / h)``, that of the pressure."""
    tau[0] = factor * subscale_time(length(u, d), nu[0], size[0], dt[0], dynamic, viscous, convective)


@kernel
def assemble_pressure(
    k: Read, tau: Read, tau_own: Read, free: Read, free_own: Read, dt: Read, h: Write, diagonal: Write
):
    """A row of the pressure matrix ``H_IJ = (tau_IJ + dt / 2) L_IJ``, and its diagonal ``-sum_J H_IJ``.

    ``k`` is 0 where the point meets itself. Rows and columns of a given pressure have their diagonal alone.
    """
    total = 0.0
    for j in range(len(k)):
        value = (0.5 * (tau[j] + tau_own[0]) + 0.5 * dt[0]) * k[j]
        total -= value
        h[j] = free_own[0] * free[j] * value
    diagonal[0] = total


@kernel
def fill_diagonal(diagonal: Read, entry: Write, inverse: Write):
    """``h_II = H_II`` put into its entry, and ``inverse = 1 / H_II`` aside."""
    entry[0] = diagonal[0]
    inverse[0] = 1.0 / diagonal[0]


@func
def excess(edge, p, p_own, slope, slope_own, d):
    """``e_IJ = L_IJ (p_J - p_I) - G_IJ . pi_J + grad_IJ . pi_I``: what the pressure has beyond its projected slope.

    Of one neighbour; ``p`` and ``p_own`` are numbers.
    """
    trace = 0.0
    part = 0.0
    for a in range(d):
        trace += edge[1 + (d + 1) * a]
        part += edge[1 + d * d + d + a] * slope[a] - edge[1 + d * d + a] * slope_own[a]
    return trace * (p - p_own) - part


@func
def through(edge, u, own, p, p_own, tau, slope, slope_own, d):
    """``c_IJ = grad_IJ . (u_J - u_I) + tau_IJ e_IJ``: what one neighbour adds to continuity.

    ``p`` and ``p_own`` are numbers.
    """
    total = 0.0
    for a in range(d):
        total += edge[1 + d * d + a] * (u[a] - own[a])
    return total + tau * excess(edge, p, p_own, slope, slope_own, d)


@kernel
def continuity(
    edge: Read, u: Read, own: Read, p: Read, p_own: Read, tau: Read, tau_own: Read, slope: Read, slope_own: Read,
    free: Read, b: Write, *, d: Const[int],
):  # fmt: skip
    """``b_I = -sum_J [grad_IJ . (u_J - u_I) + tau_IJ e_IJ]`` where ``p`` is free: the right-hand side for its rise."""
    total = 0.0
    for j in range(len(edge)):
        mean = 0.5 * (tau[j] + tau_own[0])
        total += through(edge[j], u[j], own, p[j], p_own[0], mean, slope[j], slope_own, d)
    b[0] = -free[0] * total


@kernel
def continuity_terms(edge: Read, u: Read, own: Read, free: Read, squares: Inc, *, d: Const[int]):
    """``squares = sum_I (sum_J sum_a |grad_IJ,a| (|u_J,a| + |u_I,a|) / 2)^2`` where the pressure is free.

    How large the terms of the velocity in continuity are.
    """
    total = 0.0
    for j in range(len(edge)):
        for a in range(d):
            total += 0.5 * abs(edge[j][1 + d * d + a]) * (abs(u[j][a]) + abs(own[a]))
    squares[0] += free[0] * total * total


@kernel
def imbalance(
    edge: Read, u: Read, own: Read, p: Read, p_own: Read, tau: Read, tau_own: Read, slope: Read, slope_own: Read,
    rise: Read, rise_own: Read, free: Read, dt: Read, worst: Max, *, d: Const[int],
):  # fmt: skip
    """``max_I |b_I|``, ``b_I = sum_J [grad_IJ . (u_J - u_I) + tau_IJ e_IJ + dt L_IJ (r_J - r_I) / 2]``.

    Where the pressure is free: what the pressure solver has left of continuity. ``rise`` is ``r``.
    """
    total = 0.0
    for j in range(len(edge)):
        mean = 0.5 * (tau[j] + tau_own[0])
        trace = 0.0
        for a in range(d):
            trace += edge[j][1 + (d + 1) * a]
        total += through(edge[j], u[j], own, p[j], p_own[0], mean, slope[j], slope_own, d)
        total += 0.5 * dt[0] * trace * (rise[j] - rise_own[0])
    worst[0] = max(worst[0], abs(free[0] * total))


@kernel
def correct(edge: Read, rise: Read, own: Read, mass: Read, dt: Read, hat: Read, p: RW, u: Write, *, d: Const[int]):
    """``u = hat - dt / 2 M^-1 sum_J grad_IJ (rise_J - rise_I)``, ``p = p + rise``."""
    total = zeros(d)
    for j in range(len(edge)):
        step = rise[j] - own[0]
        for a in range(d):
            total[a] += edge[j][1 + d * d + a] * step
    for a in range(d):
        u[a] = hat[a] - 0.5 * dt[0] * total[a] / mass[0]
    p[0] += own[0]


@func
def friction_speed(speed, distance, nu, kappa, constant):
    """``u_*`` of Spalding's law of the wall, ``y+ = u+ + e^(-kappa B) (e^(kappa u+) - 1 - ... - (kappa u+)^3 / 6)``.

    Newton's method for ``u+ y+(u+) = |u| y / nu``, whose left side is convex: from above, where it does not overshoot.
    Both a wall without turbulence and the logarithm of ``|u| y / nu`` instead of ``y+`` give more than ``u+``.

    Source: D. B. Spalding, Journal of Applied Mechanics 28 (1961) 455-458.
    """
    reynolds = max(speed * distance / nu, 1.0e-12)
    plus = min(sqrt(reynolds), log(1.0 + reynolds) / kappa + constant)
    k = 0
    change = 1.0
    while k < 40 and change > 1.0e-10:
        z = kappa * plus
        tail = exp(-kappa * constant)
        power = exp(z)
        height = plus + tail * (power - 1.0 - z - 0.5 * z * z - z * z * z / 6.0)
        rise = 1.0 + tail * kappa * (power - 1.0 - z - 0.5 * z * z)
        step = (plus * height - reynolds) / (height + plus * rise)
        plus -= step
        change = abs(step) / plus
        k += 1
    return speed / plus


@kernel
def friction(
    u: Read, area: Read, mass: Read, nu: Read, body: Read, load: Write,
    *, d: Const[int], distance: float, kappa: float, constant: float,
):  # fmt: skip
    """``load = b - A u_*^2 u_t / M |u_t|``, ``u_t = u - (u . n) n``: body force less the shear at a wall.

    ``area`` is the vector ``A n`` of the point's share of the wall; the velocity is that at ``distance`` from the wall.
    """
    size = length(area, d)
    through = 0.0
    for a in range(d):
        through += u[a] * area[a] / size
    along = zeros(d)
    for a in range(d):
        along[a] = u[a] - through * area[a] / size
    speed = length(along, d)
    shear = 0.0
    if speed > 0.0:
        star = friction_speed(speed, distance, nu[0], kappa, constant)
        shear = star * star / speed * size / mass[0]
    for a in range(d):
        load[a] = body[a] - shear * along[a]


@kernel
def reaction(
    edge: Read, u: Read, own: Read, before: Read, xi: Read, p: Read, p_own: Read, nu: Read, nu_own: Read, mass: Read,
    body: Read, dt: Read, share: Read, push: Read, ends: Read | None, load: Write | None, force: Inc | None,
    *, d: Const[int], transposed: Const[int],
):  # fmt: skip
    r"""Force of the fluid on a point of the wall: what holds it where it is, turned round.

    .. math::
       F_I = p_I A_k - s_k \Bigl[M_I \bigl(\tfrac{u^{n+1}_I - u^n_I}{\Delta t} + \xi_I - b_I\bigr)
       + \sum_J \nu_{IJ} L_{IJ} (u_J - u_I) - \sum_J (G_{IJ} p_J - \nabla_{IJ} p_I)\Bigr]

    Patches ``k`` that meet there have ``share``, ``s_k``, of it, and the pressure along ``push``, ``A_k``. ``load`` is
    what the point bears, ``force`` the sum. ``transposed``: 1 adds ``sum_J nu_IJ (L^d_IJ)^T (u_J - u_I)`` less
    `uneven`.
    """
    total = zeros(d)
    for j in range(len(edge)):
        trace = 0.0
        for a in range(d):
            trace += edge[j][1 + (d + 1) * a]
        mean = 0.5 * (nu[j] + nu_own[0])
        for a in range(d):
            total[a] += mean * trace * (u[j][a] - own[a])
            total[a] -= edge[j][1 + d * d + d + a] * p[j] - edge[j][1 + d * d + a] * p_own[0]
            if transposed == 1:
                for b in range(d):
                    total[a] += mean * edge[j][1 + d * b + a] * (u[j][b] - own[b])
    if ends is not None:
        twist = zeros(d)
        uneven(edge, u, own, nu, nu_own, mass, ends, twist, d)
        for a in range(d):
            total[a] -= twist[a]
    for a in range(d):
        held = total[a] + mass[0] * ((own[a] - before[a]) / dt[0] + xi[a] - body[a])
        if force is not None:
            force[a] += p_own[0] * push[a] - share[0] * held
        if load is not None:
            load[a] = p_own[0] * push[a] - share[0] * held


@kernel
def turning_friction(curvature: Read, u: Read, nu: Read, load: RW, force: Inc, *, d: Const[int]):
    """``F_k = nu sum_m A K_km u_m``: the part of the transposed gradient on a curved wall.

    ``curvature`` is ``A K`` with the area that belongs to the point (`fluxloom.fv.geometry.wall_curvature`).
    """
    for k in range(d):
        total = 0.0
        for m in range(d):
            total += nu[0] * curvature[d * k + m] * u[m]
        force[k] += total
        load[k] += total


@kernel
def load_sums(load: Read, p: Read, u: Read, site: Read, sums: Inc, *, d: Const[int], x: float, y: float, z: float):
    """Sums over the points of patches: moment of ``load`` about ``(x, y, z)``, what the pressure does, and means.

    ``site`` is the place, ``int N_I n dA`` and ``int N_I dA``; the sums are the moment ``sum (x_I - x_0) x F_I``, the
    force of the pressure ``int p n dA``, ``int u . n dA``, ``int p dA``, ``int u^2 / 2 dA`` with the mass lumped, and
    the area.
    """
    arm = zeros(3)
    push = zeros(3)
    square = 0.0
    through = 0.0
    for k in range(d):
        arm[k] = site[k]
        push[k] = load[k]
        sums[3 + k] += p[0] * site[d + k]
        square += u[k] * u[k]
        through += u[k] * site[d + k]
    arm[0] -= x
    arm[1] -= y
    arm[2] -= z
    for k in range(3):
        m = (k + 1) % 3
        n = (k + 2) % 3
        sums[k] += arm[m] * push[n] - arm[n] * push[m]
    sums[6] += through
    sums[7] += p[0] * site[d + d]
    sums[8] += 0.5 * square * site[d + d]
    sums[9] += site[d + d]


@kernel
def velocity_gradient(edge: Read, u: Read, own: Read, mass: Read, tensor: Write, *, d: Const[int]):
    """``g_ab = du_a / dx_b = sum_J grad_IJ,b (u_J - u_I)_a / M_I`` at ``3 a + b``; 0 for the third axis of a plane."""
    total = zeros(d * d)
    for j in range(len(edge)):
        for a in range(d):
            for b in range(d):
                total[d * a + b] += edge[j][1 + d * d + b] * (u[j][a] - own[a])
    for a in range(3):
        for b in range(3):
            tensor[3 * a + b] = total[d * a + b] / mass[0] if a < d and b < d else 0.0


@kernel
def total_viscosity(laminar: Read, turbulent: Read, nu: Write):
    """``nu_I = nu_laminar + nu_t``."""
    nu[0] = laminar[0] + turbulent[0]


@kernel
def energy(u: Read, mass: Read, kinetic: Inc, momentum: Inc, *, d: Const[int]):
    """``kinetic = sum M |u|^2 / 2``, ``momentum = sum M u``."""
    for a in range(d):
        kinetic[0] += 0.5 * mass[0] * u[a] * u[a]
        momentum[a] += mass[0] * u[a]


@kernel
def show(p: Read, height: Read, shown: Write):
    """``p + f . x``: the pressure with that of the fluid at rest under a uniform force ``f``; ``height = f . x``."""
    shown[0] = p[0] + height[0]
