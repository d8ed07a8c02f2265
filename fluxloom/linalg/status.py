"""When an iterative solver stops, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["Reason", "Status", "Stop", "judge"]

Reason = Literal["converged", "iterations", "breakdown", "not finite"]


@dataclass(frozen=True)
class Stop:
    """When an iteration ends: ``|r| <= max(rtol |b|, atol)`` in the 2-norm, or after so many iterations.

    Attributes
    ----------
    rtol, atol
        Relative to the right-hand side, and absolute.
    iterations
        At most.

    Raises
    ------
    SolverError
        If a number is negative or not finite, or both tolerances are zero.
    """

    rtol: float = 1e-8
    atol: float = 0.0
    iterations: int = 1000

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.floating) or not isfinite(value) or value < 0:
                raise SolverError(f"Stop: {name} is a number of at least 0, not {value!r}")
        if self.rtol == self.atol == 0:
            raise SolverError("Stop: rtol and atol are both 0, which no residual reaches: give one of them")
        if not isinstance(self.iterations, int | np.integer) or self.iterations < 0:
            raise SolverError(f"Stop: iterations is a whole number of at least 0, not {self.iterations!r}")

    def limit(self, norm: float) -> float:
        """Return the norm that a residual may have, for that of the right-hand side."""
        return max(self.rtol * norm, self.atol)


@dataclass(frozen=True, eq=False)
class Status:
    """What came of a solve; of several systems at once, of the one with most iterations.

    Attributes
    ----------
    converged
        Whether the residual is as small as was asked for.
    iterations
        That were made. Those of each system, where there are several, are in ``each``.
    residual
        2-norm of the residual that the recurrence ends with.
    norm
        2-norm of the right-hand side.
    history : (iterations + 1,)
        Residuals, from that of the initial guess.
    reason
        Why it ended: ``"converged"``, ``"iterations"`` (the most that were allowed), ``"breakdown"`` (a division by
        zero: the matrix, or the preconditioner, is not what the method needs) or ``"not finite"``.
    each : (systems,)
        Iterations of each system.
    """

    converged: bool
    iterations: int
    residual: float
    norm: float
    history: npt.NDArray[np.float64]
    reason: Reason
    each: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def relative(self) -> float:
        """Residual over right-hand side; 0 where both are."""
        return self.residual / self.norm if self.norm else (0.0 if self.residual == 0 else float("inf"))

    def require(self, name: str = "solver") -> Status:
        """Return the status itself.

        Raises
        ------
        SolverError
            If the solver has not converged; it says why and what to do.
        """
        if self.converged:
            return self
        raise SolverError(
            f"{name}: not converged after {self.iterations} iterations, |r| = {self.residual:.3e}, |r|/|b| = "
            f"{self.relative:.3e}: {_ADVICE[self.reason]}"
        )


_ADVICE = {
    "converged": "",
    "iterations": "allow more with Stop(iterations=...), or take a better preconditioner",
    "breakdown": "a division by zero; conjugate gradients need a symmetric matrix and preconditioner, both positive "
    "definite (or a right-hand side in their range, see nullspace=), BiCGStab another initial guess or preconditioner",
    "not finite": "NaN or infinity: look at the matrix, the right-hand side and the initial guess",
}


def judge(squares: npt.NDArray[np.float64], norms: npt.NDArray[np.float64], stop: Stop) -> Status:
    """Return the status of a history of squared residuals.

    Parameters
    ----------
    squares : (steps + 1, systems)
        ``r . r`` from the initial guess on. A system that has ended repeats its last one; after a breakdown it has
        a minus sign (`fluxloom.linalg.vectors.marked`).
    norms : (systems,)
        ``b . b``.
    stop
        What was asked for.
    """
    found = [_one(squares[:, k], float(norms[k]), stop) for k in range(squares.shape[1])]
    order = {"not finite": 3, "breakdown": 2, "iterations": 1, "converged": 0}
    worst = max(found, key=lambda status: (order[status.reason], status.iterations))
    each = np.array([status.iterations for status in found], dtype=np.int64)
    return Status(
        worst.converged, worst.iterations, worst.residual, worst.norm, worst.history, worst.reason, each
    )  # fmt: skip


def _one(squares: npt.NDArray[np.float64], square: float, stop: Stop) -> Status:
    norm = sqrt(square) if square >= 0 else float("nan")
    history = np.sqrt(np.abs(squares))
    if not isfinite(norm):
        return Status(False, 0, float(history[0]), norm, history[:1], "not finite")
    strange, broken, below = ~np.isfinite(squares), squares < 0, history <= stop.limit(norm)
    over = np.flatnonzero(strange | broken | below)
    if not over.size:
        return Status(False, history.size - 1, float(history[-1]), norm, history, "iterations")
    end = int(over[0])
    reason: Reason = "not finite" if strange[end] else "breakdown" if broken[end] else "converged"
    end -= reason == "breakdown"  # the step that was none is not counted
    return Status(reason == "converged", end, float(history[end]), norm, history[: end + 1], reason)
