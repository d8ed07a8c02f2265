"""The time of a step of large-eddy simulation from the times of three kernels, and what bounds these.

A step that is nothing but products with sparse matrices (SpMV), sums of vectors (AXPY) and scalar products (DOT) takes

.. math:: T = 30 T_{SpMV} + 10 T_{AXPY} + 2 T_{DOT} + n (2 T_{SpMV} + 3 T_{AXPY} + 2 T_{DOT})

with ``n`` iterations of the pressure solver. One number stands for all products here, that of the Laplacian or the mean
of all matrices of a step, which differ in size; `Part` with `total` take each as it is.

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
    "mean_times",
    "predict",
    "spmv_bytes",
    "spmv_read_bytes",
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


def predict(times: KernelTimes, iterations: float, extras: float = 0.0) -> float:
    """Return the seconds of a step with so many iterations of the pressure solver.

    Parameters
    ----------
    times
        Of the three kernels: of the Laplacian and its vectors, or the means of `mean_times`.
    extras
        Seconds of all pointwise passes of a step, which the published formula leaves out.

    Raises
    ------
    FluxloomError
        If the seconds of the passes are negative or not finite.
    """
    if not (isfinite(extras) and extras >= 0):
        raise FluxloomError(f"extras: {extras} s; times are finite and not negative, measure the passes anew")
    return times.of(OUTSIDE) + iterations * times.of(ITERATION) + extras


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
    read
        Those of them that it reads.
    """

    name: str
    kind: str
    calls: float
    seconds: float
    nbytes: float
    read: float = 0.0

    @property
    def whole(self) -> float:
        """Seconds of all calls."""
        return self.calls * self.seconds


def total(parts: Iterable[Part], kind: str = "") -> float:
    """Return the seconds of a step that is the sum of its parts; of those of one kind, where one is named."""
    return sum(part.whole for part in parts if not kind or part.kind == kind)


def mean_times(parts: Iterable[Part]) -> KernelTimes:
    """Return the mean time of a call of each of the three kernels, over all calls of a step.

    The product is then one with all matrices of the step in turn, also the larger ones of the coefficients and those
    with one entry a row.

    Raises
    ------
    FluxloomError
        If there is none of a kind.
    """
    known = list(parts)
    calls = {kind: sum(part.calls for part in known if part.kind == kind) for kind in ("spmv", "axpy", "dot")}
    if not all(calls.values()):
        raise FluxloomError(f"calls of the kernels: {calls}; a mean needs some of each")
    return KernelTimes(**{kind: total(known, kind) / number for kind, number in calls.items()})


def spmv_bytes(rows: int, columns: int, entries: int) -> int:
    """Return the bytes of ``y = A x`` with 32-bit columns, each value of ``x`` read once: 76 a row of five entries.

    The starts of the rows are not counted, as sliced formats have one for many rows.
    """
    return entries * (_REAL + _INDEX) + (rows + columns) * _REAL


def spmv_read_bytes(rows: int, columns: int, entries: int) -> int:
    """Return those bytes of ``y = A x`` that are read: all but ``y``, 68 a row of five entries."""
    return spmv_bytes(rows, columns, entries) - rows * _REAL


def axpy_bytes(size: int) -> int:
    """Return the bytes of ``y = a x + y``."""
    return 3 * _REAL * size


def dot_bytes(size: int) -> int:
    """Return the bytes of ``x . y``."""
    return 2 * _REAL * size


def kernel_bounds(roof: Roofline, rows: int, entries: int) -> KernelTimes:
    """Return the least times of the kernels with a square matrix, if only memory counts: copying and reading."""
    product, read = spmv_bytes(rows, rows, entries), spmv_read_bytes(rows, rows, entries)
    return KernelTimes(
        roof.seconds(product, read=read),
        roof.seconds(axpy_bytes(rows), read=axpy_bytes(rows) * 2 // 3),
        roof.seconds(dot_bytes(rows), read=dot_bytes(rows)),
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
