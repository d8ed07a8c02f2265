"""The tables of case files of lattice Boltzmann flow."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fluxloom.cases.files.strategy_tables import AtStart, Chosen, Given, GivenVector, Table, Vector
from fluxloom.cases.lattice.body_tables import LatticeBodyTable, LatticeImmersedTable, LatticeParticlesTable
from fluxloom.cases.lattice.output_tables import LatticeOutputTable, LatticePartitionTable
from fluxloom.cases.shared.monitors import FlowCase
from fluxloom.cases.shared.wall_motion import StartVelocityTable, WallVelocityTable
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.flows.lattice.given.units import Units
from fluxloom.lbm.boundaries import OpeningScheme, PressureScheme, VelocityScheme
from fluxloom.lbm.collisions.operators import TRT, Collision
from fluxloom.lbm.streaming.memory import AllCells, Cells, FluidCells
from fluxloom.lbm.streaming.schemes import Pull, Streaming

__all__ = [
    "LatticeBoundaryTable", "LatticeCase", "LatticeFluidTable", "LatticeInitialTable", "LatticeMeshTable",
    "LatticeOutputTable", "LatticePartitionTable",
    "LatticeReferenceTable", "LatticeSpongeTable", "LatticeTable", "LatticeTimeTable", "units_of",
]  # fmt: skip

Number = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=100_000)]

ChosenCollision = Annotated[Collision, Chosen(Collision)]

ChosenScheme = Annotated[OpeningScheme | None, Chosen(OpeningScheme, optional=True)]
ChosenStreaming = Annotated[Streaming, Chosen(Streaming)]
ChosenCells = Annotated[Cells, Chosen(Cells)]

_SCHEMES = {"velocity": VelocityScheme, "pressure": PressureScheme}


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

    nx: Count
    ny: Count
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
        Acceleration of the fluid, a value a dimension: a number, a formula in x, y, z and t, or a table; empty: none.
    """

    viscosity: Number = 0.0
    reynolds: Number = 0.0
    density: Positive = 1.0
    force: GivenVector = Field(default=[])

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
        What a cell does to the populations that have arrived; see `fluxloom.lbm.collisions.operators`.
    streaming
        How populations travel, see `fluxloom.lbm.streaming.schemes`; ``"in-place"`` needs half of the memory.
    precision
        In which populations are stored.
    layout
        ``"soa"``: an array a direction; ``"aos"``: a cell after the other.
    cells
        Which are stored: ``"all"``, or ``"fluid"``, in a list, for boxes that are mostly solid.
    """

    name: Literal["auto", "D2Q9", "D3Q19", "D3Q27"] = "auto"
    collision: ChosenCollision = TRT()
    streaming: ChosenStreaming = Pull()
    precision: Literal["float16", "float32", "float64"] = "float32"
    layout: Literal["soa", "aos"] = "soa"
    cells: ChosenCells = AllCells()
    renamed = MappingProxyType({key: f"collision.{key}" for key in ("magic", "smagorinsky")})


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
    residual_interval
        Steps from one measurement of the residual to the next.
    """

    renamed = MappingProxyType({"look": "residual_interval"})
    lattice_velocity: Number = 0.0
    mach: Number = 0.0
    dt: Number = 0.0
    end: Number = 0.0
    steady: Number = 0.0
    residual_interval: Annotated[int, Field(ge=1, le=10**6)] = 100

    @model_validator(mode="after")
    def _consistent(self) -> LatticeTimeTable:
        given = self.changed(("lattice_velocity", "mach", "dt"))
        if len(given) > 1:
            raise ValueError(f"give only one of {given[0]} and {given[1]}")
        return self


class LatticeSpongeTable(Table):
    """``[boundary.SIDE.sponge]``: a layer along a side in which waves and vortices fade.

    Attributes
    ----------
    width
        Of the layer.
    strength
        Share of the distance to the state given that is made good in a step, at the side itself.
    velocity
        To which the flow is drawn, a number a dimension; empty: only the pressure is, to that of density one, and
        vortices do not fade.
    """

    width: Positive
    strength: Annotated[float, Field(gt=0, le=1)] = 0.1
    velocity: Vector = Field(default=[])


