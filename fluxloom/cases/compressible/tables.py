"""The tables of case files of compressible flow: gas, free stream, scheme, steps, start, boundaries."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from fluxloom.cases.files.errors import LateTable
from fluxloom.cases.files.strategy_tables import (
    AtStart,
    Given,
    GivenVector,
    OrOthers,
    StrategyTable,
    Table,
    ValueKey,
    strategy_table,
)
from fluxloom.cases.shared.mesh import FlowMeshTable
from fluxloom.cases.shared.monitors import FlowCase
from fluxloom.cases.shared.wall_motion import Listed, StartVelocityTable, VelocityTable, WallVelocityTable
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.flows.compressible.steps import Explicit
from fluxloom.fv.compressible.boundary import BoundaryCondition
from fluxloom.fv.compressible.gas import Gas
from fluxloom.solvers.compressible.cycles import Implicit, Multigrid
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.values.value import Value, value_of

__all__ = [
    "BOUNDARY_KEYS", "SOURCE_KEYS", "STREAM_KEYS", "BoundaryTable", "CompressibleCase", "FreeStreamTable", "GasTable",
    "ImplicitTable", "InitialTable", "MarchTable", "MultigridTable", "RotationTable", "SchemeTable", "SourceTable",
    "SurfaceTable",
]  # fmt: skip

class MarchTable(Table):
    """``[time]``: steps towards a steady flow, or in time.

    Attributes
    ----------
    cfl
        Of explicit steps, ``dt = 2 cfl V / sum A (|u_n| + c)``.
    end
        Time, which the last step hits: all cells have one step. 0: each cell has its own, towards a steady flow.
    residual_drop
        A steady flow has been reached when the residual is this part of the first one of this run, which one that goes
        on from its checkpoint keeps, and one that starts from another result does not; 0: it does not look.
        ``run.iterations`` are the most steps in any case.
    integrator
        ``"explicit"``: stages of Runge and Kutta; towards a steady flow also ``"implicit"``, with ``[implicit]``, and
        ``"multigrid"``, explicit steps on coarser cells too, with ``[multigrid]``.
    dt
        Length of all steps in time; 0: ``cfl`` chooses them. The way to the end has equal steps, no longer than this.
        One that is longer than ``cfl`` allows is refused, and ends the run where it comes to be so.
    ramp, cfl_start
        Explicit steps in which the CFL number grows, by equal amounts, from ``cfl_start`` to ``cfl``; 0: none.
    """

    renamed = MappingProxyType({"drop": "residual_drop"})
    cfl: Annotated[float, Field(gt=0, le=1e6)] = 0.8
    end: Annotated[float, Field(ge=0)] = 0.0
    residual_drop: Annotated[float, Field(ge=0, lt=1)] = 0.0
    integrator: Literal["explicit", "implicit", "multigrid"] = "explicit"
    ramp: Annotated[int, Field(ge=0, le=10**9)] = 0
    cfl_start: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    dt: Annotated[float, Field(ge=0)] = 0.0

    @property
    def explicit(self) -> Explicit:
        """Explicit steps, in time where there is an end."""
        return Explicit(self.cfl, not self.end, self.cfl_start, self.ramp, self.dt)

    @model_validator(mode="after")
    def _consistent(self) -> MarchTable:
        if self.end and self.residual_drop:
            raise ValueError("residual_drop is of a steady flow, and end of one in time: give only one of them")
        if self.end and self.integrator != "explicit":
            raise ValueError(
                f'end: integrator = "{self.integrator}" makes steps towards a steady flow alone: leave end out, or '
                'take integrator = "explicit"'
            )
        if self.dt and not self.end:
            raise ValueError("dt is of steps in time: give end, or leave dt out: towards a steady flow each cell has "
                             "a step of its own")  # fmt: skip
        for key in self.changed(("ramp", "cfl_start")):
            if self.integrator != "explicit":
                raise ValueError(f'{key} is of integrator = "explicit", not "{self.integrator}"')
        try:
            _ = self.explicit
        except SolverError as error:
            raise ValueError(str(error)) from None
        if self.integrator == "implicit" and self.changed(("cfl",)):
            raise ValueError('cfl is of explicit steps: with integrator = "implicit" give implicit.cfl')
        return self


_OF_LIMITERS = {"settle": "relax_below", "follow": "relaxation", "freeze": "freeze_below"}


class ImplicitTable(strategy_table(Implicit)):
    """``[implicit]``: the names and defaults of `fluxloom.solvers.compressible.cycles.Implicit`."""

    renamed = MappingProxyType(_OF_LIMITERS | {"fronts": "wavefront"})


class MultigridTable(strategy_table(Multigrid)):
    """``[multigrid]``: the names and defaults of `fluxloom.solvers.compressible.cycles.Multigrid`."""

    renamed = MappingProxyType(_OF_LIMITERS | {key: f"smoother.{key}" for key in ("cfl", "sweeps", "coarse_cfl")})


class RotationTable(Table):
    """``[rotation]``: the mesh turns about an axis, with what is fixed to it.

    Velocities are those where one stands still, along axes that turn with the mesh.

    Attributes
    ----------
    rate
        Angular velocity, rad/s: a number, about z, or in three dimensions one about each axis.
    centre
        A place on the axis; the origin by default.
    """

    rate: Listed
    centre: Annotated[list[float], Field(max_length=3)] = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> RotationTable:
        if len(self.rate) not in (1, 3):
            raise ValueError(f"rate: a number, or one about each of three axes is wanted, not {len(self.rate)}")
        if not any(self.rate):
            raise ValueError("rate is 0: nothing turns; leave the table out")
        return self


class SurfaceTable(Table):
    """``[surface]``: at the end, pressure and friction coefficients along patches.

    Attributes
    ----------
    patches
        ``surface_NAME.csv`` for each of them.
    axis, cuts
        In three dimensions: planes across an axis, ``cut_y_0.44.csv`` for each place along it.
    """

    patches: list[str] = Field(default=[])
    axis: Literal["x", "y", "z"] = "y"
    cuts: list[float] = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> SurfaceTable:
        if not self.patches and (extra := self.changed(("axis", "cuts"))):
            raise ValueError(f"{extra[0]} is there but patches is not: give it, or leave {extra[0]} out")
        if self.changed(("axis",)) and not self.cuts:
            raise ValueError("axis is there but cuts is not: give it, or leave axis out")
        if len(set(self.patches)) < len(self.patches) or len(set(self.cuts)) < len(self.cuts):
            raise ValueError("a patch, or a cut, is named twice")
        return self


STREAM_KEYS = ("mach", "pressure", "temperature", "alpha", "beta")
"""What a free stream has that may depend on the time."""

BOUNDARY_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "slip": ((), ("velocity",)),
    "symmetry": ((), ()),
    "wall": ((), ("temperature", "heat_flux", "velocity")),
    "far-field": ((), ("state", "vortex", "centre", "fluctuation")),
    "supersonic-inlet": ((), ("state", "fluctuation")),
    "supersonic-outlet": ((), ()),
    "total-inlet": (("pressure", "temperature"), ("direction",)),
    "velocity-inlet": (("velocity",), ("temperature", "density", "fluctuation")),
    "mass-inlet": (("mass_flux", "temperature"), ("direction",)),
    "outlet": (("pressure",), ()),
}
"""For each type of a boundary the keys that it needs, and those that it may have."""

Sides = Annotated[list[float], Field(max_length=5)]
State = Annotated[list[Annotated[Any, ValueKey()]], Field(max_length=5)]
Positive = Annotated[float, Field(gt=0)]
Optional = Annotated[float, Field(ge=0)]
NotNegative = Annotated[Any, ValueKey(ge=0, optional=True)]
"""None: it is not given; 0.0 is a value."""
Heat = Annotated[Any, ValueKey(optional=True)]
InTime = Annotated[Any, ValueKey(variables=("t",))]
AtLeast0 = Annotated[Any, ValueKey(ge=0, variables=("t",))]
Above0 = Annotated[Any, ValueKey(gt=0, variables=("t",))]
Angle = Annotated[Any, ValueKey(ge=-180, le=180, variables=("t",))]


_SPACE = 3


def _one_of(known: Collection[str]) -> Callable[[str], str]:
    """Return a check of pydantic: a text is a known name."""

    def check(name: str) -> str:
        """Refuse an unknown name."""
        if name not in known:
            raise ValueError(f'unknown value "{name}"{did_you_mean(name, known)} (allowed: {", ".join(known)})')
        return name

    return check


def _vector_or_mesh(given: Any) -> Any:
    """Check a velocity."""
    if given == "mesh":
        return given
    if not isinstance(given, list) or len(given) > _SPACE:
        raise ValueError(f'must be a number, a formula or a table for each dimension, or "mesh", got {given!r}')
    return [ValueKey().checked(one) for one in given]


WallVelocity = Annotated[GivenVector | Literal["mesh"], PlainValidator(_vector_or_mesh)]


class GasTable(strategy_table(Gas)):
    """``[gas]``: what flows; air by default."""

    renamed = MappingProxyType({key: f"viscosity.{key}" for key in ("mu", "mu0", "t0", "s")})

    @model_validator(mode="after")
    def _consistent(self) -> GasTable:
        if self.value.viscosity is None and (extra := self.changed(("prandtl", "prandtl_turbulent"))):
            raise ValueError(f"{extra[0]} is there but viscosity is not: give it, or leave {extra[0]} out")
        return self


class FreeStreamTable(Table):
    """``[flow]``: the uniform flow far away; gas at rest by default.

    Of formulas in t the start, forces and pictures take the values at t = 0, boundaries those of each stage of a step.

    Attributes
    ----------
    mach
        Mach number.
    alpha, beta
        Angles of attack and of sideslip, degrees.
    up
        Axis from the lower to the upper side: ``"y"`` or ``"z"``; by default y in two dimensions, and in three z, but
        y where the mesh is a profile extruded along z, or has planes of symmetry across z and none across y.
    pressure, temperature
        Static, Pa and K; a pressure of 0 is that of the sea level, 101325 Pa.
    reynolds
        Instead of the pressure: ``rho U length / mu``.
    length
        Of the body, in the unit of the mesh, m: of the Reynolds number, and of the limiter without ``scheme.length``.
    turbulence
        Variable of the model of Spalart and Allmaras over the kinematic viscosity.
    """

    mach: AtLeast0 = 0.0
    alpha: Angle = 0.0
    beta: Angle = 0.0
    up: Literal["", "y", "z"] = ""
    pressure: AtLeast0 = 0.0
    temperature: Above0 = 288.15
    reynolds: Optional = 0.0
    length: Positive = 1.0
    turbulence: Optional = 3.0

    @model_validator(mode="after")
    def _consistent(self) -> FreeStreamTable:
        if self.reynolds and self.pressure:
            raise ValueError("give only one of pressure and reynolds: the other follows")
        if self.reynolds and not self.mach:
            raise ValueError("reynolds needs a mach above 0")
        for key in ("mach", "temperature"):
            if self.reynolds and isinstance(getattr(self, key), Value):
                raise ValueError(f"reynolds needs a number for {key}: give the pressure instead of it")
        return self

    @property
    def in_time(self) -> bool:
        """Whether it depends on the time."""
        return any(value_of(getattr(self, key)).in_time for key in STREAM_KEYS)


class SchemeTable(strategy_table(CompressibleScheme, without=("cfl",))):
    """``[scheme]``: see `fluxloom.solvers.compressible.scheme.CompressibleScheme`, whose names and defaults it has."""

    order: Literal[1, 2] = 2
    renamed = MappingProxyType({
        "slopes": "gradients", "entropy_fix": "flux.entropy_fix", "cutoff": "flux.cutoff",
        "smoothness": "limiter.smoothness", "length": "limiter.length", "unlimited": "limiter.unlimited",
    })  # fmt: skip

    @model_validator(mode="after")
    def _consistent(self) -> SchemeTable:
        if self.order == 1 and self.changed(("limiter",)):
            raise ValueError("order = 1 has no limiter")
        return self


class InitialTable(StartVelocityTable):
    """``[initial]``: the flow at the start; the free stream by default.

    Attributes
    ----------
    left, right
        Density, velocities and pressure on both sides of a plane.
    axis, at
        Which the plane is across, and where.
    density, pressure
        Instead of ``left`` and ``right``, as velocities: numbers, formulas in x, y and z, or tables; what is left out
        is of the free stream.
    velocity_x, velocity_y, velocity_z
        Instead of ``velocity``, component by component; those that are left out are of the free stream.
    """

    left: Sides = Field(default=[])
    right: Sides = Field(default=[])
    axis: Literal["x", "y", "z"] = "x"
    at: float = 0.0
    density: AtStart = None
    pressure: AtStart = None

    @model_validator(mode="after")
    def _consistent(self) -> InitialTable:
        states = ("density", *self.ways, "pressure")
        self.alone("left", *states)
        if bool(self.left) != bool(self.right):
            raise ValueError("give both of left and right, or neither")
        if self.left and (extra := self.changed(states)):
            raise ValueError(f"give only one of left and {extra[0]}")
        if not self.left and (extra := self.changed(("axis", "at"))):
            raise ValueError(f"{extra[0]} is there but left and right are not: give them, or leave {extra[0]} out")
        return self


@cache
def _fluctuation_table() -> type[StrategyTable]:
    """Return the table of what fluctuates about a velocity."""
    from fluxloom.values.fluctuation import Fluctuation

    class FluctuationTable(strategy_table(Fluctuation)):
        """``fluctuation = { intensity = 2.0, length = 0.01 }``; see `fluxloom.values.fluctuation.Fluctuation`."""

    return FluctuationTable


class BoundaryTable(WallVelocityTable):
    """``[boundary.PATCH]``: what is beyond a patch of the mesh; every patch that is not periodic needs one.

    Pressures, temperatures, densities, velocities, directions, states and fluxes are numbers, formulas in x, y, z and
    t, or tables (docs/guide/values.md).

    Attributes
    ----------
    type
        ``"slip"``, ``"symmetry"``, ``"wall"`` (with friction), ``"far-field"``, ``"supersonic-inlet"``,
        ``"supersonic-outlet"``, ``"total-inlet"``, ``"velocity-inlet"``, ``"mass-inlet"``, ``"outlet"``.
    state
        Density, velocities and pressure beyond a far field or an inlet; by default the free stream.
    pressure, temperature
        Of an outlet; at rest, of a total inlet or a mass inlet; of a wall that is not adiabatic; of gas that enters.
    heat_flux
        Of a wall instead of the temperature: heat that it gives to the gas, W/m^2.
    density
        Of gas that enters a velocity inlet, instead of the temperature.
    velocity
        Of gas that enters, or of a wall, a value a dimension; ``"mesh"``: the wall turns with the mesh. A wall moves
        along itself: what formulas have along its normal is left out, and what numbers have lets gas pass. Of a slip
        wall that along the normal alone counts.
    fluctuation
        Of gas that enters: synthetic turbulence about its velocity.
    direction
        Of gas that enters; by default against the normal.
    mass_flux
        That enters through a unit of area, kg/(m^2 s).
    vortex, centre
        Of a far field in two dimensions: the patches of a body, whose lift makes a vortex, and where that is.
    """

    type: Annotated[str, AfterValidator(_one_of(BOUNDARY_KEYS))]
    state: State = Field(default=[])
    pressure: NotNegative = None
    temperature: NotNegative = None
    density: NotNegative = None
    velocity: WallVelocity = Field(default=[])  # pyright: ignore[reportIncompatibleVariableOverride]
    direction: GivenVector = Field(default=[])
    mass_flux: NotNegative = None
    heat_flux: Heat = None
    fluctuation: Annotated[Any, LateTable(_fluctuation_table)] = None
    vortex: list[str] = Field(default=[])
    centre: Annotated[list[float], Field(min_length=2, max_length=2)] = Field(default=[0.25, 0.0])

    @model_validator(mode="after")
    def _consistent(self) -> BoundaryTable:
        needed, allowed = BOUNDARY_KEYS[self.type]
        others = {key: key for pair in BOUNDARY_KEYS.values() for keys in pair for key in keys}
        keys = others | dict.fromkeys(self.ways, "velocity")
        given = {keys[name]: name for name in self.changed(keys)}
        for key, name in given.items():
            if key not in needed + allowed:
                known = ", ".join(needed + allowed)
                has = f"it may have {known}" if known else "it has no other keys"
                raise ValueError(f'type = "{self.type}" has no {name}: {has}')
        for key in needed:
            if key not in given:
                raise ValueError(f'type = "{self.type}" needs {key}')
        of_walls = 'velocity = "mesh"' if self.velocity == "mesh" else "spin" if self.spin else ""
        if of_walls and self.type not in ("slip", "wall"):
            raise ValueError(f'{of_walls} is of walls, not of type = "{self.type}"')
        if self.type == "velocity-inlet" and ("density" in given) == ("temperature" in given):
            raise ValueError('type = "velocity-inlet" needs one of temperature and density')
        if "heat_flux" in given and "temperature" in given:
            raise ValueError("give only one of temperature and heat_flux")
        if "centre" in given and not self.vortex:
            raise ValueError("centre is there but vortex is not: name the patches that lift, or leave centre out")
        return self


SOURCE_KEYS = ("mass", "momentum_x", "momentum_y", "momentum_z", "energy")


class SourceTable(Table):
    """``[source]``: what the gas gains per unit of volume and time; nothing by default.

    Attributes
    ----------
    mass
        kg/(m^3 s).
    momentum_x, momentum_y, momentum_z
        A force, N/m^3; the work that it does is not added to the energy.
    energy
        W/m^3.
    """

    mass: Given = 0.0
    momentum_x: Given = 0.0
    momentum_y: Given = 0.0
    momentum_z: Given = 0.0
    energy: Given = 0.0


class CompressibleCase(FlowCase):
    """A case file of compressible flow."""

    scaled = True

    gas: GasTable = GasTable()
    flow: FreeStreamTable = FreeStreamTable()
    mesh: FlowMeshTable = FlowMeshTable()
    initial: InitialTable = InitialTable()
    boundary: dict[str, Annotated[BoundaryTable, OrOthers(BoundaryCondition, BOUNDARY_KEYS)]] = Field(default={})
    scheme: SchemeTable = SchemeTable()
    time: MarchTable = MarchTable()
    implicit: ImplicitTable | None = None
    multigrid: MultigridTable | None = None
    rotation: RotationTable | None = None
    source: SourceTable | None = None
    surface: SurfaceTable = SurfaceTable()

    @property
    def divided(self) -> str:
        """What makes results depend on the ranks."""
        found = {"implicit": "sweeps of implicit steps go", "multigrid": "coarse cells of multigrid are joined"}
        return f"{found[self.time.integrator]} rank by rank" if self.time.integrator in found else ""

    @model_validator(mode="after")
    def _supported(self) -> CompressibleCase:
        """Refuse what would otherwise be passed over."""
        viscous = self.gas.value.viscosity is not None
        walls = [name for name, table in self.boundary.items() if table.type == "wall"]
        if self.flow.reynolds and not viscous:
            raise ValueError('flow.reynolds needs gas.viscosity, as "sutherland"')
        if self.scheme.value.turbulence is not None and not (viscous and walls):
            lacking = 'a patch of type = "wall"' if viscous else "gas.viscosity"
            raise ValueError(f"scheme.turbulence needs {lacking}")
        if self.scheme.value.turbulence is None and self.flow.changed(("turbulence",)):
            raise ValueError("flow.turbulence is there but scheme.turbulence is not: give it, or leave it out")
        self.run.leave_choices()
        self._check_steps()
        self._check_rotation()
        return self

    def _check_steps(self) -> None:
        """Refuse what does not fit the steps."""
        chosen = self.time.integrator
        for name, table in (("implicit", self.implicit), ("multigrid", self.multigrid)):
            if table is not None and chosen != name:
                raise ValueError(f'[{name}] is there but time.integrator is "{chosen}": set it to "{name}"')
        if chosen == "implicit" and self.scheme.changed(("time",)):
            raise ValueError('scheme.time is of explicit steps: leave it out with time.integrator = "implicit"')
        if chosen == "multigrid" and not (self.multigrid or MultigridTable()).value.smoother.explicit:
            for name, table, key in (("scheme", self.scheme, "time"), ("time", self.time, "cfl")):
                if table.changed((key,)):
                    raise ValueError(
                        f'{name}.{key} is of explicit steps: leave it out, give multigrid.smoother.cfl, or take '
                        'multigrid.smoother = "stages"'
                    )

    def _check_rotation(self) -> None:
        """Refuse what does not fit a mesh that turns, or one that does not."""
        walls = {name: table for name, table in self.boundary.items() if table.type in ("slip", "wall")}
        for name, table in walls.items():
            if self.rotation is None and table.velocity == "mesh":
                raise ValueError(f'boundary.{name}.velocity = "mesh": the mesh does not turn; add [rotation]')
            if self.rotation is not None and not table.changed(VelocityTable.ways):
                raise ValueError(
                    f'boundary.{name}: the mesh turns: say whether this wall does, velocity = "mesh", or not, '
                    "velocity = [0, 0, 0] (a number a dimension)"
                )
        if self.rotation is not None and self.time.integrator == "multigrid":
            raise ValueError('rotation: coarse levels cannot turn: take time.integrator = "explicit" or "implicit"')
