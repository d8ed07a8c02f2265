"""The time of a step of large-eddy simulation from the times of three kernels, and what bounds these.

A step that is nothing but products with sparse matrices (SpMV), sums of vectors (AXPY) and scalar products (DOT) takes

.. math:: T = 30 T_{SpMV} + 10 T_{AXPY} + 2 T_{DOT} + n (2 T_{SpMV} + 3 T_{AXPY} + 2 T_{DOT})

with ``n`` iterations of the pressure solver. One number stands for all products here, that of the Laplacian; matrices
of a step differ in size, and `Part` with `total` take each as it is.

Source: G. Oyarzun, R. Borrell, A. Gorobets, A. Oliva: *Portable implementation model for CFD simulations. Application
to hybrid CPU/GPU supercomputers*. Int. J. Comput. Fluid Dyn. 31, 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from fluxloom.core.errors import FluxloomError
from fluxloom.perf.model import Roofline

__all__ = [
    "ITERATION",
    "OUTSIDE",
    "KernelTimes",
    "Part",
    "axpy_bytes",
    "dot_bytes",
    "gflops_per_joule",
    "hidden_share",
    "kernel_bounds",
    "predict",
    "spmv_bytes",
    "total",
]

OUTSIDE = (30, 10, 2)
"""SpMV, AXPY and DOT of a step in three dimensions with a model, outside the pressure solver."""

ITERATION = (2, 3, 2)
"""Those of an iteration of conjugate gradients, the preconditioner counted as a product."""

_REAL, _INDEX = 8, 4


@dataclass(frozen=True)
class KernelTimes:
    """Seconds of a call of each kernel.

    Raises
    ------
    FluxloomError
        If a time is negative or not finite.
    """

    spmv: float
    axpy: float
    dot: float

    def __post_init__(self) -> None:
        if not all(isfinite(value) and value >= 0 for value in (self.spmv, self.axpy, self.dot)):
            raise FluxloomError(f"{self}: times are finite and not negative; measure the kernels anew")

    def of(self, calls: tuple[float, float, float]) -> float:
        """Return the seconds of some calls of the three."""
        return calls[0] * self.spmv + calls[1] * self.axpy + calls[2] * self.dot


def predict(times: KernelTimes, iterations: float) -> float:
    """Return the seconds of a step with so many iterations of the pressure solver."""
    return times.of(OUTSIDE) + iterations * times.of(ITERATION)


@dataclass(frozen=True)
class Part:
    """Some of the kernels of a step that take equally long.

    Attributes
    ----------
    name, kind
        What it is, and ``"spmv"``, ``"axpy"``, ``"dot"`` or ``"extra"``.
    calls
        In a step.
    seconds
        Of a call, alone.
    nbytes
        That a call has to move.
    """

    name: str
    kind: str
    calls: float
    seconds: float
    nbytes: float

    @property
    def whole(self) -> float:
        """Seconds of all calls."""
        return self.calls * self.seconds


def total(parts: Iterable[Part], kind: str = "") -> float:
    """Return the seconds of a step that is the sum of its parts; of those of one kind, where one is named."""
    return sum(part.whole for part in parts if not kind or part.kind == kind)


def spmv_bytes(rows: int, columns: int, entries: int) -> int:
    """Return the bytes of ``y = A x`` with 32-bit columns, each value of ``x`` read once: 76 a row of five entries.

    The starts of the rows are not counted, as sliced formats have one for many rows.
    """
    return entries * (_REAL + _INDEX) + (rows + columns) * _REAL


def axpy_bytes(size: int) -> int:
    """Return the bytes of ``y = a x + y``."""
    return 3 * _REAL * size


def dot_bytes(size: int) -> int:
    """Return the bytes of ``x . y``."""
    return 2 * _REAL * size


def kernel_bounds(roof: Roofline, rows: int, entries: int) -> KernelTimes:
    """Return the least times of the kernels with a square matrix, if only memory counts."""
    return KernelTimes(
        roof.seconds(spmv_bytes(rows, rows, entries)), roof.seconds(axpy_bytes(rows)), roof.seconds(dot_bytes(rows))
    )


def hidden_share(product: float, exchange: float, overlapped: float) -> float | None:
    """Return the part of an exchange that a product hides, ``(product + exchange - overlapped) / exchange``.

    1: all of it; 0: one after the other; below 0: overlapping does harm; None: there is nothing to hide.

    Parameters
    ----------
    product, exchange
        Seconds of each alone.
    overlapped
        Seconds of both together.
    """
    return (product + exchange - overlapped) / exchange if exchange > 0 else None


def gflops_per_joule(flops: float, joules: float) -> float:
    """Return the operations for each joule, in 1e9; the same number as GFLOPS a watt.

    Raises
    ------
    FluxloomError
        If the energy is not positive.
    """
    if not joules > 0:
        raise FluxloomError(f"energy: {joules} J; the meter has not moved, measure for longer")
    return 1e-9 * flops / joules
