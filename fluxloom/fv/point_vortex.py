r"""The far field of a body that lifts, in two dimensions: the free stream and a vortex in it.

A body with the lift :math:`L` (per unit of span) has the circulation :math:`\Gamma = L / (\rho U)`, with the chord and
the coefficient of lift :math:`\Gamma = U c\, c_l / 2`, and at a distance ``r`` its velocities fall as ``1 / r`` alone:
a far field that knows nothing of them turns the stream by about :math:`c_l c / (8 \pi r)`. They are those of the small
disturbances of Prandtl and Glauert,

.. math:: u' = F \sin\theta, \quad v' = -F \cos\theta, \quad
          F = \frac{\Gamma}{2 \pi r} \frac{\beta}{1 - M^2 \sin^2\theta}, \quad \beta^2 = 1 - M^2

along the stream and across it, with the angle ``theta`` from the stream. Density and pressure follow from the total
enthalpy and the entropy of the stream,

.. math:: a^2 = a_\infty^2 + \tfrac{\gamma - 1}{2} (U^2 - |u|^2), \quad
          \rho = \rho_\infty (a / a_\infty)^{2 / (\gamma - 1)}, \quad p = \rho a^2 / \gamma

References
----------
J. L. Thomas, M. D. Salas: *Far-field boundary conditions for transonic lifting solutions to the Euler equations*.
AIAA J. 24, 1986.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.core.errors import SolverError
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import pow, sqrt

__all__ = ["PointVortex", "vortex_states", "wall_lift"]

_PI = 3.141592653589793


@dataclass(frozen=True)
class PointVortex:
    """A vortex in a far field, as strong as the lift of a body says in each state of the flow.

    Attributes
    ----------
    patches
        The walls of the body.
    centre
        Where the vortex is, ``(2,)``: within the body, for an airfoil a quarter of its chord behind the nose.

    Raises
    ------
    SolverError
        If there are no patches, or the place is not one of a plane.
    """

    patches: Sequence[str]
    centre: Sequence[float] = (0.25, 0.0)

    def __post_init__(self) -> None:
        if isinstance(self.patches, str) or not len(self.patches):
            raise SolverError(f"vortex: a list of the patches that lift is wanted, not {self.patches!r}")
        if len(self.centre) != 2 or not all(isfinite(x) for x in self.centre):
            raise SolverError(f"vortex: centre: two finite coordinates are wanted, not {self.centre!r}")


@kernel
def wall_lift(
    face: Read, w: Read, slope: Read, lift: Inc, *, d: Const[int], order: Const[int], p: float, x: float, y: float
):  # fmt: skip
    """Add what the pressure on a face of a wall pushes along ``(-y, x)``, across a stream along ``(x, y)``.

    The pressure is that of the cell behind, in schemes of order 2 continued to the face; ``p``, that of the stream, is
    left out.
    """
    found = w[1 + d] - p
    if order > 1:
        for k in range(d):
            found += slope[d * (1 + d) + k] * face[d + 1 + k]
    lift[0] += found * face[d] * (x * face[1] - y * face[0])


@kernel
def vortex_states(
    place: Read, lift: Read, par: RW,
    *, gamma: float, rho: float, p: float, speed: float, x: float, y: float, left: float, low: float,
):  # fmt: skip
    """Write density, velocity and pressure of the far field, see the module.

    The stream is along the unit vector ``(x, y)``; the vortex is at ``(left, low)``.
    """
    dx = place[0] - left
    dy = place[1] - low
    square = dx * dx + dy * dy
    across = x * dy - y * dx
    stream = gamma * p / rho
    mach = speed * speed / stream
    circulation = lift[0] / (rho * speed)
    size = circulation * sqrt(1.0 - mach) / (2.0 * _PI * (square - mach * across * across))
    u = speed * x + size * dy
    v = speed * y - size * dx
    sound = stream + 0.5 * (gamma - 1.0) * (speed * speed - u * u - v * v)
    par[0] = rho * pow(sound / stream, 1.0 / (gamma - 1.0))
    par[1] = u
    par[2] = v
    par[3] = par[0] * sound / gamma
