"""Frequencies of an extruded mesh solved directly, on the host: what is compared with the iterative solver.

On a rank alone each frequency has a sparse factorisation of ``K = spacing A + |lambda| W``. On several ranks rows
that meet those of others form the interface ``G``, all others, ``I``, only meet rows of their own rank:

::

    S = K_GG - sum over the ranks of K_GI K_II^-1 K_IG,    x_G = S^-1 (b_G - K_GI K_II^-1 b_I),
    x_I = K_II^-1 (b_I - K_IG x_G)

``K_II`` is factorised rank by rank, the inverse of ``S`` made explicitly; each rank keeps the rows that it needs. A
solve is two sweeps through the factors and one message to all, but the inverse grows with the square of the
interface: with the number of ranks.

References
----------
R. Borrell, O. Lehmkuhl, F. X. Trias, A. Oliva: "Parallel direct Poisson solver for discretisations with one Fourier
diagonalisable direction", J. Comput. Phys. 230 (2011) 4723-4741, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.extruded.batch import Batch, PlaneMethod, PlaneSystems
from fluxloom.linalg.matrix.local_rows import LocalRows
from fluxloom.linalg.status import Status, judge

__all__ = ["DirectBatch", "Interface", "SchurFactors", "SparseFactors"]

Array = npt.NDArray[np.float64]


class Interface:
    """Which rows of a rank meet rows of others. Collective.

    Parameters
    ----------
    rows
        Of this rank.

    Attributes
    ----------
    inner, outer
        Rows of this rank that do not, and that do.
    first, total
        Number of this rank's first row in the interface, and rows of the whole interface.
    columns : (owned + halo,)
        Number in the interface of each column of ``rows.local``, or -1.
    """

    def __init__(self, rows: LocalRows) -> None:
        far = np.repeat(np.arange(rows.owned), np.diff(rows.local.indptr))[rows.local.indices >= rows.owned]
        outer = np.zeros(rows.owned, dtype=bool)
        outer[far] = True
        self.outer, self.inner = np.flatnonzero(outer), np.flatnonzero(~outer)
        counts = rows.comm.allgather(int(self.outer.size))
        self.first, self.total = sum(counts[: rows.comm.rank]), sum(counts)
        number = np.full(rows.owned, -1.0)
        number[self.outer] = self.first + np.arange(self.outer.size)
        self.columns = rows.fill(number).astype(np.int64)

    @property
    def own(self) -> slice:
        """Part of the interface that is on this rank."""
        return slice(self.first, self.first + self.outer.size)


class SchurFactors:
    """Factors of one symmetric positive definite matrix whose rows ranks share. Collective.

    Parameters
    ----------
    rows
        Of the pattern.
    interface
        Of these rows.
    matrix
        Rows with local columns, of the form of ``rows.local``.
    """

    def __init__(self, rows: LocalRows, interface: Interface, matrix: csr_array) -> None:
        self._comm, self._interface = rows.comm, interface
        inner, outer = interface.inner, interface.outer
        self._inner = _factors(matrix[inner][:, inner]) if inner.size else None
        self._across = csr_array(matrix[inner][:, outer])
        if not interface.total:
            return
        own = matrix[outer].tocoo()
        there = interface.columns[own.col]
        kept = there >= 0
        schur = np.zeros((outer.size, interface.total))
        np.add.at(schur, (own.row[kept], there[kept]), own.data[kept])
        if inner.size and outer.size:
            schur[:, interface.own] -= self._across.T @ self._swept(self._across.toarray())
        whole = np.concatenate(self._comm.allgather(schur))
        try:
            self._inverse = np.linalg.inv(whole)[interface.own]
        except np.linalg.LinAlgError:
            raise SolverError("direct solver: the interface between the ranks has a singular matrix") from None

    def _swept(self, b: Array) -> Array:
        return self._inner.solve(b) if self._inner is not None else b

    def solve(self, b: Array) -> Array:
        """Return ``x`` of the rows of this rank for ``b`` ``(owned, systems)``. Collective."""
        inner, outer = self._interface.inner, self._interface.outer
        x = np.empty_like(b)
        first = self._swept(b[inner])
        if not self._interface.total:
            x[inner] = first
            return x
        right = b[outer] - self._across.T @ first
        x[outer] = self._inverse @ np.concatenate(self._comm.allgather(right))
        x[inner] = self._swept(b[inner] - self._across @ x[outer])
        return x


def _factors(matrix: Any) -> Any:
    """Return the factors of a symmetric positive definite matrix, without pivots."""
    return splu(
        matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )  # fmt: skip


@dataclass(frozen=True)
class SparseFactors(PlaneMethod):
    """Sparse factors of each frequency, on the host, with an explicit inverse between ranks."""

    def batch(self, systems: PlaneSystems, members: range) -> Batch:
        """Return what solves some frequencies. Collective."""
        return DirectBatch(systems, members, self)


class DirectBatch(Batch):
    """Frequencies that are solved by factors of their own.

    Parameters
    ----------
    systems, members
        As of `Batch`.
    method
        For reports.
    """

    def __init__(self, systems: PlaneSystems, members: range, method: SparseFactors) -> None:
        super().__init__(systems, members, 2 * len(members))
        self.how, self.singular = method, self.nullspace == "constant"
        self._rows = LocalRows.of(systems.matrix)
        interface, diagonal = Interface(self._rows), systems.weight.read()
        self._matrices, self._factors = [], []
        for value in systems.frequencies.eigenvalues[members.start : members.stop]:
            own = sparse.dia_array((value * diagonal[None, :], [0]), shape=self._rows.local.shape)
            self._matrices.append(csr_array(self._rows.local + own))
            self._factors.append(SchurFactors(self._rows, interface, self._pinned(self._matrices[-1])))
        self._squares = np.zeros(0)

    def _pinned(self, matrix: csr_array) -> csr_array:
        """Return a regular matrix: where constants are in the null space, with twice the first diagonal entry.

        If the right-hand side has no mean, the first unknown is then zero, and all others are those of the given
        matrix.
        """
        if not self.singular or self._rows.first or not self._rows.owned:
            return matrix
        pin = sparse.csr_array(([matrix[0, 0]], ([0], [0])), shape=matrix.shape)
        return csr_array(matrix + pin)

    def solve(self, square: float, *, checked: bool = True) -> Status:
        """Solve for `b`; see `Batch.solve`. Collective; always checked."""
        del checked
        b = self._right()
        x = np.zeros_like(b)
        for k, factors in enumerate(self._factors):
            x[:, self._some(k)] = factors.solve(b[:, self._some(k)])
        left = self._left(b, x)
        if self.singular:
            x -= self._mean(x)
        self.x.write(x.reshape(self._rows.owned, *self.x.shape))
        squares = self._rows.comm.reduce(np.stack([(b**2).sum(axis=0), (left**2).sum(axis=0)]), "sum")
        count = int(self.systems.sum())
        self._squares = squares[1, :count]
        return judge(squares[:, :count], np.full(count, square), self.stop)

    def measure(self) -> None:
        """Find ``b - A x``, for `residual`. Collective."""
        left = self._left(self._right(), self.x.read().reshape(self._rows.owned, -1).astype(np.float64))
        self._squares = self._rows.comm.reduce((left**2).sum(axis=0), "sum")[: int(self.systems.sum())]

    def _right(self) -> Array:
        """Return the right-hand sides, without the mean where the matrix is singular."""
        b = self.b.read().reshape(self._rows.owned, -1).astype(np.float64)
        return b - self._mean(b) if self.singular else b

    def _left(self, b: Array, x: Array) -> Array:
        """Return ``b - A x``."""
        left = np.empty_like(b)
        for k, matrix in enumerate(self._matrices):
            left[:, self._some(k)] = b[:, self._some(k)] - matrix @ self._rows.fill(x[:, self._some(k)])
        return left

    def _some(self, member: int) -> slice:
        """Return the columns of one of the frequencies."""
        return slice(0, 1) if self.zero else slice(2 * member, 2 * member + 2)

    def _mean(self, values: Array) -> Array:
        return self._rows.comm.reduce(values.sum(axis=0), "sum") / self._rows.total

    def squares(self) -> Array:
        """Return ``r . r`` of each system."""
        return self._squares
