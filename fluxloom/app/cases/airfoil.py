"""The Airfoil case: inviscid flow around NACA 0012, its tables and its runner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.flow_monitors import FlowCase, HistoryTable, common_monitors
from fluxloom.app.cases.start_tables import StartTable, started
from fluxloom.app.schedules import parse_schedule
from fluxloom.app.tables import Table
from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError
from fluxloom.core.layout import Layout
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.schedule import Schedule
from fluxloom.flows.gas_watch import airfoil_watch
from fluxloom.mesh.airfoil import AirfoilMesh, airfoil_mesh, airfoil_slice
from fluxloom.mesh.distribute import Partition, RankedMesh, distribute
from fluxloom.mesh.geometry import cell_geometry
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.flow import Flow, HistoryPanel, Picture, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.monitor import Monitor
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.airfoil import Airfoil, AirfoilConstants

__all__ = ["AirfoilApplication", "AirfoilCase", "AirfoilRun", "airfoil_part", "airfoil_run", "mesh_sizes"]

_DEFAULTS = AirfoilConstants()
_WINDOW = (-0.5, 1.5, -0.75, 0.75)


class AirfoilMeshTable(Table):
    """``[mesh]``: 3 i by j quadrilaterals around the section.

    Attributes
    ----------
    type
        ``"airfoil"``: the generated mesh of the published benchmark.
    i
        Cells along the section.
    j
        Cells away from it.
    """

    type: Literal["airfoil"] = "airfoil"
    i: Annotated[int, Field(ge=2, le=20_000)] = 400
    j: Annotated[int, Field(ge=1, le=30_000)] = 600


class FlowTable(Table):
    """``[flow]``: gas and scheme; the defaults are the benchmark's constants, rounded to single precision.

    Attributes
    ----------
    mach
        Mach number of the free stream.
    cfl
        Courant number of the local time step.
    eps
        Coefficient of the artificial dissipation.
    gamma
        Ratio of specific heats.
    """

    mach: Annotated[float, Field(gt=0, lt=5)] = _DEFAULTS.mach
    cfl: Annotated[float, Field(gt=0, le=10)] = _DEFAULTS.cfl
    eps: Annotated[float, Field(ge=0, le=1)] = _DEFAULTS.eps
    gamma: Annotated[float, Field(gt=1, le=2)] = _DEFAULTS.gamma


class AirfoilHistoryTable(HistoryTable):
    """``[history]``: ``history.csv``, the residual over the iterations.

    Attributes
    ----------
    every
        Iterations between two lines; 0: there is no such file.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0


class AirfoilCase(FlowCase):
    """A case file of the Airfoil solver."""

    mesh: AirfoilMeshTable = AirfoilMeshTable()
    flow: FlowTable = FlowTable()
    initial: StartTable = StartTable()
    history: AirfoilHistoryTable = AirfoilHistoryTable()  # pyright: ignore[reportIncompatibleVariableOverride]


def mesh_sizes(i: int, j: int) -> dict[str, int]:
    """Return nodes, cells, interior and boundary edges of the mesh ``i, j``."""
    cells = 3 * i * j
    return {
        "nodes": (3 * i + 1) * (j + 1),
        "cells": cells,
        "edges": 2 * cells - 2 * i - j,
        "boundary_edges": 4 * i + 2 * j,
    }


def airfoil_part(
    context: Context, i: int, j: int, method: Partition = "auto", shares: Sequence[float] | None = None
) -> AirfoilMesh | RankedMesh:
    """Return what a rank needs of the mesh: everything on a rank alone, else its part, made from slices.

    Parameters
    ----------
    context
        Has the ranks; on several of them this is collective.
    i, j
        As in `fluxloom.mesh.airfoil.airfoil_mesh`.
    method, shares
        As `fluxloom.mesh.distribute.distribute` takes them.
    """
    comm = context.comm
    if comm.size == 1:
        return airfoil_mesh(i, j)
    return distribute(airfoil_slice(i, j, comm.rank, comm.size), comm, method=method, shares=shares)


