"""Subscales of the pressure of flow on edges that are followed in time: their values, and their loops of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.dsl.loop import Loop
from fluxloom.fe import edge_subscales as kernels
from fluxloom.linalg.status import Status

if TYPE_CHECKING:
    from fluxloom.solvers.edge_loops import EdgeLoops

__all__ = ["TrackedSubscales"]

_ROUNDS = 8
"""Corrections of the initial pressure, each of which halves the error that boundaries make."""


class TrackedSubscales:
    """What `fluxloom.solvers.edge_loops.EdgeLoops` has more, and otherwise, with ``subscales = "tracked"``.

    Parameters
    ----------
    loops
        With its values, before it has loops.

    Attributes
    ----------
    s : Dat
        The subscales, a number an entry.
    rate : Dat
        ``rho`` of the points, in the last step.
    before : Global
        Length of the last step; 0 before the first one.
    """

    def __init__(self, loops: EdgeLoops) -> None:
        ctx, self._loops = loops.context, loops
        self.s = ctx.dat(loops.operators.neighbours.entries, name="subscales")
        self.rate = ctx.dat(loops.points, name="rate")
        self.before = ctx.scalar(0.0, "dt_before")

    def begin(self, dt: float, longest: float, solve: Callable[[str], Status]) -> Status:
        """Begin with a velocity that is as free of divergence as it gets; find subscales and pressure to it.

        The divergence that is left is that of subscales, ``D u + sum s = 0``, or the first step would take it with a
        pressure of ``1 / dt``. The pressure is the one that leaves it so, which tiny steps show, each from the start;
        from a pressure of 0 the first steps would be left in the subscales, an error of first order.

        Parameters
        ----------
        dt
            Of the tiny steps.
        longest
            Of a step beside which the time of the subscales is short.
        solve
            Solves for the rise of the pressure; the text says what for.
        """
        loops = self._loops
        rows, offsets = loops.operators.neighbours.to_entries, loops.operators.neighbours.offsets
        self.s.write(0.0)
        self.before.value, loops.step_length.value = 0.0, longest
        loops.hat.write(loops.u.read())
        loops.fill()
        left, status = loops.b.read(), solve("the initial subscales")
        if not status.converged:
            return status
        Loop(
            kernels.seeded, loops.points, loops.stiffness[rows], *loops.both(self.rate, loops.rise), loops.step_length,
            self.s[rows], name="edges.seeded",
        )()  # fmt: skip
        seeds = self.s.read()
        # What the solver has left of D u + sum s would count 1 / dt times.
        off = loops.free.read() * np.add.reduceat(seeds, offsets[: loops.points.size]) - left
        loops.step_length.value = dt
        for _ in range(_ROUNDS):
            loops.rise.write(0.0)
            loops.momentum()
            loops.fill()
            loops.b.write(loops.b.read() + off)
            status = solve("the initial pressure")
            loops.p.write(loops.p.read() + loops.rise.read())
            self.s.write(seeds)
        loops.rise.write(0.0)
        loops.hat.write(loops.u.read())
        return status

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Leave the subscales as they are while the matrix of the pressure is filled for another reason than a step."""
        values = [(dat, dat.read()) for dat in (self.s, self.rate)]
        yield
        for dat, value in values:
            dat.write(value)

    def track(self) -> Loop:
        """Return the loop that ends the step before; the slope of the pressure is that of now."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return loops.gather(kernels.tracked, *loops.both(loops.p, self.rate, loops.slope), self.before, self.s[rows])

    def relaxation(self) -> Loop:
        """Return the loop that makes ``rho`` of a step."""
        loops = self._loops
        scheme = loops.scheme
        return Loop(
            kernels.relaxation_rate, loops.points, loops.hat, loops.u, loops.nu, loops.size, self.rate,
            d=loops.dimension, factor=scheme.pressure, viscous=scheme.viscous, convective=scheme.convective,
            name="relaxation_rate",
        )  # fmt: skip

    def fill(self) -> Loop:
        """Return the loop that fills the matrix of the pressure."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return Loop(
            kernels.tracked_fill, loops.points, loops.stiffness[rows], *loops.both(self.rate, loops.free),
            loops.step_length, loops.matrix.values[rows], loops.diagonal, name="edges.tracked_fill",
        )  # fmt: skip

    def continuity(self) -> Loop:
        """Return the loop of the right-hand side."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return loops.gather(
            kernels.tracked_continuity, *loops.both(loops.hat, loops.p, self.rate, loops.slope), loops.free,
            loops.step_length, self.s[rows], loops.b,
        )  # fmt: skip

    def imbalance(self) -> Loop:
        """Return the loop that measures what the solver of the pressure has left."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return Loop(
            kernels.leftover, loops.points, loops.matrix.values[rows], loops.rise[loops.operators.neighbours], loops.b,
            loops.worst, name="edges.leftover",
        )  # fmt: skip
