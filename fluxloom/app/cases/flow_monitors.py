"""Tables and monitors that cases of flow share: the history, probes, and averages over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, field_validator, model_validator

from fluxloom.app.case import CaseModel
from fluxloom.app.tables import Table
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.mesh.mesh import MeshData
from fluxloom.monitors.lines import Line
from fluxloom.monitors.probes import Probes, named
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.history import History
from fluxloom.run.monitor import Monitor
from fluxloom.run.snapshots import Snapshots

if TYPE_CHECKING:
    pass

__all__ = [
    "AveragesTable", "FlowCase", "ProbesTable", "common_monitors", "run_of",
]  # fmt: skip

Array = npt.NDArray[np.float64]

Point = Annotated[list[float], Field(min_length=2, max_length=3)]
FileName = Annotated[str, Field(pattern=r"^[\w+-][\w .+-]*$")]
"""Name of a table that is a part of the name of a file."""


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
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0


def _named(points: Any) -> Any:
    """Return points with names, as `Probes` calls them; what is neither is left to the check of types."""
    return named(points) if isinstance(points, list) else points


class ProbesTable(Table):
    """``[probes]``: ``probes.csv``, what the flow does at points over time.

    Attributes
    ----------
    points
        Name to coordinates; or coordinates alone, then the names are numbers from 1.
    every
        Steps between two lines.
    period
        Seconds between two lines, instead of ``every``: steps whose length is free hit these times, of others the first
        one at such a time or behind it counts.
    """

    points: Annotated[dict[str, Point], BeforeValidator(_named)] = Field(default={})
    every: Annotated[int, Field(ge=1, le=10**9)] = 1
    period: Annotated[float, Field(ge=0)] = 0.0

    @field_validator("points")
    @classmethod
    def _names(cls, points: dict[str, list[float]]) -> dict[str, list[float]]:
        for name in points:
            if not name.strip() or not name.isprintable() or any(mark in name for mark in ",;."):
                raise ValueError(f"a probe cannot be called {name!r}: names are headings of columns in probes.csv")
        return points

    @model_validator(mode="after")
    def _one(self) -> ProbesTable:
        if self.period and self.changed(("every",)):
            raise ValueError("give only one of every and period")
        return self


class LineTable(Table):
    """``[lines.NAME]``: ``line_NAME.csv``, values along a straight line.

    The file has the profile behind the last step; with ``every`` or ``period`` there are all samples too, one below the
    other in ``line_NAME_series.csv``. Points outside of the mesh are left out.

    Attributes
    ----------
    start, end
        Its ends.
    count
        Points, both ends among them.
    every
        Steps between two samples; 0: there is the last profile alone.
    period
        Seconds between two samples, instead of ``every``; see ``[probes]``.
    """

    start: Point
    end: Point
    count: Annotated[int, Field(ge=2, le=100_000)] = 101
    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    period: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> LineTable:
        if self.period and self.every:
            raise ValueError("give only one of every and period")
        if len(self.start) != len(self.end) or self.start == self.end:
            raise ValueError("start and end are different points with as many coordinates each")
        return self


class FlowCase(CaseModel):
    """What cases of flow have in common."""

    history: HistoryTable = HistoryTable()
    snapshots: SnapshotsTable = SnapshotsTable()
    probes: ProbesTable = ProbesTable()
    lines: dict[FileName, LineTable] = Field(default={})


F = TypeVar("F", bound=Flow)


def common_monitors(case: FlowCase) -> list[Monitor]:
    """Return what every solver has: the history, files of the fields, and what is measured at points."""
    snapshots = [Snapshots(case.snapshots.every)] if case.snapshots.every else []
    return [History(case.history.every), *snapshots, *_at_points(case)]


def _at_points(case: FlowCase) -> list[Monitor]:
    """Return what is measured at points."""
    found: list[Monitor] = []
    if (table := case.probes).points:
        found.append(_of("probes", Probes(table.points, table.every, period=table.period)))
    for name, table in case.lines.items():
        line = Line(name, table.start, table.end, table.count, table.every, table.period)
        found.append(_of(f"lines.{name}", line))
    return found


def _of(table: str, monitor: Monitor) -> Monitor:
    """Return a monitor that knows its table of the case."""
    monitor.table = table
    return monitor


def run_of(
    case: FlowCase, flow: F, until: Until, mesh: Callable[[], MeshData], monitors: Sequence[Monitor],
    partition: PartitionReport | None = None,
) -> FlowRun[F]:  # fmt: skip
    """Return a flow as its case runs it; the parameters are those of `FlowRun`."""
    found = [*monitors, *common_monitors(case)]
    return FlowRun(flow, case.case.name, until, mesh, found, partition=partition)


class AveragesTable(Table):
    """``[statistics]``: averages over steps, as fields.

    Attributes
    ----------
    every
        Steps between two samples; 0: no averages.
    start
        Time of the first sample; of a run towards a steady flow its step.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    start: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _used(self) -> AveragesTable:
        others = [name for name in type(self).model_fields if name != "every"]
        if not self.every and (extra := self.changed(others)):
            raise ValueError(f"{extra[0]} is there but every is not: give every, the steps between two samples")
        return self
