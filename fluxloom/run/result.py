"""What came of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.status import Outcome, RunStatus
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.flow import Flow
from fluxloom.run.flow_run import FlowRun, gathered
from fluxloom.run.march import March
from fluxloom.run.monitor import Monitor

__all__ = ["Result"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """What came of a run. On several ranks what is found when it is asked for is collective.

    Attributes
    ----------
    run, end
        The flow with its monitors, behind its last step; how the steps ended.
    summary
        The results worth printing, as (name, text) pairs.
    residuals : (steps,)
        Of every step.
    directory
        Where files are; None: nothing was written.
    files
        Names of those that were, on rank 0.
    """

    run: FlowRun[Any]
    end: March
    summary: tuple[tuple[str, str], ...]
    residuals: Array
    directory: Path | None = None
    files: tuple[str, ...] = ()

    @property
    def flow(self) -> Flow:
        """The flow behind its last step."""
        return self.run.flow

    @property
    def status(self) -> RunStatus:
        """How the run ended, in a word; `outcome` has why."""
        return self.end.status

    @property
    def outcome(self) -> Outcome:
        """How the run ended, and why."""
        return self.end.outcome

    @property
    def steps(self) -> int:
        """Of the flow, from its beginning."""
        return self.run.flow.steps

    @property
    def time(self) -> float | None:
        """Of the flow; None where it has none."""
        return self.run.flow.time

    @property
    def seconds(self) -> float:
        """That the steps took."""
        return self.end.seconds

    @property
    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Values of all cells, or points, in the order of the mesh; of several ranks on rank 0 alone."""
        kept = vars(self)  # a cached_property of Python 3.11 holds a lock, at which ranks that are threads would wait
        if "_fields" not in kept:
            kept["_fields"] = self.run.fields() if self.flow.part is None else self.chosen(())
        return kept["_fields"]

    def chosen(self, wanted: Sequence[str]) -> Mapping[str, npt.NDArray[Any]]:
        """Return fields of all cells by names and formulas, ``["q_criterion", "cp = p / 500"]``; on rank 0. Collective.

        Raises
        ------
        SolverError
            Where there is no such field.
        """
        return gathered(self.flow.context.comm, self.flow.part, self.run.fields().chosen(wanted))

    @property
    def mesh(self) -> MeshData:
        """The whole mesh; on rank 0 alone."""
        return self.run.mesh()

    @property
    def history(self) -> Mapping[str, Array]:
        """Columns of the history, of runs that have one among their monitors."""
        history = self.run.history
        return {name: history.column(name) for name in history.names}

    @property
    def monitors(self) -> Mapping[str, Monitor]:
        """Those that have a name, by it."""
        return {one.name: one for one in self.run.monitors if one.name}

    @property
    def forces(self) -> Mapping[str, Any]:
        """Monitors of forces by their names: ``result.forces["wing"].cl``."""
        return {name: one for name, one in self.monitors.items() if one.kind == "forces"}

    def __str__(self) -> str:
        return "\n".join([str(self.outcome), *(f"{name}: {text}" for name, text in self.summary)])
