"""The memory bandwidth of this machine, measured: what useful bytes of loops are compared with.

It is measured once for each machine and kept in the cache folder.

Source: J. D. McCalpin, "Memory bandwidth and machine balance in current high performance computers",
IEEE TCCA Newsletter, December 1995 (the STREAM benchmark: copy and triad). The sum, which only reads, is ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.core.processors import available_processors
from fluxloom.device.base import Device
from fluxloom.toolchain import compile_flags, find_compiler, load_library
from fluxloom.toolchain.cache import content_digest, open_cache

if TYPE_CHECKING:
    from fluxloom.perf.model import Roofline

__all__ = [
    "Bandwidth", "BandwidthMeter", "Meter", "available_memory", "available_threads", "best_roof", "last_level_cache",
    "measured_bandwidth", "meter_for", "meter_of_size",
]  # fmt: skip

_LOCAL_RANKS = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
"""Where MPICH and Intel MPI, Open MPI, and MVAPICH say how many ranks a host has."""

_SIZE = "FLUXLOOM_METER_BYTES"
"""Bytes of each of the arrays, instead of what is chosen: less than the caches hold measures these."""

_LARGEST = 256 << 20
_SMALLEST = 8 << 20
_LEAST = 64 << 10
_TIMES_CACHE = 4
_COPIES = ("fl_copy_plain", "fl_copy_stream", "fl_copy_memcpy")
_SUMS = ("fl_sum_plain", "fl_sum_streams", "fl_sum_ahead")
_IN_A_ROW = 6
"""Passes of a kind, one after the other, where caches may hold the arrays: the first ones fetch what others evicted."""

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
    read_gbs
        Best sum of an array, which writes nothing: in one stream, in four, or in four with lines asked for ahead. None:
        not measured.
    update_gbs
        ``a = s - a`` in place, which reads and writes as much as a copy, but no line that it has not read. None: not
        measured.
    """

    copy_gbs: float
    triad_gbs: float
    copy_plain_gbs: float
    threads: int
    bytes: int
    read_gbs: float | None = None
    update_gbs: float | None = None


class Meter:
    """Passes over arrays in the memory of a device; `measure` may be called between other work.

    Parameters
    ----------
    passes
        What goes over the arrays once and returns the seconds, by the name of its kernel: copies ``fl_copy_...``,
        the plain one among them, ``fl_triad``, and where there are any ``fl_update`` and sums ``fl_sum_...``.
    nbytes
        Bytes of an array.
    threads
        Of the measurement.
    read
        Bytes that a sum reads and an update reads and writes, if not one array.
    row
        Passes of a kind that follow each other.
    arrays
        The arrays, where the passes know their addresses only.

    Attributes
    ----------
    bytes, threads
        Bytes of an array, and threads.
    """

    def __init__(
        self, passes: Mapping[str, Callable[[], float]], nbytes: int, threads: int, *,
        read: int = 0, row: int = 1, arrays: object = None,
    ) -> None:  # fmt: skip
        self._passes, self._arrays = passes, arrays
        self.bytes, self.threads = nbytes, threads
        self._read, self._row = read or nbytes, row

    def measure(self, repeats: int = 5) -> Bandwidth:
        """Return the best of ``repeats`` passes of each kind (the first pass warms up and is not counted)."""
        best = dict.fromkeys(self._passes, float("inf"))
        for number in range(repeats + 1):
            for name, run in self._passes.items():
                seconds = min(run() for _ in range(self._row))
                best[name] = min(best[name], seconds if number or not repeats else float("inf"))

        def fastest(kind: str, nbytes: int) -> float | None:
            """Return the bandwidth of the best passes of a kind, where there are any."""
            found = [seconds for name, seconds in best.items() if name.startswith(kind)]
            return 1e-9 * nbytes / min(found) if found else None

        copied = 2e-9 * self.bytes
        return Bandwidth(
            copy_gbs=copied / min(seconds for name, seconds in best.items() if name.startswith("fl_copy")),
            triad_gbs=1.5 * copied / best["fl_triad"],
            copy_plain_gbs=copied / best["fl_copy_plain"],
            threads=self.threads,
            bytes=self.bytes,
            update_gbs=fastest("fl_update", 2 * self._read),
            read_gbs=fastest("fl_sum", self._read),
        )


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


def best_roof(found: Iterable[Bandwidth]) -> Roofline:
    """Return the ceilings of memory: of each kind the fastest that was measured, as nothing may be above a bound."""
    from fluxloom.perf.model import Roofline

    known = list(found)
    reads = [item.read_gbs for item in known if item.read_gbs is not None]
    updates = [item.update_gbs for item in known if item.update_gbs is not None]
    return Roofline(
        max(item.copy_gbs for item in known), read_gbs=max(reads, default=None), update_gbs=max(updates, default=None)
    )


