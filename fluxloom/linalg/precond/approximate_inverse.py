"""A factorised sparse approximate inverse: a preconditioner that is two products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import PYTHON_ONLY
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.sets import Set
from fluxloom.linalg.arguments import real, whole
from fluxloom.linalg.matrix.distribute import distributed_matrix
from fluxloom.linalg.matrix.local_rows import refuse
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.square import global_rows, local_matrix, numbers_of, real_type, square, stored_places
from fluxloom.linalg.operators import Operator, Preconditioner, Step
from fluxloom.linalg.precond.inverse_factor import inverse_factor
from fluxloom.linalg.vectors import like

__all__ = ["ApproximateInverse", "FactorisedInverse"]

_NAME = "approximate inverse"


class FactorisedInverse:
    """``z = G^T (G r)``.

    Parameters
    ----------
    factor, transposed
        ``G`` and its transpose, over the same rows.
    there, back
        Where these rows are not those of the vectors, because they have other halos: what brings ``r`` to them, and
        ``z`` back, matrices with one entry a row.
    """

    diagonal = None

    def __init__(
        self,
        factor: SparseMatrix,
        transposed: SparseMatrix,
        there: SparseMatrix | None = None,
        back: SparseMatrix | None = None,
    ) -> None:
        self.factor, self.transposed = factor, transposed
        self._there, self._back = there, back

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return the loops ``z = G^T (G r)``, with vectors of their own between them."""
        t, there, back = like(r, f"{_NAME}.t", self.factor.rows), self._there, self._back
        if there is None or back is None:
            return self.factor.product(r, t), self.transposed.product(t, z)
        s, u = (like(r, f"{_NAME}.{name}", self.factor.rows) for name in "su")
        inner = self.factor.product(s, t), self.transposed.product(t, u)
        return there.product(r, s), *inner, back.product(u, z)


@dataclass(frozen=True)
class ApproximateInverse(Preconditioner, name="approximate_inverse"):
    r"""A factorised sparse approximate inverse of a symmetric positive definite matrix.

    .. math:: A^{-1} \approx G^T G, \qquad \operatorname{diag}(G A G^T) = 1

    with ``G`` lower triangular. Its pattern is given: the lower triangle of the pattern of ``B^level``, where ``B`` is
    ``A`` without entries ``|a_ij| < drop sqrt(a_ii a_jj)``. On this pattern ``G`` is the one with the smallest
    ``|I - G L|`` in Frobenius' norm, ``L`` being the (unknown) Cholesky factor. Rows are independent of each other:
    one small dense system each, see `fluxloom.linalg.precond.inverse_factor.inverse_factor`. To apply it are two
    products.

    On several ranks ``G`` is that of one rank, bit for bit. From level 2 on it leads farther than the matrix, so that
    vectors with a wider halo stand between: two copies more.

    Attributes
    ----------
    level
        Power of the pattern, at least 1. The next one takes a larger factor and fewer iterations.
    drop
        0: nothing is left out of the pattern. Below 1.
    layout
        How the factors are stored; None: as compressed rows.

    Raises
    ------
    SolverError
        If a choice is wrong; when it is built, if the matrix is not symmetric and positive definite, on every rank.

    References
    ----------
    E. Chow, "A priori sparsity patterns for parallel sparse approximate inverse preconditioners", SIAM J. Sci.
    Comput. 21 (2000) 1804-1822.

    Examples
    --------
    >>> cg = ConjugateGradient(matrix, b, x, preconditioner=ApproximateInverse(level=2))
    """

    level: int = 1
    drop: float = 0.0
    layout: RaggedLayout | None = field(default=None, metadata=PYTHON_ONLY)

    rank_independent = True  # bit for bit

    def __post_init__(self) -> None:
        whole(self.level, "ApproximateInverse: level", 1)
        real(self.drop, "ApproximateInverse: drop", "a number of at least 0 and below 1", 0.0, 1.0, closed=True)
        if self.layout is not None and not isinstance(self.layout, RaggedLayout):
            layouts = "CSR(), ELL() or SlicedELL()"
            raise SolverError(f"ApproximateInverse: layout is {layouts}, not {self.layout!r}")

    def build(self, matrix: Operator) -> FactorisedInverse:
        """Return the preconditioner of a matrix. Collective."""
        given = square(matrix, "ApproximateInverse")
        rows, comm = given.rows, given.rows.context.comm
        numbers = numbers_of(rows)[: rows.size]
        refuse(comm, "" if len(set(comm.allgather((self.level, self.drop)))) == 1 else
               "ApproximateInverse: level and drop are not the same on every rank")  # fmt: skip
        factor, transposed = inverse_factor(comm, global_rows(given), numbers, self.level, self.drop)
        wide = rows if all(comm.allgather(_fits(rows, factor, transposed))) else _wider(given, factor, transposed)

        def stored(own: csr_array, name: str) -> SparseMatrix:
            return local_matrix(own, numbers, wide, given, f"{_NAME}.{name}", self.layout)

        g, gt = stored(factor, "G"), stored(transposed, "GT")
        if wide is rows:
            return FactorisedInverse(g, gt)
        return FactorisedInverse(g, gt, _turn(given, rows, wide), _turn(given, wide, rows))


def _fits(rows: Set, factor: csr_array, transposed: csr_array) -> bool:
    """Whether vectors on the rows of the matrix have what both factors need where they need it."""
    part = rows.part
    if part is None:
        return True
    for own in (factor, transposed):
        places = stored_places(rows, own.indices.astype(np.int64))
        inner = places[own.indptr[part.begin] : own.indptr[part.inside]]
        if places.min(initial=0) < 0 or inner.max(initial=-1) >= part.owned:
            return False
    return True


def _wider(matrix: SparseMatrix, factor: csr_array, transposed: csr_array) -> Set:
    """Return a set of the same rows with the halo that both factors need. Collective."""
    rows = matrix.rows
    numbers = numbers_of(rows)[: rows.size]
    ones = [csr_array((np.ones(f.nnz), f.indices, f.indptr), shape=f.shape) for f in (factor, transposed)]
    reach = ones[0] + ones[1]  # of ones: a sum leaves out entries that are zero
    return distributed_matrix(rows.context, reach, rows=numbers, name=f"{_NAME}.reach").rows


def _turn(like: SparseMatrix, source: Set, target: Set) -> SparseMatrix:
    """Return the matrix that brings the values of own rows from one set to another: one entry a row. Collective."""
    places = stored_places(source, numbers_of(target)[: target.size])
    return SparseMatrix.from_csr(
        target.context, np.arange(target.size + 1), places, np.ones(target.size), rows=target, columns=source,
        dtype=real_type(like), name=f"{_NAME}.turn",
    )  # fmt: skip
