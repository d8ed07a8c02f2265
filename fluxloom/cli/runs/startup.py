"""Tuning before the first step: ragged loops and sums of a run are measured on its own mesh, and keep what was best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fluxloom.core.errors import CaseError
from fluxloom.dsl.declare.dats import Global
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.plan.lanes import ragged_maps
from fluxloom.dsl.plan.tuning import TuningFile, schedule_words
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.tune.search import tune
from fluxloom.run.flow import Flow

__all__ = ["STARTUP_HEADINGS", "StartupRow", "check_tunable", "tune_at_start"]

STARTUP_HEADINGS = ("loop", "tried", "now", "ms", "gain")
"""Headings of `StartupRow.cells`."""


@dataclass(frozen=True)
class StartupRow:
    """What was chosen for a loop.

    Attributes
    ----------
    name, key
        Of the loop, and its key in the tuning file.
    schedule
        In words.
    seconds
        Of a call; None where the choice was recorded by an earlier run.
    gain
        Seconds before over seconds now.
    tried
        Schedules that were measured.
    """

    name: str
    key: str
    schedule: str
    seconds: float | None
    gain: float
    tried: int

    def record(self) -> dict[str, Any]:
        """Return the row for a record."""
        return vars(self) | {"recorded_before": self.seconds is None}

    def cells(self) -> list[str]:
        """Return the row as texts of a table."""
        if self.seconds is None:
            return [self.name, "0", self.schedule, "recorded", "-"]
        return [self.name, str(self.tried), self.schedule, f"{1e3 * self.seconds:.4f}", f"{self.gain:.2f}"]


def tune_at_start(
    flow: Flow, solver: str, tell: Callable[[str], object] | None = None
) -> list[StartupRow]:
    """Time every ragged loop and every sum of a run with the schedules that promise something, and keep the fastest.

    Values of dats stay as they are. What the tuning file has already is not measured again. The search is
    `fluxloom.perf.screening.screen`.

    Parameters
    ----------
    flow
        In its initial state.
    solver
        Its name, for messages.
    tell
        Is told which loop is next, and at the end how long all took.

    Raises
    ------
    CaseError
        For a solver that does not say what it runs, several ranks, and devices without schedules.
    """
    chains = check_tunable(flow, solver)
    loops = [loop for loop in unique(loop for chain in chains for loop in chain.loops) if _worthwhile(loop)]
    context = chains[0].context
    known = TuningFile().entries() if context.tuning else {}
    old = {loop.tuning_key: loop for loop in loops if loop.tuning_key in known and not loop.schedule.deterministic}
    rows = [StartupRow(loop.name, key, schedule_words(loop.schedule), None, 1.0, 0) for key, loop in old.items()]
    new = [loop for loop in loops if loop.tuning_key not in old]
    if new:
        report = tune(new, method="screen", tell=tell)
        rows += [
            StartupRow(item.name, item.key, schedule_words(item.best), item.seconds, item.gain, len(item.rows))
            for item in report.results
        ]
        for chain in chains:
            chain.build()
    return rows


def check_tunable(flow: Flow, solver: str) -> Sequence[Chain]:
    """Return the chains of a run that can be tuned before its first step; raise `CaseError` for one that cannot."""
    if not flow.chains:
        raise CaseError(f'run.tune: the solver {solver} does not tune at its start; run "fluxloom tune" on the case')
    chains = flow.chains
    context = chains[0].context
    if context.comm.size > 1:
        raise CaseError("run.tune: tuning at the start is for one rank; leave the key out")
    if not context.device.native:
        raise CaseError(f"run.tune: the device {context.device.name} runs kernels as Python; leave the key out")
    return chains


def _worthwhile(loop: Loop) -> bool:
    """Whether a loop has rows to group, or a sum."""
    return bool(ragged_maps(loop.bound)) or any(isinstance(item, Global) for item in loop.written)
