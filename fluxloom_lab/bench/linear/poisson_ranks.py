"""A Poisson problem that is divided over ranks, timed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Literal

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.poisson import Cut, Plan
from fluxloom_lab.bench.rounds import stopwatch

__all__ = ["DIVISIONS", "divided"]

DIVISIONS = ("slabs", "pencils")
"""How a box is divided: lines are cut, or values travel so that every axis is whole at its turn."""

_CALLS = 10


def divided(
    context: Context, sides: Sequence[str], centring: str, shape: tuple[int, ...], dtype: str, division: str,
    rounds: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the time of a solve on the slowest rank, what is sent, and the milliseconds of the parts. Collective."""
    wanted: Literal["slabs", "pencils"] = "slabs" if division == "slabs" else "pencils"
    cut = Cut(decomposition=wanted)
    plan = Plan(shape, 1.0 / shape[0], tuple(sides), centring=centring, dtype=dtype, device=context, cut=cut)
    device, comm, rng = context.device, context.comm, np.random.default_rng(5 + context.comm.rank)
    f = DeviceArray.of(device, rng.standard_normal(plan.box.shape).astype(dtype))
    u = DeviceArray.zeros(device, plan.box.shape, dtype)
    steps = plan.steps(f, u)
    for _ in range(3):
        steps()
    watch = stopwatch(context)
    found = [watch.timed(steps, _CALLS) / _CALLS for _ in range(rounds)]
    context.profile = True
    try:
        steps.reset()
        for _ in range(_CALLS):
            comm.barrier()
            steps()
        parts = {name: 1e3 * seconds / _CALLS for name, seconds in steps.seconds.items()}
    finally:
        context.profile = False
    sent, plan_text = plan.bytes_sent, plan.describe()
    plan.close()
    return {"seconds_per_solve": median(found), "bytes_sent": sent, "plan": plan_text, "parts_ms": parts}
