"""Tables and monitors that cases of flow share: the history, probes, and averages over time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, field_validator, model_validator

from fluxloom.app.case import CaseModel
from fluxloom.app.tables import Table
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.mesh.mesh import MeshData
from fluxloom.monitors.point_samples import named
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
    "BLOCK", "AveragesTable", "FlowCase", "ProbesObserver", "ProbesTable", "common_monitors", "run_of",
]  # fmt: skip

Array = npt.NDArray[np.float64]

BLOCK = 64
"""Samples of probes that a kill may cost."""


Point = Annotated[list[float], Field(min_length=2, max_length=3)]
_FILE = r"^[\w+-][\w .+-]*$"
FileName = Annotated[str, Field(pattern=_FILE)]
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
    spectrum
        Whether each probe has its power spectra in ``spectrum_PROBE.csv``, and in the summary the frequencies at which
        its values oscillate, with their uncertainty, and the amplitudes; of the last half of the run.
    """

    points: Annotated[dict[str, Point], BeforeValidator(_named)] = Field(default={})
    every: Annotated[int, Field(ge=1, le=10**9)] = 1
    period: Annotated[float, Field(ge=0)] = 0.0
    spectrum: bool = False

    @field_validator("points")
    @classmethod
    def _names(cls, points: dict[str, list[float]]) -> dict[str, list[float]]:
        for name in points:
            if not name.strip() or not name.isprintable() or any(mark in name for mark in ",;."):
                raise ValueError(f"a probe cannot be called {name!r}: names are headings of columns in probes.csv")
        return points

    @model_validator(mode="after")
    def _consistent(self) -> ProbesTable:
        if self.period and self.changed(("every",)):
            raise ValueError("give only one of every and period")
        for name in self.points if self.spectrum else ():
            if not re.match(_FILE, name):
                raise ValueError(f"probe {name!r} cannot have a spectrum: its name would be part of the name of a file")
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


class SliceTable(Table):
    """``[slices.NAME]``: ``slice_NAME.vti``, values in a plane through a flow in three dimensions, for ParaView.

    The file has the values behind the last step, which are drawn too; with ``every`` or ``period`` there are files now
    and then, ``slice_NAME_000100.vti`` for step 100. What is outside of the mesh is NaN.

    Attributes
    ----------
    axis
        ``"x"``, ``"y"`` or ``"z"``: the plane is across it.
    at
        Coordinate along it.
    every
        Steps between two files; 0: there is the last one alone.
    period
        Seconds between two files, instead of ``every``; see ``[probes]``.
    size
        Squares along the longer side.
    """

    axis: Literal["x", "y", "z"]
    at: float
    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    period: Annotated[float, Field(ge=0)] = 0.0
    size: Annotated[int, Field(ge=2, le=4096)] = 200

    @model_validator(mode="after")
    def _one(self) -> SliceTable:
        if self.period and self.every:
            raise ValueError("give only one of every and period")
        return self


class SpectrumTable(Table):
    """``[spectra.NAME]``: ``spectrum_NAME.csv``, and in the summary frequency, amplitude and Strouhal number.

    Attributes
    ----------
    column
        Of ``history.csv`` or ``probes.csv``.
    start
        Time from which on it is looked at; absent: the last half of the run.
    length, speed
        For a Strouhal number ``f length / speed``; 0: there is none.
    """

    column: str
    start: float | None = None
    length: Annotated[float, Field(ge=0)] = 0.0
    speed: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _both(self) -> SpectrumTable:
        if bool(self.length) != bool(self.speed):
            raise ValueError("a Strouhal number needs length and speed: give both or none")
        return self


class FlowCase(CaseModel):
    """What cases of flow have in common."""

    history: HistoryTable = HistoryTable()
    snapshots: SnapshotsTable = SnapshotsTable()
    probes: ProbesTable = ProbesTable()
    lines: dict[FileName, LineTable] = Field(default={})
    slices: dict[FileName, SliceTable] = Field(default={})
    spectra: dict[FileName, SpectrumTable] = Field(default={})

    @model_validator(mode="after")
    def _files(self) -> FlowCase:
        """Refuse tables of points whose files would have the same name."""
        if self.probes.spectrum and (both := sorted(set(self.spectra) & set(self.probes.points))):
            raise ValueError(f"spectra.{both[0]}: probe {both[0]!r} has a spectrum of this name: choose another")
        if both := sorted(name for name in self.lines if name.removesuffix("_series") in set(self.lines) - {name}):
            other = both[0].removesuffix("_series")
            raise ValueError(f"lines.{both[0]}: {other!r} has a file of this name: choose another")
        return self


F = TypeVar("F", bound=Flow)


def common_monitors(case: FlowCase) -> list[Monitor]:
    """Return what every solver has: the history, files of the fields, and what is measured at points."""
    snapshots = [Snapshots(case.snapshots.every)] if case.snapshots.every else []
    return [History(case.history.every), *snapshots, *_at_points(case), *_spectra(case)]  # spectra of the others: last


def _at_points(case: FlowCase) -> list[Monitor]:
    """Return what is measured at points; what no case wants is not imported."""
    found: list[Monitor] = []
    if (table := case.probes).points:
        from fluxloom.monitors.probes import Probes

        probes = Probes(table.points, table.every, period=table.period, spectrum=table.spectrum)
        found.append(_of("probes", probes))
    for name, table in case.lines.items():
        from fluxloom.monitors.lines import Line

        line = Line(name, table.start, table.end, table.count, table.every, table.period)
        found.append(_of(f"lines.{name}", line))
    for name, table in case.slices.items():
        from fluxloom.monitors.slices import Slice

        plane = Slice(name, table.axis, table.at, table.every, table.size, table.period)
        found.append(_of(f"slices.{name}", plane))
    return found


def _spectra(case: FlowCase) -> list[Monitor]:
    """Return the spectra of columns that the history or other monitors have."""
    found: list[Monitor] = []
    for name, table in case.spectra.items():
        from fluxloom.monitors.spectrum import Spectrum

        spectrum = Spectrum(name, table.column, table.start, length=table.length, speed=table.speed)
        found.append(_of(f"spectra.{name}", spectrum))
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
