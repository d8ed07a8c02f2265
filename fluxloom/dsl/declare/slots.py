"""Slots: maps that lead to single components of elements, each leg to one of its own.

A boundary condition of a lattice reads and writes some populations of some cells: which cell *and* which component
differs from one element to the next. Through a `TableMap` a kernel sees all components of a cell, and two elements that
write different components of one cell would count as a race. A `SlotMap` has a component beside each target; the kernel
sees one number a leg.

Generated code knows nothing of it: to a loop, slots are a table into the storage of the dat seen as one long row of
numbers, made once for each layout (`SlotMap.places`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree
from fluxloom.core.dtypes import AoS, Blocked, Layout, SoA
from fluxloom.core.errors import DatError, LoopError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.incoming import integers
from fluxloom.dsl.declare.maps import Map, index_table
from fluxloom.dsl.declare.sets import Grid, Set

__all__ = ["SlotMap", "SlotPlaces", "SlotSet", "places_in"]

NARROW = 2**31
"""Numbers of a dat's storage up to which a place has 32 bits."""

_COMPONENTS = 2**31 - 1
"""More components than a dat can have."""

Table = npt.NDArray[np.int32]


class SlotSet(Set):
    """The distinct slots of a `SlotMap`, numbered; what increments through it meet in."""


