"""A context: one device, its precision, its plans. Nothing in the package is global."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.core.layout import Layout
from fluxloom.core.registry import Registry
from fluxloom.device.base import Buffer, Device
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.reference import ReferenceDevice
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.maps import OffsetMap, RaggedMap, TableMap
from fluxloom.dsl.ragged import RaggedLayout
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.sets import Grid, Set, Subset

__all__ = ["Context", "device_registry"]


def device_registry() -> Registry[Any]:
    """Return the known devices: a name and a function of the number of threads each."""
    registry: Registry[Any] = Registry("device", group="fluxloom.devices", error=DeviceUnavailable)
    registry.register("cpu", lambda threads: CpuDevice(threads))
    registry.register("reference", lambda _threads: ReferenceDevice())
    return registry


class Context:
    """Where sets, dats and loops live.

    Parameters
    ----------
    device
        ``"cpu"`` or ``"reference"``, or a device object.
    threads
        Threads of the CPU device; 0: all cores of the process.
    schedule
        Choices that hold for every loop unless the loop says otherwise.
    tuning
        Whether recorded tuning results are used.

    Raises
    ------
    DeviceUnavailable
        If the device is unknown or something it needs is missing.
    """

    def __init__(
        self,
        device: str | Device = "cpu",
        *,
        threads: int = 0,
        schedule: Schedule | None = None,
        tuning: bool = True,
    ) -> None:
        self.device: Device = device if isinstance(device, Device) else device_registry()[device](threads)
        self.schedule = schedule if schedule is not None else Schedule.auto()
        self.tuning = tuning
        self.plans: dict[tuple[Any, ...], Any] = {}
        self.epoch = 0
        """Counts how often buffers of dats were exchanged; loops compare it before they run."""
        self._allocated = 0

    @property
    def threads(self) -> int:
        """Threads a loop may use."""
        return self.schedule.threads or getattr(self.device, "threads", 1)

    def allocate(self, nbytes: int) -> Buffer:
        """Return a zeroed buffer on the device."""
        self._allocated += 1
        return self.device.allocate(nbytes, self._allocated)

    # ------------------------------------------------------------------------------ declarations
    def set(self, size: int, name: str) -> Set:
        """Declare a set."""
        return Set(self, size, name)

    def grid(
        self,
        shape: tuple[int, ...],
        name: str = "grid",
        *,
        periodic: bool | tuple[bool, ...] = False,
        ghost: int | tuple[int, ...] = 0,
    ) -> Grid:
        """Declare a lattice, slowest axis first."""
        return Grid(self, shape, name, periodic, ghost)

    def subset(self, parent: Set, indices: npt.ArrayLike, name: str = "") -> Subset:
        """Declare a subset by element numbers or a mask."""
        return Subset(parent, indices, name)

    def map(self, source: Set, target: Set, table: npt.ArrayLike, name: str = "map") -> TableMap:
        """Declare a map by its table ``(source.size, arity)``."""
        return TableMap(source, target, table, name)

    def ragged(
        self,
        source: Set,
        target: Set,
        offsets: npt.ArrayLike,
        indices: npt.ArrayLike,
        name: str = "ragged",
        layout: RaggedLayout | None = None,
    ) -> RaggedMap:
        """Declare a ragged map by compressed rows."""
        return RaggedMap(source, target, offsets, indices, name, layout)

    def stencil(self, grid: Grid, offsets: npt.ArrayLike, name: str = "stencil") -> OffsetMap:
        """Declare a stencil by its offsets ``(legs, dimensions)``."""
        return OffsetMap(grid, offsets, name)

    def dat(
        self,
        over: Set,
        data: npt.ArrayLike | None = None,
        name: str = "",
        *,
        shape: tuple[int, ...] | None = None,
        dtype: npt.DTypeLike | None = None,
        layout: Layout | None = None,
    ) -> Dat:
        """Declare values on a set."""
        return Dat(over, data, shape=shape, dtype=dtype, layout=layout, name=name)

    def scalar(self, value: npt.ArrayLike = 0.0, name: str = "", *, dtype: npt.DTypeLike | None = None) -> Global:
        """Declare a global value or small array."""
        return Global(self, value, dtype=dtype, name=name)

    def __repr__(self) -> str:
        return f"Context({self.device.name}, threads={self.threads})"
