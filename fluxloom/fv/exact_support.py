"""What exact solutions of compressible flow share: checks, a root finder for arrays, and states of plane flow."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["bisect", "check_gamma", "check_positive", "plane_states"]

Array = npt.NDArray[np.float64]

_HALVINGS = 80
"""Of an interval: more than the digits of a double and those of its exponent that matter here."""


def check_gamma(gamma: float) -> None:
    """Raise `SolverError` unless a ratio of specific heats is a number above 1."""
    if not (isfinite(gamma) and gamma > 1.0):
        raise SolverError(f"gamma: a number above 1 is wanted, not {gamma!r}")


def check_positive(**values: float) -> None:
    """Raise `SolverError` unless all values are finite and above 0."""
    for name, value in values.items():
        if not (isfinite(value) and value > 0.0):
            raise SolverError(f"{name}: a number above 0 is wanted, not {value!r}")


def plane_states(points: Array, density: Array, velocity: tuple[Array, Array], pressure: Array | float) -> Array:
    """Return primitive states ``(n, d + 2)`` at points ``(n, d)`` of a flow in the plane of the first two axes."""
    found = np.zeros((len(points), points.shape[1] + 2))
    found[:, 0], found[:, 1], found[:, 2] = density, *velocity
    found[:, -1] = pressure
    return found


def bisect(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return where an array function changes its sign, between two arrays at which it has different ones.

    Parameters
    ----------
    function
        Of an array, element by element.
    low, high : (n,)
        Ends of the intervals.
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    rising = function(low) <= 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        right = (function(middle) <= 0.0) == rising
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return 0.5 * (low + high)
