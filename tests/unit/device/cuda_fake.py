"""A stand-in for CuPy: memory of the host plays that of a GPU, Python functions play kernels.

Streams are lazy: what is asked for happens when somebody waits. So a host copy that is changed too early, or
read too early, shows.
"""

from __future__ import annotations

import ctypes
import inspect
import weakref
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

H2D, D2H, D2D = 1, 2, 3


class CUDARuntimeError(RuntimeError):
    """An error of the runtime."""


class CUDADriverError(RuntimeError):
    """An error of the driver."""


class NVRTCError(RuntimeError):
    """An error of the compiler."""


class OutOfMemoryError(MemoryError):
    """An error of the memory pool."""


class Memory:
    """Memory that is in use until it is dropped."""

    def __init__(self, fake: FakeCupy, nbytes: int) -> None:
        self.bytes = np.empty(nbytes, dtype=np.uint8)
        self.bytes[: 1 << 20] = 0xA5  # never zero by luck
        fake.used += nbytes
        weakref.finalize(self, fake.give_back, nbytes)


class Pointer:
    """A place in memory."""

    def __init__(self, memory: Any, offset: int = 0) -> None:
        self.mem = memory
        self.ptr = (memory.ptr if isinstance(memory, Unowned) else memory.bytes.ctypes.data) + offset


