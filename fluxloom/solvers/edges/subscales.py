"""Subscales of the pressure of flow on edges, those of ``tau`` at once or followed in time, and their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges import flow as edge_flow
from fluxloom.fe.edges import subscales as kernels
from fluxloom.fe.edges.operators import EdgeOperators
from fluxloom.fe.edges.pressures import lift, tracked_lift
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.status import Status

__all__ = ["PressureSubscales", "QuasiStatic", "StepValues", "Subscales", "Tracked", "TrackedSubscales"]

_ROUNDS = 8
"""Corrections of the initial pressure, each of which halves the error that boundaries make."""
_LONG = 1e3
"""Of the largest stable step: one beside which the time of the subscales is short."""
_TINY = 1e-4
"""Of the largest stable step: a step that shows how fast the velocity changes."""


class StepValues(Protocol):
    """What subscales ask of `fluxloom.solvers.edges.loops.EdgeLoops`; see there."""

    context: Context
    points: Set
    dimension: int
    operators: EdgeOperators
    scheme: Any
    hat: Dat
    u: Dat
    p: Dat
    rise: Dat
    b: Dat
    nu: Dat
    size: Dat
    tau: Dat
    slope: Dat
    free: Dat
    stiffness: Dat
    diagonal: Dat
    matrix: SparseMatrix
    step_length: Global
    worst: Global
    whole: Dat
    momentum: Chain
    fill: Chain

    def gather(self, what: Kernel, *arguments: Any, over: Set | None = None, **constants: Any) -> Loop:
        """Return a loop over points whose kernel has the integrals of their edges first."""
        ...

    def both(self, *dats: Dat) -> Iterator[Any]:
        """Yield of each dat the values of the neighbours and that of the point."""
        ...


class PressureSubscales(Protocol):
    """The subscales of a flow: their values, and their loops of a step."""

    def track(self) -> list[Loop]:
        """Return the loops that end the step before; the slope of the pressure is that of now."""
        ...

    def pressure(self, ends: Loop) -> list[Loop]:
        """Return the loops that fill the matrix of the pressure and its right-hand side; ``ends`` its diagonal."""
        ...

    def lifted(self, rise: Dat) -> Loop:
        """Return the loop to what a rise of the pressure that is given takes from the right-hand side."""
        ...

    def imbalance(self) -> Loop:
        """Return the loop that measures what the solver of the pressure has left."""
        ...

    def kept(self) -> AbstractContextManager[None]:
        """Leave the subscales as they are while the matrix of the pressure is filled for another reason than a step."""
        ...

    def stepped(self, dt: float) -> None:
        """Take note of a step."""
        ...

    def begin(self, status: Status, limit: Callable[[], float], solve: Callable[[str], Status]) -> Status:
        """Begin with a velocity that is as free of divergence as it gets.

        Parameters
        ----------
        status
            Of the solver that made it so, which has converged.
        limit
            Returns the largest stable step.
        solve
            Solves for the rise of the pressure; the text says what for.
        """
        ...


class Subscales(Strategy, what="kind of subscales", group="fluxloom.edge_subscales"):
    """Subscales of the pressure; a member is a frozen dataclass that makes those of a flow."""

    def check(self, pressure: float) -> None:
        """Raise `SolverError` where the factor of ``tau`` in the equation of the pressure does not fit."""

    def build(self, loops: StepValues) -> PressureSubscales:
        """Return the subscales of a flow, whose values are there but none of its loops."""
        raise NotImplementedError(f"{type(self).__name__} has to define build(loops)")


@dataclass(frozen=True)
class QuasiStatic(Subscales, name="quasi-static"):
    """Those of ``tau`` at once."""

    def build(self, loops: StepValues) -> PressureSubscales:
        """Return them."""
        return _StaticSubscales(loops)


@dataclass(frozen=True)
class Tracked(Subscales, name="tracked"):
    """With a memory in time instead of ``dynamic / dt``: see `fluxloom.fe.edges.subscales`."""

    def check(self, pressure: float) -> None:
        """Raise where it is 0."""
        if not pressure > 0.0:
            raise SolverError("pressure: a number above 0 is wanted with subscales that are tracked")

    def build(self, loops: StepValues) -> PressureSubscales:
        """Return them."""
        return TrackedSubscales(loops)


class _StaticSubscales:
    """The subscales are ``tau`` times what the pressure has beyond its slope."""

    def __init__(self, loops: StepValues) -> None:
        self._loops = loops

    def track(self) -> list[Loop]:
        """Return nothing: they have no memory."""
        return []

    def pressure(self, ends: Loop) -> list[Loop]:
        """Return the loops of ``tau``, the matrix and the right-hand side."""
        loops, tau, free = self._loops, self._loops.tau, self._loops.free
        rows = loops.operators.neighbours.to_entries
        return [
            Loop(edge_flow.relaxation, loops.points, loops.hat, loops.nu, loops.size, loops.step_length, tau,
                 d=loops.dimension, factor=loops.scheme.pressure, name="relaxation", **loops.scheme.times),
            Loop(edge_flow.assemble_pressure, loops.points, loops.stiffness[rows], *loops.both(tau, free),
                 loops.step_length,
                 loops.matrix.values[rows], loops.diagonal, name="edges.fill"),
            ends,
            loops.gather(edge_flow.continuity, *loops.both(loops.hat, loops.p, tau, loops.slope), free, loops.b),
        ]  # fmt: skip

    def lifted(self, rise: Dat) -> Loop:
        """Return the loop to what a rise of the pressure that is given takes from the right-hand side."""
        loops, rows = self._loops, self._loops.operators.neighbours.to_entries
        return Loop(lift, loops.points, loops.stiffness[rows], *loops.both(loops.tau, rise), loops.free,
                    loops.step_length, loops.b, name="edges.lift")  # fmt: skip

    def imbalance(self) -> Loop:
        """Return the loop that measures what the solver of the pressure has left."""
        loops = self._loops
        parts = loops.both(loops.hat, loops.p, loops.tau, loops.slope, loops.whole)
        return loops.gather(edge_flow.imbalance, *parts, loops.free, loops.step_length, loops.worst)

    def kept(self) -> AbstractContextManager[None]:
        """Keep nothing."""
        return nullcontext()

    def stepped(self, dt: float) -> None:
        """Take no note."""

    def begin(self, status: Status, limit: Callable[[], float], solve: Callable[[str], Status]) -> Status:
        """Return the status: there is nothing to find."""
        return status


class TrackedSubscales:
    """Subscales that are followed in time.

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

    def __init__(self, loops: StepValues) -> None:
        ctx, self._loops = loops.context, loops
        self.s = ctx.dat(loops.operators.neighbours.entries, name="subscales")
        self.rate = ctx.dat(loops.points, name="rate")
        self.before = ctx.scalar(0.0, "dt_before")

    def begin(self, status: Status, limit: Callable[[], float], solve: Callable[[str], Status]) -> Status:
        """Find subscales and pressure to the velocity.

        The divergence that is left is that of subscales, ``D u + sum s = 0``, or the first step would take it with a
        pressure of ``1 / dt``. The pressure is the one that leaves it so, which tiny steps show, each from the start;
        from a pressure of 0 the first steps would be left in the subscales, an error of first order.
        """
        longest = limit()
        longest = longest if np.isfinite(longest) else 1.0
        dt, longest = _TINY * longest, _LONG * longest
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

    def track(self) -> list[Loop]:
        """Return the loop that ends the step before; the slope of the pressure is that of now."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        end = loops.both(loops.p, self.rate, loops.slope)
        return [loops.gather(kernels.tracked, *end, self.before, self.s[rows])]

    def pressure(self, ends: Loop) -> list[Loop]:
        """Return the loops of ``rho``, the matrix and the right-hand side."""
        return [self._relaxation(), self._fill(), ends, self._continuity()]

    def stepped(self, dt: float) -> None:
        """Take note of the length of a step."""
        self.before.value = dt

    def _relaxation(self) -> Loop:
        """Return the loop that makes ``rho`` of a step."""
        loops = self._loops
        scheme = loops.scheme
        return Loop(
            kernels.relaxation_rate, loops.points, loops.hat, loops.u, loops.nu, loops.size, self.rate,
            d=loops.dimension, factor=scheme.pressure, viscous=scheme.viscous, convective=scheme.convective,
            name="relaxation_rate",
        )  # fmt: skip

    def _fill(self) -> Loop:
        """Return the loop that fills the matrix of the pressure."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return Loop(
            kernels.tracked_fill, loops.points, loops.stiffness[rows], *loops.both(self.rate, loops.free),
            loops.step_length, loops.matrix.values[rows], loops.diagonal, name="edges.tracked_fill",
        )  # fmt: skip

    def _continuity(self) -> Loop:
        """Return the loop of the right-hand side."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return loops.gather(
            kernels.tracked_continuity, *loops.both(loops.hat, loops.p, self.rate, loops.slope), loops.free,
            loops.step_length, self.s[rows], loops.b,
        )  # fmt: skip

    def lifted(self, rise: Dat) -> Loop:
        """Return the loop to what a rise of the pressure that is given takes from the right-hand side."""
        loops, rows = self._loops, self._loops.operators.neighbours.to_entries
        return Loop(tracked_lift, loops.points, loops.stiffness[rows], *loops.both(self.rate, rise), loops.free,
                    loops.step_length, loops.b, name="edges.tracked_lift")  # fmt: skip

    def imbalance(self) -> Loop:
        """Return the loop that measures what the solver of the pressure has left."""
        loops = self._loops
        rows = loops.operators.neighbours.to_entries
        return Loop(
            kernels.leftover, loops.points, loops.matrix.values[rows], loops.rise[loops.operators.neighbours], loops.b,
            loops.worst, name="edges.leftover",
        )  # fmt: skip
