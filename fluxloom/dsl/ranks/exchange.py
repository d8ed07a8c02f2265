"""Halo exchange: what other ranks need of some dats, packed, sent, received and unpacked.

One message a neighbour carries all dats, whatever their sets: for each set a block of records, one an element; behind
them single numbers of dats of which no more is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.exchange import WORD, Field, exchange_unit, record_bytes
from fluxloom.device.base import Buffer, Call, Enqueued, Launch, Sequencer
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.links import exchange_act
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.runtime import Runtime, unique
from fluxloom.dsl.declare.transports import Side, Transport, choose_transport
from fluxloom.dsl.plan.halo_reads import HaloMask
from fluxloom.dsl.ranks.exchange_numbers import Numbers, built

__all__ = ["Exchange"]


@dataclass(frozen=True, eq=False)
class _Block:
    """The dats on one set, widest types first, and where their records begin in the messages."""

    part: Part
    dats: list[Dat]

    @property
    def fields(self) -> tuple[Field, ...]:
        """What a record holds."""
        return tuple(Field(d.scalar, d.dim, d.layout) for d in self.dats)

    @property
    def words(self) -> int:
        """Words of a record."""
        return record_bytes(self.fields) // WORD


class Exchange:
    """Brings the halo of some dats up to date.

    Parameters
    ----------
    dats
        On sets with a part; the same on every rank, in the same order.
    buffers
        Where their values are; by default where the dats are now.
    masks
        Dats of which single numbers are brought up to date.
    returns
        Dats of which single numbers go back, from the halo to the ranks that own them.

    Notes
    -----
    In a sequence, what stands between the items of `before` and of `after` runs while the messages travel; it
    touches neither the halo nor the messages. Calling the exchange does it all at once.
    """

    def __init__(
        self,
        context: Runtime,
        dats: Sequence[Dat],
        buffers: dict[int, Buffer] | None = None,
        masks: Sequence[HaloMask] = (),
        returns: Sequence[HaloMask] = (),
    ) -> None:
        self.context, self.dats = context, list(dats)
        self._fixed = buffers
        context.comm.agree(exchange_act(self.dats, (m.dat for m in masks), (m.dat for m in returns)))
        sets = unique(d.set for d in dats)
        self._blocks = [_block([d for d in dats if d.set is s]) for s in sets]
        self._numbers = [Numbers(context, mask) for mask in masks]
        self._numbers += [Numbers(context, mask, back=True) for mask in returns]
        near = [*(b.part.neighbours for b in self._blocks), *(n.neighbours for n in self._numbers)]
        self.neighbours = sorted({r for ranks in near for r in ranks})
        self._send = _Layout(self._blocks, self._numbers, self.neighbours, sending=True)
        self._receive = _Layout(self._blocks, self._numbers, self.neighbours, sending=False)
        self._outbox = context.allocate(max(1, self._send.words) * WORD)
        self._inbox = context.allocate(max(1, self._receive.words) * WORD)
        self._pointed: list[tuple[npt.NDArray[np.int64], list[tuple[int, Dat]]]] = []
        self._packs = self._calls("fl_pack", self._send, self._outbox, sending=True)
        self._unpacks = self._calls("fl_unpack", self._receive, self._inbox, sending=False)
        side_out = Side(self._outbox, self._send.slices(WORD))
        side_in = Side(self._inbox, self._receive.slices(WORD))
        self.transport: Transport = choose_transport(context, self.neighbours, side_out, side_in)
        self._items = self.transport.items(f"halo {self.name}")
        self.apart = self.transport.apart(f"halo {self.name}")
        """Items that fork, carry the messages and join, where the transport has such."""
        self._sequence: Sequencer | None = None

    # ------------------------------------------------------------------------------------- items
    @property
    def bytes_sent(self) -> int:
        """Bytes of the messages that this rank sends each time."""
        return self._send.words * WORD

    @property
    def items(self) -> list[Call | Enqueued]:
        """All items of a sequence."""
        return [*self.before(), *self.after()]

    @property
    def name(self) -> str:
        """The dats."""
        numbers = [f"{n.dat.name} back" if n.back else n.dat.name for n in self._numbers]
        return "+".join([*(dat.name for dat in self.dats), *numbers])

    def before(self) -> list[Call | Enqueued]:
        """Return the items of a sequence that pack and begin to send."""
        return [*self._packs, self._items[0]]

    def after(self) -> list[Call | Enqueued]:
        """Return the items that wait for what comes and unpack it."""
        return [self._items[1], *self._unpacks]

    def packs(self) -> list[Call]:
        """Return the calls that pack, to be run beside the main queue."""
        return [replace(call, aside=True) for call in self._packs]

    def unpacks(self) -> list[Call]:
        """Return the calls that unpack, to be run beside the main queue."""
        return [replace(call, aside=True) for call in self._unpacks]

    def __call__(self) -> None:
        """Bring the halo up to date now."""
        if self._sequence is None:
            self._sequence = self.context.device.sequencer([*self.before(), *self.after()])
        for dat in self.dats:
            dat.buffer.device()
        self.refresh()
        self._sequence()
        for dat in self.dats:
            dat.halo_version = dat.version

    def refresh(self) -> None:
        """Take the buffers that the dats have now."""
        changed = [self._point(words, dats) for words, dats in self._pointed]
        if any(changed) and self._sequence is not None:
            self._sequence.refresh()

    def _point(self, words: npt.NDArray[np.int64], dats: list[tuple[int, Dat]]) -> bool:
        """Write the addresses of dats to some words; return whether one was another one."""
        changed = False
        for place, dat in dats:
            buffer = dat.buffer if self._fixed is None else self._fixed[id(dat)]
            changed |= int(words[place]) != buffer.address
            words[place] = buffer.address
        return changed

    def _calls(self, symbol: str, layout: _Layout, message: Buffer, *, sending: bool) -> list[Call]:
        out = [self._call(k, symbol, layout, message) for k in range(len(self._blocks))]
        for numbers, starts in zip(self._numbers, layout.starts, strict=True):
            calls = numbers.calls(symbol, starts, message, sending=sending)
            for call in calls:
                self._aim(call, [(len(call.words) - 1, numbers.dat)])
            out += calls
        return out

    def _aim(self, call: Call, dats: list[tuple[int, Dat]]) -> None:
        """Let some words of a call follow the buffers of dats."""
        self._pointed.append((call.words, dats))
        self._point(call.words, dats)

    def _call(self, number: int, symbol: str, layout: _Layout, message: Buffer) -> Call:
        block = self._blocks[number]
        dialect = self.context.device.dialect
        key = ("exchange", block.fields)
        program, entries = built(self.context, key, lambda: exchange_unit(block.fields, dialect))
        entry = next(e for e in entries if e.symbol == symbol)
        places, where = layout.places[number], layout.where[number]
        words = np.zeros(len(entry.slots), dtype=np.int64)
        kept: list[Any] = [message, words]
        words[0], words[3] = places.size, message.device()
        for k, table in ((1, places), (2, where)):
            held = table if table.size else np.zeros(1, dtype=np.int32)
            words[k], keep = self.context.resident(held)
            kept += [keep, held]
        for k, slot in enumerate(entry.slots):
            if slot.origin == "stride":
                words[k] = block.dats[int(slot.key)].stride
        launches = tuple(Launch(s.symbol, max(1, places.size), s.block) for s in entry.launches)
        call = Call(f"{symbol[3:]} {'+'.join(d.name for d in block.dats)}", program, words,
                    launches or (Launch(symbol),), kept)  # fmt: skip
        self._aim(call, [(k, block.dats[int(s.key)]) for k, s in enumerate(entry.slots) if s.origin == "dat"])
        return call


def _block(dats: list[Dat]) -> _Block:
    part = dats[0].set.part
    assert part is not None
    return _Block(part, sorted(dats, key=lambda d: -d.scalar.size))


class _Layout:
    """Where each record of the messages to (or from) the neighbours is, in words; neighbour after neighbour."""

    def __init__(
        self, blocks: Sequence[_Block], numbers: Sequence[Numbers], neighbours: Sequence[int], *, sending: bool
    ) -> None:
        lists = []
        for block in blocks:
            part = block.part
            found = dict(zip(part.neighbours, part.send if sending else part.receive, strict=True))
            lists.append([found.get(r, np.empty(0, dtype=np.int32)) for r in neighbours])
        self.places = [np.ascontiguousarray(np.concatenate([np.empty(0, np.int32), *found])) for found in lists]
        starts: list[list[npt.NDArray[np.int32]]] = [[] for _ in blocks]
        self.starts: list[list[tuple[int, int]]] = [[] for _ in numbers]
        self._bounds, at = [0], 0
        for k, rank in enumerate(neighbours):
            for number, block in enumerate(blocks):
                count = lists[number][k].size
                starts[number].append((at + np.arange(count, dtype=np.int64) * block.words).astype(np.int32))
                at += count * block.words
            for each, begin in zip(numbers, self.starts, strict=True):
                begin.append((rank, at))
                at += each.words(rank, sending=sending)
            self._bounds.append(at)
        self.where = [np.ascontiguousarray(np.concatenate([np.empty(0, np.int32), *s])) for s in starts]
        self._neighbours = neighbours
        self.words = at

    def slices(self, width: int) -> list[tuple[int, int, int]]:
        """Return neighbour, first byte and number of bytes of each message."""
        pairs = zip(self._neighbours, self._bounds, self._bounds[1:], strict=False)
        return [(r, begin * width, (end - begin) * width) for r, begin, end in pairs]
