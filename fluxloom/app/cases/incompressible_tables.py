"""The tables of case files of incompressible flow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from fluxloom.app.case import CaseModel, Table
from fluxloom.app.cases.expressions import formula_check

__all__ = ["VELOCITY_KEYS", "FlowBoundaryTable", "FlowMeshTable", "IncompressibleCase", "LesTable"]

VELOCITY_KEYS = ("velocity_x", "velocity_y", "velocity_z")
_KINDS = {2: ("auto", "quad", "triangle"), 3: ("auto", "hexahedron", "tetra", "prism", "pyramid")}

InSpace = Annotated[str, AfterValidator(formula_check("x", "y", "z"))]
Range = Annotated[list[float], Field(min_length=2, max_length=2)]
Vector = Annotated[list[float], Field(max_length=3)]
Count = Annotated[int, Field(ge=1, le=50_000)]


class FlowMeshTable(Table):
    """``[mesh]``: a file, or a rectangle or a box.

    Attributes
    ----------
    file
        SU2, Gmsh, VTU, VTKHDF or what meshio reads.
    x, y, z
        Ends of the box.
    nx, ny, nz
        Its intervals; a mesh with ``nz`` is a box, without it a rectangle. Its patches are xmin, xmax, ymin, ymax, and
        zmin, zmax.
    kind
        Cells: ``"quad"``, ``"triangle"``; ``"hexahedron"``, ``"tetra"``, ``"prism"``, ``"pyramid"``; ``"auto"``: quad
        or hexahedron.
    perturb
        How far inner nodes are moved at random, as a part of an interval.
    periodic
        Pairs of patches which are one and the same, moved.
    """

    file: str = ""
    x: Range = Field(default=[0.0, 1.0])
    y: Range = Field(default=[0.0, 1.0])
    z: Range = Field(default=[0.0, 1.0])
    nx: Count = 32
    ny: Count = 32
    nz: Annotated[int, Field(ge=0, le=50_000)] = 0
    kind: Literal["auto", "quad", "triangle", "hexahedron", "tetra", "prism", "pyramid"] = "auto"
    perturb: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    periodic: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(default=[])

    @property
    def dimension(self) -> int:
        """Of a generated mesh."""
        return 3 if self.nz else 2

    @model_validator(mode="after")
    def _consistent(self) -> FlowMeshTable:
        if self.file and (extra := self.changed(("x", "y", "z", "nx", "ny", "nz", "kind", "perturb"))):
            raise ValueError(f"a mesh from a file has no {extra[0]}")
        if not self.nz and self.changed(("z",)):
            raise ValueError("z is there but nz is not: give nz, the intervals along z, or leave z out")
        if any(low >= high for low, high in (self.x, self.y, self.z)):
            raise ValueError("x, y and z are the lower and the upper end")
        allowed = _KINDS[self.dimension]
        if self.kind not in allowed:
            with_nz = "with nz" if self.nz else "without nz"
            raise ValueError(f'kind = "{self.kind}" is none of a mesh {with_nz} (allowed: {", ".join(allowed)})')
        return self


class FluidTable(Table):
    """``[fluid]``: what flows.

    Attributes
    ----------
    viscosity
        Kinematic.
    force
        Acceleration, a number a dimension; empty: none.
    """

    viscosity: Annotated[float, Field(ge=0)]
    force: Vector = Field(default=[])


class InitialVelocityTable(Table):
    """``[initial]``: the velocity at the start, made free of divergence; at rest by default.

    Attributes
    ----------
    velocity_x, velocity_y, velocity_z
        Formulas in x, y and z.
    """

    velocity_x: InSpace = ""
    velocity_y: InSpace = ""
    velocity_z: InSpace = ""


class FlowBoundaryTable(Table):
    """``[boundary.PATCH]``: what happens at a patch of the mesh; every patch that is not periodic needs one.

    Attributes
    ----------
    type
        ``"wall"``, ``"inflow"`` (the velocity is given), ``"outflow"`` (the pressure is zero) or ``"symmetry"``.
    velocity
        Of a wall that slides along itself, or of the inflow: a number a dimension.
    velocity_x, velocity_y, velocity_z
        Of the inflow instead: formulas in x, y and z; zero by default.
    """

    type: Literal["wall", "inflow", "outflow", "symmetry"]
    velocity: Vector = Field(default=[])
    velocity_x: InSpace = ""
    velocity_y: InSpace = ""
    velocity_z: InSpace = ""

    @model_validator(mode="after")
    def _consistent(self) -> FlowBoundaryTable:
        formulas = self.changed(VELOCITY_KEYS)
        given = [*self.changed(("velocity",)), *formulas]
        if self.type in ("outflow", "symmetry") and given:
            raise ValueError(f'type = "{self.type}" has no {given[0]}')
        if self.type == "wall" and formulas:
            raise ValueError(f'type = "wall" has no {formulas[0]}: give velocity = [...], or type = "inflow"')
        if self.type == "inflow" and not given:
            raise ValueError("give velocity = [...], or formulas as velocity_x")
        if self.velocity and formulas:
            raise ValueError(f"give only one of velocity and {formulas[0]}")
        return self


class PressureTable(Table):
    """``[pressure]``: how the equation of the pressure is solved, by conjugate gradients.

    Attributes
    ----------
    rtol
        Residual over right-hand side at the end.
    iterations
        At most; the run fails where they do not suffice.
    preconditioner
        ``"jacobi"``, ``"chebyshev"``, ``"approximate_inverse"``, ``"ssor"``, ``"smoothed_aggregation"`` (multigrid,
        needs pyamg) or ``"none"``.
    """

    rtol: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    iterations: Annotated[int, Field(ge=1, le=10**6)] = 1000
    preconditioner: Literal[
        "jacobi", "chebyshev", "approximate_inverse", "ssor", "smoothed_aggregation", "none"
    ] = "jacobi"  # fmt: skip


class TimeTable(Table):
    """``[time]``: the steps.

    Attributes
    ----------
    dt
        Length of each; 0: the largest stable one, chosen anew at every step.
    scheme
        ``"adams-bashforth"``, of second order, or ``"runge-kutta"``, of third, with three pressure solves a step.
    """

    dt: Annotated[float, Field(ge=0)] = 0.0
    scheme: Literal["adams-bashforth", "runge-kutta"] = "adams-bashforth"


class LesTable(Table):
    """``[les]``: the eddy viscosity of what the mesh does not resolve.

    Attributes
    ----------
    model
        ``"smagorinsky"``, ``"wale"``, ``"qr"``, ``"sigma"``, ``"s3pqr"`` or ``"none"``.
    constant
        Of the model; 0: its own.
    """

    model: Literal["none", "smagorinsky", "wale", "qr", "sigma", "s3pqr"] = "none"
    constant: Annotated[float, Field(ge=0, le=10)] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> LesTable:
        if self.model == "none" and self.constant:
            raise ValueError("constant is there but model is not: give model, or leave constant out")
        return self


class IncompressibleCase(CaseModel):
    """A case file of incompressible flow."""

    fluid: FluidTable
    mesh: FlowMeshTable = FlowMeshTable()
    initial: InitialVelocityTable = InitialVelocityTable()
    boundary: dict[str, FlowBoundaryTable] = Field(default={})
    pressure: PressureTable = PressureTable()
    time: TimeTable = TimeTable()
    les: LesTable = LesTable()

    @model_validator(mode="after")
    def _supported(self) -> IncompressibleCase:
        """Refuse what would otherwise be passed over."""
        for key in self.run.changed(("schedule", "fused")):
            raise ValueError(f"run.{key}: this solver chooses how its loops run by itself; leave the key out")
        return self
