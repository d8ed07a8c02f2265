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
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import BoundArgument, OffsetMap, TableMap
from fluxloom.dsl.declare.sets import Grid, Subset
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.bind import Bound, executes_halo
from fluxloom.kernel.analysis import used_components

__all__ = ["HaloMask", "HaloReads", "Reads", "SlotReads", "StencilReads", "halo_reads", "private_slots",
           "through_stencil"]  # fmt: skip

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StencilReads:
    """What a loop over a lattice meets through a stencil.

    Attributes
    ----------
    map
        The stencil.
    legs
        Flat components that are met through each leg.
    members
        The elements that the loop visits; None: all, or some that nobody knows beforehand.
    """

    map: OffsetMap
    legs: tuple[tuple[int, ...], ...]
    members: Subset | None = None

    few = False

    def mask(self, places: Places, dim: int) -> Mask:
        """Return which components ``(n, dim)`` of ghosts, given by their storage places, are met."""
        found = np.zeros((places.size, dim), dtype=bool)
        for offset, components in zip(self.map.offsets, self.legs, strict=True):
            if components:
                found[np.ix_(self._near(places, offset), np.array(components))] = True
        return found

    def _near(self, places: Places, offset: tuple[int, ...]) -> Mask:
        """Return at which places a leg arrives."""
        grid = self.map.source
        assert isinstance(grid, Grid)
        near = np.ones(places.size, dtype=bool)
        at = [x - g for x, g in zip(np.unravel_index(places, grid.full_shape), grid.ghost, strict=True)]
        sources = []
        for x, step, n, layers, wraps in zip(at, offset, grid.shape, grid.ghost, grid.periodic, strict=True):
            source = np.mod(x - step, n) if wraps and not layers else x - step
            near &= (source >= 0) & (source < n)
            sources.append(source)
        for turns, beyond in zip(self.map.ends, (at[-1] < 0, at[-1] >= grid.shape[-1]), strict=True):
            if turns:
                near &= ~beyond
        if self.members is not None:
            visited = np.zeros(grid.size, dtype=bool)
            visited[self.members.indices[: self.members.size]] = True
            near[near] = visited[np.ravel_multi_index(tuple(x[near] for x in sources), grid.shape)]
        return near

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
        return _among(places, dim, *self._met)

    @cached_property
    def _met(self) -> tuple[Places, Places]:
        """Storage places and components of all slots."""
        return self.slots.elements.ravel().astype(np.int64), self.slots.components.ravel().astype(np.int64)


def _among(places: Places, dim: int, elements: Places, components: Places) -> Mask:
    """Return which components ``(n, dim)`` of elements at some places are among some numbers."""
    found = np.zeros((places.size, dim), dtype=bool)
    if not places.size or not elements.size:
        return found
    order = np.argsort(places, kind="stable")
    row = np.searchsorted(places[order], elements)
    known = row < places.size
    known[known] = places[order[row[known]]] == elements[known]
    found[order[row[known]], components[known]] = True
    return found


@dataclass(frozen=True, eq=False)
class TableReads:
    """What a loop reads through a table of neighbours, each component through one leg: a lattice as a list of cells.

    Attributes
    ----------
    map
        The table.
    legs
        Flat components that are read through each leg.
    """

    map: TableMap
    legs: tuple[tuple[int, ...], ...]

    few = False

    def mask(self, places: Places, dim: int) -> Mask:
        """Return which components ``(n, dim)`` of elements of the halo, given by their numbers, are read."""
        return _among(places, dim, *self._met)

    @cached_property
    def _met(self) -> tuple[Places, Places]:
        """Elements of the halo and components that are read."""
        part = self.map.target.part
        assert part is not None
        found = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
        for column, components in zip(self.map.table.T, self.legs, strict=True):
            away = np.unique(column[(column >= part.owned) & (column < part.stored)]).astype(np.int64)
            found += [(away, np.full(away.size, component)) for component in components]
        elements, components = (np.concatenate(each) for each in zip(*found, strict=True))
        return elements, components

    def share(self, dim: int) -> float:
        """Return the share of components that are read through a leg: of a plane's neighbour at least that."""
        return max(map(len, self.legs)) / dim


Reads = StencilReads | SlotReads | TableReads


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
    return [
        (a.data, SlotReads(a.map))
        for a in bound.arguments
        if isinstance(a.data, Dat) and isinstance(a.map, SlotMap) and a.access.writes and _private(a.map)
    ]


def _private(slots: SlotMap) -> bool:
    return slots.private and slots.away


def _reads(bound: Bound, dat: Dat) -> tuple[Reads, ...] | None:
    """Return what a loop reads of a dat among other ranks' elements; None if that is not known."""
    found: list[Reads] = []
    for argument in bound.arguments:
        through, access = argument.map, argument.access
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
        reads: Reads | None = None
        if not access.reduces and isinstance(through, OffsetMap):
            reads = through_stencil(bound, argument)
        elif access is Access.READ and isinstance(through, TableMap):
            reads = _through_table(bound, argument)
        if reads is None:
            return None
        found.append(reads)
    return tuple(found)


def through_stencil(bound: Bound, argument: BoundArgument) -> StencilReads | None:
    """Return what a loop meets through a stencil, if that is known."""
    legs = _legs_met(bound, argument)
    if legs is None or not isinstance(argument.map, OffsetMap):
        return None
    members = bound.over if isinstance(bound.over, Subset) and bound.over.most is None else None
    return StencilReads(argument.map, legs, members)


def _through_table(bound: Bound, argument: BoundArgument) -> TableReads | None:
    """Return what a loop reads through a whole table, if each component is read through one leg of several.

    So a lattice reads that is stored as a list. Other kernels read all components of most elements that they meet.
    """
    legs = _legs_met(bound, argument)
    if legs is None or argument.leg >= 0 or not isinstance(argument.map, TableMap):
        return None
    if argument.map.target.position is not None:
        return None
    met = [component for components in legs for component in components]
    return TableReads(argument.map, legs) if len(met) == len(set(met)) > max(map(len, legs)) else None


def _legs_met(bound: Bound, argument: BoundArgument) -> tuple[tuple[int, ...], ...] | None:
    """Return the flat components that a kernel meets through each leg of a map; None: it computes some of them."""
    used = used_components(bound.lowered, argument.name)
    if used is None or argument.map is None or argument.map.legs < 0 or not isinstance(argument.data, Dat):
        return None
    legs: list[set[int]] = [set() for _ in range(argument.map.legs)]
    shape = argument.data.shape
    for leg, index in used:
        flat = int(np.ravel_multi_index(index, shape)) if index else 0
        for each in [argument.leg] if argument.leg >= 0 else range(len(legs)) if leg is None else [leg]:
            legs[each].add(flat)
    return tuple(tuple(sorted(c)) for c in legs)
