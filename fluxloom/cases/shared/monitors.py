"""Tables and monitors that cases of flow share: the history, probes, averages over time, files of the fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, field_validator, model_validator

from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import Table, Vector
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.history import History
from fluxloom.run.monitor import Monitor

if TYPE_CHECKING:
    from fluxloom.monitors.forces import Reference

__all__ = [
    "AveragesTable", "FlowCase", "ForcesTable", "HistoryTable", "ProbesTable", "References",
    "common_monitors", "reference_in", "run_of", "wall_reference",
]  # fmt: skip

Array = npt.NDArray[np.float64]

Point = Annotated[list[float], Field(min_length=2, max_length=3)]
_FILE = r"^[\w+-][\w .+-]*$"
FileName = Annotated[str, Field(pattern=_FILE)]
"""Name of a table that is a part of the name of a file."""


def _list(names: Any) -> Any:
    """Return one name as a list."""
    return [names] if isinstance(names, str) else names


Names = Annotated[list[str], BeforeValidator(_list)]
_COEFFICIENTS = ("area", "length", "drag", "lift")


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


def _named(points: Any) -> Any:
    """Return points with names, as `Probes` calls them; what is neither is left to the check of types."""
    if not isinstance(points, list):
        return points
    from fluxloom.monitors.point_samples import named

    return named(points)


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


class MovieTable(Table):
    """``[movie]``: a film of a field, in three dimensions of the plane in the middle across z.

    Attributes
    ----------
    every
        Steps between two pictures; 0: no film.
    field
        ``"speed"``, ``"vorticity"``, or another value that the solver has at points, as ``"p"``.
    format
        ``"gif"``, or ``"mp4"`` (needs ``pip install 'fluxloom[movie]'``).
    range
        The largest value shown; 0: of lattices 1.5 reference velocities, of vorticity 4 of them by reference length, of
        the pressure one squared.
    least
        The least value shown; by default 0, or of vorticity, and of lattices of all but the speed, the negative of the
        largest.
    rate
        Pictures a second.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    field: str = "vorticity"
    format: Literal["gif", "mp4"] = "gif"
    range: Annotated[float, Field(ge=0)] = 0.0
    least: float | None = None
    rate: Annotated[int, Field(ge=1, le=100)] = 20

    @model_validator(mode="after")
    def _consistent(self) -> MovieTable:
        if not self.every and (extra := self.changed(("field", "format", "range", "least", "rate"))):
            raise ValueError(f"{extra[0]} is there but there is no film: give every, the steps between two pictures")
        return self


class ForcesTable(Table):
    """``[forces.NAME]``: what the flow does to patches, sides or bodies; columns of ``history.csv``.

    Attributes
    ----------
    patches
        Their names; empty: the one that is called as the table.
    speed, area, length
        What coefficients refer to, ``C = 2 F / (rho U^2 A)`` (without ``rho`` where the flow has none), and a length
        beside them for the moment and the Strouhal number; 0: those of the case where it has them, else there are no
        coefficients.
    drag, lift
        Directions of the coefficients; empty: those of the case, else x and y.
    point
        That the moment is about, a coordinate a dimension; the origin by default.
    form
        Of finite volumes of incompressible flow ``"surface"``: the pressure is carried to the wall, the default; or
        ``"balance"``: the terms of the discrete equations, but for the moment. Other solvers have one form, which is
        both.
    every
        Steps between two samples of means and of the Strouhal number; 0: as ``history.every``.
    """

    patches: Names = Field(default=[])
    speed: Annotated[float, Field(ge=0)] = 0.0
    area: Annotated[float, Field(ge=0)] = 0.0
    length: Annotated[float, Field(ge=0)] = 0.0
    drag: Vector = Field(default=[])
    lift: Vector = Field(default=[])
    point: Vector = Field(default=[])
    form: Literal["", "surface", "balance"] = ""
    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    renamed = MappingProxyType({"of": "patches", "velocity": "speed"})

    def whole(self, scaled: bool) -> None:
        """Raise `ValueError` where coefficients lack what neither this table nor, ``scaled``, its case gives."""
        if scaled:
            return
        if bool(self.speed) != bool(self.area):
            raise ValueError("give both of speed and area, above 0, or neither")
        if not self.speed and (extra := self.changed(_COEFFICIENTS)):
            raise ValueError(f"{extra[0]} is there but speed and area are not: give them, or leave {extra[0]} out")


class PatchFlowTable(Table):
    """``[patch_flow.NAME]``: what flows through patches, and means over them; columns of ``history.csv``.

    Attributes
    ----------
    patches
        Their names; empty: the one that is called as the table.
    """

    patches: Names = Field(default=[])


