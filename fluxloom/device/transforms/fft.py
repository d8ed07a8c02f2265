"""Real Fourier transforms along the rows of an array, in the memory that values have on a device."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Device

__all__ = ["RealTransform", "real_transform"]

_CHUNK = 1 << 15
"""Values of a host transform at once, for each thread: they and their transform stay in the cache of a core."""


class RealTransform(Protocol):
    """Unitary transforms of ``n`` real values a row to ``n // 2 + 1`` complex ones and back.

    Attributes
    ----------
    on_device
        Whether its arrays are those of `fluxloom.dsl.declare.dats.Dat.array` (False: those of NumPy in host memory).
    """

    on_device: bool

    def session(self) -> AbstractContextManager[Any]:
        """Return the context in which arrays are used: what is done in it is in order with the device's loops."""
        ...

    def rows(self, length: int) -> int:
        """Return how many rows of so many values to transform at once; 0: all."""
        ...

    def forward(self, values: Any) -> Any:
        """Return the spectra ``(rows, 2 (n // 2 + 1))`` of ``(rows, n)``: pairs of real and imaginary parts."""
        ...

    def backward(self, spectra: Any, length: int) -> Any:
        """Return the values ``(rows, length)`` of spectra; the imaginary parts of 0 and ``length / 2`` are zero."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """Return an array of zeros."""
        ...

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Return an array in host memory."""
        ...

    def from_host(self, array: npt.NDArray[Any]) -> Any:
        """Return an array of the transform."""
        ...

    def square(self, values: Any) -> float:
        """Return the sum of the squares of all values."""
        ...


def real_transform(device: Device, threads: int = 1) -> RealTransform:
    """Return the transform of a device: cuFFT on a GPU of CUDA's, else SciPy's on the host, with so many threads."""
    cupy = getattr(device, "cupy", None)
    return HostTransform(threads) if cupy is None else DeviceTransform(device, cupy)


class HostTransform:
    """SciPy's transforms (pocketfft) of NumPy's arrays.

    Parameters
    ----------
    threads
        That may share the rows.
    """

    on_device = False

    def __init__(self, threads: int = 1) -> None:
        from scipy import fft

        self._fft: Any = fft
        self._threads = max(1, threads)

    def session(self) -> AbstractContextManager[Any]:
        """Return a context without meaning."""
        return nullcontext()

    def rows(self, length: int) -> int:
        """Return how many rows stay in the caches."""
        return max(1, self._threads * _CHUNK // max(1, length))

    def forward(self, values: Any) -> Any:
        """Return the spectra as pairs of real numbers."""
        return self._fft.rfft(values, axis=1, norm="ortho", workers=self._threads).view(values.dtype)

    def backward(self, spectra: Any, length: int) -> Any:
        """Return the values."""
        pairs = spectra.view(np.result_type(spectra.dtype, np.complex64))
        return self._fft.irfft(pairs, length, axis=1, norm="ortho", workers=self._threads)

    def zeros(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """Return an array of NumPy."""
        return np.zeros(shape, dtype)

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Return the array."""
        return array

    def from_host(self, array: npt.NDArray[Any]) -> Any:
        """Return the array."""
        return array

    def square(self, values: Any) -> float:
        """Return the sum of the squares."""
        flat = values.reshape(-1)
        return float(np.einsum("i,i->", flat, flat))  # not by BLAS, whose threads would meet those of other ranks


class DeviceTransform:
    """Transforms of CuPy's arrays (cuFFT), on the stream of the device.

    Parameters
    ----------
    device
        Of CUDA.
    cupy
        The module.
    """

    on_device = True

    def __init__(self, device: Any, cupy: Any) -> None:
        self._device, self._cupy = device, cupy

    def session(self) -> AbstractContextManager[Any]:
        """Return the context of the GPU and its stream."""
        stack = ExitStack()
        stack.enter_context(self._device.active())
        stack.enter_context(self._device.stream)
        return stack

    def rows(self, length: int) -> int:
        """Return 0: all rows are one call."""
        return 0

    def forward(self, values: Any) -> Any:
        """Return the spectra as pairs of real numbers."""
        return self._cupy.fft.rfft(values, axis=1, norm="ortho").view(values.dtype)

    def backward(self, spectra: Any, length: int) -> Any:
        """Return the values."""
        pairs = spectra.view(np.result_type(spectra.dtype, np.complex64))
        return self._cupy.fft.irfft(pairs, length, axis=1, norm="ortho")

    def zeros(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """Return an array of CuPy."""
        return self._cupy.zeros(shape, dtype)

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Return a copy in host memory."""
        return array.get()

    def from_host(self, array: npt.NDArray[Any]) -> Any:
        """Return a copy in the memory of the GPU."""
        return self._cupy.asarray(array)

    def square(self, values: Any) -> float:
        """Return the sum of the squares; waits for it."""
        flat = values.reshape(-1)
        return float(self._cupy.dot(flat, flat))
