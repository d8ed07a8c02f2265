"""How the components of a dat are laid out in memory."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.core.errors import DatError

__all__ = ["PAD", "AoS", "Blocked", "Layout", "SoA", "padded"]

PAD = 64
"""Storage is padded to a multiple of this many elements, so that a vector load never leaves it."""


@dataclass(frozen=True)
class AoS:
    """Array of structures: component ``c`` of element ``i`` at ``i * d + c``."""


@dataclass(frozen=True)
class SoA:
    """Structure of arrays: component ``c`` of element ``i`` at ``c * n + i`` (``n`` padded)."""


@dataclass(frozen=True)
class Blocked:
    """Blocks of ``size`` elements, structure of arrays inside each block.

    Component ``c`` of element ``i`` is at ``(i // size) * size * d + c * size + i % size``.
    """

    size: int = 8

    def __post_init__(self) -> None:
        if self.size not in (4, 8, 16, 32, 64):
            raise DatError(f"Blocked(size={self.size}): the block must be 4, 8, 16, 32 or 64 elements")


Layout = AoS | SoA | Blocked


def padded(n: int) -> int:
    """Return ``n`` rounded up to a multiple of `PAD` (at least one block)."""
    return max(PAD, -(-n // PAD) * PAD)
