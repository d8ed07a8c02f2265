"""The tsunami case: shallow water over any bed; how its tables become a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel, parse_schedule
from fluxloom.cases.shallow.tables import BoundaryTable, InitialTable, SurfaceTable, TsunamiCase
from fluxloom.cases.shared.mesh import by_key
from fluxloom.cases.shared.monitors import run_of
from fluxloom.cases.shared.start_tables import started
from fluxloom.cases.shared.wall_motion import VELOCITY_KEYS, velocity_values
from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.rows import fetch
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.flows.shallow.flow import Event, Plan, ShallowWater, WaterDomain, water_mesh
from fluxloom.flows.volumes import Domain
from fluxloom.fv.shallow.boundary import Boundary, Discharge, Incident, Level, Outflow, Wall
from fluxloom.mesh import box2d, read_data, read_fields, renumber
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.quality.check import check as check_mesh
from fluxloom.monitors.gauges import Gauges
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.run.snapshots import Snapshots
from fluxloom.solvers.shallow.flow import Field
from fluxloom.values.expressions import formula
from fluxloom.values.tables import TimeSeries, read_raster
from fluxloom.values.value import Formula, Value, value_of

__all__ = ["TsunamiApplication", "TsunamiCase"]

_SOURCES = {"rain": "flow.rain", "wind_stress": "flow.wind_stress"}
_COARSE, _WITHIN, _MOST_SAMPLES = 1e-3, 0.382, 1e6
"""Of a formula that is sampled: part by which it may be off in the mean between samples, and where that is sought."""
_BYTES_CELL, _BYTES_MESH = 8 * 45, 4 * 60

Array = npt.NDArray[np.float64]
Spatial = Callable[[Array, Array], Array]


class TsunamiApplication:
    """The solver ``tsunami`` of case files."""

    name = "tsunami"
    title = "tsunamis, dam breaks and run-up (shallow-water equations on triangles)"
    model: type[CaseModel] = TsunamiCase
    distributed = True

    def estimate(self, case: TsunamiCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        if case.mesh.file:
            data = read_data(case.mesh.file, zone=case.mesh.zone)
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

    def build(
        self, case: TsunamiCase, context: Context, shares: Sequence[float] | None = None
    ) -> FlowRun[ShallowWater]:
        """Build the mesh, on several ranks this rank's part of it, the bed and the loops. Collective.

        Raises
        ------
        CaseError
            For a patch, field or file that does not exist, and a grid that does not cover the mesh.
        """
        lifts = [Event(event.time, _surface(event, "0", f"event.{k}")) for k, event in enumerate(case.event)]
        plan = Plan(
            end=case.run.time,
            intervals=case.run.iterations,
            gauges={name: (at[0], at[1]) for name, at in case.gauges.points.items()},
            events=tuple(sorted(lifts, key=lambda lift: lift.time)),
        )
        boundaries = {name: _boundary(name, table, case.run.time) for name, table in case.boundary.items()}
        domain, bed = _bound(case, context, shares or case.partition.given)
        initial = case.initial
        of_result = initial.of_result
        elevation = formula("0", "initial.expression") if of_result else _surface(initial, "0", "initial")
        with by_key(**_SOURCES):
            flow = ShallowWater(
                domain, context, plan=plan, bed=bed, elevation=elevation, velocity=_velocity(initial),
                boundaries=boundaries, scheme=case.flow.value, schedule=parse_schedule(case.run.schedule),
                fused=case.run.fused, dtype=case.flow.precision,
            )  # fmt: skip
        if of_result:
            started(case, case.initial, flow)
        monitors: list[Monitor] = []
        if case.gauges.points:
            monitors.append(Gauges(case.gauges.points, case.gauges.every or plan.end / plan.intervals))
            monitors[-1].table = "gauges"
        if count := case.output.snapshots:
            monitors.append(Snapshots(period=plan.end / count, fields=case.output.fields))
        with by_key(dt="flow.dt", **_SOURCES):
            return run_of(case, flow, Until(plan.end), monitors)


def _bound(case: TsunamiCase, context: Context, shares: Sequence[float] | None) -> tuple[WaterDomain, Field]:
    """Return the mesh in its context, and the bed; on several ranks rank 0 makes the mesh and hands out parts."""
    comm, part = context.comm, case.partition
    with activity("making the mesh", case.mesh.file):
        data, values = raise_on_all_ranks(comm, lambda: _mesh_and_bed(case) if comm.rank == 0 else (None, None))
    whole = Domain(lambda: _mesh_and_bed(case)[0], method=part.method, shares=shares)
    with by_key():
        mesh = water_mesh(whole.keeping(data), context, case.boundary).mesh
    found = WaterDomain(whole, mesh)
    if not case.bathymetry.field:
        return found, _surface(case.bathymetry, "-1", "bathymetry")
    if (cells := mesh.cells.part) is not None:
        starts = np.array([0, *[cells.total] * comm.size])
        values = fetch(comm, np.empty(0) if values is None else values, starts, cells.numbers[: cells.owned])
    assert values is not None
    return found, values


def _mesh_and_bed(case: TsunamiCase) -> tuple[MeshData, npt.NDArray[np.float64] | None]:
    """Return the whole mesh, and the bed in its cells where the file of the mesh has it."""
    table = case.mesh
    if not table.file:
        if case.bathymetry.field:
            raise CaseError("bathymetry.field: a generated mesh has no fields; give expression or file")
        lengths, origin = (table.x[1] - table.x[0], table.y[1] - table.y[0]), (table.x[0], table.y[0])
        return box2d(table.nx, table.ny, lengths, "triangle", origin=origin, perturb=table.perturb), None
    values = None
    if case.bathymetry.field:
        values = _field(table.file, case.bathymetry.field, table.zone)
    data = read_data(table.file, orient=values is None, zone=table.zone)
    if data.dimension != 2:
        raise CaseError(f"mesh.file: {table.file} has {data.dimension} dimensions; the water needs a plane mesh")
    check_mesh(data)
    if table.renumber != "none":
        if values is not None:
            raise CaseError("mesh.renumber: not possible with bathymetry.field; renumber the file beforehand")
        data = renumber(data, table.renumber).mesh
    return data, values


def _field(path: str, name: str, zone: str | int) -> npt.NDArray[np.float64]:
    """Return a cell field of a mesh file; a field on the nodes is averaged."""
    fields = read_fields(path, zone=zone)
    known = [*fields.cell_data, *fields.point_data]
    if name not in known:
        text = ", ".join(known) or "none"
        raise CaseError(f"bathymetry.field: {path} has no field {name!r}{did_you_mean(name, known)} (fields: {text})")
    if name in fields.cell_data:
        return np.asarray(fields.cell_data[name], dtype=np.float64).reshape(-1)
    rows = fields.mesh.cell_nodes()
    at_nodes = np.asarray(fields.point_data[name], dtype=np.float64).reshape(-1)
    return np.add.reduceat(at_nodes[rows.indices], rows.offsets[:-1]) / rows.counts


def _surface(table: SurfaceTable, default: str, key: str) -> Spatial:
    """Return the elevation that a table describes."""
    if not table.file:
        return formula(table.expression or default, f"{key}.expression")
    raster = read_raster(table.file)
    if not table.positive_down:
        return raster
    return lambda x, y: -raster(x, y)


def _velocity(table: InitialTable) -> tuple[Spatial, ...]:
    """Return the components of the velocity at the start."""

    def along(part: float | Value, key: str) -> Spatial:
        """Return one of them."""

        def values(x: Array, y: Array) -> Array:
            """Return it at places."""
            try:
                return value_of(part).at(np.stack([x, y], axis=1), 0.0, f"initial.{key}")
            except SolverError as error:
                raise CaseError(str(error)) from None

        return values

    return tuple(map(along, velocity_values(table, "initial", 2) or (0.0, 0.0), VELOCITY_KEYS))


def _boundary(name: str, table: BoundaryTable, end: float) -> Boundary:
    """Return the boundary condition that a table describes for the patch of a name."""
    if table.type == "wall":
        return Wall()
    if table.type == "outflow":
        return Outflow()
    until = table.until if table.until is not None else float("inf")
    given = table.still if table.given is None else table.given
    if isinstance(given, Formula) and not given.in_space:
        key = "discharge" if table.type == "discharge" else "surface"
        given = _sampled(given, f"boundary.{name}.{key}", table.every, end)
    if table.type == "incident":
        return Incident(given, table.still, until)
    return Discharge(given, until) if table.type == "discharge" else Level(given, until)


def _sampled(formula: Formula, key: str, every: float | None, end: float) -> TimeSeries:
    """Return a formula as a series: steps need not bring it to the device one by one then.

    Raises
    ------
    CaseError
        If a value is not finite, or a thousandth of the time, and much less, is too coarse for it.
    """
    step = every or end / 1000
    while step * _MOST_SAMPLES >= end:
        times = np.append(np.arange(0.0, end, step), end)
        middle = times[:-1] + _WITHIN * np.diff(times)
        values, between = (formula.expression(*(np.zeros_like(at),) * 3, at) for at in (times, middle))
        for k in np.flatnonzero(~np.isfinite(values))[:1].tolist():
            raise CaseError(f"{key}: {formula} is {values[k]:g} at t = {times[k]:g}")
        off = np.abs(np.interp(middle, times, values) - between).mean()
        if every or not off > _COARSE * max(np.abs(values).max(), np.abs(between).max()):
            return TimeSeries(times=times, numbers=values, outside="hold")
        step *= 0.5
    raise CaseError(f"{key}: {formula} changes so fast that {_MOST_SAMPLES:.0e} samples of it do not say what it is: "
                    "give a slower one, or every, at which it is sampled")  # fmt: skip
