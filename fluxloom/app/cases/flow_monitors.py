"""Tables and monitors that cases of flow share: the history, probes, averages over time, files of the fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, field_validator, model_validator

from fluxloom.app.case import CaseModel
from fluxloom.app.tables import Table
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.history import History
from fluxloom.run.monitor import Monitor, Sampler, Stepping
from fluxloom.run.results.folder import ResultFolder
from fluxloom.run.results.tables import Lines
from fluxloom.run.snapshots import Snapshots

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import ProbeRecords

__all__ = [
    "BLOCK", "AveragesTable", "FlowCase", "HistoryTable", "ProbesObserver", "ProbesTable", "common_monitors", "run_of",
]  # fmt: skip

Array = npt.NDArray[np.float64]

BLOCK = 64
"""Samples of probes that a kill may cost."""


class HistoryTable(Table):
    """``[history]``: ``history.csv``, numbers over time.

    Attributes
    ----------
    every
        Steps between two lines; 0: there is no such file.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 10


class SnapshotsTable(Table):
    """``[snapshots]``: the fields now and then, ``snapshot_000100.vtkhdf`` for step 100.

    Attributes
    ----------
    every
        Steps between two of them; 0: none.
    period
        Time of the flow between two of them, instead of ``every``, ``snapshot_0003.vtkhdf`` at three periods: steps
        whose length is free hit these times, of others the first one at such a time or behind it counts.
    fields
        Which fields: names and formulas; empty: those of ``output.fields``.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    period: Annotated[float, Field(ge=0)] = 0.0
    fields: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _one(self) -> SnapshotsTable:
        if self.period and self.every:
            raise ValueError("give only one of every and period")
        if self.fields and not (self.every or self.period):
            raise ValueError("fields is there but neither every nor period: give the steps, or the time, between files")
        return self


class AveragesTable(Table):
    """``[statistics]``: averages over steps, as fields and as a profile.

    Attributes
    ----------
    every
        Steps between two samples; 0: no averages.
    start
        Time of the first sample; of a run towards a steady flow its step.
    profile
        ``"x"``, ``"y"`` or ``"z"``: ``profile.csv`` has averages over the other directions too.
    bins
        Equal intervals along it; 0: each coordinate of cells or points is a place of its own.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    start: Annotated[float, Field(ge=0)] = 0.0
    profile: Literal["", "x", "y", "z"] = ""
    bins: Annotated[int, Field(ge=0, le=10**6)] = 0

    @model_validator(mode="after")
    def _used(self) -> AveragesTable:
        others = [name for name in type(self).model_fields if name != "every"]
        if not self.every and (extra := self.changed(others)):
            raise ValueError(f"{extra[0]} is there but every is not: give every, the steps between two samples")
        if self.bins and not self.profile:
            raise ValueError("bins is there but profile is not: give profile, or leave bins out")
        return self


class StopTable(Table):
    """``[stop]``: the run has converged when a column of ``history.csv`` stays as it is.

    Attributes
    ----------
    column
        Its name, as ``"wing.lift"``; empty: nothing ends the run so.
    tolerance
        How much it may change in the window, over its mean there.
    window
        For how long, in steps or in time of the flow.
    over
        ``"steps"`` or ``"time"``.
    """

    column: str = ""
    tolerance: Annotated[float, Field(gt=0)] = 1e-4
    window: Annotated[float, Field(gt=0)] = 1000.0
    over: Literal["steps", "time"] = "steps"

    @model_validator(mode="after")
    def _used(self) -> StopTable:
        if not self.column and (extra := self.changed(("tolerance", "window", "over"))):
            raise ValueError(f"{extra[0]} is there but column is not: give column, the name of one of history.csv")
        return self


class FlowCase(CaseModel):
    """What cases of flow have in common."""

    history: HistoryTable = HistoryTable()
    snapshots: SnapshotsTable = SnapshotsTable()
    statistics: AveragesTable = AveragesTable()
    stop: StopTable = StopTable()


F = TypeVar("F", bound=Flow)


