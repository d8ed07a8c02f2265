"""The tables of case files of convection and diffusion of a scalar on the edges of triangles and tetrahedra."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fluxloom.app.cases.edge_flow_tables import EdgeTimeTable, refuse_on_edges
from fluxloom.app.cases.flow_mesh import FlowMeshTable
from fluxloom.app.cases.flow_monitors import FlowCase
from fluxloom.app.cases.incompressible_tables import VELOCITY_KEYS, GivenVelocityTable
from fluxloom.app.cases.start_tables import StartTable
from fluxloom.app.strategy_tables import Table, ValueKey, strategy_table
from fluxloom.solvers.edge_scheme import EdgeScheme

__all__ = [
    "EdgeTransportCase", "InitialScalarTable", "TransportBoundaryTable", "TransportSchemeTable", "TransportTable",
]  # fmt: skip


class TransportTable(GivenVelocityTable):
    """``[transport]``: what carries and spreads the scalar.

    Attributes
    ----------
    velocity
        A number a dimension, m/s; at rest by default.
    velocity_x, velocity_y, velocity_z
        Instead: numbers, formulas in x, y, z and t, or tables; zero by default.
    diffusivity
        m^2/s: a number, a formula in x, y, z and t, or a table.
    source
        Of the scalar, a second: a number, a formula, or a table.
    """

    diffusivity: Annotated[Any, ValueKey(ge=0)] = 0.0
    source: Annotated[Any, ValueKey()] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> TransportTable:
        formulas = self.changed(VELOCITY_KEYS)
        if self.velocity and formulas:
            raise ValueError(f"give only one of velocity and {formulas[0]}")
        return self


class InitialScalarTable(StartTable):
    """``[initial]``: the scalar at the start.

    Attributes
    ----------
    scalar
        A number, a formula in x, y and z, or a table.
    """

    scalar: Annotated[Any, ValueKey(variables=("x", "y", "z"))] = 0.0

    @model_validator(mode="after")
    def _one_start(self) -> InitialScalarTable:
        self.alone("scalar")
        return self


class TransportBoundaryTable(Table):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; every patch needs one.

    Attributes
    ----------
    type
        ``"given"``: the scalar is; where such patches meet, the later one of the file counts. ``"flux"``: what diffuses
        in through the patch is, diffusivity times the slope. ``"free"``: nothing diffuses through it, and what flows in
        or out is the scalar itself.
    value
        Of a given scalar or flux: a number, a formula in x, y, z and t, or a table.
    """

    type: Literal["given", "flux", "free"]
    value: Annotated[Any, ValueKey(optional=True, blank=True)] = None

    @model_validator(mode="after")
    def _consistent(self) -> TransportBoundaryTable:
        if self.type != "free" and self.value is None:
            raise ValueError(f'type = "{self.type}" needs value: a number, or a formula as "sin(pi * y)"')
        if self.type == "free" and self.value is not None:
            raise ValueError('type = "free" has no value; type = "given" has')
        return self


class TransportSchemeTable(strategy_table(EdgeScheme, without=("stress", "pressure", "subscales"))):
    """``[scheme]``: those of `fluxloom.solvers.edge_scheme.EdgeScheme` that are not of the flow alone.

    Attributes
    ----------
    bounded
        Whether steps make no new extremum of the scalar, by flux correction in place of the other keys; by default
        where it starts discontinuous, or flow brings another value than that of the start.
    """

    bounded: bool | None = None


class EdgeTransportCase(FlowCase):
    """A case file of convection and diffusion of a scalar on edges."""

    transport: TransportTable = TransportTable()
    mesh: FlowMeshTable = FlowMeshTable()
    initial: InitialScalarTable = InitialScalarTable()
    boundary: dict[str, TransportBoundaryTable] = Field(default={})
    time: EdgeTimeTable = EdgeTimeTable()
    scheme: TransportSchemeTable = TransportSchemeTable()

    @model_validator(mode="after")
    def _supported(self) -> EdgeTransportCase:
        """Refuse what would otherwise be passed over."""
        refuse_on_edges(self, self.mesh, "transport on edges")
        return self
