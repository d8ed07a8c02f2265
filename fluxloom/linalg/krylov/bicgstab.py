"""Stabilised biconjugate gradients, for matrices that need not be symmetric; one system or several at once.

With a preconditioner ``B`` from the right, so that ``r`` is the residual of the system itself::

    r = b - A x,  r' = r / |r|,  p = r
    repeat   v = A B p,  alpha = (r', r) / (r', v),  s = r - alpha v
             t = A B s,  omega = (t, s) / (t, t)
             x += alpha B p + omega B s,  r = s - omega t
             beta = (r', r) / (r', v) / omega,  p = r + beta (p - omega v)

An iteration is five passes over memory where ``B`` is diagonal: each of the two products with its sums, ``s``, ``x``
with ``r`` and its sums, and ``p``. ``s`` is kept in the place of ``r``.

Two things break it down: ``(r', r)`` or ``(r', v)``, and ``(t, s)``, that are zero or lost in the rounding of their
sums. The steps of such a system have length zero from then on, as have those of one that has converged.

References
----------
H. A. van der Vorst: Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric
linear systems, *SIAM J. Sci. Stat. Comput.* 13 (1992) 631-644. Y. Saad: *Iterative Methods for Sparse Linear
Systems*, 2nd ed., SIAM 2003, algorithm 7.7.
"""

from __future__ import annotations

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import select, sqrt, zeros
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.products import add_rows, spmm_dot, spmv_dot
from fluxloom.linalg.operators import Step, steps_of
from fluxloom.linalg.vectors import dot, marked, ratio

__all__ = ["BiCGStab"]

LOST = 2.0**-104
"""Squared part of the norms of its factors below which a dot product is lost in rounding."""


@func
def goes_on(rho, rv, rr, bb, rtol2, atol2):
    """``rr > max(rtol^2 bb, atol^2)``, ``rho^2 > LOST rr`` and ``rv != 0``.

    Whether a system takes a step (``|r'| = 1``). It has not converged, and ``rho`` is not lost.
    """
    return rr > max(rtol2 * bb, atol2) and rho * rho > LOST * rr and rv != 0.0


@func
def product_step(rho, rv, rr, bb, rtol2, atol2):
    """``alpha = rho / rv``; 0 for a system that has ended or breaks down."""
    live = goes_on(rho, rv, rr, bb, rtol2, atol2)
    return select(live, rho / select(live, rv, 1.0), 0.0)


@func
def minimal_step(live, ts, tt, ss):
    """``omega = ts / tt``, with which ``|s - omega t|`` is least; 0 for a system that has ended, or if ts is lost."""
    omega = ratio(ts, tt)
    return select(live and omega * ts > LOST * ss, omega, 0.0)


