"""Runs the functions of `planted.c` as the package runs native code: ``python -m fluxloom_lab.attack.planted_c cpu 1``.

With 1 each function has its fault: a read past the end of an array, a signed overflow, a data race. With 0 it has none.
With ``opencl`` in place of ``cpu`` a kernel of OpenCL reads past the end of a buffer.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

from fluxloom.toolchain import load_library

__all__ = ["main"]

_COUNT, _LARGEST = 2000, 2**31 - 1


def main(faulty: bool) -> None:
    """Call all functions."""
    library = load_library(Path(__file__).with_name("planted.c").read_text(encoding="utf-8"), "planted")
    values = np.zeros(_COUNT)
    read = library.function("planted_read", [ctypes.c_void_p, ctypes.c_int64], ctypes.c_double)
    read(values.ctypes.data, _COUNT if faulty else 0)
    library.function("planted_next", [ctypes.c_int32], ctypes.c_int32)(_LARGEST if faulty else 0)
    add = library.function("planted_sum", [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32])
    add(values.ctypes.data, 100_000, int(faulty))


def on_opencl(faulty: bool) -> None:
    """Run a kernel of OpenCL that copies a number."""
    import pyopencl

    context = pyopencl.create_some_context(interactive=False)
    queue = pyopencl.CommandQueue(context)
    text = "kernel void copy(global const float *in, global float *out, int i) { out[0] = in[i]; }"
    program = pyopencl.Program(context, text).build()
    size, flags = 4 * _COUNT, pyopencl.mem_flags
    given = pyopencl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=np.zeros(_COUNT, np.float32))
    taken = pyopencl.Buffer(context, flags.WRITE_ONLY, size)
    pyopencl.Kernel(program, "copy")(queue, (1,), None, given, taken, np.int32(_COUNT if faulty else 0))
    queue.finish()


if __name__ == "__main__":
    (on_opencl if sys.argv[1] == "opencl" else main)(sys.argv[2] == "1")
