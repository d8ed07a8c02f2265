"""What the ranks of a context know about each other: their devices, their sums, and what each of them runs.

Messages can go between GPUs directly or not. Loops, chains and exchanges are told in words that are the same on all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol
from zlib import crc32

import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.access import Access
from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import CommError
from fluxloom.device.base import Buffer, Call, Device, Sequencer

__all__ = [
    "OPERATIONS", "TRANSPORTS", "Links", "Reduced", "exchange_act", "kind_of", "loop_act", "reset_act", "value_act",
]  # fmt: skip

TRANSPORTS = ("host", "mpi", "nccl", "peer")

OPERATIONS = {Access.INC: "sum", Access.MIN: "min", Access.MAX: "max"}

_MOST_COMBINING = 64
"""Kernels for sums that are kept for the next time."""


class Reduced(Protocol):
    """What ranks combine: a global, whose results wait for that since loops reduced into it."""

    name: str
    buffer: Buffer
    scalar: Scalar
    dim: int
    act: bytes
    waiting: Access | None


class Links:
    """What the ranks of a context know about each other's devices. Made collectively, once.

    Attributes
    ----------
    gpus
        Ranks that run on a GPU of which CUDA knows.
    candidates
        Ways between two of them, that all of them have; ``("host",)`` with fewer than two.
    """

    def __init__(self, device: Device, comm: Comm, transport: str) -> None:
        self._device: Any = device
        self._comm, self._transport = comm, transport
        mine = device.name == "cuda"
        where = getattr(device, "identity", "") if mine else ""
        ways = _ways(device, comm) if mine else ()
        found = comm.allgather((mine, where, ways, os.getpid()))
        self.gpus = [r for r, (gpu, *_) in enumerate(found) if gpu]
        wheres = [found[r][1] for r in self.gpus]
        # GPUs of one process wait for each other in some calls of CUDA, also while one waits for a message
        apart = len({(where.split()[0], pid) for _, where, _, pid in found if where}) == len(self.gpus)
        common = [w for w in TRANSPORTS if self.gpus and all(w in found[r][2] for r in self.gpus)]
        if len(self.gpus) < 2:
            common = ["host"]
        elif len(set(wheres)) < len(wheres) and "nccl" in common:
            common.remove("nccl")  # two ranks share a GPU, which NCCL refuses
        if not apart and transport == "auto" and "nccl" in common:
            common.remove("nccl")  # memory that the collector frees waits for kernels, and these for other ranks
        self._nccl: Any = None
        self._opened = False
        self.peer: Any = None
        """What ranks with a GPU each write into each other's memory with; None: they do not, or this rank has none."""
        self._combining: dict[tuple[tuple[int, Access], ...], tuple[Sequencer, list[Reduced]]] = {}
        self.unpeered = ""
        """Why the GPUs do not, where they might."""
        if "peer" in common:
            common.remove("peer")
            if (transport == "peer" or (transport == "auto" and apart)) and self._opens_peers(wheres):
                common.append("peer")
        self.candidates = self._wanted(tuple(common) or ("host",))
        if {"nccl", "peer"} & set(self.candidates):  # messages through the host, or MPI, bring what was done along
            waits = comm.devices_talk()
            if mine:
                self._device.waits = waits

    def _wanted(self, common: tuple[str, ...]) -> tuple[str, ...]:
        wish = self._transport
        if wish == "auto":
            return common
        if wish != "host" and not self.gpus:
            raise CommError(
                f"transport {wish!r} carries messages between GPUs, but no rank has one: take auto or host"
            )
        if wish != "host" and len(self.gpus) == 1:
            return common  # the others have no GPU to send to: the host is the way that was asked for
        if wish not in common:
            why = f" ({self.unpeered})" if wish == "peer" and self.unpeered else ""
            raise CommError(f"transport {wish!r} is not there on all GPU ranks{why}; there are: {', '.join(common)}")
        return (wish,)

    def _opens_peers(self, wheres: Sequence[str]) -> bool:
        """Let the GPUs open each other's memory; False, with the reason in ``unpeered``, when one cannot. Collective.

        Ranks without a GPU take part in what is gathered.
        """
        from fluxloom.device.cuda.peer import PeerLink, is_near

        if not is_near(wheres):
            self.unpeered = "the GPUs are not different ones of one machine"
            return False
        rank = self._comm.rank
        try:
            if rank in self.gpus:
                self.peer = PeerLink(self._device, self.number(rank), len(self.gpus), self._gather)
            else:
                self.pass_peers()
        except CommError as error:
            self.unpeered = str(error)
        found = [text for text in self._comm.allgather(self.unpeered) if text]
        if found:
            self.peer, self.unpeered = None, found[0]
        elif self.peer is not None:
            self._comm.held.append(self.peer)
        return not found

    def _gather(self, value: Any) -> list[Any]:
        """Return what the ranks with a GPU give; collective among all ranks."""
        found = self._comm.allgather(value)
        return [found[rank] for rank in self.gpus]

    def total(self, wanted: Sequence[tuple[Reduced, Access]]) -> Call | None:
        """Return the call that combines globals of all ranks on the devices, every rank alike; None: there is none."""
        if len(self.gpus) < self._comm.size or self.peer is None:
            return None
        values = [(g.buffer.device(), g.dim, g.scalar.name, OPERATIONS[access]) for g, access in wanted]
        call: Call | None = self.peer.total(values)
        return call

    def combine(self, wanted: Sequence[tuple[Reduced, Access]]) -> bool:
        """Combine globals of all ranks on the devices now; False: they cannot. Every rank alike."""
        key = tuple((id(g), access) for g, access in wanted)
        if key not in self._combining:
            call = self.total(wanted)
            if call is None:
                return False
            if len(self._combining) >= _MOST_COMBINING:
                self._combining.clear()
            self._combining[key] = (self._device.sequencer([call]), [g for g, _ in wanted])
        sequencer, kept = self._combining[key]
        for target in kept:
            target.buffer.device()
        sequencer()
        return True

    def pass_peers(self) -> None:
        """Take part in what GPUs gather for a link or a channel of `peer`, on a rank without one."""
        from fluxloom.device.cuda.peer import PeerLink

        for _ in range(PeerLink.TURNS):
            self._gather("")

    def number(self, rank: int) -> int:
        """Return the number of a rank among those with a GPU."""
        return self.gpus.index(rank)

    def nccl(self) -> Any:
        """Return the link of NCCL, None on ranks without a GPU. Collective among all ranks; made once."""
        if self._opened:
            return self._nccl
        from fluxloom.device.cuda.nccl import NcclLink

        self._opened = True
        comm, first = self._comm, self.gpus[0]
        token = comm.broadcast(NcclLink.unique_id() if comm.rank == first else None, first)
        if comm.rank in self.gpus:
            self._nccl = NcclLink(self._device, self.number(comm.rank), len(self.gpus), token)
            comm.held.append(self._nccl)  # closed by hand only: its end must not depend on the collector
        return self._nccl


