"""Memory of an OpenCL device, and arrays of pyopencl over it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from fluxloom.core.errors import ExportError
from fluxloom.device.base import RemoteBuffer
from fluxloom.device.buffer import View
from fluxloom.device.opencl.queue import OpenClQueue

__all__ = ["OpenClBuffer"]


class OpenClBuffer(RemoteBuffer):
    """Zeroed bytes in the memory of an OpenCL device.

    Attributes
    ----------
    address
        The handle (``cl_mem``), which is what kernels are given.
    memory
        The ``pyopencl.Buffer``.
    """

    def __init__(self, device: OpenClQueue, memory: Any, nbytes: int) -> None:
        super().__init__(nbytes)
        self._lent: Any = None
        self._lent_references = 0
        self._device = device
        self.memory = memory
        self.address = int(self.memory.int_ptr)

    def upload(self) -> None:
        """Copy host to device."""
        self._device.transfer(self.memory, self._bytes)

    def download(self) -> None:
        """Copy device to host."""
        self._device.transfer(self._bytes, self.memory)

    @property
    def lent(self) -> bool:
        """Whether an array over the device memory is alive outside the package."""
        return self._lent is not None and sys.getrefcount(self._lent) > self._lent_references

    @property
    def exported(self) -> bool:
        """Whether a view of this buffer, of NumPy or of pyopencl, is alive outside the package."""
        return self.lent or super().exported

    def array(self, view: View | None = None, *, write: bool = True) -> Any:
        """Return the device memory as an array of pyopencl, without a copy.

        It works on the queue of the device, in order with the loops. The memory lives as long as the array.

        Raises
        ------
        ExportError
            If the values do not lie one after the other: pyopencl computes with such arrays only.
        """
        if view is None:
            view = View((self.nbytes,), np.dtype(np.uint8), (1,))
        if not view.dense:
            raise ExportError(
                "its values do not lie one after the other on the device, and arrays of pyopencl have to: "
                "use read() and write(), which copy"
            )
        self.device(write=write)
        if write:
            self.written()
        if self._lent is None:
            self._lent = self._device.cl.Buffer.from_int_ptr(self.address, retain=True)
            self._lent_references = sys.getrefcount(self._lent)
        return self._device.open_array(self._lent, view)

    def dlpack(self, view: View, stream: Any, **wanted: Any) -> Any:
        """Raise `ExportError`: pyopencl has no DLPack."""
        raise ExportError("OpenCL has no DLPack: use its property array, or read() and write(), which copy")
