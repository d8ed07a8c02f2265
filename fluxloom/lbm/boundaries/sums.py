"""Forces and torques on many walls at once: what goes through each link, summed wall by wall.

The links of a wall are dealt out to rows of some length, these are summed, and then the sums of a wall's rows: two
loops for the forces on all walls, whatever their number, and two for torques, in which work items or threads have
enough to share. The momentum through a link, and its source, is in `fluxloom.lbm.boundaries.link_kernels`.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Read, Write
from fluxloom.core.dtypes import Scalar, SoA
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.dsl.declare.maps import Argument, TableMap
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.boundaries.link_kernels import add_push, add_turn, turns_of
from fluxloom.lbm.streaming.space import Elements, Space

__all__ = ["LinkSums", "WallSum"]

Numbers = npt.NDArray[np.int64]

ROW = 256
"""Links of a row at most, unless a wall has so many that rows of as many as there are rows are longer."""


@kernel
def sum_pushes(push: Read, total: Write):
    """``F = sum_j p_j``, the momentum through the links of a row."""
    found = zeros(len(total))
    for j in range(len(push)):
        add_push(push[j], found)
    for a in range(len(total)):
        total[a] = found[a]


@kernel
def sum_turns(push: Read, arm: Read, total: Write):
    """``T = sum_j r_j x p_j``, the moment of momentum through the links of a row."""
    found = zeros(len(total))
    for j in range(len(push)):
        add_turn(push[j], arm[j], found)
    for a in range(len(total)):
        total[a] = found[a]


class WallSum:
    """The sum of one of several walls, of all ranks.

    Parameters
    ----------
    sums
        Of all walls on this rank, ``(components,)`` each.
    number
        Of the wall.
    """

    def __init__(self, sums: Dat, number: int) -> None:
        self._sums, self._number = sums, number

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._sums.dim

    @property
    def scalar(self) -> Scalar:
        """Their type."""
        return self._sums.scalar

    @property
    def value(self) -> npt.NDArray[np.float64]:
        """The sum; collective."""
        own = self._sums.read()[self._number].astype(np.float64)
        context = self._sums.context
        return context.comm.reduce(own, "sum") if context.distributed else own

    @value.setter
    def value(self, found: npt.NDArray[np.float64]) -> None:
        """Let the sum be another one: that of the first rank."""
        values = self._sums.read()
        values[self._number] = found if self._sums.context.comm.rank == 0 else 0.0
        self._sums.write(values)

    def seen_from(self, one: Set) -> Argument:
        """Return the sum of this rank as an argument of a loop over a set of one element."""
        return self._sums[TableMap(one, self._sums.set, np.array([[self._number]]), "wall")[0]]


class LinkSums:
    """Sums of what goes through links, by wall.

    Parameters
    ----------
    space, over
        Where the links are.
    owner
        Number of the wall of each link of this rank.
    count
        Number of walls.
    push, arm
        Momentum through each link, and the way to it from the centre of rotation if torques are wanted.
    name
        For reports.

    Attributes
    ----------
    loops
        What finds the sums, behind the loop over the links.
    """

    def __init__(
        self, space: Space, over: Elements, owner: Numbers, count: int, push: Dat, arm: Dat | None, name: str
    ) -> None:
        self._space, self._name, self._push = space, name, push
        many, links, ends = _dealt(owner, count)
        context = space.context
        rows = local_set(context, int(many.sum()), f"{name} rows")
        walls = local_set(context, count, f"{name} walls")
        self._to_links = context.ragged(rows, over.set, ends, links, "links of a row")
        bounds = np.concatenate([[0], np.cumsum(many)])
        self._to_rows = context.ragged(walls, rows, bounds, np.arange(rows.size), "rows of a wall")
        self.loops: list[Loop] = []
        self._found = {"force": self._sum("force", push.dim, sum_pushes)}
        if arm is not None:
            self._found["torque"] = self._sum("torque", turns_of(push.dim), sum_turns, arm[self._to_links])

    def _sum(self, word: str, size: int, of_rows: Kernel, *more: Argument) -> Dat:
        """Add the loops that find a sum of each wall; return where it is."""
        space, title = self._space, f"{self._name} {word}"
        named: dict[str, Any] = {"name": title, "shape": (size,), "dtype": space.total, "layout": SoA()}
        rows, walls = self._to_links.source, self._to_rows.source
        some, total = (space.context.dat(over, **named) for over in (rows, walls))
        self.loops += [
            Loop(of_rows, rows, self._push[self._to_links], *more, some, name=f"{title} of rows"),
            Loop(sum_pushes, walls, some[self._to_rows], total, name=title),
        ]
        return total

    @property
    def total(self) -> Dat:
        """The forces of all walls on this rank."""
        return self._found["force"]

    def of(self, number: int) -> dict[str, WallSum]:
        """Return the ``"force"`` of a wall, and its ``"torque"`` if that is wanted."""
        return {word: WallSum(total, number) for word, total in self._found.items()}


def _dealt(owner: Numbers, count: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return how many rows each wall has, the links of all rows, and where each row begins and the last one ends.

    Rows of a wall that follow on each other take its links in turn: items that go through them side by side meet in
    memory.
    """
    many = np.bincount(owner, minlength=count)
    rows = -(-many // max(ROW, isqrt(int(many.max(initial=0)))))
    links = np.argsort(owner, kind="stable")
    place = np.arange(owner.size) - np.repeat(np.cumsum(many) - many, many)
    row = np.repeat(np.cumsum(rows) - rows, many) + place % np.repeat(rows, many)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=int(rows.sum())))])
    return rows, links[np.argsort(row, kind="stable")], ends