class LatticeBoundaryTable(WallVelocityTable):
    """``[boundary.SIDE]``: what happens at a side of the box; sides without a table are joined.

    Attributes
    ----------
    type
        ``"wall"``, ``"slip"``, ``"velocity"``, ``"pressure"`` or ``"outflow"`` (convective).
    pressure
        Over that of density one, divided by the density: a number, a formula in x, y, z and t, or a table.
    scheme
        Of velocity: ``"regularised"``, ``"zou-he"``, ``"bounce-back"``; of pressure: ``"anti-bounce-back"``,
        ``"regularised"``, ``"zou-he"``. None: the first.
    ramp
        Of velocity: the time in which it grows from zero, smoothly.
    sponge
        A layer along the side.
    """

    renamed = MappingProxyType({"absorbing": "scheme.absorbing"})
    type: Literal["wall", "slip", "velocity", "pressure", "outflow"]
    pressure: Given = 0.0
    scheme: ChosenScheme = None
    ramp: Number = 0.0
    sponge: LatticeSpongeTable | None = None

    @model_validator(mode="after")
    def _consistent(self) -> LatticeBoundaryTable:
        self.check_velocity(self.type, "velocity")
        if self.changed(("pressure",)) and self.type != "pressure":
            raise ValueError(f'type = "{self.type}" has no pressure')
        if self.ramp and self.type != "velocity":
            raise ValueError(f'type = "{self.type}" has no ramp')
        family = _SCHEMES.get(self.type, ())
        if self.scheme is not None and not (family and isinstance(self.scheme, family)):
            allowed = ", ".join(family.choices.names()) if family else "none"
            raise ValueError(f'scheme {strategy_name(self.scheme)!r}: type = "{self.type}" takes {allowed}')
        return self


class LatticeInitialTable(StartVelocityTable):
    """``[initial]``: fluid at rest by default.

    Attributes
    ----------
    pressure
        Over that of density one, divided by the density: a number, a formula in x, y and z, or a table.
    """

    pressure: AtStart = None

    @model_validator(mode="after")
    def _one_start(self) -> LatticeInitialTable:
        self.alone(*self.ways, "pressure")
        return self


class LatticeCase(FlowCase):
    """A case file of lattice Boltzmann flow."""

    scaled = True
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
    output: LatticeOutputTable = LatticeOutputTable()  # pyright: ignore[reportIncompatibleVariableOverride]
    partition: LatticePartitionTable = LatticePartitionTable()  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def turning(self) -> frozenset[str]:
        """Names of the bodies and sides whose torque is wanted: that about a point."""
        return frozenset(one for name, table in self.forces.items() if table.point for one in table.patches or [name])

    @property
    def immerses(self) -> bool:
        """Whether there are immersed bodies."""
        return bool(self.particles.count) or any(body.condition == "immersed" for body in self.body.values())

    @property
    def divided(self) -> str:
        """What makes results depend on the ranks."""
        return "what markers of immersed bodies meet is summed rank by rank" if self.immerses else ""

    @model_validator(mode="after")
    def _supported(self) -> LatticeCase:
        """Refuse what would otherwise be passed over."""
        if self.partition.cut and len(self.partition.cut) != self.mesh.dimension:
            raise ValueError(f"partition.cut: {self.mesh.dimension} numbers are wanted, parts along each axis, x first")
        self.run.leave_choices()
        for name in self.boundary:
            if name.startswith("z") and not self.mesh.nz:
                raise ValueError(f"boundary.{name}: the box is plane: give mesh.nz, or leave the table out")
        if isinstance(self.lattice.cells, FluidCells) and self.immerses:
            raise ValueError('lattice.cells: immersed bodies and particles need all cells; take "all"')
        if not self.immerses and (extra := self.immersed.changed(("delta", "iterations", "margin", "pipeline"))):
            raise ValueError(f'immersed.{extra[0]}: no body has condition = "immersed"')
        return self


def units_of(case: LatticeCase) -> Units:
    """Return the units of a case.

    Raises
    ------
    CaseError
        If the reference velocity is too fast for the lattice.
    """
    reference, time, fluid = case.reference, case.time, case.fluid
    try:
        return Units.of(
            case.mesh.cell, viscosity=fluid.viscosity, reynolds=fluid.reynolds, velocity=reference.velocity,
            length=reference.length, density=fluid.density, lower=case.mesh.lower,
            lattice_velocity=time.lattice_velocity, mach=time.mach, dt=time.dt,
        )  # fmt: skip
    except SolverError as error:
        raise CaseError(f"time: {error}") from None
