"""What loops read of other ranks' elements, number by number: some components of some ghosts of a lattice.

A lattice Boltzmann step reads of each ghost only the populations that come from there: 5 of 19 across a side. A loop
over links of walls reads a few numbers, or writes some that nobody else looks at. Where this is known from the kernel
and its maps, messages carry just that, and leave alone what this rank has put among the copies itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.dsl.args import Argument
from fluxloom.dsl.bind import Bound, executes_halo
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import OffsetMap
from fluxloom.dsl.sets import Grid
from fluxloom.dsl.slots import SlotMap
from fluxloom.kernel.analysis import used_components

__all__ = ["HaloMask", "HaloReads", "SlotReads", "StencilReads", "halo_reads", "private_slots"]

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StencilReads:
    """What a loop over a lattice reads through a stencil.

    Attributes
    ----------
    map
        The stencil.
    legs
        Flat components that are read through each leg.
    """

    map: OffsetMap
    legs: tuple[tuple[int, ...], ...]

    few = False

    def mask(self, places: Places, dim: int) -> Mask:
        """Return which components ``(n, dim)`` of ghosts, given by their storage places, are read."""
        grid = self.map.source
        assert isinstance(grid, Grid)
        found = np.zeros((places.size, dim), dtype=bool)
        at = np.unravel_index(places, grid.full_shape)
        for offset, components in zip(self.map.offsets, self.legs, strict=True):
            if not components:
                continue
            near = np.ones(places.size, dtype=bool)
            for x, step, n, layers in zip(at, offset, grid.shape, grid.ghost, strict=True):
                if layers:  # without, neighbours wrap round
                    near &= (x - step >= layers) & (x - step < layers + n)
            found[np.ix_(near, np.array(components))] = True
        return found

    def share(self, dim: int) -> float:
        """Return the largest share of components that is read across some side."""
        sides: dict[tuple[int, int], set[int]] = {}
        for offset, components in zip(self.map.offsets, self.legs, strict=True):
            for axis, step in enumerate(offset):
                if step:
                    sides.setdefault((axis, 1 if step > 0 else -1), set()).update(components)
        return max((len(c) for c in sides.values()), default=0) / dim


@dataclass(frozen=True, eq=False)
class SlotReads:
    """What a loop reads or writes through slots."""

    slots: SlotMap

    few = True

    def mask(self, places: Places, dim: int) -> Mask:
        """Return which components ``(n, dim)`` of ghosts, given by their storage places, are met."""
        elements, components = self._met
        found = np.zeros((places.size, dim), dtype=bool)
        if not places.size or not elements.size:
            return found
        order = np.argsort(places, kind="stable")
        row = np.searchsorted(places[order], elements)
        known = row < places.size
        known[known] = places[order[row[known]]] == elements[known]
        found[order[row[known]], components[known]] = True
        return found

    @cached_property
    def _met(self) -> tuple[Places, Places]:
        """Storage places and components of all slots."""
        return self.slots.elements.ravel().astype(np.int64), self.slots.components.ravel().astype(np.int64)


Reads = StencilReads | SlotReads


@dataclass(frozen=True, eq=False)
class HaloReads:
    """All that a loop reads of other ranks' elements in one dat."""

    dat: Dat
    reads: tuple[Reads, ...]

    @property
    def few(self) -> bool:
        """Whether these are single numbers, and not those next to a whole side."""
        return all(r.few for r in self.reads)

    @property
    def sparse(self) -> bool:
        """Whether a message of single numbers is much smaller than one of elements."""
        return all(isinstance(r, SlotReads) or r.share(self.dat.dim) <= 0.5 for r in self.reads)


@dataclass(frozen=True, eq=False)
class HaloMask:
    """Which numbers of a dat a message brings: what some loops read, without what was written in private before."""

    dat: Dat
    reads: tuple[Reads, ...]
    without: tuple[SlotReads, ...] = ()

    def mask(self, places: npt.NDArray[np.int32]) -> Mask:
        """Return which components ``(n, dim)`` of ghosts, given by their storage places, are to be brought."""
        at = places.astype(np.int64)
        found = np.zeros((at.size, self.dat.dim), dtype=bool)
        for reads in self.reads:
            found |= reads.mask(at, self.dat.dim)
        for slots in self.without:
            found &= ~slots.mask(at, self.dat.dim)
        return found


def halo_reads(bound: Bound, needs: Sequence[Dat]) -> list[HaloReads]:
    """Return those of the dats whose halo a loop reads of which it is known number by number, and what it reads."""
    if executes_halo(bound):
        return []
    found = []
    for dat in needs:
        reads = _reads(bound, dat)
        if reads is not None:
            found.append(HaloReads(dat, reads))
    return found


def private_slots(bound: Bound) -> list[tuple[Dat, SlotReads]]:
    """Return what a loop writes through private slots that lead to other ranks' elements."""
    pairs = zip(bound.arguments, bound.kernel.parameters, strict=True)
    return [
        (a.data, SlotReads(a.map))
        for a, p in pairs
        if isinstance(a.data, Dat) and isinstance(a.map, SlotMap) and p.access.writes and _private(a.map)
    ]


def _private(slots: SlotMap) -> bool:
    return slots.private and slots.away


def _reads(bound: Bound, dat: Dat) -> tuple[Reads, ...] | None:
    """Return what a loop reads of a dat among other ranks' elements; None if that is not known."""
    found: list[Reads] = []
    for argument, parameter in zip(bound.arguments, bound.kernel.parameters, strict=True):
        through, access = argument.map, parameter.access
        if argument.data is not dat or through is None:
            continue
        if isinstance(through, SlotMap):
            if access is Access.WRITE and _private(through):
                continue  # nothing is read
            if access.reduces:
                return None
            if through.away:
                found.append(SlotReads(through))
            continue
        reads = _through_stencil(bound, argument, parameter.name) if access is Access.READ else None
        if reads is None:
            return None
        found.append(reads)
    return tuple(found)


def _through_stencil(bound: Bound, argument: Argument, name: str) -> StencilReads | None:
    used = used_components(bound.lowered, name)
    if not isinstance(argument.map, OffsetMap) or used is None or not isinstance(argument.data, Dat):
        return None
    legs: list[set[int]] = [set() for _ in range(argument.map.legs)]
    shape = argument.data.shape
    for leg, index in used:
        flat = int(np.ravel_multi_index(index, shape)) if index else 0
        for each in [argument.leg] if argument.leg >= 0 else range(len(legs)) if leg is None else [leg]:
            legs[each].add(flat)
    return StencilReads(argument.map, tuple(tuple(sorted(c)) for c in legs))
