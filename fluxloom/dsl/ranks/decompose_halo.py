"""From owners to parts: which elements a rank stores, in which order, and who sends what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import CHUNK, distinct, stable_order, take
from fluxloom.dsl.declare.directory import (
    Array,
    Directory,
    Link,
    Numbers,
    Owners,
    by_rank,
    lay_out,
    links_of,
    number_type,
    places_by_rank,
)
from fluxloom.dsl.declare.parts import Part
from fluxloom.graph.lookup import ELSEWHERE, NumberIndex, chosen_first, index_numbers, renumber_rows
from fluxloom.graph.native import Indices

__all__ = ["make_parts"]

_LARGEST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class _Executed:
    """The elements of one set that a rank executes.

    Attributes
    ----------
    owned
        Global numbers, ascending.
    halo, halo_owner
        Those of other ranks, by owner, then ascending.
    """

    owned: Numbers
    halo: Numbers
    halo_owner: Owners


@dataclass(frozen=True, eq=False)
class _Coded:
    """A table of executed rows.

    Attributes
    ----------
    place
        int32, ``(rows, arity)``: which of the owned targets, ascending; -1: no target; -2: one of another rank.
    spots
        int64: where the targets of other ranks stand in ``place.reshape(-1)``, ascending.
    elsewhere
        Global numbers of these targets.
    """

    place: Indices
    spots: Numbers
    elsewhere: Numbers

    @property
    def cut(self) -> Numbers:
        """The rows with targets of other ranks, some of them several times."""
        return self.spots // self.place.shape[1]


def make_parts(
    comm: Comm, directories: Mapping[str, Directory], links: Mapping[str, Link]
) -> tuple[dict[str, Part], dict[str, Indices]]:
    """Return this rank's part of each set, and the tables of executed rows in local numbers. Collective.

    Raises
    ------
    DatError
        When a rank would store more elements of a set than 32-bit numbers can tell apart.
    """
    owned = {name: _owned(comm, directory) for name, directory in directories.items()}
    executed: dict[str, _Executed] = {}
    coded: dict[str, _Coded] = {}
    for name in directories:
        executed[name], rows = _distribute(comm, name, owned, links_of(links, name), directories)
        coded.update(rows)
    del owned
    inside = _interior(executed, links, coded)
    parts: dict[str, Part] = {}
    places: dict[str, Indices] = {}
    for name, directory in directories.items():
        reached = [coded[k].elsewhere for k, link in links.items() if link.target == name]
        parts[name], places[name] = _part(comm, directory, executed.pop(name), inside.pop(name), reached)
    local = {}
    for name, link in links.items():
        local[name] = _local(coded.pop(name), parts[link.target], places[link.source], places[link.target])
    return parts, local


def _owned(comm: Comm, directory: Directory) -> NumberIndex:
    """Tell every rank what it owns; return the global numbers of what this one does, ascending."""
    places = places_by_rank(directory.owner, comm.size)
    own, first, kind = places[comm.rank], directory.first, number_type(directory.total)
    places[comm.rank] = own[:0]
    found = comm.exchange([np.add(rows, first, dtype=kind) for rows in places])
    numbers = np.empty(own.size + sum(map(len, found)), dtype=np.int64)
    np.add(own, first, out=lay_out(found, comm.rank, own.size, numbers))
    return index_numbers(numbers)


def _distribute(
    comm: Comm,
    name: str,
    owned: Mapping[str, NumberIndex],
    links: Mapping[str, Link],
    directories: Mapping[str, Directory],
) -> tuple[_Executed, dict[str, _Coded]]:
    """Send each row of this rank's slice of a set to its owner and to the ranks that own one of its targets."""
    directory = directories[name]
    owner, n = directory.owner, max(directory.owner.size, 1)
    guests = [np.zeros(0, dtype=np.int64)]
    for link in links.values():
        for rows, owners in directories[link.target].find_rows(link.table):
            for reached in owners.T:
                row = np.flatnonzero(reached != owner[rows])
                row = row[reached[row] >= 0]
                guests.append(reached[row].astype(np.int64) * n + rows.start + row)
    keys = distinct(np.concatenate(guests))
    guest_rank, guest_row = (keys // n).astype(np.int32), keys % n
    also = [guest_row[piece] for piece in by_rank(guest_rank, comm.size)]
    halo = np.concatenate(comm.exchange([rows + directory.first for rows in also]))
    halo_owner = np.concatenate(comm.exchange([owner[rows] for rows in also]))
    order = np.lexsort((halo, halo_owner))
    found = _Executed(owned[name].ascending, halo[order], halo_owner[order])
    mine = places_by_rank(owner, comm.size)
    coded: dict[str, _Coded] = {}
    for key, link in links.items():
        table = link.table.astype(number_type(directories[link.target].total), copy=False)
        executed = np.empty((found.owned.size + order.size, table.shape[1]), dtype=table.dtype)
        executed[found.owned.size :] = np.concatenate(comm.exchange([table[places] for places in also]))[order]
        _send_rows(comm, table, mine, executed[: found.owned.size])
        coded[key] = _encode(executed, owned[link.target])
    return found, coded


def _send_rows(comm: Comm, table: Array, places: list[Owners], out: Array) -> None:
    """Send some rows of a table to each rank; write those that came to ``out``, rank by rank."""
    own = places[comm.rank]
    found = comm.exchange([take(table, own[:0] if rank == comm.rank else rows) for rank, rows in enumerate(places)])
    take(table, own, lay_out(found, comm.rank, own.size, out))


def _encode(table: Array, owned: NumberIndex) -> _Coded:
    """Replace the global numbers of owned targets by their places among those; keep the others aside.

    A table of 32 bits is overwritten.
    """
    flat = table.reshape(-1)
    place = flat if flat.dtype == np.int32 else np.empty(flat.size, dtype=np.int32)
    spots, elsewhere = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for begin in range(0, flat.size, CHUNK):
        numbers = flat[begin : begin + CHUNK]
        found = owned.find(numbers)
        away = np.flatnonzero(found < 0)
        away = away[numbers[away] >= 0]
        found[away] = ELSEWHERE
        spots.append(begin + away)
        elsewhere.append(numbers[away].astype(np.int64))
        place[begin : begin + CHUNK] = found
    return _Coded(place.reshape(table.shape), np.concatenate(spots), np.concatenate(elsewhere))


def _interior(
    executed: Mapping[str, _Executed], links: Mapping[str, Link], coded: Mapping[str, _Coded]
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return for each set which of the owned elements, ascending, are in the interior."""
    inside = {name: np.ones(elements.owned.size, dtype=bool) for name, elements in executed.items()}
    for name, elements in executed.items():
        count = elements.owned.size
        leading = links_of(links, name)
        cut = [coded[link].cut for link in leading]
        shared = distinct(np.concatenate([np.arange(count, count + elements.halo.size), *cut]))
        inside[name][shared[shared < count]] = False
        for key, link in leading.items():
            reached = coded[key].place[shared]
            inside[link.target][reached[reached >= 0]] = False
    return inside


def _part(
    comm: Comm, directory: Directory, elements: _Executed, inside: npt.NDArray[np.bool_], reached: list[Numbers]
) -> tuple[Part, Indices]:
    """Number the elements of a set that this rank stores; return its part, and the place of each owned element."""
    ranks, owned = comm.size, inside.size
    wanted = distinct(np.concatenate([np.zeros(0, dtype=np.int64), *reached]))
    rest = np.setdiff1d(wanted, elements.halo, assume_unique=True)
    rest_owner = directory.find(rest)
    by_owner = stable_order(rest_owner, ranks)
    rest, rest_owner = rest[by_owner], rest_owner[by_owner]
    executed = owned + elements.halo.size
    stored = executed + rest.size
    agree(comm, f"a part of {stored} elements does not fit 32-bit numbers: use more ranks" * (stored > _LARGEST))
    numbers = np.empty(stored, dtype=np.int64)
    place, interior = chosen_first(inside, elements.owned, numbers)
    numbers[owned:executed], numbers[executed:] = elements.halo, rest
    asked, receive = [], []
    for first, other in zip(by_rank(elements.halo_owner, ranks), by_rank(rest_owner, ranks), strict=True):
        asked.append(np.concatenate([elements.halo[first], rest[other]]))
        spans = [np.arange(s.start + at, s.stop + at) for s, at in ((first, owned), (other, executed))]
        receive.append(np.concatenate(spans).astype(np.int32))
    send = [place[find_sorted(elements.owned, known)] for known in comm.exchange(asked)]
    near = [rank for rank in range(ranks) if send[rank].size or receive[rank].size]
    part = Part(
        begin=0,
        inside=interior,
        owned=owned,
        executed=executed,
        stored=stored,
        numbers=numbers,
        total=directory.total,
        neighbours=tuple(near),
        send=tuple(send[rank] for rank in near),
        receive=tuple(receive[rank] for rank in near),
    )
    return part, place


def find_sorted(ascending: Numbers, numbers: Numbers) -> Numbers:
    """Return the place of each number among ascending ones; -1 where it is not there."""
    if ascending.size == 0:
        return np.full(numbers.size, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    return np.where(ascending[place] == numbers, place, -1)


def _local(coded: _Coded, target: Part, rows: Indices, places: Indices) -> Indices:
    """Return a table in local numbers, its rows in their local order.

    Parameters
    ----------
    coded
        The table.
    target
        The part of the targets.
    rows, places
        Local number of each owned row, and of each owned target, ascending.
    """
    halo = target.numbers[target.owned :]
    order = np.argsort(halo)
    away = target.owned + order[find_sorted(halo[order], coded.elsewhere)]
    return renumber_rows(coded.place, rows, places, away.astype(np.int32))