def meter_of_size(device: Device, threads: int, footprint: int) -> Meter | None:
    """Return a meter whose copies and sums pass over so many bytes: in the caches as far as such data are.

    None where the device has a meter of its own: what it measures is its memory.

    Parameters
    ----------
    device, threads
        As for `meter_for`.
    footprint
        Bytes of all arrays that a loop reads or writes, again and again.
    """
    if getattr(device, "meter", None) is not None:
        return None
    return BandwidthMeter(threads, max(_LEAST, footprint // 2), both=True)


class BandwidthMeter(Meter):
    """Three arrays and a compiled STREAM; `measure` may be called between other work.

    Parameters
    ----------
    threads
        Threads to use; 0: all cores of the process.
    nbytes
        Bytes of one array; 0: at least four last-level caches, at most 256 MiB (the cache may ask for
        more), and never more than an eighth of the free memory.
    both
        Whether sums and updates take two arrays, as a copy touches two, and passes of a kind follow each other: for
        data of ``2 nbytes`` that caches may hold.

    Attributes
    ----------
    threads, bytes
        Threads, and bytes of an array.
    kept
        Returns the last sum.

    Raises
    ------
    DeviceUnavailable
        When there is no C compiler.
    SolverError
        When the arrays do not fit into memory.
    """

    def __init__(self, threads: int = 0, nbytes: int = 0, both: bool = False) -> None:
        compiler = find_compiler()
        wanted = threads or available_threads()
        threads = wanted if compiler.openmp else 1
        # Ordinary loops must stay loops: without these flags compilers turn the plain copy into memcpy.
        loops = ["-fno-builtin"]
        if compiler.family == "gcc":
            loops.append("-fno-tree-loop-distribute-patterns")
        source = resources.files("fluxloom.device").joinpath("bandwidth.c").read_text()
        library = load_library(source, name="bandwidth", flags=compile_flags(compiler, extra=loops))
        nbytes = (nbytes or _default_size()) // 64 * 64
        n = nbytes // 8
        try:
            self._raw = np.empty(3 * n + 8, dtype=np.float64)
        except MemoryError:
            raise SolverError(
                f"out of memory: measuring the bandwidth needs 3 x {nbytes >> 20} MiB; free some or pass nbytes"
            ) from None
        a = _aligned(self._raw)
        b, c, read = a + nbytes, a + 2 * nbytes, 2 * n if both else n
        counts = [ctypes.c_int64, ctypes.c_int]

        def timed(name: str, elements: int, *arrays: int) -> Callable[[], float]:
            """Return what runs a function of the library, which returns the seconds."""
            call = library.function(name, [ctypes.c_void_p] * len(arrays) + counts, ctypes.c_double)
            return lambda: call(*arrays, elements, threads)

        library.function("fl_fill", [ctypes.c_void_p] * 3 + counts)(a, b, c, n, threads)
        self.kept: Callable[[], float] = library.function("fl_kept", [], ctypes.c_double)
        passes = {name: timed(name, n, a, c) for name in _COPIES}
        passes |= {"fl_triad": timed("fl_triad", n, a, b, c)}
        passes |= {name: timed(name, read, a) for name in ("fl_update", *_SUMS)}
        super().__init__(passes, nbytes, threads, read=8 * read, row=_IN_A_ROW if both else 1)


def available_threads() -> int:
    """Return how many cores this process may use."""
    return available_processors()


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
    if given := asked_size():
        return max(_SMALLEST, given)
    ranks = ranks_here()
    wanted = max(_LARGEST, _TIMES_CACHE * last_level_cache() // ranks)
    return max(_SMALLEST, min(wanted, available_memory() // (8 * ranks)))


def asked_size() -> int:
    """Return the bytes of one array that ``FLUXLOOM_METER_BYTES`` asks for; 0 where it says nothing."""
    given = os.environ.get(_SIZE, "")
    return int(given) if given.isdigit() else 0


def ranks_here() -> int:
    """Return how many ranks their launcher has started on this host; 1 where it does not say."""
    found = [os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()]
    return max(1, int(found[0])) if found else 1


def _aligned(array: npt.NDArray[np.float64]) -> int:
    """Return the first address in an array that is a multiple of 64."""
    return (array.ctypes.data + 63) & ~63


def measured_bandwidth(device: Device, threads: int = 0, *, fresh: bool = False, repeats: int = 3) -> Bandwidth:
    """Return the bandwidth of the memory of a device, measured now or by an earlier process on this machine.

    What was measured is kept in the cache folder, one file for each machine, device, number of threads, number of
    ranks beside this one and ``FLUXLOOM_METER_BYTES``. Benchmarks, which compare with the same minute, ask for a
    ``fresh`` value.

    Parameters
    ----------
    device
        Whose memory.
    threads
        As for `BandwidthMeter`: 0 are all cores of the process.
    fresh
        Measure now, and keep that.
    repeats
        Passes of a measurement, of which the best counts.

    Raises
    ------
    DeviceUnavailable, SolverError
        As for `BandwidthMeter`.
    """
    words = _identity(device, threads)
    name = f"bandwidth-{content_digest(words)[:40]}.json"
    known = None if fresh else _kept(name)
    if known is not None:
        return known
    found = meter_for(device, threads).measure(repeats)
    text = json.dumps({"measured on": words, **asdict(found)}, indent=1)
    with contextlib.suppress(FluxloomError):  # what cannot be kept is measured again
        open_cache().write(name, text.encode())
    return found


def _kept(name: str) -> Bandwidth | None:
    """Return what an earlier process measured; None where there is nothing, or nothing that can be read."""
    with contextlib.suppress(FluxloomError, OSError, ValueError, TypeError, AttributeError):
        path = open_cache().find(name)
        if path is not None:
            record = json.loads(path.read_text(encoding="utf-8"))
            found = Bandwidth(**{key: value for key, value in record.items() if key != "measured on"})
            return found if found.copy_gbs > 0.0 else None
    return None


def _identity(device: Device, threads: int) -> list[str]:
    """Return what a measurement depends on, in words."""
    if getattr(device, "meter", None) is None:
        memory = f"{_processor()}, {threads or available_threads()} threads"
    else:
        memory = f"{device.name} {getattr(device, 'identity', '')} {device.describe()}"
    return [platform.node(), memory, f"{ranks_here()} ranks", f"{asked_size()} bytes"]


def _processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model of the processor, or its architecture where the system does not say."""
    with contextlib.suppress(OSError):
        match = re.search(r"^model name\s*:\s*(.*)$", path.read_text(errors="replace"), re.MULTILINE)
        if match:
            return match[1].strip()
    return platform.machine()
