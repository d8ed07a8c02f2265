"""Thomas's algorithm for one system in NumPy, as far as it tells which row of a system has no pivot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["lost_row"]

Array = npt.NDArray[Any]


def lost_row(a: Array, b: Array, c: Array, *, periodic: bool = False, dtype: Any = np.float64) -> int:
    """Return the first row whose pivot vanishes or is no finite number in elimination from the first row on; -1: none.

    The pivots are ``p_i = b_i - a_i c_{i-1} / p_{i-1}``.

    In periodic systems the last row is what stands there once all others have been put into it; it vanishes where
    rounding in ``dtype`` is all that is left of it.
    """
    n = len(b)
    if periodic and n == 1:
        total = a[0] + b[0] + c[0]
        return -1 if np.isfinite(total) and total != 0 else 0
    m = n - 1 if periodic else n
    ahead, left, far, corner = 0.0, -1.0, float(c[-1]), float(b[-1])
    with np.errstate(all="ignore"):
        for i in range(m):
            low = a[i] if i or periodic else 0.0
            pivot = b[i] - low * ahead if i else b[i]
            if not np.isfinite(pivot) or pivot == 0:
                return i
            ahead = c[i] / pivot if periodic or i < m - 1 else 0.0
            if periodic:
                left, far = -low * left / pivot, far + (a[-1] if i == m - 1 else 0.0)
                corner -= far * (left + (ahead if i == m - 1 else 0.0))
                far *= -ahead
    tiny = 2.0 * n * float(np.finfo(dtype).eps) * abs(float(b[-1]))
    return n - 1 if periodic and not abs(corner) > tiny else -1
