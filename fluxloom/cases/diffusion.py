"""The case of diffusion, heat conduction or Poisson's equation: its tables, and how they become a solver."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fluxloom.cases.edges.flow_tables import refuse_on_edges
from fluxloom.cases.edges.transport_tables import InitialScalarTable
from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import GivenOrNone, Table, ValueKey
from fluxloom.cases.incompressible.tables import KrylovTable
from fluxloom.cases.shared.mesh import FlowMeshTable, by_key, flow_domain, points_estimate
from fluxloom.cases.shared.monitors import FlowCase, run_of
from fluxloom.cases.shared.start_tables import started
from fluxloom.dsl.context import Context
from fluxloom.flows.edges.diffusion import Diffusion
from fluxloom.flows.points import flow_points
from fluxloom.fv.incompressible.scalar_boundary import FixedFlux
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.solvers.edges.diffusion import Convective, DiffusionPatch

__all__ = ["DiffusionApplication", "DiffusionCase"]

_TYPES = "given, flux, convective or insulated"
_STEADY = 1e-8


class DiffusionTable(Table):
    """``[diffusion]``: what diffuses, ``capacity du/dt = div(conductivity grad u) + source``.

    Attributes
    ----------
    conductivity
        Above 0, W/(m K): a number, a formula in x, y, z and t, or a table; a number of each cell, at its centroid.
    capacity
        Above 0, J/(m^3 K): the same.
    source
        W/m^3: the same, of any sign.
    """

    conductivity: Annotated[Any, ValueKey(gt=0)]
    capacity: Annotated[Any, ValueKey(gt=0)] = 1.0
    source: Annotated[Any, ValueKey()] = 0.0


class DiffusionBoundaryTable(Table):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; every patch needs one.

    Attributes
    ----------
    type
        ``"given"``: the scalar is; where such patches meet, the later one of the file counts. ``"flux"``: what diffuses
        in is, conductivity times the slope. ``"convective"``: ``coefficient`` times the scalar less ``outside`` leaves.
        ``"insulated"``: nothing passes.
    value
        Of a given scalar or flux: a number, a formula in x, y, z and t, or a table.
    coefficient, outside
        Of heat transfer, W/(m^2 K), at least 0, and the scalar outside: the same.
    """

    type: Literal["given", "flux", "convective", "insulated"]
    value: GivenOrNone = None
    coefficient: Annotated[Any, ValueKey(optional=True, blank=True, ge=0)] = None
    outside: GivenOrNone = None

    @model_validator(mode="after")
    def _consistent(self) -> DiffusionBoundaryTable:
        wanted = {"given": ("value",), "flux": ("value",), "convective": ("coefficient", "outside")}.get(self.type, ())
        for name in ("value", "coefficient", "outside"):
            if (getattr(self, name) is not None) != (name in wanted):
                raise ValueError(f'type = "{self.type}" {"needs" if name in wanted else "has no"} {name}')
        return self

    @property
    def condition(self) -> DiffusionPatch:
        """What a flow takes."""
        if self.type == "convective":
            return Convective(self.coefficient, self.outside)
        return FixedFlux(self.value) if self.type == "flux" else self.value


class DiffusionTimeTable(Table):
    """``[time]``: steps in time, or a steady state.

    Attributes
    ----------
    dt
        Length of the steps, any; they are a little shorter such that a whole number of them hits the end. 0: the run
        finds the steady state, with what is given at time 0.
    end
        The run ends at this time; 0: after ``run.iterations`` steps, or where it is steady.
    steady
        The run ends when the residual, the root mean square of du/dt, or without ``dt`` of the change in a step, is
        below this part of its largest value so far; 0: with ``dt`` it does not look, without it 1e-8.
    """

    dt: Annotated[float, Field(ge=0)] = 0.0
    end: Annotated[float, Field(ge=0)] = 0.0
    steady: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> DiffusionTimeTable:
        if self.end and not self.dt:
            raise ValueError("end is there but dt is not: give dt, the length of the steps, or leave end out: steady")
        return self


class DiffusionKrylovTable(KrylovTable):
    """``[krylov]``: how conjugate gradients find what a step changes."""

    key: ClassVar[str] = "krylov"
    rtol: Annotated[float, Field(gt=0, lt=1)] = 1e-8
    iterations: Annotated[int, Field(ge=1, le=10**6)] = 10_000


class DiffusionCase(FlowCase):
    """A case file of diffusion."""

    diffusion: DiffusionTable
    mesh: FlowMeshTable = FlowMeshTable()
    initial: InitialScalarTable = InitialScalarTable()
    boundary: dict[str, DiffusionBoundaryTable] = Field(default={})
    time: DiffusionTimeTable = DiffusionTimeTable()
    krylov: DiffusionKrylovTable = DiffusionKrylovTable()

    @property
    def divided(self) -> str:
        """What makes results depend on the ranks."""
        return self.krylov.divided or "what cells add to points is summed rank by rank"

    @model_validator(mode="after")
    def _supported(self) -> DiffusionCase:
        """Refuse what would otherwise be passed over."""
        refuse_on_edges(self, self.mesh, "diffusion")
        return self


class DiffusionApplication:
    """The solver ``diffusion`` of case files."""

    name = "diffusion"
    title = "heat conduction and Poisson's equation (finite elements)"
    model: type[CaseModel] = DiffusionCase
    distributed = True

    def estimate(self, case: DiffusionCase) -> Estimate:
        """Return the size of a case; a mesh from a file is read for it."""
        return points_estimate(case.mesh)

    def build(self, case: DiffusionCase, context: Context) -> FlowRun[Diffusion]:
        """Build the mesh, the matrices and the loops, and set the scalar. Collective.

        Raises
        ------
        CaseError
            For polyhedra, a patch without a table or a table without a patch, numbers and formulas that do not fit the
            mesh, and what the preconditioner refuses.
        """
        time, table, krylov = case.time, case.diffusion, case.krylov
        with by_key(_TYPES):
            domain = flow_points(flow_domain(case.mesh, case.partition), context, case.boundary, divide=True)
        keys = {name: f"diffusion.{name}" for name in ("conductivity", "capacity", "source")}
        with by_key(other=krylov.named, of_mesh="mesh", dt="time.dt", start="initial.scalar", **keys):
            flow = Diffusion(
                domain, context, conductivity=table.conductivity, capacity=table.capacity, source=table.source,
                boundaries={name: patch.condition for name, patch in case.boundary.items()}, dt=time.dt,
                start=case.initial.scalar, stop=krylov.value, preconditioner=krylov.preconditioner,
            )  # fmt: skip
        started(case, case.initial, flow)
        return run_of(case, flow, Until(time.end, time.steady if time.dt else time.steady or _STEADY))
