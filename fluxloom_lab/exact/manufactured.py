r"""Manufactured solutions of the compressible Navier-Stokes equations: smooth states, and the sources they need.

A state ``w(x) = (rho, u_1 ... u_d, p)`` that is chosen is steady when

.. math:: S = \nabla \cdot F(w) - \nabla \cdot F_v(w, \nabla w)

is added to ``dU/dt``, so a solver with this source has an exact solution on every mesh, and its error an order. Fields
are sums of sines, so they are periodic in a box, and all derivatives are written down: none is a difference.

With the model of Spalart and Allmaras ``w`` ends with its variable ``nut``, the viscous terms have the eddy viscosity,
and the source has ``S_nut``, what is added to ``d (rho nut) / dt``. For the form of the model in which ``nut`` is
carried, ``D nut / Dt``, that is ``(S_nut - nut S_rho) / rho`` (`Manufactured.carried_source`).

References
----------
P. J. Roache: *Code verification by the method of manufactured solutions*. J. Fluids Eng. 124, 2002.
C. J. Roy, C. C. Nelson, T. M. Smith, C. C. Ober: *Verification of Euler/Navier-Stokes codes using the method of
manufactured solutions*. Int. J. Numer. Methods Fluids 44, 2004.
S. R. Allmaras, F. T. Johnson, P. R. Spalart: *Modifications and clarifications for the implementation of the
Spalart-Allmaras turbulence model*. ICCFD7-1902, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, pi, sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import Gas, Sutherland, check_positive
from fluxloom.fv.compressible.spalart_allmaras import CB2, CV1, SIGMA
from fluxloom.fv.compressible.spalart_allmaras import source as production
from fluxloom_lab.exact.manufactured_terms import Coefficient, Terms, dot
from fluxloom_lab.exact.plane_waves import PlaneWaves

__all__ = ["Manufactured"]

Array = npt.NDArray[np.float64]

_WAVES = (
    ((1, 0, 1), (0, 1, -1)),
    ((1, 1, 0), (-1, 1, 1)),
    ((1, -1, 1), (0, 1, 1)),
    ((0, 1, 1), (1, 0, -1)),
    ((1, 1, -1), (1, -1, 0)),
    ((1, 0, 0), (1, 1, 1)),
)
"""Numbers of waves in the box, two of each field: density, velocity, pressure, and the variable of the model."""

_COURSE = (1.0, 0.6, -0.4)
"""Of the mean flow."""


@dataclass(frozen=True)
class Manufactured:
    """A manufactured solution in a box of ``length`` on each side, in which it is periodic.

    Attributes
    ----------
    dimension
        ``d``, 2 or 3.
    gas
        Its viscosity decides whether the source has viscous terms.
    density, pressure, mach
        Of the mean flow.
    length
        Of the box.
    amplitude
        Of the waves of density and pressure, and of those of the velocity over its mean; below 0.5.
    eddy
        Mean of ``nut`` over the kinematic viscosity of the mean flow; above 0 there is the model of turbulence.
    fields
        Density, velocity, pressure and, where ``eddy`` is above 0, ``nut``, instead of the ones made of these values.

    Raises
    ------
    SolverError
        For values out of range, and a density, pressure or ``nut`` that may be negative.
    """

    dimension: int = 2
    gas: Gas = field(default_factory=Gas)
    density: float = 1.2
    pressure: float = 101325.0
    mach: float = 0.5
    length: float = 1.0
    amplitude: float = 0.1
    eddy: float = 0.0
    fields: tuple[PlaneWaves, ...] = ()

    def __post_init__(self) -> None:
        if self.dimension not in (2, 3):
            raise SolverError(f"dimension: 2 or 3 is wanted, not {self.dimension!r}")
        check_positive(density=self.density, pressure=self.pressure, length=self.length)
        if not (isfinite(self.mach) and self.mach >= 0.0 and 0.0 <= self.amplitude < 0.5 and self.eddy >= 0.0):
            raise SolverError(
                "a manufactured solution wants mach >= 0, 0 <= amplitude < 0.5 and eddy >= 0, "
                f"got {self.mach!r}, {self.amplitude!r} and {self.eddy!r}"
            )
        if self.eddy > 0.0 and self.gas.viscosity is None:
            raise SolverError("a model of turbulence needs a gas with a viscosity: give the gas one, or eddy=0")
        if self.fields and len(self.fields) != self.variables:
            raise SolverError(f"fields: {self.variables} are wanted, got {len(self.fields)}")
        for k in (0, 1 + self.dimension, 2 + self.dimension)[: 3 if self.eddy > 0.0 else 2]:
            if not self._fields[k].least > 0.0:
                raise SolverError(f"field {k} may be negative: give it smaller amplitudes or a larger mean")

    @property
    def variables(self) -> int:
        """Number of components of a state: ``d + 2``, with the model of turbulence ``d + 3``."""
        return self.dimension + (3 if self.eddy > 0.0 else 2)

    @cached_property
    def _fields(self) -> tuple[PlaneWaves, ...]:
        if self.fields:
            return self.fields
        d, sound = self.dimension, sqrt(self.gas.gamma * self.pressure / self.density)
        course = np.array(_COURSE[:d]) / np.linalg.norm(_COURSE[:d])
        speed = self.mach * sound
        means = [self.density, *(speed * course), self.pressure]
        sizes = [self.density, *[speed] * d, self.pressure]
        if self.eddy > 0.0:
            mu = float(self._laminar(np.array([self.pressure / self.density]))[0])
            means.append(self.eddy * mu / self.density)
            sizes.append(means[-1])
        numbers = _WAVES[: 1 + d] + _WAVES[4 : 4 + len(means) - 1 - d]
        return tuple(
            PlaneWaves(
                float(mean),
                (self.amplitude * float(size), 0.5 * self.amplitude * float(size)),
                tuple(tuple(2.0 * pi / self.length * n for n in pair[:d]) for pair in numbers[k]),
                (0.3 + 0.7 * k, 1.1 - 0.4 * k),
            )
            for k, (mean, size) in enumerate(zip(means, sizes, strict=True))
        )

    # ------------------------------------------------------------------------------------------------ the state

    def state(self, points: Array) -> Array:
        """Return primitive states ``(n, v)`` at points ``(n, d)``; ``v`` is `variables`."""
        points = self._points(points)
        return np.stack([q.value(points) for q in self._fields], axis=1)

    def gradient(self, points: Array) -> Array:
        """Return the gradients of the primitive states, ``(n, v, d)``."""
        points = self._points(points)
        return np.stack([q.gradient(points) for q in self._fields], axis=1)

    def temperature_gradient(self, points: Array) -> Array:
        """Return ``grad T``, ``(n, d)``."""
        return Terms.of(self._fields, self._points(points)).d_theta / self.gas.constant

    def _points(self, points: Array) -> Array:
        points = np.asarray(points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise SolverError(f"points (n, {self.dimension}) are wanted, got the shape {points.shape}")
        return points

    # ----------------------------------------------------------------------------------------------- the source

    def source(self, points: Array, distance: Array | None = None) -> Array:
        """Return what is to be added to ``dU/dt`` so that the state is steady, ``(n, v)``.

        Parameters
        ----------
        points : (n, d)
            Where.
        distance : (n,)
            From the wall, for the model of turbulence: any positive numbers that the solver has too.

        Returns
        -------
        source : (n, v)
            Of density, momentum and energy; with a model of turbulence, of ``rho nut``.

        Raises
        ------
        SolverError
            If the model of turbulence has no distances.
        """
        points = self._points(points)
        at = Terms.of(self._fields, points)
        found = np.zeros((len(points), self.variables))
        self._convect(at, found)
        if self.gas.viscosity is not None:
            mu = self._viscosity(at)
            heat = mu.plus(mu, 1.0 / self.gas.prandtl - 1.0)
            if self.eddy > 0.0:
                carried = self._carry(at, mu, points, distance)
                found[:, -1] = at.rho * carried + self._fields[-1].value(points) * found[:, 0]
                more = self._eddy(at, mu, points)
                mu, heat = mu.plus(more, 1.0), heat.plus(more, 1.0 / self.gas.prandtl_turbulent)
            self._diffuse(at, mu, heat, found)
        return found

    def carried_source(self, points: Array, distance: Array) -> Array:
        """Return what is to be added to ``D nut / Dt``, ``(n,)``; as `source` has it, ``(S_nut - nut S_rho) / rho``."""
        if self.eddy == 0.0:
            raise SolverError("there is no model of turbulence: give eddy > 0")
        points = self._points(points)
        at = Terms.of(self._fields, points)
        return self._carry(at, self._viscosity(at), points, distance)

    def _convect(self, at: Terms, found: Array) -> None:
        """Write the divergence of the flux of Euler."""
        d, lift = self.dimension, self.gas.gamma / (self.gas.gamma - 1.0)
        along = np.einsum("nij,nj->ni", at.d_u, at.u)
        enthalpy = lift * at.theta + 0.5 * dot(at.u, at.u)
        found[:, 0] = at.outflow
        found[:, 1 : 1 + d] = at.outflow[:, None] * at.u + at.rho[:, None] * along + at.d_p
        found[:, 1 + d] = enthalpy * at.outflow + at.rho * (lift * dot(at.u, at.d_theta) + dot(at.u, along))

    def _diffuse(self, at: Terms, mu: Coefficient, heat: Coefficient, found: Array) -> None:
        """Subtract the divergence of the viscous flux; ``heat`` is the conductivity over ``c_p``."""
        d, strain = self.dimension, at.strain
        force = np.einsum("nij,nj->ni", strain, mu.slope) + mu.value[:, None] * (at.dd_u + at.d_spread / 3.0)
        work = dot(force, at.u) + mu.value * np.einsum("nij,nij->n", strain, at.d_u)
        lift = self.gas.gamma / (self.gas.gamma - 1.0)
        found[:, 1 : 1 + d] -= force
        found[:, 1 + d] -= work + lift * (dot(heat.slope, at.d_theta) + heat.value * at.dd_theta)

    # ------------------------------------------------------------------------------------------- the viscosities

    def _laminar(self, theta: Array) -> Array:
        """Return the viscosity from ``p / rho``."""
        if self.gas.viscosity is None:
            return np.zeros_like(theta)
        return np.asarray(self.gas.viscosity.at(theta / self.gas.constant), dtype=np.float64)

    def _viscosity(self, at: Terms) -> Coefficient:
        """Return the viscosity; of Sutherland's law ``d mu / dT = mu (3 / (2 T) - 1 / (T + S))``."""
        mu, t = self._laminar(at.theta), at.theta / self.gas.constant
        if isinstance(self.gas.viscosity, Sutherland):
            steep = mu * (1.5 / t - 1.0 / (t + self.gas.viscosity.s))
            return Coefficient(mu, (steep / self.gas.constant)[:, None] * at.d_theta)
        return Coefficient(mu, np.zeros_like(at.d_theta))

    def _eddy(self, at: Terms, mu: Coefficient, points: Array) -> Coefficient:
        """Return ``rho nut f_v1(chi)`` with ``chi = rho nut / mu``."""
        nut = self._fields[-1]
        size = at.rho * nut.value(points)
        slope = at.d_rho * nut.value(points)[:, None] + at.rho[:, None] * nut.gradient(points)
        chi = size / mu.value
        d_chi = (slope - chi[:, None] * mu.slope) / mu.value[:, None]
        share = chi**3 / (chi**3 + CV1**3)
        steep = 3.0 * chi**2 * CV1**3 / (chi**3 + CV1**3) ** 2
        return Coefficient(size * share, share[:, None] * slope + (size * steep)[:, None] * d_chi)

    def _carry(self, at: Terms, mu: Coefficient, points: Array, distance: Array | None) -> Array:
        """Return ``D nut / Dt`` less what the model of turbulence says it is."""
        if distance is None or np.shape(distance) != (len(points),):
            raise SolverError(f"distance: that from the wall of each of the {len(points)} points is wanted")
        nut, slope = self._fields[-1].value(points), self._fields[-1].gradient(points)
        bend = np.trace(self._fields[-1].curvature(points), axis1=1, axis2=2)
        nu = mu.value / at.rho
        d_nu = (mu.slope - nu[:, None] * at.d_rho) / at.rho[:, None]
        spread = (nu + nut) * bend + dot(d_nu + slope, slope) + CB2 * dot(slope, slope)
        made = np.array([production(*values) for values in zip(nut, nu, at.vorticity, distance, strict=True)])
        return dot(at.u, slope) - spread / SIGMA - made.reshape(-1)
