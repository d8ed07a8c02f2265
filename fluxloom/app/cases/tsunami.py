"""The tsunami case: shallow water over any bed, its tables and how they become a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, model_validator

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel, OutputTable, RunTable, Table
from fluxloom.app.cases.expressions import Expression
from fluxloom.app.cases.rasters import read_raster, read_series
from fluxloom.app.cases.tsunami_run import Event, Plan, TsunamiRunner
from fluxloom.app.schedules import parse_schedule
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.fv.shallow_boundary import Boundary, Incident, Level, Outflow, Series, Wall
from fluxloom.mesh import bind, box2d, read_data, read_fields, renumber
from fluxloom.mesh.check import check as check_mesh
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.shallow_water import ShallowScheme, ShallowWater

__all__ = ["TsunamiApplication", "TsunamiCase"]

_DEFAULTS = ShallowScheme()
_BYTES_CELL, _BYTES_MESH = 8 * 45, 4 * 60
Spatial = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], npt.NDArray[np.float64]]


def _formula(*variables: str) -> Callable[[str], str]:
    """Return a check that a text is a formula in some variables."""

    def check(text: str) -> str:
        try:
            if text:
                Expression(text, variables)
        except CaseError as error:
            raise ValueError(str(error)) from None
        return text

    return check


InSpace = Annotated[str, AfterValidator(_formula("x", "y"))]
InTime = Annotated[str, AfterValidator(_formula("t"))]


def _one_of(table: Table, names: tuple[str, ...], *, needed: bool) -> None:
    """Raise unless one (or none) of some keys is given."""
    given = [name for name in names if getattr(table, name) not in (None, "")]
    if len(given) > 1:
        raise ValueError(f"give only one of {' and '.join(given)}")
    if needed and not given:
        raise ValueError(f"give one of the keys {', '.join(names)}")


def _changed(table: Table, names: tuple[str, ...]) -> list[str]:
    """Return the keys that do not have their default value."""
    fields = type(table).model_fields
    return [name for name in names if getattr(table, name) != fields[name].default]


class TsunamiMeshTable(Table):
    """``[mesh]``: a file, or a rectangle of triangles.

    Attributes
    ----------
    file
        SU2, Gmsh, VTU, VTKHDF or what meshio reads.
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
    x: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 1.0]
    y: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 1.0]
    nx: Annotated[int, Field(ge=1, le=50_000)] = 100
    ny: Annotated[int, Field(ge=1, le=50_000)] = 100
    perturb: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    renumber: Literal["none", "rcm", "gps"] = "none"

    @model_validator(mode="after")
    def _consistent(self) -> TsunamiMeshTable:
        if self.file and (extra := _changed(self, ("x", "y", "nx", "ny", "perturb"))):
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


class InitialTable(SurfaceTable):
    """``[initial]``: the surface at the start (at rest: 0), and the velocity.

    Attributes
    ----------
    velocity_x, velocity_y
        Formulas in x and y, metres per second.
    """

    velocity_x: InSpace = "0"
    velocity_y: InSpace = "0"

    @model_validator(mode="after")
    def _consistent(self) -> InitialTable:
        _one_of(self, ("expression", "file"), needed=False)
        return self


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


class TsunamiFlowTable(Table):
    """``[flow]``: the scheme; see `ShallowScheme`.

    Attributes
    ----------
    order, cfl, gravity, manning, dry, longest_step
        Numbers of the scheme.
    precision
        ``"float64"`` or ``"float32"``.
    """

    order: Literal[1, 2] = 2
    cfl: Annotated[float, Field(gt=0, le=1)] = _DEFAULTS.cfl
    gravity: Annotated[float, Field(gt=0)] = _DEFAULTS.gravity
    manning: Annotated[float, Field(ge=0, le=1)] = _DEFAULTS.manning
    dry: Annotated[float, Field(gt=0, lt=0.1)] = _DEFAULTS.dry
    longest_step: Annotated[float, Field(gt=0)] = _DEFAULTS.longest
    precision: Literal["float64", "float32"] = "float64"


