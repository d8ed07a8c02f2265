"""Derivatives of a state that is a product and quotient of smooth fields: what manufactured sources are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom_lab.exact.plane_waves import PlaneWaves

__all__ = ["Coefficient", "Terms", "dot"]

Array = npt.NDArray[np.float64]


def dot(a: Array, b: Array) -> Array:
    """Return the products ``(n,)`` of two fields of vectors ``(n, d)``."""
    return np.einsum("nj,nj->n", a, b)


@dataclass(frozen=True, eq=False)
class Terms:
    """A state and its derivatives at points: what sources are made of.

    Attributes
    ----------
    rho, theta : (n,)
        Density and ``p / rho``.
    u : (n, d)
        Velocity.
    d_rho, d_theta : (n, d)
        Gradients of density and ``p / rho``.
    d_p : (n, d)
        Gradient of the pressure.
    d_u : (n, d, d)
        ``d u_i / d x_j``.
    dd_theta : (n,)
        Laplacian of ``p / rho``.
    dd_u : (n, d)
        Laplacian of the velocity.
    d_spread : (n, d)
        Gradient of its divergence.
    """

    rho: Array
    theta: Array
    u: Array
    d_rho: Array
    d_theta: Array
    d_p: Array
    d_u: Array
    dd_theta: Array
    dd_u: Array
    d_spread: Array

    @classmethod
    def of(cls, fields: tuple[PlaneWaves, ...], points: Array) -> Terms:
        """Return those of the fields ``rho, u_1 ... u_d, p``."""
        d = points.shape[1]
        rho, p = fields[0].value(points), fields[1 + d].value(points)
        d_rho, d_p = fields[0].gradient(points), fields[1 + d].gradient(points)
        lap_rho, lap_p = (np.trace(q.curvature(points), axis1=1, axis2=2) for q in (fields[0], fields[1 + d]))
        theta = p / rho
        d_theta = (d_p - theta[:, None] * d_rho) / rho[:, None]
        dd_theta = (lap_p - 2.0 * dot(d_theta, d_rho) - theta * lap_rho) / rho
        bends = np.stack([q.curvature(points) for q in fields[1 : 1 + d]], axis=1)
        return cls(
            rho, theta, np.stack([q.value(points) for q in fields[1 : 1 + d]], axis=1), d_rho, d_theta, d_p,
            np.stack([q.gradient(points) for q in fields[1 : 1 + d]], axis=1), dd_theta,
            np.einsum("nijj->ni", bends), np.einsum("niij->nj", bends),
        )  # fmt: skip

    @property
    def spread(self) -> Array:
        """Divergence of the velocity, ``(n,)``."""
        return np.trace(self.d_u, axis1=1, axis2=2)

    @property
    def outflow(self) -> Array:
        """Divergence of ``rho u``, ``(n,)``."""
        return self.rho * self.spread + dot(self.u, self.d_rho)

    @property
    def strain(self) -> Array:
        """Stress over viscosity, ``(n, d, d)``."""
        d = self.u.shape[1]
        return self.d_u + self.d_u.swapaxes(1, 2) - 2.0 / 3.0 * self.spread[:, None, None] * np.eye(d)

    @property
    def vorticity(self) -> Array:
        """Size of the vorticity, ``(n,)``."""
        turn = self.d_u - self.d_u.swapaxes(1, 2)
        return np.sqrt(0.5 * np.einsum("nij,nij->n", turn, turn))


@dataclass(frozen=True, eq=False)
class Coefficient:
    """A coefficient of diffusion ``(n,)`` and its gradient ``(n, d)``."""

    value: Array
    slope: Array

    def plus(self, other: Coefficient, scale: float) -> Coefficient:
        """Return the sum with a multiple of another one."""
        return Coefficient(self.value + scale * other.value, self.slope + scale * other.slope)
