"""A device of OpenCL as a place where things are done in order: what it can do, its queues, copies, and errors."""

from __future__ import annotations

import functools
import os
from abc import ABC
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import CompileError, DeviceUnavailable, FluxloomError, OutOfMemory, SolverError
from fluxloom.device.base import Device
from fluxloom.device.buffer import View
from fluxloom.device.opencl.platform import candidates, choose, import_pyopencl

__all__ = ["NO_MEMORY", "OpenClQueue"]

_SMALL, _MOST_STAGED = 4096, 64
"""Bytes up to which an array is sent without waiting, and how many copies of such arrays are kept at most."""

_WINDOW = 1024  # at most twice as many launches wait in the queue
NO_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
"""What drivers say where memory does not suffice."""

_NOT_BUILT = (
    "BUILD_PROGRAM_FAILURE", "COMPILE_PROGRAM_FAILURE", "LINK_PROGRAM_FAILURE", "INVALID_PROGRAM_EXECUTABLE",
    "INVALID_KERNEL", "INVALID_KERNEL_ARGS", "INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE",
)  # fmt: skip


class OpenClQueue(Device, ABC):
    """A device without programs: what buffers, programs and sequences of `OpenClDevice` need."""

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

    def open_array(self, memory: Any, view: View) -> Any:
        """Return an array of pyopencl over a ``pyopencl.Buffer``; it works on the queue that is in use now."""
        from pyopencl.array import Array

        return Array(self._queue, view.shape, view.dtype, data=memory, offset=view.offset)

    def memory(self) -> tuple[int, int]:
        """Return the free bytes (0: OpenCL does not tell) and all bytes of the memory."""
        return 0, int(self.handle.global_mem_size)

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

    def launch_failure(
        self, error: Exception, what: str = "a command", source: Callable[[], str] = str
    ) -> FluxloomError:
        """Return the error to raise when a command failed.

        Some drivers finish compiling a kernel when it is first enqueued; ``source`` then says where its text is.
        """
        code = self._code(error)
        if code in _NOT_BUILT:
            message = f"{self.hardware} ({self.platform}) cannot run {what}"
            return CompileError(message, source_path=source(), log=str(error))
        if code in NO_MEMORY:
            total = self.handle.global_mem_size
            return OutOfMemory(
                f"out of memory: {self.hardware} has {total / 2**20:.0f} MiB, too few to run {what} ({error})"
            )
        return SolverError(
            f"{what} failed on {self.hardware}: {error}; a kernel that reads or writes outside its arrays does this"
        )

    def refuses(self, scalar: Scalar) -> str:
        """Return why values of a type cannot be stored or computed here, or an empty string."""
        if scalar.name == "float64" and not self.fp64:
            return f"{self.hardware} has no double precision: use dtype='float32'"
        if scalar.name == "float16" and not self.fp16:
            return f"{self.hardware} has no half precision (cl_khr_fp16): use dtype='float32'"
        return ""

    def describe(self) -> str:
        """Return device, driver, units, memory and precision."""
        size, precision = self.handle.global_mem_size / 2**30, "FP64" if self.fp64 else "no FP64"
        return f"{self.hardware}, {self.version}, {self.compute_units} units, {size:.1f} GiB, {precision}"


@functools.cache
def _first_process() -> int:
    """Return the process that opened an OpenCL device first, this one or one that it was forked from."""
    return os.getpid()