class AirfoilRun(Flow):
    """The Airfoil solver, ready to advance.

    Parameters
    ----------
    solver
        In its initial state.
    constants
        Gas and scheme.
    """

    def __init__(self, solver: Airfoil, constants: AirfoilConstants) -> None:
        self.solver, self.constants, self.context = solver, constants, solver.context

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.cells.total

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.cells.part

    @property
    def loops(self) -> Sequence[Loop]:
        """The five loops."""
        return self.solver.loops

    @property
    def chain(self) -> Chain | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One iteration."""
        return self.solver.chain

    @property
    def steps(self) -> int:
        """Iterations since the flow began."""
        return self.solver.iterations

    def start_from(self, start: Start) -> None:
        """Start from density, velocity and pressure of another result, over those of its free stream."""
        solver, cells = self.solver, self.solver.cells
        mesh = MeshData(solver.x.read().astype(np.float64), {"quad": solver.c2n.table[: cells.size]})
        if not start.held({"run.flow.solver.q": solver.q}, "mesh"):
            names = ("density", "u", "v", "pressure")
            found = start.at(cell_geometry(mesh)[1], names, bounded=True)
            rho, u, v, p = (found[name] for name in names)
            energy = p / (self.constants.gamma - 1.0) + 0.5 * rho * (u * u + v * v)
            solver.q.write(np.stack([rho, rho * u, rho * v, energy], axis=1))
        _, solver.iterations = start.clock

    def advance(self, until: Until) -> float:
        """Run one iteration, two sub-steps; return the root mean square change of the last one."""
        self.solver.iterate()
        return self.solver.rms()

    def columns(self) -> dict[str, float]:
        """Return the iteration and the root mean square change."""
        return {"iteration": float(self.steps), "residual": self.solver.rms() if self.steps else math.nan}

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return density, velocity, pressure, energy and Mach number in the owned cells."""
        with np.errstate(all="ignore"):
            return self.solver.fields()

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return the residual and the extremes of pressure and Mach number."""
        fields, comm = self.fields(), self.context.comm
        values = [fields[name] for name in ("pressure", "mach")]
        low = comm.reduce(np.array([v.min(initial=np.inf) for v in values]), "min")
        high = comm.reduce(np.array([v.max(initial=-np.inf) for v in values]), "max")
        return (
            ("residual", f"{self.solver.rms():.10e}"),
            ("pressure", f"{low[0]:.4f} to {high[0]:.4f} (free stream 1)"),
            ("Mach number", f"{low[1]:.4f} to {high[1]:.4f} (free stream {self.constants.mach:.4g})"),
        )

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return pressure and Mach number around the section."""
        where = f"NACA 0012 at Mach {self.constants.mach:.3g} (iteration {self.steps:,})"
        return (
            Picture("pressure", f"Pressure around {where}", "pressure / free stream", _WINDOW, "RdBu_r", 1.0),
            Picture("mach", f"Mach number around {where}", "local Mach number", _WINDOW, "viridis"),
        )

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return the residual."""
        return "iteration", [HistoryPanel("root mean square change", ("residual",), logarithmic=True)]

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return airfoil_watch(self.solver, self.constants.gamma, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return f"lower flow.cfl (now {self.constants.cfl:.3g}) or raise flow.eps (now {self.constants.eps:.3g})"


def airfoil_run(
    context: Context, mesh: AirfoilMesh | RankedMesh, constants: AirfoilConstants, schedule: Schedule, *,
    fused: bool = True, layout: Layout | None = None, shape: tuple[int, int] | None = None, name: str = "airfoil",
    monitors: Sequence[Monitor] = (),
) -> FlowRun[AirfoilRun]:  # fmt: skip
    """Return the Airfoil solver, ready to be run. Collective.

    Parameters
    ----------
    context
        Where it runs.
    mesh
        The mesh; on several ranks this rank's part, which is not kept.
    constants
        Gas and scheme.
    schedule
        For every loop.
    fused
        Whether loops may be fused.
    layout
        Of values with several components.
    shape
        The integers that a mesh in parts was made with; without them the whole mesh is not there.
    name, monitors
        As of `FlowRun`.
    """
    solver = Airfoil(context, mesh, constants, schedule=schedule, fused=fused, layout=layout)
    kept = None if isinstance(mesh, RankedMesh) else mesh

    def whole() -> MeshData:
        """Return the whole mesh with the two sides of the cut joined; on several ranks it is made anew."""
        if kept is not None:
            return kept.to_mesh_data()
        if shape is None:
            raise MeshError("the mesh was given in parts without the integers it was made with: the whole is not known")
        return airfoil_mesh(*shape).to_mesh_data()

    return FlowRun(AirfoilRun(solver, constants), name, Until(), whole, monitors, partition=solver.partition)


class AirfoilApplication:
    """The solver ``airfoil`` of case files."""

    name = "airfoil"
    title = "steady inviscid flow around NACA 0012 (two-dimensional Euler equations)"
    model: type[CaseModel] = AirfoilCase
    ranked = True

    def estimate(self, case: AirfoilCase) -> Estimate:
        """Return the size of a case without building it."""
        sizes = mesh_sizes(case.mesh.i, case.mesh.j)
        values = 2 * sizes["nodes"] + (4 + 4 + 4 + 1) * sizes["cells"]
        links = 4 * sizes["cells"] + 4 * sizes["edges"] + 3 * sizes["boundary_edges"]
        arrays = 8 * values + 4 * links
        return Estimate(
            cells=sizes["cells"],
            memory=2 * arrays,  # the mesh, the dats, and the tables of the schedules
            output=sizes["cells"] * (6 * 8 + 4 * 8 + 9) + sizes["nodes"] * 24,
            rows=tuple((name.replace("_", " "), f"{count:,}") for name, count in sizes.items()),
        )

    def build(self, case: AirfoilCase, context: Context, shares: Sequence[float] | None = None) -> FlowRun[AirfoilRun]:
        """Build the mesh, on several ranks this rank's part of it, and the loops. Collective."""
        flow, shape = case.flow, (case.mesh.i, case.mesh.j)
        constants = AirfoilConstants(gamma=flow.gamma, cfl=flow.cfl, eps=flow.eps, mach=flow.mach)
        with activity("making the mesh", " x ".join(str(count) for count in shape)):
            mesh = airfoil_part(context, *shape, case.partition.method, shares or case.partition.given)
        schedule = parse_schedule(case.run.schedule)
        run = airfoil_run(
            context, mesh, constants, schedule, fused=case.run.fused, shape=shape, name=case.case.name,
            monitors=common_monitors(case),
        )  # fmt: skip
        started(case, case.initial, run.flow)
        return run
