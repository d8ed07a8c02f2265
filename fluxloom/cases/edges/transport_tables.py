"""The tables of case files of convection and diffusion of a scalar on the edges of triangles and tetrahedra."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fluxloom.cases.edges.flow_tables import EdgeTimeTable, refuse_on_edges
from fluxloom.cases.files.strategy_tables import Given, GivenOrNone, Table, ValueKey, strategy_table
from fluxloom.cases.shared.mesh import FlowMeshTable
from fluxloom.cases.shared.monitors import FlowCase
from fluxloom.cases.shared.start_tables import StartTable
from fluxloom.cases.shared.wall_motion import WallVelocityTable
from fluxloom.solvers.edges.scheme import EdgeScheme

__all__ = [
    "EdgeTransportCase", "InitialScalarTable", "TransportBoundaryTable", "TransportSchemeTable", "TransportTable",
]  # fmt: skip


class TransportTable(WallVelocityTable):
    """``[transport]``: what carries and spreads the scalar.

    Attributes
    ----------
    velocity
        A value a dimension, m/s: numbers, formulas in x, y, z and t, or tables; at rest by default.
    spin
        Instead of ``velocity``, that of a solid body: its angular velocity, rad/s, a number or a formula in t, about z,
        or in three dimensions one about each axis.
    diffusivity
        m^2/s: a number, a formula in x, y, z and t, or a table.
    source
        Of the scalar, a second: a number, a formula, or a table.
    """

    diffusivity: Annotated[Any, ValueKey(ge=0)] = 0.0
    source: Given = 0.0


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
    value: GivenOrNone = None

    @model_validator(mode="after")
    def _consistent(self) -> TransportBoundaryTable:
        if self.type != "free" and self.value is None:
            raise ValueError(f'type = "{self.type}" needs value: a number, or a formula as "sin(pi * y)"')
        if self.type == "free" and self.value is not None:
            raise ValueError('type = "free" has no value; type = "given" has')
        return self


class TransportSchemeTable(strategy_table(EdgeScheme, without=("stress", "pressure", "subscales"))):
    """``[scheme]``: those of `fluxloom.solvers.edges.scheme.EdgeScheme` that are not of the flow alone.

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
