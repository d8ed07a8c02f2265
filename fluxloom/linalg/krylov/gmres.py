r"""Generalised minimal residuals, for matrices that need not be symmetric: a basis, and a method of `Krylov` of it.

With a preconditioner ``B`` from the right, so that the residual that is least is that of the system itself::

    y = r,  q_1 = y / |y|
    repeat   y = A B q_k,  h_ik = (q_i, y),  y -= h_ik q_i  for  i <= k,  q_k+1 = y / |y|
    x += B (c_1 q_1 + ... + c_k q_k)   with the c that make  | |r| e_1 - H c |  least

Vectors of a basis are met four at a time, ``a``, ``b``, ``c`` and ``e``: a new one is made orthogonal to each four of
them in turn (modified Gram and Schmidt of groups), and loses to the four before what is found of it as it meets the
next. A vector may have several components an element.

References
----------
Y. Saad, M. H. Schultz: *GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems*.
SIAM J. Sci. Stat. Comput. 7, 1986. Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, sec.
6.3, 6.5 and 9.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import select, zeros
from fluxloom.linalg.arguments import whole
from fluxloom.linalg.direct.calls import chains_of, sequence
from fluxloom.linalg.exact_sums import exactly, with_exact_sums
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.linalg.krylov.restart import Start
from fluxloom.linalg.operators import Operator, Step, steps_of
from fluxloom.linalg.status import Reals, Status, judged
from fluxloom.linalg.vectors import clear, copy, like

__all__ = ["GMRES", "Arnoldi"]

_GROUP = 4
"""Vectors of the basis that a loop meets at a time."""


@kernel
def direction(y: Read, sizes: Read | None, q: Write, r: Write, *, norm: float, nv: Const[int]):
    """``q = y / norm``, a vector of the basis, and ``r = q / sizes``, the residual that it stands for."""
    for v in range(nv):
        x = y[v] / norm
        q[v] = x
        if sizes is not None:
            r[v] = x / sizes[v]
        else:
            r[v] = x


@func
def add_products(a, b, c, e, y, h, live, nv):
    """``h_i += q_i . y`` of the first ``live`` of four vectors."""
    sums = zeros(4)
    for i in range(4):
        sums[i] = 0.0
    for v in range(nv):
        sums[0] += a[v] * y[v]
        sums[1] += b[v] * y[v]
        sums[2] += c[v] * y[v]
        sums[3] += e[v] * y[v]
    for i in range(4):
        h[i] += select(i < live, sums[i], 0.0)


@kernel
def project(a: Read, b: Read, c: Read, e: Read, y: Read, h: Inc, *, live: int, nv: Const[int]):
    """``h_i += q_i . y`` for the first ``live`` of four vectors; the others add 0."""
    add_products(a, b, c, e, y, h, live, nv)


@kernel
def pass_on(
    a: Read, b: Read, c: Read, e: Read, h: Read, a2: Read, b2: Read, c2: Read, e2: Read, y: RW, next: Inc,
    *, live: int, nv: Const[int],
):  # fmt: skip
    """``y = y - sum_i h_i q_i`` for four vectors, and ``next_i += q_i . y`` of the next four."""
    x = zeros(nv)
    for v in range(nv):
        x[v] = y[v] - h[0] * a[v] - h[1] * b[v] - h[2] * c[v] - h[3] * e[v]
        y[v] = x[v]
    add_products(a2, b2, c2, e2, x, next, live, nv)


@kernel
def deduct(a: Read, b: Read, c: Read, e: Read, h: Read, y: RW, square: Inc, *, nv: Const[int]):
    """``y = y - sum_i h_i q_i`` for four vectors, and ``square += y . y`` of what is left."""
    for v in range(nv):
        x = y[v] - h[0] * a[v] - h[1] * b[v] - h[2] * c[v] - h[3] * e[v]
        y[v] = x
        square[0] += x * x


@kernel
def combine(a: Read, b: Read, c: Read, e: Read, h: Read, sizes: Read | None, r: RW, *, nv: Const[int]):
    """``r += sum_i h_i q_i / sizes`` for four vectors, as a residual."""
    for v in range(nv):
        if sizes is not None:
            r[v] += (h[0] * a[v] + h[1] * b[v] + h[2] * c[v] + h[3] * e[v]) / sizes[v]
        else:
            r[v] += h[0] * a[v] + h[1] * b[v] + h[2] * c[v] + h[3] * e[v]


@kernel
def corrected(z: Read, x: RW, y: RW, r: RW, rr: Inc, *, systems: Const[int]):
    """``x = x + z``, ``r = r - y``, ``y = r``, ``rr += r . r``.

    With ``y = A z`` it becomes the residual, as ``r`` does.
    """
    for k in range(systems):
        x[k] += z[k]
        w = r[k] - y[k]
        r[k] = w
        y[k] = w
        rr[k] += w * w


class Arnoldi:
    """An orthonormal basis of a Krylov space, and the combination of its vectors that leaves the least residual.

    Parameters
    ----------
    y
        A residual, from which a cycle begins; and each product, before it is made orthogonal.
    r
        What a vector of the basis stands for, whose product is wanted; and their combination.
    vectors
        At most in a cycle.
    sizes
        Numbers, one a component, by which residuals are multiplied to give ``y``; None: 1.
    exact
        Whether sums are formed as ``deterministic="global"`` asks for, where the context does.

    Attributes
    ----------
    left
        Square of what is left of ``y``.
    loops
        All that it runs.
    """

    forgets = ("y", "r", "basis", "h")

    def __init__(
        self, y: Dat, r: Dat, vectors: int, sizes: Global | None = None, *, exact: bool = False
    ) -> None:  # fmt: skip
        context, over, self.vectors, self.y, self.r = y.context, y.set, vectors, y, r
        count = -(-vectors // _GROUP) * _GROUP
        self.basis = [like(y, f"q{k}") for k in range(count)]
        groups = range(count // _GROUP)
        self.h = [Global(context, np.zeros(_GROUP), name=f"h{g}", dtype="float64") for g in groups]
        self.left = Global(context, 0.0, name="left", dtype="float64")
        nv: dict[str, Any] = {"nv": y.dim}
        four = [self.basis[_GROUP * g : _GROUP * (g + 1)] for g in groups]
        self._directions = [Loop(direction, over, y, sizes, q, r, norm=1.0, **nv) for q in self.basis]
        self._clear = Loop(clear, over, r)
        self._combine = [Loop(combine, over, *four[g], self.h[g], sizes, r, **nv) for g in groups]
        first = Loop(project, over, *four[0], y, self.h[0], live=0, **nv)
        rest = [
            Loop(pass_on, over, *four[g], self.h[g], *four[g + 1], y, self.h[g + 1], live=0, **nv) for g in groups[:-1]
        ]
        deduct_ = [Loop(deduct, over, *four[g], self.h[g], y, self.left, **nv) for g in groups]
        self.loops = [*self._directions, self._clear, *self._combine, first, *rest, *deduct_]
        summed: Callable[[Loop], Callable[..., None]] = exactly if exact else lambda loop: loop
        self._project = [summed(loop) for loop in (first, *rest)]
        self._deduct = [summed(loop) for loop in deduct_]

    def cycle(
        self, norm: float, tolerance: float, product: Callable[[], None], most: int | None = None
    ) -> tuple[Reals, list[float]]:
        """Make products until the residual is a part ``tolerance`` of the first one, or the basis is full. Collective.

        Parameters
        ----------
        norm
            Of `y`, the residual.
        tolerance
            Part of it.
        product
            Sets `y` to the product of what stands for the last vector, in `r`.
        most
            Products; as many as vectors by default.

        Returns
        -------
        weights, rests
            Of the vectors, for a residual of norm 1; what each product leaves of it, NaN for one that is not finite.
        """
        matrix = np.zeros((self.vectors + 1, self.vectors))
        found, rests = np.zeros(0), [1.0]
        most = self.vectors if most is None else min(most, self.vectors)
        while len(rests) <= most and rests[-1] > tolerance and norm > 0.0:
            used = len(rests)
            self._directions[used - 1](norm=norm)
            product()
            parts, norm = self._orthogonal(used)
            if not isfinite(norm):
                rests.append(float("nan"))
                break
            matrix[:used, used - 1] = parts
            matrix[used, used - 1] = norm
            found, rest = _least(matrix[: used + 1, :used])
            rests.append(rest)
        return found, rests[1:]

    def combine(self, weights: Reals) -> None:
        """Set `r` to what a combination of the vectors stands for, ``r = sum_i w_i q_i / sizes``."""
        self._clear()
        padded = np.zeros(len(self.basis))
        padded[: weights.size] = weights
        for g in range(-(-weights.size // _GROUP)):
            self.h[g].value = padded[_GROUP * g : _GROUP * (g + 1)]
            self._combine[g]()

    def _orthogonal(self, used: int) -> tuple[Reals, float]:
        """Make `y` orthogonal to the first vectors of the basis; return what it had of them, and its norm."""
        last = (used - 1) // _GROUP
        for h in (*self.h[: last + 1], self.left):
            h.value = 0.0
        for g, project_ in enumerate(self._project[: last + 1]):
            project_(live=min(used - _GROUP * g, _GROUP))
        self._deduct[last]()
        *parts, left = Global.read_all([*self.h[: last + 1], self.left])
        return np.concatenate(parts)[:used], sqrt(float(left)) if left >= 0.0 else float("nan")


def _least(matrix: npt.NDArray[np.float64]) -> tuple[Reals, float]:
    """Return the coefficients that bring the first unit vector nearest, and what is left of it."""
    right = np.zeros(len(matrix))
    right[0] = 1.0
    found = np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)
    return found, float(np.linalg.norm(matrix @ found - right))


class GMRES(Krylov):
    """Solves ``A x = b`` with any regular matrix, one system; see `Krylov` for the other parameters.

    The residual never rises: it is the least that there is in a space which grows by a vector, and a product, with each
    iteration. After ``vectors`` of them it begins anew from the solution so far. The preconditioner acts from the right
    and need not be symmetric. The host looks at each residual, whatever ``interval`` is.

    Parameters
    ----------
    vectors
        Of a basis: each takes memory, and makes all later ones of its cycle more expensive.
    **choices
        As of `Krylov`.

    Examples
    --------
    >>> solver = GMRES(matrix, b, x, vectors=40, preconditioner=Jacobi(), stop=Stop(rtol=1e-6))
    >>> status = solver.solve().require("momentum")
    """

    title = "GMRES"
    forgets = (*Krylov.forgets, "correct")

    def __init__(self, matrix: Operator, b: Dat, x: Dat, *, vectors: int = 30, **choices: Any) -> None:
        self.vectors = whole(vectors, "GMRES: vectors", 1)
        super().__init__(matrix, b, x, **choices)

    def _prepare(self) -> None:
        if self.x.shape:
            raise SolverError(f"{self.name}: it solves one system at a time, and x has shape {self.x.shape}: give ()")
        self.y, direction_ = self.work("y"), self.work("q")
        self.space = Arnoldi(self.y, direction_, self.vectors, exact=True)
        self.z, self.to_z = self.preconditioned(direction_, "Bq")
        last = self.rr[-1]
        after = [Reset(last), self.loop(corrected, self.z, self.x, self.y, self.r, last)]
        self.correct = sequence(with_exact_sums([*self._body(), *after]), f"{self.name}.correct")

    def _begin(self) -> Sequence[Step]:
        """Return the loop from the residual to the first vector."""
        return [self.loop(copy, self.r, self.y)]

    def _body(self) -> list[Step]:
        """Return the loops of a product."""
        return [*self.to_z, *steps_of(self.matrix.product(self.z, self.y))]

    @property
    def chains(self) -> Sequence[Chain]:
        """What `solve` runs, but for the loops of the basis."""
        return [*super().chains, *chains_of(self.correct)]

    def _iterated(self, start: Start, most: int) -> list[Status]:
        """Make cycles, each from the residual that the one before has left."""
        start = self._floored(start)
        scale = float(start.scale[0])
        history, limit = [float(start.residual[0])], float(start.limit[0])
        while len(history) <= most and history[-1] > limit and isfinite(history[-1]):
            norm = scale * history[-1]
            weights, rests = self.space.cycle(norm, limit / history[-1], self.body, most + 1 - len(history))
            stuck = len(rests) < min(self.vectors, most + 1 - len(history)) and rests[-1] > limit / history[-1]
            history += [rest * norm / scale for rest in rests]
            if not isfinite(history[-1]):
                break
            self.space.combine(norm * weights)
            self.correct()
            history[-1] = float(np.sqrt(self.read(self.rr[-1])[0][0])) / scale
            if stuck:
                history.append(-history[-1])  # no vector is left to add
                break
        return judged(np.array(history)[:, None], start.norm, start.limit)
