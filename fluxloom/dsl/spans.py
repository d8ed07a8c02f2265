"""Spans of consecutive elements, and the global order of elements that are numbered otherwise here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.sets import Grid, Set, Subset

if TYPE_CHECKING:
    from fluxloom.graph import TilePlan

__all__ = ["Limits", "Span", "global_order", "limits_of", "tiles_of", "whole_span"]

ALIGN = 128
"""Spans inside a set begin at multiples of this: packs, warps, streaming stores and partial results want it."""

Table = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Span:
    """The positions ``begin ... end - 1`` of a loop: elements, places in the list of a subset, or targets."""

    begin: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.begin)


@dataclass(frozen=True)
class Limits:
    """Where the positions of a loop are cut: ``[begin, inside)`` needs no halo, ``[0, owned)`` counts in reductions.

    Where the interior is cut once more, its parts have multiples of ``grain`` positions.
    """

    begin: int
    inside: int
    owned: int
    end: int
    grain: int = ALIGN

    @property
    def whole(self) -> Span:
        """All positions."""
        return Span(0, self.end)

    @property
    def interior(self) -> Span:
        """The positions that need nothing of other ranks."""
        return Span(self.begin, self.inside)

    @property
    def halves(self) -> tuple[Span, Span]:
        """The interior in two parts; the first may have no positions."""
        middle = self.begin + len(self.interior) // 2 // self.grain * self.grain
        return Span(self.begin, middle), Span(middle, self.inside)

    @property
    def rest(self) -> list[Span]:
        """The other positions, ends of slabs first."""
        return [s for s in (Span(0, self.begin), Span(self.inside, self.end)) if len(s)]


def limits_of(over: Set, executed: bool, tile: int = 0) -> Limits:
    """Return the limits of a loop over a set; ``executed``: over its execute halo too.

    The interior is cut to multiples of `ALIGN`, and to whole tiles if there are any; that of a lattice to planes,
    where no work items run.
    """
    part = over.parent.part
    if over.most is not None:  # nobody knows where its interior will end
        return Limits(0, 0, over.most, over.most)
    if part is None:
        return Limits(0, over.size, over.size, over.size)
    begin, inside = part.begin, part.inside
    if isinstance(over, Grid) and not over.context.device.items:
        return Limits(begin, inside, over.size, over.size, prod(over.shape[1:]))
    if isinstance(over, Subset):
        begin, inside = (int(k) for k in np.searchsorted(over.indices, (begin, inside)))
    align = lcm(ALIGN, max(1, tile))
    begin, inside = -(-begin // align) * align, inside // align * align
    return Limits(min(begin, inside), inside, over.size, over.executed if executed else over.size)


def whole_span(over: Set) -> Span:
    """Return the span of all targets that this rank owns."""
    return Span(0, over.size)


def global_order(over: Set) -> npt.NDArray[np.int64] | None:
    """Return the executed elements of a set in the order of their global numbers; None if they are in order."""
    part = over.parent.part
    if part is None or isinstance(over, Subset):
        return None
    numbers = part.numbers[: part.executed]
    if numbers.size < 2 or bool((numbers[1:] > numbers[:-1]).all()):
        return None
    return np.argsort(numbers, kind="stable")


def tiles_of(over: Set, tables: Sequence[Table], span: Span, tile: int) -> TilePlan:
    """Cut the targets of a span into tiles and list the elements that each needs, in the global order."""
    plain = span.begin == 0 and over.parent.part is None
    from fluxloom.graph import target_tiles

    return target_tiles(tables, len(span), tile, first=None if plain else span.begin, order=global_order(over))
