"""What generators need of curves: cubic splines through points, and where a function is 0.

SciPy has both, with the same numbers; to import them takes longer than a small mesh and the start of a run together.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError

__all__ = ["CubicSpline", "root_between"]

Array = npt.NDArray[np.float64]


class CubicSpline:
    r"""A cubic spline through points of a plane, with continuous second derivatives.

    With intervals ``h`` and slopes ``sigma`` of the chords, the derivatives ``s`` at the points follow from

    .. math:: h_i s_{i-1} + 2 (h_{i-1} + h_i) s_i + h_{i-1} s_{i+1} = 3 (h_i \sigma_{i-1} + h_{i-1} \sigma_i)

    Parameters
    ----------
    x : (n,)
        Places, rising, at least four.
    y : (n,)
        Values there.
    periodic
        Whether the curve is closed (the last value is the first); else the third derivative has no jump at the second
        point and the last but one.

    References
    ----------
    C. de Boor: *A Practical Guide to Splines*. Springer, 1978.
    """

    def __init__(self, x: Array, y: Array, periodic: bool = False) -> None:
        h = np.diff(x)
        chord = np.diff(y) / h
        lower, middle, upper, right = h[1:], 2 * (h[:-1] + h[1:]), h[:-1], 3 * (h[1:] * chord[:-1] + h[:-1] * chord[1:])
        if periodic:
            s = _closed(h, chord, middle, right)
        else:
            a, b = x[2] - x[0], x[-1] - x[-3]
            first = ((h[0] + 2 * a) * h[1] * chord[0] + h[0] ** 2 * chord[1]) / a
            last = (h[-1] ** 2 * chord[-2] + (2 * b + h[-1]) * h[-2] * chord[-1]) / b
            s = _tridiagonal(
                np.append(lower, b), np.r_[h[1], middle, h[-2]], np.append(a, upper), np.r_[first, right, last]
            )
        bend = (s[:-1] + s[1:] - 2 * chord) / h
        self._x = x
        self._powers = y[:-1], s[:-1], (chord - s[:-1]) / h - bend, bend / h

    def __call__(self, x: Array) -> Array:
        """Return the values at places; beyond the ends those of the last cubic."""
        interval = np.clip(np.searchsorted(self._x, x, side="right") - 1, 0, self._x.size - 2)
        away = x - self._x[interval]
        total, power = self._powers[0][interval], away
        for factors in self._powers[1:]:
            total = total + factors[interval] * power
            power = power * away
        return total


def _closed(h: Array, chord: Array, middle: Array, right: Array) -> Array:
    """Return the derivatives of a closed curve: the last unknown apart, the others as the sum of two solutions."""
    first = 3 * (h[0] * chord[-1] + h[-1] * chord[0])
    last = 3 * (h[-1] * chord[-2] + h[-2] * chord[-1])
    matrix = h[1:-1], np.append(2 * (h[-1] + h[0]), middle[:-1]), np.append(h[-1], h[:-3])
    ends = np.zeros(h.size - 1)
    ends[0], ends[-1] = -h[0], -h[-3]
    one, other = _tridiagonal(*matrix, np.append(first, right[:-1])), _tridiagonal(*matrix, ends)
    apart = (last - h[-2] * one[0] - h[-1] * one[-1]) / (2 * (h[-1] + h[-2]) + h[-2] * other[0] + h[-1] * other[-1])
    return np.r_[one + apart * other, apart, one[0] + apart * other[0]]


def _tridiagonal(lower: Array, middle: Array, upper: Array, right: Array) -> Array:
    """Solve a tridiagonal system by elimination: entries of the rows below and above the diagonal, one fewer each."""
    below, diagonal, above, found = lower.tolist(), middle.tolist(), upper.tolist(), right.tolist()
    for i, entry in enumerate(below):
        factor = entry / diagonal[i]
        diagonal[i + 1] -= factor * above[i]
        found[i + 1] -= factor * found[i]
    found[-1] /= diagonal[-1]
    for i in range(len(above) - 1, -1, -1):
        found[i] = (found[i] - above[i] * found[i + 1]) / diagonal[i]
    return np.array(found)


def root_between(
    function: Callable[[float], float], low: float, high: float, *, within: float = 2e-12, relative: float = 2.0**-50
) -> float:
    """Return where a function is 0, by Brent's method: secants and parabolas, and halves where these are no better.

    Parameters
    ----------
    function
        With different signs at the ends.
    low, high
        The ends.
    within, relative
        How far from the place the result may be: ``within``, and this part of it.

    Raises
    ------
    MeshError
        If the signs at the ends are the same, or there is a place without a value.

    References
    ----------
    R. P. Brent: *Algorithms for Minimization Without Derivatives*. Prentice-Hall, 1973, chapter 4.
    """
    before, here, other = low, high, 0.0
    at_before, at_here, at_other = float(function(low)), float(function(high)), 0.0
    if at_before == 0.0:
        return before
    if at_here != 0.0 and (at_before < 0.0) == (at_here < 0.0):
        raise MeshError(f"no root is known to lie from {low:g} to {high:g}: {at_before:g} and {at_here:g} at the ends")
    last = step = 0.0
    while True:
        if isnan(at_here):
            raise MeshError(f"no root can be found from {low:g} to {high:g}: there is no value at {here:g}")
        if at_before != 0.0 and at_here != 0.0 and (at_before < 0.0) != (at_here < 0.0):
            other, at_other = before, at_before
            last = step = here - before
        if abs(at_other) < abs(at_here):
            before, here, other = here, other, here
            at_before, at_here, at_other = at_here, at_other, at_here
        least = 0.5 * (within + relative * abs(here))
        half = 0.5 * (other - here)
        if at_here == 0.0 or abs(half) < least:
            return here
        trial = half
        if abs(last) > least and abs(at_here) < abs(at_before):
            if before == other:
                trial = -at_here * (here - before) / (at_here - at_before)
            else:
                one, two = (at_before - at_here) / (before - here), (at_other - at_here) / (other - here)
                trial = -at_here * (at_other * two - at_before * one) / (two * one * (at_other - at_before))
        better = trial is not half and 2 * abs(trial) < min(abs(last), 3 * abs(half) - least)
        last, step = (step, trial) if better else (half, half)
        before, at_before = here, at_here
        here += step if abs(step) > least else (least if half > 0.0 else -least)
        at_here = float(function(here))
