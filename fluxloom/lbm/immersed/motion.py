"""How immersed bodies move: not at all, as prescribed, freely, or as their own elasticity and the fluid have it.

Vectors have one component an axis of the grid, slowest first. Turning is counter-clockwise in the plane of x and y, a
number; in space it is a vector (``z, y, x``), right-handed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.immersed.markers.places import Markers

__all__ = ["Contact", "Deforming", "Elastic", "Fixed", "Free", "ImmersedBody", "Motion", "Pose", "Prescribed"]

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fixed:
    """The markers stay where they are; they may have velocities, as the surface of a drum has."""


@dataclass(frozen=True)
class Pose:
    """Where a rigid body is, and how it moves.

    Attributes
    ----------
    centre, velocity : (d,)
        Of the point about which it turns; in cells, and cells a step.
    angle, spin
        Radians, and radians a step: numbers in the plane; in space a rotation vector, and a vector.
    """

    centre: Sequence[float]
    angle: float | Sequence[float] = 0.0
    velocity: Sequence[float] = ()
    spin: float | Sequence[float] = 0.0


@dataclass(frozen=True)
class Prescribed:
    """A rigid motion.

    Attributes
    ----------
    pose
        Of the time in steps. The body has its markers where they were given for the pose ``at(0)`` with no angle.
    """

    pose: Callable[[float], Pose]

    def __post_init__(self) -> None:
        if not callable(self.pose):
            raise SolverError(f"Prescribed(pose={self.pose!r}): a function of the time is wanted that returns a Pose")


@dataclass(frozen=True)
class Deforming:
    """A prescribed deformation.

    Attributes
    ----------
    shape
        Positions and velocities of the markers, each ``(n, d)``, of the time in steps.
    """

    shape: Callable[[float], tuple[npt.ArrayLike, npt.ArrayLike]]

    def __post_init__(self) -> None:
        if not callable(self.shape):
            raise SolverError(
                f"Deforming(shape={self.shape!r}): a function of the time is wanted: positions and velocities"
            )


@dataclass(frozen=True)
class Free:
    r"""A rigid body that moves as the fluid and other forces push it.

    .. math:: (M + c M_f)\, a^{n+1} = F(U^{n+1}) + (1 + c) M_f\, a^n + (M - M_f)\, g - k (X - X_0) - b U

    The force ``F`` of the fluid acts on the body's outside and on the fluid inside of it; the second term is what the
    inner fluid takes, with the acceleration of the step before (Z.-G. Feng, E. Michaelides, Computers & Fluids 38
    (2009) 370, sec. 3). As ``F`` is linear in the new velocity, both are found together: with the old one in ``F``
    small and light bodies swing with growing amplitude, as a shell of fluid follows the markers at once. ``c`` can
    add a virtual mass on both sides (S. Schwarz, T. Kempe, J. Froehlich, J. Comput. Phys. 281 (2015) 591). Rotation
    likewise, with Euler's equations.

    Attributes
    ----------
    mass, displaced
        Of the body, and of the fluid that it displaces.
    inertia
        About the centre of mass: a number in the plane; in space the three along the axes or ``(3, 3)``, of the body as
        its markers are given.
    centre
        Of mass; by default that of the markers.
    velocity, spin
        At the start.
    gravity
        Acceleration; buoyancy is taken off.
    stiffness, damping
        Of a spring to the first place, one number or one an axis.
    translates, turns
        Whether it does; translation also by axis.
    radius
        For contacts: of the circle or sphere that it is; 0: it has none.
    virtual
        ``c``.
    """

    mass: float
    displaced: float
    inertia: float | Sequence[float] | Sequence[Sequence[float]]
    centre: Sequence[float] = ()
    velocity: Sequence[float] = ()
    spin: float | Sequence[float] = 0.0
    gravity: Sequence[float] = ()
    stiffness: float | Sequence[float] = 0.0
    damping: float | Sequence[float] = 0.0
    translates: bool | Sequence[bool] = True
    turns: bool = True
    radius: float = 0.0
    virtual: float = 0.0

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            _check_finite(f"Free({name}=...)", getattr(self, name))
        if not (self.mass > 0 and self.displaced >= 0 and np.all(np.asarray(self.inertia) >= 0)):
            raise SolverError("Free: the mass has to be positive, the displaced mass and the inertia not negative")
        for name in ("stiffness", "damping", "radius", "virtual"):
            if not np.all(np.asarray(getattr(self, name)) >= 0):
                raise SolverError(f"Free({name}={getattr(self, name)!r}): it must not be negative")

    @staticmethod
    def disk(radius: float, density: float, **others: object) -> Free:
        """Return the motion of a disk of uniform density.

        ``M = density pi R^2``, ``I = M R^2 / 2`` (that of the fluid is one).
        """
        _check_size("Free.disk", radius, density)
        area = np.pi * radius**2
        return Free(density * area, area, density * area * radius**2 / 2, radius=radius, **others)  # type: ignore[arg-type]

    @staticmethod
    def ball(radius: float, density: float, **others: object) -> Free:
        """Return the motion of a ball of uniform density.

        ``M = density 4/3 pi R^3``, ``I = 2/5 M R^2`` (that of the fluid is one).
        """
        _check_size("Free.ball", radius, density)
        volume = 4 / 3 * np.pi * radius**3
        inertia = (0.4 * density * volume * radius**2,) * 3
        return Free(density * volume, volume, inertia, radius=radius, **others)  # type: ignore[arg-type]


_NUMBERS = (
    "mass", "displaced", "inertia", "centre", "velocity", "spin",
    "gravity", "stiffness", "damping", "radius", "virtual",
)  # fmt: skip


def _check_finite(what: str, values: object) -> None:
    """Raise `SolverError` unless all are finite numbers."""
    try:
        finite = bool(np.isfinite(np.asarray(values, dtype=np.float64)).all())
    except (TypeError, ValueError):
        finite = False
    if not finite:
        raise SolverError(f"{what}: finite numbers are wanted, not {values!r}")


def _check_size(what: str, radius: float, density: float) -> None:
    """Raise `SolverError` unless a body has a size and a density."""
    for name, value in (("radius", radius), ("density", density)):
        _check_finite(f"{what}({name}=...)", value)
        if not value > 0:
            raise SolverError(f"{what}({name}={value!r}): it has to be positive")


@dataclass(frozen=True)
class Elastic:
    """Markers that go with the fluid and are held together by springs (C. Peskin, Acta Numerica 11 (2002) 479).

    Attributes
    ----------
    edges : (m, 2)
        Markers that a spring joins; none: each one with the next, in a ring.
    stiffness
        Force a length, of each spring.
    lengths
        At rest; none: as at the start. One number, or one for each spring.
    bending
        Stiffness against bending at each marker between two others.
    triples : (b, 3)
        Markers side by side for bending; none: a ring.
    """

    edges: npt.ArrayLike | None = None
    stiffness: float = 0.1
    lengths: npt.ArrayLike | None = None
    bending: float = 0.0
    triples: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("stiffness", "bending", "lengths"):
            value = getattr(self, name)
            if value is None:
                continue
            _check_finite(f"Elastic({name}=...)", value)
            if not np.all(np.asarray(value) >= 0):
                raise SolverError(f"Elastic({name}={value!r}): it must not be negative")


Motion = Fixed | Prescribed | Deforming | Free | Elastic


@dataclass(frozen=True)
class ImmersedBody:
    """A body in a fluid, given by markers on its surface.

    Attributes
    ----------
    name
        For forces and messages.
    markers
        Where it starts.
    motion
        How it moves.
    """

    name: str
    markers: Markers
    motion: Motion = field(default_factory=Fixed)

    def __post_init__(self) -> None:
        if not isinstance(self.markers, Markers):
            what = f"{type(self.markers).__name__}: give Markers, as circle((y, x), radius)"
            raise SolverError(f"immersed body {self.name!r}: its markers are a {what}")
        if not isinstance(self.motion, Motion):
            given = self.motion.__name__ + ", the class" if isinstance(self.motion, type) else repr(self.motion)
            raise SolverError(
                f"immersed body {self.name!r}: its motion is {given}; give one of Fixed(), Prescribed(...), "
                "Deforming(...), Free(...), Elastic(...)"
            )


@dataclass(frozen=True)
class Contact:
    r"""Repulsion of bodies that come near each other, or near walls.

    .. math:: F = s \left(\frac{R_i + R_j + r - |X_i - X_j|}{r}\right)_+^2 n

    R. Glowinski, T. Pan, T. Hesla, D. Joseph, J. Periaux, J. Comput. Phys. 169 (2001) 363, eq. 4.1. At a side that is
    not periodic the other body is one that touches it from outside, half a cell beyond the last cells.

    Attributes
    ----------
    strength
        ``s``, the force at touch: some times the forces that press bodies together.
    reach
        ``r``, the gap at which it begins, in cells.
    """

    strength: float
    reach: float = 2.0

    def __post_init__(self) -> None:
        _check_finite("Contact(strength, reach)", (self.strength, self.reach))
        if not (self.strength >= 0 and self.reach > 0):
            raise SolverError("Contact: the strength must not be negative, the reach has to be positive")
