"""The libraries that solvers of tridiagonal systems are compared with: SciPy's bands, cuSPARSE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.packages import require
from fluxloom.dsl.context import Context
from fluxloom.machine.system import package_version
from fluxloom.perf.stopwatch import Run

__all__ = ["Peer", "usual_library"]

_FEW = 1 << 18
"""Rows that SciPy solves of a problem: its time is that of a loop over systems, which may be cut short."""


@dataclass(frozen=True)
class Peer:
    """A library to compare with: what it is, a call of it, and the share of the systems that the call solves."""

    name: str
    run: Run
    share: float = 1.0


def usual_library(context: Context, values: Sequence[npt.NDArray[Any]], layout: str) -> Peer | None:
    """Return the usual library of a device, set up for the systems ``a, b, c, y``; None where there is none."""
    if context.device.name == "cpu":
        return _bands(values, layout)
    if context.device.name.startswith("cuda"):
        return _interleaved(context, values) if layout == "interleaved" else _strided(context, values)
    return None


def _bands(values: Sequence[npt.NDArray[Any]], layout: str) -> Peer:
    """Return SciPy's `solve_banded`, system by system, as users call it."""
    from scipy.linalg import solve_banded

    axis = 0 if layout == "interleaved" else 1
    a, b, c, y = (np.moveaxis(v, axis, -1) for v in values)
    systems, rows = b.shape
    some = max(1, min(systems, _FEW // rows))
    bands = np.zeros((some, 3, rows), b.dtype)
    bands[:, 0, 1:], bands[:, 1], bands[:, 2, :-1] = c[:some, :-1], b[:some], a[:some, 1:]
    right = np.ascontiguousarray(y[:some])

    def run() -> None:
        for band, side in zip(bands, right, strict=True):
            solve_banded((1, 1), band, side, check_finite=False)

    return Peer(f"scipy {package_version('scipy')} solve_banded", run, some / systems)


def _arrays(context: Context, values: Sequence[npt.NDArray[Any]]) -> tuple[Any, Any, list[Any]]:
    cupy = require("cupy", "cuda", "comparing with cuSPARSE")
    library = require("cupy_backends.cuda.libs.cusparse", "cuda", "comparing with cuSPARSE")
    device: Any = context.device
    with device.active():
        return cupy, library, [cupy.array(v) for v in values]


def _letter(values: Sequence[npt.NDArray[Any]]) -> str:
    return "d" if values[0].dtype == np.float64 else "s"


def _interleaved(context: Context, values: Sequence[npt.NDArray[Any]]) -> Peer:
    """Return cuSPARSE's Thomas algorithm on interleaved systems; each call also destroys and solves what it left."""
    cupy, library, (a, b, c, y) = _arrays(context, values)
    rows, systems = b.shape
    handle = cupy.cuda.device.get_cusparse_handle()
    name = f"{_letter(values)}gtsvInterleavedBatch"
    pointers = [array.data.ptr for array in (a, b, c, y)]
    size = getattr(library, f"{name}_bufferSizeExt")(handle, 0, rows, *pointers, systems)
    work = cupy.empty(max(1, size), cupy.uint8)
    return Peer(f"cuSPARSE {name}", _on_stream(context, library, handle, name, (0, rows, *pointers, systems), work))


def _strided(context: Context, values: Sequence[npt.NDArray[Any]]) -> Peer:
    """Return cuSPARSE's cyclic reduction on contiguous systems."""
    cupy, library, (a, b, c, y) = _arrays(context, values)
    a[:, 0] = 0
    c[:, -1] = 0
    systems, rows = b.shape
    handle = cupy.cuda.device.get_cusparse_handle()
    name = f"{_letter(values)}gtsv2StridedBatch"
    pointers = [array.data.ptr for array in (a, b, c, y)]
    size = getattr(library, f"{name}_bufferSizeExt")(handle, rows, *pointers, systems, rows)
    work = cupy.empty(max(1, size), cupy.uint8)
    return Peer(f"cuSPARSE {name}", _on_stream(context, library, handle, name, (rows, *pointers, systems, rows), work))


def _on_stream(
    context: Context, library: Any, handle: int, name: str, arguments: Sequence[int], work: Any
) -> Callable[[], None]:
    """Return a call on the stream of the device, so that waiting for the device waits for it."""
    function = getattr(library, name)
    device: Any = context.device

    def run() -> None:
        with device.active(), device.stream:  # CuPy runs libraries on its current stream, whatever their handle says
            function(handle, *arguments, work.data.ptr)

    return run