class WallsTable(Table):
    """``[walls.NAME]``: at the end, values along patches in ``wall_NAME.csv``; where the flow separates, y+, heat.

    Attributes
    ----------
    patches
        Their names; empty: the one that is called as the table.
    speed, pressure
        Of the coefficients ``cp`` and ``cf``: the speed, and the pressure whose coefficient is 0; by default those of
        the case where it has them, else there are no coefficients, and the pressure is 0.
    along
        Direction of the stream, in whose order places of separation are told, and from which angles; by default that
        of the case, else x.
    axis, cuts
        In three dimensions: planes across an axis, ``wall_NAME_y_0.44.csv`` for each place along it.
    length, difference
        Of the Nusselt number: a length, and the temperature of the wall less that of the fluid; 0: there is none.
    scalar
        That is the temperature, of a flow that carries scalars; empty: the only one, if it is called ``T`` or
        ``temperature``.
    """

    patches: Names = Field(default=[])
    speed: Annotated[float, Field(ge=0)] = 0.0
    pressure: float | None = None
    along: Vector = Field(default=[])
    axis: Literal["x", "y", "z"] = "y"
    cuts: list[float] = Field(default=[])
    length: Annotated[float, Field(ge=0)] = 0.0
    difference: float = 0.0
    scalar: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> WallsTable:
        if self.changed(("axis",)) and not self.cuts:
            raise ValueError("axis is there but cuts is not: give it, or leave axis out")
        if len(set(self.cuts)) < len(self.cuts):
            raise ValueError("a cut is named twice")
        if bool(self.length) != bool(self.difference):
            raise ValueError("a Nusselt number needs length and difference: give both, or leave both out")
        if self.scalar and not self.length:
            raise ValueError("scalar is there but length and difference are not: give them, or leave scalar out")
        return self


class FlowCase(CaseModel):
    """What cases of flow have in common."""

    history: HistoryTable = HistoryTable()
    snapshots: SnapshotsTable = SnapshotsTable()
    forces: dict[str, ForcesTable] = Field(default={})
    patch_flow: dict[str, PatchFlowTable] = Field(default={})
    walls: dict[FileName, WallsTable] = Field(default={})
    probes: ProbesTable = ProbesTable()
    lines: dict[FileName, LineTable] = Field(default={})
    slices: dict[FileName, SliceTable] = Field(default={})
    statistics: AveragesTable = AveragesTable()
    stop: StopTable = StopTable()
    spectra: dict[FileName, SpectrumTable] = Field(default={})
    movie: MovieTable = MovieTable()

    scaled: ClassVar[bool] = False
    """Whether the case says itself what coefficients refer to."""
    balanced: ClassVar[bool] = False
    """Whether forces have two forms."""

    @model_validator(mode="after")
    def _forces(self) -> FlowCase:
        for name, table in self.forces.items():
            if table.form and not self.balanced:
                raise ValueError(f"forces.{name}.form: this solver finds forces in one way: leave form out")
            try:
                table.whole(self.scaled)
            except ValueError as error:
                raise ValueError(f"forces.{name}: {error}") from None
        return self

    @model_validator(mode="after")
    def _files(self) -> FlowCase:
        """Refuse tables whose files would have the same name."""
        if self.probes.spectrum and (both := sorted(set(self.spectra) & set(self.probes.points))):
            raise ValueError(f"spectra.{both[0]}: probe {both[0]!r} has a spectrum of this name: choose another")
        if both := sorted(name for name in self.lines if name.removesuffix("_series") in set(self.lines) - {name}):
            other = both[0].removesuffix("_series")
            raise ValueError(f"lines.{both[0]}: {other!r} has a file of this name: choose another")
        for name, table in self.walls.items():
            if both := [cut for cut in table.cuts if f"{name}_{table.axis}_{cut:g}" in self.walls]:
                taken = f"{name}_{table.axis}_{both[0]:g}"
                raise ValueError(f"walls.{taken}: a cut of {name!r} has a file of this name: choose another")
        return self


References: TypeAlias = "Callable[[ForcesTable], Reference | None]"
"""Returns what the coefficients of a table refer to; None: there are none."""


def reference_in(dimension: int) -> References:
    """Return what coefficients refer to where the tables alone say it: lengths are areas in two dimensions."""

    def found(table: ForcesTable) -> Reference | None:
        """Return what the table says, None without a speed; `SolverError` for a direction of other dimensions."""
        from fluxloom.monitors.forces import Reference

        if not table.speed:
            return None
        for name in ("drag", "lift"):
            if len(way := getattr(table, name)) not in (0, dimension):
                raise SolverError(
                    f"forces: reference: {name}: a direction of {dimension} components is wanted, not {way}"
                )
        length = table.length or (table.area if dimension == 2 else 1.0)
        drag, lift = table.drag or Reference.drag, table.lift or Reference.lift
        return Reference(table.speed, table.area, length, drag=drag, lift=lift)

    return found


F = TypeVar("F", bound=Flow)


