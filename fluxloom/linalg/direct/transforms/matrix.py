"""Products of a dense matrix with every line of an array along an axis: transforms that no library has.

On the host BLAS does them, through NumPy; on devices with a matrix library of their own that one; else generated
kernels of square tiles. Real numbers alone: complex ones are sums of products of their parts.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Call, Device, Enqueued
from fluxloom.device.buffer import View
from fluxloom.device.transforms.dft import Values
from fluxloom.device.transforms.products import open_products
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Primitive
from fluxloom.linalg.direct.transforms.lines import blocks_of

__all__ = ["Basis", "Products", "imaginary_part", "product_functions", "real_matrix", "real_part"]

_BLOCK, _TILE, _DEEP = 256, 64, 16
_EACH = _TILE // 16


class Basis(Protocol):
    """What takes values to coefficients and back, as dense matrices: ``forward`` and ``backward``, ``(n, n)``."""

    @property
    def forward(self) -> npt.NDArray[np.float64]:
        """Coefficients of values."""
        ...

    @property
    def backward(self) -> npt.NDArray[np.float64]:
        """Values of coefficients; its columns are the vectors of the basis."""
        ...


_SIZES = (
    "rows", "depth", "lanes", "outers", "x_first", "x_row", "x_lane", "x_outer", "y_first", "y_row", "y_lane",
    "y_outer", "x_along", "y_along", "accumulate",
)  # fmt: skip

_PRODUCT = """
    FL_SHARED real left[DEEP * (TILE + 1)];
    FL_SHARED real right[DEEP * (TILE + 1)];
    const int across = (int)((lanes + TILE - 1) / TILE), down = (int)((rows + TILE - 1) / TILE);
    const int group = (int)FL_GROUP, member = FL_MEMBER, rest = group / across;
    const int64_t c_first = (int64_t)(group - rest * across) * TILE;
    const int r_first = rest % down * TILE;
    const int64_t o = rest / down;
    const int low = member % 16, high = member / 16;
    const int r_own = y_along ? low : high, c_own = y_along ? high : low;
    real sums[EACH * EACH];
    for (int k = 0; k < EACH * EACH; k++) sums[k] = 0;
    for (int i_first = 0; i_first < depth; i_first += DEEP) {
        for (int k = member; k < TILE * DEEP; k += BLOCK) {
            const int i = k % DEEP, r = k / DEEP;
            left[i * (TILE + 1) + r] =
                r_first + r < rows && i_first + i < depth ? matrix[(int64_t)(r_first + r) * depth + i_first + i] : 0;
        }
        for (int k = member; k < TILE * DEEP; k += BLOCK) {
            const int i = x_along ? k % DEEP : k / TILE, c = x_along ? k / DEEP : k % TILE;
            const int64_t from = x_first + o * x_outer + (c_first + c) * x_lane + (i_first + i) * x_row;
            right[i * (TILE + 1) + c] = c_first + c < lanes && i_first + i < depth ? x[from] : 0;
        }
        FL_BARRIER();
        for (int i = 0; i < DEEP; i++) {
            real own[EACH];
            FL_UNROLL
            for (int k = 0; k < EACH; k++) own[k] = right[i * (TILE + 1) + c_own + 16 * k];
            FL_UNROLL
            for (int m = 0; m < EACH; m++) {
                const real factor = left[i * (TILE + 1) + r_own + 16 * m];
                FL_UNROLL
                for (int k = 0; k < EACH; k++) sums[m * EACH + k] += factor * own[k];
            }
        }
        FL_BARRIER();
    }
    FL_UNROLL
    for (int m = 0; m < EACH; m++) {
        FL_UNROLL
        for (int k = 0; k < EACH; k++) {
            const int r = r_first + r_own + 16 * m;
            const int64_t c = c_first + c_own + 16 * k;
            if (r < rows && c < lanes) {
                const int64_t to = y_first + o * y_outer + c * y_lane + r * y_row;
                y[to] = accumulate ? y[to] + sums[m * EACH + k] : sums[m * EACH + k];
            }
        }
    }
