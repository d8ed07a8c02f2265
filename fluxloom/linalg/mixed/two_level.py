"""Many ranks compute, few devices solve: gather, solve, scatter.

::

    level 1   a part of the rows for each solver device
    level 2   each part divided among the ranks of the group that is tied to it
    solve     the ranks of a group send b and x to the first one, the masters solve together, and send x back

So a code whose other parts run on the cores of a processor solves its Poisson equation on the GPUs of its machine.

References
----------
The portable algebraic CFD thesis (TermoFluids), section 1.4.3: four processes for each GPU; gather and scatter take
less than one per cent of the solve.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm, Message
from fluxloom.comm.rows import Places
from fluxloom.core.errors import FluxloomError, PreconditionerError, SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.named_device import open_named
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.run.chain import Chain
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.matrix.distribute import distributed_matrix
from fluxloom.linalg.matrix.local_rows import refuse
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.square import global_rows, numbers_of
from fluxloom.linalg.mixed.two_level_rows import GroupRows, group_colours, spread_rows
from fluxloom.linalg.status import Status

__all__ = ["GatherTimes", "GatheredSolver", "Make"]

Make = Callable[[Comm], Context]
"""Returns the context of a master; its communicator is the given one, that of the masters."""

Index = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GatherTimes:
    """Where the time of the solves went, on this rank.

    Attributes
    ----------
    calls
        Number of solves.
    gather
        Seconds until the right-hand side was on the solver device, or sent.
    solve
        Seconds of the solver; on the other ranks of a group, of waiting for it.
    scatter
        Seconds until the solution was where it belongs.
    """

    calls: int = 0
    gather: float = 0.0
    solve: float = 0.0
    scatter: float = 0.0

    @property
    def overhead(self) -> float:
        """``(gather + scatter) / solve``, seconds of gathering and scattering over those of solving."""
        return (self.gather + self.scatter) / self.solve if self.solve else 0.0

    def with_one(self, marks: Sequence[float]) -> GatherTimes:
        """Return the sum with one more solve, from the clock at its beginning, in between, and at its end."""
        a, b, c, d = marks
        return GatherTimes(self.calls + 1, self.gather + b - a, self.solve + c - b, self.scatter + d - c)


@dataclass(eq=False)
class _Master:
    """What the first rank of a group has: the solver, and where the rows of the group are in its vectors."""

    solver: Krylov
    b: Dat
    x: Dat
    place: Index

    def take(self, values: Reals) -> None:
        """Set both vectors from ``(2, rows, ...)`` in the order of the ranks, and bring them to the device."""
        for dat, row in zip((self.b, self.x), values, strict=True):
            dat.write(row[self.place])
            dat.buffer.device()
        self.solver.context.synchronize()

    def give(self) -> Reals:
        """Return the solution in the order of the ranks."""
        found = self.x.read()
        out = np.empty_like(found)
        out[self.place] = found
        return out


class GatheredSolver:
    """Solves ``A x = b`` on one device for each group of ranks; called like any solver of `fluxloom.linalg`.

    Collective: every rank of the communicator of ``b`` makes it, and calls `solve`, as for `Krylov`. The matrix is
    gathered once: later changes of its values are not seen.

    Parameters
    ----------
    matrix
        The rows of this rank: a distributed `SparseMatrix` with the rows of ``b``, or ``(owned, total)`` with global
        columns, a SciPy sparse array or matrix whose rows are those of ``b``.
    b, x
        Right-hand side, and solution, on the ranks; also several systems at once.
    groups
        Number of groups, of consecutive ranks, or the number of the group of each rank. The first rank of a group is
        its master.
    device
        What a master solves on: a name as in ``"cuda:0"`` or ``"cpu:4"``, one a group, or a function of the
        communicator of the masters that returns a context with it.
    method
        `ConjugateGradient`, `BiCGStab` or `GMRES`.
    layout
        How the masters store the matrix.
    reorder
        Whether the masters reorder their rows; see `distributed_matrix`.
    rest
        Whether ranks that wait for the solution leave their cores to others, as where the master solves on these cores:
        it takes some milliseconds longer.
    name
        In messages and reports.
    choices
        ``preconditioner`` (a recipe), ``stop``, ``nullspace``, ``interval``, as for `Krylov`.

    Attributes
    ----------
    times
        Where the time went on this rank.
    groups
        The group of each rank.
    group
        Communicator of the ranks of this group.
    masters
        That of the masters; None on the other ranks.
    check_next
        As `Krylov` has it.

    Raises
    ------
    SolverError
        On every rank, if on one of them the parts do not fit each other, or a device cannot be had.
    """

    title = "gathered solver"

    def __init__(
        self,
        matrix: Any,
        b: Dat,
        x: Dat,
        *,
        groups: int | Sequence[int] = 1,
        device: str | Device | Sequence[str] | Make = "cpu",
        method: type[Krylov] = ConjugateGradient,
        layout: RaggedLayout | None = None,
        reorder: bool = False,
        rest: bool = False,
        name: str = "",
        **choices: Any,
    ) -> None:
        self.name = name or self.title
        self.b, self.x, self.context = b, x, b.context
        self.times, self._rest, self.check_next = GatherTimes(), rest, False
        comm = self.context.comm
        self.groups = group_colours(comm.size, groups)
        rows, numbers = self._rows(matrix)
        colour = self.groups[comm.rank]
        group = comm.split(colour, comm.rank)
        assert group is not None
        self.group = group
        self.masters = comm.split(0 if group.rank == 0 else -1, comm.rank)
        context = self._opened(device)
        gathered = spread_rows(group, rows, numbers, [1.0] + [0.0] * (group.size - 1), inner_first=False)
        self._master = None
        if context is not None:
            self._master = self._make(context, gathered, method, layout, reorder, choices)
        self._channels()
        self.context.comm.barrier()

    # ------------------------------------------------------------------------------------------ making it
    def _rows(self, matrix: Any) -> tuple[Any, Index]:
        """Return the rows of this rank with global columns, and their numbers. Collective."""
        numbers = numbers_of(self.b.set)[: self.b.set.size]
        rows, problem = matrix, ""
        if self.b is self.x or self.b.set is not self.x.set or self.b.shape != self.x.shape or len(self.b.shape) > 1:
            problem = f"b ({self.b!r}) and x ({self.x!r}): two dats of one shape, () or (systems,), on the same rows"
        elif isinstance(matrix, SparseMatrix):
            if matrix.rows is not self.b.set or matrix.columns is not matrix.rows:
                problem = f"the matrix is on {matrix.rows}, b on {self.b.set}"
            else:
                rows = global_rows(matrix)
        elif not hasattr(matrix, "tocsr"):
            problem = f"a distributed SparseMatrix, or rows of SciPy, are wanted, not {type(matrix).__name__}"
        elif matrix.shape != (self.b.set.size, self.b.set.total):
            problem = f"rows of shape {matrix.shape} for {self.b.set.size} of {self.b.set.total} rows"
        refuse(self.context.comm, problem and f"{self.name}: {problem}")
        return rows, numbers

    def _opened(self, device: str | Device | Sequence[str] | Make) -> Context | None:
        """Return the context of a master, None on other ranks. Collective."""
        problem, found = "", None
        if self.masters is not None:
            try:
                found = _context(device, self.masters)
            except FluxloomError as error:
                problem = str(error)
        refuse(self.context.comm, problem and f"{self.name}: {problem}")
        return found

    def _make(
        self, context: Context, gathered: GroupRows, method: type[Krylov], layout: RaggedLayout | None, reorder: bool,
        choices: dict[str, Any],
    ) -> _Master:  # fmt: skip
        """Return the solver of this group. Collective among the masters."""
        matrix = distributed_matrix(
            context, gathered.rows, rows=gathered.numbers, layout=layout, reorder=reorder, name=f"{self.name}.matrix"
        )
        part = matrix.rows.part
        wanted = np.sort(gathered.numbers) if part is None else part.numbers[: part.owned]
        b, x = (context.dat(matrix.rows, name=what, shape=self.x.shape, dtype="float64") for what in ("b", "x"))
        solver = method(matrix, b, x, name=self.name, **choices)
        return _Master(solver, b, x, Places(gathered.numbers).of(wanted))

    def _channels(self) -> None:
        """Make the messages between the master and the other ranks of its group."""
        group, shape = self.group, self.x.shape
        counts = group.allgather(self.x.set.size)
        ends = np.cumsum(counts)
        first = group.rank == 0
        self._spans = [slice(int(end - count), int(end)) for count, end in zip(counts, ends, strict=True)]
        self._sent = np.zeros((2, self.x.set.size, *shape))
        self._back = np.zeros((self.x.set.size, *shape))
        others = [rank for rank in range(1, group.size) if counts[rank]] if first else []
        self._arrived = {rank: np.zeros((2, counts[rank], *shape)) for rank in others}
        self._leaving = {rank: np.zeros((counts[rank], *shape)) for rank in others}
        up = [] if first or not self.x.set.size else [Message(0, self._sent)]
        down = [] if first or not self.x.set.size else [Message(0, self._back)]
        self._up = group.channel(up, [Message(rank, array) for rank, array in self._arrived.items()], 0)
        self._down = group.channel([Message(rank, array) for rank, array in self._leaving.items()], down, 1)

    # --------------------------------------------------------------------------------------------- solving
    @property
    def solver(self) -> Krylov | None:
        """The solver of the masters; None on other ranks."""
        return None if self._master is None else self._master.solver

    @property
    def chains(self) -> Sequence[Chain]:
        """What the solver of this rank runs; nothing on the ranks that are no master."""
        return () if self.solver is None else self.solver.chains

    def solve(self) -> Status:
        """Solve for the values that ``b`` has now, from those of ``x``; every rank gets the same status. Collective.

        Raises
        ------
        SolverError
            On every rank of a group whose master cannot solve.
        """
        marks = [time.perf_counter()]
        self._gather()
        marks.append(time.perf_counter())
        if self.solver is not None:
            self.solver.check_next = self.check_next
        self.check_next = False
        status = self._asked(lambda solver: solver.solve())
        marks.append(time.perf_counter())
        self._scatter()
        marks.append(time.perf_counter())
        self.times = self.times.with_one(marks)
        return status

    def verify(self) -> Status:
        """Return what the solution is by the residual ``b - A x`` of itself; see `Krylov.verify`. Collective."""
        self._gather()
        return self._asked(lambda solver: solver.verify())

    def _asked(self, ask: Callable[[Krylov], Status]) -> Status:
        """Return what the solver of the master says, on every rank of its group."""
        status: Status | FluxloomError | None = None
        if self._master is not None:
            try:
                status = ask(self._master.solver)
            except FluxloomError as error:
                kind = PreconditionerError if isinstance(error, PreconditionerError) else SolverError
                status = kind(f"{self.name}: {error}")
        if self._rest:
            self.group.rest()
        status = self.group.broadcast(status)
        assert status is not None
        if isinstance(status, FluxloomError):
            raise status
        return status

    def _gather(self) -> None:
        """Send ``b`` and ``x`` to the master."""
        self._sent[0], self._sent[1] = self.b.read(), self.x.read()
        self._up.start()
        self._up.finish()
        if self._master is not None:
            self._master.take(np.concatenate([self._sent, *self._arrived.values()], axis=1))

    def _scatter(self) -> None:
        """Bring the solution back."""
        if self._master is not None:
            found = self._master.give()
            self._back[...] = found[self._spans[0]]
            for rank, array in self._leaving.items():
                array[...] = found[self._spans[rank]]
        self._down.start()
        self._down.finish()
        self.x.write(self._back)


def _context(device: str | Device | Sequence[str] | Make, masters: Comm) -> Context:
    """Return the context of a master."""
    if callable(device):
        context = device(masters)
        if not isinstance(context, Context) or context.comm is not masters:
            raise SolverError(f"device: the function returned {context!r}, not a context with the communicator it got")
        return context
    if isinstance(device, str | Device):
        return Context(open_named(device), comm=masters)
    if len(device) != masters.size:
        raise SolverError(f"{len(device)} devices for {masters.size} groups: give one for all, or one each")
    return Context(open_named(device[masters.rank]), comm=masters)
