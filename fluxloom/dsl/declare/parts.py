"""A rank's part of a set: which elements it has, and which of them it shares with whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm

__all__ = ["Part", "refresh_host"]

Places = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """The elements of one set that a rank stores, in the order of their local numbers.

    ::

        0 ... inside ... owned ... executed ... stored
        |interior|boundary|execute halo|rest of the halo|

    A rank *owns* elements: only it decides their values. Interior ones, and whatever they lead to through a map in
    either direction, need nothing of other ranks. An element of another rank that leads to an owned one through
    some map is in the *execute halo*: a loop that adds to or writes its targets runs over it too. What is only
    read is in the rest of the halo. In each of the four ranges the numbers ascend with the global ones,
    in the halo rank by rank.

    Parameters
    ----------
    begin, inside
        The owned elements ``begin ... inside - 1`` are the interior. ``begin`` is 0, but for slabs of a lattice.
    owned, executed, stored
        Where the ranges end.
    numbers
        int64, ``(stored,)``: global number of each element.
    total
        Elements of all ranks together.
    neighbours
        Ranks that this one exchanges values of the set with, ascending.
    send
        For each neighbour the storage places of the owned elements that it has in its halo.
    receive
        For each neighbour the places here of the elements that it owns, in the order in which it sends them.
    """

    begin: int
    inside: int
    owned: int
    executed: int
    stored: int
    numbers: npt.NDArray[np.int64]
    total: int
    neighbours: tuple[int, ...] = ()
    send: Sequence[Places] = field(default_factory=tuple)
    receive: Sequence[Places] = field(default_factory=tuple)

    @property
    def halo(self) -> int:
        """Elements of other ranks that are stored here."""
        return sum(int(p.size) for p in self.receive)

    def owners(self, rank: int) -> npt.NDArray[np.int64]:
        """Return the rank that owns each stored element, ``(stored,)``, on this rank."""
        found = np.full(self.stored, rank, dtype=np.int64)
        for other, places in zip(self.neighbours, self.receive, strict=True):
            found[places] = other
        return found

    @classmethod
    def whole(cls, size: int) -> Part:
        """Return the part of a rank that has everything."""
        return cls(0, size, size, size, size, np.arange(size, dtype=np.int64), size)

    @classmethod
    def of_reads(
        cls, comm: Comm, inside: Numbers, rest: Numbers, halo: Numbers, owner: npt.NDArray[np.integer[Any]], total: int
    ) -> Part:
        """Return the part of a set whose loops read values of other ranks and add to none. Collective.

        Parameters
        ----------
        comm
            The ranks.
        inside, rest
            Global numbers of the owned elements, ascending: the interior, and the others.
        halo, owner
            Global numbers of the elements of other ranks, in ascending order for each of these, and who owns them.
        total
            Elements of all ranks.
        """
        owned = (np.concatenate([inside, rest]) if rest.size else inside).astype(np.int64, copy=False)
        asked = comm.exchange([halo[owner == rank] for rank in range(comm.size)])
        places = [np.empty(0, dtype=np.int32)] * comm.size
        if any(numbers.size for numbers in asked):
            order = np.argsort(owned, kind="stable")
            places = [order[np.searchsorted(owned, numbers, sorter=order)].astype(np.int32) for numbers in asked]
        by_rank = np.argsort(owner, kind="stable")
        near = [rank for rank in range(comm.size) if places[rank].size or (owner == rank).any()]
        first = owned.size + np.searchsorted(owner[by_rank], np.arange(comm.size + 1))
        return cls(
            begin=0,
            inside=int(inside.size),
            owned=int(owned.size),
            executed=int(owned.size),
            stored=int(owned.size + halo.size),
            numbers=np.concatenate([owned, halo[by_rank]]) if halo.size else owned,
            total=total,
            neighbours=tuple(near),
            send=tuple(places[rank] for rank in near),
            receive=tuple(np.arange(first[rank], first[rank + 1], dtype=np.int32) for rank in near),
        )


def refresh_host(comm: Comm, part: Part, values: npt.NDArray[Any]) -> None:
    """Bring the halo entries of an array ``(places, ...)`` in host memory up to date; collective."""
    empty = values[:0]
    send = dict(zip(part.neighbours, part.send, strict=True))
    found = comm.exchange([values[send[r]] if r in send else empty for r in range(comm.size)])
    for rank, places in zip(part.neighbours, part.receive, strict=True):
        values[places] = found[rank]
