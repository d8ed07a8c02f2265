"""Sums of real numbers that do not depend on their order, and so not on how they are divided among ranks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm

__all__ = ["exact_total"]

_UNIT = 1074
"""Every double is a whole number of times 2 to the power of minus this."""


def exact_total(comm: Comm, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the sums of all rows of all ranks, rounded once. Collective; every rank gets the same bits.

    Parameters
    ----------
    comm
        The ranks.
    values : (n, ...)
        What this rank has.
    """
    columns = np.asarray(values, dtype=np.float64).reshape(len(values), int(np.prod(np.shape(values)[1:])))
    mine = [_whole(column) if np.isfinite(column).all() else float(column.sum()) for column in columns.T]
    sums = [_rounded(parts) for parts in zip(*comm.allgather(mine), strict=True)]
    return np.array(sums, dtype=np.float64).reshape(np.shape(values)[1:])


def _whole(values: npt.NDArray[np.float64]) -> int:
    """Return the sum of finite numbers in units of ``2**-1074``: their leading digits are added first, as integers."""
    found, rest = 0, values[values != 0.0]
    digits = 52 - len(rest).bit_length()
    while rest.size:
        unit = max(int(np.frexp(np.abs(rest).max())[1]) - digits, -_UNIT)
        leading = np.trunc(_scaled(rest, -unit))
        found += int(leading.sum()) << (unit + _UNIT)
        rest = rest - _scaled(leading, unit)
        rest = rest[rest != 0.0]
    return found


def _scaled(values: npt.NDArray[np.float64], power: int) -> npt.NDArray[np.float64]:
    return np.ldexp(values, power) if abs(power) > 1000 else values * 2.0**power


def _rounded(parts: tuple[int | float, ...]) -> float:
    """Return the sum of what the ranks have; where one has a number that is not finite, as numbers add."""
    if any(isinstance(part, float) for part in parts):
        return float(sum(part if isinstance(part, float) else 0.0 for part in parts))
    whole = sum(int(part) for part in parts)
    try:
        return float(Fraction(whole, 1 << _UNIT))
    except OverflowError:
        return float("inf") if whole > 0 else float("-inf")
