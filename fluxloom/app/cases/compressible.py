"""The case of compressible flow on any mesh: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.compressible_march import ImplicitTable, MultigridTable
from fluxloom.app.cases.compressible_observers import (
    AveragesObserver,
    BalanceObserver,
    SurfaceObserver,
    probes_observer,
)
from fluxloom.app.cases.compressible_outlets import InletObserver, OutletObserver
from fluxloom.app.cases.compressible_setup import (
    boundaries_of,
    check_symmetry,
    free_stream_of,
    rotation_of,
    scheme_of,
    start_of,
    up_of,
)
from fluxloom.app.cases.compressible_slow import warn_of_slow_flow
from fluxloom.app.cases.compressible_tables import BOUNDARY_KEYS, CompressibleCase
from fluxloom.app.cases.flow_mesh import flow_mesh, flow_mesh_sizes
from fluxloom.app.cases.flow_monitors import run_of
from fluxloom.app.cases.flow_volumes import FlowDomain, flow_volumes
from fluxloom.app.cases.start_tables import started
from fluxloom.app.strategy_tables import strategy_of
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible import CompressibleRun
from fluxloom.flows.compressible_steps import ImplicitRun, LocalRun, MultigridRun, Ramp, Steps, TimeRun
from fluxloom.fv.free_stream import FreeStream
from fluxloom.fv.gas import Gas
from fluxloom.fv.sides import Family
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.rows import together
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.compressible import CompressibleFlow
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
    ) -> FlowRun[CompressibleRun]:
        """Build the mesh, its geometry and the loops, and set the states at the start. Collective.

        Raises
        ------
        CaseError
            For a patch without a table or a table without a patch, and what does not fit the mesh.
        """
        return _run(case, context, shares or case.partition.given)


def _run(case: CompressibleCase, context: Context, shares: Sequence[float] | None) -> FlowRun[CompressibleRun]:
    """Return the case at its start. Collective."""
    domain = flow_volumes(case.mesh, case.partition, context, case.boundary, ", ".join(BOUNDARY_KEYS), shares)
    d, gas = domain.volumes.dimension, case.gas.value
    up = up_of(case, domain.volumes, context.comm)
    stream = free_stream_of(case.flow, gas, d, up)
    check_symmetry(case, stream, domain.volumes, context.comm)
    flow = _flow(case, context, domain, gas, stream)
    start = start_of(case, gas, stream, d)
    places = domain.volumes.centres[: domain.volumes.owned]
    states = together(context.comm, lambda: start(places))  # all hear of an error
    warn_of_slow_flow(case, flow, states, context.comm)
    flow.start(start)
    bodies = [name for name, table in case.boundary.items() if table.type in ("slip", "wall")]
    until = Until(case.time.end, case.time.drop)
    mesh = domain.mesh
    whole = cache(lambda: flow_mesh(case.mesh) if mesh is None else mesh)
    run = CompressibleRun(flow, _steps(case, flow), bodies)
    started(case, case.initial, run)
    return run_of(case, run, until, whole, _monitors(case, flow, stream, up, whole), domain.partition)


def _monitors(
    case: CompressibleCase, flow: CompressibleFlow, stream: FreeStream, up: int, mesh: Callable[[], MeshData]
) -> list[Monitor]:
    """Return what looks at a flow. Collective."""
    found: list[Monitor] = [BalanceObserver(flow, stream, case.forces, up)]
    if outlets := [name for name, table in case.boundary.items() if table.type == "supersonic-outlet"]:
        found.append(OutletObserver(flow, outlets))
    if inlets := [name for name, table in case.boundary.items() if table.type == "supersonic-inlet"]:
        found.append(InletObserver(flow, inlets))
    if case.surface.patches:
        found.append(SurfaceObserver(flow, stream, case.surface, mesh))
    if case.probes.points:
        try:
            found.append(probes_observer(flow, case.probes, steady=not case.time.end))
        except SolverError as error:
            raise CaseError(f"probes: {error}") from None
    if case.statistics.every:
        found.append(AveragesObserver(flow, case.statistics, steady=not case.time.end))
    return found


def _steps(case: CompressibleCase, flow: CompressibleFlow) -> Steps:
    """Return what advances a flow."""
    time = case.time
    ramp = Ramp(time.cfl, time.cfl_start, time.ramp)
    if time.integrator == "implicit":
        return ImplicitRun(flow, strategy_of(Implicit, case.implicit or ImplicitTable()))
    if time.integrator == "explicit":
        return TimeRun(flow, ramp) if time.end else LocalRun(flow, ramp)
    if flow.volumes.turned is not None:
        raise CaseError(
            'time.integrator = "multigrid": cells at sides that are joined by a rotation (mesh.sectors) are not fused; '
            'take "implicit" or "explicit"'
        )
    try:
        return MultigridRun(flow, strategy_of(Multigrid, case.multigrid or MultigridTable()))
    except (SolverError, MeshError) as error:
        raise CaseError(f"multigrid: {str(error).removeprefix('multigrid: ')}") from None


def _flow(
    case: CompressibleCase, context: Context, domain: FlowDomain, gas: Gas, stream: FreeStream
) -> CompressibleFlow:  # fmt: skip
    """Return the solver."""
    boundaries = boundaries_of(case, gas, stream, domain.volumes.dimension)
    distance = None
    if case.scheme.value.turbulence is not None:
        distance = domain.wall_distance([name for name, table in case.boundary.items() if table.type == "wall"])
    volumes, slopes = _slopes(case, domain)
    try:
        return CompressibleFlow(
            context, volumes, boundaries, gas, scheme_of(case), distance,
            rotation=rotation_of(case, volumes.dimension), slopes=slopes,
        )  # fmt: skip
    except SolverError as error:
        raise CaseError(f"boundary: {error}") from None


def _slopes(case: CompressibleCase, domain: FlowDomain) -> tuple[ControlVolumes, Family | None]:
    """Return control volumes with what slopes look at, and what they are found from where that is not across faces."""
    kind = case.scheme.slopes
    if kind == "faces":
        return domain.volumes, None
    try:
        return domain.node_slopes(kind)
    except SolverError as error:
        raise CaseError(f"scheme.slopes: {error}") from None
