"""What every device offers: buffers with a host side, programs, and sequences of calls."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import FLOAT64, Scalar
from fluxloom.core.errors import SolverError

__all__ = ["Buffer", "Call", "Device", "Launch", "Program", "RemoteBuffer", "Resources", "Sequencer", "Where"]

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


class RemoteBuffer(Buffer):
    """Bytes in a memory of the device's own; the host copy is made when it is first asked for.

    A device derives from it: it sets ``address`` and implements `pinned`, `upload` and `download`.

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

    def pinned(self) -> npt.NDArray[np.uint8]:
        """Return ``nbytes`` of host memory, zeroed, that the device copies from and to fast."""
        return np.zeros(self.nbytes, dtype=np.uint8)

    def host(self, *, write: bool = False) -> npt.NDArray[np.uint8]:
        """Return the host copy, current; with ``write`` the device copy becomes stale."""
        if not self._raw.size and self.nbytes:
            self._raw = self.pinned()
            self._bytes = self._raw[: self.nbytes]
            self._references = sys.getrefcount(self._raw)
            if self._zeroed and self.where is Where.DEVICE:
                self.where = Where.BOTH
        return super().host(write=write)

    def written(self) -> None:
        """Note that the device holds newer values."""
        self._zeroed = False
        self.where = Where.DEVICE


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel needs: registers and local (spilled) bytes an item, shared bytes a group."""

    registers: int = 0
    local: int = 0
    shared: int = 0


class Program(ABC):
    """A loaded translation unit.

    Attributes
    ----------
    vectorised
        For each line of the source that the compiler vectorised, what it said (CPU).
    compiled, seconds
        Whether it had to be compiled now, and how long that took.
    """

    vectorised: Mapping[int, str]
    compiled: bool
    seconds: float

    def resources(self, symbol: str) -> Resources | None:
        """Return what a kernel needs, where the driver tells."""
        return None


@dataclass(frozen=True)
class Launch:
    """One kernel of a call.

    Attributes
    ----------
    symbol
        Its function.
    items
        Work items wanted; rounded up to whole groups.
    block
        Work items a group.
    tail
        Values of its trailing 64-bit parameters.
    """

    symbol: str
    items: int = 1
    block: int = 1
    tail: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Call:
    """A generated function with its arguments: one launch on a CPU, one or several on a GPU.

    Attributes
    ----------
    name
        For profilers.
    words
        One 8-byte word a parameter (address, integer or double); may be changed in place between runs.
    kept
        What has to stay alive.
    """

    name: str
    program: Program
    words: npt.NDArray[np.int64]
    launches: tuple[Launch, ...]
    kept: list[Any] = field(default_factory=list)


class Sequencer(ABC):
    """A fixed sequence of calls, replayed as one.

    Attributes
    ----------
    seconds, counts
        Time spent in each call and how often it ran. Devices that work asynchronously measure time
        only while ``device.profile`` is set, and keep it up to date with `settle`.
    """

    seconds: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]

    @abstractmethod
    def __call__(self) -> None:
        """Run the sequence once."""

    def refresh(self) -> None:  # noqa: B027 - most devices read the words at each run
        """Take notice of changed argument words."""

    def settle(self) -> None:  # noqa: B027 - only asynchronous devices have something to wait for
        """Bring ``seconds`` up to date; waits for the device if need be."""

    def reset(self) -> None:
        """Set the counters to zero."""
        self.settle()
        self.seconds[:] = 0
        self.counts[:] = 0


class Device(ABC):
    """A processor that runs loops.

    Attributes
    ----------
    name
        As given to `Context`.
    native
        Whether loops run as generated code (False: as Python functions).
    dialect
        Language of the generated code: a name known to `fluxloom.codegen.dialect`.
    shared
        Whether host and device share memory.
    items
        Whether loops run as kernels of work items (False: as functions that loop).
    profile
        Whether the time of each call is measured where that costs something.
    """

    name: str
    native: bool
    dialect: str = ""
    shared: bool = True
    items: bool = False
    profile: bool = False

    @abstractmethod
    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        """Return a zeroed buffer."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line about the hardware behind the device."""

    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> Program:
        """Compile a translation unit.

        Raises
        ------
        CompileError
            With the path of the source and what the compiler said.
        """
        raise NotImplementedError(f"{self.name} compiles nothing")

    def sequencer(self, calls: Sequence[Call]) -> Sequencer:
        """Return a replayable sequence of calls."""
        raise NotImplementedError(f"{self.name} runs no generated code")

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that sets every component of a global: address, components, bytes of one, its bits."""
        raise NotImplementedError(f"{self.name} runs no generated code")

    def resident(self, array: npt.NDArray[Any]) -> tuple[int, Any]:
        """Return the device address of a read-only table, and what keeps it alive."""
        return array.ctypes.data, array

    def synchronize(self) -> None:  # noqa: B027 - only asynchronous devices have something to wait for
        """Wait until everything that was asked for is done."""

    @property
    def refuses_double(self) -> bool:
        """Whether the device has no double precision."""
        return bool(self.refuses(FLOAT64))

    def refuses(self, scalar: Scalar) -> str:
        """Return why values of a type cannot be stored or computed here, or an empty string."""
        return ""

    def atomic_add(self, scalar: Scalar) -> bool:
        """Whether indirect increments of a type can be added atomically."""
        return True
