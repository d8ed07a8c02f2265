"""The tables of case files of lattice Boltzmann flow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from fluxloom.app.case import CaseModel, OutputTable, Table
from fluxloom.app.cases.expressions import formula_check
from fluxloom.app.cases.flow_history import HistoryTable
from fluxloom.app.cases.lattice_body_tables import LatticeBodyTable, LatticeImmersedTable, LatticeParticlesTable

__all__ = [
    "LatticeBoundaryTable", "LatticeCase", "LatticeCheckpointTable", "LatticeFluidTable", "LatticeForcesTable",
    "LatticeInitialTable", "LatticeMeshTable", "LatticeMovieTable", "LatticeOutputTable", "LatticeReferenceTable",
    "LatticeTable", "LatticeTimeTable",
]  # fmt: skip

Number = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Vector = Annotated[list[float], Field(max_length=3)]
Cells = Annotated[int, Field(ge=1, le=100_000)]
Steps = Annotated[int, Field(ge=0, le=10**9)]
InSpace = Annotated[str, AfterValidator(formula_check("x", "y", "z"))]

_SCHEMES = {
    "velocity": ("regularised", "zou-he", "bounce-back"),
    "pressure": ("anti-bounce-back", "regularised", "zou-he"),
}


class LatticeMeshTable(Table):
    """``[mesh]``: a box of cubic cells, whose sides are xmin, xmax, ymin, ymax, and zmin, zmax.

    Attributes
    ----------
    nx, ny, nz
        Cells; with ``nz`` there are three dimensions.
    spacing
        Size of a cell; or
    length
        of the box along x. Without both cells have the size one.
    origin
        The lower corner; zeros by default.
    """

    nx: Cells
    ny: Cells
    nz: Annotated[int, Field(ge=0, le=100_000)] = 0
    spacing: Number = 0.0
    length: Number = 0.0
    origin: Vector = Field(default=[])

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return 3 if self.nz else 2

    @property
    def cell(self) -> float:
        """Size of a cell."""
        return self.spacing or (self.length / self.nx if self.length else 1.0)

    @property
    def lower(self) -> tuple[float, ...]:
        """The lower corner, x first."""
        return tuple(self.origin) or (0.0,) * self.dimension

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis, slowest first."""
        return (self.nz, self.ny, self.nx) if self.nz else (self.ny, self.nx)

    @model_validator(mode="after")
    def _consistent(self) -> LatticeMeshTable:
        if self.spacing and self.length:
            raise ValueError("give only one of spacing and length")
        if self.origin and len(self.origin) != self.dimension:
            raise ValueError(f"origin: {self.dimension} numbers are wanted, not {len(self.origin)}")
        return self


class LatticeReferenceTable(Table):
    """``[reference]``: what Reynolds number, coefficients and the length of steps refer to.

    Attributes
    ----------
    velocity, length
        As those of the inflow, and of the body.
    """

    velocity: Positive = 1.0
    length: Positive = 1.0


class LatticeFluidTable(Table):
    """``[fluid]``: what flows.

    Attributes
    ----------
    viscosity
        Kinematic; or
    reynolds
        the number of the reference velocity and length.
    density
        Of the fluid; forces are proportional to it.
    force
        Acceleration of all fluid, a number a dimension; empty: none.
    """

    viscosity: Number = 0.0
    reynolds: Number = 0.0
    density: Positive = 1.0
    force: Vector = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> LatticeFluidTable:
        if bool(self.viscosity) == bool(self.reynolds):
            raise ValueError("give one of viscosity and reynolds, above 0")
        return self


class LatticeTable(Table):
    """``[lattice]``: how it is computed.

    Attributes
    ----------
    name
        ``"auto"``: D2Q9 in the plane, D3Q19 in space.
    collision
        ``"bgk"``, ``"trt"``, ``"mrt"``, ``"regularised"``, ``"central"`` or ``"cumulant"`` (D2Q9 and D3Q27).
    magic
        Of trt; 0: 3/16.
    smagorinsky
        Constant of the subgrid model; 0: none.
    streaming
        ``"pull"``, ``"push"``, ``"three-phase"``, or ``"in-place"``, which needs half of the memory.
    precision
        In which populations are stored.
    layout
        ``"soa"``: an array a direction; ``"aos"``: a cell after the other.
    """

    name: Literal["auto", "D2Q9", "D3Q19", "D3Q27"] = "auto"
    collision: Literal["bgk", "trt", "mrt", "regularised", "central", "cumulant"] = "trt"
    magic: Number = 0.0
    smagorinsky: Annotated[float, Field(ge=0, le=1)] = 0.0
    streaming: Literal["pull", "push", "three-phase", "in-place"] = "pull"
    precision: Literal["float16", "float32", "float64"] = "float32"
    layout: Literal["soa", "aos"] = "soa"

    @model_validator(mode="after")
    def _consistent(self) -> LatticeTable:
        if self.magic and self.collision != "trt":
            raise ValueError('magic is of collision = "trt"; leave it out')
        return self


