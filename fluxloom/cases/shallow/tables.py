"""The tables of tsunami case files."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from fluxloom.cases.files.case import OutputTable, RunTable
from fluxloom.cases.files.strategy_tables import Table, ValueKey, formula_check, strategy_table
from fluxloom.cases.shared.monitors import FlowCase, HistoryTable
from fluxloom.cases.shared.wall_motion import StartVelocityTable
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.run.start import is_result
from fluxloom.values.value import Formula

__all__ = ["BathymetryTable", "BoundaryTable", "EventTable", "SurfaceTable", "TsunamiCase"]

_MOST_SAMPLES, _MOST_STEPS = 1e6, 1e9


_PLANE = ("x", "y", "t")

InSpace = Annotated[str, AfterValidator(formula_check("x", "y"))]


def _one_of(table: Table, names: tuple[str, ...], *, needed: bool) -> None:
    """Raise unless one (or none) of some keys is given."""
    given = [name for name in names if getattr(table, name) not in (None, "")]
    if len(given) > 1:
        raise ValueError(f"give only one of {' and '.join(given)}")
    if needed and not given:
        raise ValueError(f"give one of the keys {', '.join(names)}")


class TsunamiMeshTable(Table):
    """``[mesh]``: a file, or a rectangle of triangles.

    Attributes
    ----------
    file
        SU2, Gmsh, VTU, VTKHDF or what meshio reads.
    zone
        Of a file with several meshes, the one to take: number of a zone of SU2, name of a base or zone of CGNS.
    x, y
        Ends of the rectangle, metres.
    nx, ny
        Its intervals; each of the nx ny boxes has two triangles. Its patches are xmin, xmax, ymin and ymax.
    perturb
        How far inner nodes are moved at random, as a part of an interval.
    renumber
        ``"rcm"`` or ``"gps"`` bring neighbours close together in memory.
    """

    file: str = ""
    zone: str | int = ""
    x: list[float] = Field(default=[0.0, 1.0], min_length=2, max_length=2)
    y: list[float] = Field(default=[0.0, 1.0], min_length=2, max_length=2)
    nx: Annotated[int, Field(ge=1, le=50_000)] = 100
    ny: Annotated[int, Field(ge=1, le=50_000)] = 100
    perturb: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    renumber: Literal["none", "rcm", "gps"] = "none"

    @model_validator(mode="after")
    def _consistent(self) -> TsunamiMeshTable:
        if self.zone != "" and not self.file:
            raise ValueError("zone belongs to a mesh from a file: give file, or leave zone out")
        if self.file and (extra := self.changed(("x", "y", "nx", "ny", "perturb"))):
            raise ValueError(f"a mesh from a file has no {extra[0]}")
        if self.x[0] >= self.x[1] or self.y[0] >= self.y[1]:
            raise ValueError("x and y are the lower and the upper end")
        return self


class SurfaceTable(Table):
    """Elevations: a formula in x and y, or a file with a grid.

    Attributes
    ----------
    expression
        Such as ``"-100 + 0.01 * x"``, metres.
    file
        ESRI ASCII grid, or lines ``x y z`` of a regular grid.
    positive_down
        Whether the file holds depths.
    """

    expression: InSpace = ""
    file: str = ""
    positive_down: bool = False


class BathymetryTable(SurfaceTable):
    """``[bathymetry]``: the bed.

    Attributes
    ----------
    field
        Values on the cells or nodes of the mesh file, by name, instead of a formula or a grid.
    """

    field: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> BathymetryTable:
        _one_of(self, ("expression", "file", "field"), needed=True)
        return self


class InitialTable(StartVelocityTable, SurfaceTable):
    """``[initial]``: the surface at the start (at rest: 0), and the velocity.

    Attributes
    ----------
    file
        ESRI ASCII grid, or lines ``x y z`` of a regular grid; or the result of another run, with velocity and all: its
        folder, its ``checkpoint.h5``, or ``final.vtkhdf`` or ``.vtu``, of any mesh, order and number of ranks.
    """

    @model_validator(mode="after")
    def _consistent(self) -> InitialTable:
        _one_of(self, ("expression", "file"), needed=False)
        if self.of_result:
            self.alone(*self.ways, "positive_down")
        elif extra := self.changed(("outside", "keep_time")):
            raise ValueError(f"{extra[0]} is of a result, and file is a grid: leave {extra[0]} out")
        return self

    @property
    def of_result(self) -> bool:
        """Whether the file is the result of another run."""
        return bool(self.file) and is_result(self.file)


class EventTable(SurfaceTable):
    """``[[event]]``: the bed, and the water on it, is lifted.

    Attributes
    ----------
    time
        When, seconds.
    """

    time: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> EventTable:
        _one_of(self, ("expression", "file"), needed=True)
        return self


class TsunamiFlowTable(strategy_table(ShallowScheme)):
    """``[flow]``: the scheme; see `ShallowScheme`, whose names and defaults it has.

    Attributes
    ----------
    precision
        ``"float64"`` or ``"float32"``.
    """

    renamed = MappingProxyType({"longest_step": "longest"})
    order: Literal[1, 2] = 2
    cfl: Annotated[float, Field(gt=0, le=1)] = ShallowScheme.cfl
    manning: Annotated[float, Field(ge=0, le=1)] = ShallowScheme.manning
    rain: Annotated[Any, ValueKey(ge=0, variables=_PLANE)] = 0.0
    wind_stress: Annotated[list[Annotated[Any, ValueKey(variables=_PLANE)]], Field(max_length=2)] = Field(default=[])
    dry: Annotated[float, Field(gt=0, lt=0.1)] = ShallowScheme.dry
    precision: Literal["float64", "float32"] = "float64"


_OF_TYPES = {
    "level": ("surface", "every", "until"),
    "discharge": ("discharge", "every", "until"),
    "incident": ("surface", "every", "still", "until"),
}
"""Keys of the types of boundaries that have some, first what is given."""


class BoundaryTable(Table):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; the rest is wall.

    Attributes
    ----------
    type
        ``"wall"``, ``"outflow"`` (transmissive), ``"level"`` (the surface is given), ``"discharge"`` (what comes in is
        given) or ``"incident"`` (a wave comes in, others leave).
    surface
        The surface, of a level, or of the incident wave alone: a number, a formula in x, y and t, or a table, as
        ``{ type = "series", file = "wave.csv" }`` (docs/guide/values.md).
    discharge
        What comes in through a metre of the patch, m^2/s, below 0 what goes out: a value as ``surface`` takes it.
    every
        Interval at which a formula in t alone is sampled, seconds; by default a thousandth of ``run.time``, or so much
        less that the formula is linear between samples, to a thousandth.
    still
        Surface of the water at rest, for an incident wave.
    until
        Time from which on the boundary is a wall.
    """

    renamed = MappingProxyType({"expression": "surface", "file": "surface.file"})
    type: Literal["wall", "outflow", "level", "discharge", "incident"]
    surface: Annotated[Any, ValueKey(variables=_PLANE, optional=True)] = None
    discharge: Annotated[Any, ValueKey(variables=_PLANE, optional=True)] = None
    every: Annotated[float, Field(gt=0)] | None = None
    still: float = 0.0
    until: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> BoundaryTable:
        allowed = _OF_TYPES.get(self.type, ())
        for key in self.changed(("surface", "discharge", "every", "still", "until")):
            if key not in allowed:
                raise ValueError(f"type = \"{self.type}\" has no {key}")
        if self.type in ("level", "discharge") and self.given is None:
            raise ValueError(f"type = \"{self.type}\" needs {allowed[0]}")
        if self.every is not None and not (isinstance(self.given, Formula) and not self.given.in_space):
            raise ValueError(f"every is of a {allowed[0]} that is a formula in t alone: give one, or leave every out")
        return self

    @property
    def given(self) -> Any:
        """The surface, m, or the discharge, m^2/s."""
        return self.discharge if self.type == "discharge" else self.surface


