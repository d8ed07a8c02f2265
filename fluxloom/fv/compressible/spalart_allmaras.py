r"""The one-equation model of Spalart and Allmaras, with its continuation to negative values.

.. math:: \frac{D \tilde\nu}{D t} = c_{b1} (1 - f_{t2}) \tilde S \tilde\nu
          - \left(c_{w1} f_w - \frac{c_{b1}}{\kappa^2} f_{t2}\right) \left(\frac{\tilde\nu}{y}\right)^2
          + \frac{1}{\sigma} \left[\nabla \cdot \big((\nu + \tilde\nu) \nabla \tilde\nu\big)
          + c_{b2} |\nabla \tilde\nu|^2\right], \quad \nu_t = f_{v1} \tilde\nu

with the distance ``y`` from the wall and the size ``omega`` of the vorticity. Where :math:`\tilde\nu < 0`, which the
exact solution never is, production and destruction are :math:`c_{b1} (1 - c_{t3}) \omega \tilde\nu` and
:math:`-c_{w1} (\tilde\nu / y)^2`, there is no eddy viscosity, and :math:`\tilde\nu` diffuses with
:math:`\nu + f_n \tilde\nu > 0`: it comes back, and a solver need not cut it off.

These are functions for kernels, ``@func``.

References
----------
P. R. Spalart, S. R. Allmaras: *A one-equation turbulence model for aerodynamic flows*. Rech. Aérosp. 1, 1994.
S. R. Allmaras, F. T. Johnson, P. R. Spalart: *Modifications and clarifications for the implementation of the
Spalart-Allmaras turbulence model*. ICCFD7-1902, 2012 (the modified vorticity: eq. 12; negative values: eq. 21 to 23).
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.fv.compressible.viscous_flux import TurbulenceModel
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import exp, max, min, pow, select

__all__ = ["CB2", "SIGMA", "SpalartAllmaras", "diffusivity", "eddy_viscosity", "source"]

CB1, CB2, SIGMA, KAPPA = 0.1355, 0.622, 2.0 / 3.0, 0.41
CW1, CW2, CW3 = CB1 / KAPPA**2 + (1.0 + CB2) / SIGMA, 0.3, 2.0
CV1, CT3, CT4, CN1 = 7.1, 1.2, 0.5, 16.0
_C2, _C3 = 0.7, 0.9
_MOST_R = 10.0
_CW3_6 = CW3**6


@func
def damped(chi):
    """Return ``f_v1 = chi^3 / (chi^3 + c_v1^3)``, ``chi = nut / nu`` (Spalart and Allmaras 1994)."""
    cube = chi * chi * chi
    return cube / (cube + CV1 * CV1 * CV1)


@func
def eddy_viscosity(nut, nu):
    """Return the kinematic eddy viscosity ``nu_t = f_v1 nut`` of a value of the model, 0 for a negative one."""
    chi = max(nut, 0.0) / nu
    return nut * damped(chi) if nut > 0.0 else 0.0


@func
def diffusivity(nut, nu):
    """Return ``nu + nut``, or ``nu + f_n nut`` of a negative value; to be divided by ``SIGMA``.

    ``f_n = (c_n1 + chi^3) / (c_n1 - chi^3)``, ``chi = nut / nu`` (ICCFD7-1902, eq. 21 to 23).
    """
    chi = nut / nu
    cube = chi * chi * chi
    share = select(nut < 0.0, (CN1 + cube) / (CN1 - cube), 1.0)
    return nu + share * nut


@func
def parts_of_share(chi):
    """Return what is over and under the line of ``f_v1``, or of ``f_n = (c_n1 + chi^3) / (c_n1 - chi^3)`` below 0."""
    cube = chi * chi * chi
    return select(chi < 0.0, CN1 + cube, cube), select(chi < 0.0, CN1 - cube, cube + CV1 * CV1 * CV1)


@func
def shared(nut, nu, share):
    """Return ``f_v1 nut``, ``nu + nut``, of a negative value 0, ``nu + f_n nut``; `share` is ``f_v1`` or ``f_n``."""
    return select(nut < 0.0, 0.0, nut * share), nu + nut * select(nut < 0.0, share, 1.0)


@func
def modified(omega, bar):
    r"""Return the modified vorticity, ``omega + bar`` where that is enough above zero, and never below ``0.3 omega``.

    .. math:: \tilde S = \omega + \bar S, \quad \text{for } \bar S < -c_2 \omega: \quad
              \tilde S = \omega + \frac{\omega (c_2^2 \omega + c_3 \bar S)}{(c_3 - 2 c_2) \omega - \bar S}

    with ``bar`` for :math:`\bar S` (ICCFD7-1902, eq. 12).
    """
    under = select(bar >= -_C2 * omega, 1.0, (_C3 - 2.0 * _C2) * omega - bar)
    low = omega + omega * (_C2 * _C2 * omega + _C3 * bar) / under
    return select(bar >= -_C2 * omega, omega + bar, low)


@func
def wall_function(r):
    """Return ``f_w``, 1 in a logarithmic layer, where ``r`` is 1.

    ``f_w = g ((1 + c_w3^6) / (g^6 + c_w3^6))^(1/6)``, ``g = r + c_w2 (r^6 - r)`` (Spalart and Allmaras 1994).
    """
    r2 = r * r
    g = r + CW2 * (r2 * r2 * r2 - r)
    g2 = g * g
    return g * pow((1.0 + _CW3_6) / (g2 * g2 * g2 + _CW3_6), 1.0 / 6.0)


@func
def source(nut, nu, omega, y):
    r"""Return production less destruction at a distance ``y`` from the wall; what diffuses is not in it.

    .. math:: c_{b1} (1 - f_{t2}) \tilde S \tilde\nu - \Big(c_{w1} f_w - \frac{c_{b1}}{\kappa^2} f_{t2}\Big)
              \Big(\frac{\tilde\nu}{y}\Big)^2, \quad
              \bar S = \frac{\tilde\nu}{\kappa^2 y^2} \Big(1 - \frac{\chi}{1 + \chi f_{v1}}\Big), \quad
              r = \min\Big(\frac{\tilde\nu}{\tilde S \kappa^2 y^2}, 10\Big)

    with :math:`f_{t2} = c_{t3} e^{-c_{t4} \chi^2}`, and
    :math:`c_{b1} (1 - c_{t3}) \omega \tilde\nu + c_{w1} (\tilde\nu / y)^2` of a negative value (ICCFD7-1902, eq. 12 and
    21 to 23).
    """
    away = nut / y
    if nut >= 0.0:
        chi = nut / nu
        calm = CT3 * exp(-CT4 * chi * chi)
        near = 1.0 / (KAPPA * KAPPA * y * y)
        bar = nut * near * (1.0 - chi / (1.0 + chi * damped(chi)))
        s = modified(omega, bar)
        r = min(nut * near / s, _MOST_R) if s > 0.0 else _MOST_R
        gained = CB1 * (1.0 - calm) * s * nut
        total = gained - (CW1 * wall_function(r) - CB1 / (KAPPA * KAPPA) * calm) * away * away
    else:
        total = CB1 * (1.0 - CT3) * omega * nut + CW1 * away * away
    return total


@dataclass(frozen=True)
class SpalartAllmaras(TurbulenceModel, name="spalart-allmaras"):
    """The model of Spalart and Allmaras; see the module."""

    @property
    def sigma(self) -> float:
        """``sigma``."""
        return SIGMA

    @property
    def cb2(self) -> float:
        """``c_b2``."""
        return CB2

    @func
    def eddy_viscosity(self, nut, nu):
        """Return ``nu_t = f_v1 nut``, 0 for a negative value."""
        return eddy_viscosity(nut, nu)

    @func
    def diffusivity(self, nut, nu):
        """Return ``nu + nut``, or ``nu + f_n nut`` of a negative value."""
        return diffusivity(nut, nu)

    @func
    def source(self, nut, nu, omega, y):
        """Return production less destruction, ``P - D``; see `source`."""
        return source(nut, nu, omega, y)

    @func
    def both(self, first, nu_first, second, nu_second):
        """Return ``(f_v1 nut, nu + nut)`` of both cells, with one division for both values of ``f_v1`` or ``f_n``."""
        once = 1.0 / (nu_first * nu_second)
        over_first, under_first = parts_of_share(first * (nu_second * once))
        over_second, under_second = parts_of_share(second * (nu_first * once))
        under = 1.0 / (under_first * under_second)
        eddy_first, loose_first = shared(first, nu_first, over_first * (under_second * under))
        eddy_second, loose_second = shared(second, nu_second, over_second * (under_first * under))
        return eddy_first, loose_first, eddy_second, loose_second
