"""How a run ended: one set of words for all solvers, scripts and the command line, each with its exit status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Goal", "Outcome", "RunStatus"]


class RunStatus(StrEnum):
    """How a run ended.

    Attributes
    ----------
    CONVERGED
        The target that the case names (``time.steady``, ``time.residual_drop``, ``stop``) was met.
    END_REACHED
        The time, or the number of steps, that the user asked for was reached.
    NOT_CONVERGED
        The case names a target, and the limit of its steps came first.
    DIVERGED
        The solution is not finite, not physical, or grows without bound.
    INTERRUPTED
        A signal, or a failure of the machine, ended it.
    REFUSED
        It did not begin.
    """

    CONVERGED = "converged"
    END_REACHED = "end reached"
    NOT_CONVERGED = "not converged"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"

    @property
    def complete(self) -> bool:
        """Whether the run came to an end of its own, a good one or not."""
        return self in (RunStatus.CONVERGED, RunStatus.END_REACHED, RunStatus.NOT_CONVERGED)

    @property
    def exit_code(self) -> int:
        """Exit status of a process: 0, 1 (not converged, diverged, interrupted by a failure) or 2 (refused).

        A run that a signal ended has 128 and the number of the signal instead, one whose files were lost 3.
        """
        if self in (RunStatus.CONVERGED, RunStatus.END_REACHED):
            return 0
        return 2 if self is RunStatus.REFUSED else 1


@dataclass(frozen=True)
class Goal:
    """What a case asks for, and how far a run has come.

    Attributes
    ----------
    key
        Of the case file: ``"time.end"``, ``"time.steady"``, ``"time.residual_drop"``, ``"stop.column"``,
        ``"run.iterations"``.
    name
        Of the quantity: ``"time"``, ``"residual"``, ``"steps"``, ``"change of wing.lift"``.
    wanted, reached
        Its values.
    met
        Whether the run has come there.
    scale
        Of a residual that is relative: what it is divided by, its largest value so far.
    """

    key: str
    name: str
    wanted: float
    reached: float
    met: bool
    scale: float = 1.0

    @property
    def target(self) -> bool:
        """Whether it is a target of convergence: something below which a number is to fall."""
        return self.name not in ("time", "steps")

    def __str__(self) -> str:
        if self.name == "steps":
            return f"{self.reached:,.0f} of {self.wanted:,.0f} steps"
        if self.reached == float("inf"):
            return f"{self.name} is not known, {self.wanted:.1e} wanted"
        form = ".1e" if self.target else ".6g"
        return f"{self.name} {self.reached:{form}} of {self.wanted:{form}} wanted"


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and by what.

    Attributes
    ----------
    status
        The word.
    reason
        Why, in a sentence; may be empty.
    goal
        What ended it; None where nothing that was asked for did.
    signal
        That ended it; 0: none.
    details
        More of a flow that diverged: field, value, element, place, step, time.
    """

    status: RunStatus
    reason: str = ""
    goal: Goal | None = None
    signal: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Exit status of the process."""
        return 128 + self.signal if self.signal else self.status.exit_code

    def record(self) -> dict[str, Any]:
        """Return it for ``run.json``: status, reason, what was wanted and how far the run came."""
        goal = self.goal
        return {
            "status": str(self.status),
            "reason": self.reason,
            "ended_by": goal.key if goal is not None else None,
            "wanted": goal.wanted if goal is not None else None,
            "reached": goal.reached if goal is not None else None,
            "details": dict(self.details),
        }

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else str(self.status)
