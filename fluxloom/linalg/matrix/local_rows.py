"""The rows of a distributed square matrix that a rank has, in SciPy: for the set-up of preconditioners."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree
from fluxloom.comm.base import Comm
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.ring_rows import Index, Reals, fetch, find_rings

__all__ = ["LocalRows", "refuse", "refuse_strange"]


def refuse(comm: Comm, problem: str) -> None:
    """Raise the first rank's problem on every rank, if some rank has one. Collective.

    Raises
    ------
    SolverError
        With the rank, where there are several, and its text.
    """
    agree(comm, problem, SolverError)


def refuse_strange(matrix: SparseMatrix, values: Reals) -> None:
    """Raise on every rank if some of a matrix's entries are NaN or infinite, with their rows. Collective.

    Parameters
    ----------
    matrix
        Of whose rows one is named: by its number among those of all ranks, in the order of its set.
    values
        Of the entries of the rows that this rank owns.

    Raises
    ------
    SolverError
        With row, column and value of the first one.
    """
    bad, why = np.flatnonzero(~np.isfinite(values)), ""
    if bad.size:
        pattern, part = matrix.pattern, matrix.rows.part
        row = int(np.searchsorted(pattern.offsets, bad[0], side="right")) - 1
        column = int(pattern.indices[bad[0]])
        if part is not None:
            row, column = int(part.numbers[row]), int(part.numbers[column])
        why = f"the matrix has {values[bad[0]]} in row {row}, column {column}; {bad.size} entries are no finite numbers"
    refuse(matrix.rows.context.comm, why)


class LocalRows:
    """Rows of a square matrix; ranks have consecutive ones, in their order. Collective on several ranks.

    Parameters
    ----------
    comm
        The ranks.
    matrix
        The rows of this rank, ``(owned, total)`` with global columns, in compressed rows of SciPy.

    Attributes
    ----------
    starts
        int64, ``(ranks + 1,)``: first row of each rank, and their number.
    local
        The rows with local columns, ``(owned, owned + halo)``: those of this rank, then of others, ascending.
    """

    def __init__(self, comm: Comm, matrix: Any) -> None:
        self.comm, self.matrix = comm, matrix
        self.owned = int(matrix.shape[0])
        self.starts = np.concatenate([[0], np.cumsum(comm.allgather(self.owned))]).astype(np.int64)
        self.local = matrix
        self.send: list[Index] = []
        if comm.size == 1:
            return
        plan, none = find_rings(comm, matrix, 1), np.zeros(0, dtype=np.int64)
        self.send = [plan.send.get(rank, none) for rank in range(comm.size)]
        parts = (matrix.data, plan.indices.astype(np.int32), matrix.indptr)
        self.local = type(matrix)(parts, shape=(self.owned, plan.numbers.size), copy=True)  # SciPy may sort it

    @classmethod
    def of(cls, matrix: SparseMatrix) -> LocalRows:
        """Return the rows of a square matrix, in the order of its set; ranks number theirs one after the other.

        Entries that occur several times in a row, as those of lazy rows do, are added up.
        """
        from scipy.sparse import csr_array

        comm, part = matrix.rows.context.comm, matrix.rows.part
        offsets, columns, stored = matrix.owned()
        owned = total = matrix.rows.size
        if part is not None:
            counts = comm.allgather(owned)
            numbers = sum(counts[: comm.rank]) + np.arange(part.stored, dtype=np.int64)
            refresh_host(comm, part, numbers)
            columns, total = numbers[columns], sum(counts)
        values = stored.astype(np.float64)
        refuse_strange(matrix, values)
        rows = csr_array((values, columns.astype(np.int32), offsets.astype(np.int32)), (owned, total))
        return cls(comm, _added_up(rows))

    @property
    def first(self) -> int:
        """Global number of the first row of this rank."""
        return int(self.starts[self.comm.rank])

    @property
    def total(self) -> int:
        """Rows of all ranks."""
        return int(self.starts[-1])

    @property
    def entries(self) -> int:
        """Entries of all ranks; collective."""
        return sum(self.comm.allgather(int(self.local.nnz)))

    @cached_property
    def diagonal(self) -> Reals:
        """The diagonal, ``(owned,)``; 0 where there is no entry."""
        return self.local.diagonal()

    @property
    def block(self) -> Any:
        """The rows without the columns of other ranks, ``(owned, owned)``."""
        return self.local if self.comm.size == 1 else self.local[:, : self.owned].tocsr()

    def fill(self, x: npt.NDArray[np.float64]) -> Reals:
        """Return values ``(owned, ...)`` with those of other ranks behind them, ``(owned + halo, ...)``."""
        return x if self.comm.size == 1 else np.concatenate([x, *self.comm.exchange([x[s] for s in self.send])])

    def product(self, x: npt.NDArray[np.float64]) -> Reals:
        """Return ``y_i = sum_j a_ij x_j`` of the rows of this rank."""
        return self.local @ self.fill(x)

    def dot(self, x: Reals, y: Reals) -> float:
        """Return ``x . y = sum_i x_i y_i`` over all ranks, the same bits on each."""
        return float(self.comm.reduce(np.array([np.sum(x * y)]), "sum")[0])

    def with_halo(self, rows: Any) -> Any:
        """Return another matrix's rows ``(owned, n)`` with those of other ranks behind them, ``(owned + halo, n)``."""
        if self.comm.size == 1:
            return rows
        parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
        lengths, columns, values = fetch(self.comm, self.send, parts)
        offsets = np.concatenate([parts[0], parts[0][-1] + np.cumsum(lengths)])
        arrays = (np.concatenate([parts[2], values]), np.concatenate([parts[1], columns]), offsets)
        return type(rows)(arrays, shape=(offsets.size - 1, rows.shape[1]))

    def spectrum(self, inverse: Reals, steps: int = 15) -> tuple[float, float]:
        """Return an estimate of the largest eigenvalue of ``D A``, and what it is not expected to pass. Collective.

        The estimate is the largest Ritz value of Lanczos' method for ``D^1/2 A D^1/2``, always too small by some per
        cent; it begins with fixed pseudo-random numbers. The other number is 1.1 times it, or Gershgorin's bound,
        ``max_i D_i sum_j |a_ij|``, where that is less.

        Parameters
        ----------
        inverse : (owned,)
            ``D``, positive.
        steps
            Of Lanczos' method.

        Notes
        -----
        Source: Y. Saad, *Numerical Methods for Large Eigenvalue Problems*, SIAM 2011, section 6.3.
        """
        if not self.total:
            return 1.0, 1.0
        scale = np.sqrt(inverse)
        q, before = _mixed(self.first + np.arange(self.owned)), np.zeros(self.owned)
        alphas: list[float] = []
        betas: list[float] = [0.0]
        norm = np.sqrt(self.dot(q, q))
        for _ in range(min(steps, self.total)):
            q = q / norm
            w = scale * self.product(scale * q) - betas[-1] * before
            alphas.append(self.dot(w, q))
            w -= alphas[-1] * q
            norm = np.sqrt(self.dot(w, w))
            if not norm > 1e-12 * abs(alphas[0]):
                break
            betas.append(norm)
            before, q = q, w
        off = np.array(betas[1 : len(alphas)])
        ritz = np.linalg.eigvalsh(np.diag(alphas) + np.diag(off, 1) + np.diag(off, -1))
        sums = inverse * np.asarray(abs(self.local).sum(axis=1)).ravel()
        circle = float(self.comm.reduce(np.array([sums.max(initial=0.0)]), "max")[0])
        return float(ritz[-1]), min(1.1 * float(ritz[-1]), circle)


def _added_up(rows: Any) -> Any:
    """Return rows without repeated columns; rows that have none stay as they are, in their order."""
    once = rows.copy()
    once.sum_duplicates()
    return once if once.nnz < rows.nnz else rows


def _mixed(numbers: Index) -> Reals:
    """Return a pseudo-random number in -1/2 ... 1/2 for each integer: the last steps of SplitMix64."""
    x = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).astype(np.float64) / 2.0**64 - 0.5
