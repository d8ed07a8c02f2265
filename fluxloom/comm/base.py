"""What the ranks of a run say to each other, and the communicator of a rank alone."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CommError

__all__ = ["Channel", "Comm", "Message", "SelfComm"]

_REDUCTIONS = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Message(NamedTuple):
    """One side of a message: the other rank, and memory that stays where it is while the channel exists.

    ``memory`` is a contiguous NumPy array, or, where `Comm.takes_device_memory` says so, an array in the memory
    of a GPU (anything with ``__cuda_array_interface__``).
    """

    rank: int
    memory: Any


class Channel(ABC):
    """Messages between neighbours that are exchanged again and again from and to the same memory.

    Every rank that takes part calls `start` and `finish` in the same order.
    """

    @abstractmethod
    def start(self) -> None:
        """Begin to send and to receive. What is sent must not change until `finish` has returned."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until everything has been received, and what was sent may change again."""

    def close(self) -> None:  # noqa: B027 - most channels hold nothing
        """Give back what the channel holds; it is not used any more."""


class Comm(ABC):
    """The ranks of a run, as one of them sees them.

    All methods except `abort` are collective: every rank calls them, in the same order.

    Attributes
    ----------
    name
        ``"self"``, ``"mpi"`` or ``"threads"``.
    rank, size
        This rank and the number of ranks.
    local_rank, local_size
        The same among the ranks of this machine.
    takes_device_memory
        Whether messages may lie in the memory of a GPU.
    """

    name: str
    rank: int
    size: int
    local_rank: int = 0
    local_size: int = 1
    takes_device_memory: bool = False

    @abstractmethod
    def allgather(self, value: Any) -> list[Any]:
        """Return the (small, picklable) value of every rank, on every rank."""

    @abstractmethod
    def exchange(self, parts: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here.

        The arrays may be empty and differ in length; type and trailing shape are those of this rank's
        ``parts[0]`` everywhere.
        """

    @abstractmethod
    def channel(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> Channel:
        """Return a channel; at most one message each way for a pair of ranks and a tag. Not collective.

        ``tag`` tells the channels of a pair of ranks apart: 0 ... 32767, the same on both sides.
        """

    @abstractmethod
    def barrier(self) -> None:
        """Wait for every rank."""

    @abstractmethod
    def abort(self, message: str) -> None:
        """End all ranks because this one cannot go on; ``message`` says why."""

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one rank on every rank."""
        return self.allgather(value if self.rank == root else None)[root]

    def reduce(self, values: npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
        """Combine small arrays of all ranks: ``"sum"`` (in the order of the ranks), ``"min"`` or ``"max"``.

        Every rank gets the same bits.
        """
        combine = _REDUCTIONS[operation]
        found = self.allgather(np.asarray(values))
        total = np.array(found[0], copy=True)
        for other in found[1:]:
            total = combine(total, other)
        return total

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank {self.rank} of {self.size})"


class SelfComm(Comm):
    """A rank alone."""

    name = "self"
    rank, size = 0, 1

    def allgather(self, value: Any) -> list[Any]:
        """Return the value."""
        return [copy.copy(value)]

    def exchange(self, parts: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return a copy of what the rank sends to itself."""
        return [np.array(parts[0], copy=True)]

    def channel(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> Channel:
        """Return a channel that copies what the rank sends to itself."""
        return _SelfChannel(sends, receives)

    def barrier(self) -> None:
        """Nobody to wait for."""

    def abort(self, message: str) -> None:
        """Raise `CommError`."""
        raise CommError(message)


class _SelfChannel(Channel):
    def __init__(self, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        if any(m.rank for m in (*sends, *receives)) or len(sends) != len(receives):
            raise CommError("a rank alone can only exchange messages with itself")
        self._pairs = [(s.memory, r.memory) for s, r in zip(sends, receives, strict=True)]
        self._data: list[Any] = []

    def start(self) -> None:
        self._data = [s.copy() for s, _ in self._pairs]

    def finish(self) -> None:
        for data, (_, target) in zip(self._data, self._pairs, strict=True):
            target[...] = data