"""


def product_functions(real: str) -> list[Function]:
    """Return the kernel of products ``y_r = sum_i matrix[r, i] x_i`` of lines; groups do squares of 64 by 64 values."""
    arrays = (
        Parameter(f"{real} *", "matrix"),
        Parameter(f"{real} *", "x"),
        Parameter(f"{real} *", "y", written=True),
    )
    return [Function("product", (*arrays, *(Parameter("int64_t", name) for name in _SIZES)), _PRODUCT, _BLOCK)]


def product_helpers(real: str) -> str:
    """Return the text before the kernel."""
    return (
        f"typedef {real} real;\n#define BLOCK {_BLOCK}\n#define TILE {_TILE}\n#define DEEP {_DEEP}\n"
        f"#define EACH {_EACH}\n"
    )


def real_part(array: DeviceArray) -> DeviceArray:
    """Return the real parts of complex values, in their place."""
    return _part(array, 0)


def imaginary_part(array: DeviceArray) -> DeviceArray:
    """Return the imaginary parts of complex values, in their place."""
    return _part(array, 1)


def _part(array: DeviceArray, number: int) -> DeviceArray:
    size = array.dtype.itemsize // 2
    view = array.view
    return DeviceArray(
        array.device, array.buffer, View(view.shape, np.dtype(f"f{size}"), view.strides, view.offset + number * size)
    )


class Products:
    """Makes calls that multiply lines by matrices.

    Parameters
    ----------
    device
        Where the values are.
    dtype
        ``float64`` or ``float32``.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any]) -> None:
        self._device, self._dtype = device, dtype

    @cached_property
    def _primitive(self) -> Primitive:
        real = scalar(self._dtype).c
        return Primitive(self._device, product_functions(real), "products", product_helpers(real))

    @cached_property
    def _library(self) -> Any:
        return open_products(self._device)

    def calls(
        self, matrix: npt.NDArray[Any], axis: int, source: DeviceArray, target: DeviceArray, name: str,
        *, accumulate: bool = False,
    ) -> list[Call | Enqueued]:  # fmt: skip
        """Return the calls of ``target[.., r, ..] = sum_i matrix[r, i] source[.., i, ..]``.

        Parameters
        ----------
        matrix
            ``(rows, depth)``.
        source, target
            Real arrays of one shape but along the axis, without a common value.
        accumulate
            Whether the product is added to the target.
        """
        dense = np.ascontiguousarray(matrix, self._dtype)
        both = Values(source.buffer, source.view), Values(target.buffer, target.view)
        if self._library is not None and self._library.accepts(axis, *both):
            run = self._library.plan(dense, axis, *both, accumulate=accumulate)
            return [Enqueued(name, run, capturable=self._library.capturable)]
        return self._generated(dense, axis, source, target, name, accumulate)

    def _generated(
        self, matrix: npt.NDArray[Any], axis: int, source: DeviceArray, target: DeviceArray, name: str, accumulate: bool
    ) -> list[Call | Enqueued]:
        table = DeviceArray.zeros(self._device, matrix.shape, self._dtype)
        table.assign(matrix)
        table.buffer.device()
        rows, depth = matrix.shape
        found: list[Call | Enqueued] = []
        for block in blocks_of(source, target, axis):
            groups = -(-block.lanes // _TILE) * -(-rows // _TILE) * block.outers
            if groups >= 2**31:
                raise PlanError(f"{name}: {groups} tiles are too many for one kernel: transform parts of the array")
            values = {
                "matrix": table, "x": source, "y": target, "rows": rows, "depth": depth, "lanes": block.lanes,
                "outers": block.outers, "accumulate": int(accumulate),
            }  # fmt: skip
            for m, (side, array) in enumerate((("x", source), ("y", target))):
                step, lane = array.strides[axis], block.lane_steps[m]
                values |= {
                    f"{side}_first": block.firsts[m], f"{side}_row": step, f"{side}_lane": lane,
                    f"{side}_outer": block.outer_steps[m],
                    f"{side}_along": int(block.lanes == 1 or abs(step) < abs(lane)),
                }  # fmt: skip
            found.append(self._primitive.call("product", values, groups * _BLOCK, name))
        return found


# -------------------------------------------------------------------------------------------- matrices


def real_matrix(kind: str, n: int) -> npt.NDArray[np.float64]:
    r"""Return a cosine or sine transform as a matrix ``(n, n)``, see `fluxloom.device.transforms.dft`.

    .. math:: T_{kj} = 2 \cos \theta_{kj} \text{ or } 2 \sin \theta_{kj}, \quad \theta = \begin{cases}
       \pi k (2 j + 1) / 2 n & \text{kind 2} \\ \pi j (2 k + 1) / 2 n & \text{kind 3} \\
       \pi (2 k + 1) (2 j + 1) / 4 n & \text{kind 4} \end{cases}

    Of kind 1 it is ``pi j k / (n - 1)``, of sines ``pi (j + 1) (k + 1) / (n + 1)``; for ``dst2`` ``k + 1`` stands for
    ``k``, for ``dst3`` ``j + 1`` for ``j``. Halved are the first column of ``dct1`` and ``dct3``, and the last one of
    ``dct1`` and ``dst3``.

    Angles are reduced as whole numbers first, so that every entry is correct to the last digit or so.
    """
    j, k = np.arange(n)[None, :], np.arange(n)[:, None]
    turn = {
        "dct1": (j * k, 2 * (n - 1)), "dct2": (k * (2 * j + 1), 4 * n), "dct3": (j * (2 * k + 1), 4 * n),
        "dct4": ((2 * k + 1) * (2 * j + 1), 8 * n), "dst1": ((j + 1) * (k + 1), 2 * (n + 1)),
        "dst2": ((k + 1) * (2 * j + 1), 4 * n), "dst3": ((j + 1) * (2 * k + 1), 4 * n),
        "dst4": ((2 * k + 1) * (2 * j + 1), 8 * n),
    }  # fmt: skip
    number, whole = turn[kind]
    angles = 2 * np.pi * (number % whole) / whole
    found = 2 * (np.cos(angles) if kind.startswith("dct") else np.sin(angles))
    if kind in ("dct1", "dct3"):
        found[:, 0] /= 2
    if kind == "dct1":
        found[:, -1] /= 2
    if kind == "dst3":
        found[:, -1] /= 2
    return found