class LatticeTimeTable(Table):
    """``[time]``: the steps.

    Attributes
    ----------
    lattice_velocity
        Cells that the reference velocity passes in a step: it decides on their length. Errors of compressibility go
        with its square.
    mach
        Instead: the Mach number of the reference velocity.
    dt
        Instead: the length of a step.
    end
        A time at which the run ends; 0: after ``run.iterations`` steps, which are the most that are made in any case.
    steady
        The run ends when the residual is below, the relative change of the speed in the time ``length / velocity`` of
        ``[reference]``; 0: it does not look.
    look
        Steps from one measurement of the residual to the next.
    """

    lattice_velocity: Number = 0.0
    mach: Number = 0.0
    dt: Number = 0.0
    end: Number = 0.0
    steady: Number = 0.0
    look: Annotated[int, Field(ge=1, le=10**6)] = 100

    @model_validator(mode="after")
    def _consistent(self) -> LatticeTimeTable:
        given = self.changed(("lattice_velocity", "mach", "dt"))
        if len(given) > 1:
            raise ValueError(f"give only one of {given[0]} and {given[1]}")
        return self


class LatticeBoundaryTable(Table):
    """``[boundary.SIDE]``: what happens at a side of the box; sides without a table are joined.

    Attributes
    ----------
    type
        ``"wall"``, ``"slip"``, ``"velocity"``, ``"pressure"`` or ``"outflow"`` (convective).
    velocity
        Of a wall or of what comes in, a number a dimension.
    velocity_x, velocity_y, velocity_z
        Instead: formulas in x, y and z.
    pressure
        A formula: over that of density one, divided by the density.
    scheme
        Of velocity: ``"regularised"``, ``"zou-he"``, ``"bounce-back"``; of pressure: ``"anti-bounce-back"``,
        ``"regularised"``, ``"zou-he"``. Empty: the first.
    """

    type: Literal["wall", "slip", "velocity", "pressure", "outflow"]
    velocity: Vector = Field(default=[])
    velocity_x: InSpace = ""
    velocity_y: InSpace = ""
    velocity_z: InSpace = ""
    pressure: InSpace = ""
    scheme: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> LatticeBoundaryTable:
        formulas = self.changed(("velocity_x", "velocity_y", "velocity_z"))
        given = [*self.changed(("velocity",)), *formulas]
        if self.velocity and formulas:
            raise ValueError(f"give only one of velocity and {formulas[0]}")
        if given and self.type not in ("wall", "velocity"):
            raise ValueError(f'type = "{self.type}" has no {given[0]}')
        if self.type == "velocity" and not given:
            raise ValueError("give velocity = [...], or formulas as velocity_x")
        if self.pressure and self.type != "pressure":
            raise ValueError(f'type = "{self.type}" has no pressure')
        allowed = _SCHEMES.get(self.type, ())
        if self.scheme and self.scheme not in allowed:
            raise ValueError(f'scheme {self.scheme!r}: type = "{self.type}" takes {", ".join(allowed) or "none"}')
        return self


class LatticeInitialTable(Table):
    """``[initial]``: formulas in x, y and z; fluid at rest by default.

    Attributes
    ----------
    velocity_x, velocity_y, velocity_z
        The velocity.
    pressure
        Over that of density one, divided by the density.
    """

    velocity_x: InSpace = ""
    velocity_y: InSpace = ""
    velocity_z: InSpace = ""
    pressure: InSpace = ""


class LatticeForcesTable(Table):
    """``[forces.NAME]``: what the flow does to a body or side; columns of ``history.csv``.

    Attributes
    ----------
    of
        Its name; empty: the one that is called as the table.
    velocity, length
        Of the coefficients and the Strouhal number; 0: those of ``[reference]``.
    area
        Of the coefficients; 0: the length in the plane, a circle of that diameter in space.
    """

    of: str = ""
    velocity: Number = 0.0
    length: Number = 0.0
    area: Number = 0.0