class SlotMap(Map):
    """A table ``(n, legs)`` of elements and one of components: leg ``k`` of element ``e`` is one number.

    Through it the kernel sees ``x[leg]``, or ``x[0]`` through one leg, ``f[slots[2]]``. On several ranks declaring
    it is collective.

    Parameters
    ----------
    source, target
        Where loops run, and the set or lattice of the dats that are reached.
    cells
        Elements of ``target``: ``(source.size, legs)``, or ``(source.size,)`` for one leg; on several ranks
        ``source.executed`` rows where a loop that adds through other maps has slots too.
    components
        Component of each, counted as in a flattened value; what broadcasts to the shape of ``cells``.
    stored
        On a lattice: ``cells`` are not elements but places in the storage with its ghosts (numbers in
        `Grid.full_shape`), so that ghosts can be named.
    private
        On several ranks: only this rank looks at what is written through these slots before the dat is written anew,
        also where they are copies of other ranks' elements. Such writes are allowed, and copies that were current stay
        as current as they were: they are not received once more, which would undo the writes. A loop that writes the
        dat through a stencil ends that: what it leaves in copies goes to their owners.
    returned
        On several ranks: what is written through these slots to copies of other ranks' elements goes back to these
        ranks after the loop. No other rank changes the same numbers. Not together with ``private``.

    Attributes
    ----------
    cells, components
        int32, ``(n, legs)``.
    away
        Whether, on some rank, they lead to elements of another one.
    stays
        Whether a rank may write what they lead to: its own elements, or what is private or goes back.

    Raises
    ------
    DatError
        If a table has the wrong shape or leads out of the set; the message names the entry. On several ranks on every
        rank, naming the rank.
    """

    def __init__(
        self,
        source: Set,
        target: Set,
        cells: npt.ArrayLike,
        components: npt.ArrayLike,
        name: str = "slots",
        *,
        stored: bool = False,
        private: bool = False,
        returned: bool = False,
    ) -> None:
        self.source, self.target, self.name, self.stored = source, target, name, stored
        self.private, self.returned = private, returned
        self.cells = self.components = np.zeros((0, 1), dtype=np.int32)
        problem = ""
        try:
            self._take(cells, components)
        except DatError as error:
            problem = str(error)
        comm = source.context.comm
        agree(comm, problem)
        self.legs = self.cells.shape[1]
        self.covers = source.part is None or all(comm.allgather(len(self.cells) == source.executed))
        self.away = target.part is not None and any(comm.allgather(bool(self._foreign.any())))
        self.stays = private or returned or not self.away
        self._places: dict[tuple[Layout, int, int], SlotPlaces] = {}

    def _take(self, cells: npt.ArrayLike, components: npt.ArrayLike) -> None:
        """Check the tables and keep them."""
        what, source, target = f"slots {self.name!r}", self.source, self.target
        table = integers(cells, what)
        if self.private and self.returned:
            raise DatError(f"{what}: what is written through them is private, or goes back to its owners; choose one")
        if source.context is not target.context:
            raise DatError(f"{what}: {source} and {target} belong to different contexts")
        if table.ndim not in (1, 2) or len(table) not in (source.size, source.executed):
            raise DatError(f"{what}: cells of shape {table.shape} do not fit {source}")
        if table.ndim == 2 and not table.shape[1]:
            raise DatError(f"{what}: they have no legs; give at least one cell an element")
        if self.stored and not isinstance(target, Grid):
            raise DatError(f"{what}: stored=True is for a lattice, {target} is none")
        chosen = integers(components, what)
        try:
            chosen = np.broadcast_to(chosen, table.shape)
        except ValueError:
            message = f"{what}: components of shape {chosen.shape} do not fit cells of shape {table.shape}"
            raise DatError(message) from None
        limit = target.storage_size if self.stored else target.size if isinstance(target, Grid) else target.stored
        rows = (len(table), table.shape[1] if table.ndim == 2 else 1)
        self.cells = index_table(table.reshape(rows), limit, f"{what}: cells")
        self.components = index_table(chosen.reshape(rows), _COMPONENTS, f"{what}: components")
        self._check_interior()

    def _check_interior(self) -> None:
        """Check that elements which run before the messages have come need none of them."""
        part = self.source.part
        if part is None:
            return
        away = self._foreign[part.begin : part.inside].any(axis=1)
        if away.any():
            row = part.begin + int(np.argmax(away))
            raise DatError(
                f"slots {self.name!r}: row {row} is in the interior, where nothing of other ranks is met, but leads to "
                "an element of another rank; tell decompose of this link"
            )

    @cached_property
    def _foreign(self) -> npt.NDArray[np.bool_]:
        """Which entries lead to elements of other ranks."""
        part = self.target.part
        if part is None:
            return np.zeros(self.cells.shape, dtype=bool)
        if not self.stored:  # places behind those of the part are this rank's own
            return (self.cells >= part.owned) & (self.cells < part.stored)
        received = np.zeros(self.target.storage_size, dtype=bool)
        for places in part.receive:
            received[places] = True
        return received[self.cells]

    def foreign_entry(self) -> str:
        """Return which entry leads to an element of another rank, for messages."""
        if not self._foreign.any():
            return "an entry of another rank"
        row, leg = np.argwhere(self._foreign)[0]
        return f"entry [{row}, {leg}]"

    def _check(self, dat: Dat) -> None:
        super()._check(dat)
        if not self.components.size or int(self.components.max()) < dat.dim:
            return
        row, leg = np.argwhere(self.components >= dat.dim)[0]
        raise LoopError(
            f"slots {self.name!r}: components: entry [{row}, {leg}] is {self.components[row, leg]}; "
            f"dat {dat.name!r} has 0 ... {dat.dim - 1}"
        )

    @property
    def elements(self) -> Table:
        """Storage places of the cells, int32, ``(n, legs)``."""
        position = None if self.stored else self.target.position
        return self.cells if position is None else position[self.cells]

    @cached_property
    def numbered(self) -> tuple[Table, SlotSet]:
        """The number of each slot among the distinct ones, ``(n, legs)``, and their set."""
        width = int(self.components.max(initial=0)) + 1
        found, number = np.unique(self.elements.astype(np.int64) * width + self.components, return_inverse=True)
        over = SlotSet(self.source.context, found.size, f"{self.name}.slots")
        return np.ascontiguousarray(number.reshape(self.cells.shape), dtype=np.int32), over

    def places(self, dat: Dat) -> SlotPlaces:
        """Return the table of places in the storage of a dat, and of all that are stored in the same way."""
        key = (dat.layout, dat.stride, dat.dim)
        if key not in self._places:
            self._places[key] = SlotPlaces(self, dat)
        return self._places[key]


class SlotPlaces(Map):
    """Where the slots of a map are in the storage of a dat, as one table for generated code.

    Attributes
    ----------
    table
        ``(n, legs)``: places counted in numbers of the dat's type; int32, or int64 if ``wide``.
    wide
        Whether the storage has more numbers than 32 bits can count.
    """

    def __init__(self, slots: SlotMap, dat: Dat) -> None:
        self.source, self.target, self.name, self.legs = slots.source, slots.target, slots.name, slots.legs
        self.stays, self.covers = slots.stays, slots.covers
        self.wide = dat.stride * dat.dim >= NARROW
        element, component = slots.elements.astype(np.int64), slots.components.astype(np.int64)
        places = places_in(dat.layout, dat.stride, dat.dim, element, component)
        self.table = np.ascontiguousarray(places, dtype=np.int64 if self.wide else np.int32)


def places_in(
    layout: Layout, stride: int, dim: int, element: npt.NDArray[np.int64], component: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the places of components of elements, as `fluxloom.codegen.language.lane.address` writes them."""
    match layout:
        case AoS():
            return element * dim + component
        case SoA():
            return component * stride + element
        case Blocked(size=size):
            return element // size * (size * dim) + component * size + element % size
    raise TypeError(layout)
