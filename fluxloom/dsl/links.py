"""What the ranks of a context know about each other's devices: how messages can go between GPUs, and their sums."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fluxloom.core.errors import CommError
from fluxloom.device.base import Call, Sequencer
from fluxloom.dsl.reductions import OPERATIONS

if TYPE_CHECKING:
    from fluxloom.core.access import Access
    from fluxloom.dsl.context import Context
    from fluxloom.dsl.dats import Global

__all__ = ["Links"]

_MOST_COMBINING = 64
"""Kernels for sums that are kept for the next time."""


class Links:
    """What the ranks of a context know about each other's devices. Made collectively, once.

    Attributes
    ----------
    gpus
        Ranks that run on a GPU of which CUDA knows.
    candidates
        Ways between two of them, that all of them have; ``("host",)`` with fewer than two.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        device: Any = context.device
        comm = context.comm
        mine = device.name == "cuda"
        where = getattr(device, "identity", "") if mine else ""
        ways = _ways(context) if mine else ()
        found = comm.allgather((mine, where, ways, os.getpid()))
        self.gpus = [r for r, (gpu, *_) in enumerate(found) if gpu]
        wheres = [found[r][1] for r in self.gpus]
        # GPUs of one process wait for each other in some calls of CUDA, also while one waits for a message
        apart = len({(where.split()[0], pid) for _, where, _, pid in found if where}) == len(self.gpus)
        from fluxloom.dsl.transports import TRANSPORTS

        common = [w for w in TRANSPORTS if self.gpus and all(w in found[r][2] for r in self.gpus)]
        if len(self.gpus) < 2:
            common = ["host"]
        elif len(set(wheres)) < len(wheres) and "nccl" in common:
            common.remove("nccl")  # two ranks share a GPU, which NCCL refuses
        if not apart and context.transport == "auto" and "nccl" in common:
            common.remove("nccl")  # memory that the collector frees waits for kernels, and these for other ranks
        self._nccl: Any = None
        self._opened = False
        self.peer: Any = None
        """What ranks with a GPU each write into each other's memory with; None: they do not, or this rank has none."""
        self._combining: dict[tuple[tuple[int, Access], ...], tuple[Sequencer, list[Global]]] = {}
        self.unpeered = ""
        """Why the GPUs do not, where they might."""
        if "peer" in common:
            common.remove("peer")
            if (context.transport == "peer" or (context.transport == "auto" and apart)) and self._opens_peers(wheres):
                common.append("peer")
        self.candidates = self._wanted(tuple(common) or ("host",))
        if {"nccl", "peer"} & set(self.candidates):  # messages through the host, or MPI, bring what was done along
            waits = comm.devices_talk()
            if mine:
                device.waits = waits

    def _wanted(self, common: tuple[str, ...]) -> tuple[str, ...]:
        wish = self._context.transport
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
        from fluxloom.device.cuda_peer import PeerLink, is_near

        if not is_near(wheres):
            self.unpeered = "the GPUs are not different ones of one machine"
            return False
        context: Any = self._context
        rank = context.comm.rank
        try:
            if rank in self.gpus:
                self.peer = PeerLink(context.device, self.number(rank), len(self.gpus), self._gather)
            else:
                self.pass_peers()
        except CommError as error:
            self.unpeered = str(error)
        found = [text for text in context.comm.allgather(self.unpeered) if text]
        if found:
            self.peer, self.unpeered = None, found[0]
        elif self.peer is not None:
            context.comm.held.append(self.peer)
        return not found

    def _gather(self, value: Any) -> list[Any]:
        """Return what the ranks with a GPU give; collective among all ranks."""
        found = self._context.comm.allgather(value)
        return [found[rank] for rank in self.gpus]

    def total(self, wanted: Sequence[tuple[Global, Access]]) -> Call | None:
        """Return the call that combines globals of all ranks on the devices, every rank alike; None: there is none."""
        if len(self.gpus) < self._context.comm.size or self.peer is None:
            return None
        values = [(g.buffer.device(), g.dim, g.scalar.name, OPERATIONS[access]) for g, access in wanted]
        call: Call | None = self.peer.total(values)
        return call

    def combine(self, wanted: Sequence[tuple[Global, Access]]) -> bool:
        """Combine globals of all ranks on the devices now; False: they cannot. Every rank alike."""
        key = tuple((id(g), access) for g, access in wanted)
        if key not in self._combining:
            call = self.total(wanted)
            if call is None:
                return False
            if len(self._combining) >= _MOST_COMBINING:
                self._combining.clear()
            self._combining[key] = (self._context.device.sequencer([call]), [g for g, _ in wanted])
        sequencer, kept = self._combining[key]
        for target in kept:
            target.buffer.device()
        sequencer()
        return True

    def pass_peers(self) -> None:
        """Take part in what GPUs gather for a link or a channel of `peer`, on a rank without one."""
        from fluxloom.device.cuda_peer import PeerLink

        for _ in range(PeerLink.TURNS):
            self._gather("")

    def number(self, rank: int) -> int:
        """Return the number of a rank among those with a GPU."""
        return self.gpus.index(rank)

    def nccl(self) -> Any:
        """Return the link of NCCL, None on ranks without a GPU. Collective among all ranks; made once."""
        if self._opened:
            return self._nccl
        from fluxloom.device.cuda_nccl import NcclLink

        self._opened = True
        context, first = self._context, self.gpus[0]
        device: Any = context.device
        token = context.comm.broadcast(NcclLink.unique_id() if context.comm.rank == first else None, first)
        if context.comm.rank in self.gpus:
            self._nccl = NcclLink(device, self.number(context.comm.rank), len(self.gpus), token)
            context.comm.held.append(self._nccl)  # closed by hand only: its end must not depend on the collector
        return self._nccl


def _ways(context: Context) -> tuple[str, ...]:
    """Return the transports that a rank on a GPU has."""
    from fluxloom.device.cuda_nccl import NcclLink
    from fluxloom.device.cuda_peer import why_no_peers

    ways = ["host"]
    if context.comm.takes_device_memory:
        ways.append("mpi")
    if not NcclLink.missing():
        ways.append("nccl")
    device: Any = context.device
    return tuple(ways) if why_no_peers(device) else (*ways, "peer")
