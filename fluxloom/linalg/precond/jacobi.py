"""Jacobi's preconditioner: the inverse of the diagonal.

Source: Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, section 10.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.square import numbers_of
from fluxloom.linalg.operators import Operator, Preconditioner, Step, instead

__all__ = ["Diagonal", "Identity", "Jacobi", "diagonal_of", "regular_diagonal"]


@kernel
def scale(d: Read, r: Read, z: Write, *, systems: Const[int], each: Const[int]):
    """``z = D r``; with ``each = 1`` every system has a ``D`` of its own, with 0 all have one."""
    for k in range(systems):
        z[k] = d[each * k] * r[k]


def diagonal_of(matrix: Operator) -> npt.NDArray[np.float64]:
    """Return the diagonal of a square matrix, ``(rows,)``: of the rows of this rank; 0 where there is no entry.

    Raises
    ------
    SolverError
        If it is no `SparseMatrix`, or not square.
    """
    if not isinstance(matrix, SparseMatrix) or matrix.rows is not matrix.columns:
        raise SolverError(f"the diagonal of a square SparseMatrix is wanted, not of {instead(matrix)}")
    size, (offsets, columns, values) = matrix.rows.size, matrix.owned()
    row = np.repeat(np.arange(size), np.diff(offsets))
    own = columns == row
    return np.bincount(row[own], weights=values[own], minlength=size).astype(np.float64, copy=False)


def regular_diagonal(matrix: Operator, what: str) -> npt.NDArray[np.float64]:
    """Return the diagonal of a square matrix, all of whose numbers have an inverse. Collective.

    Raises
    ------
    SolverError
        On every rank, if one is zero, missing or not finite on some rank.
    """
    values = diagonal_of(matrix)
    bad = np.flatnonzero(~((np.abs(values) > 0) & np.isfinite(values)))
    here = [(int(numbers_of(matrix.rows)[k]), float(values[k]), bad.size) for k in bad[:1]]
    found = [one for ranks in matrix.rows.context.comm.allgather(here) for one in ranks]
    if found:
        row, value, _ = min(found)
        count = sum(number for *_, number in found)
        raise SolverError(f"{what}: the diagonal of row {row} is {value}; {count} rows are like that")
    return values


class Diagonal:
    """``z = D r`` with a number a row, or one for each of several systems.

    Parameters
    ----------
    diagonal
        The numbers, on the rows.
    """

    def __init__(self, diagonal: Dat) -> None:
        self._diagonal = diagonal

    @property
    def diagonal(self) -> Dat:
        """The numbers."""
        return self._diagonal

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return the loop ``z = D r``."""
        d, systems = self._diagonal, r.shape[0] if r.shape else 1
        return [Loop(scale, r.set, d, r, z, systems=systems, each=int(d.shape != ()), name=d.name)]


@dataclass(frozen=True)
class Jacobi(Preconditioner, name="jacobi"):
    """The inverse of the diagonal, ``z_i = r_i / a_ii``.

    Raises
    ------
    SolverError
        When it is built, on every rank, if an entry of the diagonal is zero, missing or not finite on one.
    """

    rank_independent = True

    def build(self, matrix: Operator) -> Diagonal:
        """Return the preconditioner ``D = 1 / diag(A)`` of a matrix."""
        values = regular_diagonal(matrix, "Jacobi")
        return Diagonal(Dat(matrix.rows, 1.0 / values, name="jacobi"))


@dataclass(frozen=True)
class Identity(Preconditioner, name="none"):
    """``z = r``: none at all."""

    rank_independent = True

    def build(self, matrix: Operator) -> Diagonal:
        """Return ``z = r``."""
        rows = matrix.rows
        return Diagonal(Dat(rows, np.ones(rows.size), name="identity"))
