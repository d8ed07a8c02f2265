"""Maps from one set to another: tables, ragged tables, stencils on grids; and dats seen through them.

The entries of ragged maps are a set too: on several ranks they have owners, numbers, and ranks they are sent to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import before, fetch, place
from fluxloom.core.access import Access
from fluxloom.core.errors import DatError, LoopError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.directory import Numbers
from fluxloom.dsl.declare.incoming import integers
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.ragged import CSR, RaggedLayout, RaggedStore
from fluxloom.dsl.declare.sets import Grid, Set
from fluxloom.graph import is_injective

__all__ = [
    "Argument", "BoundArgument", "EntriesMap", "EntrySet", "Map", "MapLeg", "OffsetMap", "RaggedMap", "TableMap",
    "entries_of", "entry_part", "row_starts",
]  # fmt: skip

Places = npt.NDArray[np.int32]


def entries_of(starts: Numbers, lengths: Numbers) -> Numbers:
    """Return the numbers of the entries of some rows, row after row."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(int(ends[-1]) if ends.size else 0)


def entry_part(comm: Comm, rows: Part | None, offsets: Numbers, position: Places | None) -> Part | None:
    """Return this rank's part of the entries of its rows; None where the rows have no parts. Collective.

    An entry belongs to the owner of its row. Globally entries are numbered row after row.

    Parameters
    ----------
    comm
        The ranks.
    rows
        Their part.
    offsets
        ``(owned + 1,)`` or ``(executed + 1,)``: where the entries of each row begin here.
    position
        Storage place of each entry; None when they are in order.
    """
    if rows is None:
        return None
    count = offsets.size - 1
    lengths = np.diff(offsets)
    starts, total = row_starts(comm, rows, lengths)
    numbers = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
    known = [places[places < count] for places in rows.receive]
    wanted = _wanted(comm, rows, [places < count for places in rows.receive])
    send = [places[kept] for places, kept in zip(rows.send, wanted, strict=True)]
    near = [k for k in range(len(rows.neighbours)) if send[k].size or known[k].size]
    return Part(
        begin=int(offsets[rows.begin]),
        inside=int(offsets[rows.inside]),
        owned=int(offsets[rows.owned]),
        executed=int(offsets[-1]),
        stored=int(offsets[-1]),
        numbers=numbers,
        total=total,
        neighbours=tuple(rows.neighbours[k] for k in near),
        send=tuple(_places(offsets, send[k], position) for k in near),
        receive=tuple(_places(offsets, known[k], position) for k in near),
    )


