"""Conjugate gradients with Jacobi's preconditioner, of three kernels: two SpMV, three AXPY and two DOT an iteration.

::

    q = A p,  alpha = (r, z) / (p, q),  x += alpha p,  r -= alpha q
    z = D^-1 r,  beta = (r, z) / (r, z before),  p = z + beta p

`fluxloom.linalg.ConjugateGradient` does the same in three passes over memory. Here each operation is a pass of its own,
and ``D^-1`` a matrix with one entry a row, as in the code whose kernels are counted (G. Oyarzun et al., Int. J. Comput.
Fluid Dyn. 31, 2017).
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.krylov.method import usual_interval
from fluxloom.linalg.krylov.three_kernels import Algebra, KernelCalls
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import STEPS_CHECKED, Status, Stop, judge

__all__ = ["CountedGradient"]


class CountedGradient:
    """Solves ``A x = b`` from the values that ``x`` has, and counts what it runs. Collective on several ranks.

    It stops where ``sqrt(r . D^-1 r)`` is small relative to the same norm of ``b``, the number that the method has
    anyway: with equal cells that is the 2-norm. A null space of constants may be there if ``b`` has no part in it; the
    mean of ``x`` is any number then.

    Parameters
    ----------
    algebra
        Makes the loops.
    matrix
        Square, symmetric, positive (semi)definite.
    b, x
        Right-hand side and solution, on the rows.
    stop
        When to end; ``rtol`` and ``atol`` are of the norm above.
    interval
        Iterations between two looks at the residual, even; all of them are made, also those beyond the last that was
        needed. 0: chosen for the device.

    Attributes
    ----------
    diagonal
        ``D^-1`` as a matrix.
    starting, iterating
        What a start and an iteration run.
    made, starts
        Iterations and starts that the last `solve` made: a second start after every hundredth solve, which shows the
        residual of the solution itself, and from which it goes on while that falls.
    """

    def __init__(
        self, algebra: Algebra, matrix: SparseMatrix, b: Dat, x: Dat, stop: Stop, interval: int = 0
    ) -> None:  # fmt: skip
        context = algebra.context
        self.algebra, self.matrix, self.b, self.x, self.stop = algebra, matrix, b, x, stop
        self.interval = interval or usual_interval(context)
        size = matrix.rows.size
        inverse = Jacobi().build(matrix).diagonal.read()
        self.diagonal = SparseMatrix.from_csr(
            context, np.arange(size + 1), np.arange(size), inverse, rows=matrix.rows, columns=matrix.rows,
            name="diagonal",
        )  # fmt: skip
        self.p, self.q, self.r, self.z = (context.dat(matrix.rows, name=f"pressure.{name}") for name in "pqrz")
        self.pq, self.bb = context.scalar(0.0, "pq"), context.scalar(0.0, "bb")
        self.rz = [context.scalar(0.0, f"rz{k}") for k in range(self.interval)]
        start, one = self._start(), self._iteration(0)
        self.starting, self.iterating, self.made = KernelCalls.of(start), KernelCalls.of(one), 0
        self.starts, self._solves = 0, 0
        self.start = Chain(start, fuse=False, name="pressure.start")
        body = [step for number in range(self.interval) for step in self._iteration(number)]
        self.body = Chain(body, fuse=False, name="pressure")

    def _start(self) -> list[Loop | Reset]:
        make = self.algebra
        return [
            make.spmv(self.matrix, self.x, self.q),
            make.axpy_apart(make.minus, self.q, make.one, self.b, self.r),
            make.spmv(self.diagonal, self.r, self.z),
            make.axpy(make.one, self.z, self.p, make.nothing),
            *make.dot(self.r, self.z, self.rz[-1]),
            make.spmv(self.diagonal, self.b, self.q),
            *make.dot(self.b, self.q, self.bb),
        ]

    def _iteration(self, number: int) -> list[Loop | Reset]:
        make, old, new = self.algebra, self.rz[number - 1], self.rz[number]
        return [
            make.spmv(self.matrix, self.p, self.q),
            *make.dot(self.p, self.q, self.pq),
            make.axpy(old, self.p, self.x, a_over=self.pq),
            make.axpy(old, self.q, self.r, a_over=self.pq, sign=-1.0),
            make.spmv(self.diagonal, self.r, self.z),
            *make.dot(self.r, self.z, new),
            make.axpy(make.one, self.z, self.p, new, b_over=old),
        ]

    def solve(self) -> Status:
        """Solve; return what came of it."""
        self.start()
        self._solves += 1
        norm, squares, self.made, self.starts = _number(self.bb), [_number(self.rz[-1])], 0, 1
        limit = self.stop.limit(sqrt(norm)) ** 2 if norm >= 0.0 else inf
        self._iterate(squares, limit)
        status = judge(np.array(squares)[:, None], np.array([norm]), self.stop)
        before = squares[0]
        while status.converged and self.made and not self._solves % STEPS_CHECKED:
            self.start()
            self.starts += 1
            now = _number(self.rz[-1])
            status = status.verified(sqrt(max(now, 0.0)), sqrt(before), sqrt(limit))
            if status.reason != "iterations" or self.made >= self.stop.iterations:
                break
            squares, before = [now], now
            self._iterate(squares, limit)
            status = status.then(judge(np.array(squares)[:, None], np.array([norm]), self.stop))
        return status

    def _iterate(self, squares: list[float], limit: float) -> None:
        """Iterate until the last of the squared residuals, to which new ones are added, is below a limit."""
        while limit < squares[-1] < inf and self.made < self.stop.iterations:
            self.body()
            self.made += self.interval
            squares += [_number(rz) for rz in self.rz]


def _number(value: Global) -> float:
    """Return the value of a global, which is a sum over all ranks; collective."""
    return float(np.asarray(value.value))
