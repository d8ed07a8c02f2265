"""Messages and sums between GPUs of one machine that write straight into each other's memory (NVLink, PCIe).

A message is written to the receiver by a kernel of the sender, which raises a flag behind it; a kernel of the receiver
waits for the flag. Nothing passes through a library or the host, so both are small kernels like any others: they run
beside large ones, and in CUDA graphs. See ``design/012-peers.md``.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.core.errors import CommError
from fluxloom.device.base import Call, Launch
from fluxloom.device.cuda.program import CudaProgram

if TYPE_CHECKING:
    from fluxloom.device.cuda.device import CudaDevice
    from fluxloom.device.cuda.nccl import Parcel

__all__ = ["PeerChannel", "PeerLink", "Ticket", "is_near", "why_no_peers"]

Gather = Callable[[Any], list[Any]]
"""Returns what every rank of the link gives; collective among them."""

_OPERATIONS = {"sum": 0, "min": 1, "max": 2}
_KINDS = {"float64": 0, "float32": 1, "int64": 2, "int32": 3}
_OLDEST = 70
"""Compute capability (7.0) from which a GPU can order what it writes to another one by a flag."""

_WORD, _LINE, _CHUNK = 8, 128, 8 << 20
_BLOCK, _WORDS_A_ITEM, _MOST_BLOCKS = 256, 4, 64
MOST_VALUES = 512
"""Numbers that one sum of all ranks can hold."""

_PATIENCE = 1800.0
"""Seconds after which a rank gives up waiting for another one."""


def why_no_peers(device: CudaDevice) -> str:
    """Return why a GPU cannot take part in a link, or an empty string."""
    cuda = device.cupy.cuda
    if getattr(cuda.runtime, "is_hip", False):
        return "not written for AMD GPUs"
    if int(cuda.Device(device.number).compute_capability) < _OLDEST:
        return f"compute capability below {_OLDEST / 10:.1f}"
    return ""


def is_near(identities: Sequence[str]) -> bool:
    """Whether GPUs are different ones of the same machine, given `CudaDevice.identity` of each."""
    return len(set(identities)) == len(identities) > 1 and len({text.split()[0] for text in identities}) == 1


@dataclass(frozen=True)
class Ticket:
    """How other ranks find memory of this GPU: its process, the GPU there, the address there, and CUDA's handle."""

    process: tuple[str, int]
    gpu: int
    address: int
    handle: bytes


@dataclass
class _Chunk:
    """Memory that the other ranks may open, and how much of it is given away."""

    ticket: Ticket
    size: int
    used: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, nbytes: int) -> int:
        """Return where a piece begins, -1 if there is no room."""
        for place, (begin, size) in enumerate(self.free):
            if size == nbytes:
                del self.free[place]
                return begin
        if self.used + nbytes > self.size:
            return -1
        self.used += nbytes
        return self.used - nbytes


class PeerChannel:
    """Messages of one exchange, made by `PeerLink.channel`.

    Attributes
    ----------
    send
        Writes the messages to the other ranks.
    receive
        Waits for theirs and copies them to where they are wanted; after `send`, in the same queue.
    """

    def __init__(self, send: Call, receive: Call, give_back: Callable[[], None]) -> None:
        self.send, self.receive = send, receive
        self._give_back = give_back

    def close(self) -> None:
        """Let later channels have the memory. All ranks do, when all messages have been received."""
        self._give_back()