class LatticeMovieTable(Table):
    """``[movie]``: a film of a field, in three dimensions of the plane in the middle across z.

    Attributes
    ----------
    every
        Steps between two pictures; 0: no film.
    field
        ``"speed"`` or ``"vorticity"``.
    format
        ``"gif"``, or ``"mp4"`` (needs ``pip install 'fluxloom[movie]'``).
    range
        The largest value shown; 0: 1.5 reference velocities, and 4 of these by reference length.
    rate
        Pictures a second.
    """

    every: Steps = 0
    field: Literal["speed", "vorticity"] = "vorticity"
    format: Literal["gif", "mp4"] = "gif"
    range: Number = 0.0
    rate: Annotated[int, Field(ge=1, le=100)] = 20

    @model_validator(mode="after")
    def _consistent(self) -> LatticeMovieTable:
        if not self.every and (extra := self.changed(("field", "format", "range", "rate"))):
            raise ValueError(f"{extra[0]} is there but there is no film: give every, the steps between two pictures")
        return self


class LatticeOutputTable(OutputTable):
    """``[output]``: what is written.

    Attributes
    ----------
    image
        Whether final fields are written as image data, ``final.vti``.
    every
        Steps between two files ``fields_STEP.vti``; 0: none.
    vtk
        The final fields as an unstructured mesh in addition; ``"none"`` by default.
    """

    vtk: Literal["auto", "vtkhdf", "vtu", "none"] = "none"
    image: bool = True
    every: Steps = 0


class LatticeCheckpointTable(Table):
    """``[checkpoint]``: ``checkpoint.npz`` among the results, from which the next run goes on.

    Attributes
    ----------
    every
        Steps between two checkpoints; there is one behind the last step too. 0: none.
    resume
        Whether to go on from the file where there is one; otherwise it is replaced.
    """

    every: Steps = 0
    resume: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> LatticeCheckpointTable:
        if not self.every and self.changed(("resume",)):
            raise ValueError("resume is there but no checkpoint is taken: give every, the steps between two")
        return self


class LatticeCase(CaseModel):
    """A case file of lattice Boltzmann flow."""

    mesh: LatticeMeshTable
    fluid: LatticeFluidTable
    reference: LatticeReferenceTable = LatticeReferenceTable()
    lattice: LatticeTable = LatticeTable()
    time: LatticeTimeTable = LatticeTimeTable()
    boundary: dict[str, LatticeBoundaryTable] = Field(default={})
    body: dict[str, LatticeBodyTable] = Field(default={})
    immersed: LatticeImmersedTable = LatticeImmersedTable()
    particles: LatticeParticlesTable = LatticeParticlesTable()
    initial: LatticeInitialTable = LatticeInitialTable()
    forces: dict[str, LatticeForcesTable] = Field(default={})
    history: HistoryTable = HistoryTable()
    movie: LatticeMovieTable = LatticeMovieTable()
    output: LatticeOutputTable = LatticeOutputTable()  # pyright: ignore[reportIncompatibleVariableOverride]
    checkpoint: LatticeCheckpointTable = LatticeCheckpointTable()

    @property
    def moves(self) -> bool:
        """Whether a body moves."""
        return bool(self.particles.count) or any(body.motion != "fixed" for body in self.body.values())

    @property
    def immerses(self) -> bool:
        """Whether there are immersed bodies."""
        return bool(self.particles.count) or any(body.condition == "immersed" for body in self.body.values())

    @model_validator(mode="after")
    def _supported(self) -> LatticeCase:
        """Refuse what would otherwise be passed over."""
        for key in self.partition.changed(("method", "shares")):
            raise ValueError(f"partition.{key}: this solver runs on one rank; leave the key out")
        for key in self.run.changed(("schedule", "fused")):
            raise ValueError(f"run.{key}: this solver chooses how its loops run by itself; leave the key out")
        for name in self.boundary:
            if name.startswith("z") and not self.mesh.nz:
                raise ValueError(f"boundary.{name}: the box is plane: give mesh.nz, or leave the table out")
        if not self.immerses and (extra := self.immersed.changed(("delta", "iterations", "margin"))):
            raise ValueError(f'immersed.{extra[0]}: no body has condition = "immersed"')
        if self.checkpoint.every and self.moves:
            raise ValueError("checkpoint.every: where moving bodies are is not kept; leave the table out")
        return self
