"""Loops beside the stages of compressible flow: what leaves through the boundary, which states were clipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod

from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop

__all__ = ["left", "marking"]

_SMALL = 1e-9
"""Part of a state by which a residual would have to change it, for a state that stays to count as clipped."""

Stages = Sequence[tuple[float, float, float]]


def left(stages: Stages, add: Callable[[float], Loop] | None) -> list[list[Loop]]:
    r"""Return for each stage the loops that add what leaves in it, with its weight; none without such a loop.

    Of ``U = a U_start + b U + c dt R / V`` a residual has in the end the weight :math:`c_k \prod_{j > k} b_j`.
    """
    if add is None:
        return [[] for _ in stages]
    weights = [c * prod(later[1] for later in stages[k + 1 :]) for k, (_, _, c) in enumerate(stages)]
    return [[add(weight)] if weight else [] for weight in weights]


def marking(w: Dat, between: Sequence[Dat], stages: int, count: Callable[[Dat, Dat, float], Loop]) -> list[Loop]:
    """Return the loops that count the cells which one of the last two stages left as they were.

    They run after the step: what its stages found is still there.

    Parameters
    ----------
    w, between
        States after the step, and between its stages.
    stages
        How many there are.
    count
        Returns the loop for states before and after a stage, and the least change of a state that counts.
    """
    last = (stages - 2) % len(between)
    states = [*([between[1 - last]] if len(between) > 1 else []), between[last], w]
    return [count(before, after, _SMALL) for before, after in pairwise(states)]
