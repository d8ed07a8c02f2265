"""What Krylov methods have in common: vectors, sums, chains of several iterations, and the history of residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Inc, Read
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel, kernel
from fluxloom.linalg.arguments import whole
from fluxloom.linalg.direct.calls import chains_of, sequence
from fluxloom.linalg.exact_sums import with_exact_sums
from fluxloom.linalg.krylov.restart import Restart, Start, held
from fluxloom.linalg.operators import BuiltPreconditioner, Operator, Preconditioner, Step, instead, steps_of
from fluxloom.linalg.precond.preconditioning import applied, made_for
from fluxloom.linalg.status import Reals, Status, Stop, judged, signed_norms, worst_of
from fluxloom.linalg.vectors import copy, like, shifted, total

__all__ = ["Krylov", "Nullspace", "usual_interval"]

Nullspace = Literal["none", "constant"]

_INTERVAL_SHARED, _INTERVAL = 2, 8
"""Iterations from one look at the residual to the next: where the host reads memory of the device, and elsewhere."""
_ROUNDING_AFTER = 8
"""Iterations after which a system that has not converged is asked for the rounding of its right-hand side."""


@kernel
def norms(b: Read, r: Read, bb: Inc, rr: Inc, *, systems: Const[int]):
    """``bb += b . b``, ``rr += r . r``."""
    for k in range(systems):
        bb[k] += b[k] * b[k]
        rr[k] += r[k] * r[k]


def usual_interval(context: Runtime) -> int:
    """Return iterations between two looks at the residual, the same on ranks with unlike devices. Collective."""
    return _INTERVAL_SHARED if all(context.comm.allgather(context.device.shared)) else _INTERVAL


class Krylov:
    """Solves ``A x = b`` iteratively. The base of the methods.

    Everything that is made for it is made once; `solve` is called as often as the values of ``b`` or of the matrix
    change. It starts from the values of ``x``. Several iterations are one chain: one call of native code, or one
    graph. The iterations, their number, and the result do not depend on how many those are: a system that has
    converged stands still.

    Collective on several ranks.

    Parameters
    ----------
    matrix
        A `fluxloom.linalg.SparseMatrix`, or another `Operator`.
    b, x
        Right-hand side, and solution: values on the rows of the matrix. With a component for each of several systems,
        of shape ``(n,)``, all are solved at once.
    preconditioner
        A recipe such as ``Jacobi()``, or what one has built; None for none.
    stop
        When to end.
    nullspace
        ``"constant"``: the matrix is singular, with constants for a null space (pressure without a
        Dirichlet boundary). The mean is taken from the right-hand side and from the solution.
    interval
        Iterations between two looks at the residual, even; up to one less than it are made beyond
        ``stop.iterations``. 0: chosen for the device.
    check_every
        Solves from one to the next that ends with the residual of the solution itself, `Status.residual`, and iterates
        again from there while it is larger than was asked for and falls; 0: none does. The others end with the residual
        of the recurrence, which is smaller by rounding.
    name
        In messages and reports.

    Attributes
    ----------
    check_next
        Whether the next `solve` is checked in any case, as the last one of a run.
    rounding
        Returns what rounding of its terms leaves in the right-hand side, in the 2-norm: a residual below has converged,
        whatever `Stop` says, so that a right-hand side that is 0 but for rounding needs no iterations. None: not known.
        It is asked for once a solve, after eight iterations. Collective.

    Raises
    ------
    SolverError
        If the parts do not fit each other.
    """

    title = "Krylov method"
    forgets = ("start", "body", "end", "preconditioner")
    keeps = ("x",)

    def __init__(
        self,
        matrix: Operator,
        b: Dat,
        x: Dat,
        *,
        preconditioner: Preconditioner | BuiltPreconditioner | None = None,
        stop: Stop | None = None,
        nullspace: Nullspace = "none",
        interval: int = 0,
        check_every: int = 1,
        name: str = "",
    ) -> None:
        self.name = name or self.title
        self.stop = stop if stop is not None else Stop()
        self._check(matrix, b, x, nullspace, interval, check_every)
        self.matrix, self.given, self.x = matrix, b, x
        self.nullspace: Nullspace = nullspace
        self.context = b.context
        self.systems = x.shape[0] if x.shape else 1
        self.interval = interval or usual_interval(self.context)
        self.recipe, self.preconditioner = preconditioner, made_for(preconditioner, matrix, self.name)
        self.diagonal = None if self.preconditioner is None else self.preconditioner.diagonal
        self.b = b if nullspace == "none" else self.work("b")
        self.r = self.work("r")
        self.bb = self.sums("bb")
        self.rr = [self.sums(f"rr{k}") for k in range(self.interval)]
        self._prepare()
        self._chains()
        self.check_every, self.check_next, self._solves, self._now = check_every, False, 0, self.limits
        self._restart: Restart | None = None
        self.rounding: Callable[[], float] | None = None
        self._floor = 0.0

    def _check(
        self, matrix: Operator, b: Dat, x: Dat, nullspace: str, interval: int, check_every: int
    ) -> None:  # fmt: skip
        if not isinstance(matrix, Operator):
            raise SolverError(f"{self.name}: a matrix is wanted, with rows and products, not {instead(matrix)}")
        for what, dat in (("b", b), ("x", x)):
            if not isinstance(dat, Dat):
                raise SolverError(f"{self.name}: {what}: a dat is wanted, not {type(dat).__name__}")
            if not dat.scalar.floating:
                raise SolverError(f"{self.name}: {what} ({dat.name!r}) has type {dat.scalar.name}: give real numbers")
            if dat.set is not matrix.rows:
                raise SolverError(f"{self.name}: {what} ({dat.name!r}) is on {dat.set}, the matrix on {matrix.rows}")
        if b is x:
            raise SolverError(f"{self.name}: b and x are both {b.name!r}")
        if b.shape != x.shape or len(b.shape) > 1:
            raise SolverError(f"{self.name}: b has shape {b.shape} and x {x.shape}: give both () or (systems,)")
        if nullspace not in ("none", "constant"):
            raise SolverError(f"{self.name}: nullspace is 'none' or 'constant', not {nullspace!r}")
        if not isinstance(self.stop, Stop):
            raise SolverError(f"{self.name}: stop is a Stop(rtol=..., iterations=...), not {self.stop!r}")
        if not isinstance(interval, int | np.integer) or interval < 0 or interval % 2:
            raise SolverError(f"{self.name}: interval is an even number of iterations, not {interval!r}")
        whole(check_every, f"{self.name}: check_every", 0, " (solves from one check to the next; 0: none)")

    @property
    def restart(self) -> Restart:
        """What finds the residual of a solution. Making it is collective: a cached property would hold all threads."""
        if self._restart is None:
            self._restart = Restart(self)
        return self._restart

    # ------------------------------------------------------------------------------------ parts for methods
    def work(self, name: str, dtype: npt.DTypeLike | None = None) -> Dat:
        """Return a vector like ``x``; ``dtype`` is another type."""
        return like(self.x, f"{self.name}.{name}", dtype=dtype)

    def sums(self, name: str) -> Global:
        """Return a number a system."""
        return Global(self.x.context, np.zeros(self.x.shape), name=f"{self.name}.{name}", dtype="float64")

    @property
    def each(self) -> int:
        """1 where each system has a diagonal of its own, 0 where all have the same: ``D_k`` is ``d[each * k]``."""
        return int(self.diagonal is not None and self.diagonal.shape != ())

    def loop(self, what: Kernel, *arguments: Dat | Global | None, **constants: Any) -> Loop:
        """Return a loop over the rows."""
        return Loop(
            what, self.x.set, *arguments, name=f"{self.name}.{what.name}", systems=self.systems, **constants
        )  # fmt: skip

    def preconditioned(self, given: Dat, name: str) -> tuple[Dat, list[Step]]:
        """Return a vector for ``B`` times a given one, and the loops that form it; without ``B`` the given one itself.

        Call it once for a pair of vectors: the loops may have vectors of their own.
        """
        if self.preconditioner is None:
            return given, []
        result = self.work(name)
        return result, applied(self.preconditioner, given, result, self.name)

    @property
    def limits(self) -> dict[str, float]:
        """Squares of the tolerances, ``rtol^2`` and ``atol^2``, for `fluxloom.linalg.vectors.step_length`."""
        return {"rtol2": self.stop.rtol**2, "atol2": self.stop.atol**2}

    def _prepare(self) -> None:
        """Make the vectors and sums of the method."""
        raise NotImplementedError

    def _begin(self) -> Sequence[Step]:
        """Return loops between the first residual ``r`` and the first iteration."""
        raise NotImplementedError

    def _iteration(self, number: int) -> Sequence[Step]:
        """Return the loops of an iteration, which ends with the square of the residual in ``rr[number]``.

        That of the iteration before is in ``rr[number - 1]``, also for 0.
        """
        raise NotImplementedError

    def _body(self) -> Sequence[Step]:
        """Return the loops of all iterations of a chain."""
        return [step for number in range(self.interval) for step in self._iteration(number)]

    # --------------------------------------------------------------------------------------------- solving
    def _chains(self) -> None:
        start: list[Step] = []
        end: list[Step] = []
        if self.nullspace == "constant":
            part = self.x.set.part
            scale = 1.0 / (part.total if part is not None else self.x.set.size)
            mean = self.sums("mean")
            for source, target, steps in ((self.given, self.b, start), (self.x, self.x, end)):
                if source is not target:
                    steps.append(self.loop(copy, source, target))
                steps += [Reset(mean), self.loop(total, target, mean), self.loop(shifted, mean, target, scale=scale)]
        last = self.rr[-1]
        start += [
            *steps_of(self.matrix.residual(self.x, self.b, self.r)), Reset(self.bb), Reset(last),
            self.loop(norms, self.b, self.r, self.bb, last), *self._begin(),
        ]  # fmt: skip
        self.start = sequence(with_exact_sums(start), f"{self.name}.start")
        self.body = sequence(with_exact_sums(self._body()), self.name)
        self.end = sequence(with_exact_sums(end), f"{self.name}.end") if end else None

    @property
    def chains(self) -> Sequence[Chain]:
        """What `solve` runs: the beginning, some iterations, the end; but for direct steps between them."""
        return chains_of(self.start, self.body, self.end)

    def solve(self) -> Status:
        """Solve for the values that the matrix and ``b`` have now, from those that ``x`` has. Collective."""
        self._solves, self._floor = self._solves + 1, 0.0
        checked = self.check_next or (bool(self.check_every) and self._solves % self.check_every == 0)
        self.check_next = False
        now, ready = self._measured()
        if (nothing := (now.norm == 0.0) & (now.residual != 0.0)).any():  # the solution is 0, whatever was guessed
            self.x.write(np.where(nothing if self.x.shape else nothing[0], 0.0, self.x.read()))
            now, ready = self._measured()
        start = now if ready else self.restart.begin(now, balanced=False)
        found = self._iterated(start, self.stop.iterations)
        self._blame(found)
        if checked or not ready:
            self.restart.end()
            found = self._finished(found, start)
        status = worst_of(found)
        if checked and status.reason in ("iterations", "stagnated", "breakdown") and self.nullspace == "none":
            status = replace(status, hint=self.restart.hint(now.limit))
        if self.end is not None:
            self.end()
        return status

    def _blame(self, found: Sequence[Status]) -> None:
        """Raise `PreconditionerError` where iterations have ended without numbers because of it. Collective."""
        if self.preconditioner is not None and any(status.reason == "not finite" for status in found):
            self.restart.blame()

    def verify(self) -> Status:
        """Return what the solution is by the residual ``b - A x`` of itself, without an iteration. Collective.

        For what ends with a solve that was not checked, while ``b``, ``x`` and the matrix are as it left them.
        """
        now, _ = self._measured(plain=not self.restart.precise)
        if (now.residual > now.limit).any():
            now = self._floored(now)
        return worst_of(judged(now.residual[None, :], now.norm, now.limit))

    def _finished(self, found: list[Status], start: Start) -> list[Status]:
        """Return what is true of the solution; iterate again, from its residual, while that falls.

        After a breakdown, or numbers that are not finite, once also where it does not: squares may have left the range.
        """
        most, balanced = self.stop.iterations, False
        while made := max(status.iterations for status in found) or self.restart.precise * most:
            broken = any(status.reason in ("breakdown", "not finite") for status in found)
            now, ready = self._measured(plain=not broken and not self.restart.precise)
            if np.isfinite(start.residual).all() and not np.isfinite(now.residual).all() and not balanced:
                self.x.write(0.0)  # an overflow has spoilt it
                now = self.restart.measured()
            found = [
                status.verified(float(now.residual[k]), float(start.residual[k]), float(now.limit[k]))
                for k, status in enumerate(found)
            ]
            falls, broken = any(status.reason == "iterations" for status in found), broken and not balanced
            if made >= most or not (falls or broken) or not np.isfinite(now.residual).all():
                break
            balanced = balanced or broken
            start = now if ready else self.restart.begin(now, balanced=broken)
            more = self._iterated(start, most - made)
            self.restart.end()
            found = [status.then(other) for status, other in zip(found, more, strict=True)]
        return found

    def _measured(self, *, plain: bool = True) -> tuple[Start, bool]:
        """Return where ``x`` is, and whether the first iteration has been begun there."""
        self.limit_by(None)
        found, ready = None, False
        if plain:
            self.start()
            squares = np.stack(self.read(self.bb, self.rr[-1]))
            if held(squares, self.total, self.x.scalar.size):
                norm, residual = np.sqrt(squares)
                found, ready = Start(norm, residual, self.limits_of(norm), np.ones(self.systems)), True
        found = found or self.restart.measured()
        if ((found.residual == 0.0) & (found.norm > 0.0)).any():
            found = replace(found, residual=self.restart.apart(found))
        return found, ready

    def _iterated(self, start: Start, most: int) -> list[Status]:
        """Iterate from a residual; return what the recurrence says of each system."""
        history = [start.residual]
        found = judged(np.array(history), start.norm, start.limit)
        while len(history) <= most and any(status.reason == "iterations" for status in found):
            self.body()
            history += [signed_norms(squares) / start.scale for squares in self.read(*self.rr)]
            found = judged(np.array(history), start.norm, start.limit)
            if _ROUNDING_AFTER < len(history) <= _ROUNDING_AFTER + self.interval:
                raised, before = self._floored(start), start.limit
                start, found = raised, judged(np.array(history), start.norm, raised.limit)
                if (start.limit > before).any() and any(status.reason == "iterations" for status in found):
                    self.limit_by((start.scale * start.limit) ** 2)
        return found

    def _floored(self, start: Start) -> Start:
        """Return a start whose limits are not below the rounding of the right-hand side. Collective."""
        if self.rounding is not None and not self._floor:
            self._floor = self.rounding()
        return start if not self._floor else replace(start, limit=np.maximum(start.limit, self._floor))

    # ------------------------------------------------------------------------------- for `Restart`
    def limits_of(self, norms: Reals) -> Reals:
        """Return what residuals may be, ``max(rtol |b|, atol, floor)``, for norms of right-hand sides."""
        return np.maximum(self.stop.rtol * norms, max(self.stop.atol, self._floor))

    @property
    def total(self) -> int:
        """Rows of all ranks."""
        part = self.x.set.part
        return part.total if part is not None else self.x.set.size

    def begin(self) -> Sequence[Step]:
        """Return the loops between a residual in ``r``, with its square, and the first iteration."""
        return self._begin()

    def limit_by(self, squares: Reals | None) -> None:
        """End iterations at these squares of residuals from now on; None: at those of `Stop`."""
        if squares is not None:
            self.bb.value = self.shaped(squares)
        limits = self.limits if squares is None else {"rtol2": 1.0, "atol2": 0.0}
        if limits != self._now:
            self._now = limits
            for loop in self.body.loops:
                if "rtol2" in loop.constants:
                    loop.set(**limits)

    def shaped(self, values: Reals) -> Any:
        """Return a number a system as a global has them."""
        return values.reshape(self.bb.shape)

    @staticmethod
    def read(*sums: Global) -> list[Reals]:
        """Return the values of globals, which are waited for once."""
        return [np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in Global.read_all(sums)]
