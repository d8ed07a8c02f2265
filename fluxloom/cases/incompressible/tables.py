"""The tables of case files of incompressible flow."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from fluxloom.cases.files.strategy_tables import (
    Chosen,
    Given,
    GivenVector,
    OrOthers,
    Table,
    ValueKey,
    Vector,
    strategy_table,
)
from fluxloom.cases.incompressible.extras import ScalarTable
from fluxloom.cases.shared.mesh import FlowMeshTable
from fluxloom.cases.shared.monitors import FlowCase
from fluxloom.cases.shared.wall_motion import StartVelocityTable, WallVelocityTable
from fluxloom.core.errors import FluxloomError
from fluxloom.core.strategies import strategy_name
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, ProjectionScheme
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import Stop
from fluxloom.solvers.incompressible.pressure import ConjugateGradients, PressureMethod

__all__ = [
    "FlowBoundary", "FlowBoundaryTable", "FluidTable", "IncompressibleCase", "InitialVelocityTable", "KrylovTable",
    "LesTable", "TimeTable",
]  # fmt: skip

Kind = Literal["wall", "inflow", "outflow", "symmetry"]


class FluidTable(Table):
    """``[fluid]``: what flows.

    Attributes
    ----------
    viscosity
        Kinematic: a number, or above 0 a formula in x, y, z and t, or a table; beside no model.
    force
        Acceleration, a value a dimension: numbers, formulas in x, y, z and t, or tables; empty: none.
    mean_velocity
        Of the whole volume, a number a dimension: the force is chosen anew at every step such that it stays so; a
        component that is zero here has no force. Empty: the force is `force`.
    gravity
        Acceleration, a number a dimension, of what scalars make lighter or heavier.
    """

    viscosity: Annotated[Any, ValueKey(ge=0)]
    force: GivenVector = Field(default=[])
    mean_velocity: Vector = Field(default=[])
    gravity: Vector = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> FluidTable:
        if self.force and self.mean_velocity:
            raise ValueError("give only one of force and mean_velocity")
        if self.mean_velocity and not any(self.mean_velocity):
            raise ValueError("mean_velocity is zero in all directions: leave it out")
        return self


class InitialVelocityTable(StartVelocityTable):
    """``[initial]``: the velocity at the start, made free of divergence; at rest by default.

    Attributes
    ----------
    noise
        Random numbers of this size, as large as it at most, are added to each component in each cell.
    seed
        Of the random numbers; with the place it decides on them, however the mesh is divided among ranks.
    """

    noise: Annotated[float, Field(ge=0)] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @model_validator(mode="after")
    def _one_start(self) -> InitialVelocityTable:
        self.alone(*self.ways)
        return self


class FlowBoundaryTable(WallVelocityTable):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; every patch that is not periodic needs one.

    Attributes
    ----------
    type
        ``"wall"``, ``"inflow"`` (the velocity is given), ``"outflow"`` (the pressure is) or ``"symmetry"``.
    pressure
        Kinematic, of an outflow: a number, a formula in x, y, z and t, or a table; zero by default.
    """

    type: Kind
    pressure: Given = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> FlowBoundaryTable:
        self.check_velocity(self.type, "inflow")
        if self.type != "outflow" and self.changed(("pressure",)):
            raise ValueError(f'type = "{self.type}" has no pressure; type = "outflow" has')
        return self


FlowBoundary = Annotated[FlowBoundaryTable, OrOthers(Boundary, get_args(Kind))]


class KrylovTable(strategy_table(Stop, without=("atol",))):
    """How conjugate gradients find the pressure.

    Attributes
    ----------
    rtol
        Residual over right-hand side at the end.
    iterations
        At most; the run fails where they do not suffice.
    preconditioner
        What makes a step converge faster; ``"smoothed_aggregation"`` is multigrid, and needs pyamg.
    """

    rtol: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    iterations: Annotated[int, Field(ge=1, le=10**6)] = 1000
    preconditioner: Annotated[Preconditioner, Chosen(Preconditioner)] = Jacobi()

    key: ClassVar[str] = "pressure"
    """Of the table."""

    @property
    def named(self) -> str:
        """The key and what it says."""
        return f'{self.key}.preconditioner = "{strategy_name(self.preconditioner)}"'

    @property
    def divided(self) -> str:
        """What of it depends on the ranks, in words; empty: nothing does."""
        return "" if self.preconditioner.rank_independent else f"{self.named} works rank by rank"


