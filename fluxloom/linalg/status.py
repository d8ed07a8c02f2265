"""When an iterative solver stops, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["STEPS_CHECKED", "Reals", "Reason", "Status", "Stop", "judge", "judged", "signed_norms", "worst_of"]

Reason = Literal["converged", "iterations", "stagnated", "breakdown", "not finite"]

Reals = npt.NDArray[np.float64]

STEPS_CHECKED = 100
"""Solves in time steps from one to the next whose residual is that of the solution itself: a hundredth of an iteration
each."""
_FALLS = 0.9
"""Part of a residual that has fallen."""
_ORDER: tuple[Reason, ...] = ("converged", "iterations", "stagnated", "breakdown", "not finite")
"""From the best to the worst."""


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
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool | complex)
            if not number or not isfinite(value) or value < 0:
                raise SolverError(f"Stop: {name} is a number of at least 0, not {value!r}")
        if self.rtol == self.atol == 0:
            raise SolverError("Stop: rtol and atol are both 0, which no residual reaches: give one of them")
        count = isinstance(self.iterations, int | np.integer) and not isinstance(self.iterations, bool)
        if not count or self.iterations < 0:
            raise SolverError(f"Stop: iterations is a whole number of at least 0, not {self.iterations!r}")

    def limit(self, norm: float) -> float:
        """Return the norm that a residual may have, ``max(rtol |b|, atol)``, for that of the right-hand side."""
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
        2-norm of the residual ``b - A x`` of the solution itself; of a solve that was not checked
        (`fluxloom.linalg.krylov.method.Krylov`, ``check_every``) of the residual that the recurrence ends with.
    norm
        2-norm of the right-hand side.
    history : (iterations + 1,)
        Residuals, from that of the initial guess.
    reason
        Why it ended: ``"converged"``, ``"iterations"`` (the most that were allowed), ``"stagnated"`` (the residual of
        the solution itself falls no further, though that of the recurrence does: the rounding of ``x`` is larger than
        what was asked for, or the system has no solution), ``"breakdown"`` (a division by zero: the matrix, or the
        preconditioner, is not what the method needs) or ``"not finite"``.
    each : (systems,)
        Iterations of each system.
    hint
        What else was found where it has not converged; a part of the message of `require`.
    """

    converged: bool
    iterations: int
    residual: float
    norm: float
    history: npt.NDArray[np.float64]
    reason: Reason
    each: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    hint: str = ""

    @property
    def relative(self) -> float:
        """Residual over right-hand side, ``|r| / |b|``; 0 where both are."""
        return self.residual / self.norm if self.norm else (0.0 if self.residual == 0 else float("inf"))

    def verified(self, true: float, before: float, limit: float) -> Status:
        """Return the status with the residual of the solution itself.

        Its reason is ``"iterations"`` where that is above the limit, and worth going on with: it has fallen.

        Parameters
        ----------
        true, before
            ``|b - A x|`` now, and when these iterations began.
        limit
            What it may be.
        """
        history = np.append(self.history[:-1], true)
        reason = self.reason
        if not isfinite(true):
            reason = "not finite"
        elif true <= limit:
            reason = "converged"
        elif true <= _FALLS * before:
            reason = "iterations"
        elif reason != "iterations":
            reason = "breakdown" if reason == "breakdown" else "stagnated"
        return replace(self, converged=reason == "converged", residual=true, history=history, reason=reason)

    def then(self, more: Status) -> Status:
        """Return the status of these iterations and of those of a solve that went on from them."""
        history = np.append(self.history[:-1], more.history)
        return replace(more, iterations=self.iterations + more.iterations, history=history)

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
            f"{self.relative:.3e}: {self.hint or _ADVICE[self.reason]}"
        )


_ADVICE = {
    "converged": "",
    "iterations": "allow more with Stop(iterations=...), or take a better preconditioner",
    "stagnated": "the residual b - A x falls no further: ask for less with Stop(rtol=...), or store x in float64",
    "breakdown": "a division by zero; conjugate gradients need a symmetric matrix and preconditioner, both positive "
    "definite (or a right-hand side in their range, see nullspace=), BiCGStab another initial guess or preconditioner, "
    "GMRES a regular matrix",
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
    limits = np.array([stop.limit(sqrt(norm)) if norm >= 0 else 0.0 for norm in norms])
    return worst_of(judged(signed_norms(squares), np.sqrt(np.where(norms >= 0, norms, np.nan)), limits))


def signed_norms(squares: Reals) -> Reals:
    """Return the roots of squares, with their signs."""
    return np.copysign(np.sqrt(np.abs(squares)), squares)


def judged(history: Reals, norms: Reals, limits: Reals) -> list[Status]:
    """Return the status of each system.

    Parameters
    ----------
    history : (steps + 1, systems)
        ``|r|`` from the initial guess on, with a minus sign after a breakdown; see `judge`.
    norms, limits : (systems,)
        ``|b|``, and what ``|r|`` may be.
    """
    return [_one(history[:, k], float(norms[k]), float(limits[k])) for k in range(history.shape[1])]


def worst_of(found: Sequence[Status]) -> Status:
    """Return the status of all systems from that of each: that of the worst, and of those of the longest."""
    worst = max(found, key=lambda status: (_ORDER.index(status.reason), status.iterations))
    return replace(worst, each=np.array([status.iterations for status in found], dtype=np.int64))


def _one(signed: Reals, norm: float, limit: float) -> Status:
    history = np.abs(signed)
    if not isfinite(norm):
        return Status(False, 0, float(history[0]), norm, history[:1], "not finite")
    strange, broken, below = ~np.isfinite(signed), signed < 0, history <= limit
    over = np.flatnonzero(strange | broken | below)
    if not over.size:
        return Status(False, history.size - 1, float(history[-1]), norm, history, "iterations")
    end = int(over[0])
    reason: Reason = "not finite" if strange[end] else "breakdown" if broken[end] else "converged"
    end -= reason == "breakdown"  # the step that was none is not counted
    return Status(reason == "converged", end, float(history[end]), norm, history[: end + 1], reason)
