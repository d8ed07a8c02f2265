"""How messages travel: through host memory, by an MPI that knows the device, or from GPU to GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.comm.base import Channel, Message
from fluxloom.device.base import Buffer, RemoteBuffer
from fluxloom.dsl.context import Context

__all__ = ["HostTransport", "Side", "Transport", "choose_transport"]


@dataclass(frozen=True, eq=False)
class Side:
    """The messages that leave or arrive: a buffer, and (neighbour, first byte, bytes) of each."""

    buffer: Buffer
    slices: Sequence[tuple[int, int, int]]


class Transport(ABC):
    """Carries one exchange, again and again."""

    name: str

    @abstractmethod
    def start(self) -> None:
        """Begin, after the device was asked to pack."""

    @abstractmethod
    def finish(self) -> None:
        """Return when the device may be asked to unpack."""


class HostTransport(Transport):
    """Through host memory: the messages lie there, or are copied there and back."""

    name = "host"

    def __init__(self, context: Context, out: Side, into: Side, tag: int) -> None:
        self._out, self._into = out.buffer, into.buffer
        self._remote = not context.device.shared
        sends = _messages(out)
        receives = _messages(into)
        self._channel: Channel = context.comm.channel(sends, receives, tag)

    def start(self) -> None:
        """Fetch what was packed, if it is elsewhere, and begin to send."""
        if isinstance(self._out, RemoteBuffer):
            self._out.written()
            self._out.host()
        self._channel.start()

    def finish(self) -> None:
        """Wait for what comes, and bring it to the device."""
        self._channel.finish()
        if self._remote:
            self._into.host(write=True)
            self._into.device()


def _messages(side: Side) -> list[Message]:
    memory = side.buffer.host()
    return [Message(rank, memory[begin : begin + count]) for rank, begin, count in side.slices if count]


def choose_transport(context: Context, neighbours: Sequence[int], out: Side, into: Side) -> Transport:
    """Return the transport of an exchange; every rank chooses alike."""
    return HostTransport(context, out, into, context.next_tag())
