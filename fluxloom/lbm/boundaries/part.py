"""What a condition is at run time: loops before every step, values that can be changed, forces measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.in_time import Timed
from fluxloom.lbm.boundaries.sums import WallSum
from fluxloom.lbm.cells.links import HALF_WAY, Links
from fluxloom.lbm.streaming.space import Space

__all__ = ["Condition", "Part", "Site", "own_components"]


@dataclass(frozen=True)
class Site:
    """Where a condition acts.

    Attributes
    ----------
    name
        Of the side or body.
    links
        Populations that arrive from it; those through an edge of the box belong to one side alone.
    labels
        Over the grid: 0 where there is fluid.
    axis, outward
        Across the side, slowest first, and -1 or 1: which way out; None and 0 for a body.
    cells
        Numbers in the grid of the fluid cells at the side, less those in which an edge condition acts.
    cut
        Cells and directions of all links that bodies cut between fluid cells.
    standing
        Along which axes a wall or a plane of symmetry carries the fluid that a force presses on it.
    planes
        Axes across planes of symmetry, and which way out of the box they are.
    excess
        Of a body by how many cells it is larger than those that it has; None: that is not known.
    """

    name: str
    links: Links
    labels: npt.NDArray[np.int16]
    axis: int | None = None
    outward: int = 0
    cells: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cut: frozenset[tuple[int, int]] = frozenset()
    standing: tuple[bool, ...] = ()
    planes: tuple[tuple[int, int], ...] = ()
    excess: float | None = None

    def leads(
        self, cells: npt.NDArray[np.int64], directions: npt.NDArray[np.int64], sources: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Return which populations come to cells from the fluid: their sources are, and no body is on the way."""
        found = self.is_fluid(sources)
        if self.cut:
            found &= [pair not in self.cut for pair in zip(cells.tolist(), directions.tolist(), strict=True)]
        return found

    def is_fluid(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which cells of the grid are fluid."""
        return self.labels.reshape(-1)[cells] == 0

    def side(self) -> tuple[int, int]:
        """Return the axis and the way out.

        Raises
        ------
        SolverError
            For a body.
        """
        if self.axis is None:
            raise SolverError(f"body {self.name!r}: only sides of the box take this condition; give the body a Wall")
        return self.axis, self.outward


def own_components(site: Site, links: Links, *, interpolated: bool) -> npt.NDArray[np.int64]:
    """Return which components of the momentum through links a side or body gets, and with which sign.

    Links through corners of the box are shared: a side gets no component across another one. Where a link meets a body
    at a wall, the wall gets the component across itself. A plane of symmetry gets it where both are met at once; behind
    it is the mirror image of the body, whose momentum across has the other sign.
    """
    found = np.ones(links.crossed.shape, dtype=np.int64)
    for axis in range(links.crossed.shape[1]):
        for way in (-1, 1):
            at = links.crossed[:, axis] == way
            if site.axis is not None:
                found[at, axis] = int(axis == site.axis)
                continue
            where = np.where(interpolated, links.fractions[at], HALF_WAY)
            beyond = -1 if (axis, way) in site.planes else 0
            found[at, axis] = np.where(where < HALF_WAY, 1, np.where(where > HALF_WAY, beyond, 0))
    return found


class Condition(Protocol):
    """What happens at a side or body: a frozen dataclass that makes its part of a flow.

    Attributes
    ----------
    order
        Which condition has the links through an edge where sides meet: that of the least number.
    stage
        When it runs: ascending. What arrives from walls is known before cells at sides are completed.
    """

    @property
    def order(self) -> int:
        """Ascending: who has the links through edges."""
        ...

    @property
    def stage(self) -> int:
        """Ascending: what runs first."""
        ...

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        ...


Steps = Sequence[Loop | Reset]


def _same(force: Sequence[float]) -> None:
    """Take no notice of another force."""


class Part:
    """A condition at a side or on a body, at run time.

    Parameters
    ----------
    name
        Of the side or body.
    steps
        What runs before a step: one sequence for each of the parities of the space.
    links
        How many populations it puts in place.
    begin
        As ``steps``: what runs once, when a flow is started; by default the same, so that conditions that remember
        find what arrives from walls.
    force, torque
        Momentum, and moment of momentum, that went from the fluid to the wall in the last step; None where it is not
        measured.
    assign
        Takes new values; None where there are none.
    halfway
        Links that were to be interpolated but are half-way, as the second cell is no fluid.
    state
        What differs from step to step: a copy of it is needed to go on from a saved flow.
    carry
        Takes another force that acts everywhere; None where nothing depends on it.
    late
        As ``steps``: what runs when no condition needs what has left cells any more.
    timed
        Values that change in time: their loops run first of all.
    """

    def __init__(
        self,
        name: str,
        steps: Sequence[Steps],
        *,
        links: int,
        begin: Sequence[Steps] | None = None,
        force: Global | WallSum | None = None,
        torque: Global | WallSum | None = None,
        assign: Callable[[Any], None] | None = None,
        halfway: int = 0,
        state: tuple[Dat, ...] = (),
        late: Sequence[Steps] = (),
        timed: Sequence[Timed] = (),
        carry: Callable[[Sequence[float]], None] | None = None,
    ) -> None:
        self.name, self.links, self.halfway, self.state = name, links, halfway, state
        self.late, self.carry, self.timed = tuple(late), carry or _same, tuple(timed)
        self.force, self.torque = force, torque
        self._steps = tuple(steps)
        self._begin = self._steps if begin is None else tuple(begin)
        self._assign = assign
        self._followers: list[Callable[[Any], None]] = []

    def loops(self, parity: int) -> list[Loop | Reset]:
        """Return what runs before a step of that parity."""
        return [*(loop for one in self.timed for loop in one.loops), *self._steps[parity % len(self._steps)]]

    def begin(self, parity: int) -> list[Loop | Reset]:
        """Return what runs once, when a flow is started at a step of that parity."""
        return list(self._begin[parity % len(self._begin)])

    def assign(self, values: Any) -> None:
        """Change the values that are set: as the condition takes them, from the next step on.

        Raises
        ------
        SolverError
            If the condition has none, or they do not fit.
        """
        if self._assign is None:
            why = "this condition sets no values that could be changed"
            why = "the values of this condition change in time by themselves" if self.timed else why
            raise SolverError(f"{self.name}: {why if self.links else 'no link leads to it from a fluid cell'}")
        self._assign(values)
        for follow in self._followers:
            follow(values)

    def follow(self, assign: Callable[[Any], None]) -> None:
        """Let others know of new values: edges where this side meets another one."""
        self._followers.append(assign)

    def __repr__(self) -> str:
        return f"Part({self.name}, {self.links} links)"
