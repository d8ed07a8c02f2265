"""Ramp: values at a side that grow from zero while a flow begins."""

from __future__ import annotations

from operator import index

import numpy as np

from fluxloom.core.access import RW, Read, Write
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.streaming.space import Elements, Space

__all__ = ["Ramp", "check_ramp"]


def check_ramp(what: str, ramp: int) -> None:
    """Raise `SolverError` unless a number of steps is whole and not negative."""
    try:
        steps = index(ramp)
    except TypeError:
        raise SolverError(f"{what}(ramp={ramp!r}): a whole number of steps is wanted") from None
    if steps < 0:
        raise SolverError(f"{what}(ramp={ramp!r}): the number of steps must not be negative")


class Ramp:
    r"""Values that grow smoothly, :math:`s^2 (3 - 2 s)` of their size after a share :math:`s` of some steps.

    A flow that begins abruptly is full of waves, which a slow beginning does not make. The values are those set from
    the last step of the ramp on, to the last bit.

    Parameters
    ----------
    space, over
        Where they are.
    values
        What loops read: ``(n,)`` or ``(n, components)``.
    steps
        At least one.
    name
        Of the side, for reports.

    Attributes
    ----------
    target
        What the values grow to.
    loop, begin
        What runs before every step, and when a flow is started.
    state
        What differs from step to step.
    """

    def __init__(self, space: Space, over: Elements, values: Dat, steps: int, name: str) -> None:
        ctx, real = space.context, space.real
        shape = values.shape or (1,)
        self.target = ctx.dat(over.set, name=f"{name} target", shape=shape, dtype=real, layout=SoA())
        age = ctx.dat(over.set, np.zeros((over.set.size, 1)), f"{name} age", dtype=real)
        self.loop = Loop(grow, over.set, age, self.target, values, name=f"{name} ramp", steps=float(steps))
        self.begin = Loop(forget, over.set, age, values, name=f"{name} begin")
        self.state = (age,)


@kernel
def grow(age: RW, target: Read, value: Write, *, steps: float):
    """``value = s^2 (3 - 2 s) target`` one step later, ``s = min(age + 1, steps) / steps``."""
    age[0] = min(age[0] + 1.0, steps)
    share = age[0] / steps
    for a in range(len(target)):
        value[a] = share * share * (3.0 - 2.0 * share) * target[a]


@kernel
def forget(age: Write, value: Write):
    """``age = 0``, ``value = 0``: begin anew."""
    age[0] = 0.0
    for a in range(len(value)):
        value[a] = 0.0
