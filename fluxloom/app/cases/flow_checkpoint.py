"""Checkpoints of cases of flow: the table ``[checkpoint]``, when they are taken, and how a run goes on from one."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from fluxloom.app.case import CaseModel, Table
from fluxloom.core.errors import CaseError
from fluxloom.dsl.checkpoint import Checkpoints
from fluxloom.dsl.context import Context

__all__ = ["CheckpointPlan", "CheckpointTable", "FlowCheckpoint", "checkpoint_digest", "checkpoint_plan"]

_NAME = "checkpoint.h5"
_FREE = {
    "case": ("name",),
    "run": ("device", "threads", "ranks", "transport", "iterations", "report_every", "tune"),
    "time": ("end", "steady", "drop"),
}
"""What may differ in the run that goes on. `FlowCheckpoint` sees to it that ends and iterations lie ahead."""

_FREE_TABLES = ("checkpoint", "output", "partition", "snapshots", "surface")


class CheckpointTable(Table):
    """``[checkpoint]``: ``checkpoint.h5`` among the results, from which the next run goes on.

    Attributes
    ----------
    every
        Steps between two checkpoints.
    seconds
        Instead: seconds; with both, the first of these steps that comes so long after the last checkpoint. Without
        both there are none.
    keep
        How many are kept.
    resume
        Whether to go on from the file where there is one; otherwise it is replaced.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    keep: Annotated[int, Field(ge=1, le=100)] = 1
    resume: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> CheckpointTable:
        if not self.every and not self.seconds and (extra := self.changed(("keep", "resume"))):
            raise ValueError(f"{extra[0]} is there but no checkpoint is taken: give every (steps) or seconds")
        return self


@dataclass(frozen=True)
class CheckpointPlan:
    """When checkpoints are taken.

    Attributes
    ----------
    table
        As the case file has it.
    iterations
        Steps after which the run ends.
    digest
        Text of what must not differ when a run goes on.
    """

    table: CheckpointTable
    iterations: int
    digest: str


def checkpoint_plan(case: CaseModel, table: CheckpointTable) -> CheckpointPlan | None:
    """Return when a case takes checkpoints, as its table says; None: never."""
    if not table.every and not table.seconds:
        return None
    return CheckpointPlan(table, case.run.iterations, checkpoint_digest(case))


def checkpoint_digest(case: CaseModel) -> str:
    """Return the tables of a case, a key a line, without what may differ when a run goes on."""
    lines: list[str] = []

    def add(key: str, value: Any) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                add(f"{key}.{name}", item)
        else:
            lines.append(f"{key} = {json.dumps(value, default=str)}")

    for name, values in case.model_dump().items():
        if name not in _FREE_TABLES and values is not None:
            add(name, {key: value for key, value in values.items() if key not in _FREE.get(name, ())})
    return "\n".join(lines) + "\n"


class FlowCheckpoint:
    """``checkpoint.h5`` in the directory of the results, taken behind steps, and the way on from it.

    A run goes on as `fluxloom.dsl.checkpoint` says: it is made again from its first step, with loops that do nothing
    until the checkpoint, and what the host read from a log. So tables of numbers over time are written anew.
    On several ranks all methods are collective.

    Parameters
    ----------
    plan
        When checkpoints are taken; None: there are none.
    context
        Of the flow.
    """

    def __init__(self, plan: CheckpointPlan | None, context: Context) -> None:
        self._plan, self._context = plan, context
        self._saver: Checkpoints | None = None
        self._watch = ExitStack()

    def begin(self, directory: Path) -> None:
        """Watch the loops of the flow from here on, and go on from the file, if there is one.

        Raises
        ------
        CheckpointError
            If it is damaged or of another case, or none can be written.
        """
        if self._plan is None:
            return
        table = self._plan.table
        seconds = table.seconds or None
        self._saver = Checkpoints(
            directory / _NAME, every=seconds, place="marked", keep=table.keep, digest=self._plan.digest
        )  # fmt: skip
        self._watch.enter_context(self._saver.watch(self._context, restart=table.resume))

    @property
    def catching_up(self) -> bool:
        """Whether steps are only repeated, up to the checkpoint: dats do not have their values."""
        return self._saver is not None and self._saver.replaying

    def mark(self, steps: int) -> None:
        """Say that so many steps have been made, and that a checkpoint may be entered before the next loop."""
        if self._saver is not None and self._plan is not None and steps % max(1, self._plan.table.every) == 0:
            self._saver.mark()

    def check(self, steps: int, time: float, end: float) -> None:
        """Raise `CaseError` behind a step that was only repeated if the run ends before its checkpoint was taken."""
        if self._plan is None or self._saver is None:
            return
        advice = f"raise it, or set checkpoint.resume = false to begin anew instead of going on from {self._saver.path}"
        if self.catching_up and steps >= self._plan.iterations:
            raise CaseError(f"run.iterations: {steps:,} steps end before the checkpoint was taken: {advice}")
        if not self.catching_up and 0.0 < end < time:
            raise CaseError(f"time.end: {end:g} is before the time of the checkpoint, {time:.6g}: {advice}")

    def abandon(self) -> None:
        """End a run that was interrupted before it came to its checkpoint, which stays as it is."""
        self._watch.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    def finish(self) -> list[str]:
        """Complete what is being written, and end the watch; return the name of the file, where there is one."""
        saver = self._saver
        self._watch.close()
        if saver is None:
            return []
        return [_NAME] if self._context.comm.broadcast(saver.path.exists()) else []
