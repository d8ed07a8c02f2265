"""Loops beside the stages of compressible flow: what leaves through the boundary, which states were clipped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.fv.guard_kernels import clipped_states, through_boundary
from fluxloom.solvers.compressible_scheme import STAGES

if TYPE_CHECKING:
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["left", "marking"]

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


def marking(flow: CompressibleFlow, between: Sequence[Dat]) -> list[Loop]:
    """Return the loops that count in ``clipped`` the cells which one of the last two stages left as they were.

    They run after the step: what its stages found is still there.
    """
    assert flow.clipped is not None
    last = (len(STAGES[flow.scheme.time]) - 2) % len(between)
    states = [*([between[1 - last]] if len(between) > 1 else []), between[last], flow.w]
    return [
        Loop(clipped_states, flow.elements, before, flow.res, flow.step, after, flow.clipped, share=_SMALL,
             nv=flow.components)
        for before, after in pairwise(states)
    ]  # fmt: skip