class Unowned:
    """Memory of somebody else."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class Array:
    """An array in the memory of a GPU. Each `FakeCupy` has a class of its own.

    Attributes
    ----------
    values
        The memory as NumPy sees it.
    """

    fake: FakeCupy

    def __init__(
        self, shape: tuple[int, ...], dtype: Any = np.uint8, memptr: Any = None, strides: tuple[int, ...] | None = None
    ) -> None:
        kind = np.dtype(dtype)
        strides = np.empty(shape, kind).strides if strides is None else strides
        span = kind.itemsize + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if all(shape) else 0
        memptr = Pointer(Memory(self.fake, max(1, span))) if memptr is None else memptr
        raw: Any = (ctypes.c_uint8 * span).from_address(memptr.ptr)
        self._keep(np.ndarray(shape, kind, raw, 0, strides), memptr.mem, 0)

    def _keep(self, values: np.ndarray, memory: Any, number: int) -> Array:
        self.values, self.memory, self.number = values, memory, number
        self.shape, self.strides, self.dtype = values.shape, values.strides, values.dtype
        self.itemsize, self.nbytes = values.itemsize, values.nbytes
        return self

    def _like(self, values: np.ndarray) -> Array:
        return type(self).__new__(type(self))._keep(values, self.memory, self.number)

    @property
    def device(self) -> Any:
        """The GPU."""
        return SimpleNamespace(id=self.number)

    @property
    def data(self) -> Any:
        """Where it begins."""
        return SimpleNamespace(ptr=self.values.ctypes.data, mem=self.memory)

    def view(self, dtype: Any) -> Array:
        """Return the same bytes as another type."""
        return self._like(self.values.view(dtype))

    def __getitem__(self, where: Any) -> Array:
        return self._like(self.values[where])

    def __setitem__(self, where: Any, values: Any) -> None:
        """Set values in order with the current stream: what it was asked for is done first."""
        assert isinstance(values, Array | int | float), "CuPy takes no arrays from the host"
        self.fake.streams[-1].synchronize()
        self.values[where] = values.values if isinstance(values, Array) else values

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self) -> np.ndarray:
        """Return a copy on the host, in order with the current stream."""
        self.fake.streams[-1].synchronize()
        return self.values.copy()

    def __dlpack__(self, *, stream: Any = None, **wanted: Any) -> Any:
        """Return the array, the streams that are to be put in order, and what else was asked for."""
        return self, self.fake.streams[-1].ptr, stream, wanted


class Event:
    """An event; its time is that of the fake clock when the stream reaches it."""

    def __init__(self, fake: FakeCupy) -> None:
        self.fake, self.time, self.stream, self.ptr = fake, -1.0, None, len(fake.events)
        fake.events.append(self)

    def record(self, stream: Stream) -> None:
        """Ask for the time."""
        self.stream = stream
        stream.ask(lambda: setattr(self, "time", self.fake.clock))

    def synchronize(self) -> None:
        """Wait."""
        assert self.stream is not None
        self.stream.synchronize()


class Graph:
    """What was captured."""

    def __init__(self, work: list[Callable[[], None]]) -> None:
        self.work, self.launched = work, 0

    def launch(self, stream: Stream) -> None:
        """Ask for all of it."""
        self.launched += 1
        for item in self.work:
            stream.ask(item)


class Stream:
    """A stream that does nothing until somebody waits for it."""

    def __init__(self, fake: FakeCupy, ptr: int) -> None:
        self.fake, self.ptr = fake, ptr
        self.asked: list[Callable[[], None]] = []
        self.captured: list[Callable[[], None]] | None = None
        fake.made.append(self)

    def ask(self, work: Callable[[], None]) -> None:
        """Note what to do."""
        (self.asked if self.captured is None else self.captured).append(work)

    def synchronize(self) -> None:
        """Do all of it."""
        assert self.captured is None, "waiting is not allowed while a graph is captured"
        self.fake.waits += 1
        work, self.asked = self.asked, []
        for item in work:
            item()

    def wait_event(self, event: Event) -> None:
        """Wait, when this stream is waited for, for another one first."""
        other = event.stream
        assert other is not None
        self.fake.orders.append((other.ptr, self.ptr))
        self.ask(other.synchronize)

    def begin_capture(self) -> None:
        """Begin to note kernels instead of running them."""
        if self.fake.no_graphs:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not here")
        self.captured = []

    def end_capture(self) -> Graph:
        """Return what was noted."""
        assert self.captured is not None
        graph, self.captured = Graph(self.captured), None
        self.fake.graphs.append(graph)
        return graph

    def __enter__(self) -> Stream:
        self.fake.streams.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.streams.pop()


class Device:
    """A GPU, as a context manager."""

    def __init__(self, fake: FakeCupy, number: int) -> None:
        self.fake, self.number, self.before = fake, number, 0
        self.compute_capability = fake.capability

    def __enter__(self) -> Device:
        self.before, self.fake.current = self.fake.current, self.number
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.current = self.before


class FakeCupy(ModuleType):
    """The package: its state can be set before a device is made, and looked at afterwards."""

    def __init__(self, kernels: dict[str, Callable[..., None]] | None = None) -> None:
        super().__init__("cupy")
        self.__version__ = "14.2.0"
        self.__file__ = "cupy/__init__.py"
        self.kernels = kernels or {}
        self.driver_version, self.runtime_version, self.build_version, self.nvrtc_version = 13000, 13020, 13020, (13, 2)
        self.architectures: tuple[int, ...] = (75, 80, 86, 89, 90, 100, 120)
        self.count: int | Exception = 2
        self.capability = "90"
        self.capacity, self.used, self.freed = 1 << 30, 0, 0
        self.no_pinned = self.no_graphs = False
        self.refuse: Exception | None = None
        self.log = ""
        self.threads, self.registers = 1024, 40
        self.clock, self.waits, self.compilations, self.launches, self.current = 0.0, 0, 0, 0, 0
        self.made: list[Stream] = []
        self.streams: list[Stream] = [Stream(self, 0)]
        self.graphs: list[Graph] = []
        self.events: list[Event] = []
        self.orders: list[tuple[int, int]] = []
        self.ranges: list[str] = []
        self.everything = 0
        self.names: list[str] = []
        self.texts: list[str] = []
        self.options: tuple[str, ...] = ()
        self.ndarray = type("ndarray", (Array,), {"fake": self})
        self.asarray = lambda array: array.array
        self.cuda = SimpleNamespace(
            runtime=self._runtime(), driver=self._driver(), nvrtc=self._nvrtc(), nvtx=self._nvtx(),
            function=SimpleNamespace(Module=lambda: Module(self)),
            Stream=lambda non_blocking: Stream(self, 100 * len(self.made) + non_blocking),
            Event=lambda disable_timing=False: Event(self),
            Device=lambda number: Device(self, number),
            MemoryPointer=Pointer, UnownedMemory=Unowned,
            alloc=self._alloc, alloc_pinned_memory=self._pinned,
            get_current_stream=lambda: self.streams[-1],
            get_elapsed_time=lambda begin, end: end.time - begin.time,
            get_cuda_path=lambda: None,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------- memory
    def give_back(self, nbytes: int) -> None:
        """Note that memory was dropped."""
        self.used -= nbytes

    def get_default_memory_pool(self) -> Any:
        """Return the pool."""
        return SimpleNamespace(
            free_all_blocks=self._free_all, total_bytes=lambda: self.used, free_bytes=lambda: 1 << 20
        )

    def _free_all(self) -> None:
        self.freed += 1

    def _alloc(self, nbytes: int) -> Pointer:
        assert self.streams[-1].ptr, "allocated for the default stream"
        if self.used + nbytes > self.capacity:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes} bytes")
        return Pointer(Memory(self, nbytes))

    def _pinned(self, nbytes: int) -> Any:
        if self.no_pinned:
            raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")
        return bytearray(b"\x5a" * (nbytes + 100))

    # --------------------------------------------------------------------------------------- runtime
    def _runtime(self) -> Any:
        return SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            memcpyHostToDevice=H2D, memcpyDeviceToHost=D2H, memcpyDeviceToDevice=D2D,
            getDevice=lambda: self.current,
            setDevice=lambda number: setattr(self, "current", number),
            getDeviceCount=self._counted,
            getDeviceProperties=lambda number: {"name": f"Fake {number}".encode(), "major": 9, "minor": 0},
            driverGetVersion=lambda: self.driver_version,
            runtimeGetVersion=lambda: self.runtime_version,
            memGetInfo=lambda: (self.capacity - self.used, self.capacity),
            memcpyAsync=self._copy,
            memsetAsync=lambda to, value, nbytes, stream: self.find_stream(stream).ask(
                lambda: ctypes.memset(to, value, nbytes)
            ),
            deviceSynchronize=self._synchronize_all,
            streamQuery=lambda ptr: 600 if self.find_stream(ptr).asked else 0,
            eventQuery=lambda ptr: 600 if self.events[ptr].time < 0.0 else 0,
        )  # fmt: skip

    def _copy(self, to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        assert kind in (H2D, D2H, D2D)

        def work() -> None:
            self.clock += 1.0  # millisecond
            ctypes.memmove(to, source, nbytes)

        self.find_stream(stream).ask(work)

    def _counted(self) -> int:
        if isinstance(self.count, Exception):
            raise self.count
        return self.count

    def find_stream(self, ptr: int) -> Stream:
        """Return the stream with a handle."""
        return next(stream for stream in self.made if stream.ptr == ptr)

    def _synchronize_all(self) -> None:
        self.everything += 1
        for stream in self.made:
            stream.synchronize()

    # ------------------------------------------------------------------------------ driver, compiler
    def _driver(self) -> Any:
        attributes = {1: lambda: self.registers, 2: lambda: 16, 3: lambda: 256, 4: lambda: self.threads}
        return SimpleNamespace(
            CUDADriverError=CUDADriverError,
            CU_FUNC_ATTRIBUTE_NUM_REGS=1, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES=2,
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=3, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK=4,
            get_build_version=lambda: self.build_version,
            funcGetAttribute=lambda attribute, function: attributes[attribute](),
            launchKernel=self._launch,
        )  # fmt: skip

    def _launch(self, f: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int,
                table: int, extra: int) -> None:  # fmt: skip
        if self.refuse is not None:
            raise self.refuse
        assert (gy, gz, by, bz, shared, extra) == (1, 1, 1, 1, 0, 0)
        self.launches += 1
        name = self.names[f - 1]
        kernel = self.kernels[name]
        count = len(inspect.signature(kernel).parameters) - 1
        places = (ctypes.c_uint64 * count).from_address(table)
        words = [ctypes.c_int64.from_address(place).value for place in places]  # the driver copies them now

        def work() -> None:
            self.clock += 2.0  # milliseconds
            kernel(gx * bx, *words)

        self.find_stream(stream).ask(work)

    def _nvrtc(self) -> Any:
        def compile_program(program: int, options: tuple[str, ...]) -> None:
            self.compilations += 1
            self.options = options
            if self.log:
                raise NVRTCError("NVRTC_ERROR_COMPILATION (6)")

        def create(text: str, title: str, headers: tuple[str, ...], names: tuple[str, ...]) -> int:
            assert (headers, names) == ((), ())
            self.texts.append(text)
            return len(self.texts)

        return SimpleNamespace(
            NVRTCError=NVRTCError,
            getVersion=lambda: self.nvrtc_version,
            getSupportedArchs=lambda: self.architectures,
            createProgram=create, compileProgram=compile_program,
            getProgramLog=lambda program: self.log,
            getCUBIN=lambda program: b"cubin of " + self.texts[program - 1].encode(),
            getPTX=lambda program: b"ptx of " + self.texts[program - 1].encode(),
            destroyProgram=lambda program: None,
        )  # fmt: skip

    def _nvtx(self) -> Any:
        return SimpleNamespace(available=True, RangePush=self.ranges.append, RangePop=lambda: self.ranges.append("pop"))


class Module:
    """A loaded module."""

    def __init__(self, fake: FakeCupy) -> None:
        self.fake, self.binary = fake, b""

    def load(self, binary: bytes) -> None:
        """Keep it."""
        assert isinstance(binary, bytes)
        self.binary = binary

    def get_function(self, name: str) -> Any:
        """Return a kernel that the text mentions."""
        if name.encode() not in self.binary:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        self.fake.names.append(name)
        return SimpleNamespace(ptr=len(self.fake.names), module=self)
