"""Values of conditions that are given in space and time, in units of their own (`fluxloom.values`).

The term of walls that move is that of A. J. C. Ladd, *Journal of Fluid Mechanics* 271 (1994) 285, see
`fluxloom.lbm.boundaries.link_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Read, Write
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.values.given_on import GivenOn
from fluxloom.values.value import Value

__all__ = ["AT_CELLS", "AT_LINKS", "InTime", "Timed", "changing", "move"]

Reals = npt.NDArray[np.float64]

AT_CELLS, AT_LINKS = 1.0, 0.5
"""When what a step from 0 to 1 sets at cells, and what populations meet on their way between two cells, is wanted."""


@dataclass(frozen=True)
class InTime:
    """A number, or a vector, in space and time: a condition takes it in the place of values.

    Called with places on the lattice it returns the values at the start.

    Attributes
    ----------
    values
        One, or a component a dimension, x first.
    name
        What errors call it.
    dx, dt, lower
        Size of a cell, length of a step, lower corner of the box, x first.
    factor, unit, base
        On the lattice it is ``base + factor value / unit``.
    """

    values: tuple[Value, ...]
    name: str
    dx: float
    dt: float
    lower: tuple[float, ...]
    factor: float = 1.0
    unit: float = 1.0
    base: float = 0.0

    def places(self, positions: Reals) -> Reals:
        """Return places on the lattice, ``(n, d)``, as those of the values: ``x = (X + 1/2) dx + lower``."""
        at = [(positions[:, -1 - k] + 0.5) * self.dx + low for k, low in enumerate(self.lower)]
        return np.stack(at, axis=1)

    def at(self, positions: Reals, time: float) -> Reals:
        """Return ``base + factor value / unit`` at places: ``(n,)`` of a number, else ``(n, d)``, slowest axis first.

        Raises
        ------
        SolverError
            If one is not finite.
        """
        places = self.places(positions)
        found = np.stack([value.at(places, time, self.name) for value in reversed(self.values)], axis=1)
        found = self.factor * found / self.unit
        return self.base + found[:, 0] if len(self.values) == 1 else found

    def __call__(self, positions: Reals) -> Reals:
        """Return the values at the start."""
        return self.at(positions, 0.0)

    @property
    def changes(self) -> bool:
        """Whether they depend on the time."""
        return any(value.in_time for value in self.values)


def changing(values: Any) -> bool:
    """Return whether what a condition is given depends on the time."""
    return isinstance(values, InTime) and values.changes


class Timed:
    """Values at places that loops set anew in every step.

    Parameters
    ----------
    context, over
        Where.
    positions
        Places of the elements on the lattice, ``(n, d)``.
    values
        What is set, less its base.
    out
        Where loops find it: ``(n, 1)``, or ``(n, d)``, slowest axis first.
    delay
        Of the moment at which it is wanted behind the beginning of a step, in steps.
    behind
        Loops that make of it what conditions read.
    inspect
        Raises where the values of a time, on the lattice at the places, do not do. Collective.
    """

    forgets = ("_step",)

    def __init__(
        self, context: Context, over: Set, positions: Reals, values: InTime, out: Dat, delay: float, *,
        behind: Sequence[Loop] = (), inspect: Callable[[Reals], None] | None = None,
    ) -> None:  # fmt: skip
        count, scale = len(values.values), values.factor / values.unit
        least = (-values.base / scale,) if values.base else None
        self._given = GivenOn(
            context, over, values.places(positions), values.values, values.name, out=out, least=least,
            components=range(count)[::-1], weights=np.full((len(positions), count), scale),
        )  # fmt: skip
        self.loops = [*self._given.loops(), *behind]
        self._values, self._positions, self._delay, self._inspect = values, positions, delay, inspect
        self._step = 0

    def prepare(self, step: int) -> None:
        """Say that a step is next: those before it are so many."""
        self._step = step
        self._given.prepare([(step + self._delay) * self._values.dt])

    def check(self) -> None:
        """Raise `SolverError` where a value of the last steps was wrong. Collective."""
        self._given.check()
        if self._inspect is not None:
            self._inspect(self._values.at(self._positions, (self._step + self._delay) * self._values.dt))


@kernel
def move(u: Read, heading: Read, own: Read, stand: Read, kick: Write, speed: Write | None):
    """``kick = k_0 + sum_a h_a u_a`` of a wall that moves, ``h = 6 U w_i c_i``, over ``2 q`` where ``q >= 1/2``.

    ``k_0``, ``stand``, is what fluid at rest carries there; ``speed = own u``.
    """
    found = stand[0]
    for a in range(len(heading)):
        found += heading[a] * u[a]
        if speed is not None:
            speed[a] = own[a] * u[a]
    kick[0] = found
