r"""Uniform flow far away, of which aerodynamics speaks: Mach number, pressure, temperature, direction; a vortex in it.

A body with the lift :math:`L` (per unit of span) has the circulation :math:`\Gamma = L / (\rho U)`, with the chord and
the coefficient of lift :math:`\Gamma = U c\, c_l / 2`, and at a distance ``r`` its velocities fall as ``1 / r`` alone:
a far field that knows nothing of them turns the stream by about :math:`c_l c / (8 \pi r)`. They are those of the small
disturbances of Prandtl and Glauert, in two dimensions,

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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, isfinite, radians, sin

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import Gas
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import pow, sqrt
from fluxloom.values.value import InTime, Value, value_of

__all__ = ["FreeStream", "FreeStreamInTime", "PointVortex", "vortex_states", "wall_lift"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FreeStream:
    """A uniform flow.

    Attributes
    ----------
    mach
        Mach number; 0 is gas at rest.
    pressure
        Static, Pa.
    temperature
        Static, K.
    direction
        ``(d,)``, of any length above 0; see `at_angles` for angles.
    nu_tilde
        Variable of the model of Spalart and Allmaras over the kinematic viscosity; fully turbulent flow wants 3 to 5
        (ICCFD7-1902, sec. 2).

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    mach: float
    pressure: float
    temperature: float
    direction: Sequence[float]
    nu_tilde: float = 3.0

    def __post_init__(self) -> None:
        for name, least in (("mach", "at least 0"), ("pressure", "above 0"), ("temperature", "above 0")):
            value = getattr(self, name)
            if not isfinite(value) or value < 0.0 or (value == 0.0 and name != "mach"):
                raise SolverError(f"free stream: {name}: {least} is wanted, not {value!r}")
        try:
            way = np.asarray(self.direction, dtype=np.float64)
        except (TypeError, ValueError):
            way = np.zeros(0)
        if way.ndim != 1 or way.size not in (2, 3) or not np.isfinite(way).all() or not way.any():
            raise SolverError(
                f"free stream: direction: 2 or 3 finite numbers, not all 0, are wanted, not {self.direction!r}"
            )

    @classmethod
    def at_angles(
        cls,
        mach: float,
        pressure: float,
        temperature: float,
        alpha: float,
        beta: float = 0.0,
        *,
        dimension: int = 3,
        up: int | None = None,
    ) -> FreeStream:
        r"""Return the flow past a body whose axis is ``x``.

        Its direction is :math:`\cos\alpha \cos\beta` along ``x``, :math:`\sin\alpha \cos\beta` along the axis ``up``
        and :math:`\sin\beta` along the third one.

        Parameters
        ----------
        mach, pressure, temperature
            See `FreeStream`.
        alpha, beta
            Angle of attack and of sideslip, degrees.
        dimension
            2 or 3; in two dimensions there is no ``beta``.
        up
            Number of the axis from the lower to the upper side, 1 or 2: by default ``y`` in two dimensions, ``z`` in
            three.

        Raises
        ------
        SolverError
            If a number is out of range.
        """
        axis = dimension - 1 if up is None else up
        if dimension not in (2, 3) or axis not in range(1, dimension):
            raise SolverError(
                f"free stream: dimension 2 with up = 1, or 3 with 1 or 2, not {dimension!r} with {axis!r}"
            )
        if not (isfinite(alpha) and isfinite(beta)) or (dimension == 2 and beta):
            raise SolverError(f"free stream: finite angles, and beta = 0 in 2 dimensions, not {alpha!r} and {beta!r}")
        a, b = radians(alpha), radians(beta)
        way = [cos(a) * cos(b), 0.0, 0.0]
        way[3 - axis] = sin(b)
        way[axis] = sin(a) * cos(b)
        return cls(mach, pressure, temperature, tuple(way[:dimension]))

    def speed(self, gas: Gas) -> float:
        """Return the size of the velocity, ``U = M sqrt(gamma R_g T)``."""
        return self.mach * math.sqrt(gas.gamma * gas.constant * self.temperature)

    def density(self, gas: Gas) -> float:
        """Return ``p / (R T)``."""
        return self.pressure / (gas.constant * self.temperature)

    def dynamic_pressure(self, gas: Gas) -> float:
        """Return ``rho |u|^2 / 2 = gamma p M^2 / 2``, in which coefficients of forces are measured."""
        return 0.5 * gas.gamma * self.pressure * self.mach * self.mach

    def state(self, gas: Gas, dimension: int) -> Array:
        """Return the primitive state, ``(d + 2,)``.

        Raises
        ------
        SolverError
            If the direction is one in another dimension.
        """
        way = np.asarray(self.direction, dtype=np.float64)
        if way.size != dimension:
            raise SolverError(f"free stream: direction: {dimension} numbers are wanted here, not {self.direction!r}")
        velocity = self.speed(gas) * way / np.linalg.norm(way)
        return np.array([self.density(gas), *velocity, self.pressure])

    def turbulence(self, gas: Gas, ratio: float | None = None) -> float:
        """Return the variable of Spalart and Allmaras' model, m^2/s, ``ratio mu(T) / rho``; by default with `nu_tilde`.

        Raises
        ------
        SolverError
            If the gas has no viscosity, or the ratio is negative.
        """
        if gas.viscosity is None:
            raise SolverError("free stream: turbulence: the gas has no viscosity: give Gas(viscosity=Sutherland())")
        times = self.nu_tilde if ratio is None else ratio
        if not isfinite(times) or times < 0.0:
            raise SolverError(f"free stream: turbulence: a ratio of at least 0 is wanted, not {times!r}")
        return times * float(gas.viscosity.at(self.temperature)) / self.density(gas)


