"""The memory bandwidth of an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

import numpy as np

from fluxloom.device.bandwidth import Meter
from fluxloom.device.base import Buffer, Call, Device, Launch

__all__ = ["array_bytes", "cuda_meter"]

_LARGEST = 1 << 30
_SMALLEST = 1 << 20
_BLOCK = 256
_BATCH = 10
"""Passes that are timed together: starting them then costs next to nothing."""

_KERNELS = ("fl_fill", "fl_copy_plain", "fl_copy_wide", "fl_triad")


def array_bytes(free: int) -> int:
    """Return the bytes of one array: 1 GiB or an eighth of the free memory, a multiple of 1 KiB."""
    return max(_SMALLEST, min(_LARGEST, free // 8)) // 1024 * 1024


def cuda_meter(device: Device, copy: Callable[[Buffer, Buffer], None], nbytes: int = 0) -> Meter:
    """Return a meter of a GPU's memory.

    Parameters
    ----------
    device
        The GPU.
    copy
        Copies to one buffer from another, on the device.
    nbytes
        Bytes of each of the three arrays; 0: 1 GiB, or an eighth of the free memory.

    Raises
    ------
    OutOfMemory
        When the arrays do not fit.
    """
    nbytes = nbytes // 1024 * 1024 or array_bytes(device.memory()[0])
    source = resources.files("fluxloom.device.cuda").joinpath("bandwidth.cu").read_text()
    program = device.compile(source, _KERNELS, "bandwidth")
    a, b, c = (device.allocate(nbytes) for _ in range(3))

    def kernel(symbol: str, items: int, *buffers: Buffer) -> Callable[[], None]:
        """Return what runs a kernel once."""
        words = np.array([*(buffer.device(write=True) for buffer in buffers), items], dtype=np.int64)
        return device.sequencer([Call(symbol, program, words, (Launch(symbol, items, _BLOCK),), list(buffers))])

    def timed(run: Callable[[], None]) -> Callable[[], float]:
        """Return what returns the seconds of a pass."""

        def batch() -> None:
            """Ask for several passes."""
            for _ in range(_BATCH):
                run()

        return lambda: device.elapsed(batch) / _BATCH

    for buffer in (a, b, c):
        kernel("fl_fill", nbytes // 8, buffer)()
    passes = {
        "fl_copy_wide": timed(kernel("fl_copy_wide", nbytes // 16, a, c)),
        "fl_copy_memory": timed(lambda: copy(c, a)),
        "fl_copy_plain": timed(kernel("fl_copy_plain", nbytes // 8, a, c)),
        "fl_triad": timed(kernel("fl_triad", nbytes // 8, a, b, c)),
    }
    return Meter(passes, nbytes, threads=0)
