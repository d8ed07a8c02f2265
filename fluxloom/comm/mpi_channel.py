"""Messages of MPI between neighbours, again and again from and to the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.account import named, unexpected
from fluxloom.comm.base import Channel, Message, raw
from fluxloom.core.errors import CommError

__all__ = ["MpiChannel"]

_HEADS_APART = 2**14
"""Bytes from which on the head of a message travels by itself: one message of two pieces would be copied."""

_HEAD = 8
"""Bytes of digest and count, the head of a message."""

_APART = 2**15
"""What is added to the tag of such a head; the tags of channels are below."""


class MpiChannel(Channel):
    """Persistent requests: the receives first, then the sends; with each message travels the head of the account.

    Parameters
    ----------
    comm
        The `MpiComm`.
    largest
        Bytes above which a message is described in larger units.
    sends, receives, tag
        As `Comm.channel` has them.
    handle
        The communicator of mpi4py, if it is another one.
    """

    def __init__(
        self, comm: Any, largest: int, sends: Sequence[Message], receives: Sequence[Message], tag: int,
        handle: Any = None,
    ) -> None:  # fmt: skip
        self._mpi, self._rank, self._tag = comm.module, comm.rank, tag
        self._types: list[Any] = []
        self._requests: list[Any] = []
        self._started = False
        self._comm, self._largest, self._messages = comm, largest, (tuple(sends), tuple(receives))
        self._make(comm.handle if handle is None else handle)

    def _make(self, handle: Any) -> None:
        """Make requests, none of them under way."""
        for request in self._requests if self._started else ():
            if request.Test():
                continue
            request.Cancel()
            request.Wait()
        self._requests, heads = [], []
        self._expected: list[tuple[int, int, int]] = []
        self._started, self._epoch = False, self._comm.epoch
        sends, receives = self._messages
        self._head, found = memoryview(bytearray(_HEAD)), memoryview(bytearray(_HEAD * len(receives)))
        self._word, self._words = self._head.cast("Q"), found.cast("Q")
        self._same = 0
        """What the heads of all messages have to be."""
        for k, (rank, memory) in enumerate(receives):
            head = found[k * _HEAD : (k + 1) * _HEAD]
            buffer, nbytes, apart = self._buffer(memory, head, receives=True)
            self._requests.append(handle.Recv_init(buffer, rank, self._tag))
            self._expected.append((rank, nbytes, 0 if apart else _HEAD))
            if apart:
                heads.append(handle.Recv_init([head, self._mpi.BYTE], rank, self._tag + _APART))
        for rank, memory in sends:
            buffer, _, apart = self._buffer(memory, self._head, receives=False)
            self._requests.append(handle.Send_init(buffer, rank, self._tag))
            if apart:
                heads.append(handle.Send_init([self._head, self._mpi.BYTE], rank, self._tag + _APART))
        self._requests += heads
        self._nbytes = sum(nbytes for _, nbytes, _ in self._expected)
        self._status = [self._mpi.Status() for _ in self._requests]

    def _buffer(self, memory: Any, head: memoryview, receives: bool) -> tuple[list[Any], int, bool]:
        """Return what mpi4py takes for a message, its bytes, and whether its head travels apart."""
        if hasattr(memory, "__cuda_array_interface__"):
            interface = memory.__cuda_array_interface__
            if interface.get("strides") is not None:
                raise CommError("a message lies in contiguous numbers, not in an array with gaps")
            nbytes, near = int(memory.nbytes), False
        else:
            memory = raw(memory, receives)
            nbytes = memory.size
            near = nbytes < min(_HEADS_APART, self._largest)
        if near:
            return [self._mpi.BOTTOM, 1, self._joined(head, memory)], nbytes, False
        if nbytes <= self._largest:
            return [memory, nbytes, self._mpi.BYTE], nbytes, True
        unit = self._mpi.BYTE.Create_contiguous(self._largest)
        blocks, rest = divmod(nbytes, self._largest)
        places = [0, blocks * self._largest]
        whole = self._mpi.Datatype.Create_struct([blocks, rest], places, [unit, self._mpi.BYTE]).Commit()
        unit.Free()
        self._types.append(whole)
        return [memory, 1, whole], nbytes, True

    def _joined(self, head: memoryview, memory: npt.NDArray[np.uint8]) -> Any:
        """Return the type of a message of two pieces of memory."""
        places = [self._mpi.Get_address(head), self._mpi.Get_address(memory) if memory.size else 0]
        sizes, kinds = [_HEAD, memory.size], [self._mpi.BYTE] * 2
        joined = self._mpi.Datatype.Create_struct(sizes, places, kinds).Commit()
        self._types.append(joined)
        return joined

    def start(self) -> None:
        """Begin to receive and to send, with what this rank has done so far."""
        if self._epoch != self._comm.epoch:  # what was under way when the ranks left it is forgotten
            self._make(self._comm.handle)
        if self._started:
            raise CommError(f"the channel with tag {self._tag} is started again before it has finished")
        self._started = True
        self._same = self._word[0] = self._comm.account.word
        self._mpi.Prequest.Startall(self._requests)

    def finish(self) -> None:
        """Wait for all messages, and compare what their senders had done."""
        if not self._started or self._epoch != self._comm.epoch:
            raise CommError(f"the channel with tag {self._tag} is finished but was not started")
        try:
            self._comm.wait(self._done, self._waits, nbytes=self._nbytes)
        except self._mpi.Exception as error:
            self._comm.differ(f"messages with tag {self._tag} did not reach rank {self._rank}: {error}")
        self._started = False
        for (rank, nbytes, head), status in zip(self._expected, self._status, strict=False):
            found = status.Get_elements(self._mpi.BYTE)
            if found != nbytes + head:
                self._comm.differ(f"rank {rank} sent {found - head} bytes with tag {self._tag}, rank {self._rank} "
                                  f"expected {nbytes}")  # fmt: skip
        same = self._same
        for word in self._words:
            if word != same:
                self._differ()

    def _differ(self) -> None:
        others = [expected[0] for expected, word in zip(self._expected, self._words, strict=True) if word != self._same]
        self._comm.differ(unexpected(others, self._rank, self._tag, self._comm.account.last))

    def _done(self) -> bool:
        return self._mpi.Request.Testall(self._requests, self._status)

    def _waits(self) -> str:
        """Return for whom this rank waits."""
        pairs = zip(self._expected, self._requests, strict=False)
        late = [expected[0] for expected, request in pairs if not request.Get_status()]
        if not late:
            return f"waiting until its messages with tag {self._tag} are taken"
        return f"waiting for a message of {named(late)} with tag {self._tag}"

    def close(self) -> None:
        """Give back the requests."""
        for request in self._requests:
            request.Free()
        for kind in self._types:
            kind.Free()
        self._requests, self._types = [], []
