"""Arrays of CuPy, and of everything with ``__cuda_array_interface__``, on their way into dats and out of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.device.buffer import View
from fluxloom.device.cuda.gpu import CudaGpu

__all__ = ["assign", "import_array", "open_view", "why_not_shared"]

_VECTOR = 16
"""Bytes that a kernel moves at once, if the components of an element allow it."""


def import_array(device: CudaGpu, values: Any) -> Any:
    """Return an array of the GPU as one of CuPy, without a copy, and anything else as one of NumPy.

    Raises
    ------
    DatError
        If it is on another GPU.
    """
    cupy = device.cupy
    if not isinstance(values, cupy.ndarray):
        if not hasattr(values, "__cuda_array_interface__"):
            return np.asarray(values)
        with device.active():
            values = cupy.asarray(values)
    if int(values.device.id) != device.number:
        raise DatError(f"the array is on GPU {values.device.id}, not on GPU {device.number}: copy it there first")
    return values


def why_not_shared(device: CudaGpu, values: Any, array: Any) -> str:
    """Return why the memory of values, which are an array now, cannot be a buffer; empty if it can."""
    if not isinstance(array, device.cupy.ndarray):
        return f"a {type(values).__name__} is in the memory of the host, and loops run in that of the GPU"
    if array is not values and values.__cuda_array_interface__["data"][1]:
        return "it is read-only"
    if int(array.data.ptr) % _VECTOR:
        return f"it does not begin at a multiple of {_VECTOR} bytes, as kernels need it"
    return ""


def assign(device: CudaGpu, target: Any, source: Any) -> None:
    """Set an array from another one on the device's stream, after and before what CuPy's current stream does."""
    with device.active():
        current = device.current_stream()
        device.order(current, device.stream)
        with device.stream:
            target[...] = source
        device.order(device.stream, current)  # it may free or change the source, and use the target


def open_view(device: CudaGpu, address: int, nbytes: int, owner: object, view: View | None) -> Any:
    """Return device memory as a CuPy array that keeps ``owner`` alive: of bytes, or of another form.

    CuPy's current stream waits for what the device was asked for.
    """
    cuda, ndarray = device.cupy.cuda, device.cupy.ndarray
    with device.active():
        memory = cuda.UnownedMemory(address, nbytes, owner, device.number)
        if view is None:
            array = ndarray((nbytes,), dtype=np.uint8, memptr=cuda.MemoryPointer(memory, 0))
        else:
            start = cuda.MemoryPointer(memory, view.offset)
            array = ndarray(view.shape, dtype=view.dtype, memptr=start, strides=view.strides)
        device.order(device.stream, device.current_stream())
    return array