class GaugesTable(Table):
    """``[gauges]``: time series at points, written to gauges.csv.

    Attributes
    ----------
    points
        Name to ``[x, y]``.
    every
        Seconds between two rows; absent: those between two reports.
    """

    points: dict[str, Annotated[list[float], Field(min_length=2, max_length=2)]] = Field(default={})
    every: Annotated[float, Field(gt=0)] | None = None

    @field_validator("points")
    @classmethod
    def _names(cls, points: dict[str, list[float]]) -> dict[str, list[float]]:
        for name in points:
            if not name.strip() or not name.isprintable() or any(mark in name for mark in ",;\""):
                raise ValueError(f"a gauge cannot be called {name!r}: names are headings of columns in gauges.csv")
        return points


class TsunamiRunTable(RunTable):
    """``[run]``: how long; an iteration is the time between two reports, of as many steps as it takes.

    Attributes
    ----------
    time
        End, seconds.
    iterations
        Reports until then.
    """

    time: Annotated[float, Field(gt=0)] = 1.0
    iterations: Annotated[int, Field(ge=1, le=10**6)] = 100
    report_every: Annotated[int, Field(ge=1, le=10**6)] = 10


class TsunamiOutputTable(OutputTable):
    """``[output]``: what is written.

    Attributes
    ----------
    snapshots
        Number of files of fields at equal intervals of time, the start not counted, instead of ``[snapshots]``; 0:
        none by this key.
    """

    snapshots: Annotated[int, Field(ge=0, le=10_000)] = 0


class TsunamiHistoryTable(HistoryTable):
    """``[history]``: ``history.csv``, volume and speed of the water over time.

    Attributes
    ----------
    every
        Reports between two lines; 0: there is no such file.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0


class TsunamiCase(FlowCase):
    """A case file of the shallow-water solver."""

    run: TsunamiRunTable  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    output: TsunamiOutputTable = TsunamiOutputTable()  # pyright: ignore[reportIncompatibleVariableOverride]
    mesh: TsunamiMeshTable = TsunamiMeshTable()
    bathymetry: BathymetryTable = BathymetryTable(expression="-1")
    initial: InitialTable = InitialTable()
    flow: TsunamiFlowTable = TsunamiFlowTable()
    boundary: dict[str, BoundaryTable] = Field(default={})
    gauges: GaugesTable = GaugesTable()
    history: TsunamiHistoryTable = TsunamiHistoryTable()  # pyright: ignore[reportIncompatibleVariableOverride]
    event: list[EventTable] = Field(default=[])

    @model_validator(mode="after")
    def _bounded(self) -> TsunamiCase:
        """Refuse what would never end or fill the memory, and snapshots that are asked for twice."""
        if self.output.snapshots and (self.snapshots.every or self.snapshots.period):
            raise ValueError("snapshots: give only one of output.snapshots and the table snapshots")
        spans = [("gauges.every", self.gauges.every, _MOST_SAMPLES, "rows")]
        spans += [(f"boundary.{name}.every", b.every, _MOST_SAMPLES, "samples") for name, b in self.boundary.items()]
        spans += [("flow.longest", self.flow.value.longest, _MOST_STEPS, "steps")]
        spans += [("flow.dt", self.flow.value.dt or None, _MOST_STEPS, "steps")]
        for key, step, most, what in spans:
            if step is not None and self.run.time / step > most:
                raise ValueError(
                    f"{key}: {step:g} makes {self.run.time / step:.1e} {what} until run.time = {self.run.time:g}; "
                    f"at most {most:.0e} are possible"
                )
        return self