class BoundaryTable(Table):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; the rest is wall.

    Attributes
    ----------
    type
        ``"wall"``, ``"outflow"`` (transmissive), ``"level"`` (the surface is given) or ``"incident"`` (a wave comes in,
        others leave).
    expression
        The surface over time t, of a level, or of the incident wave alone.
    file
        The same as lines ``time surface``.
    every
        Interval at which an expression is sampled, seconds.
    still
        Surface of the water at rest, for an incident wave.
    until
        Time from which on the boundary is a wall.
    """

    type: Literal["wall", "outflow", "level", "incident"]
    expression: InTime = ""
    file: str = ""
    every: Annotated[float, Field(gt=0)] | None = None
    still: float = 0.0
    until: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> BoundaryTable:
        driven = self.type in ("level", "incident")
        extra = _changed(self, ("expression", "file", "every", "still", "until"))
        if extra and not driven:
            raise ValueError(f"type = \"{self.type}\" has no {extra[0]}")
        _one_of(self, ("expression", "file"), needed=self.type == "level")
        return self


class GaugesTable(Table):
    """``[gauges]``: time series at points, written to gauges.csv.

    Attributes
    ----------
    points
        Name to ``[x, y]``.
    every
        Seconds between two rows; absent: those between two reports.
    """

    points: dict[str, Annotated[list[float], Field(min_length=2, max_length=2)]] = {}
    every: Annotated[float, Field(gt=0)] | None = None


class TsunamiRunTable(RunTable):
    """``[run]``: how long; an iteration is the time between two reports, of as many steps as it takes.

    Attributes
    ----------
    time
        End, seconds.
    """

    time: Annotated[float, Field(gt=0)] = 1.0
    iterations: Annotated[int, Field(ge=1, le=10**6)] = 100
    report_every: Annotated[int, Field(ge=1, le=10**6)] = 10


class TsunamiOutputTable(OutputTable):
    """``[output]``: what is written.

    Attributes
    ----------
    snapshots
        Number of files of fields at equal intervals of time, the start not counted; 0: the final fields alone.
    """

    snapshots: Annotated[int, Field(ge=0, le=10_000)] = 0


class TsunamiCase(CaseModel):
    """A case file of the shallow-water solver."""

    run: TsunamiRunTable
    output: TsunamiOutputTable = TsunamiOutputTable()
    mesh: TsunamiMeshTable = TsunamiMeshTable()
    bathymetry: BathymetryTable = BathymetryTable(expression="-1")
    initial: InitialTable = InitialTable()
    flow: TsunamiFlowTable = TsunamiFlowTable()
    boundary: dict[str, BoundaryTable] = {}
    gauges: GaugesTable = GaugesTable()
    event: list[EventTable] = []


class TsunamiApplication:
    """The solver ``tsunami`` of case files."""

    name = "tsunami"
    title = "tsunamis, dam breaks and run-up (shallow-water equations on triangles)"
    model: type[CaseModel] = TsunamiCase

    def estimate(self, case: TsunamiCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        if case.mesh.file:
            data = read_data(case.mesh.file)
            cells, points = data.n_cells, data.n_points
        else:
            cells, points = 2 * case.mesh.nx * case.mesh.ny, (case.mesh.nx + 1) * (case.mesh.ny + 1)
        file = cells * (7 * 8 + 3 * 8 + 9) + points * 24
        return Estimate(
            cells=cells,
            memory=cells * (_BYTES_CELL + _BYTES_MESH),
            output=file * (1 + case.output.snapshots),
            rows=(("triangles or polygons", f"{cells:,}"), ("nodes", f"{points:,}")),
        )

    def build(self, case: TsunamiCase, context: Context) -> TsunamiRunner:
        """Build the mesh, the bed and the loops.

        Raises
        ------
        CaseError
            For a patch, field or file that does not exist, and a grid that does not cover the mesh.
        """
        data, bed = _mesh_and_bed(case)
        _check_patches(case, data)
        flow = case.flow
        scheme = ShallowScheme(flow.order, flow.cfl, flow.gravity, flow.manning, flow.dry, flow.longest_step)
        initial = case.initial
        solver = ShallowWater(
            bind(data, context, dtype="float32" if context.device.refuses_double else "float64"),
            bed,
            _surface(initial, "0"),
            (Expression(initial.velocity_x), Expression(initial.velocity_y)),
            scheme=scheme,
            boundaries={name: _boundary(table, case.run.time) for name, table in case.boundary.items()},
            schedule=parse_schedule(case.run.schedule),
            fused=case.run.fused,
            dtype=flow.precision,
        )
        intervals = case.run.iterations
        lifts = [Event(event.time, _surface(event, "0")) for event in case.event]
        plan = Plan(
            name=case.case.name,
            end=case.run.time,
            intervals=intervals,
            gauges={name: (at[0], at[1]) for name, at in case.gauges.points.items()},
            sampling=case.gauges.every or case.run.time / intervals,
            snapshots=case.output.snapshots,
            events=tuple(sorted(lifts, key=lambda lift: lift.time)),
        )
        return TsunamiRunner(solver, plan)


def _mesh_and_bed(case: TsunamiCase) -> tuple[MeshData, Any]:
    """Return the mesh and the bed: a function, or values in the cells."""
    table = case.mesh
    if not table.file:
        if case.bathymetry.field:
            raise CaseError("bathymetry.field: a generated mesh has no fields; give expression or file")
        lengths, origin = (table.x[1] - table.x[0], table.y[1] - table.y[0]), (table.x[0], table.y[0])
        data = box2d(table.nx, table.ny, lengths, "triangle", origin=origin, perturb=table.perturb)
        return data, _surface(case.bathymetry, "-1")
    values = None
    if case.bathymetry.field:
        values = _field(table.file, case.bathymetry.field)
    data = read_data(table.file, orient=values is None)
    check_mesh(data)
    if table.renumber != "none":
        if values is not None:
            raise CaseError("mesh.renumber: not possible with bathymetry.field; renumber the file beforehand")
        data = renumber(data, table.renumber).mesh
    return data, _surface(case.bathymetry, "-1") if values is None else values


def _field(path: str, name: str) -> npt.NDArray[np.float64]:
    """Return a cell field of a mesh file; a field on the nodes is averaged."""
    fields = read_fields(path)
    known = [*fields.cell_data, *fields.point_data]
    if name not in known:
        text = ", ".join(known) or "none"
        raise CaseError(f"bathymetry.field: {path} has no field {name!r}{did_you_mean(name, known)} (fields: {text})")
    if name in fields.cell_data:
        return np.asarray(fields.cell_data[name], dtype=np.float64).reshape(-1)
    rows = fields.mesh.cell_nodes()
    at_nodes = np.asarray(fields.point_data[name], dtype=np.float64).reshape(-1)
    return np.add.reduceat(at_nodes[rows.indices], rows.offsets[:-1]) / rows.counts


def _surface(table: SurfaceTable, default: str) -> Spatial:
    """Return the elevation that a table describes."""
    if not table.file:
        return Expression(table.expression or default)
    raster = read_raster(table.file)
    if not table.positive_down:
        return raster
    return lambda x, y: -raster(x, y)


def _check_patches(case: TsunamiCase, data: MeshData) -> None:
    for name in case.boundary:
        if name not in data.patches:
            known = list(data.patches)
            text = ", ".join(known) or "none"
            raise CaseError(f"boundary.{name}: the mesh has no such patch{did_you_mean(name, known)} (patches: {text})")


def _boundary(table: BoundaryTable, end: float) -> Boundary:
    """Return the boundary condition that a table describes."""
    if table.type == "wall":
        return Wall()
    if table.type == "outflow":
        return Outflow()
    until = table.until if table.until is not None else float("inf")
    series = Series.constant(table.still)
    if table.file:
        series = Series(*read_series(table.file))
    elif table.expression:
        times = np.arange(0.0, end, table.every or end / 1000)
        times = np.append(times, end)
        series = Series(times, Expression(table.expression, ("t",))(times))
    return Level(series, until) if table.type == "level" else Incident(series, table.still, until)
