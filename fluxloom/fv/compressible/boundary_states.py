r"""States of compressible flow at boundary faces, from the state inside and from what is known outside.

States are primitive, ``w = (rho, u_1 ... u_d, p)``, ``d`` is 2 or 3, and ``n`` is the unit normal that leaves the
domain. The state ``b`` is that *at the face*: the flux through it is `fluxloom.fv.compressible.fluxes.euler` of ``b``.
With ``g = (gamma - 1) / 2`` and the speed of sound ``c``, waves that leave keep :math:`R = u_n + c / g` and the entropy
of the gas inside. What is given is in a row ``par`` of `PARAMETERS` numbers,

===================  =====================  =====================  =====================
formula              ``par[0]``             ``par[1 ... d]``       ``par[1 + d]``
===================  =====================  =====================  =====================
`SlipState`          1: it is a mirror      velocity of the wall   .
`NoSlipState`        .                      velocity of the wall   .
`IsothermalState`    ``R_g T``                velocity of the wall   .
`HeatFluxState`      heat flux, W/m^2       velocity of the wall   .
`FarFieldState`      density                velocity               pressure
`GivenState`         density                velocity               pressure
`InsideState`        .                      .                      .
`ReservoirState`     ``R_g T`` at rest        direction, unit        pressure at rest
`DensityState`       density                velocity               .
`TemperatureState`   ``R_g T``                velocity               .
`MassFlowState`      ``R_g T`` at rest        ``rho u``              .
`OutletState`        .                      .                      pressure
===================  =====================  =====================  =====================

and in ``par[5]`` of all of them the value of a turbulence model's variable in gas that comes in.

A formula is a frozen dataclass that derives from `FaceState`. Kernels take those of a flow as one constant, ``states``,
and hold them alone; the kind of a boundary element is the place of its formula among them.

References
----------
J.-R. Carlson: *Inflow/outflow boundary conditions with application to FUN3D*. NASA/TM-2011-217181, 2011.
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, ch. 8.
E. F. Toro: *Riemann Solvers and Numerical Methods for Fluid Dynamics*, 3rd ed., Springer 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fluxloom.fv.compressible.fluxes import normal_velocity, sound
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import max, min, pow, select, sqrt, zeros

__all__ = [
    "PARAMETERS",
    "DensityState",
    "FaceState",
    "FarFieldState",
    "GivenState",
    "HeatFluxState",
    "InsideState",
    "IsothermalState",
    "MassFlowState",
    "NoSlipState",
    "OutletState",
    "ReservoirState",
    "SlipState",
    "TemperatureState",
    "boundary_state",
    "far_field",
    "from_reservoir",
    "heat_given",
    "is_adiabatic",
    "is_mirror",
    "is_slip",
    "is_wall",
    "leaving",
    "mass_inlet",
    "mirrored",
    "open_end",
    "slip_wall",
    "transported",
]

PARAMETERS = 6
"""Numbers that are given at each boundary element."""

_ENTERING = PARAMETERS - 1


# ----------------------------------------------------------------------------------------------- of a state


@func
def copied(w, b, d):
    """Write the state ``b = w``."""
    for k in range(2 + d):
        b[k] = w[k]


@func
def composed(density, par, p, b, d):
    """Write the state ``b = (density, par[1 ... d], p)``."""
    b[0] = density
    for k in range(d):
        b[1 + k] = par[1 + k]
    b[1 + d] = p


@func
def turned(w, n, b, d, un):
    """Write the velocity of ``w`` with the normal part ``un``: ``u_b = u + (un - u . n) n``."""
    change = un - normal_velocity(w, n, d)
    for k in range(d):
        b[1 + k] = w[1 + k] + change * n[k]


@func
def isentropic(w, n, b, gamma, d, un, a):
    """Write the state of a gas like ``w``, of its entropy and tangential velocity, where sound has the speed ``a``.

    ``rho_b = rho (a / c)^(2 / (gamma - 1))``, ``p_b = rho_b a^2 / gamma``, with ``c`` of ``w``; ``un`` is the normal
    velocity.
    """
    b[0] = w[0] * pow(a / sound(w, gamma, d), 2.0 / (gamma - 1.0))
    turned(w, n, b, d, un)
    b[1 + d] = b[0] * a * a / gamma


# ------------------------------------------------------------------------------------------------ boundaries


@func
def slip_wall(w, n, par, b, d):
    """Write the state at a wall without friction, or a plane of symmetry: ``u_b = u + ((u_wall - u) . n) n``."""
    copied(w, b, d)
    turned(w, n, b, d, normal_velocity(par, n, d))


@func
def mirrored(w, n, b, d):
    """Write the mirror image of a state, ``u_b = u - 2 (u . n) n``."""
    copied(w, b, d)
    turned(w, n, b, d, -normal_velocity(w, n, d))


@func
def expanded(w, n, b, gamma, d, sign):
    """Write the throat of an expansion out of ``w`` along ``sign n``, or ``w`` where that is faster than sound already.

    ``sign u_n + c / g`` is that of ``w``, and ``sign u_n = c_b``: ``c_b = (g sign u_n + c) / (1 + g)``.
    """
    g = 0.5 * (gamma - 1.0)
    un = sign * normal_velocity(w, n, d)
    own = sound(w, gamma, d)
    a = (g * un + own) / (1.0 + g)
    if un >= own or a <= 0.0:
        copied(w, b, d)
    else:
        isentropic(w, n, b, gamma, d, sign * a, a)


@func
def far_field(w, n, far, b, gamma, d):
    r"""Write the state between the inside and a uniform state ``far``, by Riemann invariants.

    :math:`R^+ = u_n + c / g` of the inside holds up to the contact, :math:`R^- = u_n - c / g` of the far field up to
    it, each with its own entropy; pressure :math:`p_b` and normal velocity are the same on both sides of the contact
    (Toro, sec. 9.4.1, two rarefactions):

    .. math:: x = g \frac{R^+ - R^-}{c + c_o}, \quad u_{n,b} = R^+ - \frac{c\, x}{g}, \quad
              c_o = c_\infty (p / p_\infty)^{g / \gamma}, \quad x = (p_b / p)^{g / \gamma}

    Entropy and tangential velocity are those of the side where the gas comes from; the speed of sound is :math:`c\, x`
    or :math:`c_o x`. Where both have one entropy this is the usual mean of the invariants (Blazek, sec. 8.3); else that
    mean would push or pull at a wake in which the pressure is that outside, and this one lets it pass. Where the normal
    velocity found is not below the speed of sound everything is of the side where the gas comes from, or of the throat
    if that is slower.
    """
    g = 0.5 * (gamma - 1.0)
    inner = sound(w, gamma, d)
    outer = sound(far, gamma, d) * pow(w[1 + d] / far[1 + d], g / gamma)
    ahead = normal_velocity(w, n, d) + inner / g
    back = normal_velocity(far, n, d) - sound(far, gamma, d) / g
    x = g * (ahead - back) / (inner + outer)
    un = ahead - inner * x / g
    if un > 0.0:
        if un >= inner * x:
            expanded(w, n, b, gamma, d, 1.0)
        else:
            isentropic(w, n, b, gamma, d, un, inner * x)
    elif -un >= outer * x:
        expanded(far, n, b, gamma, d, -1.0)
    else:
        isentropic(far, n, b, gamma, d, un, outer * x)


@func
def leaving(w, n, p, s, ahead, b, gamma, d):
    """Write the state of gas that leaves into a room with the pressure ``p``.

    ``u_n = R - s / g``, ``rho_b = gamma p / s^2``: ``s`` is the speed of sound of the gas inside brought to ``p`` at
    its entropy, ``ahead`` its ``R = u_n + c / g``; both are kept (Carlson). Everything is of the inside where it leaves
    faster than sound, ``u_n >= c``. Where ``p`` is so low that the gas would, the face is the throat of the expansion:
    ``u_n = c``, whatever ``p`` is.
    """
    g = 0.5 * (gamma - 1.0)
    if normal_velocity(w, n, d) >= sound(w, gamma, d) or s * (1.0 + g) < ahead * g:
        expanded(w, n, b, gamma, d, 1.0)
    else:
        turned(w, n, b, d, ahead - s / g)
        b[0] = gamma * p / (s * s)
        b[1 + d] = p


@func
def from_reservoir(n, way, p, rt, s, ahead, b, gamma, d):
    r"""Write the state of gas that comes from rest, at ``p`` and ``R_g T = rt``, in the direction ``way[1 ... d]``.

    On the other side of the contact the gas inside is brought to the same pressure by a wave that leaves. With
    :math:`x = (p_b / p)^{(\gamma - 1) / 2 \gamma}` its speed of sound is ``s x``, and that of the gas that enters
    :math:`c_0 x`, so that the invariant of the inside and the energy of the gas that enters,

    .. math:: u_n + s x / g = R, \quad u_n^2 = (way \cdot n)^2 c_0^2 (1 - x^2) / g, \quad c_0^2 = \gamma R_g T

    are a quadratic equation for ``x``. Where both gases have the same entropy, ``s = c_0``, this is the usual condition
    (Carlson; Blazek, sec. 8.4); where they have not, the usual one confuses their speeds of sound and lets hot gas
    enter cold one of the same pressure. The gas enters at most with the speed of sound.
    """
    g = 0.5 * (gamma - 1.0)
    c = -normal_velocity(way, n, d)
    rest = gamma * rt
    inner = g * ahead
    m = c * sqrt(g * rest)
    whole = s * s + m * m
    r = sqrt(max(whole - inner * inner, 0.0))
    x = min((s * inner + m * r) / whole, 1.0)
    speed = sqrt(rest / g) * max(s * r - m * inner, 0.0) / whole  # sqrt(1 - x^2) would have no digits near rest
    sonic = 1.0 / sqrt(1.0 + g)
    if x < sonic:
        x = sonic
        speed = sqrt(rest) * x
    b[1 + d] = p * pow(x, gamma / g)
    b[0] = b[1 + d] / (rt * x * x)
    for k in range(d):
        b[1 + k] = speed * way[1 + k]


@func
def open_end(w, n, way, p, rt, follows, b, gamma, d):
    """Write the state at an opening to a room at rest: gas enters by `from_reservoir`, or leaves by `leaving`.

    It leaves where ``g R >= s`` at the pressure ``p`` of the room, with ``R = u_n + c / g`` and
    ``s = c (p / p_w)^(g / gamma)`` of the inside. At the change of direction the gas is at rest with this pressure in
    both, so that all fluxes are continuous. With ``follows`` the gas of the room has the entropy of that inside,
    instead of the temperature that ``rt = R_g T`` says.
    """
    g = 0.5 * (gamma - 1.0)
    s = sound(w, gamma, d) * pow(p / w[1 + d], g / gamma)
    ahead = normal_velocity(w, n, d) + sound(w, gamma, d) / g
    if g * ahead >= s:
        leaving(w, n, p, s, ahead, b, gamma, d)
    else:
        room = s * s / gamma if follows else rt
        from_reservoir(n, way, p, room, s, ahead, b, gamma, d)


@func
def mass_inlet(w, par, b, gamma, d):
    r"""Write the state of a given mass flow ``m = rho u`` and total temperature, at the pressure of the inside.

    Its volume ``v = 1 / rho`` satisfies :math:`\gamma / (\gamma - 1)\, (p v - R_g T_0) + |m|^2 v^2 / 2 = 0`. Where the
    pressure inside is too low to let the mass enter without going faster than sound, it is the one with which that
    enters at the speed of sound, :math:`p = |m| c / \gamma`, :math:`c^2 = 2 \gamma R_g T_0 / (\gamma + 1)`.
    """
    square = 0.0
    for k in range(d):
        square += par[1 + k] * par[1 + k]
    ratio = gamma / (gamma - 1.0)
    sonic = sqrt(2.0 * gamma * par[0] / (gamma + 1.0))
    p = max(w[1 + d], sqrt(square) * sonic / gamma)
    energy = 2.0 * ratio * par[0]
    v = energy / (ratio * p + sqrt(ratio * ratio * p * p + square * energy))
    b[0] = 1.0 / v
    for k in range(d):
        b[1 + k] = v * par[1 + k]
    b[1 + d] = p


# -------------------------------------------------------------------------------------------------- formulas


class FaceState:
    """What is at a face of the boundary; a member is a frozen dataclass with the formula, a ``@func``.

    The formula is given the numbers ``par`` of the face, its unit normal ``n`` out of the flow, the state ``w`` of the
    cell behind, continued to the face, and the ratio of the specific heats; it writes the state ``b`` at the face.
    """

    if TYPE_CHECKING:  # a member has to have it

        def __call__(self, par: Any, n: Any, w: Any, b: Any, gamma: Any, d: Any) -> Any: ...  # noqa: D102

    wall: ClassVar[bool] = False
    """Whether it is a wall: fluxes of the most robust kind take the mirrored cell behind it."""
    slip: ClassVar[bool] = False
    """Whether it is a wall without friction, or a plane of symmetry (then ``par[0]`` is 1)."""
    adiabatic: ClassVar[bool] = False
    """Whether no heat is conducted by differences of temperature."""
    heated: ClassVar[bool] = False
    """Whether ``par[0]`` is the heat that passes, into the gas."""

    @func
    def transported(self, par, n, w, b, nut, d):
        """Return a turbulence model's variable: ``nut`` of the inside, ``par[5]`` where gas enters, ``u_b . n < 0``."""
        return select(normal_velocity(b, n, d) < 0.0, par[_ENTERING], nut)


