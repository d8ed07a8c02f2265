"""Tridiagonal systems whose rows are divided over ranks.

Each rank condenses its rows of a system to two equations in its first and last row and the rows beside them on other
ranks (`ranks_text`). Those of all ranks are a tridiagonal system of two rows a rank. Its solution says what lies beside
the rows of each rank, which then solves for its own ones alone: right-hand sides are read twice and solutions written
once, and a rank sends two values a system and right-hand side, whatever the number of rows.

Where all systems share their coefficients, or share them up to a shift, the small matrices do not depend on the
right-hand sides: they are formed once.

Source: H. H. Wang, "A parallel method for tridiagonal equations", ACM Trans. Math. Softw. 7 (1981) 170; the two ways to
solve the small systems: K.-H. Kim, J.-H. Kang, X. Pan and J.-I. Choi, Comput. Phys. Commun. 260 (2021) 107722.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.transforms.mover import Mover, Place
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.matrices import Matrices
from fluxloom.linalg.direct.tridiagonal.ranks.ends import Ends
from fluxloom.linalg.direct.tridiagonal.ranks.messages import Division, EveryoneSolves, Gathering, SharesSolved, Where
from fluxloom.linalg.direct.tridiagonal.solver import TridiagonalSolver

__all__ = ["DistributedTridiagonal", "Way"]

Way = Literal["auto", "all", "shares"]
"""Who solves the small systems: every rank all of them, or each rank its share."""

_WAYS = ("auto", "all", "shares")
_LATENCY_BYTES = 4 << 20
"""Bytes that travel in the time that one more round of messages costs."""


class DistributedTridiagonal:
    """Solves many tridiagonal systems whose rows are divided over ranks. Collective, as `items` is.

    Parameters
    ----------
    context
        The ranks.
    lines
        The rows that this rank has, two at least; the systems, right-hand sides and `Lines.outer` are the same on
        all ranks of a group.
    form
        As for `TridiagonalSolver`; ``periodic`` couples the last row of the last rank with the first of the first.
    group
        The ranks that share these systems, in the order of the rows; by default all. Every rank of the context
        makes its solver, each with its own group.
    method
        For the systems of this rank's rows; see `TridiagonalSolver`.
    way
        ``"all"``: every rank is sent all small systems and solves them (one round of messages); ``"shares"``: each
        rank solves some of them (two rounds of smaller messages); ``"auto"``: what moves least.
    pieces
        Into how many parts the systems are divided, so that the messages of one travel while the next is condensed;
        with ``"all"`` only.
    name
        For messages and profilers.

    Attributes
    ----------
    bytes_sent, messages
        That this rank sends at each solve.
    way
        Which was taken.

    Raises
    ------
    SolverError
        If a rank has fewer than two rows, or ranks of a group disagree about the systems.
    """

    def __init__(
        self, context: Context, lines: Lines, form: Form, *, group: Sequence[int] | None = None, method: str = "auto",
        way: Way = "auto", pieces: int = 1, name: str = "lines",
    ) -> None:  # fmt: skip
        if pieces < 1:
            raise SolverError(f"{name}: {pieces} pieces: one at least")
        if way not in _WAYS:
            raise SolverError(f"way {way!r}{did_you_mean(str(way), _WAYS)}: one of {', '.join(_WAYS)}")
        self.context, self.lines, self.form, self.name = context, lines, form, name
        ranks = tuple(range(context.comm.size)) if group is None else tuple(group)
        self._most = self._agree(ranks)
        self.group, self.place = ranks, ranks.index(context.comm.rank)
        self._local = TridiagonalSolver(
            context.device, lines, replace(form, periodic=False), method, threads=context.threads
        )
        self.way = self._chosen(way)
        kinds = form.rhs + (3 if form.coefficients == "each" else 0)
        division = Division(ranks, self.place, lines.systems, form.rhs, kinds, form.dtype)
        self._messages: Gathering = SharesSolved(context, division, name) if self.way == "shares" else (
            EveryoneSolves(context, division, pieces, name)
        )  # fmt: skip
        self._ends = Ends(context, lines, form, name)
        self._small: TridiagonalSolver | None = None
        self.bytes_sent, self.messages = self._messages.bytes_sent, self._messages.count

    def _agree(self, ranks: tuple[int, ...]) -> tuple[int, int]:
        """Check what the ranks of a group have to have in common, on every rank alike.

        Returns
        -------
        tuple
            Ranks of the largest group, and the most systems of a group.
        """
        lines, form = self.lines, self.form
        found = self.context.comm.allgather((ranks, lines.systems, lines.outer, form, lines.rows))
        for rank, (group, systems, outer, other, rows) in enumerate(found):
            if rows < 2:
                raise SolverError(
                    f"{self.name}: rank {rank} has {rows} rows of the lines, two at least are needed to condense them: "
                    "take fewer ranks, or divide another axis"
                )
            first = found[group[0]] if group else found[rank]
            if rank not in group or (group, systems, outer, other) != first[:4]:
                raise SolverError(f"{self.name}: rank {rank} has other systems, form or group than rank {group[:1]}")
        return max(len(item[0]) for item in found), max(item[1] for item in found)

    def _chosen(self, way: Way) -> str:
        """Return the way with less to wait for: P - 1 messages of everything, or twice as many of a P-th part of it.

        All groups take the same one.
        """
        if way != "auto":
            return way
        ranks, systems = self._most
        one = 2 * self.form.rhs * systems * self.form.dtype.itemsize
        return "all" if (ranks - 1) * one * (1 - 2 / ranks) <= _LATENCY_BYTES else "shares"

    # ---------------------------------------------------------------------------------------- a solve
    def items(
        self, *, y: DeviceArray, x: DeviceArray, matrices: Matrices, scale: float = 1.0, pinned: int = -1,
        y_first: int | None = None, x_first: int | None = None,
    ) -> list[Call | Enqueued]:  # fmt: skip
        """Return the items of a sequence that solves. Collective.

        Parameters
        ----------
        y, x
            Right-hand sides and solutions of this rank's rows, with the steps of ``lines``; may be the same memory.
            The first and last row of ``y`` are changed.
        matrices
            Those of this rank's rows. ``a`` of the first rank's first row and ``c`` of the last rank's last row are not
            read unless the systems are periodic. Unless every system has its own coefficients, the values they have
            now are the ones that count.
        scale, y_first, x_first
            As for `TridiagonalSolver.calls`.
        pinned
            The system whose diagonal value is doubled in the first row of the first rank; -1: none.
        """
        start = self.lines.first
        y_at, x_at = (start + v.first if f is None else f for v, f in ((y, y_first), (x, x_first)))
        pin = pinned if self.place == 0 else -1
        small, given = self._small_systems(matrices, pin, pinned >= 0)
        self._small = small
        messages = self._messages
        head: list[Call | Enqueued] = []
        for begin, count, items in messages.sending():
            if count > 0:
                head.append(self._ends.condense(matrices, (y, y_at), messages.where, (begin, count), pin, scale))
            head += items
        head += messages.receiving()
        if self.form.coefficients == "each":
            head += self._unpacked(given)
        near = messages.systems
        solve = _named(small.calls(y=near, x=near, matrices=given, y_first=0, x_first=0), f"{self.name} small")
        back, place = messages.returning()
        sides = (self._left, self._right)
        join = [self._ends.join(matrices, (y, y_at), place, messages.share, sides, 1 / scale)] if any(sides) else []
        local = self._local.calls(y=y, x=x, matrices=matrices, scale=scale, pinned=pin, y_first=y_at, x_first=x_at)
        return [*head, *solve, *back, *join, *_named(local, f"{self.name} rows")]

    @property
    def _left(self) -> bool:
        return self.form.periodic or self.place > 0

    @property
    def _right(self) -> bool:
        return self.form.periodic or self.place < len(self.group) - 1

    # -------------------------------------------------------------------------------- the small systems
    def _small_systems(self, m: Matrices, pin: int, pinned: bool) -> tuple[TridiagonalSolver, Matrices]:
        """Return the solver of the small systems and its coefficients; collective unless each system has its own."""
        shared = self.form.coefficients == "shared" and not pinned
        form = Form(self.form.real, "shared" if shared else "each", self.form.periodic, self.form.rhs)
        lines, share = self._messages.lines, self._messages.share
        solver = TridiagonalSolver(self.context.device, lines, form, "auto", threads=self.context.threads)
        if shared:
            return solver, self._gathered(self._planned(m, -1, 1, 1)[0])
        arrays = [DeviceArray.zeros(self.context.device, (lines.outer, lines.rows, share), form.dtype) for _ in "abc"]
        if self.form.coefficients != "each":
            found = self._messages.matrices(self._planned(m, pin, self._messages.blocks, share))
            for array, values in zip(arrays, found, strict=True):
                array.assign(np.ascontiguousarray(values))
                array.buffer.device()
        return solver, Matrices(*arrays, steps=(share, 1, lines.rows * share))

    def _planned(self, m: Matrices, pin: int, blocks: int, share: int) -> npt.NDArray[Any]:
        """Return the coefficients of this rank's equations, ``(blocks, 2, 3, share)``; 0 1 0 beyond the systems."""
        kind = self.form.dtype
        ends = DeviceArray.zeros(self.context.device, (blocks, 2, 3, share), kind)
        start = np.zeros((blocks, 2, 3, share), kind)
        start[:, :, 1] = 1
        ends.assign(start)
        count = min(self.lines.systems, blocks * share)
        call = self._ends.condense(m, None, Where(ends, 0, share, 6 * share), (0, count), pin, 1.0)
        Steps(self.context.device, [call], m.buffers, [ends.buffer])()
        return np.array(ends.host())

    def _gathered(self, mine: npt.NDArray[Any]) -> Matrices:
        """Return the coefficients that all systems share, of the rows of all ranks; collective."""
        found = self.context.comm.allgather(mine[:, :, 0])
        rows = np.concatenate([found[r] for r in self.group])
        return Matrices(*(np.ascontiguousarray(rows[:, k]) for k in range(3)))

    def _unpacked(self, given: Matrices) -> list[Call]:
        """Return the calls that take the coefficients out of the messages."""
        mover = Mover(self.context.device, self.form.dtype, self.context.threads)
        arrays = [array for array in (given.a, given.b, given.c) if isinstance(array, DeviceArray)]
        places = [self._messages.kind(self.form.rhs + k) for k in range(3)]
        return [
            mover.call(array.shape, place, Place.of(array), f"{self.name} coefficients")
            for array, place in zip(arrays, places, strict=True)
        ]

    # ------------------------------------------------------------------------------------------ reports
    def check(self) -> None:
        """Raise `SolverError`, on every rank, when a pivot vanished on one. Waits; collective."""
        problem = ""
        for solver, what in ((self._small, "the small systems between ranks"), (self._local, "its own rows")):
            try:
                if solver is not None:
                    solver.check()
            except SolverError as error:
                problem = problem or f"rank {self.context.comm.rank}, {what}: {error}"
        found = [text for text in self.context.comm.allgather(problem) if text]
        if found:
            raise SolverError(f"{self.name}: {found[0]}")

    def describe(self) -> str:
        """Return what is done, and what is sent."""
        small = "every rank solves all small systems" if self.way == "all" else "each rank solves its share"
        return (
            f"{self.lines.systems} lines over {len(self.group)} ranks, {self.lines.rows} rows here by "
            f"{self._local.method}; {small} of {2 * len(self.group)} rows; {self.messages} messages, "
            f"{self.bytes_sent} bytes a solve, by {self._messages.carriers}"
        )

    def close(self) -> None:
        """Give back what carries the messages."""
        self._messages.close()


def _named(calls: Sequence[Call], name: str) -> list[Call]:
    """Return calls with another name, by which profilers tell them apart."""
    return [replace(call, name=name) for call in calls]
