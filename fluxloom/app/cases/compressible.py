"""The case of compressible flow on any mesh: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.compressible_march import ImplicitTable, MultigridTable
from fluxloom.app.cases.compressible_observers import (
    MassBalance,
    references_of,
    surface_of,
)
from fluxloom.app.cases.compressible_setup import (
    boundaries_of,
    free_stream_of,
    rotation_of,
    scheme_of,
    source_of,
    start_of,
    up_of,
)
from fluxloom.app.cases.compressible_tables import BOUNDARY_KEYS, CompressibleCase
from fluxloom.app.cases.flow_mesh import by_key, flow_domain, flow_mesh_sizes
from fluxloom.app.cases.flow_monitors import run_of
from fluxloom.app.cases.start_tables import started
from fluxloom.app.strategy_tables import strategy_of
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible import Compressible
from fluxloom.flows.compressible_steps import Explicit
from fluxloom.flows.volumes import flow_volumes
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.compressible_cycles import Multigrid
from fluxloom.solvers.compressible_implicit_choices import Implicit

__all__ = ["CompressibleApplication", "CompressibleCase"]

_BYTES = {2: 1_800, 3: 3_200}
"""Of a cell by dimension, on host and device while the geometry is made."""


class CompressibleApplication:
    """The solver ``compressible`` of case files."""

    name = "compressible"
    title = "compressible flow on any mesh (Euler, Navier-Stokes, averaged; finite volumes)"
    model: type[CaseModel] = CompressibleCase
    ranked = True

    def estimate(self, case: CompressibleCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        cells, points, d = flow_mesh_sizes(case.mesh)
        return Estimate(
            cells=cells,
            memory=cells * _BYTES[d],
            output=cells * (8 * (d + 5) + 8 * 4 + 9) + points * 24,
            rows=(("cells", f"{cells:,} in {d} dimensions"), ("nodes", f"{points:,}")),
        )

    def build(
        self, case: CompressibleCase, context: Context, shares: Sequence[float] | None = None
    ) -> FlowRun[Compressible]:
        """Build the mesh, its geometry and the loops, and set the states at the start. Collective.

        Raises
        ------
        CaseError
            For a patch without a table or a table without a patch, and what does not fit the mesh.
        """
        return _run(case, context, shares or case.partition.given)


def _run(case: CompressibleCase, context: Context, shares: Sequence[float] | None) -> FlowRun[Compressible]:
    """Return the case at its start. Collective."""
    with by_key(", ".join(BOUNDARY_KEYS)):
        domain = flow_volumes(flow_domain(case.mesh, case.partition, shares), context, case.boundary)
    d, gas = domain.volumes.dimension, case.gas.value
    up = up_of(case, domain.volumes, context.comm)
    stream = free_stream_of(case.flow, gas, d, up)
    keys = {"start": "initial", "slopes": "scheme.slopes", "source": "source"}
    keys["steps"] = f'time.integrator = "{case.time.integrator}"'
    with by_key(other="boundary", multigrid="multigrid", **keys):
        flow = Compressible(
            domain, context, boundaries=boundaries_of(case, gas, stream, d, up), gas=gas, stream=stream,
            start=start_of(case, d), scheme=scheme_of(case), steps=_steps(case), rotation=rotation_of(case, d),
            source=source_of(case, d),
        )  # fmt: skip
    started(case, case.initial, flow)
    references = references_of(flow.solver, stream, up)
    monitors = _monitors(case, flow)
    if case.surface.patches:
        monitors.append(surface_of(case.surface, stream, references))
    until = Until(case.time.end, case.time.drop)
    return run_of(case, flow, until, monitors, references, stream.pressure)


def _monitors(case: CompressibleCase, run: Compressible) -> list[Monitor]:
    """Return what the solver alone looks at. Collective."""
    flow = run.solver
    found: list[Monitor] = [MassBalance(run)]
    if outlets := [name for name, table in case.boundary.items() if table.type == "supersonic-outlet"]:
        from fluxloom.app.cases.compressible_outlets import OutletObserver

        found.append(OutletObserver(flow, outlets))
    if inlets := [name for name, table in case.boundary.items() if table.type == "supersonic-inlet"]:
        from fluxloom.app.cases.compressible_outlets import InletObserver

        found.append(InletObserver(flow, inlets))
    return found


def _steps(case: CompressibleCase) -> Explicit | Implicit | Multigrid:
    """Return how a flow advances."""
    if case.time.integrator == "implicit":
        return strategy_of(Implicit, case.implicit or ImplicitTable())
    if case.time.integrator == "multigrid":
        return strategy_of(Multigrid, case.multigrid or MultigridTable())
    return case.time.explicit
