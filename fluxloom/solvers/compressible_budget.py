"""Loops beside the stages of compressible flow: what leaves through the boundary, which states were clipped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.fv.guard_kernels import clipped_states, through_boundary

if TYPE_CHECKING:
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["left", "marked"]

_SMALL = 1e-9
"""Part of a state by which a residual would have to change it, for a state that stays to count as clipped."""

Stages = Sequence[tuple[float, float, float]]


def left(flow: CompressibleFlow, stages: Stages) -> list[list[Loop]]:
    r"""Return for each stage the loops that add what leaves in it to ``passed``; none without `passed`.

    Of ``U = a U_start + b U + c dt R / V`` a residual has in the end the weight :math:`c_k \prod_{j > k} b_j`.
    """
    if flow.passed is None or not flow.open:
        return [[] for _ in stages]
    weights = [c * prod(later[1] for later in stages[k + 1 :]) for k, (_, _, c) in enumerate(stages)]
    return [
        [] if not weight else
        [Loop(through_boundary, flow.boundary, flow.outflow, flow.face[flow.edge[0]], flow.dt, flow.passed,
              weight=weight, d=flow.dimension)]
        for weight in weights
    ]  # fmt: skip


def marked(flow: CompressibleFlow, states: Sequence[Dat]) -> list[list[Loop]]:
    """Return for each stage the loops that count the cells which it leaves as they were; none without `clipped`."""
    if flow.clipped is None:
        return [[] for _ in states[1:]]
    return [
        [Loop(clipped_states, flow.elements, before, flow.res, flow.step, after, flow.clipped, share=_SMALL,
              nv=flow.components)]
        for before, after in pairwise(states)
    ]  # fmt: skip
