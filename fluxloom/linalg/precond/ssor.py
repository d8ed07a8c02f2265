"""Symmetric successive over-relaxation, colour by colour: a preconditioner for devices with many threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.graph.colour_rows import colour_rows
from fluxloom.graph.csr import Csr
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.arguments import real, whole
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.square import real_type, square
from fluxloom.linalg.operators import Operator, Preconditioner, Step
from fluxloom.linalg.precond.jacobi import regular_diagonal
from fluxloom.linalg.precond.relaxation import again, agains, backward, backwards, first, forward, forwards

__all__ = ["SSOR", "ColouredRelaxation"]


class ColouredRelaxation:
    """Symmetric sweeps over the colours of the rows, from ``z = 0``.

    Parameters
    ----------
    lower, upper
        Entries that lead to earlier and to later colours.
    scale
        ``omega / a_ii``.
    colours
        The rows of each colour, at least one.
    sweeps, omega
        See `SSOR`.
    """

    diagonal = None

    def __init__(
        self, lower: SparseMatrix, upper: SparseMatrix, scale: Dat, colours: Sequence[Set], sweeps: int, omega: float
    ) -> None:
        self.lower, self.upper, self.scale, self.colours = lower, upper, scale, tuple(colours)
        self.sweeps, self.omega = sweeps, omega

    def apply(self, r: Dat, z: Dat) -> Sequence[Step]:
        """Return the loops of all sweeps, the first of which starts from 0.

        Where a sweep turns, its last colour is relaxed twice, the others unchanged. That is done once: what
        is left of the defect is ``(1 - omega)^2`` of it.
        """
        last = len(self.colours) - 1
        up = list(range(last + 1))
        steps: list[Step] = []
        for visit, (colour, run) in enumerate(groupby([*up, *reversed(up)] * self.sweeps)):
            times = len(list(run))
            factor = (1.0 - (1.0 - self.omega) ** times) / self.omega
            if visit == 0:
                steps.append(self._loop(colour, first, self.scale, r, z, factor=factor, systems=_systems(r)))
            elif visit <= last:
                steps.append(self._forward(colour, r, z, factor))
            elif visit <= 2 * last and times == 1:
                steps.append(self._backward(colour, z))
            else:
                steps.append(self._again(colour, r, z, factor))
        return steps

    def _forward(self, colour: int, r: Dat, z: Dat, factor: float) -> Loop:
        what, more = (forwards, {"systems": _systems(r)}) if r.shape else (forward, {})
        return self._loop(colour, what, *_row(self.lower, z), self.scale, r, z, factor=factor, **more)

    def _backward(self, colour: int, z: Dat) -> Loop:
        what, more = (backwards, {"systems": _systems(z)}) if z.shape else (backward, {})
        return self._loop(colour, what, *_row(self.upper, z), self.scale, z, keep=2.0 - self.omega, **more)

    def _again(self, colour: int, r: Dat, z: Dat, factor: float) -> Loop:
        what, more = (agains, {"systems": _systems(r)}) if r.shape else (again, {})
        rows = (*_row(self.lower, z), *_row(self.upper, z))
        return self._loop(colour, what, *rows, self.scale, r, z, factor=factor, omega=self.omega, **more)

    def _loop(self, colour: int, what: Kernel, *arguments: Dat | Argument, **constants: Any) -> Loop:
        return Loop(what, self.colours[colour], *arguments, name=f"ssor.{what.name}", **constants)


def _systems(vector: Dat) -> int:
    return vector.shape[0] if vector.shape else 1


def _row(matrix: SparseMatrix, vector: Dat) -> tuple[Argument, Argument]:
    """Return the entries of a row, and the values of a vector that they meet."""
    return matrix.values[matrix.pattern.to_entries], vector[matrix.pattern]


@dataclass(frozen=True)
class SSOR(Preconditioner, name="ssor"):
    r"""Symmetric successive over-relaxation, rows in the order of colours.

    Rows are coloured so that no entry joins two of one colour. In the order of the colours be ``A = L + D + U``. A
    sweep relaxes the colours one after the other, forward and then backward:

    .. math::
        (D/\omega + L) z' &= r - (U + (1 - 1/\omega) D) z \\
        (D/\omega + U) z'' &= r - (L + (1 - 1/\omega) D) z'

    One sweep from ``z = 0`` is :math:`z = M^{-1} r`,

    .. math:: M = \frac{\omega}{2 - \omega} (D/\omega + L) D^{-1} (D/\omega + U),

    symmetric and positive definite where ``A`` is, and as expensive as one product: the way forward reads
    ``L``, the way back ``U``. Further sweeps start from the ``z`` of the one before, and read both twice.

    A colour is one loop, on a GPU one launch. Convergence is a little slower than in the order of a mesh, which has
    no such parallelism. The pattern need not be symmetric, for methods that take other matrices. On several
    ranks it is block Jacobi between them: entries that lead to rows of other ranks are left out. It sends
    no messages then, and the number of iterations depends on the ranks.

    Attributes
    ----------
    sweeps
        At least 1.
    omega
        Relaxation factor between 0 and 2; 1 is the symmetric Gauss-Seidel method.

    Raises
    ------
    SolverError
        If a choice is wrong; when it is built, if an entry of the diagonal is zero, missing or
        not finite, on every rank.

    References
    ----------
    Y. Saad: *Iterative Methods for Sparse Linear Systems*, 2nd ed., SIAM 2003, sections 4.1 (relaxation), 10.2
    (as a preconditioner) and 12.4 (multicolouring).

    Examples
    --------
    >>> cg = ConjugateGradient(matrix, b, x, preconditioner=SSOR(omega=1.2))
    """

    sweeps: int = 1
    omega: float = 1.0

    def __post_init__(self) -> None:
        whole(self.sweeps, "SSOR: sweeps", 1)
        real(self.omega, "SSOR: omega", "a number above 0 and below 2", 0.0, 2.0)

    def build(self, matrix: Operator) -> ColouredRelaxation:
        """Return the preconditioner of a matrix. Collective."""
        given = square(matrix, "SSOR")
        rows, context = given.rows, given.rows.context
        diagonal = regular_diagonal(given, "SSOR")
        row, column, values = _inner_entries(given)
        pattern = Csr(_offsets(row, rows.size), column)
        found = colour_rows(pattern)
        count = max(1, *context.comm.allgather(found.n_colours))
        colours = [Subset(rows, found.colours == c, f"ssor.colour{c}") for c in range(count)]
        parts: list[SparseMatrix] = []
        later = found.colours[column] > found.colours[row]
        for name, part in (("lower", ~later), ("upper", later)):
            parts.append(SparseMatrix.from_csr(
                context, _offsets(row[part], rows.size), column[part], values[part], rows=rows, columns=rows,
                layout=given.layout, dtype=real_type(given), name=f"ssor.{name}",
            ))  # fmt: skip
        scale = Dat(rows, self.omega / diagonal, name="ssor.scale", dtype=real_type(given))
        return ColouredRelaxation(parts[0], parts[1], scale, colours, self.sweeps, float(self.omega))


def _inner_entries(matrix: SparseMatrix) -> tuple[Any, Any, Any]:
    """Return row, column and value of the entries between different rows of this rank."""
    size, (offsets, column, values) = matrix.rows.size, matrix.owned()
    row = np.repeat(np.arange(size), np.diff(offsets))
    kept = (column != row) & (column < size)
    return row[kept], np.ascontiguousarray(column[kept]), values[kept]


def _offsets(row: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return where each row begins, for the rows of entries that are in order."""
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]).astype(np.int64)
