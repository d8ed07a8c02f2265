"""The memory bandwidth of a device, measured once for each machine and kept in the cache folder."""

from __future__ import annotations

import contextlib
import json
import platform
import re
from dataclasses import asdict
from pathlib import Path

from fluxloom.core.errors import FluxloomError
from fluxloom.device.bandwidth import Bandwidth, asked_size, available_threads, meter_for, ranks_here
from fluxloom.device.base import Device
from fluxloom.toolchain.cache import content_digest, open_cache

__all__ = ["measured_bandwidth"]


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
