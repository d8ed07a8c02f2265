"""The memory bandwidth of an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.device.base import Buffer, Call, Launch
from fluxloom.device.gpu_bandwidth import GpuBandwidthMeter, array_bytes

if TYPE_CHECKING:
    from fluxloom.device.cuda import CudaDevice

__all__ = ["cuda_meter"]

_BLOCK = 256
_KERNELS = ("fl_fill", "fl_copy_plain", "fl_copy_wide", "fl_triad")


def cuda_meter(device: CudaDevice, nbytes: int = 0) -> GpuBandwidthMeter:
    """Return a meter of a GPU's memory.

    Parameters
    ----------
    device
        The GPU.
    nbytes
        Bytes of each of the three arrays; 0: 1 GiB, or an eighth of the free memory.

    Raises
    ------
    OutOfMemory
        When the arrays do not fit.
    """
    nbytes = nbytes // 1024 * 1024 or array_bytes(device.memory()[0])
    source = resources.files("fluxloom.device").joinpath("bandwidth.cu").read_text()
    program = device.compile(source, _KERNELS, "bandwidth")
    a, b, c = (device.allocate(nbytes) for _ in range(3))

    def kernel(symbol: str, items: int, *buffers: Buffer) -> Callable[[], None]:
        words = np.array([*(buffer.device(write=True) for buffer in buffers), items], dtype=np.int64)
        return device.sequencer([Call(symbol, program, words, (Launch(symbol, items, _BLOCK),), list(buffers))])

    for buffer in (a, b, c):
        kernel("fl_fill", nbytes // 8, buffer)()
    return GpuBandwidthMeter(
        plain=kernel("fl_copy_plain", nbytes // 8, a, c),
        others={
            "wide": kernel("fl_copy_wide", nbytes // 16, a, c),
            "memcpy": lambda: device.copy(c, a),
        },
        triad=kernel("fl_triad", nbytes // 8, a, b, c),
        elapsed=device.elapsed,
        nbytes=nbytes,
    )
