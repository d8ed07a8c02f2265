r"""Loops of friction, heat and turbulence in a compressible flow, added to the balance of the convective fluxes.

Gradients at a face are the means of both cells', corrected along the way ``v`` between them by the difference itself,

.. math:: \nabla q_f = \overline{\nabla q} + \frac{(q_r - q_l) - \overline{\nabla q} \cdot v}{|v|^2} v

so that no mode of the cells is invisible to it. That of the temperature follows from those of pressure and density,
:math:`\nabla T = (\nabla p - p / \rho\, \nabla \rho) / (\rho R)`. The model of Spalart and Allmaras is solved for
:math:`\rho \tilde\nu`, whose diffusion has a term with the gradient of the density:

.. math:: \frac{\partial \rho \tilde\nu}{\partial t} + \nabla \cdot (\rho u \tilde\nu) = \rho (P - D)
          + \frac{1}{\sigma} \nabla \cdot \big(\rho (\nu + \tilde\nu) \nabla \tilde\nu\big)
          + \frac{c_{b2}}{\sigma} \rho |\nabla \tilde\nu|^2
          - \frac{1}{\sigma} (\nu + \tilde\nu) \nabla \rho \cdot \nabla \tilde\nu

A `TurbulenceModel` says the production, the destruction and the diffusivity of such a :math:`\tilde\nu`, and the eddy
viscosity that it gives; at walls it is 0.

References
----------
J. Blazek: *Computational Fluid Dynamics: Principles and Applications*, 3rd ed., Elsevier 2015, sec. 5.4.2 and 6.1.4.
S. R. Allmaras, F. T. Johnson, P. R. Spalart: ICCFD7-1902, 2012, eq. 8 and sec. 2.3 (the conservative form).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.core.strategies import Strategy
from fluxloom.fv.compressible.boundary_states import FaceState, heat_given, is_adiabatic, is_mirror, is_slip
from fluxloom.fv.compressible.gas import Gas, viscous
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import max, select, sqrt, zeros

__all__ = ["TurbulenceModel", "boundary_viscous_flux", "eddy_viscosity", "mirror_waves", "turbulence", "viscous_flux"]

_HERE = {"spalart-allmaras": "fluxloom.fv.compressible.spalart_allmaras:SpalartAllmaras"}


class TurbulenceModel(Strategy, what="turbulence model", group="fluxloom.turbulence_models", members=_HERE):
    """A model of one equation; see the module.

    A member is a frozen dataclass with the ``@func`` methods ``eddy_viscosity(nut, nu)``, ``diffusivity(nut, nu)`` and
    ``source(nut, nu, omega, y)``: of the variable, the molecular kinematic viscosity, the size of the vorticity and the
    distance from the wall.
    """

    if TYPE_CHECKING:  # a member has to have them: those of the family would be wrong formulas

        def eddy_viscosity(self, nut: Any, nu: Any) -> Any:
            """Return the kinematic eddy viscosity ``nu_t``, m^2/s."""

        def diffusivity(self, nut: Any, nu: Any) -> Any:
            """Return ``nu_d``, with which the variable diffuses, times ``sigma``, m^2/s."""

        def source(self, nut: Any, nu: Any, omega: Any, y: Any) -> Any:
            """Return production less destruction, m^2/s^2."""

    @property
    def sigma(self) -> float:
        """``sigma``, by which what diffuses is divided."""
        return 2.0 / 3.0

    @property
    def cb2(self) -> float:
        """``c_b2``, the part of the square of the gradient."""
        return 0.622

    @func
    def both(self, first, nu_first, second, nu_second):
        """Return eddy viscosity and diffusivity, ``(nu_t, nu + f nut)``, of the first cell, then of the second."""
        eddy_first = self.eddy_viscosity(first, nu_first)
        loose_first = self.diffusivity(first, nu_first)
        eddy_second = self.eddy_viscosity(second, nu_second)
        loose_second = self.diffusivity(second, nu_second)
        return eddy_first, loose_first, eddy_second, loose_second


_DIFFUSION = 2.0
"""Part of a step that diffusion by itself allows, beside that of convection."""


@func
def corrected(g, jump, way, inverse, first, d):
    """Correct a gradient, at ``first`` of ``g``, along a way ``v`` between two places: ``g += (dq - g . v) v / |v|^2``.

    ``jump`` is ``dq``, ``inverse`` is ``1 / |v|^2``.
    """
    along = jump
    for k in range(d):
        along -= g[first + k] * way[k]
    for k in range(d):
        g[first + k] += along * inverse * way[k]


@func
def heat_gradient(w, gradient, light, heat, over_r, d):
    """Add half the gradient of the temperature in a cell to ``heat``, ``(grad p - p / rho grad rho) / (2 rho R_g)``.

    ``light`` is ``1 / rho``, ``over_r`` is ``1 / R_g``.
    """
    share = 0.5 * light * over_r
    for k in range(d):
        heat[k] += share * (gradient[d * (1 + d) + k] - w[1 + d] * light * gradient[k])


@func
def molecular(gas, temperature):
    """Return the dynamic viscosity of a gas that has one, ``mu = mu(T)``."""
    return gas.viscosity(temperature)


@func
def turbulent(w, mu, closure, nv, d):
    """Return the dynamic eddy viscosity of a state, ``mu_t = rho nu_t(nut, mu / rho)``; 0 without a model."""
    mut = 0.0
    if nv == d + 3:
        mut = w[0] * closure.eddy_viscosity(w[nv - 1], mu / w[0])
    return mut


@kernel
def eddy_viscosity(
    w: Read, mut: Write, *, gas: Const[Gas], closure: Const[TurbulenceModel], nv: Const[int], d: Const[int]
):  # fmt: skip
    """Dynamic eddy viscosity of a state with a model's variable, ``mu_t = rho nu_t(nut, mu(T) / rho)``."""
    mut[0] = turbulent(w, molecular(gas, w[1 + d] / (w[0] * gas.constant)), closure, nv, d)


