"""What data and loops share: one device, its precision, its plans. Nothing in the package is global.

What belongs to a set is kept with it, and goes with it: dats, globals and loops compare by nothing but identity.
"""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import CommError, DeviceUnavailable, OutOfMemory, did_you_mean
from fluxloom.core.registry import Registry, load_object
from fluxloom.device.base import Buffer, Device
from fluxloom.device.cpu import CpuDevice
from fluxloom.dsl.declare.links import TRANSPORTS, Links, Reduced
from fluxloom.dsl.declare.schedule import Schedule

if TYPE_CHECKING:
    from fluxloom.dsl.declare.observe import Observer

__all__ = ["Plans", "Runtime", "among", "device_registry", "open_device", "unique"]

Made = TypeVar("Made")


class Keeper(Protocol):
    """What plans can be kept with: a set."""

    plans: dict[Hashable, Any]


class Plans(dict[Hashable, Any]):
    """What is made once a context, by its key; what is made once a set is in the dictionary that `of` returns."""

    def __init__(self) -> None:
        super().__init__()
        self._sets: WeakSet[Keeper] = WeakSet()

    def of(self, over: Keeper) -> dict[Hashable, Any]:
        """Return what is kept with a set: plans hold the maps that lead from it, which are freed when it is."""
        self._sets.add(over)
        return over.plans

    def once(self, over: Keeper, key: Hashable, make: Callable[[], Made], *held: object) -> Made:
        """Return what is kept with a set by its key, made if it is not there yet; ``held`` lives as long."""
        known = self.of(over)
        if key not in known:
            known[key] = (make(), held)
        return known[key][0]

    def known(self) -> set[Hashable]:
        """Return the keys of all that is kept."""
        return {*self, *(key for over in self._sets for key in over.plans)}

    def forget(self, known: Collection[Hashable]) -> None:
        """Drop what has other keys."""
        for kept in (self, *(over.plans for over in self._sets)):
            for key in [key for key in kept if key not in known]:
                del kept[key]


_TAGS = 32768
"""Tags that every MPI has."""

_MOST_THREADS = 4096
"""Threads of a context; more are a mistake, for which the memory of their stacks does not suffice."""


def device_registry() -> Registry[Any]:
    """Return the known devices: a name and a function of the threads and the choice behind a colon."""
    registry: Registry[Any] = Registry("device", group="fluxloom.devices", error=DeviceUnavailable)
    registry.register("cpu", lambda threads, _choice: CpuDevice(threads))
    registry.register("cuda", lambda _threads, choice: _cuda(choice))
    registry.register("opencl", lambda _threads, choice: _opencl(choice))
    registry.register("reference", lambda _threads, _choice: load_object("fluxloom.device.reference:ReferenceDevice")())
    return registry


def _cuda(choice: str) -> Device:
    from fluxloom.device.cuda.device import CudaDevice

    if choice and not choice.isdigit():
        raise DeviceUnavailable(f"device 'cuda:{choice}': behind the colon stands the number of a GPU, as in cuda:0")
    return CudaDevice(int(choice or 0))


def _opencl(choice: str) -> Device:
    from fluxloom.device.opencl.device import OpenClDevice

    return OpenClDevice(choice)


def open_device(text: str, threads: int = 0) -> Device:
    """Return the device that ``"name"`` or ``"name:choice"`` stands for.

    Raises
    ------
    DeviceUnavailable
        If it is unknown or something it needs is missing.
    """
    if not isinstance(text, str):
        raise DeviceUnavailable(f"a device is a name, as in 'cpu', or a device object, not {type(text).__name__}")
    name, colon, choice = text.partition(":")
    make = device_registry()[name]
    if colon and name in ("cpu", "reference"):
        advice = "; threads are said by themselves: --threads, or threads=" if name == "cpu" else ""
        raise DeviceUnavailable(f"device {text!r}: {name} has no choice behind a colon{advice}")
    return make(threads, choice)


class Held(Protocol):
    """What has memory on the device: a dat."""

    name: str
    buffer: Buffer


