"""Random numbers that places decide on, so that they are the same however a mesh is numbered or divided."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["place_noise"]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST, _UNUSED = np.uint64(31), np.uint64(11)


def place_noise(places: npt.NDArray[np.float64], components: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """Return random numbers, evenly distributed in [-1, 1), for places.

    The bits of the coordinates are mixed as in SplitMix64.

    Parameters
    ----------
    places : (n, d)
        Coordinates.
    components
        Numbers a place.
    seed
        Another one gives other numbers.

    Returns
    -------
    (n, components)

    References
    ----------
    G. L. Steele, D. Lea, C. H. Flood: *Fast splittable pseudorandom number generators*. OOPSLA 2014, fig. 16.
    """
    bits = np.ascontiguousarray(places, dtype=np.float64).view(np.uint64)
    found = np.empty((len(places), components))
    for k in range(components):
        state = np.full(len(places), np.uint64(seed) * np.uint64(2 * components + 1) + np.uint64(k), dtype=np.uint64)
        for column in bits.T:
            state = _mixed(state + _STEP) ^ column
        found[:, k] = (_mixed(state + _STEP) >> _UNUSED) * 2.0**-52 - 1.0
    return found


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 64 well-mixed bits a number."""
    for shift, factor in _MIX:
        state = (state ^ (state >> shift)) * factor
    return state ^ (state >> _LAST)
