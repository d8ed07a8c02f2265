"""From owners to parts: which elements a rank stores, in which order, and who sends what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.decompose_directory import (
    Array,
    Directory,
    Link,
    Numbers,
    Owners,
    agree,
    by_rank,
    links_of,
    number_type,
    stable_order,
)
from fluxloom.dsl.parts import Part

__all__ = ["make_parts"]

_NONE, _ELSEWHERE = -1, -2
_CHUNK = 1 << 20
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
    elsewhere
        Global numbers of the targets of other ranks, in the order of the table.
    """

    place: npt.NDArray[np.int32]
    elsewhere: Numbers


def make_parts(
    comm: Comm, directories: Mapping[str, Directory], links: Mapping[str, Link]
) -> tuple[dict[str, Part], dict[str, npt.NDArray[np.int32]]]:
    """Return this rank's part of each set, and the tables of executed rows in local numbers. Collective.

    Raises
    ------
    DatError
        When a rank would store more elements of a set than 32-bit numbers can tell apart.
    """
    executed: dict[str, _Executed] = {}
    tables: dict[str, Array] = {}
    for name, directory in directories.items():
        executed[name], rows = _distribute(comm, directory, links_of(links, name), directories)
        tables.update(rows)
    coded = {name: _encode(tables.pop(name), executed[links[name].target].owned) for name in links}
    inside = _interior(executed, links, coded)
    parts: dict[str, Part] = {}
    places: dict[str, npt.NDArray[np.int32]] = {}
    for name, directory in directories.items():
        reached = [coded[k].elsewhere for k, link in links.items() if link.target == name]
        parts[name], places[name] = _part(comm, directory, executed[name], inside[name], reached)
    local = {name: _local(coded[name], parts[k.source], parts[k.target], places[k.source], places[k.target])
             for name, k in links.items()}  # fmt: skip
    return parts, local