@func
def diffused(w, mu, rate, closure, d):
    """Return what diffuses of a model's variable, ``rho (nu + f nut) / sigma dnut/dn``; ``rate`` is ``dnut/dn``."""
    return w[0] * closure.diffusivity(w[2 + d], mu / w[0]) / closure.sigma * rate


@func
def vorticity(gradient, d):
    """Return the size of the vorticity, ``sqrt(sum_{i > k} (du_i/dx_k - du_k/dx_i)^2)``, of the gradients of a cell."""
    square = 0.0
    for i in range(d):
        for k in range(i):
            curl = gradient[d * (1 + i) + k] - gradient[d * (1 + k) + i]
            square += curl * curl
    return sqrt(square)


@func
def carriers(w, near, light, thin, first, second, viscosity, closure, nv, d):
    """Return what carries momentum, heat and the model's variable through a face: molecular, eddy, and its diffusivity.

    ``(mu_1 + mu_2) / 2``, ``(rho_1 nu_t1 + rho_2 nu_t2) / 2``, ``(rho_1 d_1 + rho_2 d_2) / (2 sigma)`` with ``d`` of
    `TurbulenceModel.diffusivity`, the last two 0 without a model. ``light`` and ``thin`` are ``1 / rho`` of both,
    ``first`` and ``second`` their temperatures. Divisions cost more than all else: two quotients take one, of the
    product of what is under their lines.
    """
    mu_first, mu_second = viscosity.both(first, second)
    mut = 0.0
    spread = 0.0
    if nv == d + 3:
        nu_first = mu_first * light
        nu_second = mu_second * thin
        eddy_first, loose_first, eddy_second, loose_second = closure.both(w[nv - 1], nu_first, near[nv - 1], nu_second)
        mut = 0.5 * (w[0] * eddy_first + near[0] * eddy_second)
        spread = 0.5 * (w[0] * loose_first + near[0] * loose_second) * (1.0 / closure.sigma)
    return 0.5 * (mu_first + mu_second), mut, spread


