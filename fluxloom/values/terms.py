"""What loops compute of values: records that are called with a place, the numbers of the time and those of the place.

``now`` has the time and behind it the numbers that are the same everywhere, ``held`` what the host has found at the
place; which of them a value takes, `fluxloom.values.value.Slots` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import sqrt

__all__ = ["Computed", "Fixed", "Held", "Now", "OfUnit", "Plus", "Times"]


@dataclass(frozen=True)
class Now:
    """A number that the host gives."""

    at: int

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        return now[self.at]


@dataclass(frozen=True)
class Held:
    """A number that the host has found at the place."""

    at: int

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        return held[self.at]


@dataclass(frozen=True)
class Fixed:
    """A number."""

    number: float

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        return self.number


@dataclass(frozen=True)
class Computed:
    """A formula in x, y, z and t."""

    formula: Func[..., Any]

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        return self.formula(x, y, z, now[0])


@dataclass(frozen=True)
class Times:
    """A product."""

    one: Any
    other: Any

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        return self.one(x, y, z, now, held) * self.other(x, y, z, now, held)


@dataclass(frozen=True)
class Plus:
    """A sum."""

    one: Any
    other: Any

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        return self.one(x, y, z, now, held) + self.other(x, y, z, now, held)


@dataclass(frozen=True)
class OfUnit:
    """A component of a vector made a unit vector."""

    component: int
    parts: tuple[Any, ...]

    @func
    def __call__(self, x, y, z, now, held):
        """Return it."""
        square = 0.0
        for k in range(len(self.parts)):
            part = self.parts[k](x, y, z, now, held)
            square += part * part
        return self.parts[self.component](x, y, z, now, held) / sqrt(square)