@dataclass(frozen=True)
class SlipState(FaceState):
    """A wall without friction."""

    wall = True
    slip = True
    adiabatic = True

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``u_b = u + ((u_wall - u) . n) n``; see `slip_wall`."""
        slip_wall(w, n, par, b, d)

    @func
    def transported(self, par, n, w, b, nut, d):
        """Return that of the inside, ``nut_b = nut``."""
        return nut


@dataclass(frozen=True)
class NoSlipState(FaceState):
    """A wall with friction through which no heat passes."""

    wall = True
    adiabatic = True

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = (rho, u_wall, p)``."""
        composed(w[0], par, w[1 + d], b, d)

    @func
    def transported(self, par, n, w, b, nut, d):
        """Return 0, ``nut_b = 0``."""
        return 0.0


@dataclass(frozen=True)
class IsothermalState(FaceState):
    """A wall with friction and a temperature."""

    wall = True

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = (p / (R_g T), u_wall, p)``."""
        composed(w[1 + d] / par[0], par, w[1 + d], b, d)

    @func
    def transported(self, par, n, w, b, nut, d):
        """Return 0, ``nut_b = 0``."""
        return 0.0


@dataclass(frozen=True)
class HeatFluxState(FaceState):
    """A wall with friction that gives heat to the gas, see `heat_given`; the temperature is that of the inside."""

    wall = True
    adiabatic = True
    heated = True

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = (rho, u_wall, p)``; the heat is added by `heat_given`."""
        composed(w[0], par, w[1 + d], b, d)

    @func
    def transported(self, par, n, w, b, nut, d):
        """Return 0, ``nut_b = 0``."""
        return 0.0


