"""Arrays in the memory of a device: where a primitive finds its values, whoever they belong to."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar, scalar
from fluxloom.core.errors import DatError
from fluxloom.device.base import Buffer, Device
from fluxloom.device.buffer import View, steps
from fluxloom.dsl.declare.dats import Dat, require_view, view_of

__all__ = ["DeviceArray", "dense_view"]


class DeviceArray:
    """Values in the memory of a device, with their shape and the distances between them.

    Attributes
    ----------
    device
        Whose memory it is.
    buffer
        The memory.
    view
        Shape, type, distances in bytes, first byte.
    copied
        Whether the values were copied from an array whose memory the device cannot use: what is written here does
        not show there.
    """

    def __init__(self, device: Device, buffer: Buffer, view: View, *, copied: bool = False) -> None:
        self.device, self.buffer, self.view, self.copied = device, buffer, view, copied

    @classmethod
    def zeros(cls, device: Device, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> DeviceArray:
        """Return new memory in C order, of zeros."""
        kind = np.dtype(dtype)
        return cls(device, device.allocate(max(1, prod(shape)) * kind.itemsize), dense_view(shape, kind))

    @classmethod
    def of(cls, device: Device, values: Any) -> DeviceArray:
        """Return an array, or the values of a dat, as they lie in memory; a copy where the device cannot use that.

        Raises
        ------
        DatError
            If the values are in the memory of another device.
        ExportError
            If a dat is stored in an order that no array has.
        """
        if isinstance(values, DeviceArray):
            return values
        if isinstance(values, Dat):
            if values.context.device is not device:
                raise DatError(f"dat {values.name!r} lives on another device than the plan it is given to")
            require_view(values)
            return cls(device, values.buffer, view_of(values))
        array = device.as_array(values)
        if not device.why_not_shared(values, array):
            view = View(tuple(array.shape), np.dtype(array.dtype), tuple(array.strides), 0)
            if _filled(view) and array.size:
                return cls(device, device.wrap(array), view)
        found = cls.zeros(device, tuple(array.shape), array.dtype)
        found.copied = True
        found.assign(array)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type."""
        return np.dtype(self.view.dtype)

    @property
    def scalar(self) -> Scalar:
        """Its type, as generated code names it."""
        return scalar(self.dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances between neighbours along each axis, in values."""
        return tuple(step // self.dtype.itemsize for step in self.view.strides)

    @property
    def first(self) -> int:
        """Number of the first value in the buffer."""
        return self.view.offset // self.dtype.itemsize

    @property
    def dense(self) -> bool:
        """Whether the values lie in C order without gaps."""
        return self.view.strides == dense_view(self.shape, self.dtype).strides

    def array(self, *, write: bool = True) -> Any:
        """Return the values as an array of the device's library, without a copy."""
        return self.buffer.array(self.view, write=write)

    def assign(self, values: Any) -> None:
        """Set the values from an array of NumPy or of the device's library."""
        if isinstance(values, np.ndarray):
            self.host(write=True)[...] = values
            self.buffer.publish()
        else:
            self.device.assign(self.array(), values)

    def host(self, *, write: bool = False) -> npt.NDArray[Any]:
        """Return the values in host memory; waits for the device."""
        view = self.view
        return np.ndarray(view.shape, view.dtype, self.buffer.host(write=write), view.offset, view.strides)


def dense_view(shape: tuple[int, ...], kind: np.dtype[Any]) -> View:
    """Return a view in C order, without gaps."""
    return View(shape, kind, tuple(kind.itemsize * step for step in steps(shape)))


def _filled(view: View) -> bool:
    """Whether an array fills its memory, in some order of its axes."""
    size, step = np.dtype(view.dtype).itemsize, np.dtype(view.dtype).itemsize
    for stride, length in sorted(zip(view.strides, view.shape, strict=True)):
        if length > 1 and stride != step:
            return False
        step *= length
    return size > 0
