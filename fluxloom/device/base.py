"""What every device offers: buffers with a host side, and a name."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from enum import Enum

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["Buffer", "Device", "Where"]

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
    """

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
        """Whether a NumPy view of this buffer is alive outside the package."""
        return sys.getrefcount(self._raw) > self._references


class Device(ABC):
    """A processor that runs loops.

    Attributes
    ----------
    name
        As given to `Context`.
    native
        Whether loops run as generated code (False: as Python functions).
    """

    name: str
    native: bool

    @abstractmethod
    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        """Return a zeroed buffer."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line about the hardware behind the device."""
