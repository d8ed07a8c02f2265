"""Bytes on a device with a copy on the host, and arrays that share memory with them."""

from __future__ import annotations

import sys
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError, ExportError, SolverError

__all__ = ["Buffer", "RemoteBuffer", "View", "Where", "capsule", "dense", "gapless", "steps"]


@dataclass(frozen=True)
class View:
    """Where the values of an array are in a buffer.

    Attributes
    ----------
    shape, dtype
        Of the array.
    strides, offset
        Bytes from one value to the next along each axis, and from the start of the buffer to the first value.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dense(self) -> bool:
        """Whether the values lie one after the other, the last axis fastest."""
        return dense(self.shape, self.strides, self.dtype.itemsize)


def steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many values lie between neighbours along each axis of a dense array."""
    out, step = [], 1
    for length in reversed(shape):
        out.append(step)
        step *= length
    return tuple(reversed(out))


def dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether an array is dense: values one after the other, the last axis fastest."""
    wanted = steps(shape)
    return 0 in shape or all(
        length == 1 or stride == itemsize * step for length, stride, step in zip(shape, strides, wanted, strict=True)
    )


def gapless(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the values of an array fill its memory, in whatever order of the axes."""
    axes = sorted(range(len(shape)), key=lambda k: (-strides[k], shape[k]))
    return dense([shape[k] for k in axes], [strides[k] for k in axes], itemsize)


def capsule(array: Any, stream: Any, **wanted: Any) -> Any:
    """Return an array's DLPack capsule.

    Parameters
    ----------
    array
        Of NumPy or CuPy; versions that know DLPack 0 only are understood.
    stream
        Of the consumer.
    **wanted
        ``max_version``, ``dl_device`` and ``copy`` of ``__dlpack__``; None is as if it were not there.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        return array.__dlpack__(stream=stream, **given)
    except TypeError:
        if set(given) != {"max_version"}:
            raise
        return array.__dlpack__(stream=stream)  # the version is a wish


_ALIGN = 64
_STAGGER = 9 * _ALIGN  # successive buffers start in different cache sets, which avoids 4 KiB aliasing


class Where(Enum):
    """Which copy of a buffer holds the current values."""

    HOST = "host"
    DEVICE = "device"
    BOTH = "both"


class Buffer:
    """Bytes on a device with a host copy; coherence is explicit.

    Before the host touches the values, `host` brings them over if the device holds newer ones;
    before the device does, `device` sends them. On a device that shares memory with the host both
    are free.

    Parameters
    ----------
    nbytes
        Size.
    stagger
        Number of 576-byte steps by which the start is shifted.

    Attributes
    ----------
    foreign
        Whether the memory belongs to an array of somebody else. Such a buffer counts as exported: it must
        stay where that array is.
    """

    foreign: bool = False

    def __init__(self, nbytes: int, *, stagger: int = 0) -> None:
        shift = (stagger % 7) * _STAGGER
        try:
            self._raw = np.empty(nbytes + shift + _ALIGN, dtype=np.uint8)
        except MemoryError:
            raise SolverError(f"out of memory: {nbytes / 2**20:.0f} MiB could not be allocated") from None
        start = (-self._raw.ctypes.data) % _ALIGN + shift
        self._bytes = self._raw[start : start + nbytes]
        self._bytes[:] = 0
        self.nbytes = nbytes
        self.address = self._bytes.ctypes.data
        self.where = Where.BOTH
        self._references = sys.getrefcount(self._raw)

    @classmethod
    def over(cls, array: npt.NDArray[Any]) -> Buffer:
        """Return a buffer over the memory of an array without gaps, which is kept alive."""
        self = cls.__new__(cls)
        flat = np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))
        self._raw = self._bytes = flat.view(np.uint8)
        self.nbytes, self.address = array.nbytes, array.ctypes.data
        self.where, self.foreign = Where.BOTH, True
        self._references = sys.getrefcount(self._raw)
        return self

    def host(self, *, write: bool = False) -> npt.NDArray[np.uint8]:
        """Return the host copy, current; with ``write`` the device copy becomes stale."""
        if self.where is Where.DEVICE:
            self.download()
            self.where = Where.BOTH
        if write:
            self.where = Where.HOST
        return self._bytes

    def device(self, *, write: bool = False) -> int:
        """Return the device address, current; with ``write`` the host copy becomes stale."""
        if self.where is Where.HOST:
            self.upload()
            self.where = Where.BOTH
        if write:
            self.where = Where.DEVICE
        return self.address

    def upload(self) -> None:
        """Copy host to device (nothing to do in shared memory)."""

    def download(self) -> None:
        """Copy device to host (nothing to do in shared memory)."""

    @property
    def exported(self) -> bool:
        """Whether an array that shares this memory is alive outside the package."""
        return self.foreign or sys.getrefcount(self._raw) > self._references

    @property
    def lent(self) -> bool:
        """Whether an array over memory that only the device has is alive outside the package."""
        return False

    def array(self, view: View | None = None, *, write: bool = True) -> Any:
        """Return the memory as an array of the device's library, without a copy.

        Parameters
        ----------
        view
            Its form; all bytes by default.
        write
            Whether the array will be written to: the host copy becomes stale.

        Raises
        ------
        ExportError
            If the library has no such arrays.
        """
        if view is None:
            return self.host(write=write)
        return np.ndarray(view.shape, view.dtype, self.host(write=write), view.offset, view.strides)

    def dlpack(self, view: View, stream: Any, **wanted: Any) -> Any:
        """Return the DLPack capsule of an array over this memory, see `capsule`.

        Raises
        ------
        ExportError
            If the library has no such arrays.
        """
        return capsule(self.array(view), stream, **wanted)

    def interface(self, view: View) -> dict[str, Any]:
        """Return the CUDA Array Interface of an array over this memory; from now on the buffer stays in place.

        Raises
        ------
        AttributeError
            If the memory is not that of a GPU which CUDA knows.
        """
        raise AttributeError("no __cuda_array_interface__: the values are not in the memory of a GPU of CUDA's")

    def publish(self) -> None:
        """Show what the host has written to arrays over the memory of the device."""

    def show(self, array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Return an array over the host copy that is about to be given out, of values that messages call ``name``."""
        return array


