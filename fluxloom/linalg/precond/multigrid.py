"""Multigrid by smoothed aggregation, as a preconditioner made of loops.

A cycle for ``A_l z = b`` on level ``l``::

    z = S b                      smoothing from a zero guess
    b_{l+1} = P^T (b - A_l z)    residual, restriction
    z_{l+1} = cycle(b_{l+1})     on the coarsest level the product with a dense pseudo-inverse
    z = z + P z_{l+1}            prolongation
    z = z + S (b - A_l z)        smoothing

The smoother is a polynomial, symmetric with respect to ``A``, so that the cycle is a symmetric operator.

References
----------
U. Trottenberg, C. Oosterlee, A. Schueller: *Multigrid*, Academic Press 2001, section 2.4 and appendix A.
P. Vanek, J. Mandel, M. Brezina, Computing 56 (1996) 179-196. See also `fluxloom.linalg.precond.multigrid_setup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.core.activity import Work, activity
from fluxloom.core.errors import SolverError
from fluxloom.core.packages import require
from fluxloom.core.strategies import PYTHON_ONLY
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.linalg.arguments import real, whole
from fluxloom.linalg.matrix.distribute import distributed_matrix
from fluxloom.linalg.matrix.local_rows import LocalRows, refuse
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.products import add_row, add_rows, begin_rows
from fluxloom.linalg.matrix.ring_rows import Index, Reals
from fluxloom.linalg.matrix.square import real_type, square
from fluxloom.linalg.operators import Operator, Preconditioner, Step
from fluxloom.linalg.precond.chebyshev import Chebyshev, Polynomial, Smoother
from fluxloom.linalg.precond.multigrid_setup import HostLevel, Limits, hierarchy, pseudo_inverse
from fluxloom.linalg.vectors import like

__all__ = ["Hierarchy", "Multigrid", "SmoothedAggregation"]

_TITLE = "SmoothedAggregation"


@kernel
def prolong(p: Read, x: Read, z: RW):
    """One row of ``z = z + P x``."""
    z[0] = add_row(p, x, z[0])


@kernel
def prolong_more(p: Read, x: Read, z: RW, *, systems: Const[int]):
    """One row of ``Z = Z + P X``, several vectors at once."""
    total = zeros(systems)
    begin_rows(z, total, systems)
    add_rows(p, x, total, systems)
    for k in range(systems):
        z[k] = total[k]


@kernel
def prolong_to(p: Read, x: Read, z: Read, out: Write):
    """One row of ``out = z + P x``."""
    out[0] = add_row(p, x, z[0])


@kernel
def prolong_to_more(p: Read, x: Read, z: Read, out: Write, *, systems: Const[int]):
    """One row of ``Out = Z + P X``, several vectors at once."""
    total = zeros(systems)
    begin_rows(z, total, systems)
    add_rows(p, x, total, systems)
    for k in range(systems):
        out[k] = total[k]


@dataclass(frozen=True)
class Hierarchy:
    """What the levels are, from the finest; of all ranks together.

    Attributes
    ----------
    rows, entries
        Of the matrices; in place of the coarsest there is its inverse, with ``rows^2`` entries.
    """

    rows: tuple[int, ...]
    entries: tuple[int, ...]

    @property
    def operator_complexity(self) -> float:
        """Entries of all levels over those of the finest, ``sum_l nnz_l / nnz_0``."""
        return sum(self.entries) / self.entries[0]

    @property
    def grid_complexity(self) -> float:
        """Rows of all levels over those of the finest, ``sum_l n_l / n_0``."""
        return sum(self.rows) / self.rows[0]

    def __str__(self) -> str:
        lines = [f"{'level':>5} {'rows':>12} {'entries':>12}"]
        lines += [f"{n:5d} {r:12d} {e:12d}" for n, (r, e) in enumerate(zip(self.rows, self.entries, strict=True))]
        return "\n".join([*lines, f"operator complexity {self.operator_complexity:.3f}"])


@dataclass(frozen=True, eq=False)
class _Level:
    matrix: SparseMatrix
    smoother: Polynomial
    restriction: SparseMatrix
    prolongation: SparseMatrix


class Multigrid:
    """One V-cycle from a zero guess: a symmetric ``B`` near the inverse of the matrix.

    Made by `SmoothedAggregation`.

    Parameters
    ----------
    levels
        All but the coarsest.
    coarsest
        The (pseudo-)inverse of the coarsest matrix, full rows.
    report
        What the levels are.
    """

    diagonal = None

    def __init__(self, levels: Sequence[_Level], coarsest: SparseMatrix, report: Hierarchy) -> None:
        self.levels, self.coarsest, self._report = tuple(levels), coarsest, report

    def describe(self) -> Hierarchy:
        """Return rows and entries of the levels."""
        return self._report

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return the loops of a cycle, ``z = B r``."""
        return self._cycle(0, r, z)

    def _cycle(self, number: int, b: Dat, z: Dat) -> list[Step]:
        if number == len(self.levels):
            return [self.coarsest.product(b, z)]
        level = self.levels[number]
        work = like(b, f"amg{number}.work")
        below = level.restriction.rows
        down, up = (like(b, f"amg{number + 1}.{name}", below) for name in "bz")
        odd = level.smoother.steps % 2 == 1
        start, other = (work, z) if odd else (z, work)
        return [
            *level.smoother.begin(b, z, work),
            level.matrix.residual(z, b, work),
            level.restriction.product(work, down),
            *self._cycle(number + 1, down, up),
            _prolong(level.prolongation, up, z, start),
            *level.smoother.again(b, start, other),
        ]


