"""Global arrays divided over ranks, and how their values move from one division to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CommError
from fluxloom.device.base import Buffer, Call, Enqueued
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.transports import Side, Transport, choose_transport
from fluxloom.linalg.direct.transforms.mover import Mover, Place

__all__ = ["Extent", "Redistribution", "dealt", "divided", "gathered"]

_ALIGN = 16
"""Messages begin at multiples of this many bytes, and fill them: then words of every size may carry them."""


@dataclass(frozen=True)
class Extent:
    """A box of a global array: the index of its first value, and how many there are along each axis."""

    begin: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)

    @property
    def window(self) -> tuple[slice, ...]:
        """Slices that cut the box out of the global array."""
        return tuple(slice(b, b + n) for b, n in zip(self.begin, self.shape, strict=True))

    def meet(self, other: Extent) -> Extent:
        """Return what two boxes have in common; it may be empty."""
        begin = tuple(max(a, b) for a, b in zip(self.begin, other.begin, strict=True))
        ends = [
            min(a + n, b + m) for a, n, b, m in zip(self.begin, self.shape, other.begin, other.shape, strict=True)
        ]
        return Extent(begin, tuple(max(0, end - b) for end, b in zip(ends, begin, strict=True)))

    def within(self, other: Extent) -> tuple[int, ...]:
        """Return the index of the first value as the other box counts."""
        return tuple(a - b for a, b in zip(self.begin, other.begin, strict=True))


def divided(shape: Sequence[int], factors: Sequence[int]) -> list[Extent]:
    """Return the boxes of all ranks when each axis is cut into so many pieces: as lattices are (`dsl.boxes.box_of`).

    Where an axis is shorter than its pieces are many, some are empty.
    """
    found = []
    for rank in range(prod(factors)):
        place = np.unravel_index(rank, tuple(factors))
        bounds = [(int(i) * n // k, (int(i) + 1) * n // k) for i, n, k in zip(place, shape, factors, strict=True)]
        found.append(Extent(tuple(b for b, _ in bounds), tuple(e - b for b, e in bounds)))
    return found


@dataclass(frozen=True)
class _Piece:
    """What two ranks exchange one way: the other one, the box, and the first byte of its message."""

    rank: int
    box: Extent
    first: int


class Redistribution:
    """Moves the values of a global array from one division over the ranks to another. Collective.

    Each rank has one box before and one after. What both have in common is copied on the device; the rest travels as
    one message for each pair of ranks that share values, by the transport of the context. The messages are made once
    and used again and again, from and to whatever arrays.

    Parameters
    ----------
    context
        The ranks.
    before, after
        The box of every rank, `divided` for example; together they hold each value once. The same on every rank.
    dtype
        Of the values: real or complex, single or double precision.
    name
        For messages and profilers.

    Attributes
    ----------
    bytes_sent
        That this rank sends to others each time.
    messages
        That it sends each time.
    transport
        Carries them; None where no rank sends any.

    Raises
    ------
    CommError
        If there is not one box for each rank, or the boxes do not hold the same values.
    """

    def __init__(
        self, context: Context, before: Sequence[Extent], after: Sequence[Extent], dtype: npt.DTypeLike,
        name: str = "redistribution",
    ) -> None:  # fmt: skip
        self.context, self.name = context, name
        self.dtype = np.dtype(dtype)
        size, rank = context.comm.size, context.comm.rank
        if len(before) != size or len(after) != size:
            raise CommError(f"{name}: {len(before)} boxes before and {len(after)} after, for {size} ranks: one a rank")
        met = sum(a.meet(b).size for a in before for b in after)
        if met != sum(a.size for a in before) or met != sum(b.size for b in after):
            raise CommError(f"{name}: the boxes before and after do not hold the same values, each once")
        self.before, self.after = before[rank], after[rank]
        self._own = self.before.meet(self.after)
        self._sends = self._pieces((r, self.before.meet(after[r])) for r in range(size) if r != rank)
        self._receives = self._pieces((r, before[r].meet(self.after)) for r in range(size) if r != rank)
        self._mover = Mover(context.device, self.dtype, context.threads)
        self._outbox = context.allocate(max(_ALIGN, self._total(self._sends)))
        self._inbox = context.allocate(max(_ALIGN, self._total(self._receives)))
        self.bytes_sent, self.messages = self._total(self._sends), len(self._sends)
        self.transport: Transport | None = None
        if any(a.meet(b).size for r, a in enumerate(before) for s, b in enumerate(after) if r != s):
            self.transport = choose_transport(
                context, sorted({p.rank for p in (*self._sends, *self._receives)}),
                Side(self._outbox, self._slices(self._sends)), Side(self._inbox, self._slices(self._receives)),
            )  # fmt: skip

    def items(self, source: DeviceArray, target: DeviceArray) -> list[Call | Enqueued]:
        """Return the items of a sequence that moves the values; not collective.

        Parameters
        ----------
        source, target
            This rank's boxes before and after: arrays of their shapes, with any steps, that do not overlap.

        Raises
        ------
        CommError
            If an array has another shape or type.
        """
        for array, box, what in ((source, self.before, "source"), (target, self.after, "target")):
            if array.shape != box.shape or array.dtype != self.dtype:
                raise CommError(
                    f"{self.name}: the {what} is {array.dtype} of shape {array.shape}, and this rank's box is "
                    f"{self.dtype} of shape {box.shape}"
                )
        width = self.dtype.itemsize
        packs = [
            self._mover.call(p.box.shape, Place.of(source, p.box.within(self.before)),
                             Place.dense(self._outbox, p.box.shape, p.first // width), f"{self.name} pack")
            for p in self._sends
        ]  # fmt: skip
        unpacks = [
            self._mover.call(p.box.shape, Place.dense(self._inbox, p.box.shape, p.first // width),
                             Place.of(target, p.box.within(self.after)), f"{self.name} unpack")
            for p in self._receives
        ]  # fmt: skip
        own: list[Call | Enqueued] = []
        if self._own.size:
            there = Place.of(source, self._own.within(self.before))
            here = Place.of(target, self._own.within(self.after))
            own = [self._mover.call(self._own.shape, there, here, f"{self.name} copy")]
        if self.transport is None:
            return own
        send, receive = self.transport.items(self.name)
        return [*packs, send, *own, receive, *unpacks]

    def close(self) -> None:
        """Give back what carries the messages."""
        if self.transport is not None:
            self.transport.close()

    def _pieces(self, boxes: Iterable[tuple[int, Extent]]) -> list[_Piece]:
        found, at = [], 0
        for rank, box in boxes:
            if box.size:
                found.append(_Piece(rank, box, at))
                at += self._bytes(box)
        return found

    def _bytes(self, box: Extent) -> int:
        """Return the bytes of a message."""
        return -(-box.size * self.dtype.itemsize // _ALIGN) * _ALIGN

    def _total(self, pieces: Sequence[_Piece]) -> int:
        return sum(self._bytes(p.box) for p in pieces)

    def _slices(self, pieces: Sequence[_Piece]) -> list[tuple[int, int, int]]:
        return [(p.rank, p.first, self._bytes(p.box)) for p in pieces]


def gathered(context: Context, ranks: Sequence[int], memory: Buffer, first: int, size: int) -> Transport:
    """Return what sends this rank's piece to the others of a group, and receives theirs beside it. Collective.

    Pieces of ``size`` bytes lie one after the other from the byte ``first`` on, in the order of the ranks.
    """
    rank = context.comm.rank
    others = [(r, first + k * size, size) for k, r in enumerate(ranks) if r != rank]
    own = first + list(ranks).index(rank) * size
    out = Side(memory, [(r, own, size) for r, _, _ in others])
    return choose_transport(context, [r for r, _, _ in others], out, Side(memory, others))


def dealt(context: Context, ranks: Sequence[int], out: Buffer, into: Buffer, size: int) -> Transport:
    """Return what sends a piece to each other rank of a group, and receives one from each. Collective.

    In both memories pieces of ``size`` bytes lie one after the other, in the order of the ranks.
    """
    slices = [(r, k * size, size) for k, r in enumerate(ranks) if r != context.comm.rank]
    return choose_transport(context, [r for r, _, _ in slices], Side(out, slices), Side(into, slices))
