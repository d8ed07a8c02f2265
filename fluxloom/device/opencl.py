"""The OpenCL device: generated OpenCL C, built by any vendor's driver through pyopencl."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Sequence
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import (
    CompileError,
    DatError,
    DeviceUnavailable,
    FluxloomError,
    OutOfMemory,
    SolverError,
)
from fluxloom.device.bandwidth import Meter
from fluxloom.device.base import Call, Device, Enqueued, Launch
from fluxloom.device.exchange import View
from fluxloom.device.huge_pages import advise_buffer
from fluxloom.device.opencl_bandwidth import opencl_meter
from fluxloom.device.opencl_buffer import OpenClBuffer
from fluxloom.device.opencl_courier import OpenClCourier
from fluxloom.device.opencl_platform import candidates, choose, import_pyopencl
from fluxloom.device.opencl_program import OpenClProgram, build, keep_source
from fluxloom.device.opencl_sequencer import OpenClSequencer

__all__ = ["OpenClBuffer", "OpenClDevice"]

_SMALL, _MOST_STAGED = 4096, 64
"""Bytes up to which an array is sent without waiting, and how many copies of such arrays are kept at most."""

_WINDOW = 1024  # at most twice as many launches wait in the queue
_SMALLEST = 64
_LARGE, _CLEARED, _CLEAR_BLOCK = 1 << 20, 16, 128
"""Bytes from which a kernel clears a buffer, bytes an item of it, items a group."""
_RESET_BLOCK = 64
_NO_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
_NOT_BUILT = (
    "BUILD_PROGRAM_FAILURE", "COMPILE_PROGRAM_FAILURE", "LINK_PROGRAM_FAILURE", "INVALID_PROGRAM_EXECUTABLE",
    "INVALID_KERNEL", "INVALID_KERNEL_ARGS", "INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE",
)  # fmt: skip


class OpenClDevice(Device):
    """A processor or GPU with an OpenCL driver.

    Parameters
    ----------
    choice
        Number of the device among those of all platforms, or text found in its name or that of its platform;
        empty: the first GPU, else the first device.
    without
        Extensions to do without, as ``"cl_khr_fp64"``: the device then behaves as if it lacked them.

    Attributes
    ----------
    cl
        The module ``pyopencl``.
    handle, context
        The device and context of pyopencl.
    platform
        Name of the driver.
    hardware
        Name of the device.
    vendor
        Who made it.
    fp64, fp16, int64_atomics
        Whether it computes in double and half precision, and has 64-bit atomics.
    max_block
        Largest work group.
    local_memory
        Bytes of local memory of a group.
    compute_units
        Cores of a CPU, multiprocessors of a GPU.
    is_cpu
        Whether it is a CPU.
    reports_registers
        Whether its compiler tells how many registers a kernel needs.
    epoch
        Counts the buffers that were made.

    Raises
    ------
    DeviceUnavailable
        When pyopencl, a driver or the chosen device is missing.
    """

    name = "opencl"
    native = True
    dialect = "opencl"
    shared = False
    items = True
    dlpack = None

    def __init__(self, choice: str = "", *, without: Collection[str] = ()) -> None:
        self._require_own_process()
        self.cl: Any = import_pyopencl()
        chosen = choose(candidates(self.cl), choice)
        self.handle: Any = chosen.handle
        self.platform, self.hardware = chosen.platform, chosen.name
        try:
            self._examine(without)
            self.context: Any = self.cl.Context([self.handle])
            self._current: Any = self.new_queue(timed=False)
        except self.cl.Error as error:
            raise DeviceUnavailable(
                f"the OpenCL device {chosen} does not start: {error}; see whether another program holds it"
            ) from error
        self._timed = False
        self._in_flight, self._mark = 0, None
        self._staged: list[npt.NDArray[Any]] = []
        self.epoch = 0
        self._helpers: OpenClProgram | None = None

    def _examine(self, without: Collection[str]) -> None:
        """Ask the driver what the device can do."""
        handle, kinds = self.handle, self.cl.device_type
        extensions = set(handle.extensions.split()) - set(without)
        self.vendor = str(handle.vendor).strip()
        self.version = str(handle.version).strip()
        self.fp64 = "cl_khr_fp64" in extensions or ("cl_khr_fp64" not in without and bool(handle.double_fp_config))
        self.fp16 = "cl_khr_fp16" in extensions
        self.int64_atomics = "cl_khr_int64_base_atomics" in extensions
        self.reports_registers = "cl_nv_compiler_options" in extensions
        self.max_block = int(handle.max_work_group_size)
        self.local_memory = int(handle.local_mem_size)
        self.compute_units = int(handle.max_compute_units)
        self.is_cpu = bool(handle.type & kinds.CPU)
        if not handle.available or not handle.compiler_available:
            raise DeviceUnavailable(f"the OpenCL device {self.hardware} ({self.platform}) has no compiler or is off")

    # ------------------------------------------------------------------------------------ memory
    def allocate(self, nbytes: int, stagger: int = 0) -> OpenClBuffer:
        """Return a zeroed buffer in the memory of the device.

        Raises
        ------
        OutOfMemory
            When it does not fit.
        """
        return OpenClBuffer(self, nbytes)

    def reserve(self, nbytes: int) -> Any:
        """Return a zeroed ``pyopencl.Buffer`` of at least ``nbytes``.

        Raises
        ------
        OutOfMemory
            When it does not fit.
        """
        size = max(_SMALLEST, -(-nbytes // _SMALLEST) * _SMALLEST)
        try:
            memory = self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, size)
            if self.is_cpu:
                advise_buffer(self.cl, self._queue, memory)
            self._clear(memory, size)  # drivers that allocate late do it here
        except self.cl.Error as error:
            if self._code(error) in _NO_MEMORY:
                raise OutOfMemory(self._memory_text(size)) from error
            raise SolverError(f"{self.hardware}: {nbytes} bytes cannot be allocated: {error}") from error
        self.epoch += 1
        return memory

    def _clear(self, memory: Any, size: int) -> None:
        """Set a buffer to zero: with a kernel when it is large, because some drivers fill at 0.2 GB/s."""
        if self.is_cpu or size < _LARGE:
            zero = np.uint8(0) if self.is_cpu else np.uint32(0)  # PoCL is quickest with bytes
            self.cl.enqueue_fill_buffer(self._queue, memory, zero, 0, size)
            return
        kernel = self._runtime().kernel("fl_clear")
        kernel.set_args(memory, np.int64(size // _CLEARED))
        items = -(-size // (_CLEARED * _CLEAR_BLOCK)) * _CLEAR_BLOCK
        self.cl.enqueue_nd_range_kernel(self._queue, kernel, (items,), (_CLEAR_BLOCK,))

    def _runtime(self) -> OpenClProgram:
        """Return the kernels that every program needs."""
        if self._helpers is None:
            source = resources.files("fluxloom.device").joinpath("runtime.cl").read_text()
            self._helpers = self.compile(source, ["fl_reset", "fl_clear"], "runtime")
        return self._helpers

    def _memory_text(self, size: int) -> str:
        total, largest = self.handle.global_mem_size, self.handle.max_mem_alloc_size
        return (
            f"out of memory: {size / 2**20:.0f} MiB ({size} bytes) could not be allocated on {self.hardware}, "
            f"which has {total / 2**20:.0f} MiB in all and allows {largest / 2**20:.0f} MiB a buffer"
        )

    def transfer(self, target: Any, source: Any) -> None:
        """Copy between an array and a ``pyopencl.Buffer``, after all that was enqueued before.

        Waits for it, except for small arrays on their way to the device, of which it keeps a copy.
        """
        size = min(t.nbytes if isinstance(t, np.ndarray) else t.size for t in (target, source))
        if not size:
            return
        small = isinstance(source, np.ndarray) and size <= _SMALL
        if small:
            source = source.copy()
            self._staged.append(source)
        try:
            self.cl.enqueue_copy(self._queue, target, source, is_blocking=not small)
            if len(self._staged) > _MOST_STAGED:
                self.synchronize()
        except self.cl.Error as error:
            raise self.launch_failure(error) from error

    def resident(self, array: npt.NDArray[Any]) -> tuple[int, Any]:
        """Return the handle of a copy of a read-only table, and the copy."""
        memory = self.reserve(array.nbytes)
        self.transfer(memory, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return int(memory.int_ptr), memory

    def open_array(self, memory: Any, view: View) -> Any:
        """Return an array of pyopencl over a ``pyopencl.Buffer``; it works on the queue that is in use now."""
        from pyopencl.array import Array

        return Array(self._queue, view.shape, view.dtype, data=memory, offset=view.offset)

    def as_array(self, values: Any) -> Any:
        """Return values as an array of NumPy.

        Raises
        ------
        DatError
            If they are an array of pyopencl, or in the memory of another device.
        """
        if type(values).__module__.startswith("pyopencl"):
            raise DatError("the values are in the memory of an OpenCL device: copy them to the host with values.get()")
        return super().as_array(values)

    def memory(self) -> tuple[int, int]:
        """Return the free bytes (0: OpenCL does not tell) and all bytes of the memory."""
        return 0, int(self.handle.global_mem_size)

    # ---------------------------------------------------------------------------------- programs
    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> OpenClProgram:
        """Build a program and look up its kernels.

        Raises
        ------
        CompileError
            With the path of the source, what the driver said, and the lines it speaks of.
        """
        return build(self, text, symbols, name, contract=contract)

    def sequencer(self, calls: Sequence[Call | Enqueued]) -> OpenClSequencer:
        """Return a sequence of calls, replayed by enqueueing their kernels."""
        return OpenClSequencer(self, calls)

    def courier(self) -> OpenClCourier:
        """Return a new courier for messages."""
        return OpenClCourier(self)

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that sets every component of a global."""
        count = int(words[1])
        return Call("reset", self._runtime(), words, (Launch("fl_reset", count, min(max(count, 1), _RESET_BLOCK)),))

    # ------------------------------------------------------------------------------------- queue
    @property
    def _queue(self) -> Any:
        self._require_own_process()
        return self._current

    def _require_own_process(self) -> None:
        """Raise `DeviceUnavailable` in a process that was forked: drivers have threads, which it lacks."""
        if os.getpid() != _first_process():
            raise DeviceUnavailable(
                "this process was forked from one that uses OpenCL, whose threads it does not have: start it anew, "
                "multiprocessing.get_context('spawn'), or open the first OpenCL device after the fork"
            )

    def new_queue(self, *, timed: bool) -> Any:
        """Return another in-order queue, which measures the time of its commands or not."""
        flags = self.cl.command_queue_properties.PROFILING_ENABLE if timed else 0
        return self.cl.CommandQueue(self.context, self.handle, flags)

    def select(self, *, timed: bool) -> Any:
        """Return the queue to enqueue into; changing between the plain and the timed one waits for the other."""
        if timed is not self._timed:
            self.synchronize()
            self._current, self._timed = self.new_queue(timed=timed), timed
        return self._queue

    def enqueued(self, last: Any, launches: int) -> None:
        """Note launches and their last event; waits when the host is far ahead, since drivers queue without limit."""
        self._in_flight += launches
        if self._in_flight >= _WINDOW:
            if self._mark is not None:
                self._mark.wait()
            self._mark, self._in_flight = last, 0

    def synchronize(self) -> None:
        """Wait until everything that was asked for is done."""
        try:
            self._queue.finish()
        except self.cl.Error as error:
            raise self.launch_failure(error) from error
        self._mark, self._in_flight = None, 0
        self._staged.clear()

    def _code(self, error: Any) -> str:
        """Return the name of a driver's error."""
        return str(self.cl.status_code.to_string(error.code, "%d"))

    def launch_failure(self, error: Exception, program: OpenClProgram | None = None, symbol: str = "") -> FluxloomError:
        """Return the error to raise when a command failed.

        Some drivers finish compiling a kernel when it is first enqueued.
        """
        what, code = f"the kernel {symbol!r}" if symbol else "a command", self._code(error)
        if code in _NOT_BUILT:
            path = keep_source(program.text, program.name) if program else ""
            message = f"{self.hardware} ({self.platform}) cannot run {what}"
            return CompileError(message, source_path=path, log=str(error))
        if code in _NO_MEMORY:
            total = self.handle.global_mem_size
            return OutOfMemory(
                f"out of memory: {self.hardware} has {total / 2**20:.0f} MiB, too few to run {what} ({error})"
            )
        return SolverError(
            f"{what} failed on {self.hardware}: {error}; a kernel that reads or writes outside its arrays does this"
        )

    # -------------------------------------------------------------------------------- properties
    def refuses(self, scalar: Scalar) -> str:
        """Return why values of a type cannot be stored or computed here, or an empty string."""
        if scalar.name == "float64" and not self.fp64:
            return f"{self.hardware} has no double precision: use dtype='float32'"
        if scalar.name == "float16" and not self.fp16:
            return f"{self.hardware} has no half precision (cl_khr_fp16): use dtype='float32'"
        return ""

    def atomic_add(self, scalar: Scalar) -> bool:
        """Whether indirect increments of a type can be added atomically."""
        if scalar.size == 8:
            return self.int64_atomics and not self.refuses(scalar)
        return scalar.name in ("float32", "int32")

    def meter(self, nbytes: int = 0) -> Meter:
        """Return what measures the bandwidth of the device's memory, with arrays of a fitting size by default."""
        return opencl_meter(self, nbytes)

    def describe(self) -> str:
        """Return device, driver, units, memory and precision."""
        size, precision = self.handle.global_mem_size / 2**30, "FP64" if self.fp64 else "no FP64"
        return f"{self.hardware}, {self.version}, {self.compute_units} units, {size:.1f} GiB, {precision}"


@functools.cache
def _first_process() -> int:
    """Return the process that opened an OpenCL device first, this one or one that it was forked from."""
    return os.getpid()