@func
def face_viscous_flux(
    w, gradient, near, far, n, way, aside, light, thin, warmer, viscosity, conductivity, spread, f, over_r, nv, d
):  # fmt: skip
    """Write the viscous flux into an element through a face, per unit of area: `viscous`, with gradients `corrected`.

    ``F_v = (0, tau n, u . tau n + kappa dT/dn, D dnut/dn)``, ``u = (u_1 + u_2) / 2 + grad u . aside`` (Blazek, sec.
    5.4.2). ``near`` and ``far`` are state and gradients of the element across, ``n`` and ``way`` lead to it, ``aside``
    leads from the middle of that way to the middle of the face, where stress does its work. ``light`` and ``thin`` are
    ``1 / rho`` of both, ``warmer`` is its temperature above that of the element. ``viscosity``, ``conductivity`` and
    ``spread`` are those at the face of momentum, heat and the model's variable; ``over_r`` is ``1 / R_g``.
    """
    u = zeros(d)
    heat = zeros(d)
    g = zeros(d * d)
    h = zeros(d)
    flow = zeros(2 + d)
    square = 0.0
    for k in range(d):
        square += way[k] * way[k]
        u[k] = 0.5 * (w[1 + k] + near[1 + k])
    inverse = 1.0 / square
    heat_gradient(w, gradient, light, heat, over_r, d)
    heat_gradient(near, far, thin, heat, over_r, d)
    corrected(heat, warmer, way, inverse, 0, d)
    for i in range(d):
        for k in range(d):
            g[d * i + k] = 0.5 * (gradient[d * (1 + i) + k] + far[d * (1 + i) + k])
        corrected(g, near[1 + i] - w[1 + i], way, inverse, d * i, d)
        for k in range(d):
            u[i] += g[d * i + k] * aside[k]
    viscous(u, g, heat, n, flow, viscosity, conductivity, d)
    for v in range(2 + d):
        f[v] = flow[v]
    if nv == d + 3:
        for k in range(d):
            h[k] = 0.5 * (gradient[d * (2 + d) + k] + far[d * (2 + d) + k])
        corrected(h, near[2 + d] - w[2 + d], way, inverse, 0, d)
        rate = 0.0
        for k in range(d):
            rate += h[k] * n[k]
        f[2 + d] = spread * rate


@func
def fastest(conducted, spread, gamma):
    """Return what carries fastest through a face, of momentum, heat and the model's variable: it bounds the step.

    ``max(max(4/3, gamma) (mu / Pr + mu_t / Pr_t), D)`` (Blazek, sec. 6.1.4); ``conducted`` is
    ``mu / Pr + mu_t / Pr_t``.
    """
    return max(max(4.0 / 3.0, gamma) * conducted, spread)


@func
def step_share(waves, density, volume):
    """Return what viscosity and heat take of a step, beside half the sum of waves: ``C sum A^2 D / (2 rho V)``.

    ``waves`` is ``sum A^2 D`` with ``D`` of `fastest`, ``C = 2``; 0 for boundary elements.
    """
    return select(volume > 0.0, 0.5 * _DIFFUSION * waves / (density * volume), 0.0)


@kernel
def viscous_flux(
    w: Read, gradient: Read, near: Read, far: Read, face: Read, sign: Read, volume: Read, res: RW, speed: RW,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], nv: Const[int], d: Const[int],
):  # fmt: skip
    """Add the viscous fluxes between cells, ``R += sum_f A F_v``, and to ``speed`` what they take of the step."""
    total = zeros(nv)
    waves = 0.0
    over_r = 1.0 / gas.constant
    laminar = 1.0 / gas.prandtl
    eddies = 1.0 / gas.prandtl_turbulent
    heat_capacity = gas.gamma * gas.constant / (gas.gamma - 1.0)
    light = 1.0 / w[0]
    own = w[1 + d] * light * over_r
    n = zeros(d)
    way = zeros(d)
    aside = zeros(d)
    f = zeros(nv)
    for j in range(len(near)):
        side = select(sign[j] < 0.0, -1.0, 1.0)
        for k in range(d):
            n[k] = side * face[j][k]
            way[k] = side * (face[j][d + 1 + k] - face[j][2 * d + 1 + k])
            aside[k] = 0.5 * (face[j][d + 1 + k] + face[j][2 * d + 1 + k])
        thin = 1.0 / near[j][0]
        other = near[j][1 + d] * thin * over_r
        mu, mut, spread = carriers(w, near[j], light, thin, own, other, gas.viscosity, closure, nv, d)
        conducted = mu * laminar + mut * eddies
        face_viscous_flux(w, gradient, near[j], far[j], n, way, aside, light, thin, other - own, mu + mut,
                      heat_capacity * conducted, spread, f, over_r, nv, d)  # fmt: skip
        area = select(sign[j] == 0.0, 0.0, face[j][d])
        for v in range(nv):
            total[v] += area * f[v]
        waves += area * area * fastest(conducted, spread, gas.gamma)
    for v in range(nv):
        res[v] += total[v]
    speed[0] += step_share(waves, w[0], volume[0])


