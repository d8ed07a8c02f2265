"""Bytes in the memory of an NVIDIA GPU, with a pinned copy on the host."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import RemoteBuffer

if TYPE_CHECKING:
    from fluxloom.device.cuda import CudaDevice

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

    Attributes
    ----------
    foreign
        Whether the memory belongs to an array of somebody else. Such a buffer counts as exported: it must
        stay where that array is.
    """

    def __init__(self, owner: CudaDevice, memory: Any, nbytes: int, *, zeroed: bool = True, kept: Any = None) -> None:
        super().__init__(nbytes, zeroed=zeroed)
        self._owner = owner
        self._memory = memory
        self._kept = kept
        self._handed: weakref.ref[_Holder] | None = None
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
        self._owner.fetch(self._bytes, self.address)

    @property
    def exported(self) -> bool:
        """Whether a view of this buffer, of NumPy or of CuPy, is alive outside the package."""
        handed = self._handed is not None and self._handed() is not None
        return self.foreign or handed or super().exported

    def array(self, *, write: bool = True) -> Any:
        """Return the device memory as a CuPy array of bytes, without a copy.

        Parameters
        ----------
        write
            Whether the array will be written to: the host copy becomes stale.

        Notes
        -----
        CuPy's current stream waits for everything that was asked of the device before, so the array can be used
        at once. What is done with it *later* is not ordered with loops that run later: either use the array
        inside ``with device.stream:``, or call ``Context.synchronize`` between the two. As with NumPy views,
        take the array anew after loops have run. The memory lives as long as the array.
        """
        owner = self._owner
        address = self.device(write=write)
        holder = self._handed() if self._handed is not None else None
        if holder is None:
            holder = _Holder((self._memory, self._kept))
            self._handed = weakref.ref(holder)
        return owner.view(address, self.nbytes, holder)
