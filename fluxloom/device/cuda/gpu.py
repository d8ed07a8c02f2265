"""An NVIDIA GPU as a place where things are done in order: what is current, memory, streams, events, errors."""

from __future__ import annotations

import gc
import platform
from abc import ABC
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable, OutOfMemory, SolverError
from fluxloom.device.base import Device
from fluxloom.device.cuda.errors import error_key, explain, gibibytes
from fluxloom.device.cuda.support import choose_architecture, open_cuda, release

__all__ = ["CudaGpu", "SideStream"]

_HIGHEST = -100
"""Priority of side streams; CUDA takes the highest it has."""
_SMALL = 64 << 10
_MOST_STAGED = 64
_NOT_READY = 600
"""What CUDA, and HIP, answer where there is more to do; anything else is an end, or an error."""
_DLPACK_CUDA, _DLPACK_ROCM = 2, 10


class CudaGpu(Device, ABC):
    """A GPU without programs: what its buffers, transfer queues and sequences need.

    Attributes
    ----------
    cupy
        The module.
    title
        What the GPU is called in messages.
    """

    def __init__(self, number: int = 0) -> None:
        self.cupy: Any = open_cuda(number)
        self.number = number
        self.dlpack = (_DLPACK_ROCM if getattr(self.cupy.cuda.runtime, "is_hip", False) else _DLPACK_CUDA, number)
        self.title = f"GPU {number}"
        self.running = ""
        """The calls that ran last; for messages."""
        self.events: list[Any] = []
        """Events that are free to be used again."""
        cuda = self.cupy.cuda
        self.failures: tuple[type[Exception], ...] = (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError)
        self._runtime = cuda.runtime
        self._staged: list[npt.NDArray[np.uint8]] = []
        self.waits: Callable[[Callable[[], bool]], None] | None = None
        """What waits until a function says that the GPU is done, where that may need other ranks; None: the driver."""
        self.mixed = False
        """Whether arrays were exchanged, so that other streams may work on them."""
        try:
            with cuda.Device(number):
                self.stream: Any = cuda.Stream(non_blocking=True)
        except self.failures as error:
            raise DeviceUnavailable(
                f"GPU {number} cannot be used ({error}): see with nvidia-smi whether another process has it for itself"
            ) from error
        self._side: SideStream | None = None
        capability = int(cuda.Device(number).compute_capability)
        self._architecture = choose_architecture(capability, cuda.nvrtc.getSupportedArchs()) or ""

    # ---------------------------------------------------------------------------------- current GPU
    def enter(self) -> int:
        """Make this GPU current in the calling thread; returns the one that was."""
        try:
            before = self._runtime.getDevice()
            self._runtime.setDevice(self.number)  # also gives a new thread its context
        except self.failures as error:
            raise self.failure(error) from error
        return before

    def leave(self, before: int) -> None:
        """Make the GPU current that was."""
        if before != self.number:
            self._runtime.setDevice(before)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this GPU current for a while; errors of CUDA become errors of this package."""
        before = self.enter()
        try:
            yield
        except self.failures as error:
            raise self.failure(error) from error
        finally:
            self.leave(before)

    def failure(self, error: BaseException) -> SolverError:
        """Return the error to raise for one of CUDA's."""
        return explain(error, self.title, self.running)

    # --------------------------------------------------------------------------------------- memory
    def _take(self, nbytes: int) -> Any:
        """Return memory of CuPy's pool that belongs to our stream; this GPU is current."""
        try:
            return self._allocated(nbytes)
        except (MemoryError, *self.failures) as error:
            if not _lacks_memory(error):
                raise
        gc.collect()  # arrays in cycles hold memory too
        pool = self.cupy.get_default_memory_pool()
        pool.free_all_blocks()
        try:
            return self._allocated(nbytes)
        except (MemoryError, *self.failures) as error:
            if not _lacks_memory(error):
                raise
            free, total = self._runtime.memGetInfo()
            held = int(pool.total_bytes())
            raise OutOfMemory(
                f"out of memory on {self.title}: {gibibytes(nbytes)} asked for, {gibibytes(free)} of "
                f"{gibibytes(total)} free; this process holds {gibibytes(held)}, {gibibytes(pool.free_bytes())} of "
                "it unused",
                asked=nbytes, free=int(free), total=int(total), held=held,
            ) from error  # fmt: skip

    def _allocated(self, nbytes: int) -> Any:
        with self.stream:  # the pool keeps what one stream has freed for the same stream
            return self.cupy.cuda.alloc(max(1, nbytes))

    def memory(self) -> tuple[int, int]:
        """Return the bytes that are free, those that CuPy's pool keeps unused included, and all bytes."""
        with self.active():
            free, total = self._runtime.memGetInfo()
            return int(free) + int(self.cupy.get_default_memory_pool().free_bytes()), int(total)

    def pinned(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return zeroed host memory that the GPU reads and writes without a detour; ordinary memory where none is."""
        try:
            with self.active():
                memory = self.cupy.cuda.alloc_pinned_memory(nbytes)
        except SolverError as error:
            if not _lacks_memory(error.__cause__):
                raise
            return np.zeros(nbytes, dtype=np.uint8)
        array = np.frombuffer(memory, dtype=np.uint8, count=nbytes)
        array[:] = 0
        return array

    def send(self, address: int, source: npt.NDArray[np.uint8]) -> None:
        """Copy host to device, after what was asked for before; ``source`` may be changed when this returns."""
        if not source.nbytes:
            return
        runtime = self._runtime
        with self.active():
            if source.nbytes > _SMALL:
                self._copy(address, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice)
                self._wait()
                return
            if len(self._staged) >= _MOST_STAGED:
                self._wait()
            self._staged.append(source.copy())
            self._copy(address, self._staged[-1].ctypes.data, source.nbytes, runtime.memcpyHostToDevice)

    def fetch(self, target: npt.NDArray[np.uint8], address: int) -> None:
        """Copy device to host after what was asked for before, and wait."""
        with self.active():
            if target.nbytes:
                self._copy(target.ctypes.data, address, target.nbytes, self._runtime.memcpyDeviceToHost)
            self._wait()

    def _copy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        self._runtime.memcpyAsync(target, source, nbytes, kind, self.stream.ptr)

    def _wait(self) -> None:
        """Wait for the stream; then nothing reads staged values any more."""
        self.wait_for(self.stream)
        self._staged.clear()

    def wait_for(self, stream: Any) -> None:
        """Wait on the host for a stream, or an event, of CuPy; this GPU is current.

        Where messages of other GPUs may have to come first, with `waits`, which tells long waits and ends those that
        have no end: in the driver nobody would hear of them.
        """
        if self.waits is not None:
            query = self._runtime.streamQuery if hasattr(stream, "wait_event") else self._runtime.eventQuery
            self.waits(lambda: query(stream.ptr) != _NOT_READY)
        stream.synchronize()  # raises what has failed

    def resident(self, array: npt.NDArray[Any]) -> tuple[int, Any]:
        """Return the device address of a read-only table, and what keeps it alive."""
        table = np.ascontiguousarray(array)
        with self.active():
            memory = self._take(table.nbytes)
        self.send(int(memory.ptr), table.reshape(-1).view(np.uint8))
        return int(memory.ptr), memory

    # --------------------------------------------------------------------------------- time and place
    def current_stream(self) -> Any:
        """Return the stream on which CuPy works now; this GPU is current."""
        return self.cupy.cuda.get_current_stream()

    def order(self, first: Any, then: Any) -> None:
        """Let one stream wait for what another was asked for; this GPU is current."""
        self.mixed = True
        if first.ptr != then.ptr:
            event = self.cupy.cuda.Event(disable_timing=True)
            event.record(first)
            then.wait_event(event)

    def synchronize(self) -> None:
        """Wait until everything that was asked for is done, on every stream once arrays were exchanged with CuPy."""
        with self.active():
            self._wait()
            if self.mixed:
                self._runtime.deviceSynchronize()

    def mark(self, stream: Any = None) -> Any:
        """Return an event of now on a stream, by default the main one; this GPU is current."""
        event = self.events.pop() if self.events else self.cupy.cuda.Event()
        event.record(self.stream if stream is None else stream)
        return event

    def elapsed(self, run: Callable[[], object]) -> float:
        """Return the seconds that the GPU needs for what a function asks of it."""
        with self.active():
            begin = self.mark()
        run()
        with self.active():
            end = self.mark()
            self.wait_for(end)
            seconds = 1e-3 * float(self.cupy.cuda.get_elapsed_time(begin, end))
        self.events += [begin, end]
        return seconds

    @property
    def side(self) -> SideStream:
        """The stream beside the main one, for messages and what waits for them."""
        if self._side is None:
            self._side = SideStream(self)
        return self._side

    @property
    def identity(self) -> str:
        """Machine and bus address of the GPU: equal for two ranks that use the same one."""
        with self.active():
            return f"{platform.node()} {self._runtime.deviceGetPCIBusId(self.number)}"

    def describe(self) -> str:
        """Return GPU, memory, compute capability and versions."""
        with self.active():
            properties = self._runtime.getDeviceProperties(self.number)
            total = int(self._runtime.memGetInfo()[1])
        found = properties["name"]
        name = found.decode() if isinstance(found, bytes) else str(found)
        return (
            f"{name}, {gibibytes(total)}, compute capability {properties['major']}.{properties['minor']}, "
            f"driver for CUDA {release(int(self._runtime.driverGetVersion()))}, "
            f"CuPy {self.cupy.__version__} with CUDA {release(int(self._runtime.runtimeGetVersion()))}"
        )


class SideStream:
    """A stream beside the main one of a GPU; where both have kernels that wait, its own start first.

    `fork` and `join` only record events, so that both can be captured in a graph.

    Parameters
    ----------
    device
        The GPU.

    Attributes
    ----------
    stream
        The CuPy stream.
    """

    def __init__(self, device: CudaGpu) -> None:
        self._main, self._device = device.stream, device
        cuda = device.cupy.cuda
        with device.active():
            self.stream: Any = cuda.Stream(non_blocking=True, priority=_HIGHEST)
            self._forked, self._joined = (cuda.Event(disable_timing=True) for _ in range(2))

    def fork(self) -> None:
        """Let this stream wait for what the main one was asked for so far; the GPU is current."""
        self._forked.record(self._main)
        self.stream.wait_event(self._forked)

    def join(self) -> None:
        """Let the main stream wait for what this one was asked for so far; the GPU is current."""
        self._joined.record(self.stream)
        self._main.wait_event(self._joined)

    def fork_now(self) -> None:
        """Make the GPU current for a `fork`."""
        with self._device.active():
            self.fork()

    def join_now(self) -> None:
        """Make the GPU current for a `join`."""
        with self._device.active():
            self.join()


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error says that memory is exhausted."""
    return isinstance(error, MemoryError) or (
        error is not None and error_key(error) in ("memoryallocation", "outofmemory")
    )