def row_starts(comm: Comm, rows: Part, lengths: Numbers) -> tuple[Numbers, int]:
    """Return the global number of the first entry of each row, and how many entries there are. Collective.

    Ranks answer for blocks of rows of even size: no rank needs the lengths of all rows.

    Parameters
    ----------
    lengths
        Entries of the first rows of the part, at least of those that are owned.
    """
    width = max(1, -(-rows.total // comm.size))
    bounds = np.minimum(np.arange(comm.size + 1) * width, rows.total)
    owned = rows.numbers[: rows.owned]
    block = place(comm, owned, lengths[: rows.owned], bounds)
    first, total = before(comm, int(block.sum()))
    return fetch(comm, first + np.cumsum(block) - block, bounds, rows.numbers[: lengths.size]), total


def _wanted(comm: Comm, rows: Part, executed: list[npt.NDArray[np.bool_]]) -> list[npt.NDArray[np.bool_]]:
    """Return for each neighbour which of the rows sent to it it has entries of; each tells the others. Collective."""
    none = np.zeros(0, dtype=np.bool_)
    told = dict(zip(rows.neighbours, executed, strict=True))
    heard = comm.exchange([told.get(rank, none) for rank in range(comm.size)])
    return [heard[rank] for rank in rows.neighbours]


def _places(offsets: Numbers, rows: Places, position: Places | None) -> Places:
    """Return the storage places of the entries of some rows, row after row."""
    entries = entries_of(offsets[rows], offsets[rows + 1] - offsets[rows])
    return np.ascontiguousarray(entries if position is None else position[entries], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Argument:
    """A dat seen from the driving set: directly, through a whole map, or through one leg of it."""

    data: Dat | Global
    map: Map | None = None
    leg: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundArgument(Argument):
    """An argument of a loop, by the name of the kernel's parameter, and what the kernel does with it."""

    name: str
    access: Access

    @property
    def ragged(self) -> RaggedMap | None:
        """The ragged map that it goes through, or whose entries it is on."""
        through = self.map.ragged if isinstance(self.map, EntriesMap) else self.map
        return through if isinstance(through, RaggedMap) else None


class Map:
    """Base of maps: from a driving set to the set of the dats that are reached."""

    source: Set
    target: Set
    name: str
    legs: int
    """Number of legs, or -1 when it differs by element."""
    covers: bool = True
    """Whether all elements that lead to what this rank owns are here; if not, loops only read through the map."""
    stays: bool = False
    """Whether it is known to lead to elements of this rank alone, on every rank: reading needs no messages then."""

    def argument(self, dat: Dat) -> Argument:
        """Return ``dat`` seen through the whole map."""
        self._check(dat)
        return Argument(dat, self)

    def __getitem__(self, leg: int) -> MapLeg:
        if self.legs < 0:
            raise LoopError(f"map {self.name!r} is ragged: it has no fixed legs to choose from")
        if not 0 <= leg < self.legs:
            raise LoopError(f"map {self.name!r} has legs 0 ... {self.legs - 1}, not {leg}")
        return MapLeg(self, leg)

    def _check(self, dat: Dat) -> None:
        if dat.set is not self.target:
            raise LoopError(f"dat {dat.name!r} is on {dat.set}, but map {self.name!r} leads to {self.target}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.source.name} -> {self.target.name})"


class MapLeg:
    """One leg of a map."""

    def __init__(self, parent: Map, leg: int) -> None:
        self.map, self.leg = parent, leg

    def argument(self, dat: Dat) -> Argument:
        """Return ``dat`` seen through this leg."""
        self.map._check(dat)
        return Argument(dat, self.map, self.leg)


def index_table(values: npt.ArrayLike, n: int, what: str) -> npt.NDArray[np.int32]:
    """Return an int32 table after checking that every entry is in ``0 ... n - 1``."""
    array = integers(values, what)
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= n:
            bad = low if low < 0 else high
            where = np.unravel_index(int(np.argmax(array == bad)), array.shape)
            place = ", ".join(str(int(w)) for w in where)
            raise DatError(f"{what}: entry [{place}] is {bad}; allowed are 0 ... {n - 1}")
    return np.ascontiguousarray(array, dtype=np.int32)


class TableMap(Map):
    """A table ``(source.size, arity)`` of target elements.

    With ``stays`` it is said to lead to elements of this rank alone, on every rank: reading then needs no messages.

    Raises
    ------
    DatError
        If the table has the wrong shape or an index is out of range; the message names the entry.
    """

    def __init__(self, source: Set, target: Set, table: npt.ArrayLike, name: str, stays: bool = False) -> None:
        array = integers(table, f"map {name!r}")
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[0] != source.executed:
            raise DatError(f"map {name!r}: a table of shape {array.shape} does not fit {source}")
        if source.context is not target.context:
            raise DatError(f"map {name!r}: {source} and {target} belong to different contexts")
        self.source, self.target, self.name = source, target, name
        self.table = index_table(array, target.size if stays else target.stored, f"map {name!r}")
        self.legs, self.stays = array.shape[1], stays

    @cached_property
    def distinct(self) -> bool:
        """Whether it leads to each target at most once."""
        return is_injective(self.table, self.target.stored)


class EntrySet(Set):
    """The entries of a ragged map, numbered row after row; the layout permutes their storage only.

    On several ranks a rank owns the entries of the rows that it owns.
    """

    def __init__(self, ragged: RaggedMap, store: RaggedStore) -> None:
        part = entry_part(ragged.source.context.comm, ragged.source.part, ragged.offsets, store.position)
        owned = store.entries if part is None else part.owned
        super().__init__(ragged.source.context, owned, f"{ragged.name}.entries", part=part)
        self._store, self._covers = store, ragged.covers

    @property
    def shared(self) -> bool:
        """Whether other ranks have rows of this rank too."""
        return self.part is not None and self._covers

    @property
    def storage_size(self) -> int:
        """Number of storage places, padding included."""
        return self._store.places

    @property
    def position(self) -> npt.NDArray[np.int32] | None:
        """Storage place of each entry, or None when they are in order."""
        return self._store.position


def _checked_rows(
    source: Set, target: Set, offsets: npt.ArrayLike, indices: npt.ArrayLike, what: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return compressed rows that fit their sets."""
    pointer = np.ascontiguousarray(integers(offsets, f"{what}: offsets"), dtype=np.int64)
    sizes = list(dict.fromkeys((source.size, source.executed)))
    if pointer.ndim != 1 or pointer.size - 1 not in sizes or (np.diff(pointer) < 0).any() or pointer[0] != 0:
        wanted = " or ".join(str(size + 1) for size in sizes)
        raise DatError(f"{what}: offsets must start at 0, never decrease and have {wanted} entries")
    targets = index_table(indices, target.stored, what)
    if targets.shape != (int(pointer[-1]),):
        raise DatError(f"{what}: {targets.shape} indices, but offsets end at {pointer[-1]}")
    if source.part is not None and target.part is not None:
        first = pointer[source.part.begin]
        inner = targets[first : pointer[source.part.inside]]
        if inner.size and int(inner.max()) >= target.part.owned:
            row = int(np.searchsorted(pointer, first + int(inner.argmax()), side="right")) - 1
            raise DatError(
                f"{what}: row {row} is in the interior, where nothing of other ranks is met, but leads to element "
                f"{inner.max()} of another rank; tell decompose of this link"
            )
    return pointer, targets


def _covers(source: Set, rows: int) -> bool:
    """Return whether all ranks have rows for what they execute. Collective on several of them."""
    if source.part is None:
        return True
    return all(source.context.comm.allgather(rows == source.executed))


class RaggedMap(Map):
    """A table with a different number of targets for each element: compressed rows.

    On several ranks there are rows for the elements that this rank owns, which is enough for loops that only read
    through the map, or for all that it executes. Declaring it is collective then.

    Parameters
    ----------
    offsets
        ``(source.size + 1,)``, or ``(source.executed + 1,)``: entries of row ``r`` are
        ``offsets[r] ... offsets[r + 1] - 1``.
    indices
        Target of each entry.
    layout
        `CSR`, `ELL`, `SlicedELL` or another `RaggedLayout`: how entries are stored. Loops and NumPy never see it.

    Raises
    ------
    DatError
        If rows or indices do not fit the sets; on several ranks, on every rank, naming the rank.
    """

    legs = -1

    def __init__(
        self,
        source: Set,
        target: Set,
        offsets: npt.ArrayLike,
        indices: npt.ArrayLike,
        name: str,
        layout: RaggedLayout | None = None,
    ) -> None:
        self.source, self.target, self.name = source, target, name
        self.offsets, self.indices = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        problem = ""
        try:
            self.offsets, self.indices = _checked_rows(source, target, offsets, indices, f"ragged map {name!r}")
        except DatError as error:
            problem = str(error)
        agree(source.context.comm, problem)
        self.covers = _covers(source, self.offsets.size - 1)
        if target.part is not None and not isinstance(target, Grid):
            self.stays = all(target.context.comm.allgather(bool((self.indices < target.size).all())))
        if layout is not None and not isinstance(layout, RaggedLayout):
            raise DatError(f"ragged map {name!r}: layout: CSR(), ELL() or SlicedELL() is wanted, not {layout!r}")
        self.layout = layout if layout is not None else CSR()
        self.store = RaggedStore(self.offsets, self.indices, self.layout)
        self.entries = EntrySet(self, self.store)
        self.to_entries = EntriesMap(self)
        self._entry_maps: dict[str, TableMap] = {}

    @property
    def entry_row(self) -> TableMap:
        """The map from each entry to its row."""
        if "row" not in self._entry_maps:
            rows = np.repeat(np.arange(self.store.rows, dtype=np.int32), np.diff(self.offsets))
            self._entry_maps["row"] = TableMap(self.entries, self.source, rows, f"{self.name}.row")
        return self._entry_maps["row"]

    @property
    def entry_target(self) -> TableMap:
        """The map from each entry to its target."""
        if "target" not in self._entry_maps:
            self._entry_maps["target"] = TableMap(self.entries, self.target, self.indices, f"{self.name}.target")
            self._entry_maps["target"].covers = self.covers
        return self._entry_maps["target"]


class EntriesMap(Map):
    """From a row to its entries: ``a[matrix.to_entries]`` is the row of values in an SpMV."""

    legs = -1

    def __init__(self, ragged: RaggedMap) -> None:
        self.ragged = ragged
        self.source, self.target = ragged.source, ragged.entries
        self.name = f"{ragged.name}.to_entries"
        self.covers = ragged.covers


class OffsetMap(Map):
    """A stencil on a grid: leg ``k`` of an element is the element at ``offsets[k]`` from it.

    Parameters
    ----------
    grid
        Source and target.
    offsets
        ``(legs, dimensions)``, slowest axis first, in lattice units.
    mirror
        Components that change places where the stencil turns round: along a last axis that is not periodic, a leg that
        would leave the lattice leads back to the element itself, and component ``c`` seen through it is that element's
        component ``mirror[c]``. So populations come back from a wall. Kernels name the components by constants.

    Raises
    ------
    DatError
        If a leg leaves the lattice along an axis that is neither periodic nor has enough ghost layers, or leads past
        the layers that ranks exchange; if ``mirror`` is no permutation, or there is no end at which to turn.
    """

    def __init__(self, grid: Grid, offsets: npt.ArrayLike, name: str, mirror: Sequence[int] = ()) -> None:
        array = integers(offsets, f"stencil {name!r}: offsets").astype(np.int64)
        if array.ndim != 2 or array.shape[1] != len(grid.shape):
            raise DatError(f"stencil {name!r}: offsets of shape {array.shape} do not fit a {len(grid.shape)}D grid")
        if not len(array):
            raise DatError(f"stencil {name!r}: it has no legs; give at least one offset")
        grid.check_reach(name, [int(r) for r in np.abs(array).max(axis=0)], turns=len(mirror) > 0)
        self.source = self.target = grid
        self.name = name
        self.offsets = tuple(tuple(int(v) for v in row) for row in array)
        self.legs = array.shape[0]
        self.mirror = tuple(mirror)
        if not all(isinstance(c, int | np.integer) for c in mirror) or sorted(mirror) != list(range(len(mirror))):
            raise DatError(f"stencil {name!r}: mirror={mirror} is no permutation of 0 ... {len(mirror) - 1}")
        last, length = grid.offset[-1] + grid.shape[-1], grid.global_shape[-1]
        self.ends = (bool(self.mirror) and grid.offset[-1] == 0, bool(self.mirror) and last == length)

    def _check(self, dat: Dat) -> None:
        super()._check(dat)
        if self.mirror and dat.shape != (len(self.mirror),):
            raise LoopError(
                f"dat {dat.name!r} has components of shape {dat.shape}, but stencil {self.name!r} turns "
                f"{len(self.mirror)} of them round at ends"
            )
