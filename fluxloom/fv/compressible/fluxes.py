r"""Fluxes of the Euler equations through a face, from the states on both sides.

States are primitive, ``w = (rho, u_1 ... u_d, p)``, ``d`` is 2 or 3, and ``n`` is the unit normal from the left to the
right one. A flux ``f`` has ``d + 2`` components: of mass, momentum and energy, per unit of area,

.. math:: F(w) = (\rho u_n,\; \rho u_n u + p n,\; \rho u_n H), \quad
          H = \frac{\gamma}{\gamma - 1} \frac{p}{\rho} + \frac{|u|^2}{2}

for a perfect gas. All are consistent, ``f(w, w) = F(w)``, and take the upwind side where the flow is supersonic. `roe`,
`hllc` and `ausm` resolve a contact that stands still exactly, `roe` and `hllc` a shock; `rusanov` smears both.

A scheme is a value, a frozen dataclass that derives from `Flux`: kernels take it as a constant and hold its formula
alone. The formulas are functions for kernels, ``@func``: every one writes ``f``.

References
----------
V. V. Rusanov: *Calculation of interaction of non-steady shock waves with obstacles*. USSR Comput. Math. Math. Phys. 1,
1961.
P. L. Roe: *Approximate Riemann solvers, parameter vectors, and difference schemes*. J. Comput. Phys. 43, 1981.
A. Harten: *High resolution schemes for hyperbolic conservation laws*. J. Comput. Phys. 49, 1983.
E. F. Toro: *Riemann Solvers and Numerical Methods for Fluid Dynamics*, 3rd ed., Springer 2009, sec. 10.4 to 10.6.
P. Batten, N. Clarke, C. Lambert, D. M. Causon: *On the choice of wavespeeds for the HLLC Riemann solver*. SIAM J. Sci.
Comput. 18, 1997.
M.-S. Liou: *A sequel to AUSM, part II: AUSM+-up for all speeds*. J. Comput. Phys. 214, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import fabs, max, min, sqrt, zeros

__all__ = [
    "AUSM", "HLLC", "Flux", "Roe", "Rusanov", "ausm", "enthalpy", "euler", "evened", "hllc", "hurry",
    "normal_velocity", "roe", "rusanov", "sound",
]  # fmt: skip

_PRESSURE, _VELOCITY, _SIGMA, _BETA = 0.25, 0.75, 1.0, 0.125
"""``K_p``, ``K_u``, ``sigma`` and ``beta`` of AUSM+-up (Liou, sec. 3.3)."""


# ----------------------------------------------------------------------------------------------- of one state


@func
def normal_velocity(w, n, d):
    """Return ``u_n = u . n``."""
    total = 0.0
    for k in range(d):
        total += w[1 + k] * n[k]
    return total


@func
def sound(w, gamma, d):
    """Return the speed of sound, ``c = sqrt(gamma p / rho)``."""
    return sqrt(gamma * w[1 + d] / w[0])


@func
def enthalpy(w, gamma, d):
    """Return the total enthalpy per mass, ``H = gamma / (gamma - 1) p / rho + |u|^2 / 2``."""
    kinetic = 0.0
    for k in range(d):
        kinetic += w[1 + k] * w[1 + k]
    return gamma / (gamma - 1.0) * w[1 + d] / w[0] + 0.5 * kinetic


@func
def advective_flux(mass, p, w, n, f, gamma, d):
    """Write ``F = (m, m u + p n, m H)`` of a mass flow ``m`` that carries a state, and of a pressure."""
    f[0] = mass
    for k in range(d):
        f[1 + k] = mass * w[1 + k] + p * n[k]
    f[1 + d] = mass * enthalpy(w, gamma, d)


@func
def euler(w, n, f, gamma, d):
    """Write the flux ``F(w) = (rho u_n, rho u_n u + p n, rho u_n H)`` and return ``u_n``."""
    un = normal_velocity(w, n, d)
    advective_flux(w[0] * un, w[1 + d], w, n, f, gamma, d)
    return un


# ------------------------------------------------------------------------------------------------------ fluxes


@func
def rusanov(left, right, n, f, gamma, d):
    """Write ``F = (F_l + F_r) / 2 - s (U_r - U_l) / 2`` with the fastest wave of both, ``s = max(|u_n| + c)``."""
    g = zeros(2 + d)
    ul = euler(left, n, f, gamma, d)
    ur = euler(right, n, g, gamma, d)
    s = max(fabs(ul) + sound(left, gamma, d), fabs(ur) + sound(right, gamma, d))
    f[0] = 0.5 * (f[0] + g[0] - s * (right[0] - left[0]))
    for k in range(d):
        f[1 + k] = 0.5 * (f[1 + k] + g[1 + k] - s * (right[0] * right[1 + k] - left[0] * left[1 + k]))
    energy = right[0] * enthalpy(right, gamma, d) - right[1 + d] - left[0] * enthalpy(left, gamma, d) + left[1 + d]
    f[1 + d] = 0.5 * (f[1 + d] + g[1 + d] - s * energy)


@func
def mean_state(left, right, u, n, gamma, d):
    """Write the velocity of Roe's mean state, and return its normal part, ``|u|^2``, ``H`` and the speed of sound.

    ``u = (u_l + k u_r) / (1 + k)``, ``H`` likewise, ``k = sqrt(rho_r / rho_l)``, ``c^2 = (gamma - 1) (H - |u|^2 / 2)``.
    """
    weight = sqrt(right[0] / left[0])
    share = 1.0 / (1.0 + weight)
    un = 0.0
    kinetic = 0.0
    for k in range(d):
        u[k] = (left[1 + k] + weight * right[1 + k]) * share
        un += u[k] * n[k]
        kinetic += u[k] * u[k]
    h = (enthalpy(left, gamma, d) + weight * enthalpy(right, gamma, d)) * share
    return un, kinetic, h, sqrt((gamma - 1.0) * (h - 0.5 * kinetic))


@func
def rounded(speed, delta, inverse):
    """Return ``|s|``, below ``delta`` Harten's parabola ``(s^2 / delta + delta) / 2``; ``s`` is `speed` (Harten 1983).

    ``inverse`` is ``1 / delta``, not used where ``delta`` is 0.
    """
    size = fabs(speed)
    return 0.5 * (size * size * inverse + delta) if size < delta else size


@func
def roe(left, right, n, f, gamma, d, fix, steep):
    r"""Write Roe's flux (Roe 1981), with the waves of `mean_state` and the density ``rho = sqrt(rho_l rho_r)``.

    .. math:: F &= \tfrac12 (F(w_l) + F(w_r)) - \tfrac12 \sum_k |\lambda_k| \alpha_k r_k, \\
              |u_n \mp c|:&\quad \alpha = \frac{\Delta p \mp \rho c \Delta u_n}{2 c^2}, \quad
              r = (1, u \mp c n, H \mp c u_n) \\
              |u_n|:&\quad \alpha = \Delta \rho - \Delta p / c^2, \quad r = (1, u, |u|^2 / 2); \quad
              \alpha r = \rho\, (0, \Delta u - \Delta u_n n, u \cdot \Delta u - u_n \Delta u_n)

    Sound waves slower than ``fix (|u_n| + c)`` are `rounded`, for ``fix = 0`` none; entropy and shear are carried with
    ``max(|u_n|, steep c)``, see `evened`. Divisions cost more than all else: each reciprocal is found once, and those
    of both densities from that of their product.
    """
    u = zeros(d)
    product = left[0] * right[0]
    mean = sqrt(product)
    inverse = 1.0 / product
    part = left[0] / (left[0] + mean)
    rest = 1.0 - part
    ratio = gamma / (gamma - 1.0)
    ul = 0.0
    ur = 0.0
    un = 0.0
    kl = 0.0
    kr = 0.0
    kinetic = 0.0
    for k in range(d):
        u[k] = part * left[1 + k] + rest * right[1 + k]
        ul += left[1 + k] * n[k]
        ur += right[1 + k] * n[k]
        un += u[k] * n[k]
        kl += left[1 + k] * left[1 + k]
        kr += right[1 + k] * right[1 + k]
        kinetic += u[k] * u[k]
    hl = ratio * left[1 + d] * right[0] * inverse + 0.5 * kl
    hr = ratio * right[1 + d] * left[0] * inverse + 0.5 * kr
    h = part * hl + rest * hr
    a2 = (gamma - 1.0) * (h - 0.5 * kinetic)
    a = sqrt(a2)
    slower = 1.0 / a2
    delta = fix * (fabs(un) + a)
    sharper = 1.0 / max(delta, 1.0e-300)
    slow = rounded(un - a, delta, sharper)
    fast = rounded(un + a, delta, sharper)
    middle = max(fabs(un), steep * a)
    dp = (right[1 + d] - left[1 + d]) * slower
    jump = ur - ul
    push = mean * jump * a * slower
    back = 0.5 * slow * (dp - push)
    ahead = 0.5 * fast * (dp + push)
    entropy = middle * (right[0] - left[0] - dp)
    shear = middle * mean
    total = back + ahead + entropy
    turned = (ahead - back) * a
    ml = left[0] * ul
    mr = right[0] * ur
    pressure = left[1 + d] + right[1 + d] - turned + shear * jump
    work = 0.0
    f[0] = 0.5 * (ml + mr - total)
    for k in range(d):
        turn = shear * (right[1 + k] - left[1 + k])
        work += u[k] * turn
        f[1 + k] = 0.5 * (ml * left[1 + k] + mr * right[1 + k] + pressure * n[k] - total * u[k] - turn)
    sounds = (back + ahead) * h + turned * un
    f[1 + d] = 0.5 * (ml * hl + mr * hr - sounds - entropy * 0.5 * kinetic - work + shear * jump * un)


@func
def star(w, n, f, gamma, d, un, s, middle):
    r"""Add to a state's flux what lies between its own wave, of speed ``s``, and the contact: ``F + s (U* - U)``.

    .. math:: U^* = \rho \frac{s - u_n}{s - s^*} \Big(1,\; u + (s^* - u_n) n,\;
              E + (s^* - u_n) \big(s^* + \tfrac{p}{\rho (s - u_n)}\big)\Big)

    ``middle`` is ``s*`` (Toro, sec. 10.4).
    """
    ratio = w[0] * (s - un) / (s - middle)
    f[0] += s * (ratio - w[0])
    for k in range(d):
        f[1 + k] += s * (ratio * (w[1 + k] + (middle - un) * n[k]) - w[0] * w[1 + k])
    whole = w[0] * enthalpy(w, gamma, d) - w[1 + d]
    lifted = whole / w[0] + (middle - un) * (middle + w[1 + d] / (w[0] * (s - un)))
    f[1 + d] += s * (ratio * lifted - whole)


@func
def hllc(left, right, n, f, gamma, d):
    r"""Write the flux of Harten, Lax and van Leer with the contact (Toro, sec. 10.4), waves of Einfeldt and Batten.

    .. math:: s_l = \min(u_{n,l} - c_l, \bar u_n - \bar c), \quad s_r = \max(u_{n,r} + c_r, \bar u_n + \bar c), \quad
              s^* = \frac{p_r - p_l + \rho_l u_{n,l} (s_l - u_{n,l}) - \rho_r u_{n,r} (s_r - u_{n,r})}
              {\rho_l (s_l - u_{n,l}) - \rho_r (s_r - u_{n,r})}

    ``F = F(w_l)`` for ``s_l >= 0``, ``F(w_l) + s_l (U*_l - U_l)`` (`star`) for ``s_l < 0 <= s*``, the same of the right
    side for ``s* < 0``; bars are Roe's mean (Batten et al. 1997).
    """
    al = sound(left, gamma, d)
    ar = sound(right, gamma, d)
    ul = normal_velocity(left, n, d)
    ur = normal_velocity(right, n, d)
    u = zeros(d)
    un, _, _, a = mean_state(left, right, u, n, gamma, d)
    first = min(ul - al, un - a)
    last = max(ur + ar, un + a)
    flow = left[0] * (first - ul)
    back = right[0] * (last - ur)
    middle = (right[1 + d] - left[1 + d] + flow * ul - back * ur) / (flow - back)
    if middle >= 0.0:
        euler(left, n, f, gamma, d)
        if first < 0.0:
            star(left, n, f, gamma, d, ul, first, middle)
    else:
        euler(right, n, f, gamma, d)
        if last > 0.0:
            star(right, n, f, gamma, d, ur, last, middle)


@func
def evened(left, right, n, f, gamma, d, steep):
    r"""Carry entropy and shear at least with a part ``steep`` of the speed of sound; Rusanov's flux does with all.

    .. math:: F \mathrel{-}= \tfrac12 \max(k c - |u_n|, 0) \big[(\Delta \rho - \Delta p / c^2) (1, u, |u|^2 / 2)
              + \rho\, (0, \Delta u - \Delta u_n n, u \cdot \Delta u - u_n \Delta u_n)\big], \quad k = steep

    of the means of both states. Where a shock runs across the faces of a mesh, gas passes through the faces along its
    way with next to no normal velocity, and a flux that resolves contacts lets differences grow there until the shock
    breaks up: the carbuncle (R. Sanders, E. Morano, M.-C. Druguet: *Multidimensional dissipation for upwind schemes*.
    J. Comput. Phys. 145, 1998).
    """
    density = 0.5 * (left[0] + right[0])
    slower = density / (0.5 * gamma * (left[1 + d] + right[1 + d]))
    un = 0.0
    jump = 0.0
    work = 0.0
    kinetic = 0.0
    for k in range(d):
        mean = 0.5 * (left[1 + k] + right[1 + k])
        un += mean * n[k]
        jump += (right[1 + k] - left[1 + k]) * n[k]
        work += mean * (right[1 + k] - left[1 + k])
        kinetic += mean * mean
    speed = 0.5 * max(steep * sqrt(1.0 / slower) - fabs(un), 0.0)
    shear = speed * density
    entropy = speed * (right[0] - left[0] - (right[1 + d] - left[1 + d]) * slower)
    f[0] -= entropy
    for k in range(d):
        mean = 0.5 * (left[1 + k] + right[1 + k])
        f[1 + k] -= entropy * mean + shear * (right[1 + k] - left[1 + k] - jump * n[k])
    f[1 + d] -= 0.5 * entropy * kinetic + shear * (work - un * jump)


@func
def split_mach(m, sign):
    """Return the part of a Mach number that belongs to the left (``sign`` 1) or right (-1) side.

    ``M_4 = s (m + s)^2 / 4 + s (m^2 - 1)^2 / 8`` for ``|m| < 1``, else ``(m + s |m|) / 2``, with ``s = sign`` (Liou,
    eq. 20).
    """
    inside = sign * 0.25 * (m + sign) * (m + sign) + sign * _BETA * (m * m - 1.0) * (m * m - 1.0)
    return 0.5 * (m + sign * fabs(m)) if fabs(m) >= 1.0 else inside


@func
def split_pressure(m, sign, alpha):
    """Return the part of the pressure of one side (``sign`` 1: left, -1: right).

    ``P_5 = (m + s)^2 (2 - s m) / 4 + s alpha m (m^2 - 1)^2`` for ``|m| < 1``, else 1 where ``s m > 0`` (Liou, eq. 24).
    """
    inside = 0.25 * (m + sign) * (m + sign) * (2.0 - sign * m) + sign * alpha * m * (m * m - 1.0) * (m * m - 1.0)
    outside = 1.0 if sign * m > 0.0 else 0.0
    return outside if fabs(m) >= 1.0 else inside


@func
def hurry(mean, cutoff):
    """Return how many times faster than sound AUSM+-up evens out pressures, at least 1; explicit steps have to know.

    ``max(1, 2 K_p max(1 - sigma M^2, 0) / f_a)``, ``f_a = M_o (2 - M_o)``, ``M_o^2 = min(1, max(M^2, cutoff^2))``;
    ``mean`` is ``M^2``, the mean of the squares of both sides' normal Mach numbers. What it adds to the mass flux is
    ``K_p / f_a (1 - sigma M^2) dp / c``, that of Rusanov at rest half of ``dp / c``.
    """
    mo = sqrt(min(1.0, max(mean, cutoff * cutoff)))
    return max(1.0, 2.0 * _PRESSURE / (mo * (2.0 - mo)) * max(1.0 - _SIGMA * mean, 0.0))


@func
def ausm(left, right, n, f, gamma, d, cutoff):
    r"""Write AUSM+-up; ``cutoff``, above 0, is the Mach number below which it damps no less (that of the far field).

    .. math:: m &= M_4^+(m_l) + M_4^-(m_r) - \frac{K_p}{f_a} \max(1 - \sigma \bar M^2, 0) \frac{p_r - p_l}{\rho c^2},
              \quad \rho = \tfrac12 (\rho_l + \rho_r) \\
              p &= P_5^+(m_l) p_l + P_5^-(m_r) p_r - K_u P_5^+ P_5^- (\rho_l + \rho_r) f_a c\, (u_{n,r} - u_{n,l})

    and ``F`` is `advective_flux` by the mass flow ``c m rho`` of the side from which it comes (Liou 2006). ``c`` is the
    lesser of ``c*^2 / max(c*, +-u_n)``, ``c*^2 = 2 (gamma - 1) / (gamma + 1) H``, of both sides; ``f_a`` is that of
    `hurry`, ``alpha = 3/16 (5 f_a^2 - 4)``. What it carries faster than sound in slow flow, `hurry` says.
    """
    ul = normal_velocity(left, n, d)
    ur = normal_velocity(right, n, d)
    critical = 2.0 * (gamma - 1.0) / (gamma + 1.0)
    cl = critical * enthalpy(left, gamma, d)
    cr = critical * enthalpy(right, gamma, d)
    a = min(cl / max(sqrt(cl), ul), cr / max(sqrt(cr), -ur))
    ml = ul / a
    mr = ur / a
    mean = 0.5 * (ml * ml + mr * mr)
    mo = sqrt(min(1.0, max(mean, cutoff * cutoff)))
    scale = mo * (2.0 - mo)
    density = 0.5 * (left[0] + right[0])
    drive = _PRESSURE / scale * max(1.0 - _SIGMA * mean, 0.0) * (right[1 + d] - left[1 + d]) / (density * a * a)
    m = split_mach(ml, 1.0) + split_mach(mr, -1.0) - drive
    alpha = 3.0 / 16.0 * (5.0 * scale * scale - 4.0)
    pl = split_pressure(ml, 1.0, alpha)
    pr = split_pressure(mr, -1.0, alpha)
    p = pl * left[1 + d] + pr * right[1 + d] - _VELOCITY * pl * pr * 2.0 * density * scale * a * (ur - ul)
    if m > 0.0:
        advective_flux(a * m * left[0], p, left, n, f, gamma, d)
    else:
        advective_flux(a * m * right[0], p, right, n, f, gamma, d)


# --------------------------------------------------------------------------------------------------- schemes


class Flux(Strategy, what="flux", group="fluxloom.fluxes"):
    """A numerical flux of the Euler equations.

    A member is a frozen dataclass whose ``__call__`` is a ``@func`` that writes the ``d + 2`` components of ``f``; see
    the module for what it is given. The other methods may be replaced.
    """

    if TYPE_CHECKING:  # a member has to have it: that of the family would be a wrong formula

        def __call__(self, left: Any, right: Any, n: Any, f: Any, gamma: Any, d: Any) -> Any: ...  # noqa: D102

    resolves_contacts: ClassVar[bool] = True
    """Whether contacts that stand still stay sharp: next to shocks such fluxes damp too little along the face."""

    @func
    def near_shock(self, left, right, n, f, gamma, d, steep):
        """Write the flux where a shock of the strength ``steep``, 0 to 1, runs across the face, see `evened`.

        They are carried with ``max(|u_n|, steep c)``, where ``steep = 0`` leaves ``f = F``.
        """
        self(left, right, n, f, gamma, d)
        evened(left, right, n, f, gamma, d, steep)

    @func
    def sound_factor(self, un, vn, w, near, gamma, d):
        """Return how many times faster than sound the flux damps pressures between two cells: it bounds the step.

        The fastest wave is ``|u_n| + s c``, and ``s = 1`` here. ``un`` and ``vn`` are the normal velocities of the
        states ``w`` and ``near``.
        """
        return 1.0


@dataclass(frozen=True)
class Rusanov(Flux, name="rusanov"):
    """The mean, and the fastest wave times the jump: the most robust, and the most dissipative."""

    resolves_contacts: ClassVar[bool] = False
    """It smears them."""

    @func
    def __call__(self, left, right, n, f, gamma, d):
        """Write the flux, ``F = (F_l + F_r) / 2 - max(|u_n| + c) (U_r - U_l) / 2``; see `rusanov`."""
        rusanov(left, right, n, f, gamma, d)

    @func
    def near_shock(self, left, right, n, f, gamma, d, steep):
        """Write the flux, which damps enough along the face by itself: ``s >= steep c``, ``s = max(|u_n| + c)``."""
        rusanov(left, right, n, f, gamma, d)


@dataclass(frozen=True)
class Roe(Flux, name="roe"):
    """Roe: the waves of a linear problem between both states.

    Attributes
    ----------
    entropy_fix
        Sound waves slower than this part of the fastest one are rounded (Harten); at least 0 and less than 1.
    """

    entropy_fix: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 <= self.entropy_fix < 1.0:
            raise SolverError(f"entropy_fix: at least 0 and less than 1 is wanted, not {self.entropy_fix!r}")

    @func
    def __call__(self, left, right, n, f, gamma, d):
        """Write the flux, ``F = (F_l + F_r) / 2 - |A| (U_r - U_l) / 2`` with Roe's matrix; see `roe`."""
        roe(left, right, n, f, gamma, d, self.entropy_fix, 0.0)

    @func
    def near_shock(self, left, right, n, f, gamma, d, steep):
        """Write the flux with ``|lambda| = max(|u_n|, steep c)`` of entropy and shear; see `roe`."""
        roe(left, right, n, f, gamma, d, self.entropy_fix, steep)


