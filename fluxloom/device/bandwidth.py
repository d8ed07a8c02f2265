"""The memory bandwidth of this machine, measured: what every loop's useful bytes are compared with.

Source: J. D. McCalpin, "Memory bandwidth and machine balance in current high performance computers",
IEEE TCCA Newsletter, December 1995 (the STREAM benchmark: copy and triad).
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.toolchain import compile_flags, find_compiler, load_library

__all__ = [
    "Bandwidth",
    "BandwidthMeter",
    "Meter",
    "available_memory",
    "available_threads",
    "last_level_cache",
    "meter_for",
]

_LOCAL_RANKS = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
"""Where MPICH and Intel MPI, Open MPI, and MVAPICH say how many ranks a host has."""

_SIZE = "FLUXLOOM_METER_BYTES"
"""Bytes of each of the arrays, instead of what is chosen: less than the caches hold measures these."""

_LARGEST = 256 << 20
_SMALLEST = 8 << 20
_TIMES_CACHE = 4
_COPIES = ("fl_copy_plain", "fl_copy_stream", "fl_copy_memcpy")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Bandwidth:
    """Measured memory bandwidth; a gigabyte is 1e9 bytes, no write-allocate is counted.

    Attributes
    ----------
    copy_gbs
        Best copy ``c = a``: plain, with non-temporal stores, or the C library's ``memcpy``.
    triad_gbs
        ``c = a + s b`` with ordinary stores.
    copy_plain_gbs
        The copy with ordinary stores.
    threads
        Threads of the measurement.
    bytes
        Size of each of the three arrays.
    """

    copy_gbs: float
    triad_gbs: float
    copy_plain_gbs: float
    threads: int
    bytes: int


class Meter(Protocol):
    """Measures the memory of a device."""

    def measure(self, repeats: int = 5) -> Bandwidth:
        """Return the best of ``repeats`` passes."""
        ...


def meter_for(device: Device, threads: int = 0) -> Meter:
    """Return a meter of the memory in which a device keeps its buffers.

    Parameters
    ----------
    device
        Its method ``meter``, where it has one, makes the meter; otherwise the memory of the host is measured.
    threads
        As for `BandwidthMeter`.

    Raises
    ------
    DeviceUnavailable, SolverError
        As for `BandwidthMeter`.
    """
    make = getattr(device, "meter", None)
    return make() if make is not None else BandwidthMeter(threads)


class BandwidthMeter:
    """Three arrays and a compiled STREAM; `measure` may be called between other work.

    Parameters
    ----------
    threads
        Threads to use; 0: all cores of the process.
    nbytes
        Bytes of one array; 0: at least four last-level caches, at most 256 MiB (the cache may ask for
        more), and never more than an eighth of the free memory.

    Raises
    ------
    DeviceUnavailable
        When there is no C compiler.
    SolverError
        When the arrays do not fit into memory.
    """

    def __init__(self, threads: int = 0, nbytes: int = 0) -> None:
        compiler = find_compiler()
        wanted = threads or available_threads()
        self.threads = wanted if compiler.openmp else 1
        # Ordinary loops must stay loops: without these flags compilers turn the plain copy into memcpy.
        loops = ["-fno-builtin"]
        if compiler.family == "gcc":
            loops.append("-fno-tree-loop-distribute-patterns")
        source = resources.files("fluxloom.device").joinpath("bandwidth.c").read_text()
        library = load_library(source, name="bandwidth", flags=compile_flags(compiler, extra=loops))
        pointer, size, count = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
        self._copies = [library.function(name, [pointer, pointer, size, count], ctypes.c_double) for name in _COPIES]
        self._triad = library.function("fl_triad", [pointer] * 3 + [size, count], ctypes.c_double)
        self.bytes = (nbytes or _default_size()) // 64 * 64
        self._n = self.bytes // 8
        try:
            self._raw = [np.empty(self._n + 8, dtype=np.float64) for _ in range(3)]
        except MemoryError:
            raise SolverError(
                f"out of memory: measuring the bandwidth needs 3 x {self.bytes >> 20} MiB; free some or pass nbytes"
            ) from None
        self._a, self._b, self._c = (_aligned(array) for array in self._raw)
        fill = library.function("fl_fill", [pointer] * 3 + [size, count])
        fill(self._a, self._b, self._c, self._n, self.threads)

    def measure(self, repeats: int = 5) -> Bandwidth:
        """Return the best of ``repeats`` passes of each kind (the first pass warms up and is not counted)."""
        best = {name: float("inf") for name in (*_COPIES, "triad")}
        for number in range(repeats + 1):
            for name, copy in zip(_COPIES, self._copies, strict=True):
                seconds = copy(self._a, self._c, self._n, self.threads)
                best[name] = min(best[name], seconds if number else float("inf"))
            seconds = self._triad(self._a, self._b, self._c, self._n, self.threads)
            best["triad"] = min(best["triad"], seconds if number else float("inf"))
        moved = 2e-9 * self.bytes
        return Bandwidth(
            copy_gbs=moved / min(best[name] for name in _COPIES),
            triad_gbs=1.5 * moved / best["triad"],
            copy_plain_gbs=moved / best["fl_copy_plain"],
            threads=self.threads,
            bytes=self.bytes,
        )


def available_threads() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def last_level_cache(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Return the bytes of the largest cache of the first core, or 32 MiB where the system does not say."""
    sizes = []
    for path in root.glob("index*/size"):
        match = re.fullmatch(r"(\d+)([KMG]?)", path.read_text().strip())
        if match:
            sizes.append(int(match[1]) * _UNITS.get(match[2], 1))
    return max(sizes, default=32 << 20)


def available_memory() -> int:
    """Return the free bytes of memory, or 4 GiB where the system does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return 4 << 30
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else 4 << 30


def _default_size() -> int:
    """Return the bytes of one array: past the caches, within the memory, both of which all ranks of the host share."""
    if (given := os.environ.get(_SIZE, "")).isdigit():
        return max(_SMALLEST, int(given))
    ranks = ranks_here()
    wanted = max(_LARGEST, _TIMES_CACHE * last_level_cache() // ranks)
    return max(_SMALLEST, min(wanted, available_memory() // (8 * ranks)))


def ranks_here() -> int:
    """Return how many ranks their launcher has started on this host; 1 where it does not say."""
    found = [os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()]
    return max(1, int(found[0])) if found else 1


def _aligned(array: npt.NDArray[np.float64]) -> int:
    """Return the first address in an array that is a multiple of 64."""
    return (array.ctypes.data + 63) & ~63