def _distribute(
    comm: Comm, directory: Directory, links: Mapping[str, Link], directories: Mapping[str, Directory]
) -> tuple[_Executed, dict[str, Array]]:
    """Send each row of this rank's slice of a set to its owner and to the ranks that own one of its targets."""
    ranks, owner = comm.size, directory.owner
    n = owner.size
    guests = [np.zeros(0, dtype=np.int64)]
    for link in links.values():
        reached = directories[link.target].find(link.table)
        row, leg = np.nonzero((reached != owner[:, None]) & (reached >= 0))
        guests.append(reached[row, leg].astype(np.int64) * n + row)
    keys = np.unique(np.concatenate(guests))
    guest_rank, guest_row = (keys // max(n, 1)).astype(np.int32), keys % max(n, 1)
    home = stable_order(owner, ranks)
    mine = [home[piece] for piece in by_rank(owner, ranks)]
    also = [guest_row[piece] for piece in by_rank(guest_rank, ranks)]
    owned = comm.exchange([rows + directory.first for rows in mine])
    halo = comm.exchange([rows + directory.first for rows in also])
    halo_owner = np.concatenate(comm.exchange([owner[rows] for rows in also]))
    order = np.lexsort((np.concatenate(halo), halo_owner))
    found = _Executed(np.concatenate(owned), np.concatenate(halo)[order], halo_owner[order])
    rows: dict[str, Array] = {}
    for name, link in links.items():
        table = link.table.astype(number_type(directories[link.target].total), copy=False)
        got = comm.exchange([table[np.concatenate(both)] for both in zip(mine, also, strict=True)])
        own = [part[: known.size] for part, known in zip(got, owned, strict=True)]
        other = [part[known.size :] for part, known in zip(got, owned, strict=True)]
        rows[name] = np.concatenate([*own, np.concatenate(other)[order]])
    return found, rows


def _encode(table: Array, owned: Numbers) -> _Coded:
    """Replace the global numbers of owned targets by their places among those; keep the others aside."""
    flat = table.reshape(-1)
    place = np.empty(flat.size, dtype=np.int32)
    elsewhere = [np.zeros(0, dtype=np.int64)]
    for begin in range(0, flat.size, _CHUNK):
        numbers = flat[begin : begin + _CHUNK].astype(np.int64)
        found = find_sorted(owned, numbers)
        found[(found < 0) & (numbers >= 0)] = _ELSEWHERE
        place[begin : begin + _CHUNK] = found
        elsewhere.append(numbers[found == _ELSEWHERE])
    return _Coded(place.reshape(table.shape), np.concatenate(elsewhere))


def find_sorted(ascending: Numbers, numbers: Numbers) -> Numbers:
    """Return the place of each number among ascending ones; -1 where it is not there."""
    if ascending.size == 0:
        return np.full(numbers.size, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    return np.where(ascending[place] == numbers, place, -1)


def _interior(
    executed: Mapping[str, _Executed], links: Mapping[str, Link], coded: Mapping[str, _Coded]
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return for each set which of the owned elements, ascending, are in the interior."""
    shared: dict[str, npt.NDArray[np.bool_]] = {}
    for name, elements in executed.items():
        shared[name] = np.zeros(elements.owned.size + elements.halo.size, dtype=bool)
        shared[name][elements.owned.size :] = True
        for link in links_of(links, name):
            shared[name] |= (coded[link].place == _ELSEWHERE).any(axis=1)
    inside = {name: ~shared[name][: elements.owned.size] for name, elements in executed.items()}
    for name, link in links.items():
        reached = coded[name].place[shared[link.source]]
        inside[link.target][reached[reached >= 0]] = False
    return inside


def _part(
    comm: Comm, directory: Directory, elements: _Executed, inside: npt.NDArray[np.bool_], reached: list[Numbers]
) -> tuple[Part, npt.NDArray[np.int32]]:
    """Number the elements of a set that this rank stores; return its part, and the place of each owned element."""
    ranks = comm.size
    order = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
    place = np.empty(order.size, dtype=np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    wanted = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *reached]))
    rest = np.setdiff1d(wanted, elements.halo, assume_unique=True)
    rest_owner = directory.find(rest)
    by_owner = stable_order(rest_owner, ranks)
    rest, rest_owner = rest[by_owner], rest_owner[by_owner]
    owned, executed = order.size, order.size + elements.halo.size
    stored = executed + rest.size
    agree(comm, f"a part of {stored} elements does not fit 32-bit numbers: use more ranks" * (stored > _LARGEST))
    asked, receive = [], []
    for first, other in zip(by_rank(elements.halo_owner, ranks), by_rank(rest_owner, ranks), strict=True):
        asked.append(np.concatenate([elements.halo[first], rest[other]]))
        spans = [np.arange(s.start + at, s.stop + at) for s, at in ((first, owned), (other, executed))]
        receive.append(np.concatenate(spans).astype(np.int32))
    send = [place[find_sorted(elements.owned, numbers)] for numbers in comm.exchange(asked)]
    near = [rank for rank in range(ranks) if send[rank].size or receive[rank].size]
    part = Part(
        begin=0,
        inside=int(np.count_nonzero(inside)),
        owned=owned,
        executed=executed,
        stored=stored,
        numbers=np.concatenate([elements.owned[order], elements.halo, rest]),
        total=directory.total,
        neighbours=tuple(near),
        send=tuple(send[rank] for rank in near),
        receive=tuple(receive[rank] for rank in near),
    )
    return part, place


def _local(
    coded: _Coded, source: Part, target: Part, rows: npt.NDArray[np.int32], places: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Return a table in local numbers, its rows in their local order."""
    halo = target.numbers[target.owned :]
    order = np.argsort(halo)
    away = target.owned + order[find_sorted(halo[order], coded.elsewhere)]
    table = np.full(coded.place.shape, _NONE, dtype=np.int32)
    here = coded.place >= 0
    table[here] = places[coded.place[here]]
    table[coded.place == _ELSEWHERE] = away
    final = np.empty_like(table)
    final[rows] = table[: source.owned]
    final[source.owned :] = table[source.owned :]
    return final
