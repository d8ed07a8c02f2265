"""What the ranks of a run say to each other, and the communicator of a rank alone."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CommError

__all__ = ["Channel", "Comm", "Message", "SelfComm", "check_messages", "check_parts", "check_root", "combine",
           "folded", "raw"]  # fmt: skip

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

    @property
    def held(self) -> list[Any]:
        """What lives as long as the communicator."""
        found: list[Any] | None = getattr(self, "_held", None)
        if found is None:
            found = self._held = []
        return found

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

    def note(self, act: bytes) -> None:  # noqa: B027 - a rank alone agrees with itself
        """Remember what all ranks do here, each by itself. The next message tells whether they all did.

        Parameters
        ----------
        act
            What it is, in words that are the same on all ranks.
        """

    def devices_talk(self) -> Callable[[Callable[[], bool]], None] | None:
        """Hear that the devices of ranks send each other messages, which the communicator does not see. Collective.

        Returns
        -------
        Callable or None
            What a rank has to wait with until a function says that its device is done with something; None: as it
            likes.
        """
        return None

    def agree(self, act: bytes) -> None:
        """Raise `CommError` on every rank unless all do the same here, and did so far."""
        self.note(act)
        self.barrier()

    def rest(self) -> None:
        """Wait for every rank without keeping a core busy: it takes some milliseconds longer."""
        self.barrier()

    @abstractmethod
    def abort(self, message: str, status: int = 1) -> NoReturn:
        """End all ranks because this one cannot go on; ``message`` says why, ``status`` is their exit status."""
        raise NotImplementedError

    def split(self, colour: int, key: int = 0) -> Comm | None:
        """Return the communicator of the ranks that give the same colour. Collective.

        Parameters
        ----------
        colour
            Which group this rank belongs to; negative: to none, and None is returned.
        key
            Ranks of a group are numbered by this, equals in the order that they have here.

        Raises
        ------
        CommError
            If this kind of communicator cannot be divided.
        """
        raise CommError(f"the ranks of a {type(self).__name__} cannot be divided into groups (colour {colour}, {key})")

    def rally(self, word: Any, patience: float) -> list[Any] | None:
        """Leave what this rank does, wake the ranks that wait for something, and meet them all.

        For a rank that has failed in the middle of what needs all of them. One that waits for what will not come now
        gets `OtherRankFailed`, and has to call this too. Messages that are under way are forgotten; afterwards the
        communicator is as new, its channels too, but no wait of it lasts longer than ``patience``, except in `rest`.

        Parameters
        ----------
        word
            What this rank has to say (small, picklable).
        patience
            Seconds that a rank waits for the others.

        Returns
        -------
        list or None
            What every rank says; None: they did not all come. The communicator is of no more use then.
        """
        return [word] if self.size == 1 else None

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one rank on every rank.

        Raises
        ------
        CommError
            If there is no such rank.
        """
        check_root(root, self.size)
        return self.allgather(value if self.rank == root else None)[root]

    def reduce(self, values: npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
        """Combine small arrays of all ranks: ``"sum"`` (in the order of the ranks), ``"min"`` or ``"max"``.

        Every rank gets the same bits.
        """
        return combine(self.allgather(np.asarray(values)), operation)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank {self.rank} of {self.size})"


