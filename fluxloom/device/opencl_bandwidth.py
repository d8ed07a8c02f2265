"""The memory bandwidth of an OpenCL device, measured."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.core.errors import OutOfMemory
from fluxloom.device.bandwidth import Bandwidth, asked_size, available_memory

if TYPE_CHECKING:
    from fluxloom.device.opencl import OpenClDevice

__all__ = ["OpenClMeter"]

_SMALLEST = 8 << 20
_LARGEST_CPU, _LARGEST = 256 << 20, 1 << 30
_BLOCK = 256
_WIDTH_CPU, _WIDTH = 4, 2
_NANO = 1e-9
_KERNELS = ("fl_copy_plain", "fl_copy_wide", "fl_triad")


class OpenClMeter:
    """Three arrays and kernels after STREAM; `measure` may be called between other work.

    Parameters
    ----------
    device
        What to measure. Its arrays hold doubles, or floats where there is no double precision.
    nbytes
        Bytes of one array; 0: an eighth of the memory, at most 1 GiB; on a CPU what ``FLUXLOOM_METER_BYTES`` says,
        or at most 256 MiB.

    Raises
    ------
    OutOfMemory
        When the arrays do not fit.
    """

    def __init__(self, device: OpenClDevice, nbytes: int = 0) -> None:
        self._device = device
        self.bytes = _whole(nbytes or _default_size(device))
        real, size = ("double", 8) if device.fp64 else ("float", 4)
        width = _WIDTH_CPU if device.is_cpu else _WIDTH
        text = resources.files("fluxloom.device").joinpath("bandwidth.cl").read_text()
        header = f"#define REAL {real}\n#define WIDE {real}{width}\n"
        program = device.compile(header + text, _KERNELS, "bandwidth")
        self._block = min(device.max_block, _BLOCK)
        self._arrays = self._reserve(nbytes)
        a, b, c = self._arrays
        self._commands: list[tuple[Any, int]] = []
        for symbol, buffers, items in (
            ("fl_copy_plain", (a, c), self.bytes // size),
            ("fl_copy_wide", (a, c), self.bytes // (size * width)),
            ("fl_triad", (a, b, c), self.bytes // size),
        ):
            kernel = program.kernel(symbol)
            for place, word in enumerate((*(buffer.int_ptr for buffer in buffers), items)):
                kernel.set_arg(place, np.int64(word))
            self._commands.append((kernel, items))

    def _reserve(self, nbytes: int) -> list[Any]:
        """Return three arrays; smaller ones where the size was left open and much of the memory is taken."""
        while True:
            try:
                return [self._device.reserve(self.bytes) for _ in range(3)]
            except OutOfMemory:
                if nbytes or self.bytes <= _SMALLEST:
                    raise
                self.bytes = _whole(self.bytes // 2)

    def measure(self, repeats: int = 5) -> Bandwidth:
        """Return the best of ``repeats`` passes of each kind (the first pass warms up and is not counted)."""
        a, _, c = self._arrays
        cl, queue = self._device.cl, self._device.new_queue(timed=True)
        self._device.synchronize()
        best = np.full(4, np.inf)
        for number in range(repeats + 1):
            events = [cl.enqueue_copy(queue, c, a, byte_count=self.bytes)]
            for kernel, items in self._commands:
                size = -(-items // self._block) * self._block
                events.append(cl.enqueue_nd_range_kernel(queue, kernel, (size,), (self._block,)))
            queue.finish()
            if number or not repeats:
                seconds = [max(1, event.profile.end - event.profile.start) * _NANO for event in events]
                best = np.minimum(best, seconds)
        moved = 2e-9 * self.bytes
        copied, plain, wide, triad = (float(seconds) for seconds in best)
        return Bandwidth(
            copy_gbs=moved / min(copied, plain, wide),
            triad_gbs=1.5 * moved / triad,
            copy_plain_gbs=moved / plain,
            threads=self._device.compute_units,
            bytes=self.bytes,
        )


def _whole(nbytes: int) -> int:
    """Return a multiple of 64 bytes."""
    return max(64, nbytes // 64 * 64)


def _default_size(device: OpenClDevice) -> int:
    """Return the bytes of one array: past the caches, within the memory and the largest allocation."""
    if device.is_cpu and (given := asked_size()):
        return max(_SMALLEST, given)
    limits = [device.handle.max_mem_alloc_size, device.handle.global_mem_size // 8]
    limits += [_LARGEST_CPU, available_memory() // 8] if device.is_cpu else [_LARGEST]
    return max(_SMALLEST, int(min(limits)))
