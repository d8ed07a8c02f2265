"""Thomas's algorithm for one system in NumPy: which row of a system has no pivot, and a measure for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["lost_row", "thomas"]

Array = npt.NDArray[Any]


def thomas(a: Array, b: Array, c: Array, y: Array, *, periodic: bool = False) -> Array:
    """Return the solution of ``a_i u_{i-1} + b_i u_i + c_i u_{i+1} = y_i``.

    In a periodic system of two rows both couplings of a row lead to the other one; one row has ``a + b + c``.

    Parameters
    ----------
    a, b, c
        The diagonals, ``(n,)``. ``a[0]`` and ``c[n-1]`` are read in periodic systems only.
    y
        The right-hand sides, ``(n,)`` or ``(n, k)``.

    Source: C. Temperton, J. Comput. Phys. 19 (1975) 317, section 2 (the last unknown is kept apart).
    """
    n = len(b)
    right = np.asarray(y, np.result_type(a, b, c, y)).reshape(n, -1)
    if not periodic:
        return _open(a, b, c, right).reshape(np.shape(y))
    if n == 1:
        return (right / (a + b + c)[:, None]).reshape(np.shape(y))
    column = np.zeros((n - 1, 1), right.dtype)
    column[0] += a[0]
    column[-1] += c[n - 2]
    both = _open(a[:-1], b[:-1], c[:-1], np.hstack([right[:-1], column]))
    own, far = both[:, :-1], both[:, -1]
    last = (right[-1] - a[-1] * own[-1] - c[-1] * own[0]) / (b[-1] - a[-1] * far[-1] - c[-1] * far[0])
    return np.vstack([own - far[:, None] * last, last[None]]).reshape(np.shape(y))


def _open(a: Array, b: Array, c: Array, right: Array) -> Array:
    n, found = len(b), np.array(right)
    ahead = np.zeros(n, found.dtype)
    for i in range(n):
        low = a[i] if i else 0
        pivot = b[i] - (low * ahead[i - 1] if i else 0)
        ahead[i] = c[i] / pivot if i < n - 1 else 0
        found[i] = (found[i] - (low * found[i - 1] if i else 0)) / pivot
    for i in range(n - 2, -1, -1):
        found[i] -= ahead[i] * found[i + 1]
    return found


def lost_row(a: Array, b: Array, c: Array, *, periodic: bool = False, dtype: Any = np.float64) -> int:
    """Return the first row whose pivot vanishes or is no finite number in elimination from the first row on; -1: none.

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