@dataclass(frozen=True)
class FreeStreamInTime:
    """A uniform flow past a body that depends on the time, as of an angle of attack that grows; see `FreeStream`.

    Attributes
    ----------
    mach, pressure, temperature
        Mach number, static pressure and temperature: numbers, formulas in t, series.
    alpha, beta
        Angles of attack and of sideslip, degrees.
    dimension, up
        See `FreeStream.at_angles`.

    Raises
    ------
    SolverError
        If one depends on the place, or there is a sideslip in two dimensions.
    """

    mach: float | str | Value
    pressure: float | str | Value
    temperature: float | str | Value
    alpha: float | str | Value = 0.0
    beta: float | str | Value = 0.0
    dimension: int = 3
    up: int | None = None

    def __post_init__(self) -> None:
        for name in ("mach", "pressure", "temperature", "alpha", "beta"):
            if value_of(getattr(self, name)).in_space:
                raise SolverError(f"free stream: {name}: it is uniform: a number or a formula in t is wanted")
        if self.dimension == 2 and value_of(self.beta).in_time:
            raise SolverError("free stream: beta: there is none in 2 dimensions")

    def at(self, time: float) -> FreeStream:
        """Return the flow at a time.

        Raises
        ------
        SolverError
            If a number is out of range then.
        """
        names = ("mach", "pressure", "temperature", "alpha", "beta")
        nowhere = np.zeros((1, self.dimension))
        mach, *rest = (float(value_of(getattr(self, n)).at(nowhere, time, f"free stream: {n}")[0]) for n in names)
        return FreeStream.at_angles(mach, *rest, dimension=self.dimension, up=self.up)

    def ways(self) -> Array:
        """Return the direction at the start, and the axes between which angles that change turn it, ``(m, d)``."""
        axis = self.dimension - 1 if self.up is None else self.up
        turned: set[int] = set()
        for angle, other in ((self.alpha, axis), (self.beta, 3 - axis)):
            turned |= {0, other} if value_of(angle).in_time else set()
        way = np.asarray(self.at(0.0).direction, dtype=np.float64)
        return np.concatenate([way[None] / np.linalg.norm(way), np.eye(self.dimension)[sorted(turned)]])

    def states_in_time(self, gas: Gas, dimension: int) -> tuple[Value, ...]:
        """Return density, velocity and pressure as values."""
        return tuple(
            InTime(lambda time, k=k: float(self.at(time).state(gas, dimension)[k]), "the free stream")
            for k in range(dimension + 2)
        )


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
    face: Read, w: Read, gradient: Read, lift: Inc, *, d: Const[int], order: Const[int], p: float, x: float, y: float
):  # fmt: skip
    """Add the lift of a face of a wall, ``L += (p_b - p) A (x n_y - y n_x)``, across a stream along ``(x, y)``.

    ``p_b`` is the pressure of the cell behind, in schemes of order 2 ``p + grad p . v``, continued to the face; ``p``
    is that of the stream.
    """
    found = w[1 + d] - p
    if order > 1:
        for k in range(d):
            found += gradient[d * (1 + d) + k] * face[d + 1 + k]
    lift[0] += found * face[d] * (x * face[1] - y * face[0])


@kernel
def vortex_states(
    place: Read, lift: Read, par: RW,
    *, gamma: float, rho: float, p: float, speed: float, x: float, y: float, left: float, low: float,
):  # fmt: skip
    """Write density, velocity and pressure of the far field, see the module (Thomas and Salas 1986).

    ``u = U (x, y) + F / r (dy, -dx)`` at ``(dx, dy)`` from the vortex at ``(left, low)``; ``(x, y)`` is the unit vector
    of the stream, ``F`` and the relations of density and pressure those of the module.
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
