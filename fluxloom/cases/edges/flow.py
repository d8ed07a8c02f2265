"""The case of incompressible flow on the edges of triangles and tetrahedra: how its tables become a solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.cases.edges.flow_tables import EdgeBoundaryTable, EdgeFlowCase
from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import strategy_of
from fluxloom.cases.incompressible.choices import (
    initial_velocity,
    velocity_noise,
)
from fluxloom.cases.shared.mesh import by_key, check_length, flow_domain, points_estimate
from fluxloom.cases.shared.monitors import run_of
from fluxloom.cases.shared.start import flow_boundary
from fluxloom.cases.shared.start_tables import started
from fluxloom.dsl.context import Context
from fluxloom.flows.edges.flow import EdgeFlow
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.points import flow_points
from fluxloom.linalg.krylov.bicgstab import BiCGStab
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.krylov.method import Krylov
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.edges.boundary import EdgePatch, WallLaw
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import Tracked

__all__ = ["EdgeFlowApplication", "EdgeFlowCase"]

Array = npt.NDArray[np.float64]

_TYPES = "wall, inflow, outflow, symmetry or wall_law"

_KRYLOV: Mapping[str, type[Krylov]] = MappingProxyType({"cg": ConjugateGradient, "bicgstab": BiCGStab})


class EdgeFlowApplication:
    """The solver ``edge_flow`` of case files."""

    name = "edge_flow"
    title = "incompressible flow on triangles and tetrahedra (finite elements, edge by edge)"
    model: type[CaseModel] = EdgeFlowCase
    distributed = True

    def estimate(self, case: EdgeFlowCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        return points_estimate(case.mesh, scalars=4, vectors=1)

    def build(self, case: EdgeFlowCase, context: Context) -> FlowRun[EdgeFlow]:
        """Build the mesh, the operators and the loops, and make the initial velocity free of divergence. Collective.

        Raises
        ------
        CaseError
            For other cells than triangles or tetrahedra, a patch without a table or a table without a patch,
            velocities that do not fit the mesh or let more in than out, and what the preconditioner refuses.
        """
        time, pressure = case.time, case.pressure
        with by_key(_TYPES):
            domain = flow_points(flow_domain(case.mesh, case.partition), context, case.boundary)
        d = domain.points.dimension
        check_length("fluid.force", len(case.fluid.force), d)
        keys = {"viscosity": "fluid.viscosity", "force": "fluid.force", "iterations": "pressure.iterations"}
        with by_key(other=pressure.named, of_mesh="mesh", dt="time.dt", **keys):
            flow = EdgeFlow(
                domain, context, viscosity=case.fluid.viscosity, boundaries=_boundaries(case.boundary, d),
                start=initial_velocity(case.initial, d), force=tuple(case.fluid.force), scheme=_scheme(case),
                steps=StepLengths(time.dt, time.courant), model=case.les.model, stop=pressure.value,
                preconditioner=pressure.preconditioner, krylov=_KRYLOV[pressure.solver],
            )  # fmt: skip
        started(case, case.initial, flow, velocity_noise(case.initial, d))
        with by_key(dt="time.dt"):
            return run_of(case, flow, Until(time.end, time.steady))


def _scheme(case: EdgeFlowCase) -> EdgeScheme:
    """Return the scheme: towards a steady flow, unless one is given, that whose steady state does not depend on dt.

    Its ``tau`` is shorter, as it is with ``dynamic / dt`` in the largest stable step: else the errors of the velocity
    are up to four times as large.
    """
    found = strategy_of(EdgeScheme, case.scheme)
    chosen = case.scheme.changed(("dynamic", "subscales", "pressure"))
    if not case.time.steady or chosen or case.fluid.viscosity == 0.0:
        return found
    shorter = {} if case.scheme.changed(("viscous", "convective")) else {"viscous": 8.0, "convective": 8.0}
    return replace(found, dynamic=0.0, subscales=Tracked(), **shorter)


def _boundaries(tables: Mapping[str, EdgeBoundaryTable], d: int) -> dict[str, EdgePatch]:
    """Return the boundaries by patch."""
    return {
        name: WallLaw(table.distance, table.kappa, table.constant)
        if table.type == "wall_law"
        else flow_boundary(table, table.type, name, d)
        for name, table in tables.items()
    }