def common_monitors(case: FlowCase) -> list[Monitor]:
    """Return what every solver has: the history, averages, files of the fields, the end by a plateau.

    Averages come before files, of whose fields theirs are; what no case wants is not imported.
    """
    found: list[Monitor] = [History(case.history.every)]
    if (table := case.statistics).every:
        from fluxloom.monitors.averages import Averages

        averages = Averages(table.start, table.every, table.profile, table.bins)
        averages.table = "statistics"
        found.append(averages)
    if (table := case.snapshots).every or table.period:
        snapshots = Snapshots(table.every, table.period, table.fields or case.output.fields)
        snapshots.table = "snapshots"
        found.append(snapshots)
    if (table := case.stop).column:
        from fluxloom.monitors.plateau import Plateau

        plateau = Plateau(table.column, table.tolerance, table.window, table.over)
        plateau.table = "stop"
        found.append(plateau)
    return found


def run_of(
    case: FlowCase, flow: F, until: Until, mesh: Callable[[], MeshData], monitors: Sequence[Monitor],
    partition: PartitionReport | None = None,
) -> FlowRun[F]:  # fmt: skip
    """Return a flow as its case runs it; the parameters are those of `FlowRun`."""
    found = [*monitors, *common_monitors(case)]
    return FlowRun(flow, case.case.name, until, mesh, found, partition=partition)


def _named(points: Any) -> Any:
    """Return points with names: those of a list are called by their numbers, from 1."""
    return {f"{k}": point for k, point in enumerate(points, 1)} if isinstance(points, list) else points


class ProbesTable(Table):
    """``[probes]``: ``probes.csv``, what the flow does at points over time.

    Attributes
    ----------
    points
        Name to coordinates; or coordinates alone, then the names are numbers from 1.
    every
        Steps between two lines.
    """

    points: Annotated[
        dict[str, Annotated[list[float], Field(min_length=2, max_length=3)]], BeforeValidator(_named)
    ] = Field(default={})  # fmt: skip
    every: Annotated[int, Field(ge=1, le=10**9)] = 1

    @field_validator("points")
    @classmethod
    def _names(cls, points: dict[str, list[float]]) -> dict[str, list[float]]:
        for name in points:
            if not name.strip() or not name.isprintable() or any(mark in name for mark in ",;."):
                raise ValueError(f"a probe cannot be called {name!r}: names are headings of columns in probes.csv")
        return points


class _Probes(Protocol):
    """What samples."""

    names: tuple[str, ...]
    records: ProbeRecords

    def sample(self) -> None: ...


class ProbesObserver(Sampler):
    """Points whose values are written to ``probes.csv``.

    Parameters
    ----------
    flow, probes
        The flow, and what samples it.
    over
        Name of the first column, which the samples are over.
    values
        Names of the values at a point.
    every
        Steps between two samples.
    """

    name, remembers = "probes", ("memory",)

    def __init__(self, flow: Stepping, probes: _Probes, over: str, values: Sequence[str], every: int) -> None:
        super().__init__(flow, every)
        self._probes, self._kept = probes, 0
        self._names = [over, *(f"{name}.{value}" for name in probes.names for value in values)]
        self._lines: Lines | None = None
        self._rows: list[Array] = []

    @property
    def memory(self) -> dict[str, Any]:
        """Names of the columns, and all lines so far. Collective."""
        self._fetch()
        return {"names": self._names, "rows": np.concatenate([np.zeros((0, len(self._names))), *self._rows])}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        places = {name: k for k, name in enumerate(memory["names"])}
        before = np.asarray(memory["rows"])
        rows = np.full((len(before), len(self._names)), np.nan)
        for k, name in enumerate(self._names):
            if name in places:
                rows[:, k] = before[:, places[name]]
        self._rows = [rows] if self._names[0] in places else []

    def begin(self, folder: ResultFolder) -> None:
        """Open the file, and write what there is."""
        super().begin(folder)
        self._lines = folder.lines("probes.csv", ",".join(self._names), [_line(r) for rows in self._rows for r in rows])

    def _sample(self) -> None:
        self._probes.sample()
        self._kept += 1
        if self._kept >= BLOCK:
            self._fetch()

    def _fetch(self) -> None:
        """Write what has been sampled since the last time. Collective."""
        if not self._kept:
            return
        times, values = self._probes.records.values()
        self._probes.records.reset()
        self._kept = 0
        self._rows.append(np.concatenate([times[:, None], values.reshape(len(values), -1)], axis=1))
        self._write(self._rows[-1])

    def _write(self, rows: Array) -> None:
        if self._lines is not None:
            for row in rows:
                self._lines.add(_line(row))

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write what is left."""
        if self._lines is not None:
            super().finish()
        self._fetch()
        self.folder.closed("probes.csv", self._lines)


def _line(row: Array) -> str:
    return ",".join(f"{value:.9g}" for value in row)
