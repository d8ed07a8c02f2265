"""Messages between GPUs without a detour over their hosts: NCCL, through CuPy."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CommError, DeviceUnavailable
from fluxloom.core.packages import require
from fluxloom.device.base import Enqueued, Sequencer
from fluxloom.device.cuda.gpu import SideStream

if TYPE_CHECKING:
    from fluxloom.device.cuda.device import CudaDevice

__all__ = ["NcclLink", "Parcel", "UniqueId"]

Parcel = tuple[int, int, int]
"""One side of a message: the other rank of the link, an address on this GPU, bytes."""

UniqueId = bytes | tuple[int, ...]
"""What ranks recognise each other by; it depends on the version of CuPy."""

_TYPES = {
    "float64": "NCCL_FLOAT64", "float32": "NCCL_FLOAT32", "float16": "NCCL_FLOAT16",
    "int64": "NCCL_INT64", "int32": "NCCL_INT32", "uint8": "NCCL_UINT8",
}  # fmt: skip
_PATIENCE = 5.0
"""Seconds that messages of a link which was not closed have to arrive."""

_OPERATIONS = {"sum": "NCCL_SUM", "min": "NCCL_MIN", "max": "NCCL_MAX"}


class NcclLink:
    """A communicator of NCCL: ranks with a GPU each that send from device memory to device memory.

    Nothing here waits on the host, but for the constructor and `close`. Messages travel on a stream beside the main
    one, between `start` and `finish`. All calls may be captured in a CUDA graph, see `items`. Every rank makes its
    calls, in graphs or not, in the same order. Call `close` at the end: a link that is forgotten is cut off after
    some seconds, and messages of other ranks with it.

    Parameters
    ----------
    device
        The GPU of this rank; no other rank of the link uses the same one.
    rank, size
        This rank, and how many there are, counted among the ranks of the link.
    unique_id
        What `unique_id` returned on one of the ranks, the same on all.

    Raises
    ------
    DeviceUnavailable
        Without NCCL.
    CommError
        When the ranks do not find together. The constructor returns when all ranks have called it.
    """

    def __init__(self, device: CudaDevice, rank: int, size: int, unique_id: UniqueId) -> None:
        if not 0 <= rank < size:
            raise CommError(f"rank {rank} of a link of {size} GPUs: ranks are 0 ... {size - 1}")
        self.rank, self.size = rank, size
        self._device = device
        self._nccl = _open_nccl()
        self._users: weakref.WeakSet[Sequencer] = weakref.WeakSet()
        self._side: SideStream = device.side
        with device.active(), self._errors("the ranks do not find together (has each a GPU of its own?)"):
            self._communicator: Any = self._nccl.NcclCommunicator(size, unique_id, rank)
        streams = (device.stream, self._side.stream)
        self._end = weakref.finalize(self, _drop, self._communicator, self._users, streams)

    @staticmethod
    def missing() -> str:
        """Return why there can be no link on this machine, or an empty string."""
        try:
            _open_nccl()
        except DeviceUnavailable as error:
            return str(error)
        return ""

    @staticmethod
    def unique_id() -> UniqueId:
        """Return what the ranks of a new link recognise each other by; made on one of them, which tells the others.

        Raises
        ------
        DeviceUnavailable
            Without NCCL.
        """
        return _open_nccl().get_unique_id()

    # ------------------------------------------------------------------------------------- messages
    def start(self, sends: Sequence[Parcel], receives: Sequence[Parcel]) -> None:
        """Begin one exchange, after everything that the main stream was asked for so far.

        Every rank that is sent something asks to receive as many bytes. Until `finish` kernels must neither change
        what is sent nor touch what is received.

        Raises
        ------
        CommError
            When NCCL refuses, or a peer is no rank of the link.
        """
        self._side.fork_now()
        self.post(sends, receives)

    def post(self, sends: Sequence[Parcel], receives: Sequence[Parcel]) -> None:
        """Send and receive behind what the stream beside the main one was asked for so far.

        Raises
        ------
        CommError
            When NCCL refuses, or a peer is no rank of the link.
        """
        for peer, _, _ in (*sends, *receives):
            if not 0 <= peer < self.size:
                raise CommError(f"a message for rank {peer} of a link of {self.size} GPUs")
        nccl, communicator, stream = self._nccl, self._alive(), self._side.stream.ptr
        kind = nccl.NCCL_UINT8
        with self._device.active(), self._errors("an exchange fails"):
            nccl.groupStart()
            try:
                for peer, address, nbytes in sends:
                    if nbytes:
                        communicator.send(address, nbytes, kind, peer, stream)
                for peer, address, nbytes in receives:
                    if nbytes:
                        communicator.recv(address, nbytes, kind, peer, stream)
            finally:
                nccl.groupEnd()

    def finish(self) -> None:
        """Let everything that the main stream is asked for from now on wait for the exchanges that were started."""
        self._side.join_now()

    def exchange(self, sends: Sequence[Parcel], receives: Sequence[Parcel]) -> None:
        """Start an exchange and let the main stream wait for it."""
        self.start(sends, receives)
        self.finish()

    def items(self, name: str, sends: Sequence[Parcel], receives: Sequence[Parcel]) -> tuple[Enqueued, Enqueued]:
        """Return `start` and `finish` of an exchange as items of a sequence, to be captured in its graph.

        Parameters
        ----------
        name
            For profilers.
        sends, receives
            As for `start`; the addresses stay as they are.
        """
        sends, receives = tuple(sends), tuple(receives)
        start = Enqueued(f"{name} start", lambda: self.start(sends, receives), True, self.captured)
        return start, Enqueued(f"{name} finish", self.finish, True, self.captured)

    def apart(self, name: str, sends: Sequence[Parcel], receives: Sequence[Parcel]) -> tuple[Enqueued, ...]:
        """Return the items that fork from the main stream, send and receive, and join it again.

        Calls with `Call.aside` between them run on the stream beside the main one, in order with the messages.
        """
        sends, receives = tuple(sends), tuple(receives)
        return (
            Enqueued(f"{name} fork", self._side.fork_now, True, self.captured),
            Enqueued(f"{name} post", lambda: self.post(sends, receives), True, self.captured),
            Enqueued(f"{name} join", self.finish, True, self.captured),
        )

    def all_reduce(self, address: int, count: int, dtype: npt.DTypeLike, operation: str) -> None:
        """Combine numbers of all ranks in place, on the main stream; all ranks get the same bits.

        Parameters
        ----------
        address, count
            Where they are on this GPU, and how many.
        dtype
            Their type.
        operation
            ``"sum"``, ``"min"`` or ``"max"``. The order in which NCCL adds is its own.

        Raises
        ------
        CommError
            When NCCL refuses, or does not know the type or operation.
        """
        name = np.dtype(dtype).name
        if name not in _TYPES or operation not in _OPERATIONS:
            raise CommError(f"NCCL is not used for {operation!r} of {name}: reduce on the host")
        if not count:
            return
        kind, how = getattr(self._nccl, _TYPES[name]), getattr(self._nccl, _OPERATIONS[operation])
        communicator = self._alive()
        with self._device.active(), self._errors("a reduction fails"):
            communicator.allReduce(address, address, count, kind, how, self._device.stream.ptr)

    def captured(self, sequencer: Sequencer) -> None:
        """Note that the graph of a sequence uses this link; `close` lets it be dropped first, or NCCL would wait."""
        self._users.add(sequencer)

    # ---------------------------------------------------------------------------------- state, errors
    def check(self) -> None:
        """Raise `CommError` if NCCL has noticed meanwhile that a message failed."""
        communicator = self._alive()
        with self._errors("a message has failed"):
            communicator.check_async_error()

    def close(self) -> None:
        """Wait for the messages and give the communicator back. Graphs that use it are dropped. Twice does no harm."""
        if self._end.detach() is None:
            return
        for sequencer in list(self._users):
            sequencer.refresh()
        communicator, self._communicator = self._communicator, None
        with self._device.active(), self._errors("closing fails"):
            self._device.wait_for(self._side.stream)
            self._device.wait_for(self._device.stream)
            communicator.destroy()

    def _alive(self) -> Any:
        if self._communicator is None:
            raise CommError(f"the NCCL link of {self._device.title} is closed")
        return self._communicator

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn errors of NCCL into `CommError`."""
        try:
            yield
        except self._nccl.NcclError as error:
            raise CommError(
                f"NCCL, {self._device.title}, rank {self.rank} of {self.size}: {what}: {error}; "
                "run again with the environment variable NCCL_DEBUG=WARN to learn more"
            ) from error


def _open_nccl() -> Any:
    """Return CuPy's module for NCCL.

    Raises
    ------
    DeviceUnavailable
        When the library is not there.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy warns without saying what of ours needs it
        nccl: Any = require("cupy.cuda.nccl", "cuda", "the transport nccl")
    if not getattr(nccl, "available", False):
        raise DeviceUnavailable(
            "the transport nccl needs the library NCCL, and CuPy does not find it: pip install nvidia-nccl-cu12 "
            "(nvidia-nccl-cu13 for CUDA 13), or choose another transport"
        )
    return nccl


def _drop(communicator: Any, users: weakref.WeakSet[Sequencer], streams: Sequence[Any]) -> None:
    """Give back a communicator that nobody has closed, without waiting for ranks that are gone."""
    for sequencer in list(users):
        sequencer.refresh()
    end = time.monotonic() + _PATIENCE
    while not all(stream.done for stream in streams) and time.monotonic() < end:
        time.sleep(0.01)
    communicator.abort()