def _prolong(matrix: SparseMatrix, x: Dat, z: Dat, out: Dat) -> Loop:
    """Return the loop ``out = z + P x``; ``out`` may be ``z``."""
    kernels, ends = ((prolong, prolong_more), (z,)) if out is z else ((prolong_to, prolong_to_more), (z, out))
    return matrix.row_loop(kernels, x, *ends, name=f"{matrix.pattern.name}.{kernels[0].name}")


@dataclass(frozen=True, eq=False)
class SmoothedAggregation(Preconditioner, name="smoothed_aggregation"):
    """Algebraic multigrid by smoothed aggregation, for symmetric positive (semi)definite matrices.

    Rows that are strongly coupled form aggregates; ``T`` has the near null space, cut to them and made orthonormal,
    for columns, ``P = (I - weight / lambda D^-1 A) T``, and the coarse matrix is ``P^T A P``. On the coarsest level
    stands the pseudo-inverse, so that matrices with a null space (pressure, without a Dirichlet boundary) are
    allowed. The set-up runs on the host; a cycle is loops on the device. The layout and the type of all matrices
    are those of the given one. Needs pyamg, the extra ``amg``.

    On several ranks aggregates end at the boundaries of the ranks: a few more iterations, and at least one row a rank
    on the coarsest level.

    Attributes
    ----------
    smoother
        `Chebyshev`, by default of degree 2 with a ratio of 5, or `DampedJacobi`.
    theta
        Entries with ``|a_ij| < theta sqrt(a_ii a_jj)`` do not aggregate: 0 for isotropic problems, up to 0.25 for those
        with strong directions.
    candidates : (rows,) or (rows, n), optional
        Vectors that ``A`` nearly takes to zero, in the order of the set; on several ranks those of the owned rows. By
        default constants.
    coarse
        Rows that the coarsest level may have.
    levels
        At most.
    weight
        Of the smoothing of ``P``; 0: plain aggregation.

    Raises
    ------
    SolverError
        If a choice is out of its range. When it is built, on every rank: if the matrix is no square `SparseMatrix`,
        its diagonal is not positive, candidates do not fit, or coarsening ends with more rows than ``coarse``.
    DeviceUnavailable
        When it is built, if pyamg is not installed.

    Examples
    --------
    >>> cg = ConjugateGradient(matrix, b, x, preconditioner=SmoothedAggregation())
    """

    smoother: Smoother = field(default_factory=lambda: Chebyshev(degree=2, ratio=5.0))
    theta: float = 0.0
    candidates: npt.ArrayLike | None = field(default=None, metadata=PYTHON_ONLY)
    coarse: int = 500
    levels: int = 12
    weight: float = 4.0 / 3.0

    def __post_init__(self) -> None:
        if not callable(getattr(self.smoother, "polynomial", None)):
            raise SolverError(f"{_TITLE}: smoother is Chebyshev(...) or DampedJacobi(...), not {self.smoother!r}")
        if getattr(self.smoother, "largest", 0.0):
            raise SolverError(f"{_TITLE}: smoother: levels have eigenvalues of their own; leave out largest=")
        for name, low, high in (("theta", 0.0, 1.0), ("weight", 0.0, 2.0)):
            wanted = f"a number from {low:g} to below {high:g}"
            real(getattr(self, name), f"{_TITLE}: {name}", wanted, low, high, closed=True)
        for name, least in (("coarse", 1), ("levels", 2)):
            whole(getattr(self, name), f"{_TITLE}: {name}", least)

    def build(self, matrix: Operator) -> Multigrid:
        """Return the preconditioner of a matrix. Collective."""
        require("pyamg", "amg", "smoothed aggregation")
        fine = square(matrix, _TITLE)
        rows = LocalRows.of(fine)
        limits = Limits(float(self.theta), int(self.coarse), int(self.levels), float(self.weight))
        host, coarsest = hierarchy(rows, self._checked(rows), limits)
        with activity("levels of algebraic multigrid to the device", total=len(host)) as work:
            return self._built(fine, rows.owned, host, coarsest, work)

    def _built(
        self, fine: SparseMatrix, owned: int, host: list[HostLevel], coarsest: LocalRows, work: Work
    ) -> Multigrid:
        """Bring the levels to the device. Collective."""
        context, layout, dtype = fine.rows.context, fine.layout, real_type(fine)
        levels: list[_Level] = []
        order = np.arange(owned)
        for number, level in enumerate(host):
            name = f"amg{number}"
            smoother = Polynomial(fine, level.inverse[order], self.smoother.polynomial(level.bound), name)
            if number + 1 < len(host):
                below, places = _on_device(context, host[number + 1].rows, None, layout, dtype, f"amg{number + 1}")
            else:
                work.at(f"inverse of the coarsest, {coarsest.total:,} rows")
                below, places = _on_device(context, coarsest, pseudo_inverse(coarsest), layout, dtype, "amg.coarsest")
            p = level.prolongation[order][:, places]
            transfer: dict[str, Any] = {"layout": layout, "dtype": dtype}
            up = SparseMatrix.from_scipy(context, p, rows=fine.rows, columns=below.rows, name=f"{name}.P", **transfer)
            down = SparseMatrix.from_scipy(
                context, p.T.tocsr(), rows=below.rows, columns=fine.rows, name=f"{name}.R", **transfer
            )  # fmt: skip
            levels.append(_Level(fine, smoother, down, up))
            fine, order = below, places
            work.step()
        sizes = [*(level.rows for level in host), coarsest]
        return Multigrid(levels, fine, Hierarchy(tuple(s.total for s in sizes), tuple(s.entries for s in sizes)))

    def _checked(self, rows: LocalRows) -> Reals:
        """Return the candidates, ``(owned, n)``. Collective."""
        if self.candidates is None:
            return np.ones((rows.owned, 1))
        given = np.asarray(self.candidates)
        why = ""
        if given.ndim not in (1, 2) or given.shape[0] != rows.owned or (given.ndim == 2 and not given.shape[1]):
            why = f"{_TITLE}: candidates have shape {given.shape}; give ({rows.owned},) or ({rows.owned}, n)"
        elif given.dtype.kind not in "fiu" or not np.isfinite(given).all():
            why = f"{_TITLE}: candidates must be finite real numbers, {given.dtype} is given"
        refuse(rows.comm, why)
        return np.ascontiguousarray(given.reshape(rows.owned, -1), dtype=np.float64)


def _on_device(
    context: Runtime, rows: LocalRows, dense: Reals | None, layout: RaggedLayout, dtype: Any, name: str
) -> tuple[SparseMatrix, Index]:
    """Return a matrix (or a dense one in its place) on the device, and which of the rows each of the set is."""
    given = rows.matrix if dense is None else csr_array(dense)
    if not context.distributed:
        return SparseMatrix.from_scipy(context, given, layout=layout, dtype=dtype, name=name), np.arange(rows.owned)
    matrix = distributed_matrix(context, given, layout=layout, dtype=dtype, name=name)
    part = matrix.rows.part
    assert part is not None
    return matrix, part.numbers[: part.owned] - rows.first
