"""Energy meters: the counters of GPUs and processors, where the machine lets one read them."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path
from typing import Protocol

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context

__all__ = ["EnergyMeter", "GpuEnergy", "ProcessorEnergy", "joules_of", "meter_of"]

POWERCAP = Path("/sys/class/powercap")


class EnergyMeter(Protocol):
    """Counts joules."""

    @property
    def place(self) -> str:
        """What it counts: two ranks that name the same place count the same joules."""
        ...

    def joules(self) -> float:
        """Return the energy since some moment in the past."""
        ...


class GpuEnergy:
    """The counter of an NVIDIA GPU (Volta and later), through its management library.

    Parameters
    ----------
    place
        Machine and bus address, as ``Device.identity``.

    Raises
    ------
    FluxloomError
        If there is no library, no such GPU, or it does not count.
    """

    def __init__(self, place: str) -> None:
        found = find_library("nvidia-ml") or "libnvidia-ml.so.1"
        try:
            self._library = ctypes.CDLL(found)
        except OSError as error:
            raise FluxloomError(f"energy: {error}") from None
        self._place, self._handle = place, ctypes.c_void_p()
        self._call("nvmlInit_v2")
        address = place.split()[-1].encode()
        self._call("nvmlDeviceGetHandleByPciBusId_v2", ctypes.c_char_p(address), ctypes.byref(self._handle))
        self.joules()

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise FluxloomError(f"energy: {name} of the NVIDIA management library ended with {status}")

    @property
    def place(self) -> str:
        """Machine and bus address."""
        return self._place

    def joules(self) -> float:
        """Return the energy since the driver was loaded."""
        millijoules = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", self._handle, ctypes.byref(millijoules))
        return 1e-3 * millijoules.value


class ProcessorEnergy:
    """The counters of all packages of this machine (RAPL), memory not included.

    Parameters
    ----------
    folder
        Where the kernel shows them.

    Raises
    ------
    FluxloomError
        If there are none, or they may not be read.
    """

    def __init__(self, folder: Path = POWERCAP) -> None:
        packages = sorted(path for path in folder.glob("intel-rapl:*") if path.name.count(":") == 1)
        if not packages:
            raise FluxloomError(f"energy: no counters in {folder}")
        self._packages, self._wrapped = packages, [0] * len(packages)
        self._last = [self._read(path, "energy_uj") for path in packages]

    @staticmethod
    def _read(package: Path, name: str) -> int:
        try:
            return int((package / name).read_text())
        except (OSError, ValueError) as error:
            raise FluxloomError(f"energy: {package / name} cannot be read: {error}") from None

    @property
    def place(self) -> str:
        """The machine."""
        return platform.node()

    def joules(self) -> float:
        """Return the energy; to be called at least once while a counter goes round (minutes)."""
        for k, package in enumerate(self._packages):
            now = self._read(package, "energy_uj")
            if now < self._last[k]:
                self._wrapped[k] += self._read(package, "max_energy_range_uj")
            self._last[k] = now
        return 1e-6 * (sum(self._last) + sum(self._wrapped))


def meter_of(context: Context) -> EnergyMeter | str:
    """Return the meter of what a context computes on, or why there is none."""
    device = context.device
    try:
        if device.items and not getattr(device, "is_cpu", False):
            place = str(getattr(device, "identity", ""))
            return GpuEnergy(place) if place else f"energy: the device {device.name} does not say which GPU it is"
        return ProcessorEnergy()
    except FluxloomError as error:
        return str(error)


def joules_of(context: Context, run: Callable[[], object]) -> float | str:
    """Return the energy of all places on which ranks run something, or why it is not known. Collective.

    Everything else that runs there counts, too.
    """
    comm, meter = context.comm, meter_of(context)
    reasons = [found for found in comm.allgather(meter if isinstance(meter, str) else "") if found]
    if reasons or isinstance(meter, str):
        return reasons[0]
    context.synchronize()
    comm.barrier()
    before = meter.joules()
    run()
    context.synchronize()
    comm.barrier()
    used: dict[str, float] = {}
    for place, joules in comm.allgather((meter.place, meter.joules() - before)):
        used[place] = max(joules, used.get(place, 0.0))
    return sum(used.values())
