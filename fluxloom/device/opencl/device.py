"""The OpenCL device: generated OpenCL C, built by any vendor's driver through pyopencl."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import DatError, OutOfMemory, SolverError
from fluxloom.device.bandwidth import Meter
from fluxloom.device.base import Call, Enqueued, Launch
from fluxloom.device.opencl.bandwidth import opencl_meter
from fluxloom.device.opencl.buffer import OpenClBuffer
from fluxloom.device.opencl.huge_pages import advise_buffer
from fluxloom.device.opencl.program import OpenClProgram, build
from fluxloom.device.opencl.queue import NO_MEMORY, OpenClQueue
from fluxloom.device.opencl.sequencer import OpenClSequencer
from fluxloom.device.opencl.transfer_queue import OpenClTransferQueue

__all__ = ["OpenClBuffer", "OpenClDevice"]

_SMALLEST = 64
_LARGE, _CLEARED, _CLEAR_BLOCK = 1 << 20, 16, 128
"""Bytes from which a kernel clears a buffer, bytes an item of it, items a group."""
_RESET_BLOCK = 64


class OpenClDevice(OpenClQueue):
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
        super().__init__(choice, without=without)
        self._helpers: OpenClProgram | None = None

    # ------------------------------------------------------------------------------------ memory
    def allocate(self, nbytes: int, stagger: int = 0) -> OpenClBuffer:
        """Return a zeroed buffer in the memory of the device.

        Raises
        ------
        OutOfMemory
            When it does not fit.
        """
        return OpenClBuffer(self, self.reserve(nbytes), nbytes)

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
            if self._code(error) in NO_MEMORY:
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
            source = resources.files("fluxloom.device.opencl").joinpath("runtime.cl").read_text()
            self._helpers = self.compile(source, ["fl_reset", "fl_clear"], "runtime")
        return self._helpers

    def _memory_text(self, size: int) -> str:
        total, largest = self.handle.global_mem_size, self.handle.max_mem_alloc_size
        return (
            f"out of memory: {size / 2**20:.0f} MiB ({size} bytes) could not be allocated on {self.hardware}, "
            f"which has {total / 2**20:.0f} MiB in all and allows {largest / 2**20:.0f} MiB a buffer"
        )

    def resident(self, array: npt.NDArray[Any]) -> tuple[int, Any]:
        """Return the handle of a copy of a read-only table, and the copy."""
        memory = self.reserve(array.nbytes)
        self.transfer(memory, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return int(memory.int_ptr), memory

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

    def transfer_queue(self) -> OpenClTransferQueue:
        """Return a new queue of transfers for messages."""
        return OpenClTransferQueue(self)

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that sets every component of a global."""
        count = int(words[1])
        return Call("reset", self._runtime(), words, (Launch("fl_reset", count, min(max(count, 1), _RESET_BLOCK)),))

    # -------------------------------------------------------------------------------- properties
    def atomic_add(self, scalar: Scalar) -> bool:
        """Whether indirect increments of a type can be added atomically."""
        if scalar.size == 8:
            return self.int64_atomics and not self.refuses(scalar)
        return scalar.name in ("float32", "int32")

    def meter(self, nbytes: int = 0) -> Meter:
        """Return what measures the bandwidth of the device's memory, with arrays of a fitting size by default."""
        return opencl_meter(self, self.reserve, nbytes)