@dataclass(frozen=True)
class HLLC(Flux, name="hllc"):
    """Harten, Lax and van Leer with the contact (Toro; wave speeds of Batten et al.)."""

    @func
    def __call__(self, left, right, n, f, gamma, d):
        """Write the flux, ``F = F_k + s_k (U*_k - U_k)`` of the side ``k`` that the contact leaves; see `hllc`."""
        hllc(left, right, n, f, gamma, d)


@dataclass(frozen=True)
class AUSM(Flux, name="ausm+-up"):
    """AUSM+-up of Liou, for all speeds.

    Attributes
    ----------
    cutoff
        Mach number, above 0, below which it damps no less: that of the far field.
    """

    cutoff: float = 0.1

    def __post_init__(self) -> None:
        if not (isfinite(self.cutoff) and self.cutoff > 0.0):
            raise SolverError(f"cutoff: a number above 0 is wanted, not {self.cutoff!r}")

    @func
    def __call__(self, left, right, n, f, gamma, d):
        """Write the flux, ``F = c m rho (1, u, H) + p (0, n, 0)``; see `ausm`."""
        ausm(left, right, n, f, gamma, d, self.cutoff)

    @func
    def sound_factor(self, un, vn, w, near, gamma, d):
        """Return `hurry` at ``M^2 = (u_n^2 / c^2 + v_n^2 / c_near^2) / 2``."""
        return hurry(0.5 * (un * un * w[0] / w[1 + d] + vn * vn * near[0] / near[1 + d]) / gamma, self.cutoff)
