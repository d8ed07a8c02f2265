"""The case of incompressible flow on any mesh: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.flow_choices import check_balance, initial_velocity, velocity_noise
from fluxloom.app.cases.flow_mesh import flow_mesh, flow_mesh_sizes
from fluxloom.app.cases.flow_monitors import run_of
from fluxloom.app.cases.flow_start import check_start, check_step, explained, flow_boundary, passes, slides_only
from fluxloom.app.cases.flow_volumes import check_length, flow_volumes
from fluxloom.app.cases.incompressible_observers import (
    FlowAveragesObserver,
    ForcesObserver,
    ScalarObserver,
    probes_observer,
)
from fluxloom.app.cases.incompressible_scalars import flow_scalars
from fluxloom.app.cases.incompressible_tables import (
    FlowBoundaryTable,
    IncompressibleCase,
)
from fluxloom.app.cases.start_tables import started
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.incompressible import IncompressibleRun
from fluxloom.fv.incompressible_boundary import Boundary, FlowConditions, NoSlip
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.mesh.rows import together
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["IncompressibleApplication", "IncompressibleCase"]

Array = npt.NDArray[np.float64]

_BYTES = {2: 2_500, 3: 4_000}
"""Of a cell by dimension, as measured: matrices on the host while they are assembled, and on the device."""

_TYPES = "wall, inflow, outflow or symmetry"


class IncompressibleApplication:
    """The solver ``incompressible`` of case files."""

    name = "incompressible"
    title = "incompressible flow on any mesh (symmetry-preserving finite volumes)"
    model: type[CaseModel] = IncompressibleCase
    ranked = True

    def estimate(self, case: IncompressibleCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        cells, points, d = flow_mesh_sizes(case.mesh)
        return Estimate(
            cells=cells,
            memory=cells * _BYTES[d],
            output=cells * (8 * (d + 2) + 8 * 4 + 9) + points * 24,
            rows=(("cells", f"{cells:,} in {d} dimensions"), ("nodes", f"{points:,}")),
        )

    def build(
        self, case: IncompressibleCase, context: Context, shares: Sequence[float] | None = None
    ) -> FlowRun[IncompressibleRun]:
        """Build the mesh, the matrices and the loops, and make the initial velocity free of divergence. Collective.

        Raises
        ------
        CaseError
            For a patch without a table or a table without a patch, velocities that do not fit the mesh or let more in
            than out, and what the preconditioner refuses.
        """
        return _run(case, context, shares or case.partition.given)


def _run(case: IncompressibleCase, context: Context, shares: Sequence[float] | None) -> FlowRun[IncompressibleRun]:
    """Return the case at its start. Collective."""
    comm, time, fluid = context.comm, case.time, case.fluid
    domain = flow_volumes(case.mesh, case.partition, context, case.boundary, _TYPES, shares)
    mesh, volumes = domain.mesh, domain.volumes
    boundaries, through = together(comm, lambda: _checked_boundaries(case.boundary, volumes))
    check_balance(comm, *through)
    solver = _solver(case, context, volumes, boundaries)
    if time.steady:
        solver.seek_steady()
    start = initial_velocity(case.initial, volumes.dimension)
    check_start(solver.initialise(start), case.pressure)
    lengths = StepLengths(time.dt, time.courant, time.diffusion)
    flow = IncompressibleRun(solver, lengths, tuple(fluid.mean_velocity), budget=case.history.every > 0)
    started(case, case.initial, flow, velocity_noise(case.initial, volumes.dimension))
    if not time.dt and not fluid.viscosity:
        check_step(any(comm.allgather(bool(solver.us.read().any()))))
    whole = (lambda: flow_mesh(case.mesh)) if mesh is None else (lambda: mesh)
    return run_of(case, flow, Until(time.end, time.steady), whole, _monitors(case, solver), domain.partition)


def _monitors(case: IncompressibleCase, solver: Incompressible) -> list[Monitor]:
    """Return what the case looks at."""
    found: list[Monitor] = []
    for name, table in case.forces.items():
        with explained(f"forces.{name}"):
            found.append(ForcesObserver(solver, name, table))
    if case.probes.points:
        with explained("probes"):
            found.append(probes_observer(solver, case.probes))
    if case.statistics.every:
        with explained("statistics"):
            found.append(FlowAveragesObserver(solver, case.statistics))
    for name, table in case.scalar.items():
        free = ("adiabatic", "outflow", "symmetry")
        driven = [patch for patch, boundary in table.boundary.items() if boundary.type not in free]
        found.append(ScalarObserver(solver, name, driven))
    return found


def _solver(
    case: IncompressibleCase, context: Context, volumes: ControlVolumes, boundaries: Mapping[str, Boundary]
) -> Incompressible:
    pressure, force = case.pressure, case.fluid.force
    check_length("fluid.force", len(force), volumes.dimension)
    check_length("fluid.gravity", len(case.fluid.gravity), volumes.dimension)
    check_length("fluid.mean_velocity", len(case.fluid.mean_velocity), volumes.dimension)
    with explained(f'pressure.solver = "{strategy_name(pressure.solver)}"', pressure.named):
        return Incompressible(
            context, volumes, case.fluid.viscosity, boundaries, force=force, stop=pressure.value,
            preconditioner=pressure.preconditioner, scheme=case.time.scheme, model=case.les.model,
            pressure=pressure.solver, scalars=flow_scalars(case.scalar, volumes, case.fluid.gravity),
            consistent=case.space.consistent,
        )  # fmt: skip


def _checked_boundaries(
    tables: Mapping[str, FlowBoundaryTable], volumes: ControlVolumes
) -> tuple[dict[str, Boundary], tuple[float, float, bool]]:
    """Return the boundaries, and of this rank flux and size of the given velocities, and whether there is an outflow.

    Raises
    ------
    CaseError
        Where a wall moves along its normal.
    """
    d = volumes.dimension
    boundaries = {name: flow_boundary(table, table.type, name, d) for name, table in tables.items()}
    with explained("boundary"):
        known = FlowConditions.of(volumes, boundaries)
    through = np.einsum("ij,ij->i", known.given, volumes.areas[volumes.interior :])
    size = np.linalg.norm(known.given, axis=1) * volumes.area[volumes.interior :]
    for name, elements in volumes.patches.items():
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        if isinstance(boundaries[name], NoSlip) and passes(through[place], size[place]):
            raise slides_only(name, tables[name].velocity)
    some = known.prescribed
    return boundaries, (float(through[some].sum()), float(size[some].sum()), bool(known.open.any()))