@dataclass(frozen=True)
class FarFieldState(FaceState):
    """Uniform flow, by Riemann invariants; see `far_field`."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, by ``R^+ = u_n + c / g`` inside and ``R^- = u_n - c / g`` outside; see `far_field`."""
        far_field(w, n, par, b, gamma, d)


@dataclass(frozen=True)
class GivenState(FaceState):
    """All is given."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = par[0 ... 1 + d]``."""
        copied(par, b, d)


@dataclass(frozen=True)
class InsideState(FaceState):
    """All is that of the inside."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = w``."""
        copied(w, b, d)

    @func
    def transported(self, par, n, w, b, nut, d):
        """Return that of the inside, ``nut_b = nut``."""
        return nut


@dataclass(frozen=True)
class ReservoirState(FaceState):
    """Gas from rest, in a direction; see `open_end`."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, of gas with ``p_0`` and ``R_g T_0`` at rest, or inside at ``p = p_0``; see `open_end`."""
        open_end(w, n, par, par[1 + d], par[0], False, b, gamma, d)


@dataclass(frozen=True)
class DensityState(FaceState):
    """Density and velocity are given."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = (par[0], par[1 ... d], p)``."""
        composed(par[0], par, w[1 + d], b, d)


@dataclass(frozen=True)
class TemperatureState(FaceState):
    """Temperature and velocity are given."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``b = (p / (R_g T), par[1 ... d], p)``."""
        composed(w[1 + d] / par[0], par, w[1 + d], b, d)