@kernel
def boundary_viscous_flux(
    kind: Read, par: Read, face: Read, b: Read, w: Read, gradient: Read, out: RW,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], states: Const[tuple[FaceState, ...]],
    nv: Const[int], d: Const[int],
):  # fmt: skip
    """Take the viscous flux from that out of a boundary face, ``f -= F_v``, with the state ``b`` there, ``w`` inside.

    The gradient is that of the cell, `corrected` to ``b``. No heat passes a wall without a temperature, but what it is
    said to give, or a plane of symmetry, and of the stress at this only its normal part. In such a plane ``b`` is the
    image of ``w``, as far beyond it.
    """
    n = zeros(d)
    u = zeros(d)
    way = zeros(d)
    heat = zeros(d)
    f = zeros(2 + d)
    g = zeros(d * d)
    h = zeros(d)
    square = 0.0
    for k in range(d):
        n[k] = face[k]
        way[k] = face[d + 1 + k]
        u[k] = b[1 + k]
    if is_mirror(states, kind[0], par):
        reach = 0.0
        for k in range(d):
            reach += way[k] * n[k]
        for k in range(d):
            way[k] = 2.0 * reach * n[k]
            u[k] = 0.5 * (b[1 + k] + w[1 + k])
    for k in range(d):
        square += way[k] * way[k]
    here = b[1 + d] / (b[0] * gas.constant)
    inside = w[1 + d] / (w[0] * gas.constant)
    heat_gradient(w, gradient, 1.0 / w[0], heat, 1.0 / gas.constant, d)
    heat_gradient(w, gradient, 1.0 / w[0], heat, 1.0 / gas.constant, d)
    corrected(heat, here - inside, way, 1.0 / square, 0, d)
    for i in range(d):
        for k in range(d):
            g[d * i + k] = gradient[d * (1 + i) + k]
        corrected(g, b[1 + i] - w[1 + i], way, 1.0 / square, d * i, d)
    mu = molecular(gas, here)
    mut = turbulent(b, mu, closure, nv, d)
    capacity = select(is_adiabatic(states, kind[0]), 0.0, gas.gamma * gas.constant / (gas.gamma - 1.0))
    viscous(u, g, heat, n, f, mu + mut, capacity * (mu / gas.prandtl + mut / gas.prandtl_turbulent), d)
    if is_slip(states, kind[0]):
        normal = 0.0
        work = 0.0
        for k in range(d):
            normal += f[1 + k] * n[k]
        for k in range(d):
            f[1 + k] = normal * n[k]
            work += f[1 + k] * u[k]
        f[1 + d] = work
    heat_given(states, kind[0], par, f, d)
    for v in range(2 + d):
        out[v] -= f[v]
    if nv == d + 3:
        for k in range(d):
            h[k] = gradient[d * (2 + d) + k]
        corrected(h, b[2 + d] - w[2 + d], way, 1.0 / square, 0, d)
        rate = 0.0
        for k in range(d):
            rate += h[k] * n[k]
        rate = select(is_slip(states, kind[0]), 0.0, rate)
        out[2 + d] -= diffused(b, mu, rate, closure, d)


@kernel
def mirror_waves(
    face: Read, b: Read, w: Read, volume: Read, speed: Inc,
    *, gas: Const[Gas], closure: Const[TurbulenceModel | None], nv: Const[int], d: Const[int],
):  # fmt: skip
    """Add what viscosity and heat take of a step through a symmetry plane, ``C A^2 D / (2 rho V)``; `step_share`."""
    light = 1.0 / w[0]
    warm = w[1 + d] * light / gas.constant
    mu, mut, spread = carriers(w, b, light, light, warm, warm, gas.viscosity, closure, nv, d)
    waves = face[d] * face[d] * fastest(mu / gas.prandtl + mut / gas.prandtl_turbulent, spread, gas.gamma)
    speed[0] += step_share(waves, w[0], volume[0])


@kernel
def turbulence(
    w: Read, gradient: Read, distance: Read, volume: Read, res: RW,
    *, gas: Const[Gas], closure: Const[TurbulenceModel], d: Const[int],
):  # fmt: skip
    r"""Add what a model of turbulence produces, destroys and diffuses by gradients in a cell to the residual.

    .. math:: R \mathrel{+}= V \Big[\rho (P - D) + \frac{c_{b2}}{\sigma} \rho |\nabla \tilde\nu|^2
              - \frac{1}{\sigma} (\nu + \tilde\nu) \nabla \rho \cdot \nabla \tilde\nu\Big]

    (ICCFD7-1902, sec. 2.3.)
    """
    nut = w[2 + d]
    nu = molecular(gas, w[1 + d] / (w[0] * gas.constant)) / w[0]
    spin = vorticity(gradient, d)
    square = 0.0
    across = 0.0
    for k in range(d):
        square += gradient[d * (2 + d) + k] * gradient[d * (2 + d) + k]
        across += gradient[k] * gradient[d * (2 + d) + k]
    total = w[0] * (closure.source(nut, nu, spin, distance[0]) + closure.cb2 / closure.sigma * square)
    total -= closure.diffusivity(nut, nu) / closure.sigma * across
    res[2 + d] += volume[0] * total
