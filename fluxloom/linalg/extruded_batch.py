"""A batch of frequencies of an extruded mesh: their systems, solved together by conjugate gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat
from fluxloom.linalg.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.extruded_frequencies import Frequencies, padded_systems
from fluxloom.linalg.extruded_operator import Diagonals, ShiftedMatrix
from fluxloom.linalg.jacobi import Jacobi
from fluxloom.linalg.krylov import Nullspace
from fluxloom.linalg.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner, Step
from fluxloom.linalg.preconditioning import made_for
from fluxloom.linalg.status import Reals, Status, Stop, judged, signed_norms, worst_of

__all__ = ["Batch", "FrequencyGradient"]


class FrequencyGradient(ConjugateGradient):
    """Conjugate gradients for systems that are parts of one: each ends at its share of the common tolerance."""

    title = "frequencies"

    def _prepare(self) -> None:
        self.goal = self.sums("goal")
        if isinstance(self.preconditioner, Diagonals):
            self.diagonal = self.preconditioner.values
        super()._prepare()

    def _begin(self) -> list[Step]:
        """Return the loops to the first direction; from here on residuals are compared with the goal."""
        self.bb = self.goal
        return super()._begin()

    def solve(self) -> Status:
        """Solve; as `Krylov.solve`, but a look at the residuals is one comparison for all systems. Collective."""
        checked, self.check_next = self.check_next, False
        found, first, limit = self._pass(self.stop.iterations)
        self._blame(found)
        made = step = max(status.iterations for status in found)
        while checked and step:
            self.start()
            true = np.sqrt(self.read(self.rr[-1])[0])
            found = [
                status.verified(float(true[k]), float(first[k]), float(limit[k])) for k, status in enumerate(found)
            ]
            if made >= self.stop.iterations or not any(status.reason == "iterations" for status in found):
                break
            more, first, limit = self._pass(self.stop.iterations - made)
            step = max(status.iterations for status in more)
            made += step
            found = [status.then(other) for status, other in zip(found, more, strict=True)]
        if self.end is not None:
            self.end()
        return worst_of(found)

    def _pass(self, most: int) -> tuple[list[Status], Reals, Reals]:
        """Iterate from the residual of `x` itself; return what came of each system, that residual, and its limit."""
        self.start()
        norm, first = self.read(self.bb, self.rr[-1])
        squares = [first]
        limit = np.maximum(self.stop.rtol**2 * norm, self.stop.atol**2)
        while len(squares) <= most and _live(squares[-1], limit):
            self.body()
            squares += self.read(*self.rr)
        limit = np.sqrt(limit)
        return judged(signed_norms(np.array(squares)), np.sqrt(norm), limit), np.sqrt(np.abs(first)), limit


def _live(squares: npt.NDArray[np.float64], limit: npt.NDArray[np.float64]) -> bool:
    """Whether some system is above its limit, and none has broken down or is not finite."""
    return bool((squares > limit).any() and (squares >= 0).all() and np.isfinite(squares).all())


class Batch:
    """The systems ``(spacing A + |lambda_k| W) x_k = b_k`` of some frequencies ``k``.

    Parameters
    ----------
    matrix, weight
        ``spacing A``, and the diagonal of ``W`` on its rows.
    frequencies
        Of the periodic direction.
    members
        Which of them: 0 alone, or others.
    recipe
        Of the preconditioner. `Jacobi` has a diagonal for each system; any other recipe is built for the matrix of the
        lowest frequency, which is then a preconditioner of them all.
    stop
        Of each system, relative to what `solve` is given.
    nullspace
        Of frequency 0.
    dtype
        Of the vectors.
    name
        Of its loops.

    Attributes
    ----------
    b, x
        Right-hand sides and solutions, in pairs of real and imaginary part; zeros behind them.
    seconds
        That the last `solve` took.
    """

    def __init__(
        self,
        matrix: SparseMatrix,
        weight: Dat,
        frequencies: Frequencies,
        members: range,
        *,
        recipe: Preconditioner,
        stop: Stop,
        nullspace: Nullspace,
        dtype: npt.DTypeLike,
        name: str,
    ) -> None:
        self.members, self.stop, self.zero = members, stop, members[0] == 0
        # One name for all batches of a size: then their loops are one code, which is compiled once.
        self.name = f"{name}.{1 if self.zero else padded_systems(members)}"
        self.nullspace: Nullspace = nullspace if self.zero else "none"
        self.systems = frequencies.systems[members.start : members.stop]
        context, shape = matrix.rows.context, () if self.zero else (padded_systems(members),)
        self.b = context.dat(matrix.rows, name=f"{self.name}.b", shape=shape, dtype=dtype)
        self.x = context.dat(matrix.rows, name=f"{self.name}.x", shape=shape, dtype=dtype)
        self.operator: SparseMatrix | ShiftedMatrix = matrix
        if not self.zero:
            shifts = np.zeros(shape)
            shifts[: 2 * len(members)] = np.repeat(frequencies.eigenvalues[members.start : members.stop], 2)
            shifts[2 * len(members) :] = shifts[0]
            self.operator = ShiftedMatrix(matrix, weight, shifts, self.name)
        self.seconds = 0.0
        self._solvers: dict[Any, FrequencyGradient] = {}
        self.use(recipe)

    @property
    def columns(self) -> slice:
        """Its columns of a spectrum: of frequency 0 the real part alone."""
        return slice(0, 1) if self.zero else slice(2 * self.members.start, 2 * self.members.stop)

    @property
    def width(self) -> int:
        """Number of these columns."""
        return self.columns.stop - self.columns.start

    @property
    def chains(self) -> list[Chain]:
        """The chains of a solve."""
        return list(self.solver.chains)

    def use(self, recipe: Preconditioner) -> None:
        """Take another preconditioner; one that was taken before is still there."""
        self.recipe = recipe
        if recipe not in self._solvers:
            self._solvers[recipe] = self._solver(recipe)
        self.solver = self._solvers[recipe]

    def _solver(self, recipe: Preconditioner) -> FrequencyGradient:
        operator = self.operator
        if isinstance(operator, SparseMatrix):
            built: Any = recipe
        elif isinstance(recipe, Jacobi):
            built = Diagonals(operator)
        else:
            built = made_for(recipe, operator.member(float(operator.shifts[0])), self.name)
        return FrequencyGradient(
            operator, self.b, self.x, preconditioner=built, stop=self.stop, nullspace=self.nullspace, name=self.name
        )  # fmt: skip

    def solve(self, square: float, *, checked: bool = True) -> Status:
        """Solve for `b`, from what `x` has; ``r . r`` of each system is compared with ``square``. Collective.

        Where it is ``checked``, it goes on until ``b - A x`` is as small itself, while that falls.
        """
        self.solver.goal.value, self.solver.check_next = square, checked
        status = self.solver.solve()
        return replace(status, each=status.each[: int(self.systems.sum())])

    def measure(self) -> None:
        """Find ``b - A x``, for `residual`. Collective."""
        self.solver.start()

    def residual(self) -> float:
        """Return the part of ``r . r`` of the whole that is of these frequencies, after `solve` or `measure`."""
        squares = np.abs(np.atleast_1d(self.solver.rr[-1].value))
        counts = np.repeat(self.systems, self.systems)
        return float((squares[: counts.size] * counts).sum())
