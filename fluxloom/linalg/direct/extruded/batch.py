"""Batches of frequencies of an extruded mesh: systems that are solved together, by conjugate gradients or otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.strategies import Strategy
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.linalg.direct.extruded.frequencies import Frequencies, padded_systems
from fluxloom.linalg.direct.extruded.operator import ShiftedMatrix, diagonals
from fluxloom.linalg.direct.extruded.tuning import ExtrudedTuning
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov.method import Nullspace
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner, Step
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.precond.preconditioning import made_for
from fluxloom.linalg.status import Reals, Status, Stop, judged, signed_norms, worst_of

__all__ = ["Batch", "FrequencyGradient", "GradientBatch", "PlaneGradients", "PlaneMethod", "PlaneSystems"]


class FrequencyGradient(ConjugateGradient):
    """Conjugate gradients for systems that are parts of one: each ends at its share of the common tolerance."""

    title = "frequencies"

    def _prepare(self) -> None:
        self.goal = self.sums("goal")
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


@dataclass(frozen=True, eq=False)
class PlaneSystems:
    """The matrices ``spacing A + |lambda_k| W`` of all frequencies ``k``, and how well their systems are to be solved.

    Attributes
    ----------
    matrix, weight
        ``spacing A``, and the diagonal of ``W`` on its rows.
    frequencies
        Of the periodic direction.
    stop
        Of each system, relative to what `Batch.solve` is given.
    nullspace
        Of frequency 0.
    dtype
        Of the vectors.
    name
        Of the loops.
    """

    matrix: SparseMatrix
    weight: Dat
    frequencies: Frequencies
    stop: Stop
    nullspace: Nullspace
    dtype: npt.DTypeLike
    name: str


class Batch:
    """The systems of some frequencies, which are solved together: the base of what methods make.

    Parameters
    ----------
    systems
        Those of all frequencies.
    members
        Which of them: 0 alone, or others.
    stored
        Vectors that are stored for them.

    Attributes
    ----------
    b, x
        Right-hand sides and solutions, in pairs of real and imaginary part; zeros behind them.
    how
        What solves them, for reports.
    seconds
        That the last `solve` took.
    """

    how: object = None

    def __init__(self, systems: PlaneSystems, members: range, stored: int) -> None:
        self.members, self.stop, self.zero = members, systems.stop, members[0] == 0
        # One name for all batches of a size: then their loops are one code, which is compiled once.
        self.name = f"{systems.name}.{1 if self.zero else stored}"
        self.nullspace: Nullspace = systems.nullspace if self.zero else "none"
        self.systems = systems.frequencies.systems[members.start : members.stop]
        rows, shape = systems.matrix.rows, () if self.zero else (stored,)
        self.b, self.x = (Dat(rows, name=f"{self.name}.{what}", shape=shape, dtype=systems.dtype) for what in "bx")
        self.seconds = 0.0

    @property
    def columns(self) -> slice:
        """Its columns of a spectrum: of frequency 0 the real part alone."""
        return slice(0, 1) if self.zero else slice(2 * self.members.start, 2 * self.members.stop)

    @property
    def width(self) -> int:
        """Number of these columns."""
        return self.columns.stop - self.columns.start

    @property
    def chains(self) -> Sequence[Chain]:
        """The chains of a solve."""
        return ()

    def use(self, better: bool) -> None:
        """Take the better preconditioner of a tuning, or the usual one, where there are some."""
        del better

    def solve(self, square: float, *, checked: bool = True) -> Status:
        """Solve for `b`, from what `x` has; ``r . r`` of each system is compared with ``square``. Collective.

        Where it is ``checked``, it goes on until ``b - A x`` is as small itself, while that falls.
        """
        raise NotImplementedError

    def measure(self) -> None:
        """Find ``b - A x``, for `squares`. Collective."""
        raise NotImplementedError

    def squares(self) -> Reals:
        """Return ``r . r`` of each system, after `solve` or `measure`."""
        raise NotImplementedError

    def residual(self) -> float:
        """Return the part ``sum_k s_k r_k . r_k`` that is of these frequencies, after `solve` or `measure`.

        ``s_k`` is the number of systems of a frequency.
        """
        counts = np.repeat(self.systems, self.systems)
        return float((self.squares()[: counts.size] * counts).sum())


class PlaneMethod(Strategy, what="method of plane systems", group="fluxloom.plane_methods"):
    """How the systems of the plane are solved: a member is a frozen dataclass with a method `batch`."""

    tuning: ExtrudedTuning | None = None
    """How the first solves find out what is fastest; None: they do not."""

    def batch(self, systems: PlaneSystems, members: range) -> Batch:
        """Return what solves those of some frequencies. Collective."""
        raise NotImplementedError(f"{type(self).__name__} has to define batch(systems, members)")


@dataclass(frozen=True)
class PlaneGradients(PlaneMethod, name="cg"):
    """Conjugate gradients.

    Attributes
    ----------
    preconditioner
        Of all frequencies. `Jacobi` has a diagonal for each system; any other recipe is built once for each batch, for
        its lowest frequency.
    tuning
        How the first solves find out which frequencies each team has, and which batches get a better preconditioner;
        None: nothing is changed.
    """

    preconditioner: Preconditioner = field(default_factory=Jacobi)
    tuning: ExtrudedTuning | None = None

    def batch(self, systems: PlaneSystems, members: range) -> Batch:
        """Return what solves those of some frequencies. Collective."""
        return GradientBatch(systems, members, self)


class GradientBatch(Batch):
    """Frequencies that are solved by conjugate gradients.

    Parameters
    ----------
    systems, members
        As of `Batch`.
    method
        Which has the preconditioners.
    """

    def __init__(self, systems: PlaneSystems, members: range, method: PlaneGradients) -> None:
        stored = padded_systems(members)
        super().__init__(systems, members, stored)
        self.method = method
        self.operator: SparseMatrix | ShiftedMatrix = systems.matrix
        if not self.zero:
            shifts = np.zeros(stored)
            shifts[: 2 * len(members)] = np.repeat(systems.frequencies.eigenvalues[members.start : members.stop], 2)
            shifts[2 * len(members) :] = shifts[0]
            self.operator = ShiftedMatrix(systems.matrix, systems.weight, shifts, self.name)
        self._solvers: dict[Preconditioner, FrequencyGradient] = {}

    @property
    def chains(self) -> Sequence[Chain]:
        """The chains of a solve."""
        return self.solver.chains

    def use(self, better: bool) -> None:
        """Take another preconditioner; one that was taken before is still there."""
        tuning = self.method.tuning
        self.how = recipe = tuning.better if better and tuning is not None else self.method.preconditioner
        if recipe not in self._solvers:
            self._solvers[recipe] = self._solver(recipe)
        self.solver = self._solvers[recipe]

    def _solver(self, recipe: Preconditioner) -> FrequencyGradient:
        operator = self.operator
        if isinstance(operator, SparseMatrix):
            built: Any = recipe
        elif isinstance(recipe, Jacobi):
            built = diagonals(operator)
        else:
            built = made_for(recipe, operator.member(float(operator.shifts[0])), self.name)
        return FrequencyGradient(
            operator, self.b, self.x, preconditioner=built, stop=self.stop, nullspace=self.nullspace, name=self.name
        )  # fmt: skip

    def solve(self, square: float, *, checked: bool = True) -> Status:
        """Solve for `b`; see `Batch.solve`. Collective."""
        self.solver.goal.value, self.solver.check_next = square, checked
        status = self.solver.solve()
        return replace(status, each=status.each[: int(self.systems.sum())])

    def measure(self) -> None:
        """Find ``b - A x``. Collective."""
        self.solver.start()

    def squares(self) -> Reals:
        """Return ``r . r`` of each system."""
        return np.abs(np.atleast_1d(self.solver.rr[-1].value))