@kernel
def spmv_project(a: Read, x: Read, s: Read, t: Write, ts: Inc, tt: Inc, ss: Inc):
    """One row of ``t = A x``, and its part of ``ts += t . s``, ``tt += t . t``, ``ss += s . s``."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    t[0] = total
    ts[0] += total * s[0]
    tt[0] += total * total
    ss[0] += s[0] * s[0]


@kernel
def spmm_project(a: Read, x: Read, s: Read, t: Write, ts: Inc, tt: Inc, ss: Inc, *, systems: Const[int]):
    """One row of ``T = A X``, and its part of ``ts_k += t_k . s_k``, ``tt_k += t_k . t_k``, ``ss_k += s_k . s_k``."""
    total = zeros(systems)
    add_rows(a, x, total, systems)
    for k in range(systems):
        t[k] = total[k]
        ts[k] += total[k] * s[k]
        tt[k] += total[k] * total[k]
        ss[k] += s[k] * s[k]


@kernel
def project(s: Read, t: Read, ts: Inc, tt: Inc, ss: Inc, *, systems: Const[int]):
    """``ts += t . s``, ``tt += t . t``, ``ss += s . s``, of an operator that is no `SparseMatrix`."""
    for k in range(systems):
        ts[k] += t[k] * s[k]
        tt[k] += t[k] * t[k]
        ss[k] += s[k] * s[k]


@kernel
def begin(r: Read, rr: Read, shadow: Write, p: Write, rho: Inc, *, systems: Const[int]):
    """``p = r``, ``r' = r / |r|``, ``rho += r' . r``."""
    for k in range(systems):
        w = ratio(r[k], sqrt(rr[k]))
        shadow[k] = w
        p[k] = r[k]
        rho[k] += w * r[k]


@kernel
def half(
    v: Read, d: Read | None, rho: Read, rv: Read, before: Read, bb: Read, r: RW, z: Write | None,
    *, rtol2: float, atol2: float, systems: Const[int], each: Const[int],
):  # fmt: skip
    """``s = r - alpha v``, in the place of ``r``; with a diagonal ``z = D s`` (`Krylov.each`)."""
    for k in range(systems):
        w = r[k] - product_step(rho[k], rv[k], before[k], bb[k], rtol2, atol2) * v[k]
        r[k] = w
        if d is not None and z is not None:
            z[k] = d[each * k] * w


@kernel
def advance(
    p: Read, z: Read | None, t: Read, shadow: Read, rho: Read, rv: Read, before: Read, bb: Read,
    ts: Read, tt: Read, ss: Read, x: RW, r: RW, rr: Inc, new: Inc,
    *, rtol2: float, atol2: float, systems: Const[int],
):  # fmt: skip
    """``x += alpha B p + omega B s``, ``r = s - omega t``, ``rr += r . r``, ``new += r' . r``; p, z: B p, B s.

    ``z`` is ``s``, the residual, where there is no ``B``.
    """
    for k in range(systems):
        alpha = product_step(rho[k], rv[k], before[k], bb[k], rtol2, atol2)
        omega = minimal_step(alpha != 0.0, ts[k], tt[k], ss[k])
        if z is not None:
            x[k] += alpha * p[k] + omega * z[k]
        else:
            x[k] += alpha * p[k] + omega * r[k]
        w = r[k] - omega * t[k]
        r[k] = w
        rr[k] += marked(w * w, alpha, before[k], bb[k], rtol2, atol2)
        new[k] += shadow[k] * w


@kernel
def turn(
    r: Read, v: Read, d: Read | None, rho: Read, new: Read, rv: Read, before: Read, bb: Read,
    ts: Read, tt: Read, ss: Read, p: RW, z: Write | None,
    *, rtol2: float, atol2: float, systems: Const[int], each: Const[int],
):  # fmt: skip
    """``p = r + beta (p - omega v)`` with ``beta = new / (rv omega)``; 0 after ``omega = 0``; ``z = D p``."""
    for k in range(systems):
        live = goes_on(rho[k], rv[k], before[k], bb[k], rtol2, atol2)
        omega = minimal_step(live, ts[k], tt[k], ss[k])
        beta = ratio(new[k], rv[k] * omega)
        w = select(omega != 0.0, r[k] + beta * (p[k] - omega * v[k]), 0.0)
        p[k] = w
        if d is not None and z is not None:
            z[k] = d[each * k] * w


class BiCGStab(Krylov):
    """Solves ``A x = b`` with any regular matrix; see `Krylov` for the parameters.

    The preconditioner acts from the right and need not be symmetric. An iteration costs two products and
    applies the preconditioner twice. The residual falls unevenly, and convergence is not certain:
    `Status.reason` tells what happened. With ``nullspace="constant"`` the system must have a solution once
    the mean of ``b`` is taken away: constants are in the null space of the transpose, too.

    Examples
    --------
    >>> solver = BiCGStab(matrix, b, x, preconditioner=Jacobi(), stop=Stop(rtol=1e-6))
    >>> status = solver.solve().require("momentum")
    """

    title = "BiCGStab"
    forgets = (*Krylov.forgets, "to_first", "to_second")

    def _prepare(self) -> None:
        self.shadow, self.p, self.v, self.t = (self.work(name) for name in ("r'", "p", "v", "t"))
        self.rv = self.sums("rv")
        self.rho = self.sums("rho"), self.sums("rho'")
        self.projections = [self.sums(name) for name in ("ts", "tt", "ss")]
        self.first, self.to_first = self.preconditioned(self.p, "Bp")
        self.second, self.to_second = self.preconditioned(self.r, "Bs")

    def _begin(self) -> list[Step]:
        """Return the loops from the residual to the first direction."""
        rho = self.rho[0]
        first = [Reset(rho), self.loop(begin, self.r, self.rr[-1], self.shadow, self.p, rho)]
        return first if self.diagonal is None else [*first, *self.to_first]

    def _iteration(self, number: int) -> list[Step]:
        before, rr = self.rr[number - 1], self.rr[number]
        old, new = self.rho[number % 2], self.rho[1 - number % 2]
        scalars = (old, self.rv, before, self.bb)
        steps = (*scalars, *self.projections)
        turned = (old, new, *steps[1:])
        d, limits = self.diagonal, self.limits
        folded = {"each": self.each, **limits}
        first, second = (self.first, self.second) if d is not None else (None, None)
        solution = self.first, None if self.preconditioner is None else self.second
        return [
            *(Reset(one) for one in (self.rv, *self.projections, rr, new)),
            *(self.to_first if d is None else ()),
            *self._first_product(),
            self.loop(half, self.v, d, *scalars, self.r, second, **folded),
            *(self.to_second if d is None else ()),
            *self._second_product(),
            self.loop(advance, *solution, self.t, self.shadow, *steps, self.x, self.r, rr, new, **limits),
            self.loop(turn, self.r, self.v, d, *turned, self.p, first, **folded),
        ]

    def _first_product(self) -> list[Step]:
        """Return ``v = A B p``, ``rv = r' . v``: one loop with a matrix, two with another operator."""
        if not isinstance(self.matrix, SparseMatrix):
            return [*steps_of(self.matrix.product(self.first, self.v)), self.loop(dot, self.shadow, self.v, self.rv)]
        name = f"{self.name}.spmv_dot"
        return [self.matrix.row_loop((spmv_dot, spmm_dot), self.first, self.shadow, self.v, self.rv, name=name)]

    def _second_product(self) -> list[Step]:
        """Return ``t = A B s`` and its sums."""
        if not isinstance(self.matrix, SparseMatrix):
            sums = self.loop(project, self.r, self.t, *self.projections)
            return [*steps_of(self.matrix.product(self.second, self.t)), sums]
        vectors = (self.second, self.r, self.t, *self.projections)
        return [self.matrix.row_loop((spmv_project, spmm_project), *vectors, name=f"{self.name}.spmv_project")]
