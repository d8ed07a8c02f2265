"""Collections of objects told apart by identity: dats, globals and loops compare by nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["among", "unique"]

T = TypeVar("T")


def among(item: object, items: Iterable[object]) -> bool:
    """Return whether this very object is one of ``items``."""
    return any(item is other for other in items)


def unique(items: Iterable[T]) -> list[T]:
    """Return every object once, in order of first appearance."""
    return list({id(item): item for item in items}.values())
