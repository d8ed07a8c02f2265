"""The case of a scalar that flow carries along edges of triangles and tetrahedra: how its tables become a solver."""

from __future__ import annotations

from fluxloom.cases.edges.transport_tables import EdgeTransportCase, TransportBoundaryTable
from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import strategy_of
from fluxloom.cases.shared.mesh import by_key, flow_domain, points_estimate
from fluxloom.cases.shared.monitors import run_of
from fluxloom.cases.shared.start_tables import started
from fluxloom.cases.shared.wall_motion import VELOCITY_KEYS, velocity_values
from fluxloom.dsl.context import Context
from fluxloom.flows.edges.transport import Transport
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.points import flow_points
from fluxloom.fv.incompressible.scalar_boundary import FixedFlux
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.values.value import Value

__all__ = ["EdgeTransportApplication", "EdgeTransportCase"]

_TYPES = "given, flux or free"


class EdgeTransportApplication:
    """The solver ``edge_transport`` of case files."""

    name = "edge_transport"
    title = "convection and diffusion on triangles and tetrahedra (finite elements, edge by edge)"
    model: type[CaseModel] = EdgeTransportCase
    distributed = True

    def estimate(self, case: EdgeTransportCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        return points_estimate(case.mesh)

    def build(self, case: EdgeTransportCase, context: Context) -> FlowRun[Transport]:
        """Build the mesh, the operators and the loops, and set the scalar. Collective.

        Raises
        ------
        CaseError
            For other cells than triangles or tetrahedra, a patch without a table or a table without a patch, numbers
            and formulas that do not fit the mesh, and a step that has no bound.
        """
        time, table = case.time, case.transport
        with by_key(_TYPES):
            domain = flow_points(flow_domain(case.mesh, case.partition), context, case.boundary)
        names = ("diffusivity", "source", "velocity", *VELOCITY_KEYS)
        keys = {name: f"transport.{name}" for name in names} | dict.fromkeys(("start", "scalar"), "initial.scalar")
        with by_key(other="transport", of_mesh="mesh", dt="time.dt", **keys):
            flow = Transport(
                domain, context, velocity=velocity_values(table, "transport", domain.points.dimension),
                boundaries={name: _boundary(patch) for name, patch in case.boundary.items()},
                diffusivity=table.diffusivity, source=table.source, start=case.initial.scalar,
                scheme=strategy_of(EdgeScheme, case.scheme), bounded=case.scheme.bounded,
                steps=StepLengths(time.dt, time.courant),
            )  # fmt: skip
        started(case, case.initial, flow)
        return run_of(case, flow, Until(time.end, time.steady))


def _boundary(table: TransportBoundaryTable) -> Value | float | FixedFlux | None:
    """Return what a patch is given: the scalar, what diffuses in, or None."""
    return FixedFlux(table.value) if table.type == "flux" else table.value