def common_monitors(
    case: FlowCase, references: References, pressure: float = 0.0, others: Sequence[Monitor] = ()
) -> list[Monitor]:  # fmt: skip
    """Return what looks at the flow of a case.

    Parameters
    ----------
    case
        With its tables.
    references
        What coefficients refer to.
    pressure
        Whose coefficient is 0.
    others
        Monitors that the solver alone has.
    """
    looking = [*_on_surfaces(case, references, pressure), *others, History(case.history.every)]
    looking += [*_of_fields(case), *_at_points(case), *_films(case)]
    return [*looking, *_spectra(case)]  # spectra of the others: last


def _of_fields(case: FlowCase) -> Iterator[Monitor]:
    """Yield averages, then files of the fields, theirs among them, and the end by a plateau.

    What no case wants is not imported.
    """
    if (table := case.statistics).every:
        from fluxloom.monitors.averages import Averages

        yield _of("statistics", Averages(table.start, table.every, table.profile, table.bins))
    if (table := case.snapshots).every or table.period:
        from fluxloom.run.snapshots import Snapshots

        yield _of("snapshots", Snapshots(table.every, table.period, table.fields or case.output.fields))
    if (table := case.stop).column:
        from fluxloom.monitors.plateau import Plateau

        yield _of("stop", Plateau(table.column, table.tolerance, table.window, table.over))


def _on_surfaces(case: FlowCase, references: References, pressure: float) -> list[Monitor]:
    """Return what is measured on patches."""
    return [*_forces(case, references), *_patch_flows(case), *_walls(case, references, pressure)]


def _patch_flows(case: FlowCase) -> Iterator[Monitor]:
    """Yield what flows through patches."""
    for name, table in case.patch_flow.items():
        from fluxloom.monitors.patch_flow import PatchFlow

        yield _of(f"patch_flow.{name}", PatchFlow(name, table.patches))


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


def _films(case: FlowCase) -> Iterator[Monitor]:
    """Return the film of a case, if there is one."""
    if (table := case.movie).every:
        from fluxloom.monitors.film import Film

        film = Film(table.field, table.every, table.format, most=table.range, least=table.least, rate=table.rate)
        yield _of("movie", film)


def _of(table: str, monitor: Monitor) -> Monitor:
    """Return a monitor that knows its table of the case."""
    monitor.table = table
    return monitor


def _walls(case: FlowCase, references: References, pressure: float) -> Iterator[Monitor]:
    """Yield what is measured along walls; raise `CaseError` where a table does not fit."""
    for name, table in case.walls.items():
        from fluxloom.monitors.walls import HeatReference, Walls

        try:
            heat = HeatReference(table.length, table.difference, table.scalar) if table.length else None
            reference = wall_reference(references, table.speed, table.along)
        except SolverError as error:
            raise CaseError(f"walls.{name}: {error}") from None
        level = pressure if table.pressure is None else table.pressure
        yield _of(f"walls.{name}", Walls(
            name, table.patches, reference, pressure=level, axis=table.axis, cuts=table.cuts, along=table.along,
            heat=heat,
        ))  # fmt: skip


def wall_reference(references: References, speed: float = 0.0, along: Sequence[float] = ()) -> Reference | None:
    """Return what coefficients along walls refer to; None where there is no speed, or the free stream is at rest.

    Parameters
    ----------
    references
        As of `common_monitors`.
    speed, along
        That a table gives.
    """
    table = ForcesTable(speed=speed, area=1.0 if speed else 0.0, drag=list(along) if speed else [])
    try:
        return references(table)
    except SolverError:
        if speed:
            raise
        return None


def _forces(case: FlowCase, references: References) -> Iterator[Monitor]:
    """Yield the forces of a case; raise `CaseError` where a reference does not fit."""
    for name, table in case.forces.items():
        from fluxloom.monitors.forces import Forces

        try:
            reference = references(table)
        except SolverError as error:
            raise CaseError(f"forces.{name}: {error}") from None
        forces = Forces(
            name, table.patches, reference, table.point, every=table.every or case.history.every,
            balance=table.form == "balance",
        )  # fmt: skip
        yield _of(f"forces.{name}", forces)


def run_of(
    case: FlowCase, flow: F, until: Until, monitors: Sequence[Monitor] = (), references: References | None = None,
    pressure: float = 0.0,
) -> FlowRun[F]:  # fmt: skip
    """Return a flow as its case runs it.

    Parameters
    ----------
    flow, until
        As of `FlowRun`.
    monitors
        Those that the solver alone has.
    references, pressure
        What coefficients refer to, by default what their tables say; and the pressure whose coefficient is 0.

    Raises
    ------
    CaseError
        If something that is to be looked at is not there.
    """
    found = common_monitors(case, references or reference_in(flow.dimension), pressure, monitors)
    return FlowRun(flow, case.case.name, until, found)