class RemoteBuffer(Buffer):
    """Bytes in a memory of the device's own; the host copy is made when it is first asked for.

    A device derives from it: it sets ``address`` and implements `pinned`, `upload` and `download`.

    Arrays over the host copy that were given out (`show`) turn read-only when the values go to the device: what is
    written to them from then on would be lost. Slices of them, and what other libraries made of them, cannot be
    reached: while one is alive, a checksum of the host copy tells whether it was written to, and who next asks for the
    values is told.

    Parameters
    ----------
    nbytes
        Size.
    zeroed
        Whether the device memory is known to be zero, so that a first host copy need not be fetched.
    """

    def __init__(self, nbytes: int, *, zeroed: bool = True) -> None:
        self.nbytes = nbytes
        self.address = 0
        self.where = Where.DEVICE
        self._zeroed = zeroed
        self._raw = np.empty(0, dtype=np.uint8)
        self._bytes = self._raw
        self._references = sys.getrefcount(self._raw)
        self._writers: list[weakref.ref[npt.NDArray[Any]]] = []
        self._readers: list[weakref.ref[npt.NDArray[Any]]] = []
        self._name = ""
        self._seal: int | None = None

    def pinned(self) -> npt.NDArray[np.uint8]:
        """Return ``nbytes`` of host memory, zeroed, that the device copies from and to fast."""
        return np.zeros(self.nbytes, dtype=np.uint8)

    def host(self, *, write: bool = False) -> npt.NDArray[np.uint8]:
        """Return the host copy, current; with ``write`` the device copy becomes stale."""
        self._prepare_host()
        sealed = self._seal is not None
        self._open()
        found = super().host(write=write)
        if sealed and not write:
            self._close()
        self._doubt()
        return found

    def show(self, array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Return an array over the host copy that is about to be given out, of values that messages call ``name``."""
        self._name = name
        shown = self._writers if array.flags.writeable else self._readers
        shown[:] = [*(known for known in shown if known() is not None), weakref.ref(array)]
        return array

    def _close(self) -> None:
        """Let arrays over the host copy be written no more, from now on the device has the values."""
        for known in self._writers:
            if (array := known()) is not None:
                array.flags.writeable = False
        readers = sum(known() is not None for known in self._readers)
        writers = sys.getrefcount(self._raw) - self._references - readers
        self._seal = zlib.crc32(self._bytes.data) if writers > 0 else None

    def _open(self) -> None:
        """Raise `DatError` if the host copy was written to after `_close`."""
        seal, self._seal = self._seal, None
        if seal is not None and zlib.crc32(self._bytes.data) != seal:
            self.where = Where.DEVICE
            raise DatError(
                f"dat {self._name!r}: an array that was taken of its values before loops ran was written to after "
                "them, and the device does not know what was written: take `data` anew after loops"
            )

    def _prepare_host(self) -> None:
        """Make the host copy, if there is none yet."""
        if not self._raw.size and self.nbytes:
            self._raw = self.pinned()
            self._bytes = self._raw[: self.nbytes]
            self._references = sys.getrefcount(self._raw)
            if self._zeroed and self.where is Where.DEVICE and not self.lent:
                self.where = Where.BOTH

    def landing(self) -> npt.NDArray[np.uint8] | None:
        """Return the host copy if the device's values have to be copied there; then call `landed`. None: it is current.

        Also None where somebody else may change the values: then `host` has to order who comes first, and to look.
        """
        self._prepare_host()
        if self.where is not Where.DEVICE or not self.nbytes or self.lent or self._seal is not None:
            return None
        return self._bytes

    def landed(self) -> None:
        """Note that the device's values have come to the host."""
        self.where = Where.BOTH

    def device(self, *, write: bool = False) -> int:
        """Return the device address, current; with ``write`` the host copy becomes stale."""
        leaves = self._name and self.where is Where.HOST
        address = super().device(write=write)
        if leaves:
            self._close()
        self._doubt()
        return address

    def _doubt(self) -> None:
        """Trust the host copy once only while somebody may change the values unseen."""
        if self.where is Where.BOTH and self.lent:
            self.where = Where.DEVICE

    def array(self, view: View | None = None, *, write: bool = True) -> Any:
        """Return the device memory as an array of the device's library."""
        raise ExportError("this device has no arrays to share: use read() and write(), which copy")

    def publish(self) -> None:
        """Show what the host has written to arrays over the memory of the device."""
        if self.where is Where.HOST and self.lent:
            self.device()

    def written(self) -> None:
        """Note that the device holds newer values."""
        self._zeroed = False
        self.where = Where.DEVICE
