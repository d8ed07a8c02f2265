"""Preconditioned conjugate gradients, for one system or several with one matrix.

::

    r = b - A x,  z = B r,  p = z
    repeat   q = A p,  alpha = (r, z) / (p, q),  x += alpha p,  r -= alpha q
             z = B r,  beta = (r, z) / (r, z before),  p = z + beta p

with a symmetric positive definite (or, with a right-hand side in its range, semidefinite) matrix ``A`` and
preconditioner ``B``. An iteration is three passes over memory where ``B`` is diagonal: the product with ``(p, q)``,
``x`` and ``r`` with both sums, and ``p``.

References
----------
Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, algorithm 9.1.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.kernel.frontend import kernel
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.operators import Step, steps_of
from fluxloom.linalg.vectors import copy, dot, marked, ratio, step_length

__all__ = ["ConjugateGradient"]


@kernel
def advance(
    p: Read, q: Read, d: Read | None, pq: Read, rz: Read, before: Read, bb: Read,
    x: RW, r: RW, rr: Inc, new: Inc | None,
    *, rtol2: float, atol2: float, systems: Const[int], each: Const[int],
):  # fmt: skip
    """``x += alpha p``, ``r -= alpha q``, ``rr += r . r`` with ``alpha = rz / pq``.

    With a diagonal ``new += r . D r`` (`Krylov.each`).
    """
    for k in range(systems):
        alpha = step_length(rz[k], pq[k], before[k], bb[k], rtol2, atol2)
        x[k] += alpha * p[k]
        v = r[k] - alpha * q[k]
        r[k] = v
        rr[k] += marked(v * v, alpha, before[k], bb[k], rtol2, atol2)
        if d is not None and new is not None:
            new[k] += v * d[each * k] * v


@kernel
def turn(z: Read, d: Read | None, old: Read, new: Read, p: RW, *, systems: Const[int], each: Const[int]):
    """``p = z + beta p`` with ``beta = new / old``; with a diagonal ``p = D z + beta p``."""
    for k in range(systems):
        if d is not None:
            p[k] = d[each * k] * z[k] + ratio(new[k], old[k]) * p[k]
        else:
            p[k] = z[k] + ratio(new[k], old[k]) * p[k]


@kernel
def begin_diagonal(r: Read, d: Read, p: Write, rz: Inc, *, systems: Const[int], each: Const[int]):
    """``p = D r``, ``rz += r . p``; see `advance`."""
    for k in range(systems):
        v = d[each * k] * r[k]
        p[k] = v
        rz[k] += r[k] * v


class ConjugateGradient(Krylov):
    """Solves ``A x = b`` with a symmetric positive definite matrix; see `Krylov` for the parameters.

    Examples
    --------
    >>> cg = ConjugateGradient(matrix, b, x, preconditioner=Jacobi(), stop=Stop(rtol=1e-6))
    >>> status = cg.solve().require("pressure")
    """

    title = "conjugate gradients"
    forgets = (*Krylov.forgets, "to_z")

    def _prepare(self) -> None:
        self.p, self.q = self.work("p"), self.work("q")
        self.pq = self.sums("pq")
        plain = self.preconditioner is None
        self.rz = (self.rr[-1], self.rr[0]) if plain else (self.sums("rz"), self.sums("rz'"))
        fused = plain or self.diagonal is not None
        self.z, self.to_z = (self.r, []) if fused else self.preconditioned(self.r, "z")

    def _begin(self) -> list[Step]:
        """Return loops from the residual to the first direction."""
        if self.preconditioner is None:
            return [self.loop(copy, self.r, self.p)]
        if self.diagonal is not None:
            return [
                Reset(self.rz[0]),
                self.loop(begin_diagonal, self.r, self.diagonal, self.p, self.rz[0], each=self.each),
            ]
        return [
            *self.to_z,
            Reset(self.rz[0]),
            self.loop(dot, self.r, self.z, self.rz[0]),
            self.loop(copy, self.z, self.p),
        ]

    def _iteration(self, number: int) -> list[Step]:
        before, rr = self.rr[number - 1], self.rr[number]
        old, new = (before, rr) if self.preconditioner is None else (self.rz[number % 2], self.rz[1 - number % 2])
        d, folded = self.diagonal, {"each": self.each}
        squares = new if d is not None else None
        inner = [] if self.z is self.r else [*self.to_z, Reset(new), self.loop(dot, self.r, self.z, new)]
        scalars = (self.pq, old, before, self.bb)
        return [
            Reset(self.pq),
            *steps_of(self.matrix.product_dot(self.p, self.q, self.pq)),
            Reset(rr),
            *([] if squares is None else [Reset(squares)]),
            self.loop(advance, self.p, self.q, d, *scalars, self.x, self.r, rr, squares, **self.limits, **folded),
            *inner,
            self.loop(turn, self.z, d, old, new, self.p, **folded),
        ]