def _ways(device: Any, comm: Comm) -> tuple[str, ...]:
    """Return the transports that a rank on a GPU has."""
    from fluxloom.device.cuda.nccl import NcclLink
    from fluxloom.device.cuda.peer import why_no_peers

    ways = ["host"]
    if comm.takes_device_memory:
        ways.append("mpi")
    if not NcclLink.missing():
        ways.append("nccl")
    return tuple(ways) if why_no_peers(device) else (*ways, "peer")


_SHOWN = 4
"""Components of a value that are shown."""


def loop_act(bound: Any) -> bytes:
    """Return a loop in words: its set, its arguments with types and shapes, its constants, its kernel."""
    pairs = zip(bound.kernel.parameters, bound.arguments, strict=True)
    arguments = ", ".join(f"{parameter.access.name} {_argument(arg)}" for parameter, arg in pairs)
    constants = "".join(f", {name}={value!r}" for name, value in bound.constants.items())
    kernel = f"{bound.kernel.name} {bound.lowered.digest[:8]}"
    return f"loop {bound.name} over {bound.over.name} ({arguments}{constants}; kernel {kernel})".encode()


def kind_of(data: Any) -> str:
    """Return name, type and components of values."""
    return f"{data.name} {data.scalar.name}{list(data.shape) if data.shape else ''}"


def _argument(argument: Any) -> str:
    if argument.map is None:
        return kind_of(argument.data)
    leg = f"[{argument.leg}]" if argument.leg >= 0 else f" of {argument.map.legs} legs"
    return f"{kind_of(argument.data)} through {argument.map.name}{leg}"


def reset_act(target: Any, value: float) -> bytes:
    """Return a reset in words."""
    return f"reset of {kind_of(target)} to {value!r}".encode()


def value_act(array: npt.NDArray[Any]) -> bytes:
    """Return a value in words, a long one by its digest."""
    return repr(array.tolist()).encode() if array.size <= _SHOWN else b"%08x" % crc32(array.tobytes())


def exchange_act(dats: Iterable[Any], masked: Iterable[Any], back: Iterable[Any]) -> bytes:
    """Return an exchange in words: dats of which all, some numbers, or some numbers back travel."""
    parts = [*map(kind_of, dats), *(f"numbers of {kind_of(d)}" for d in masked), *(f"{kind_of(d)} back" for d in back)]
    return f"the first exchange of {', '.join(parts)}".encode()
