"""Bytes in the memory of an NVIDIA GPU, with a pinned copy on the host."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.device.buffer import RemoteBuffer, View, capsule
from fluxloom.device.cuda.exchange import open_view
from fluxloom.device.cuda.gpu import CudaGpu

__all__ = ["CudaBuffer"]


class _Holder:
    """Keeps memory alive for arrays that were handed out; while one of them lives, so does this."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory


class CudaBuffer(RemoteBuffer):
    """Bytes on a GPU.

    Parameters
    ----------
    owner
        The device.
    memory
        Pointer of CuPy that keeps the memory alive.
    nbytes
        Size.
    zeroed
        Whether the memory is known to be zero.
    kept
        What else has to stay alive: the array of somebody else whose memory this is.
    """

    def __init__(self, owner: CudaGpu, memory: Any, nbytes: int, *, zeroed: bool = True, kept: Any = None) -> None:
        super().__init__(nbytes, zeroed=zeroed)
        self._owner = owner
        self._memory = memory
        self._kept = kept
        self._handed: weakref.ref[_Holder] | None = None
        self._described = False
        self.address = int(memory.ptr)
        self.foreign = kept is not None

    def device(self, *, write: bool = False) -> int:
        """Return the device address, current; with ``write`` the host copy becomes stale."""
        if write:
            self._zeroed = False
        return super().device(write=write)

    def pinned(self) -> npt.NDArray[np.uint8]:
        """Return ``nbytes`` of zeroed host memory that the GPU reads and writes without a detour."""
        return self._owner.pinned(self.nbytes)

    def upload(self) -> None:
        """Copy host to device; the host copy may be changed as soon as this returns."""
        self._owner.send(self.address, self._bytes)

    def download(self) -> None:
        """Copy device to host, after everything that was asked for before; waits for it."""
        if self.lent:
            with self._owner.active():
                self._owner.order(self._owner.current_stream(), self._owner.stream)
        self._owner.fetch(self._bytes, self.address)

    @property
    def lent(self) -> bool:
        """Whether an array over the device memory is, or may be, alive outside the package."""
        return self.foreign or self._described or (self._handed is not None and self._handed() is not None)

    @property
    def exported(self) -> bool:
        """Whether a view of this buffer, of NumPy or of CuPy, is alive outside the package."""
        return self.lent or super().exported

    def array(self, view: View | None = None, *, write: bool = True) -> Any:
        """Return the device memory as a CuPy array, without a copy.

        Parameters
        ----------
        view
            Its form; all bytes by default.
        write
            Whether the array will be written to: the host copy becomes stale.

        Notes
        -----
        CuPy's current stream waits for everything that was asked of the device before, so the array can be used
        at once. What is done with it *later* is not ordered with loops that run later: either use the array
        inside ``with device.stream:``, or call ``Context.synchronize`` between the two. As with NumPy views,
        take the array anew after loops have run. The memory lives as long as the array.
        """
        address = self.device(write=write)
        holder = self._handed() if self._handed is not None else None
        if holder is None:
            holder = _Holder((self._memory, self._kept))
            self._handed = weakref.ref(holder)
        return open_view(self._owner, address, self.nbytes, holder, view)

    def dlpack(self, view: View, stream: Any, **wanted: Any) -> Any:
        """Return the DLPack capsule of a CuPy array; the stream of who asks waits for what the device was asked for."""
        owner = self._owner
        with owner.active(), owner.stream:
            return capsule(self.array(view), stream, **wanted)

    def interface(self, view: View) -> dict[str, Any]:
        """Return the CUDA Array Interface, version 3, of an array over the device memory.

        Nothing tells when the last such array is gone: from now on the buffer counts as exported.
        """
        address = self.device(write=True)
        self._described = True
        self._owner.mixed = True
        empty = 0 in view.shape
        return {
            "shape": view.shape,
            "typestr": view.dtype.str,
            "data": (0 if empty else address + view.offset, False),
            "strides": None if view.dense else view.strides,
            "stream": int(self._owner.stream.ptr),
            "version": 3,
        }

    def publish(self) -> None:
        """Show what the host has written to arrays over the memory of the device, on CuPy's current stream too."""
        super().publish()
        if self.lent:
            with self._owner.active():
                self._owner.order(self._owner.stream, self._owner.current_stream())
