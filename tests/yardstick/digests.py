"""What is kept of an array: its bits as a digest, and enough numbers to tell how far another one is from it.

Beside extremes, mean and norm a record has a *sketch*: sums of all values with signs that are as good as random. Of
the difference d of two arrays a sum with random signs has the variance ``|d|^2``, so that the root of the mean square
of the differences of `SIGNS` such sums is an estimate of ``|d|``, from two records alone, without the arrays (N. Alon,
Y. Matias, M. Szegedy, *Journal of Computer and System Sciences* 58 (1999) 137-147). Values that change places are seen
too.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

SIGNS = 4
"""Sums of a sketch: the estimate of a difference is right within a factor of about two."""

NO_FIT = (math.inf, 1.0)
"""The difference of what cannot be compared."""

Array = npt.NDArray[Any]


def sha(data: bytes) -> str:
    """Return the first 64 bits of SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()[:16]


def signs(count: int, which: int) -> Array:
    """Return plus and minus ones: a bit of each index, mixed (the finaliser of SplitMix64)."""
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(which)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return 1.0 - 2.0 * ((x ^ (x >> np.uint64(31))) >> np.uint64(63)).astype(np.float64)


def digest(values: Array, sums: int = SIGNS) -> dict[str, Any]:
    """Return the record of an array; values that are not finite are counted and left out of all sums."""
    values = np.ascontiguousarray(values)
    record: dict[str, Any] = {"type": values.dtype.str[1:], "shape": list(values.shape), "sha": sha(values.tobytes())}
    if values.dtype.kind not in "fiub" or not values.size:
        return record
    flat = values.reshape(-1).astype(np.float64)
    good = np.isfinite(flat)
    if lost := int(flat.size - good.sum()):
        record["not_finite"] = lost
        flat = np.where(good, flat, 0.0)
    record |= {"least": flat.min(), "most": flat.max(), "mean": flat.mean(), "norm": math.sqrt(float(flat @ flat))}
    record["sketch"] = [float(flat @ signs(flat.size, which)) for which in range(sums)]
    return {name: float(value) if isinstance(value, np.floating) else value for name, value in record.items()}


def difference(new: Mapping[str, Any], old: Mapping[str, Any]) -> tuple[float, float]:
    """Return by how much arrays differ, and the largest value of the old one; infinite and 1 where they do not fit.

    The largest of the changes of extremes and mean and of the estimated root of the mean square of the difference; 0.0
    for arrays of the same values, though their bits may differ.
    """
    if new["shape"] != old["shape"] or new.get("not_finite") != old.get("not_finite") or "sketch" not in old:
        return NO_FIT
    count = max(1, math.prod(old["shape"]))
    sums = root_mean_square([a - b for a, b in zip(new["sketch"], old["sketch"], strict=True)])
    change = max([abs(new[name] - old[name]) for name in ("least", "most", "mean")] + [sums / math.sqrt(count)])
    return change, max(abs(old["least"]), abs(old["most"]))


def root_mean_square(values: Sequence[float]) -> float:
    """Return the root of the mean square."""
    return math.sqrt(sum(value * value for value in values) / max(1, len(values)))


def relative(change: float, scale: float) -> float:
    """Return a change over a scale; a change of what was zero is infinite."""
    return change / scale if scale else math.inf if change else 0.0
