"""The libraries that products of sparse matrices are compared with: SciPy, MKL, cuSPARSE."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.core.packages import require
from fluxloom.dsl.context import Context
from fluxloom.machine.system import package_version
from fluxloom.perf.stopwatch import Run

__all__ = ["Peer", "mkl_library", "usual_library"]

_FILLERS = 40

# Of mkl_spblas.h and mkl_service.h.
_NOT_TRANSPOSED, _GENERAL, _FROM_ZERO, _GNU_THREADS = 10, 20, 0, 3
_CALLS = 1000


@dataclass(frozen=True)
class Peer:
    """A library to compare with: what it is, a call of it, and how it is timed (None: like a loop)."""

    name: str
    run: Run
    clock: Callable[[Run, int], float] | None = None


def usual_library(context: Context, matrix: Any, x: np.ndarray) -> Peer | None:
    """Return the usual library of a device, set up for ``matrix @ x``; None where there is none."""
    if context.device.name == "cpu":
        return Peer(f"scipy {package_version('scipy')}, 1 thread", lambda: matrix @ x)
    if not context.device.name.startswith("cuda"):
        return None
    cupy = require("cupy", "cuda", "comparing with cuSPARSE")
    sparse = require("cupyx.scipy.sparse", "cuda", "comparing with cuSPARSE")
    cusparse = require("cupyx.cusparse", "cuda", "comparing with cuSPARSE")
    parts = tuple(cupy.asarray(part) for part in (matrix.data, matrix.indices, matrix.indptr))
    there, given, result = sparse.csr_matrix(parts, shape=matrix.shape), cupy.asarray(x), cupy.empty(matrix.shape[0])
    # What csr_matrix @ x calls, without allocating and clearing the result each time.
    return Peer(
        f"cuSPARSE (cupy {cupy.__version__})",
        lambda: cusparse.spmv(there, given, result),
        lambda run, rounds: _time_events(cupy, run, rounds),
    )


def _time_events(cupy: Any, run: Run, rounds: int, calls: int = 20) -> float:
    """Return the median seconds of a call between events of the device.

    Copies go before the first event, so that the device is busy while the host queues the calls: what the
    calls cost in Python does not count.
    """
    run()
    filler = cupy.zeros(2 << 28, dtype=cupy.uint8)
    half = filler.size // 2
    found = []
    for _ in range(rounds):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(_FILLERS):
            filler[:half] = filler[half:]
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        found.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end) / calls)
    return median(found)


# ------------------------------------------------------------------------------------------------- MKL


class _Descriptor(ctypes.Structure):
    """The kind of a matrix."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int))


def mkl_library(matrix: Any, x: np.ndarray, threads: int) -> Peer:
    """Return MKL's product of a matrix in compressed rows, after its own analysis of the pattern.

    Raises
    ------
    DeviceUnavailable
        When there is no MKL; the package ``mkl`` of PyPI installs one.
    FluxloomError
        When MKL refuses the matrix.
    """
    library = _load_mkl()
    library.MKL_Set_Threading_Layer(_GNU_THREADS)  # threads of another runtime would wait on the cores of ours
    library.MKL_Set_Num_Threads(threads)
    rows, columns = matrix.shape
    offsets, indices, values, given = (
        np.ascontiguousarray(matrix.indptr, dtype=np.int32), np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float64), np.ascontiguousarray(x, dtype=np.float64),
    )  # fmt: skip
    result, handle, kind = np.empty(rows), ctypes.c_void_p(), _Descriptor(_GENERAL, 0, 0)
    starts = offsets.ctypes.data
    made = library.mkl_sparse_d_create_csr(
        ctypes.byref(handle), _FROM_ZERO, rows, columns, *map(ctypes.c_void_p, (
            starts, starts + offsets.itemsize, indices.ctypes.data, values.ctypes.data)),
    )  # fmt: skip
    if made:
        raise FluxloomError(f"MKL refuses a matrix of shape {matrix.shape}: status {made}")
    library.mkl_sparse_set_mv_hint(handle, _NOT_TRANSPOSED, kind, _CALLS)
    library.mkl_sparse_optimize(handle)
    kept = (offsets, indices, values)

    def run() -> tuple[Any, ...]:
        library.mkl_sparse_d_mv(
            _NOT_TRANSPOSED, ctypes.c_double(1.0), handle, kind, ctypes.c_void_p(given.ctypes.data),
            ctypes.c_double(0.0), ctypes.c_void_p(result.ctypes.data),
        )  # fmt: skip
        return result, kept

    return Peer(f"MKL, {threads} thread{'s' if threads > 1 else ''}", run)


def _load_mkl() -> ctypes.CDLL:
    """Load the single library of MKL: the system's, or that of the package in this environment."""
    folder = Path(sys.prefix) / "lib"
    names = [
        find_library("mkl_rt"),
        *sorted(map(str, folder.glob("libmkl_rt.so*"))),
        "libmkl_rt.so.3",
        "libmkl_rt.so.2",
    ]
    for name in filter(None, names):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceUnavailable("comparing with MKL needs libmkl_rt, which is not here: pip install mkl")
