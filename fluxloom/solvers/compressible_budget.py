"""Loops beside the stages of compressible flow: what leaves through the boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fluxloom.dsl.loop import Loop

__all__ = ["left"]

Stages = Sequence[tuple[float, float, float]]


def left(stages: Stages, add: Callable[[float, bool], Loop] | None) -> list[list[Loop]]:
    r"""Return for each stage the loops that add what leaves in it, made for a weight, and for the first one or not.

    Of ``U = a U_start + b U + c dt R / V`` a residual has in the end the weight :math:`c_k \prod_{j > k} b_j`.
    """
    if add is None:
        return [[] for _ in stages]
    weights = [c * prod(later[1] for later in stages[k + 1 :]) for k, (_, _, c) in enumerate(stages)]
    first = next((k for k, weight in enumerate(weights) if weight), 0)
    return [[add(weight, k == first)] if weight else [] for k, weight in enumerate(weights)]
