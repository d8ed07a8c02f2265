"""The residual of a flow in time: the root mean square of how fast the velocity changes."""

from __future__ import annotations

import numpy as np

from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
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
        before = Dat(velocity.set, velocity.read(), name="u_before")
        self._total, self._volume = Global(context, 0.0, name="change"), volume
        self._measure = Loop(change, velocity.set, velocity, weight, before, self._total, d=velocity.dim)
        self.chain = Chain([Reset(self._total), self._measure], name="change")
        self.speed = self._speed(velocity, weight)

    def begin(self) -> None:
        """Measure the next step from the values that there are now. Collective."""
        velocity, weight, before = (argument.data for argument in self._measure.bound.arguments[:3])
        assert isinstance(velocity, Dat)
        assert isinstance(weight, Dat)
        assert isinstance(before, Dat)
        before.write(velocity.read())
        self.speed = self._speed(velocity, weight)

    def _speed(self, velocity: Dat, weight: Dat) -> float:
        """Return the root mean square of the velocity."""
        now = velocity.read()
        energy = float((weight.read().reshape(-1) * (now.reshape(len(now), -1) ** 2).sum(axis=1)).sum())
        return float(np.sqrt(velocity.set.context.comm.reduce(np.array([energy]), "sum")[0] / self._volume))

    def measured(self, dt: float) -> float:
        """Return it for a step of ``dt`` just made, ``sqrt(sum Omega |u - u_before|^2 / sum Omega) / dt``."""
        self.chain()
        return float(np.sqrt(self._total.value / self._volume)) / dt
