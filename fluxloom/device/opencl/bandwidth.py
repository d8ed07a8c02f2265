"""The memory bandwidth of an OpenCL device, measured with kernels after STREAM."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np

from fluxloom.core.errors import OutOfMemory
from fluxloom.device.bandwidth import Meter, asked_size, available_memory
from fluxloom.device.opencl.program import OpenClProgram
from fluxloom.device.opencl.queue import OpenClQueue

__all__ = ["opencl_meter"]

_SMALLEST = 8 << 20
_LARGEST_CPU, _LARGEST = 256 << 20, 1 << 30
_BLOCK = 256
_WIDTH_CPU, _WIDTH = 4, 2
_NANO = 1e-9
_KERNELS = ("fl_copy_plain", "fl_copy_wide", "fl_triad")


def opencl_meter(device: OpenClQueue, reserve: Callable[[int], Any], nbytes: int = 0) -> Meter:
    """Return a meter of the memory of an OpenCL device.

    Parameters
    ----------
    device
        What to measure. The arrays hold doubles, or floats where there is no double precision.
    reserve
        Returns a ``pyopencl.Buffer`` of so many bytes.
    nbytes
        Bytes of each of the three arrays; 0: an eighth of the memory, at most 1 GiB; on a CPU what
        ``FLUXLOOM_METER_BYTES`` says, or at most 256 MiB.

    Raises
    ------
    OutOfMemory
        When the arrays do not fit.
    """
    real, size = ("double", 8) if device.fp64 else ("float", 4)
    width = _WIDTH_CPU if device.is_cpu else _WIDTH
    text = resources.files("fluxloom.device.opencl").joinpath("bandwidth.cl").read_text()
    program = device.compile(f"#define REAL {real}\n#define WIDE {real}{width}\n{text}", _KERNELS, "bandwidth")
    assert isinstance(program, OpenClProgram)
    arrays = _reserve(reserve, nbytes, _default_size(device))
    a, b, c = arrays
    moved, block = int(a.size), min(device.max_block, _BLOCK)
    cl, queue = device.cl, device.new_queue(timed=True)

    def timed(enqueue: Callable[[], Any]) -> Callable[[], float]:
        """Return what returns the seconds of a pass."""

        def run() -> float:
            """Run it alone, and ask its event."""
            device.synchronize()
            event = enqueue()
            queue.finish()
            return max(1, event.profile.end - event.profile.start) * _NANO

        return run

    def kernel(symbol: str, items: int, *buffers: Any) -> Callable[[], Any]:
        """Return what enqueues a kernel and returns its event."""
        found = program.kernel(symbol)
        for place, word in enumerate((*(buffer.int_ptr for buffer in buffers), items)):
            found.set_arg(place, np.int64(word))
        return lambda: cl.enqueue_nd_range_kernel(queue, found, (-(-items // block) * block,), (block,))

    passes = {
        "fl_copy_memory": timed(lambda: cl.enqueue_copy(queue, c, a, byte_count=moved)),
        "fl_copy_plain": timed(kernel("fl_copy_plain", moved // size, a, c)),
        "fl_copy_wide": timed(kernel("fl_copy_wide", moved // (size * width), a, c)),
        "fl_triad": timed(kernel("fl_triad", moved // size, a, b, c)),
    }
    return Meter(passes, moved, device.compute_units, arrays=arrays)


def _reserve(reserve: Callable[[int], Any], nbytes: int, most: int) -> list[Any]:
    """Return three arrays; smaller ones where the size was left open and much of the memory is taken."""
    size = _whole(nbytes or most)
    while True:
        try:
            return [reserve(size) for _ in range(3)]
        except OutOfMemory:
            if nbytes or size <= _SMALLEST:
                raise
            size = _whole(size // 2)


def _whole(nbytes: int) -> int:
    """Return a multiple of 64 bytes."""
    return max(64, nbytes // 64 * 64)


def _default_size(device: OpenClQueue) -> int:
    """Return the bytes of one array: past the caches, within the memory and the largest allocation."""
    if device.is_cpu and (given := asked_size()):
        return max(_SMALLEST, given)
    limits = [device.handle.max_mem_alloc_size, device.handle.global_mem_size // 8]
    limits += [_LARGEST_CPU, available_memory() // 8] if device.is_cpu else [_LARGEST]
    return max(_SMALLEST, int(min(limits)))
