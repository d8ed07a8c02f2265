"""Separable equations on a rectangle of unknowns: two sets of tridiagonal rows, and what can be solved.

The unknowns ``u[j, i]`` are ``n`` columns ``j = 0 ... n - 1`` of ``m`` values ``i = 0 ... m - 1``:

    am_i u[j, i-1] + bm_i u[j, i] + cm_i u[j, i+1] + an_j u[j-1, i] + bn_j u[j, i] + cn_j u[j+1, i] = f[j, i]

Source: P. N. Swarztrauber, SIAM J. Numer. Anal. 11 (1974) 1136, section 2 (the names ``am`` ... ``cn`` are those of
his program BLKTRI).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, eye_array, kron

from fluxloom.core.errors import SolverError

__all__ = ["Rows", "Separable", "null_weights"]

Values = npt.NDArray[np.float64]
_EQUAL = 1e-10  # products of many coefficients, compared by their logarithms
_CONSTANT = 64 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Rows:
    """Tridiagonal rows of one direction: ``a_k u_{k-1} + b_k u_k + c_k u_{k+1}``.

    Attributes
    ----------
    a, b, c : (length,)
        Lower, main and upper diagonal. ``a[0]`` and ``c[-1]`` are not read, unless the rows are periodic: then they
        couple the first and the last row.
    periodic
        Whether the last row is a neighbour of the first.

    Raises
    ------
    SolverError
        When the lengths differ, a value is not finite, or periodic rows are fewer than three.
    """

    a: Values
    b: Values
    c: Values
    periodic: bool = False

    def __post_init__(self) -> None:
        for name in "abc":
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        shapes = {self.a.shape, self.b.shape, self.c.shape}
        if len(shapes) != 1 or self.b.ndim != 1 or not self.b.size:
            raise SolverError(f"rows need three diagonals of one length, one value a row; they have {sorted(shapes)}")
        if not self.periodic:
            self.a[0] = self.c[-1] = 0.0
        elif self.b.size < 3:
            raise SolverError(f"{self.b.size} periodic rows: at least 3 are needed, else both neighbours are one row")
        for name in "abc":
            if not np.all(np.isfinite(getattr(self, name))):
                raise SolverError(f"the diagonal {name} has values that are no numbers")

    @property
    def length(self) -> int:
        """Number of rows."""
        return self.b.size

    def matrix(self) -> csr_array:
        """Return the rows as a sparse matrix."""
        k, n = np.arange(self.length), self.length
        places = [(k, (k - 1) % n, self.a), (k, k, self.b), (k, (k + 1) % n, self.c)]
        rows, columns, values = (np.concatenate(parts) for parts in zip(*places, strict=True))
        found = coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
        found.eliminate_zeros()
        return found

    def sums(self) -> Values:
        """Return the sum of each row."""
        return self.a + self.b + self.c


@dataclass(frozen=True, eq=False)
class Separable:
    """A separable equation, see the module.

    Attributes
    ----------
    x
        The ``m`` rows along a column: ``B`` (values that are neighbours in memory).
    y
        The ``n`` rows across columns. ``y.a[j] * y.c[j - 1]`` must be positive, or both be 0: then the roots of the
        matrix polynomials are real.

    Raises
    ------
    SolverError
        When ``y`` has no real roots; the message names the row.
    """

    x: Rows
    y: Rows

    def __post_init__(self) -> None:
        y = self.y
        before = np.roll(y.c, 1) if y.periodic else np.concatenate([[0.0], y.c[:-1]])
        wrong = np.flatnonzero((y.a * before < 0) | ((y.a == 0) != (before == 0)))
        if wrong.size:
            j = int(wrong[0])
            raise SolverError(
                f"y: a[{j}] = {y.a[j]:g} and c[{j - 1}] = {before[j]:g} need one sign (or both be 0), else the roots "
                "of the matrix polynomials are not real: refine the mesh where advection is stronger than diffusion"
            )
        if y.periodic and np.all(y.a != 0):
            gap = float(np.sum(np.log(np.abs(y.a)) - np.log(np.abs(y.c))))
            if abs(gap) > _EQUAL * y.length:
                raise SolverError(
                    f"periodic y: the product of all a is exp({gap:.3g}) times that of all c; they have to be equal "
                    "(the integral of advection / diffusion over a period has to vanish)"
                )

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and values of a column: the shape of right-hand sides and solutions."""
        return self.y.length, self.x.length

    @property
    def singular(self) -> bool:
        """Whether constants solve the equation without right-hand side (Neumann and periodic sides only).

        All ``a_i + b_i + c_i`` of an axis are then equal, and those of both axes add up to 0.
        """
        sums_x, sums_y = self.x.sums(), self.y.sums()
        size = max(np.abs(self.x.b).max(), np.abs(self.y.b).max())
        rest = max(np.ptp(sums_x), np.ptp(sums_y), abs(sums_x.mean() + sums_y.mean()))
        return bool(rest <= _CONSTANT * size)

    def matrix(self) -> csr_array:
        """Return the whole matrix, for unknowns ``u[j, i]`` in C order."""
        n, m = self.shape
        return csr_array(kron(eye_array(n), self.x.matrix()) + kron(self.y.matrix(), eye_array(m)))

    def times(self, u: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return ``a_i u_{i-1} + b_i u_i + c_i u_{i+1}`` along both axes, the left-hand side, ``(n, m)``."""
        found = (self.x.b + self.y.b[:, None]) * u
        found += self.x.a * np.roll(u, 1, 1) + self.x.c * np.roll(u, -1, 1)
        found += self.y.a[:, None] * np.roll(u, 1, 0) + self.y.c[:, None] * np.roll(u, -1, 0)
        return found


def null_weights(rows: Rows) -> Values:
    """Return ``w`` with ``w (A - s) = 0`` for rows ``A`` whose sums all are ``s``, and ``sum(w) = 1``.

    Where ``w_k c_k = w_{k+1} a_{k+1}`` holds all along (rows that can be made symmetric), that gives ``w``; else, which
    happens in periodic rows alone, one solve with the transposed matrix in which the sum is given.

    Raises
    ------
    SolverError
        When no such weights exist because the rows fall apart.
    """
    lower, upper = rows.a[1:], rows.c[:-1]
    if np.any(lower == 0) or np.any(upper == 0):
        raise SolverError("the equation is singular and its rows fall apart: solve the parts one by one")
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.abs(upper)) - np.log(np.abs(lower)))])
    w = np.exp(logs - logs.max())
    rest = rows.matrix().T @ w - w * rows.sums().mean()
    if np.abs(rest).max() > _EQUAL * np.abs(rows.b).max() * w.max():
        matrix = rows.matrix().T.toarray() - rows.sums().mean() * np.eye(rows.length)
        matrix[0, :], right = 1.0, np.zeros(rows.length)
        right[0] = 1.0
        w = np.linalg.solve(matrix, right)
    return w / w.sum()
