"""The case of incompressible flow on the edges of triangles and tetrahedra: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.edge_flow_observers import EdgeForcesObserver, edge_probes_observer
from fluxloom.app.cases.edge_flow_run import EdgeFlowRunner
from fluxloom.app.cases.edge_flow_tables import EdgeBoundaryTable, EdgeFlowCase, EdgeFluidTable
from fluxloom.app.cases.expressions import formula
from fluxloom.app.cases.flow_checkpoint import checkpoint_plan
from fluxloom.app.cases.flow_choices import (
    check_balance,
    eddy_model,
    given_velocity,
    initial_velocity,
    pressure_recipe,
)
from fluxloom.app.cases.flow_mesh import flow_mesh, flow_mesh_sizes
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_plan import FlowPlan
from fluxloom.app.cases.flow_volumes import check_length, check_patches
from fluxloom.app.cases.strategy_tables import strategy_of
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.fe.point_mesh import PointMesh, point_mesh
from fluxloom.fv.incompressible_boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg.status import Stop
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import together
from fluxloom.solvers.edge_boundary import EdgePatch, WallLaw
from fluxloom.solvers.edge_flow import EdgeFlow
from fluxloom.solvers.edge_scheme import EdgeScheme

__all__ = ["EdgeFlowApplication", "EdgeFlowCase"]

Array = npt.NDArray[np.float64]

_BYTES = {2: 4_000, 3: 8_000}
"""Of a point by dimension: operators, loops and matrices, on the host while they are assembled and on the device."""

_TYPES = "wall, inflow, outflow, symmetry or wall_law"

_ALONG = 1e-3
"""Part of ``|u| A`` of a patch that may pass a wall: files with coordinates in single precision have rough normals."""


class EdgeFlowApplication:
    """The solver ``edge_flow`` of case files."""

    name = "edge_flow"
    title = "incompressible flow on triangles and tetrahedra (finite elements, edge by edge)"
    model: type[CaseModel] = EdgeFlowCase
    ranked = True

    def estimate(self, case: EdgeFlowCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        cells, points, d = flow_mesh_sizes(case.mesh)
        return Estimate(
            cells=cells,
            memory=points * _BYTES[d],
            output=points * (8 * (d + 4) + 24) + cells * (8 * (d + 1) + 9),
            rows=(("cells", f"{cells:,} in {d} dimensions"), ("nodes", f"{points:,}")),
        )

    def build(self, case: EdgeFlowCase, context: Context) -> EdgeFlowRunner:
        """Build the mesh, the operators and the loops, and make the initial velocity free of divergence. Collective.

        Raises
        ------
        CaseError
            For other cells than triangles or tetrahedra, a patch without a table or a table without a patch,
            velocities that do not fit the mesh or let more in than out, and what the preconditioner refuses.
        """
        comm, time = context.comm, case.time

        def checked() -> MeshData:
            mesh = flow_mesh(case.mesh)
            check_patches(mesh, None, case.boundary, _TYPES)
            return mesh

        data = together(comm, lambda: checked() if comm.rank == 0 else None)
        with _explained("mesh"):
            mesh = point_mesh(context, data, method=case.partition.method, shares=case.partition.given)
        solver = _solver(case, mesh)
        _check_walls(case, solver)
        found = solver.loops.boundary
        check_balance(comm, *found.through, bool(found.outlet.any()))
        status = solver.initialise(initial_velocity(case.initial, mesh.dimension))
        if not status.converged:
            raise CaseError(
                f"pressure.iterations: {case.pressure.iterations} do not suffice to make the initial velocity free of "
                "divergence; raise them or choose another pressure.preconditioner"
            )
        if not time.dt and not np.isfinite(solver.stable_step(time.courant)):
            raise CaseError("time.dt: a fluid at rest without viscosity has no largest stable step: give dt")
        if time.dt:
            solver.prepare(time.dt)
        plan = FlowPlan(
            case.case.name, time.dt, time.end, time.steady, time.courant, history=case.history.every,
            checkpoint=checkpoint_plan(case, case.checkpoint),
        )  # fmt: skip
        part = mesh.mesh.part
        whole = (lambda: flow_mesh(case.mesh)) if data is None else (lambda: data)
        report = None if part is None else part.ranked.decomposition.report()
        return EdgeFlowRunner(solver, whole, plan, _observers(case, solver), report)


def _solver(case: EdgeFlowCase, mesh: PointMesh) -> EdgeFlow:
    """Return the solver of a case. Collective."""
    pressure, d = case.pressure, mesh.dimension
    check_length("fluid.force", len(case.fluid.force), d)
    # The inverse of the diagonal is what the solver takes by itself, anew in each step.
    recipe = None if pressure.preconditioner == "jacobi" else pressure_recipe(pressure)
    with _explained("mesh", f'pressure.preconditioner = "{pressure.preconditioner}"'):
        return EdgeFlow(
            mesh, _viscosity(case.fluid, d), _boundaries(case.boundary, d), force=tuple(case.fluid.force),
            scheme=strategy_of(EdgeScheme, case.scheme), model=eddy_model(case.les),
            stop=Stop(rtol=pressure.rtol, iterations=pressure.iterations), preconditioner=recipe,
            krylov=pressure.solver,
        )  # fmt: skip


def _viscosity(table: EdgeFluidTable, d: int) -> float | Callable[[Array], Array]:
    """Return the viscosity, a formula as a function of places ``(n, d)``."""
    if not isinstance(table.viscosity, str):
        return table.viscosity
    values = formula(table.viscosity, "fluid.viscosity", ("x", "y", "z")[:d])

    def at(places: Array) -> Array:
        found = np.asarray(values(*places.T))
        if not (np.isfinite(found).all() and (found >= 0.0).all()):
            raise CaseError("fluid.viscosity: the formula has values that are below 0 or not finite")
        return found

    return at


def _boundaries(tables: Mapping[str, EdgeBoundaryTable], d: int) -> dict[str, EdgePatch]:
    """Return the boundaries by patch."""
    found: dict[str, EdgePatch] = {}
    for name, table in tables.items():
        check_length(f"boundary.{name}.velocity", len(table.velocity), d)
        if table.type == "wall":
            found[name] = NoSlip(tuple(table.velocity))
        elif table.type == "inflow":
            formulas = given_velocity(table, f"boundary.{name}", d)
            found[name] = Inflow(tuple(table.velocity) if table.velocity else formulas)
        elif table.type == "wall_law":
            found[name] = WallLaw(table.distance, table.kappa, table.constant)
        else:
            found[name] = Outflow() if table.type == "outflow" else Symmetry()
    return found


def _check_walls(case: EdgeFlowCase, solver: EdgeFlow) -> None:
    """Raise `CaseError` where a wall moves along its normal. Collective."""
    for name, table in case.boundary.items():
        if table.type != "wall" or not any(table.velocity):
            continue
        velocity, patch = np.array(table.velocity), solver.mesh.patches[name]
        size = np.linalg.norm(patch.areas, axis=1)
        through = bool((np.abs(patch.areas @ velocity) > _ALONG * np.linalg.norm(velocity) * size).any())
        if any(solver.context.comm.allgather(through)):
            raise CaseError(
                f"boundary.{name}.velocity: a wall slides along itself, and {table.velocity} has a part along "
                'its normal; type = "inflow" lets fluid through'
            )


def _observers(case: EdgeFlowCase, solver: EdgeFlow) -> list[Observer]:
    """Return what the case looks at. Collective."""
    found: list[Observer] = []
    for name, table in case.forces.items():
        with _explained(f"forces.{name}"):
            found.append(EdgeForcesObserver(solver, name, table))
    if case.probes.points:
        with _explained("probes"):
            found.append(edge_probes_observer(solver, case.probes))
    return found


@contextmanager
def _explained(key: str, other: str = "") -> Iterator[None]:
    """Make errors ones of a key of the case file: those of the mesh of the first, those of the solver of the second."""
    try:
        yield
    except MeshError as error:
        raise CaseError(f"{key}: {error}") from None
    except SolverError as error:
        raise CaseError(f"{other or key}: {error}") from None