class PeerLink:
    """Ranks with a GPU each, on one machine, that can write into each other's memory. Collective, as `channel` is.

    Parameters
    ----------
    device
        The GPU of this rank; no other rank uses the same one.
    rank, size
        This rank, and how many there are, counted among those of the link.
    gather
        Returns what every rank of the link gives.

    Raises
    ------
    CommError
        On every rank, when one of them cannot open the memory of another one.
    """

    TURNS = 2
    """How often the constructor and `channel` gather."""

    def __init__(self, device: CudaDevice, rank: int, size: int, gather: Gather) -> None:
        self.rank, self.size = rank, size
        self._device, self._gather = device, gather
        self._chunks: list[_Chunk] = []
        self._opened: dict[tuple[tuple[str, int], int], int] = {}
        self._program: CudaProgram = device.compile(
            resources.files("fluxloom.device.cuda").joinpath("peer.cu").read_text(),
            ("fl_peer_send", "fl_peer_receive", "fl_peer_total"), "peer",
        )  # fmt: skip
        self._alarm = device.pinned(_WORD).view(np.int64)
        self._closed = False
        self._half = _round(_WORD * MOST_VALUES * size)
        flags = _round(_WORD * size)
        self._flags = self._take(_LINE + flags + 2 * self._half)
        offset = self._flags[1] + _LINE
        found = self._gather((self._flags[0].ticket, offset))
        bases = self._open([ticket for ticket, _ in found])
        self._boxes = [
            (base + there + flags, base + there + _WORD * rank) for base, (_, there) in zip(bases, found, strict=True)
        ]
        self._flag_bytes = flags

    # -------------------------------------------------------------------------------------- messages
    def channel(self, sends: Sequence[Parcel], receives: Sequence[Parcel]) -> PeerChannel:
        """Return a channel for messages that are sent again and again; collective.

        Parameters
        ----------
        sends, receives
            The other rank, the address on this GPU and the bytes (a multiple of 8) of each message; at most one to
            and one from a rank.

        Raises
        ------
        CommError
            When a rank awaits another number of bytes than it is sent.
        """
        out = {peer: (address, nbytes) for peer, address, nbytes in sends if nbytes}
        into = {peer: (address, nbytes) for peer, address, nbytes in receives if nbytes}
        partners = sorted({*out, *into})
        flags = _round(_LINE * (1 + len(partners)))  # the first line is the state
        places = np.cumsum([0, *(_round(into.get(p, (0, 0))[1]) for p in partners)])
        half = int(places[-1])
        chunk, offset = self._take(flags + 2 * half)
        mine = {p: (_LINE * (1 + k), flags + int(places[k]), into.get(p, (0, 0))[1]) for k, p in enumerate(partners)}
        found = self._gather((chunk.ticket, offset, half, mine))
        self._check_sizes(out, found)
        bases = dict(zip(partners, self._open([found[p][0] for p in partners]), strict=True))
        here = chunk.ticket.address + offset
        outgoing, incoming = [], []
        for peer in partners:
            _, there, other_half, rows = found[peer]
            flag, place, nbytes = rows[self.rank]
            base = bases[peer] + there
            outgoing.append((out.get(peer, (0, 0))[0], base + place, other_half, nbytes // _WORD, base + flag))
            flag, place, nbytes = mine[peer]
            incoming.append((into.get(peer, (0, 0))[0], here + place, half, nbytes // _WORD, here + flag))
        return PeerChannel(
            self._call("fl_peer_send", here, outgoing, ()),
            self._call("fl_peer_receive", here, incoming, (self._alarm.ctypes.data, int(_PATIENCE * 1e9))),
            lambda: chunk.free.append((offset, flags + 2 * half)),
        )

    def _check_sizes(self, out: dict[int, tuple[int, int]], found: Sequence[Any]) -> None:
        for peer, (_, nbytes) in out.items():
            awaited = found[peer][3].get(self.rank, (0, 0, 0))[2]
            if awaited != nbytes or nbytes % _WORD:
                raise CommError(f"rank {self.rank} sends {nbytes} bytes to rank {peer}, which awaits {awaited}")

    def _call(self, symbol: str, state: int, rows: Sequence[tuple[int, ...]], tail: tuple[int, ...]) -> Call:
        table = np.array(rows, dtype=np.int64).reshape(-1)
        address, keep = self._device.resident(table if table.size else np.zeros(1, dtype=np.int64))
        words = np.array([state, address, len(rows), *tail], dtype=np.int64)
        most = max((row[3] for row in rows), default=0)
        blocks = min(_MOST_BLOCKS, max(1, -(-most // (_BLOCK * _WORDS_A_ITEM))))
        launches = (Launch(symbol, blocks * _BLOCK, _BLOCK),) if rows else ()
        return Call(symbol.removeprefix("fl_"), self._program, words, launches, [keep, words, self])

    # ------------------------------------------------------------------------------------------ sums
    def total(self, values: Sequence[tuple[int, int, str, str]]) -> Call | None:
        """Return the call that combines numbers of all ranks in place, in the order of the ranks.

        Every rank runs its calls in the same order, on the main queue. All ranks get the same bits.

        Parameters
        ----------
        values
            Address, count, type and operation (``"sum"``, ``"min"``, ``"max"``) of some numbers.

        Returns
        -------
        Call
            None when there are more than `MOST_VALUES`, or some of another type.
        """
        if any(kind not in _KINDS for _, _, kind, _ in values) or sum(n for _, n, _, _ in values) > MOST_VALUES:
            return None
        rows = [
            (address + k * np.dtype(kind).itemsize, _KINDS[kind], _OPERATIONS[operation])
            for address, count, kind, operation in values
            for k in range(count)
        ]
        chunk, offset = self._flags
        state = chunk.ticket.address + offset
        flags = state + _LINE
        boxes = [(place + _WORD * len(rows) * self.rank, flag) for place, flag in self._boxes]
        tables = [np.array(table, dtype=np.int64).reshape(-1) for table in (rows, boxes)]
        (first, kept), (second, held) = (self._device.resident(table) for table in tables)
        words = np.array(
            [state, first, len(rows), second, self.size, flags, flags + self._flag_bytes, self._half,
             self._alarm.ctypes.data, int(_PATIENCE * 1e9)], dtype=np.int64,
        )  # fmt: skip
        return Call("total of the ranks", self._program, words, (Launch("fl_peer_total", _BLOCK, _BLOCK),),
                    [kept, held, words, self])  # fmt: skip

    # ---------------------------------------------------------------------------------------- memory
    def _take(self, nbytes: int) -> tuple[_Chunk, int]:
        """Return zeroed memory that the other ranks may open: its chunk, and where it begins there."""
        nbytes = _round(nbytes)
        for chunk in self._chunks:
            offset = chunk.take(nbytes)
            if offset >= 0:
                break
        else:
            chunk = self._grown(nbytes)
            offset = chunk.take(nbytes)
        with self._device.active():
            runtime = self._device.cupy.cuda.runtime
            runtime.memsetAsync(chunk.ticket.address + offset, 0, nbytes, self._device.stream.ptr)
            self._device.stream.synchronize()  # before another rank hears of it
        return chunk, offset

    def _grown(self, nbytes: int) -> _Chunk:
        """Return a new chunk. It is given back at the end of the process: other ranks may still have it open."""
        size = -(-max(nbytes, _CHUNK) // _CHUNK) * _CHUNK
        device, runtime = self._device, self._device.cupy.cuda.runtime
        with device.active():
            address = int(runtime.malloc(size))  # not of a pool: a handle stands for a whole allocation
            handle = bytes(runtime.ipcGetMemHandle(address))
        chunk = _Chunk(Ticket((platform.node(), os.getpid()), device.number, address, handle), size)
        self._chunks.append(chunk)
        return chunk

    def _open(self, tickets: Sequence[Ticket]) -> list[int]:
        """Return where the memory of some ranks is for this GPU; raises the same everywhere if one cannot. Collective.

        Also a rank without tickets takes part.
        """
        problem, bases = "", []
        try:
            bases = [self._base(ticket) for ticket in tickets]
        except self._device.failures as error:
            problem = f"{self._device.title} of rank {self.rank} cannot open the memory of another GPU: {error}"
        problems = [text for text in self._gather(problem) if text]
        if problems:
            raise CommError(problems[0])
        return bases

    def _base(self, ticket: Ticket) -> int:
        key = (ticket.process, ticket.address)
        if key not in self._opened:
            self._opened[key] = self._address(ticket)
        return self._opened[key]

    def _address(self, ticket: Ticket) -> int:
        """Return the address of another rank's memory here; errors of CUDA pass."""
        device, runtime = self._device, self._device.cupy.cuda.runtime
        before = device.enter()
        try:
            if ticket.process != (platform.node(), os.getpid()):
                return int(runtime.ipcOpenMemHandle(ticket.handle))
            if ticket.gpu != device.number:
                try:
                    runtime.deviceEnablePeerAccess(ticket.gpu)
                except device.failures as error:
                    if "AlreadyEnabled" not in str(error):
                        raise
            return ticket.address
        finally:
            device.leave(before)

    # ----------------------------------------------------------------------------------- state, errors
    def check(self) -> None:
        """Raise `CommError` if a kernel has given up waiting for another rank, or the link is closed."""
        if self._closed:
            raise CommError(f"the link of {self._device.title} to other GPUs is closed: its ranks have ended")
        if self._alarm[0]:
            raise CommError(
                f"{self._device.title}, rank {self.rank} of {self.size}: no message came for {_PATIENCE:.0f} s; "
                "has another rank failed, or does the program of the ranks differ?"
            )

    def close(self) -> None:
        """Let kernels that wait for ranks that are gone come to their end. Twice does no harm."""
        self._closed = True
        self._alarm[0] = 1


def _round(nbytes: int) -> int:
    return -(-nbytes // _LINE) * _LINE
