"""The residual of a flow in time: the root mean square of how fast the velocity changes."""

from __future__ import annotations

import numpy as np

from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.kernel.frontend import kernel

__all__ = ["Change"]


@kernel
def change(u: Read, volume: Read, before: RW, total: Inc, *, d: Const[int]):
    """``sum Omega |u - u_before|^2``, then ``u_before = u``."""
    for k in range(d):
        step = u[k] - before[k]
        total[0] += volume[0] * step * step
        before[k] = u[k]


class Change:
    """The root mean square of ``du/dt`` over the volume, step by step.

    Parameters
    ----------
    velocity
        Of the flow, ``(d,)``; the first step is measured from the values it has now.
    weight
        Volume of each of its elements.
    volume
        Sum of the weights of all ranks.

    Attributes
    ----------
    speed
        Root mean square of the velocity now, before the first step. Collective.
    """

    def __init__(self, velocity: Dat, weight: Dat, volume: float) -> None:
        context = velocity.set.context
        now = velocity.read()
        before = Dat(velocity.set, now, name="u_before")
        energy = float((weight.read().reshape(-1) * (now.reshape(len(now), -1) ** 2).sum(axis=1)).sum())
        self.speed = float(np.sqrt(context.comm.reduce(np.array([energy]), "sum")[0] / volume))
        self._total, self._volume = Global(context, 0.0, name="change"), volume
        measure = Loop(change, velocity.set, velocity, weight, before, self._total, d=velocity.dim)
        self.chain = Chain([Reset(self._total), measure], name="change")

    def measured(self, dt: float) -> float:
        """Return it for a step of ``dt`` that has just been made."""
        self.chain()
        return float(np.sqrt(self._total.value / self._volume)) / dt
