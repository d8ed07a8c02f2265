"""The matrices of all frequencies of an extruded mesh as one: ``A_k = A + shift_k W``, never stored.

``A`` is one sparse matrix, ``W`` a diagonal of positive weights, ``shift_k`` one number a system. A product loads an
entry of ``A`` once for all systems: ``12`` bytes an entry instead of ``12`` bytes for each of them. Values of the
systems lie one after the other in a row, and the innermost loops are over them.

Source: R. Borrell, O. Lehmkuhl, F. X. Trias, A. Oliva, J. Comput. Phys. 230 (2011) 4723-4741 (the matrices of the
frequencies).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.linalg.matrix.local_rows import refuse
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.products import add_rows
from fluxloom.linalg.operators import Step
from fluxloom.linalg.precond.jacobi import Diagonal, diagonal_of

__all__ = ["ShiftedMatrix", "diagonals"]


@kernel
def shifted_product(
    a: Read, x: Read, own: Read, weight: Read, shift: Read, y: Write, result: Inc | None, *, systems: Const[int]
):  # fmt: skip
    """One row of ``y_k = (A + shift_k W) x_k``, and where it is wanted ``result_k += x_k . y_k``."""
    total = zeros(systems)
    add_rows(a, x, total, systems)
    for k in range(systems):
        v = total[k] + shift[k] * weight[0] * own[k]
        y[k] = v
        if result is not None:
            result[k] += own[k] * v


@kernel
def shifted_residual(a: Read, x: Read, own: Read, weight: Read, shift: Read, b: Read, r: Write, *, systems: Const[int]):
    """One row of ``r_k = b_k - (A + shift_k W) x_k``."""
    total = zeros(systems)
    add_rows(a, x, total, systems)
    for k in range(systems):
        r[k] = b[k] - total[k] - shift[k] * weight[0] * own[k]


class ShiftedMatrix:
    """The operators ``A + shift_k W`` for ``k = 0 ... systems - 1``, for vectors of shape ``(systems,)``.

    Parameters
    ----------
    matrix
        ``A``, square.
    weight
        The diagonal of ``W``, scalars on its rows.
    shifts : (systems,)
        One number a system.
    name
        Of its loops.

    Raises
    ------
    SolverError
        If the parts do not fit each other.
    """

    def __init__(self, matrix: SparseMatrix, weight: Dat, shifts: npt.ArrayLike, name: str = "shifted") -> None:
        self.shifts = np.array(shifts, dtype=np.float64)
        if matrix.rows is not matrix.columns or weight.set is not matrix.rows or weight.shape:
            raise SolverError(f"{name}: a square matrix is wanted, and scalars on its rows, not {matrix!r}, {weight!r}")
        if self.shifts.ndim != 1 or not self.shifts.size or not np.isfinite(self.shifts).all():
            raise SolverError(f"{name}: a finite shift for each of some systems is wanted, not {shifts!r}")
        self.matrix, self.weight, self.name = matrix, weight, name
        self._shifts = Global(matrix.rows.context, self.shifts, name=f"{name}.shifts")

    @property
    def rows(self) -> Set:
        """The set of vectors."""
        return self.matrix.rows

    @property
    def systems(self) -> int:
        """Number of systems."""
        return self.shifts.size

    def product(self, x: Dat, y: Dat) -> Step:
        """Return the loop ``y_k = A_k x_k``."""
        return self._loop(shifted_product, "product", x, y, None)

    def product_dot(self, x: Dat, y: Dat, result: Global) -> Step:
        """Return the loop ``y_k = A_k x_k``, ``result_k += x_k . y_k``."""
        return self._loop(shifted_product, "product_dot", x, y, result)

    def residual(self, x: Dat, b: Dat, r: Dat) -> Step:
        """Return the loop ``r_k = b_k - A_k x_k``."""
        return self._loop(shifted_residual, "residual", x, b, r)

    def _loop(self, what: Any, name: str, x: Dat, *arguments: Dat | Global | None) -> Loop:
        if x.shape != (self.systems,):
            raise SolverError(f"{self.name}: {x.name!r} has shape {x.shape}; there are {self.systems} systems")
        own = (x, x, self.weight, self._shifts, *arguments)
        return self.matrix.row_loop((what, what), *own, name=f"{self.name}.{name}")

    def member(self, shift: float) -> SparseMatrix:
        """Return ``A + shift W`` as a matrix of its own: to make a preconditioner for it.

        Raises
        ------
        SolverError
            If a row has no entry on the diagonal.
        """
        matrix, rows = self.matrix, self.matrix.rows
        offsets = matrix.pattern.offsets
        row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        own = np.flatnonzero(matrix.pattern.indices[: row.size] == row)
        own = own[row[own] < rows.size]
        if own.size != rows.size:
            raise SolverError(f"{self.name}: {rows.size - own.size} rows have no entry on the diagonal")
        values = matrix.values.read()
        values[own] += shift * self.weight.read()
        return SparseMatrix(matrix.pattern, Dat(matrix.pattern.entries, values, name=f"{self.name}.member"))


def diagonals(operator: ShiftedMatrix) -> Diagonal:
    """Return Jacobi's preconditioner of each system, ``D_k = 1 / (a_ii + shift_k w_i)``. Collective.

    Raises
    ------
    SolverError
        If a diagonal entry is not positive.
    """
    rows = operator.rows
    diagonal = diagonal_of(operator.matrix)[:, None] + operator.weight.read()[:, None] * operator.shifts
    bad = np.flatnonzero(~(diagonal > 0).all(axis=1))
    why = f"{operator.name}: Jacobi: the diagonal of local row {bad[0]} is not positive" if bad.size else ""
    refuse(rows.context.comm, why)
    dtype = operator.matrix.values.scalar.numpy
    return Diagonal(Dat(rows, (1.0 / diagonal).astype(dtype), name=f"{operator.name}.jacobi"))
