"""Messages of single numbers of a dat: what ranks need of each other's elements, where that is known by number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.exchange import WORD, numbers_unit
from fluxloom.codegen.language.spec import Entry
from fluxloom.codegen.unit import Unit
from fluxloom.comm.agreement import agree
from fluxloom.device.base import Buffer, Call, Launch, Program
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.slots import NARROW, places_in
from fluxloom.dsl.plan.halo_reads import HaloMask

__all__ = ["Numbers", "built"]

Table = npt.NDArray[np.integer[Any]]


class Numbers:
    """The numbers of a dat that this rank sends to and receives from each neighbour. Making it is collective.

    Parameters
    ----------
    mask
        What this rank needs; the neighbours are told.
    back
        Whether these numbers go the other way, from the copies here to the elements of their owners.

    Attributes
    ----------
    send, receive
        For each neighbour places in the storage of the dat, counted in numbers; both sides in one order.

    Raises
    ------
    DatError
        If two ranks would bring the same number back; on every rank.
    """

    def __init__(self, context: Runtime, mask: HaloMask, *, back: bool = False) -> None:
        self.context, self.dat, self.back = context, mask.dat, back
        part, comm = self.dat.set.part, context.comm
        assert part is not None
        self.neighbours = part.neighbours
        wanted = {r: mask.mask(places) for r, places in zip(part.neighbours, part.receive, strict=True)}
        nothing = np.zeros(0, dtype=np.uint8)
        told = comm.exchange([np.packbits(wanted[r]) if r in wanted else nothing for r in range(comm.size)])
        self.wide = self.dat.stride * self.dat.dim >= NARROW
        self.receive = {
            r: self._places(places, wanted[r]) for r, places in zip(part.neighbours, part.receive, strict=True)
        }
        self.send: dict[int, Table] = {}
        for r, places in zip(part.neighbours, part.send, strict=True):
            asked = np.unpackbits(told[r], count=places.size * self.dat.dim).astype(bool)
            self.send[r] = self._places(places, asked.reshape(places.size, self.dat.dim))
        if back:
            self.send, self.receive = self.receive, self.send
            self._check_once()

    def _check_once(self) -> None:
        """Check that no number comes back from two ranks, or twice from one: elements have each their own."""
        found = np.concatenate([np.zeros(0, dtype=np.int64), *self.receive.values()])
        twice = found.size - np.unique(found).size
        problem = f"{twice} numbers of {self.dat.name!r} are changed by elements of more than one rank" if twice else ""
        agree(self.context.comm, problem)

    def _places(self, elements: npt.NDArray[np.int32], wanted: npt.NDArray[np.bool_]) -> Table:
        """Return where numbers are: component after component, so that neighbours in memory stay neighbours."""
        component, row = np.nonzero(wanted.T)
        found = places_in(self.dat.layout, self.dat.stride, self.dat.dim, elements[row].astype(np.int64), component)
        return np.ascontiguousarray(found, dtype=np.int64 if self.wide else np.int32)

    def words(self, rank: int, *, sending: bool) -> int:
        """Return the words that the numbers for a rank, or from it, take in a message."""
        table = (self.send if sending else self.receive).get(rank)
        return 0 if table is None else -(-table.size * self.dat.scalar.size // WORD)

    def calls(self, symbol: str, starts: Sequence[tuple[int, int]], message: Buffer, *, sending: bool) -> list[Call]:
        """Return what packs or unpacks; ``starts``: neighbours, and the words of the message where theirs begin.

        The last of the words of a call is the address of the dat.
        """
        scalar, dialect = self.dat.scalar, self.context.device.dialect
        key = ("exchange of numbers", scalar, self.wide)
        program, entries = built(self.context, key, lambda: numbers_unit(scalar, self.wide, dialect))
        entry = next(e for e in entries if e.symbol == symbol)
        out = []
        for rank, start in starts:
            table = (self.send if sending else self.receive).get(rank)
            if table is None or not table.size:
                continue
            words = np.zeros(len(entry.slots), dtype=np.int64)
            address, keep = self.context.resident(table)
            words[:4] = table.size, address, start, message.device()
            launches = tuple(Launch(s.symbol, table.size, s.block) for s in entry.launches)
            kept: list[Any] = [message, words, keep, table]
            out.append(Call(f"{symbol[3:]} {self.dat.name}", program, words, launches or (Launch(symbol),), kept))
        return out


def built(context: Runtime, key: Hashable, make: Callable[[], Unit]) -> tuple[Program, tuple[Entry, ...]]:
    """Return the compiled functions of a unit with their entries; built once a context."""
    if key not in context.plans:
        unit = make()
        context.plans[key] = (context.device.compile(unit.text, unit.symbols, "exchange"), unit.entries)
    return context.plans[key]