def folded(rows: Sequence[npt.NDArray[Any]] | npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
    """Return ``"sum"``, ``"min"`` or ``"max"`` of arrays that are alike, from the first to the last."""
    function = _REDUCTIONS.get(operation)
    if function is None:
        raise CommError(f"reduction {operation!r}: known are {', '.join(map(repr, _REDUCTIONS))}")
    total = np.array(rows[0], copy=True)
    for row in rows[1:]:
        function(total, row, out=total)
    return total


def combine(arrays: Sequence[npt.NDArray[Any]], operation: str) -> npt.NDArray[Any]:
    """Return ``"sum"``, ``"min"`` or ``"max"`` of arrays of one shape and type, from the first to the last."""
    first = arrays[0]
    for rank, other in enumerate(arrays):
        if other.shape != first.shape or other.dtype != first.dtype:
            raise CommError(
                f"reduction of unlike arrays: {first.dtype}{first.shape} on rank 0, "
                f"{other.dtype}{other.shape} on rank {rank}"
            )
    return folded(arrays, operation)


def check_root(root: int, size: int) -> None:
    """Raise `CommError` where there is no rank ``root``."""
    if not 0 <= root < size:
        raise CommError(f"broadcast from rank {root}: there are {size} ranks, from 0")


def raw(memory: Any, receives: bool = False) -> npt.NDArray[np.uint8]:
    """Return the bytes of a contiguous NumPy array, without a copy.

    Raises
    ------
    CommError
        If it is something else, has gaps, or ``receives`` and must not be written.
    """
    if not isinstance(memory, np.ndarray):
        raise CommError(f"a message in {type(memory).__name__}: this communicator takes NumPy arrays only")
    if not (memory.flags.c_contiguous or memory.flags.f_contiguous) or memory.dtype.hasobject:
        raise CommError(f"a message lies in contiguous numbers, not in {memory.dtype} of strides {memory.strides}")
    if receives and not memory.flags.writeable:
        raise CommError("a message cannot be received in a read-only array")
    return memory.reshape(-1, order="A").view(np.uint8)


def check_parts(parts: Sequence[npt.NDArray[Any]], size: int) -> list[npt.NDArray[Any]]:
    """Return what `Comm.exchange` was given, each array contiguous.

    Raises
    ------
    CommError
        If there is not one array a rank, or types or trailing shapes differ.
    """
    arrays = [np.asarray(part, order="C") for part in parts]
    if len(arrays) != size:
        raise CommError(
            f"exchange: {len(arrays)} arrays for {size} ranks; give one a rank, empty where there is nothing"
        )
    first = arrays[0]
    for rank, array in enumerate(arrays):
        if array.ndim == 0 or array.dtype != first.dtype or array.shape[1:] != first.shape[1:]:
            raise CommError(
                f"exchange: the array for rank {rank} is {array.dtype}{array.shape}, that for rank 0 "
                f"{first.dtype}{first.shape}; only lengths may differ"
            )
    if first.dtype.hasobject:
        raise CommError("exchange: arrays of Python objects cannot be sent; use allgather")
    return arrays


def check_messages(sends: Sequence[Message], receives: Sequence[Message], tag: int, size: int) -> None:
    """Check what a channel is made of.

    Raises
    ------
    CommError
        If the tag or a rank is out of range, or a rank stands twice on one side.
    """
    if not 0 <= tag < 2**15:
        raise CommError(f"tag {tag} of a channel: 0 ... {2**15 - 1} are allowed")
    for side, messages in (("to", sends), ("from", receives)):
        ranks = [message.rank for message in messages]
        if any(not 0 <= rank < size for rank in ranks):
            raise CommError(f"a channel has messages {side} ranks {ranks}, but there are {size} ranks, from 0")
        if len(set(ranks)) != len(ranks):
            raise CommError(f"a channel has several messages {side} one rank: {ranks}; use one channel for each")


class SelfComm(Comm):
    """A rank alone."""

    name = "self"
    rank, size = 0, 1

    def allgather(self, value: Any) -> list[Any]:
        """Return the value."""
        return [copy.copy(value)]

    def exchange(self, parts: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return a copy of what the rank sends to itself."""
        return [np.array(check_parts(parts, 1)[0], copy=True)]

    def channel(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> Channel:
        """Return a channel that copies what the rank sends to itself."""
        return _SelfChannel(sends, receives, tag)

    def barrier(self) -> None:
        """Nobody to wait for."""

    def split(self, colour: int, key: int = 0) -> Comm | None:
        """Return a communicator of this rank, or None for a negative colour."""
        return SelfComm() if colour >= 0 else None

    def abort(self, message: str, status: int = 1) -> NoReturn:
        """Raise `CommError`."""
        raise CommError(message)


class _SelfChannel(Channel):
    def __init__(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> None:
        check_messages(sends, receives, tag, 1)
        if len(sends) != len(receives):
            raise CommError("a rank alone receives what it sends, but only one of the two messages is there")
        self._pairs = [(raw(s.memory), raw(r.memory, receives=True)) for s, r in zip(sends, receives, strict=True)]
        self._data: list[Any] | None = None
        for sent, received in self._pairs:
            if sent.size != received.size:
                raise CommError(f"a message of {sent.size} bytes is received in {received.size} bytes")

    def start(self) -> None:
        self._data = [sent.copy() for sent, _ in self._pairs]

    def finish(self) -> None:
        if self._data is None:
            raise CommError("a channel is finished that was not started")
        for data, (_, target) in zip(self._data, self._pairs, strict=True):
            target[...] = data
        self._data = None