@dataclass(frozen=True)
class MassFlowState(FaceState):
    """Mass flow and total temperature are given; see `mass_inlet`."""

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state, ``rho_b u_b = par[1 ... d]``; see `mass_inlet`."""
        mass_inlet(w, par, b, gamma, d)


@dataclass(frozen=True)
class OutletState(FaceState):
    """A room with a pressure; see `open_end`.

    Gas that comes back has the tangential velocity of that inside, as it has where it leaves: a swirl that is drawn
    back is not stopped. Fluxes are continuous, for no gas passes where the one turns into the other.
    """

    @func
    def __call__(self, par, n, w, b, gamma, d):
        """Write the state with ``p_b = par[1 + d]`` and the tangential velocity ``u - u_n n`` of the inside.

        Gas that comes in has the entropy of the inside; see `open_end`.
        """
        way = zeros(1 + d)
        for k in range(d):
            way[1 + k] = -n[k]
        open_end(w, n, way, par[1 + d], par[0], True, b, gamma, d)
        turned(w, n, b, d, normal_velocity(b, n, d))


# -------------------------------------------------------------------------------------------------- choosing


@func
def boundary_state(states, kind, par, n, w, b, gamma, d):
    """Write the state at a boundary face by its formula, ``b = states[kind](par, n, w)``; see `FaceState`."""
    for k in range(len(states)):
        if kind == k:
            states[k](par, n, w, b, gamma, d)


@func
def transported(states, kind, par, n, w, b, nut, d):
    """Return a turbulence model's variable at a boundary face, ``nut_b = states[kind].transported(nut)``."""
    found = nut
    for k in range(len(states)):
        if kind == k:
            found = states[k].transported(par, n, w, b, nut, d)
    return found


@func
def is_wall(states, kind):
    """Return whether a boundary face is a wall: ``states[kind].wall``, ``kind = 0 ... len(states) - 1``."""
    found = False
    for k in range(len(states)):
        if states[k].wall and kind == k:
            found = True
    return found


@func
def is_slip(states, kind):
    """Return whether a boundary face is a wall without friction or a symmetry plane, ``tau - (n . tau . n) n = 0``."""
    found = False
    for k in range(len(states)):
        if states[k].slip and kind == k:
            found = True
    return found


@func
def is_adiabatic(states, kind):
    """Return whether differences of temperature conduct no heat through a boundary face, ``dT/dn = 0``."""
    found = False
    for k in range(len(states)):
        if states[k].adiabatic and kind == k:
            found = True
    return found


@func
def heat_given(states, kind, par, f, d):
    """Add to the flux of energy into the gas the heat that a boundary face is said to give, ``f[1 + d] += par[0]``."""
    for k in range(len(states)):
        if states[k].heated and kind == k:
            f[1 + d] += par[0]


@func
def is_mirror(states, kind, par):
    """Return whether beyond a face is the image of the cell behind: `is_slip` and ``par[0] > 0``, a symmetry plane."""
    return is_slip(states, kind) and par[0] > 0.0
