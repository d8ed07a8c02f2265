"""The tsunami case: shallow water over any bed; how its tables become a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.expressions import Expression, formula
from fluxloom.app.cases.rasters import read_raster, read_series
from fluxloom.app.cases.start_tables import started
from fluxloom.app.cases.tsunami_tables import BoundaryTable, SurfaceTable, TsunamiCase
from fluxloom.app.schedules import parse_schedule
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.flows.shallow_water import Event, Plan, TsunamiRun
from fluxloom.fv.shallow_boundary import Boundary, Incident, Level, Outflow, Series, Wall
from fluxloom.mesh import Mesh, bind, box2d, read_data, read_fields, renumber
from fluxloom.mesh.check import check as check_mesh
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import fetch, together
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.shallow_water import Field, ShallowWater

__all__ = ["TsunamiApplication", "TsunamiCase"]

_BYTES_CELL, _BYTES_MESH = 8 * 45, 4 * 60
_MAPS = ("cell_nodes", "face_cells", "face_nodes", "boundary_cell", "boundary_nodes")

Spatial = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], npt.NDArray[np.float64]]


class TsunamiApplication:
    """The solver ``tsunami`` of case files."""

    name = "tsunami"
    title = "tsunamis, dam breaks and run-up (shallow-water equations on triangles)"
    model: type[CaseModel] = TsunamiCase
    ranked = True

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

    def build(self, case: TsunamiCase, context: Context, shares: Sequence[float] | None = None) -> FlowRun[TsunamiRun]:
        """Build the mesh, on several ranks this rank's part of it, the bed and the loops. Collective.

        Raises
        ------
        CaseError
            For a patch, field or file that does not exist, and a grid that does not cover the mesh.
        """
        solver = _solver(case, context, shares or case.partition.given)
        lifts = [Event(event.time, _surface(event, "0", f"event.{k}")) for k, event in enumerate(case.event)]
        plan = Plan(
            end=case.run.time,
            intervals=case.run.iterations,
            gauges={name: (at[0], at[1]) for name, at in case.gauges.points.items()},
            sampling=case.gauges.every or case.run.time / case.run.iterations,
            snapshots=case.output.snapshots,
            events=tuple(sorted(lifts, key=lambda lift: lift.time)),
        )
        whole = cache(lambda: _mesh_and_bed(case)[0] if context.ranked else solver.mesh.data)
        flow, partition = TsunamiRun(solver, plan, whole), solver.mesh.part.report()
        if case.initial.of_result:
            started(case, case.initial, flow)
        return FlowRun(flow, case.case.name, Until(plan.end), whole, [flow.files], partition=partition)


def _solver(case: TsunamiCase, context: Context, shares: Sequence[float] | None) -> ShallowWater:
    """Return the water in its initial state. Collective."""
    mesh, bed = _bound(case, context, shares)
    flow, initial = case.flow, case.initial
    return ShallowWater(
        mesh,
        bed,
        formula("0", "initial.expression") if initial.of_result else _surface(initial, "0", "initial"),
        (formula(initial.velocity_x, "initial.velocity_x"), formula(initial.velocity_y, "initial.velocity_y")),
        scheme=flow.value,
        boundaries={name: _boundary(name, table, case.run.time) for name, table in case.boundary.items()},
        schedule=parse_schedule(case.run.schedule),
        fused=case.run.fused,
        dtype=flow.precision,
    )


def _bound(case: TsunamiCase, context: Context, shares: Sequence[float] | None) -> tuple[Mesh, Field]:
    """Return the mesh in its context, and the bed; on several ranks rank 0 makes the mesh and hands out parts."""
    comm = context.comm
    with activity("making the mesh", case.mesh.file):
        data, values = together(comm, lambda: _checked(case) if comm.rank == 0 else (None, None))
    mesh = bind(
        data, context, dtype="float32" if context.device.refuses_double else "float64",
        partition=case.partition.method, shares=shares, maps=_MAPS,
    )  # fmt: skip
    if not case.bathymetry.field:
        return mesh, _surface(case.bathymetry, "-1", "bathymetry")
    if mesh.cells.part is not None:
        part = mesh.cells.part
        starts = np.array([0, *[part.total] * comm.size])
        values = fetch(comm, np.empty(0) if values is None else values, starts, part.numbers[: part.owned])
    assert values is not None
    return mesh, values


def _checked(case: TsunamiCase) -> tuple[MeshData, npt.NDArray[np.float64] | None]:
    data, values = _mesh_and_bed(case)
    _check_patches(case, data)
    return data, values


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


def _check_patches(case: TsunamiCase, data: MeshData) -> None:
    for name in case.boundary:
        if name not in data.patches:
            known = list(data.patches)
            text = ", ".join(known) or "none"
            raise CaseError(f"boundary.{name}: the mesh has no such patch{did_you_mean(name, known)} (patches: {text})")


def _boundary(name: str, table: BoundaryTable, end: float) -> Boundary:
    """Return the boundary condition that a table describes for the patch of a name."""
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
        expression = Expression(table.expression, ("t",))
        values = expression(times)
        for k in np.flatnonzero(~np.isfinite(values))[:1].tolist():
            raise CaseError(f"boundary.{name}.expression: {expression.shown} is {values[k]:g} at t = {times[k]:g}")
        series = Series(times, values)
    return Level(series, until) if table.type == "level" else Incident(series, table.still, until)
