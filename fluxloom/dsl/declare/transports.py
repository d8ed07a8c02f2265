"""How messages travel: through host memory, by an MPI that knows the device, or from GPU to GPU.

Between GPUs they go by NCCL, or are written by kernels of our own into the memory of the other GPU. Which way is taken
is decided once, by all ranks alike: as the context was told, or by timing the messages of the exchange itself. A
message to or from any other device goes through the memory of the host.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fluxloom.comm.base import Channel, Message
from fluxloom.device.base import Buffer, Call, Enqueued, RemoteBuffer, Where
from fluxloom.dsl.declare.links import Links
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.perf.stopwatch import Stopwatch

__all__ = ["Apart", "Side", "Transport", "choose_transport"]

_ROUNDS = 12
"""Exchanges that are timed for each transport; the fastest counts."""


@dataclass(frozen=True, eq=False)
class Side:
    """The messages that leave or arrive: a buffer, and (neighbour, first byte, bytes) of each."""

    buffer: Buffer
    slices: Sequence[tuple[int, int, int]]

    def of(self, ranks: Sequence[int]) -> Side:
        """Return the messages of some neighbours."""
        return Side(self.buffer, [s for s in self.slices if s[0] in ranks])

    @property
    def any(self) -> bool:
        """Whether there are any bytes."""
        return any(count for _, _, count in self.slices)


@dataclass(frozen=True)
class Apart:
    """Items of a sequence that carry messages beside the main queue.

    Attributes
    ----------
    fork, join
        Let the other queue wait for the main one, and the main one for the other.
    send, receive
        What sends, behind what packs, and what waits for messages, before what unpacks; in the other queue.
    """

    fork: Enqueued
    send: Call | Enqueued
    receive: tuple[Call | Enqueued, ...]
    join: Enqueued


class Transport(ABC):
    """Carries the messages of one exchange, again and again."""

    name: str
    capturable = False
    waited = 0.0
    """Seconds that the host has waited for messages."""

    @abstractmethod
    def start(self) -> None:
        """Begin, after the device was asked to pack."""

    @abstractmethod
    def finish(self) -> None:
        """Return when the device may be asked to unpack."""

    def exchange(self) -> None:
        """Carry the messages once."""
        self.start()
        self.finish()

    def close(self) -> None:  # noqa: B027 - most transports hold nothing
        """Give back what it holds."""

    def apart(self, name: str) -> Apart | None:
        """Return items that carry the messages beside the main queue; None: there are none."""
        return None

    def items(self, name: str) -> tuple[Call | Enqueued, Call | Enqueued]:
        """Return start and finish as items of a sequence."""
        return Enqueued(f"{name} send", self.start), Enqueued(f"{name} receive", self.finish)


class HostTransport(Transport):
    """Through host memory: the messages lie there, or are copied there and back beside the kernels."""

    name = "host"

    def __init__(self, context: Runtime, out: Side, into: Side, tag: int) -> None:
        self._out, self._into = out, into
        self._courier = context.device.transfer_queue()
        self._channel: Channel = context.comm.channel(_messages(out), _messages(into), tag)

    def start(self) -> None:
        """Begin to send, or to fetch what will be sent."""
        if self._courier is not None:
            self._courier.down(*self._pieces(self._out))
            return
        if isinstance(self._out.buffer, RemoteBuffer):
            self._out.buffer.written()
            self._out.buffer.host()
        self._channel.start()

    def finish(self) -> None:
        """Wait for what comes, and bring it to the device."""
        begin = time.perf_counter()
        if self._courier is not None:
            self._courier.wait()
            self._channel.start()
            self._channel.finish()
            self._courier.up(*self._pieces(self._into))
            self._courier.join()
        else:
            self._channel.finish()
            if isinstance(self._into.buffer, RemoteBuffer):
                self._into.buffer.where = Where.HOST
                self._into.buffer.device()
        self.waited += time.perf_counter() - begin

    @staticmethod
    def _pieces(side: Side) -> list[tuple[RemoteBuffer, int, int]]:
        """Return the bytes of a message buffer that travel this way, neighbouring messages together."""
        assert isinstance(side.buffer, RemoteBuffer)
        out: list[tuple[RemoteBuffer, int, int]] = []
        for _, begin, count in side.slices:
            if out and out[-1][1] + out[-1][2] == begin:
                out[-1] = (side.buffer, out[-1][1], out[-1][2] + count)
            elif count:
                out.append((side.buffer, begin, count))
        return out

    def close(self) -> None:
        """Give back the channel."""
        if self._courier is not None:
            self._courier.close()
        self._channel.close()


class MpiTransport(Transport):
    """An MPI that reads and writes the memory of the device."""

    name = "mpi"

    def __init__(self, context: Runtime, out: Side, into: Side, tag: int) -> None:
        from fluxloom.device.cuda.transfer_queue import array_of, mark_main, settle_main

        self._device: Any = context.device
        self._mark_main, self._settle_main, self._mark = mark_main, settle_main, None
        sent, received = (array_of(self._device, side.buffer) for side in (out, into))  # type: ignore[arg-type]
        self._channel = context.comm.channel(
            [Message(r, sent[b : b + n]) for r, b, n in out.slices if n],
            [Message(r, received[b : b + n]) for r, b, n in into.slices if n],
            tag,
        )

    def start(self) -> None:
        """Remember where the messages will have been packed; kernels may be asked for behind it."""
        self._mark = self._mark_main(self._device)

    def finish(self) -> None:
        """Send and receive as soon as the messages are packed."""
        begin = time.perf_counter()
        self._settle_main(self._device, self._mark)
        self._channel.start()
        self._channel.finish()
        self.waited += time.perf_counter() - begin

    def close(self) -> None:
        """Give back the channel."""
        self._channel.close()


class NcclTransport(Transport):
    """From GPU to GPU, enqueued like kernels; a graph can hold it."""

    name = "nccl"
    capturable = True

    def __init__(self, links: Links, link: Any, out: Side, into: Side) -> None:
        self._link = link
        self._sends = [(links.number(r), out.buffer.address + b, n) for r, b, n in out.slices]
        self._receives = [(links.number(r), into.buffer.address + b, n) for r, b, n in into.slices]

    def start(self) -> None:
        """Begin to send and receive, after everything that the device was asked for."""
        self._link.start(self._sends, self._receives)

    def finish(self) -> None:
        """Let the device wait for the messages."""
        self._link.finish()

    def items(self, name: str) -> tuple[Enqueued, Enqueued]:
        """Return start and finish as items that a graph can hold."""
        return self._link.items(name, self._sends, self._receives)

    def apart(self, name: str) -> Apart:
        """Return fork, messages and join."""
        fork, post, join = self._link.apart(name, self._sends, self._receives)
        return Apart(fork, post, (), join)


class PeerTransport(Transport):
    """Written into the memory of the other GPU; two kernels like any others."""

    name = "peer"
    capturable = True

    def __init__(self, context: Runtime, links: Links, out: Side, into: Side) -> None:
        self._device: Any = context.device
        self._channel = links.peer.channel(
            [(links.number(r), out.buffer.address + b, n) for r, b, n in out.slices],
            [(links.number(r), into.buffer.address + b, n) for r, b, n in into.slices],
        )
        self._send, self._receive = (
            self._device.sequencer([call]) for call in (self._channel.send, self._channel.receive)
        )

    def start(self) -> None:
        """Write the messages, after everything that the device was asked for."""
        self._send()

    def finish(self) -> None:
        """Let the device wait for what comes."""
        self._receive()

    def items(self, name: str) -> tuple[Call, Call]:
        """Return the kernels."""
        return (replace(self._channel.send, name=f"{name} send"),
                replace(self._channel.receive, name=f"{name} receive"))  # fmt: skip

    def apart(self, name: str) -> Apart:
        """Return fork, the kernels and join."""
        send, receive = (replace(call, aside=True) for call in self.items(name))
        side = self._device.side
        fork, join = Enqueued(f"{name} fork", side.fork_now, True), Enqueued(f"{name} join", side.join_now, True)
        return Apart(fork, send, (receive,), join)

    def close(self) -> None:
        """Give back the memory of the messages."""
        self._channel.close()


class MixedTransport(Transport):
    """Some neighbours one way, the others another way."""

    def __init__(self, parts: Sequence[Transport]) -> None:
        self._parts = list(parts)
        self.name = "+".join(p.name for p in parts)

    def start(self) -> None:
        """Begin all."""
        for part in self._parts:
            part.start()

    def finish(self) -> None:
        """Finish all, those that the host waits for last."""
        for part in sorted(self._parts, key=lambda p: not p.capturable):
            part.finish()

    @property
    def waited(self) -> float:
        """Seconds that the host has waited for messages."""
        return sum(p.waited for p in self._parts)

    def close(self) -> None:
        """Give back all."""
        for part in self._parts:
            part.close()


def choose_transport(context: Runtime, neighbours: Sequence[int], out: Side, into: Side) -> Transport:
    """Return the transport of an exchange; every rank chooses alike. Collective."""
    links = context.links
    if len(links.candidates) == 1:
        return _build(context, links, links.candidates[0], out, into)
    found = [_build(context, links, name, out, into) for name in links.candidates]
    watch = Stopwatch(_ROUNDS, wait=context.synchronize, warm=0, most_calls=1, ranks=context.comm, counts=min)
    seconds = watch.race([transport.exchange for transport in found])
    best = seconds.index(min(seconds))
    context.transport_seconds.append(dict(zip(links.candidates, seconds, strict=True)))
    for number, transport in enumerate(found):
        if number != best:
            transport.close()
    return found[best]


def _build(context: Runtime, links: Links, between_gpus: str, out: Side, into: Side) -> Transport:
    """Return the transport of this rank, when messages between GPUs go a certain way."""
    tag, rank = context.next_tag(), context.comm.rank
    link = links.nccl() if between_gpus == "nccl" else None
    direct = links.gpus if between_gpus != "host" and rank in links.gpus else []
    others = [r for r in range(context.comm.size) if r not in direct]
    parts: list[Transport] = []
    if direct:
        near, far = out.of(direct), into.of(direct)
        if between_gpus == "peer":
            parts.append(PeerTransport(context, links, near, far))
        else:
            parts.append(NcclTransport(links, link, near, far) if link else MpiTransport(context, near, far, tag))
    elif between_gpus == "peer":
        links.pass_peers()
    if not direct or out.of(others).any or into.of(others).any:
        parts.append(HostTransport(context, out.of(others), into.of(others), tag))  # no pair of ranks has both
    return parts[0] if len(parts) == 1 else MixedTransport(parts)


def _messages(side: Side) -> list[Message]:
    memory = side.buffer.host()
    return [Message(rank, memory[begin : begin + count]) for rank, begin, count in side.slices if count]