class Runtime(ABC):
    """What data and loops share of a context, which declares them; see `fluxloom.dsl.context.Context`."""

    def __init__(
        self,
        device: str | Device = "cpu",
        *,
        threads: int = 0,
        schedule: Schedule | None = None,
        tuning: bool = True,
        comm: Comm | None = None,
        transport: str = "auto",
        overlap: bool = True,
        check: bool | None = None,
    ) -> None:
        if transport not in ("auto", *TRANSPORTS):
            raise CommError(f"transport {transport!r}{did_you_mean(str(transport), TRANSPORTS)}: one of auto, "
                            f"{', '.join(TRANSPORTS)}")
        if not isinstance(comm, Comm | None):
            raise CommError(f"comm: a communicator as fluxloom.detect() returns it is wanted, not {comm!r}")
        if not isinstance(threads, int | np.integer) or not 0 <= threads <= _MOST_THREADS:
            raise DeviceUnavailable(f"threads={threads!r}: give a number up to {_MOST_THREADS}, or 0 for all cores")
        self.transport, self.overlap = transport, overlap
        self.transport_seconds: list[dict[str, float]] = []
        """What was measured for the exchanges so far, where there was a choice of transports."""
        self.comm: Comm = comm if comm is not None else SelfComm()
        self.observer: Observer | None = None
        """Sees every loop and chain before it runs, and may run it in its own way."""
        self.check = os.environ.get("FLUXLOOM_CHECK", "0") not in ("", "0") if check is None else bool(check)
        self.checker: Callable[[Any], None] | None = self._new_checker() if self.check else None
        """In the checking mode, checks a loop before it runs."""
        self.device: Device = device if isinstance(device, Device) else open_device(device, threads)
        self.schedule = schedule if schedule is not None else Schedule.auto()
        self.tuning = tuning
        self.plans = Plans()
        self.epoch = 0
        """Counts how often buffers of dats were exchanged; loops compare it before they run."""
        self.waiting: list[Reduced] = []
        """Globals whose sum over the ranks has not been formed yet, in the order in which loops met them."""
        self._tags = 0
        self._links: Links | None = None
        self._allocated = 0
        self._tables: dict[int, tuple[Any, int, Any]] = {}
        self._dats: weakref.WeakSet[Held] = weakref.WeakSet()

    @abstractmethod
    def _new_checker(self) -> Callable[[Any], None]:
        """Return what checks a loop before it runs."""

    @property
    def distributed(self) -> bool:
        """Whether there are several ranks."""
        return self.comm.size > 1

    @property
    def links(self) -> Links:
        """What the ranks know about each other's devices; collective at its first use."""
        if self._links is None:
            self._links = Links(self.device, self.comm, self.transport)
        return self._links

    def next_tag(self) -> int:
        """Return a number for the next channel: the same on every rank, as all declare the same things."""
        self._tags = (self._tags + 1) % _TAGS
        return self._tags

    def settle(self, data: Any = None) -> None:
        """Let an observer that put off loops run them, and tell it what the host looks at."""
        if self.observer is not None:
            self.observer.settle()
        if data is not None and self.observer is not None:
            self.observer.seen(data)

    @property
    def threads(self) -> int:
        """Threads a loop may use."""
        return self.schedule.threads or getattr(self.device, "threads", 1)

    def allocate(self, nbytes: int) -> Buffer:
        """Return a zeroed buffer on the device.

        Raises
        ------
        OutOfMemory
            With what was asked for, what is free, and the largest dats.
        """
        self._allocated += 1
        try:
            return self.device.allocate(nbytes, self._allocated)
        except OutOfMemory as error:
            largest = sorted(self._dats, key=lambda d: -d.buffer.nbytes)[:5]
            held = ", ".join(f"{d.name} {d.buffer.nbytes / 2**20:.0f} MiB" for d in largest)
            raise OutOfMemory(f"{error}; the largest dats are {held}" if held else str(error)) from error

    def resident(self, array: npt.NDArray[Any]) -> tuple[int, Any]:
        """Return the device address of a read-only table and what keeps it there; a table is sent once."""
        if self.device.shared:
            return self.device.resident(array)
        key = id(array)
        known = self._tables.get(key)
        if known is None or known[0]() is not array:
            word, kept = self.device.resident(array)
            gone = weakref.ref(array, lambda _ref: self._tables.pop(key, None))
            known = self._tables[key] = (gone, word, kept)
        return known[1], (array, known[2])

    def register(self, dat: Held) -> None:
        """Remember a dat for reports about memory."""
        self._dats.add(dat)

    def owner(self, address: int, nbytes: int) -> Held | None:
        """Return a dat whose memory has some of these bytes, if there is one."""
        end = address + nbytes
        return next(
            (d for d in self._dats if d.buffer.address < end and address < d.buffer.address + d.buffer.nbytes), None
        )

    def synchronize(self) -> None:
        """Wait until the device has done everything that was asked for."""
        self.device.synchronize()

    @property
    def profile(self) -> bool:
        """Whether the time of each loop is measured on devices where that costs something."""
        return self.device.profile

    @profile.setter
    def profile(self, value: bool) -> None:
        self.device.profile = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.device.name}, threads={self.threads})"


T = TypeVar("T")


def among(item: object, items: Iterable[object]) -> bool:
    """Return whether this very object is one of ``items``."""
    return any(item is other for other in items)


def unique(items: Iterable[T]) -> list[T]:
    """Return every object once, in order of first appearance."""
    return list({id(item): item for item in items}.values())
