"""The water beyond a face of the boundary, of which the flux through it is made: a formula for each kind.

With ``c = sqrt(g H)``, waves that leave keep ``R = u_n + 2 c``, those that come in ``u_n - 2 c``.

E. F. Toro: *Shock-capturing methods for free-surface shallow flows*. Wiley, 2001 (the invariants).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import cbrt, max, sqrt

__all__ = ["GivenDischarge", "GivenLevel", "IncidentWave", "Mirrored", "SameWater", "WaterState"]

_NEWTON, _TINY = 12, 1.0e-30


class WaterState:
    """What is beyond a face of the boundary; a member is a frozen dataclass with the formula, a ``@func``.

    The formula is given depth ``h``, bed ``z`` and outward velocity ``un`` inside, the ``level`` of the series of the
    face now, the surface ``still`` of water at rest, and gravity; it returns depth and outward velocity.
    """

    if TYPE_CHECKING:  # a member has to have it

        def __call__(self, h: Any, z: Any, un: Any, level: Any, still: Any, g: Any) -> Any: ...  # noqa: D102

    wall: ClassVar[bool] = False
    """Whether nothing passes: slopes of the cell reach the face then."""
    unbounded: ClassVar[bool] = False
    """Whether nothing says how much water may come in."""
    imposed: ClassVar[bool] = False
    """Whether the flux is that of this state alone; the level of the series is the discharge then."""


@dataclass(frozen=True)
class Mirrored(WaterState):
    """A wall."""

    wall = True

    @func
    def __call__(self, h, z, un, level, still, g):
        """Return the state of the inside, turned round: ``H_b = H``, ``u_b = -u_n``."""
        return h, -un


@dataclass(frozen=True)
class SameWater(WaterState):
    """Beyond the boundary it is as inside."""

    unbounded = True

    @func
    def __call__(self, h, z, un, level, still, g):
        """Return the state of the inside: ``H_b = H``, ``u_b = u_n``."""
        return h, un


@dataclass(frozen=True)
class GivenLevel(WaterState):
    """The surface is prescribed; the invariant ``u + 2 c`` passes."""

    @func
    def __call__(self, h, z, un, level, still, g):
        """Return ``H_b = max(0, level - z_b)``, and ``u_b = max(R - 2 c_b, -c_b)`` of the invariant that leaves."""
        depth = max(0.0, level - z)
        cb = sqrt(g * depth)
        return depth, max(un + 2.0 * (sqrt(g * h) - cb), -cb)


@dataclass(frozen=True)
class IncidentWave(WaterState):
    """The incoming invariant is that of a simple wave on still water, ``u - 2 c``; the outgoing one leaves."""

    @func
    def __call__(self, h, z, un, level, still, g):
        """Return what both invariants make: ``c_b = (R - Q) / 4``, ``H_b = c_b^2 / g``, ``u_b = (R + Q) / 2``.

        ``R = u_n + 2 c`` of the inside, ``Q = 2 c_still - 4 c_level`` of the wave that comes in.
        """
        wave = sqrt(g * max(0.0, level - z))
        rest = sqrt(g * max(0.0, still - z))
        leaving = un + 2.0 * sqrt(g * h)
        coming = 2.0 * rest - 4.0 * wave
        cb = max(0.0, 0.25 * (leaving - coming))
        return cb * cb / g, 0.5 * (leaving + coming)


@dataclass(frozen=True)
class GivenDischarge(WaterState):
    """The discharge ``q`` into the water, m^2/s, is prescribed; the invariant ``u + 2 c`` passes.

    With ``R = un + 2 sqrt(g h)`` of the inside the celerity ``c = sqrt(g h)`` is the largest root of ``2 c^3 - R c^2 =
    g q``, by Newton's method from above, where the cubic is convex. Water comes in at Froude number 1 where this would
    be above it, as onto dry ground, and leaves at most at 1: then less does than was asked for.
    """

    imposed = True

    @func
    def __call__(self, h, z, un, level, still, g):
        """Return depth and outward velocity that carry the discharge ``q``, ``H_b = c^2 / g`` and ``u_b = -q / H_b``.

        ``2 c^3 - R c^2 = g q``, at least ``c = max((g q)^(1/3), R / 3)``, Froude number 1; where water leaves
        ``u_b = R - 2 c``.
        """
        leaving = un + 2.0 * sqrt(g * h)
        critical = cbrt(g * max(0.0, level))
        c = max(0.0, 0.5 * leaving) + cbrt(0.5 * g * max(0.0, level))
        for _ in range(_NEWTON):
            rise = 2.0 * c * (3.0 * c - leaving)
            c -= (c * c * (2.0 * c - leaving) - g * level) / rise if rise > 0.0 else 0.0
        c = max(max(c, critical), max(0.0, leaving) / 3.0)
        speed = -g * level / max(c * c, _TINY) if level > 0.0 else leaving - 2.0 * c
        return c * c / g, speed
