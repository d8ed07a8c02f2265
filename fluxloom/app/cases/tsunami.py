"""The tsunami case: shallow water over any bed; how its tables become a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.expressions import Expression
from fluxloom.app.cases.rasters import read_raster, read_series
from fluxloom.app.cases.tsunami_run import Event, Plan, TsunamiRunner
from fluxloom.app.cases.tsunami_tables import BoundaryTable, SurfaceTable, TsunamiCase
from fluxloom.app.schedules import parse_schedule
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.fv.shallow_boundary import Boundary, Incident, Level, Outflow, Series, Wall
from fluxloom.fv.shallow_scheme import ShallowScheme
from fluxloom.mesh import bind, box2d, read_data, read_fields, renumber
from fluxloom.mesh.check import check as check_mesh
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.shallow_water import ShallowWater

__all__ = ["TsunamiApplication", "TsunamiCase"]

_BYTES_CELL, _BYTES_MESH = 8 * 45, 4 * 60

Spatial = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], npt.NDArray[np.float64]]


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
