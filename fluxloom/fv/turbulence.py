r"""Turbulence models of one equation, for averaged compressible flow.

A model has a variable :math:`\tilde\nu`, which is transported as

.. math:: \frac{\partial \rho \tilde\nu}{\partial t} + \nabla \cdot (\rho u \tilde\nu) = \rho (P - D)
          + \frac{1}{\sigma} \nabla \cdot \big(\rho\, \nu_d \nabla \tilde\nu\big)
          + \frac{c_{b2}}{\sigma} \rho |\nabla \tilde\nu|^2 - \frac{1}{\sigma} \nu_d \nabla \rho \cdot \nabla \tilde\nu

with production less destruction :math:`P - D`, and a diffusivity :math:`\nu_d`; it gives the eddy viscosity
:math:`\nu_t`. At walls it is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluxloom.core.strategies import Strategy
from fluxloom.kernel.frontend import func

__all__ = ["TurbulenceModel"]


_HERE = {"spalart-allmaras": "fluxloom.fv.spalart_allmaras:SpalartAllmaras"}


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
        """Return eddy viscosity and diffusivity of two cells: of the first, then of the second."""
        eddy_first = self.eddy_viscosity(first, nu_first)
        loose_first = self.diffusivity(first, nu_first)
        eddy_second = self.eddy_viscosity(second, nu_second)
        loose_second = self.diffusivity(second, nu_second)
        return eddy_first, loose_first, eddy_second, loose_second
