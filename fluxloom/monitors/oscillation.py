"""Oscillations of a signal: their frequency and amplitude."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["frequency"]

Array = npt.NDArray[np.float64]

_PERIODS = 3


def frequency(times: Array, values: Array) -> tuple[float, float] | None:
    """Return the frequency and the amplitude of an oscillation, from its last half; None where there is none.

    The frequency is that of upward passages through the middle, placed by linear interpolation; a passage counts after
    the value has been below by half of the amplitude, so that noise does not.
    """
    half = len(times) // 2
    t, v = times[half:], values[half:]
    if len(t) < 2 * _PERIODS:
        return None
    low, high = float(v.min()), float(v.max())
    wave = v - 0.5 * (low + high)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return None
    all_up = np.flatnonzero((wave[:-1] < 0.0) & (wave[1:] >= 0.0))
    deep = np.flatnonzero(wave < -0.25 * (high - low))
    up = all_up[np.unique(np.searchsorted(all_up, deep))[:-1]] if len(all_up) and len(deep) else all_up[:0]
    if len(up) < _PERIODS:
        return None
    at = t[up] - wave[up] * (t[up + 1] - t[up]) / (wave[up + 1] - wave[up])
    return float((len(at) - 1) / (at[-1] - at[0])), 0.5 * (high - low)
