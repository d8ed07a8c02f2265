"""The case of incompressible flow on any mesh: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.incompressible.choices import initial_velocity, velocity_noise
from fluxloom.cases.incompressible.observers import (
    ScalarObserver,
)
from fluxloom.cases.incompressible.scalars import flow_scalars
from fluxloom.cases.incompressible.tables import IncompressibleCase
from fluxloom.cases.shared.mesh import by_key, check_length, flow_domain, flow_mesh_sizes
from fluxloom.cases.shared.monitors import run_of
from fluxloom.cases.shared.start import flow_boundary
from fluxloom.cases.shared.start_tables import started
from fluxloom.dsl.context import Context
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.incompressible.flow import Incompressible, IncompressibleScheme, Pressure
from fluxloom.flows.volumes import flow_volumes
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.incompressible.flow import Incompressible as Solver

__all__ = ["IncompressibleApplication", "IncompressibleCase"]

_BYTES = {2: 2_500, 3: 4_000}
"""Of a cell by dimension, as measured: matrices on the host while they are assembled, and on the device."""

_TYPES = "wall, inflow, outflow or symmetry"


class IncompressibleApplication:
    """The solver ``incompressible`` of case files."""

    name = "incompressible"
    title = "incompressible flow on any mesh (symmetry-preserving finite volumes)"
    model: type[CaseModel] = IncompressibleCase
    distributed = True

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
    ) -> FlowRun[Incompressible]:
        """Build the mesh, the matrices and the loops, and make the initial velocity free of divergence. Collective.

        Raises
        ------
        CaseError
            For a patch without a table or a table without a patch, velocities that do not fit the mesh or let more in
            than out, and what the preconditioner refuses.
        """
        return _run(case, context, shares or case.partition.given)


def _run(case: IncompressibleCase, context: Context, shares: Sequence[float] | None) -> FlowRun[Incompressible]:
    """Return the case at its start. Collective."""
    time, fluid, pressure = case.time, case.fluid, case.pressure
    with by_key(_TYPES):
        domain = flow_volumes(flow_domain(case.mesh, case.partition, shares), context, case.boundary)
    d = domain.volumes.dimension
    for name in ("force", "gravity", "mean_velocity"):
        check_length(f"fluid.{name}", len(getattr(fluid, name)), d)
    keys = {
        "force": "fluid.force", "scalars": "scalar", "start": "initial", "iterations": "pressure.iterations",
        "dt": "time.dt", "viscosity": "fluid.viscosity",
    }  # fmt: skip
    with by_key(other=pressure.named, of_mesh=f'pressure.solver = "{pressure.kind}"', **keys):
        flow = Incompressible(
            domain, context, viscosity=fluid.viscosity,
            boundaries={name: flow_boundary(table, table.type, name, d) for name, table in case.boundary.items()},
            start=initial_velocity(case.initial, d), force=fluid.force, mean_velocity=fluid.mean_velocity,
            scheme=IncompressibleScheme(time.scheme, case.space.consistent, time.steady > 0.0),
            steps=StepLengths(time.dt, time.courant, time.diffusion), model=case.les.model,
            pressure=Pressure(pressure.solver, pressure.value, pressure.preconditioner),
            scalars=flow_scalars(case.scalar, domain.volumes, fluid.gravity),
        )  # fmt: skip
    started(case, case.initial, flow, velocity_noise(case.initial, d))
    with by_key(dt="time.dt"):
        return run_of(case, flow, Until(time.end, time.steady), _monitors(case, flow.solver))


def _monitors(case: IncompressibleCase, solver: Solver) -> list[Monitor]:
    """Return what the case looks at."""
    found: list[Monitor] = []
    for name, table in case.scalar.items():
        free = ("adiabatic", "outflow", "symmetry")
        driven = [patch for patch, boundary in table.boundary.items() if boundary.type not in free]
        found.append(ScalarObserver(solver, name, driven))
    return found
