"""A loop inside a pack, and what a pack function is asked to do around the kernels."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.spec import LoopSpec

__all__ = ["REDUCTION_LANES", "Member", "PackStyle"]

REDUCTION_LANES = 16
"""Partial sums a chunk keeps side by side; fixed, so that the order of a sum never depends on lanes."""


@dataclass(frozen=True)
class Member:
    """One loop of a pack: its spec and its number in the fused group."""

    spec: LoopSpec
    number: int = 0


@dataclass(frozen=True)
class PackStyle:
    """What a pack function is asked to do around the kernels.

    Attributes
    ----------
    lanes
        Elements a pack.
    listed
        Element numbers come from a list instead of being consecutive.
    commit
        How increments through maps reach memory: ``"serial"``, ``"atomic"``, ``"tile"`` (only rows
        of the current tile), ``"scratch"`` (kept per element for a second pass), or ``"keep"``.
    tile_dats
        Dats that live in a buffer of the current tile.
    elide
        Dats whose final value need not reach memory.
    zero
        Dats known to hold zero when the pack starts.
    stream
        Dats stored past the caches.
    renamed
        Dats written to another buffer than the one they are read from.
    """

    lanes: int
    listed: bool = False
    commit: str = "serial"
    tile_dats: frozenset[int] = frozenset()
    elide: frozenset[int] = frozenset()
    stream: frozenset[int] = frozenset()
    renamed: frozenset[int] = frozenset()
