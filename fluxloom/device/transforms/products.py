"""Products of dense matrices with lines of arrays by the matrix library of a device: NumPy's BLAS, or cuBLAS."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Device
from fluxloom.device.transforms.dft import Values, merged

if TYPE_CHECKING:
    from fluxloom.device.cuda.device import CudaDevice

__all__ = ["CublasProducts", "Gemm", "HostProducts", "MatrixLibrary", "gemm", "open_products"]

_MOST = 2**31 - 1


class MatrixLibrary(Protocol):
    """Multiplies every line of an array along an axis by a matrix.

    Attributes
    ----------
    capturable
        See `fluxloom.device.base.Enqueued`.
    title
        Its name.
    """

    capturable: bool
    title: str

    def accepts(self, axis: int, source: Values, target: Values) -> bool:
        """Whether arrays that lie like these can be multiplied where they are."""
        ...

    def plan(
        self, matrix: npt.NDArray[Any], axis: int, source: Values, target: Values, *, accumulate: bool = False
    ) -> Callable[[], None]:
        """Return the function that sets, or adds, ``target[.., r, ..] = sum_i matrix[r, i] source[.., i, ..]``."""
        ...


def open_products(device: Device) -> MatrixLibrary | None:
    """Return the matrix library of a device, or None."""
    if device.shared:
        return HostProducts()
    return CublasProducts(device) if hasattr(device, "cupy") else None  # pyright: ignore[reportArgumentType]


class HostProducts:
    """Products of NumPy's arrays, with the threads of its BLAS."""

    capturable = False
    title = "BLAS through NumPy"

    def accepts(self, axis: int, source: Values, target: Values) -> bool:
        """Whether arrays that lie like these can be multiplied where they are."""
        return True

    def plan(
        self, matrix: npt.NDArray[Any], axis: int, source: Values, target: Values, *, accumulate: bool = False
    ) -> Callable[[], None]:
        """Return the function that multiplies."""
        x, y = source.array(), target.array()
        last = axis == x.ndim - 1
        if x.ndim == 1:
            x, y = x[None, :], y[None, :]
        if not last:  # a batch of matrices whose rows are the lines' values
            x, y = np.moveaxis(x, axis, -2), np.moveaxis(y, axis, -2)

        def run() -> None:
            left, right = (x, matrix.T) if last else (matrix, x)
            if accumulate:
                np.add(y, left @ right, out=y)
            else:
                np.matmul(left, right, out=y)

        return run


@dataclass(frozen=True)
class Gemm:
    """A batch of products ``C = A B`` as BLAS counts: columns one after the other.

    Attributes
    ----------
    lanes_first
        Whether ``A`` is the values and ``B`` the matrix; else the other way round.
    lanes, batch
        Lines of a product, and products.
    leads
        Distances of the columns of source and target.
    distances
        From product to product, in source and target.
    starts
        First values of source and target, of each batch.
    """

    lanes_first: bool
    lanes: int
    batch: int
    leads: tuple[int, int]
    distances: tuple[int, int]
    starts: tuple[tuple[int, int], ...]


def gemm(axis: int, source: Values, target: Values) -> Gemm | None:
    """Return how lines lie in two arrays, as BLAS counts; None where it has no words for it."""
    others = [k for k in range(len(source.view.shape)) if k != axis]
    axes = merged(*([values[k] for k in others] for values in (source.view.shape, source.steps, target.steps)))
    axes = [(1, 0, 0)] * (2 - len(axes)) + axes
    lengths = source.view.shape[axis], target.view.shape[axis]
    rows = source.steps[axis], target.steps[axis]
    lane = axes[-1]
    if lane[1:] == (1, 1):
        least, leads = (lane[0], lane[0]), rows
    elif rows == (1, 1) or max(lengths) == 1:
        least, leads = lengths, (lane[1], lane[2])
    else:
        return None
    inner = lane[0] if lane[1:] != (1, 1) else max(lengths)
    if inner == 1:  # a single column
        leads = max(least[0], leads[0]), max(least[1], leads[1])
    if leads[0] < least[0] or leads[1] < least[1] or max(leads) > _MOST or max(a[0] for a in axes) > _MOST:
        return None
    starts = tuple(
        (
            sum(i * a[1] for i, a in zip(place, axes, strict=False)),
            sum(i * a[2] for i, a in zip(place, axes, strict=False)),
        )
        for place in itertools.product(*(range(a[0]) for a in axes[:-2]))
    )
    batch = axes[-2]
    return Gemm(lane[1:] == (1, 1), lane[0], batch[0], leads, (batch[1], batch[2]), starts)


class CublasProducts:
    """cuBLAS' products, on the stream of the device.

    Parameters
    ----------
    device
        The GPU.
    """

    capturable = False  # cuBLAS may take working memory when it is called

    def __init__(self, device: CudaDevice) -> None:
        self._device, self._blas = device, device.cupy.cuda.cublas
        with device.active():
            self._handle = self._blas.create()
            self._blas.setPointerMode(self._handle, self._blas.CUBLAS_POINTER_MODE_HOST)
            self.title = f"cuBLAS {self._blas.getVersion(self._handle)}"

    def accepts(self, axis: int, source: Values, target: Values) -> bool:
        """Whether arrays that lie like these can be multiplied where they are."""
        return gemm(axis, source, target) is not None

    def plan(
        self, matrix: npt.NDArray[Any], axis: int, source: Values, target: Values, *, accumulate: bool = False
    ) -> Callable[[], None]:
        """Return the function that multiplies."""
        found = gemm(axis, source, target)
        assert found is not None
        device, blas, size = self._device, self._blas, matrix.itemsize
        address, kept = device.resident(matrix)
        multiply = blas.dgemmStridedBatched if size == 8 else blas.sgemmStridedBatched
        numbers = np.array([1.0, float(accumulate)], matrix.dtype)
        one, factor = numbers.ctypes.data, numbers.ctypes.data + size
        rows, depth = matrix.shape
        plain, turned = blas.CUBLAS_OP_N, blas.CUBLAS_OP_T
        table, values, x, y = (address, depth, 0), found.leads[0], *(
            v.buffer.address + v.view.offset for v in (source, target)
        )  # fmt: skip

        def run(kept: Any = (kept, numbers, source, target)) -> None:
            with device.active(), device.stream:  # CuPy's products run on its current stream, whatever the handle says
                for first, second in found.starts:
                    lines = (x + first * size, values, found.distances[0])
                    if found.lanes_first:
                        turns, sizes, left, right = (plain, plain), (found.lanes, rows, depth), lines, table
                    else:
                        turns, sizes, left, right = (turned, plain), (rows, found.lanes, depth), table, lines
                    multiply(
                        self._handle, *turns, *sizes, one, *left, *right, factor, y + second * size, found.leads[1],
                        found.distances[1], found.batch,
                    )  # fmt: skip

        return run
