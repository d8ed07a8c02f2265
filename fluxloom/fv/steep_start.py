"""Whether what a scalar starts from is discontinuous, or as steep: then schemes that are not bounded make new extrema.

A front or a narrow bell that rises by a quarter of the range within a quarter of the way between two cells is no smooth
one to the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.fv.given import Given, given_values
from fluxloom.values.value import has_values

__all__ = ["discontinuous", "steepest"]

Array = npt.NDArray[np.float64]

_HALVINGS = 10
"""Of the distance between neighbours."""

_QUARTER = 2
"""Halvings after which a front is judged."""

_SHARE, _FRONT = 0.05, 0.25
"""Of the range: what is left of a jump that counts, and of a front."""


def steepest(given: Given, first: Array, second: Array) -> float:
    """Return by how much values differ at most between places ``(n, d)`` each, once these have come close.

    Of each pair the middle is taken ten times, always that half across which values differ more: where they are
    smooth little is left, a jump stays. What a front has left after two counts as a jump of a fifth of that.
    """
    if not (callable(given) or has_values(given)) or not len(first):
        return 0.0
    left, right = (given_values("initial", given, places) for places in (first, second))
    front = 0.0
    for done in range(_HALVINGS):
        if done == _QUARTER:
            front = float(np.abs(right - left).max())
        middle = 0.5 * (first + second)
        value = given_values("initial", given, middle)
        before = np.abs(value - left) >= np.abs(right - value)
        first, second = np.where(before[:, None], first, middle), np.where(before[:, None], middle, second)
        left, right = np.where(before, left, value), np.where(before, value, right)
    return max(float(np.abs(right - left).max()), _SHARE / _FRONT * front)


def discontinuous(comm: Comm, values: Sequence[Array], jumps: Sequence[float | Array]) -> bool:
    """Return whether a jump, on any rank, is much of the range, ``jump > SHARE (max q - min q)``. Collective."""
    size = max((float(np.max(jump, initial=0.0)) for jump in jumps), default=0.0)
    ends = [part for part in values if part.size]
    top, bottom = max((p.max() for p in ends), default=-np.inf), min((p.min() for p in ends), default=np.inf)
    jump, high, low = (float(v) for v in comm.reduce(np.array([size, top, -bottom]), "max"))
    return jump > _SHARE * (high + low)
