"""Messages on their way between an NVIDIA GPU and the host, and message buffers as other libraries see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.gpu import CudaGpu, SideStream
from fluxloom.device.transfer_queue import TransferQueue

__all__ = ["CudaTransferQueue", "array_of", "mark_main", "settle_main"]


class CudaTransferQueue(TransferQueue):
    """Copies between the memory of a GPU and pinned memory of the host, on a stream of its own.

    Between replayed graphs of the main stream it works as between kernels. It is not captured itself: the host
    has to wait.

    Parameters
    ----------
    device
        The GPU.
    """

    def __init__(self, device: CudaGpu) -> None:
        super().__init__()
        self._device = device
        self._side = SideStream(device)
        self._runtime = device.cupy.cuda.runtime

    def _fork(self) -> None:
        self._side.fork_now()

    def _join(self) -> None:
        self._side.join_now()

    def _fetch(self, target: npt.NDArray[np.uint8], source: CudaBuffer, begin: int) -> None:
        self._copy(target.ctypes.data, source.address + begin, target.nbytes, self._runtime.memcpyDeviceToHost)

    def _send(self, target: CudaBuffer, begin: int, source: npt.NDArray[np.uint8]) -> None:
        self._copy(target.address + begin, source.ctypes.data, source.nbytes, self._runtime.memcpyHostToDevice)

    def _copy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        with self._device.active():
            self._runtime.memcpyAsync(target, source, nbytes, kind, self._side.stream.ptr)

    def _finish(self) -> None:
        with self._device.active():
            self._device.wait_for(self._side.stream)


def array_of(device: CudaGpu, buffer: CudaBuffer) -> Any:
    """Return the device memory of a message buffer as a CuPy array of bytes, for an MPI that reads and writes there.

    Unlike `CudaBuffer.array` it changes nothing about who holds the current values and puts no streams in order:
    before the library reads, call `settle_main`; after it has written, call ``buffer.written()``.
    """
    cupy = device.cupy
    with device.active():
        memory = cupy.cuda.UnownedMemory(buffer.address, buffer.nbytes, buffer, device.number)
        return cupy.ndarray((buffer.nbytes,), dtype=np.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))


def mark_main(device: CudaGpu) -> Any:
    """Return a mark behind everything that the main stream was asked for so far; give it back to `settle_main`."""
    with device.active():
        return device.mark()


def settle_main(device: CudaGpu, mark: Any = None) -> None:
    """Wait on the host until the main stream has come to a mark; other streams run on.

    Parameters
    ----------
    mark
        From `mark_main`, to be used once; by default behind everything that the stream was asked for so far.
    """
    with device.active():
        event = device.mark() if mark is None else mark
        device.wait_for(event)
    device.events.append(event)
