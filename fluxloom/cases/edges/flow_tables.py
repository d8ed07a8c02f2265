"""The tables of case files of incompressible flow on the edges of triangles and tetrahedra."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.strategy_tables import Given, GivenVector, Table, ValueKey, strategy_table
from fluxloom.cases.incompressible.tables import InitialVelocityTable, KrylovTable, LesTable
from fluxloom.cases.shared.mesh import FlowMeshTable
from fluxloom.cases.shared.monitors import FlowCase
from fluxloom.cases.shared.wall_motion import WallVelocityTable
from fluxloom.solvers.edges.scheme import EdgeScheme

__all__ = ["EdgeBoundaryTable", "EdgeFlowCase", "EdgeFluidTable", "EdgeSchemeTable", "EdgeTimeTable", "refuse_on_edges"]

_LAW = ("distance", "kappa", "constant")

Number = Annotated[float, Field(ge=0)]


class EdgeFluidTable(Table):
    """``[fluid]``: what flows.

    Attributes
    ----------
    viscosity
        Kinematic, m^2/s: a number, a formula in x, y, z and t, or a table.
    force
        Acceleration, a value a dimension, m/s^2: numbers, formulas or tables; empty: none.
    """

    viscosity: Annotated[Any, ValueKey(ge=0)]
    force: GivenVector = Field(default=[])


class EdgeBoundaryTable(WallVelocityTable):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; every patch needs one.

    Attributes
    ----------
    type
        ``"wall"``, ``"inflow"`` (the velocity is given), ``"outflow"`` (the pressure is), ``"symmetry"``, or
        ``"wall_law"``: nothing passes, and Spalding's law of the wall gives the shear.
    pressure
        Kinematic, of an outflow, m^2/s^2: a number, a formula in x, y, z and t, or a table; zero by default.
    distance
        Of a wall law: from the wall, at which the velocity of the points on the wall is taken to be, m.
    kappa, constant
        Of the law, ``u+ = ln(y+) / kappa + constant`` far from the wall.
    """

    type: Literal["wall", "inflow", "outflow", "symmetry", "wall_law"]
    pressure: Given = 0.0
    distance: Number = 0.0
    kappa: Annotated[float, Field(gt=0)] = 0.41
    constant: Annotated[float, Field(gt=0)] = 5.0

    @model_validator(mode="after")
    def _consistent(self) -> EdgeBoundaryTable:
        self.check_velocity(self.type, "inflow")
        if self.type != "outflow" and self.changed(("pressure",)):
            raise ValueError(f'type = "{self.type}" has no pressure; type = "outflow" has')
        if self.type != "wall_law" and (extra := self.changed(_LAW)):
            raise ValueError(f'type = "{self.type}" has no {extra[0]}; type = "wall_law" has')
        if self.type == "wall_law" and not self.distance:
            raise ValueError('type = "wall_law" needs distance, above 0: about half of the first cells at the wall')
        return self


class EdgePressureTable(KrylovTable):
    """``[pressure]``: how the system of the pressure is solved.

    Attributes
    ----------
    solver
        ``"cg"``: conjugate gradients; ``"bicgstab"``: twice the work an iteration, for comparison.
    """

    solver: Literal["cg", "bicgstab"] = "cg"


class EdgeTimeTable(Table):
    """``[time]``: the steps.

    Attributes
    ----------
    dt
        Length of each; 0: the largest stable one, chosen anew at every step.
    courant
        What the largest stable step is of the bound of the method of Runge and Kutta.
    end
        The run ends at this time: steps of a given length are a little shorter such that a whole number of them hits
        it, of others the last ones; with ``steady`` the last step goes past it. 0: after ``run.iterations`` steps,
        which are the most that are made in any case.
    steady
        The run ends when the residual, the root mean square of du/dt, is below this part of its largest value so far;
        0: it does not look. Without choices of ``[scheme]`` about them subscales are tracked with ``dynamic = 0`` then,
        ``viscous = 8`` and ``convective = 8``: the steady flow does not depend on the length of the steps.
    """

    dt: Number = 0.0
    courant: Annotated[float, Field(gt=0, le=2)] = 0.8
    end: Number = 0.0
    steady: Number = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> EdgeTimeTable:
        if self.dt and self.changed(("courant",)):
            raise ValueError("give only one of dt and courant")
        return self


class EdgeSchemeTable(strategy_table(EdgeScheme)):
    """``[scheme]``: see `fluxloom.solvers.edges.scheme.EdgeScheme`, whose names and defaults it has."""


class EdgeFlowCase(FlowCase):
    """A case file of incompressible flow on edges."""

    fluid: EdgeFluidTable
    mesh: FlowMeshTable = FlowMeshTable()
    initial: InitialVelocityTable = InitialVelocityTable()
    boundary: dict[str, EdgeBoundaryTable] = Field(default={})
    pressure: EdgePressureTable = EdgePressureTable()
    time: EdgeTimeTable = EdgeTimeTable()
    scheme: EdgeSchemeTable = EdgeSchemeTable()
    les: LesTable = LesTable()

    @property
    def divided(self) -> str:
        """What makes results depend on the ranks."""
        return self.pressure.divided

    @model_validator(mode="after")
    def _supported(self) -> EdgeFlowCase:
        """Refuse what would otherwise be passed over."""
        refuse_on_edges(self, self.mesh, "flow on edges")
        return self


def refuse_on_edges(case: CaseModel, mesh: FlowMeshTable, what: str) -> None:
    """Raise `ValueError` for keys that solvers on edges would pass over; ``what`` is the solver in words."""
    for key in ("periodic", "sectors"):
        if getattr(mesh, key):
            raise ValueError(f"mesh.{key}: {what} joins no patches; leave the key out")
    if case.partition.shares == "measured":
        raise ValueError(f'partition.shares: {what} measures no shares; give numbers, or "auto"')
    case.run.leave_choices()