class PressureTable(KrylovTable):
    """``[pressure]``: how the equation of the pressure is solved.

    Attributes
    ----------
    solver
        ``"cg"``: conjugate gradients; ``"fourier"``: Fourier transforms along the direction in which the mesh is
        uniform and periodic, and conjugate gradients in the plane (one rank).
    """

    solver: Annotated[PressureMethod, Chosen(PressureMethod)] = ConjugateGradients()

    @property
    def kind(self) -> str:
        """The name of the solver."""
        return strategy_name(self.solver)


class TimeTable(Table):
    """``[time]``: the steps.

    Attributes
    ----------
    dt
        Length of each; 0: the largest stable one, chosen anew at every step.
    end
        The run ends at this time: steps of a given length are a little shorter such that a whole number of them hits
        it, of others the last ones; with ``steady`` the last step goes past it. 0: after ``run.iterations`` steps,
        which are the most that are made in any case.
    steady
        The run ends when the residual, the root mean square of du/dt, is below this part of its largest value so far;
        0: it does not look. The steady flow does not depend on the length of the steps then.
    courant, diffusion
        What the largest stable step may be of ``2 Omega / sum |u_s| A`` and ``Omega / sum nu A / delta``, the least of
        all cells; Runge-Kutta bears three times the defaults.
    scheme
        ``"adams-bashforth"``, of second order, or ``"runge-kutta"``, of third, with three pressure solves a step.
    """

    dt: Annotated[float, Field(ge=0)] = 0.0
    end: Annotated[float, Field(ge=0)] = 0.0
    steady: Annotated[float, Field(ge=0)] = 0.0
    courant: Annotated[float, Field(gt=0, le=5)] = 0.35
    diffusion: Annotated[float, Field(gt=0, le=5)] = 0.2
    scheme: Annotated[ProjectionScheme, Chosen(ProjectionScheme)] = AdamsBashforth()

    @model_validator(mode="after")
    def _consistent(self) -> TimeTable:
        if self.dt and (extra := self.changed(("courant", "diffusion"))):
            raise ValueError(f"give only one of dt and {extra[0]}")
        return self


class LesTable(Table):
    """``[les]``: the eddy viscosity of what the mesh does not resolve.

    Attributes
    ----------
    model
        What gives it.
    """

    model: Annotated[EddyViscosity | None, Chosen(EddyViscosity, optional=True)] = None
    renamed = MappingProxyType({"constant": "model.constant"})

    @model_validator(mode="after")
    def _sound(self) -> LesTable:
        """Refuse a model of others that gives no viscosity."""
        try:
            if self.model is not None:
                self.model.try_formula()
        except FluxloomError as error:
            raise ValueError(f"model: {error}") from None
        return self


class SpaceTable(Table):
    """``[space]``: the operators.

    Attributes
    ----------
    form
        ``"symmetric"``: those that keep energy, exact for linear fields where each face stands across the middle of the
        line between two cells; ``"consistent"``: corrected such that they are exact for linear fields on every mesh;
        ``"auto"``: the first where the mesh is orthogonal, else the second.
    """

    form: Literal["auto", "symmetric", "consistent"] = "auto"

    @property
    def consistent(self) -> bool | None:
        """Whether the operators are corrected; None: where the mesh is not orthogonal."""
        return None if self.form == "auto" else self.form == "consistent"


class IncompressibleCase(FlowCase):
    """A case file of incompressible flow."""

    balanced = True

    fluid: FluidTable
    space: SpaceTable = SpaceTable()
    mesh: FlowMeshTable = FlowMeshTable()
    initial: InitialVelocityTable = InitialVelocityTable()
    boundary: dict[str, FlowBoundary] = Field(default={})
    pressure: PressureTable = PressureTable()
    time: TimeTable = TimeTable()
    les: LesTable = LesTable()
    scalar: dict[str, ScalarTable] = Field(default={})

    @property
    def divided(self) -> str:
        """What makes results depend on the ranks."""
        return self.pressure.divided

    @model_validator(mode="after")
    def _supported(self) -> IncompressibleCase:
        """Refuse what would otherwise be passed over."""
        if self.fluid.gravity and not any(scalar.expansion for scalar in self.scalar.values()):
            raise ValueError("fluid.gravity is there but no scalar has an expansion: give one, or leave gravity out")
        if not self.fluid.gravity and (driving := [n for n, scalar in self.scalar.items() if scalar.expansion]):
            raise ValueError(f"scalar.{driving[0]}.expansion is there but fluid.gravity is not: give it")
        if taken := {"u", "v", "w", "p", "speed", "vorticity"} & set(self.scalar):
            raise ValueError(f"a scalar cannot be called {taken.pop()!r}, as a field of the flow")
        self.run.leave_choices()
        return self
