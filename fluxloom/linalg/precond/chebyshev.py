"""Polynomials in ``D^-1 A``: Chebyshev's and damped Jacobi, as preconditioners and as smoothers of multigrid.

Both are one recurrence, with numbers ``alpha_k``, ``c_k`` and the diagonal ``D``::

    z_k = z_{k-1} + alpha_k (z_{k-1} - z_{k-2}) + c_k D^-1 (r - A z_{k-1}),   alpha_1 = 0

A step is one pass over the rows: product, residual, ``D^-1`` and update together. From ``z_0 = 0`` the first two
are one pass, as ``z_1 = c_1 D^-1 r`` needs no product. ``z`` is a fixed linear function of ``r``, symmetric where
``A`` is.

References
----------
Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, algorithm 12.1.
M. Adams, M. Brezina, J. Hu, R. Tuminaro: Parallel multigrid smoothing: polynomial versus Gauss-Seidel, J. Comput. Phys.
188 (2003) 593-610.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.linalg.arguments import real, whole
from fluxloom.linalg.matrix.local_rows import LocalRows, refuse
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.products import begin_rows, less_row, less_rows
from fluxloom.linalg.matrix.ring_rows import Reals
from fluxloom.linalg.matrix.square import real_type, square
from fluxloom.linalg.operators import Operator, Preconditioner, Step
from fluxloom.linalg.precond.jacobi import scale
from fluxloom.linalg.vectors import like

__all__ = ["Chebyshev", "DampedJacobi", "Polynomial", "Smoother", "inverse_diagonal"]

Coefficients = tuple[tuple[float, float], ...]


# ------------------------------------------------------------------------------------------- one vector


@kernel
def two(a: Read, r: Read, d: Read, r0: Read, d0: Read, z: Write, *, alpha: float, c: float):
    """One row of ``z = z_1 + alpha z_1 + c D^-1 (r - A z_1)`` with ``z_1 = D^-1 r``.

    Here and below ``d = D^-1`` stands for ``c_1 D^-1`` of the module, and ``c`` for ``c_k / c_1`` (`Polynomial`).
    """
    total = r0[0]
    for j in range(len(a)):
        total -= a[j] * d[j] * r[j]
    z[0] = d0[0] * ((1.0 + alpha) * r0[0] + c * total)


@kernel
def step(a: Read, x: Read, x0: Read, r: Read, d: Read, z: Write, *, alpha: float, keep: float, c: float):
    """One row of ``z = x + alpha (x - keep D^-1 r) + c D^-1 (r - A x)``."""
    z[0] = x0[0] + alpha * (x0[0] - keep * d[0] * r[0]) + c * d[0] * less_row(a, x, r[0])


@kernel
def later(a: Read, x: Read, x0: Read, r: Read, d: Read, z: RW, *, alpha: float, c: float):
    """One row of ``z = x + alpha (x - z) + c D^-1 (r - A x)``."""
    z[0] = x0[0] + alpha * (x0[0] - z[0]) + c * d[0] * less_row(a, x, r[0])


# -------------------------------------------------------------------------------------- several vectors


@kernel
def two_more(
    a: Read, r: Read, d: Read, r0: Read, d0: Read, z: Write, *, alpha: float, c: float, systems: Const[int]
):  # fmt: skip
    """One row of ``z = z_1 + alpha z_1 + c D^-1 (r - A z_1)`` with ``z_1 = D^-1 r``, for several vectors."""
    total = zeros(systems)
    begin_rows(r0, total, systems)
    for j in range(len(a)):
        for k in range(systems):
            total[k] -= a[j] * d[j] * r[j][k]
    for k in range(systems):
        z[k] = d0[0] * ((1.0 + alpha) * r0[k] + c * total[k])


@kernel
def step_more(
    a: Read, x: Read, x0: Read, r: Read, d: Read, z: Write,
    *, alpha: float, keep: float, c: float, systems: Const[int],
):  # fmt: skip
    """One row of ``z = x + alpha (x - keep D^-1 r) + c D^-1 (r - A x)``, for several vectors."""
    total = zeros(systems)
    begin_rows(r, total, systems)
    less_rows(a, x, total, systems)
    for k in range(systems):
        z[k] = x0[k] + alpha * (x0[k] - keep * d[0] * r[k]) + c * d[0] * total[k]


@kernel
def later_more(
    a: Read, x: Read, x0: Read, r: Read, d: Read, z: RW, *, alpha: float, c: float, systems: Const[int]
):  # fmt: skip
    """One row of ``z = x + alpha (x - z) + c D^-1 (r - A x)``, for several vectors."""
    total = zeros(systems)
    begin_rows(r, total, systems)
    less_rows(a, x, total, systems)
    for k in range(systems):
        z[k] = x0[k] + alpha * (x0[k] - z[k]) + c * d[0] * total[k]


# ---------------------------------------------------------------------------------------------- recipes


class Smoother(Preconditioner, what="smoother", group="fluxloom.smoothers"):
    """A recipe of a polynomial, for `fluxloom.linalg.precond.multigrid.SmoothedAggregation`, or as it is."""

    def polynomial(self, bound: float) -> Coefficients:
        """Return ``alpha_k, c_k``, from the first step on, for eigenvalues of ``D^-1 A`` up to a bound."""
        raise NotImplementedError(f"{type(self).__name__} has to define polynomial(bound)")


@dataclass(frozen=True)
class Chebyshev(Smoother, name="chebyshev"):
    """Chebyshev's polynomial of ``D^-1 A`` on an interval ``[b / ratio, b]`` of its eigenvalues.

    With ``theta`` the middle of the interval, ``delta`` half its length, and ``sigma = theta / delta``::

        rho_1 = 1 / sigma,  rho_k = 1 / (2 sigma - rho_{k-1}),  c_1 = 1 / theta
        alpha_k = rho_k rho_{k-1},  c_k = 2 rho_k / delta

    The error is multiplied by the polynomial of this degree that is 1 at 0 and least on the interval. ``b`` is
    1.1 times an estimate of the largest eigenvalue by Lanczos' method (15 products when it is built), or
    Gershgorin's bound where that is less; the same number on every rank.

    Attributes
    ----------
    degree
        Of the polynomial that multiplies the error: ``degree - 1`` products with ``A`` from a zero guess.
    ratio
        Largest eigenvalue over the least that is reduced. As a preconditioner 30; a smoother has less to reduce.
    largest
        ``b``, where it is known; 0: as above. Must not be less than the largest eigenvalue of ``D^-1 A``.

    Raises
    ------
    SolverError
        If a number is out of its range; when it is built, if the matrix is no square `SparseMatrix` or its diagonal
        is not positive.
    """

    degree: int = 3
    ratio: float = 30.0
    largest: float = 0.0

    rank_independent = True  # the bound of the eigenvalues is one number

    def __post_init__(self) -> None:
        whole(self.degree, "Chebyshev: degree", 1)
        real(self.ratio, "Chebyshev: ratio", "a number above 1 (largest over least eigenvalue)", 1.0)
        wanted = "an eigenvalue of D^-1 A, or 0 for an estimate"
        real(self.largest, "Chebyshev: largest", wanted, 0.0, closed=True)

    def polynomial(self, bound: float) -> Coefficients:
        """Return ``alpha_k = rho_k rho_{k-1}``, ``c_k = 2 rho_k / delta``, ``b`` being a bound or ``largest``."""
        upper = self.largest or bound
        theta, delta = 0.5 * upper * (1.0 + 1.0 / self.ratio), 0.5 * upper * (1.0 - 1.0 / self.ratio)
        sigma = theta / delta
        rho, found = 1.0 / sigma, [(0.0, 1.0 / theta)]
        for _ in range(self.degree - 1):
            new = 1.0 / (2.0 * sigma - rho)
            found.append((new * rho, 2.0 * new / delta))
            rho = new
        return tuple(found)

    def build(self, matrix: Operator) -> Polynomial:
        """Return the preconditioner of a matrix. Collective."""
        return _built(self, matrix, "Chebyshev", bool(self.largest))


@dataclass(frozen=True)
class DampedJacobi(Smoother, name="damped_jacobi"):
    """Sweeps of Jacobi's method, ``z += weight / b D^-1 (r - A z)``, with ``b`` as in `Chebyshev`.

    Attributes
    ----------
    sweeps
        How many.
    weight
        In ``0 ... 2``: the error stays bounded below 2.

    Raises
    ------
    SolverError
        As `Chebyshev`.
    """

    sweeps: int = 1
    weight: float = 4.0 / 3.0

    rank_independent = True  # the bound of the eigenvalues is one number

    def __post_init__(self) -> None:
        whole(self.sweeps, "DampedJacobi: sweeps", 1)
        real(self.weight, "DampedJacobi: weight", "a number between 0 and 2", 0.0, 2.0)

    def polynomial(self, bound: float) -> Coefficients:
        """Return ``alpha_k = 0``, ``c_k = weight / bound`` for each sweep."""
        return ((0.0, self.weight / bound),) * self.sweeps

    def build(self, matrix: Operator) -> Polynomial:
        """Return the preconditioner of a matrix. Collective."""
        return _built(self, matrix, "DampedJacobi", False)


def inverse_diagonal(rows: LocalRows, what: str) -> Reals:
    """Return ``1 / a_ii`` of each row. Collective.

    Raises
    ------
    SolverError
        On every rank, if one of them is not positive or not finite.
    """
    bad = np.flatnonzero(~((rows.diagonal > 0) & np.isfinite(rows.diagonal)))
    why = ""
    if bad.size:
        why = f"{what}: the diagonal of row {bad[0]} is {rows.diagonal[bad[0]]}; all must be positive (solve -A x = -b "
        why += f"where A is negative definite); {bad.size} rows are like that"
    refuse(rows.comm, why)
    return 1.0 / rows.diagonal


def _built(recipe: Smoother, matrix: Operator, what: str, known: bool) -> Polynomial:
    checked = square(matrix, what)
    rows = LocalRows.of(checked)
    inverse = inverse_diagonal(rows, what)
    bound = 0.0 if known else rows.spectrum(inverse)[1]
    return Polynomial(checked, inverse, recipe.polynomial(bound), what.lower())


# ------------------------------------------------------------------------------------------- what is built


class Polynomial:
    """``z = p(D^-1 A) D^-1 r`` by the recurrence of this module.

    Parameters
    ----------
    matrix
        ``A``.
    inverse : (rows,)
        ``D^-1``, in the order of the rows.
    coefficients
        ``alpha_k, c_k`` for each step, ``alpha_1 = 0``.
    name
        In reports.
    """

    def __init__(self, matrix: SparseMatrix, inverse: Reals, coefficients: Coefficients, name: str) -> None:
        first = coefficients[0][1]
        self.matrix, self.name = matrix, name
        self.inverse = Dat(matrix.rows, first * inverse, name=f"{name}.inverse", dtype=real_type(matrix))
        self.coefficients = tuple((alpha, c / first) for alpha, c in coefficients)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.coefficients)

    @property
    def diagonal(self) -> Dat | None:
        """The diagonal, where there is one step only."""
        return self.inverse if self.steps == 1 else None

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return loops ``z = B r``."""
        return self.begin(r, z, like(r, f"{self.name}.other") if self.steps > 2 else z)

    def begin(self, r: Dat, z: Dat, other: Dat) -> list[Loop]:
        """Return loops from a zero guess to ``z``; ``other`` is for work, and not used by less than three steps."""
        if self.steps == 1:
            systems = r.shape[0] if r.shape else 1
            return [Loop(scale, r.set, self.inverse, r, z, systems=systems, each=0, name=f"{self.name}.scale")]
        to, free = (z, other) if self.steps % 2 == 0 else (other, z)
        alpha, c = self.coefficients[1]
        own = (r, self.inverse[self.matrix.pattern], r, self.inverse, to)
        loops = [self._loop((two, two_more), *own, alpha=alpha, c=c)]
        for number in range(2, self.steps):
            loops.append(self._step(number, r, to, free, keep=1.0 if number == 2 else 0.0))
            to, free = free, to
        return loops

    def again(self, r: Dat, z: Dat, other: Dat) -> list[Loop]:
        """Return loops from the guess in ``z``; the result is there for an even number of steps, else in ``other``."""
        loops = []
        for number in range(self.steps):
            loops.append(self._step(number, r, z, other))
            z, other = other, z
        return loops

    def _step(self, number: int, r: Dat, x: Dat, z: Dat, keep: float = 0.0) -> Loop:
        """Return the loop from ``x`` to ``z``, which has the values before ``x`` (or they are ``D^-1 r``: `keep`)."""
        alpha, c = self.coefficients[number]
        own = (x, x, r, self.inverse, z)
        if alpha == 0.0 or keep:
            return self._loop((step, step_more), *own, alpha=alpha, keep=keep, c=c)
        return self._loop((later, later_more), *own, alpha=alpha, c=c)

    def _loop(self, kernels: tuple[Kernel, Kernel], x: Dat, *arguments: Any, **constants: Any) -> Loop:
        return self.matrix.row_loop(kernels, x, *arguments, name=f"{self.name}.{kernels[0].name}", **constants)
