"""How the condensed equations of divided lines come together, and their solutions come back.

Both ways keep the equations in the order ``(block, rank, equation)``, and in each the right-hand sides ``(systems of
the block, rhs)``, then the coefficients ``(3, systems)`` where every system has its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.transports import Transport
from fluxloom.linalg.direct.transforms.mover import Mover, Place
from fluxloom.linalg.direct.transforms.ranks import dealt, gathered
from fluxloom.linalg.direct.tridiagonal.form import Lines

__all__ = ["Division", "EveryoneSolves", "Gathering", "Near", "SharesSolved", "Where"]

_EVEN = 4
"""Systems of a block are a multiple of this many: messages then are made of whole words of 16 bytes."""

Near = tuple[DeviceArray, int, int, int]
"""Where the values beside a rank's rows are: memory, the first left and right one, the step from block to block."""


@dataclass(frozen=True)
class Where:
    """Where equations are written: memory, the first value, systems of a block, the step from block to block."""

    memory: DeviceArray
    first: int
    share: int
    block_step: int


@dataclass(frozen=True)
class Division:
    """Who has the rows of some lines.

    Attributes
    ----------
    ranks, place
        The ranks in the order of the rows, and where this one is among them.
    systems, rhs
        Number of lines, right-hand sides of each.
    kinds
        Values an equation that travel: right-hand sides, coefficients.
    dtype
        Of the values.
    """

    ranks: tuple[int, ...]
    place: int
    systems: int
    rhs: int
    kinds: int
    dtype: np.dtype[Any]

    def share(self, parts: int) -> int:
        """Return the systems of a block when there are so many blocks."""
        return -(-self.systems // (parts * _EVEN)) * _EVEN


class Gathering(ABC):
    """One way to bring the equations together. Collective to make.

    Attributes
    ----------
    blocks, share
        Blocks of the systems of this rank's lines, and systems of each; the last ones may have fewer, or none.
    lines
        The small systems that this rank solves.
    systems
        Where they are: right-hand sides first, then solutions.
    where
        Where `condense` writes.
    bytes_sent, count
        Of the messages of a solve.
    """

    blocks: int
    share: int
    lines: Lines
    systems: DeviceArray
    where: Where
    bytes_sent: int
    count: int

    def __init__(self, context: Context, division: Division) -> None:
        self.context, self.division = context, division
        self._transports: list[Transport] = []

    @abstractmethod
    def sending(self) -> list[tuple[int, int, list[Call | Enqueued]]]:
        """Return the first system and the number of systems to condense, and what sends them, part after part."""

    @abstractmethod
    def receiving(self) -> list[Call | Enqueued]:
        """Return what waits for the equations of others."""

    @abstractmethod
    def returning(self) -> tuple[list[Call | Enqueued], Near]:
        """Return what brings the solutions back, and where the values beside this rank's rows are then."""

    @abstractmethod
    def matrices(self, mine: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the coefficients ``(3, outer, rows, share)`` of the small systems that this rank solves; collective.

        Parameters
        ----------
        mine
            Those of this rank's equations, ``(blocks, 2, 3, share)``.
        """

    def kind(self, number: int) -> Place:
        """Return where one of the coefficients is among the small systems: an array ``(outer, rows, share)``."""
        lines = self.lines
        return Place(self.systems.buffer, number * self.share, (lines.outer_step, lines.row_step, 1))

    @property
    def carriers(self) -> str:
        """What carries the messages."""
        return ", ".join(dict.fromkeys(transport.name for transport in self._transports))

    def close(self) -> None:
        """Give back what carries the messages."""
        for transport in self._transports:
            transport.close()

    def _zeros(self, *shape: int) -> DeviceArray:
        """Return new memory ``(..., kinds, share)``; with coefficients, empty systems are those of ones."""
        found = DeviceArray.zeros(self.context.device, shape, self.division.dtype)
        if self.division.kinds > self.division.rhs and shape[-2] == self.division.kinds:
            start = np.zeros(shape, self.division.dtype)
            start[..., self.division.rhs + 1, :] = 1
            found.assign(start)
            found.buffer.device()
        return found

    def _exchanged(self, parts: list[npt.NDArray[Any]], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Send an array to each rank of the group, return theirs stacked; collective among all ranks."""
        ranks, empty = self.division.ranks, np.zeros(0, self.division.dtype)
        given = [empty] * self.context.comm.size
        for rank, part in zip(ranks, parts, strict=True):
            given[rank] = np.ascontiguousarray(part).reshape(-1)
        found = self.context.comm.exchange(given)
        return np.stack([found[r].reshape(shape) for r in ranks])


class EveryoneSolves(Gathering):
    """Every rank is sent the equations of all others, and solves all small systems.

    Condensing writes to this rank's place among the equations of all, which is sent from there.

    Parameters
    ----------
    context, division
        See `Gathering`.
    pieces
        Blocks; the messages of one travel while the next one is condensed.
    name
        For profilers.
    """

    def __init__(self, context: Context, division: Division, pieces: int, name: str) -> None:
        super().__init__(context, division)
        ranks, place = len(division.ranks), division.place
        self.blocks, self.share = pieces, division.share(pieces)
        self.systems = self._zeros(self.blocks, ranks, 2, division.kinds, self.share)
        row, rhs = division.kinds * self.share, division.rhs
        piece, size = 2 * row, division.dtype.itemsize
        self.where = Where(self.systems, place * piece, self.share, ranks * piece)
        self.lines = Lines(2 * ranks, self.share, self.blocks, rhs, row, rhs, ranks * piece, 1)
        self._transports = [
            gathered(context, division.ranks, self.systems.buffer, block * ranks * piece * size, piece * size)
            for block in range(self.blocks)
        ]
        self._items = [t.items(f"{name} equations") for t in self._transports]
        self.count = self.blocks * (ranks - 1)
        self.bytes_sent = self.count * piece * size

    def sending(self) -> list[tuple[int, int, list[Call | Enqueued]]]:
        """Return the blocks, each with what sends it."""
        total = self.division.systems
        bounds = [(b * self.share, min(total, (b + 1) * self.share)) for b in range(self.blocks)]
        return [(begin, end - begin, [item[0]]) for (begin, end), item in zip(bounds, self._items, strict=True)]

    def receiving(self) -> list[Call | Enqueued]:
        """Return what waits for all blocks."""
        return [item[1] for item in self._items]

    def returning(self) -> tuple[list[Call | Enqueued], Near]:
        """Return nothing, and where the rows before and after this rank's two are among the solutions."""
        rows, place = self.lines.rows, self.division.place
        left, right = (2 * place - 1) % rows, (2 * place + 2) % rows
        return [], (self.systems, left * self.lines.row_step, right * self.lines.row_step, self.where.block_step)

    def matrices(self, mine: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the coefficients of all small systems."""
        ranks = len(self.division.ranks)
        found = self._exchanged([mine] * ranks, mine.shape)  # (rank, block, equation, coefficient, system)
        return found.transpose(3, 1, 0, 2, 4).reshape(3, self.blocks, 2 * ranks, self.share)


class SharesSolved(Gathering):
    """Each rank is sent the equations of its share of the systems, and sends solutions back.

    Parameters
    ----------
    context, division
        See `Gathering`.
    name
        For profilers.
    """

    def __init__(self, context: Context, division: Division, name: str) -> None:
        super().__init__(context, division)
        ranks, rhs, kinds = len(division.ranks), division.rhs, division.kinds
        self.blocks, self.share = ranks, division.share(ranks)
        outbox, self.systems = (self._zeros(ranks, 2, kinds, self.share) for _ in range(2))
        self._outgoing, self._incoming = (self._zeros(ranks, 2, rhs, self.share) for _ in range(2))
        self.where = Where(outbox, 0, self.share, 2 * kinds * self.share)
        self.lines = Lines(2 * ranks, self.share, 1, rhs, kinds * self.share, rhs, 0, 1)
        self._name = name
        self._transports = [
            dealt(context, division.ranks, out.buffer, into.buffer, out.strides[0] * division.dtype.itemsize)
            for out, into in ((outbox, self.systems), (self._outgoing, self._incoming))
        ]
        self._there, self._back = self._transports
        self._mover = Mover(context.device, division.dtype, context.threads)
        words = (ranks - 1) * 2 * (kinds + rhs) * self.share
        self.bytes_sent, self.count = words * division.dtype.itemsize, 2 * (ranks - 1)

    def _own(self, out: DeviceArray, into: DeviceArray) -> Call:
        """Return the call that copies this rank's own share."""
        source, target = (Place.of(array, (self.division.place,)) for array in (out, into))
        return self._mover.call((1, *out.shape[1:]), source, target, f"{self._name} copy")

    def sending(self) -> list[tuple[int, int, list[Call | Enqueued]]]:
        """Return all systems, and what sends them."""
        send, _ = self._there.items(f"{self._name} equations")
        return [(0, self.division.systems, [send, self._own(self.where.memory, self.systems)])]

    def receiving(self) -> list[Call | Enqueued]:
        """Return what waits for the equations of this rank's share."""
        return [self._there.items(f"{self._name} equations")[1]]

    def returning(self) -> tuple[list[Call | Enqueued], Near]:
        """Return what packs for each rank the solutions beside its rows, sends them, and waits for those of others."""
        ranks, rhs, share = len(self.division.ranks), self.division.rhs, self.share
        packs = []
        for target, source, count, side in (
            (1, 1, ranks - 1, 0), (0, 2 * ranks - 1, 1, 0), (0, 2, ranks - 1, 1), (ranks - 1, 0, 1, 1),
        ):  # fmt: skip
            if count:
                steps = (2 * self.lines.row_step, share, 1)
                there = Place(self.systems.buffer, source * self.lines.row_step, steps)
                here = Place(self._outgoing.buffer, (2 * target + side) * rhs * share, (2 * rhs * share, share, 1))
                packs.append(self._mover.call((count, rhs, share), there, here, f"{self._name} pack"))
        send, receive = self._back.items(f"{self._name} solutions")
        items = [*packs, send, self._own(self._outgoing, self._incoming), receive]
        return items, (self._incoming, 0, rhs * share, 2 * rhs * share)

    def matrices(self, mine: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the coefficients of this rank's share."""
        ranks = len(self.division.ranks)
        found = self._exchanged(list(mine), mine.shape[1:])  # (rank, equation, coefficient, system)
        return found.transpose(2, 0, 1, 3).reshape(3, 1, 2 * ranks, self.share)
