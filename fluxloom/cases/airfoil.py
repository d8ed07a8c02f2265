"""The Airfoil case: inviscid flow around NACA 0012, its tables and its runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel, parse_schedule
from fluxloom.cases.files.strategy_tables import Table
from fluxloom.cases.shared.monitors import FlowCase, ForcesTable, HistoryTable, References, run_of
from fluxloom.cases.shared.start_tables import StartTable, started
from fluxloom.dsl.context import Context
from fluxloom.flows.airfoil.flow import Airfoil
from fluxloom.monitors.forces import Reference
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.airfoil.flow import AirfoilConstants

if TYPE_CHECKING:
    from fluxloom.monitors.forces import Reference

__all__ = ["AirfoilApplication", "AirfoilCase", "mesh_sizes"]

_DEFAULTS = AirfoilConstants()


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

    scaled = True

    mesh: AirfoilMeshTable = AirfoilMeshTable()
    flow: FlowTable = FlowTable()
    initial: StartTable = StartTable()
    history: AirfoilHistoryTable = AirfoilHistoryTable()  # pyright: ignore[reportIncompatibleVariableOverride]


def _references(constants: AirfoilConstants) -> References:
    """Return what coefficients refer to: the free stream along x, with pressure and density 1, and the chord."""
    rho, u, _, _ = constants.far_field

    def found(table: ForcesTable) -> Reference:
        """Return the reference of a table."""
        from fluxloom.monitors.forces import Reference

        drag, lift = table.drag or Reference.drag, table.lift or Reference.lift
        return Reference(table.speed or u, table.area or 1.0, table.length or 1.0, rho, drag, lift)

    return found


def mesh_sizes(i: int, j: int) -> dict[str, int]:
    """Return nodes, cells, interior and boundary edges of the mesh ``i, j``."""
    cells = 3 * i * j
    return {
        "nodes": (3 * i + 1) * (j + 1),
        "cells": cells,
        "edges": 2 * cells - 2 * i - j,
        "boundary_edges": 4 * i + 2 * j,
    }


class AirfoilApplication:
    """The solver ``airfoil`` of case files."""

    name = "airfoil"
    title = "steady inviscid flow around NACA 0012 (two-dimensional Euler equations)"
    model: type[CaseModel] = AirfoilCase
    distributed = True

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

    def build(self, case: AirfoilCase, context: Context, shares: Sequence[float] | None = None) -> FlowRun[Airfoil]:
        """Build the mesh, on several ranks this rank's part of it, and the loops. Collective."""
        gas = case.flow
        constants = AirfoilConstants(gas.gamma, gas.cfl, gas.eps, gas.mach)
        flow = Airfoil(
            (case.mesh.i, case.mesh.j), context, constants=constants,
            schedule=parse_schedule(case.run.schedule), fused=case.run.fused, method=case.partition.method,
            shares=shares or case.partition.given,
        )  # fmt: skip
        started(case, case.initial, flow)
        return run_of(case, flow, Until(), (), _references(constants), 1.0)
