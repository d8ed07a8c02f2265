"""The tables of case files of compressible flow: gas, free stream, scheme, steps, start, boundaries."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from fluxloom.app.cases.compressible_extras import CoefficientsTable, SurfaceTable
from fluxloom.app.cases.compressible_march import ImplicitTable, MarchTable, MultigridTable, RotationTable
from fluxloom.app.cases.expressions import formula_check
from fluxloom.app.cases.flow_mesh import FlowMeshTable
from fluxloom.app.cases.flow_monitors import AveragesTable, FlowCase, ProbesTable
from fluxloom.app.cases.start_tables import StartTable
from fluxloom.app.cases.wall_motion import MotionTable
from fluxloom.app.strategy_tables import OrOthers, strategy_table
from fluxloom.app.tables import Table
from fluxloom.core.errors import did_you_mean
from fluxloom.fv.compressible_boundary import BoundaryCondition
from fluxloom.fv.gas import Gas
from fluxloom.solvers.compressible_scheme import CompressibleScheme

__all__ = [
    "BOUNDARY_KEYS",
    "FORMULA_KEYS",
    "BoundaryTable",
    "CompressibleCase",
    "FreeStreamTable",
    "GasTable",
    "InitialTable",
    "SchemeTable",
]  # fmt: skip

FORMULA_KEYS = ("density", "velocity_x", "velocity_y", "velocity_z", "pressure")

BOUNDARY_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "slip": ((), ("velocity",)),
    "symmetry": ((), ()),
    "wall": ((), ("temperature", "velocity")),
    "far-field": ((), ("state", "vortex", "centre")),
    "supersonic-inlet": ((), ("state",)),
    "supersonic-outlet": ((), ()),
    "total-inlet": (("pressure", "temperature"), ("direction",)),
    "velocity-inlet": (("velocity",), ("temperature", "density")),
    "mass-inlet": (("mass_flux", "temperature"), ("direction",)),
    "outlet": (("pressure",), ()),
}
"""For each type of a boundary the keys that it needs, and those that it may have."""

InSpace = Annotated[str, AfterValidator(formula_check("x", "y", "z"))]
Vector = Annotated[list[float], Field(max_length=3)]
State = Annotated[list[float], Field(max_length=5)]
Positive = Annotated[float, Field(gt=0)]
Optional = Annotated[float, Field(ge=0)]
Given = Annotated[float | None, Field(ge=0)]
"""None: it is not given; 0.0 is a value."""


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
    numbers = [v for v in given if type(v) in (int, float) and isfinite(v)] if isinstance(given, list) else []
    if not isinstance(given, list) or len(numbers) < len(given) or len(given) > _SPACE:
        raise ValueError(f'must be finite numbers, one a dimension, or "mesh", got {given!r}')
    return [float(v) for v in numbers]


WallVelocity = Annotated[list[float] | Literal["mesh"], PlainValidator(_vector_or_mesh)]


class GasTable(strategy_table(Gas)):
    """``[gas]``: what flows; air by default."""

    moved = MappingProxyType(dict.fromkeys(("mu", "mu0", "t0", "s"), "viscosity"))

    @model_validator(mode="after")
    def _consistent(self) -> GasTable:
        if self.value.viscosity is None and (extra := self.changed(("prandtl", "prandtl_turbulent"))):
            raise ValueError(f"{extra[0]} is there but viscosity is not: give it, or leave {extra[0]} out")
        return self


class FreeStreamTable(Table):
    """``[flow]``: the uniform flow far away; gas at rest by default.

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

    mach: Optional = 0.0
    alpha: Annotated[float, Field(ge=-180, le=180)] = 0.0
    beta: Annotated[float, Field(ge=-180, le=180)] = 0.0
    up: Literal["", "y", "z"] = ""
    pressure: Optional = 0.0
    temperature: Positive = 288.15
    reynolds: Optional = 0.0
    length: Positive = 1.0
    turbulence: Optional = 3.0

    @model_validator(mode="after")
    def _consistent(self) -> FreeStreamTable:
        if self.reynolds and self.pressure:
            raise ValueError("give only one of pressure and reynolds: the other follows")
        if self.reynolds and not self.mach:
            raise ValueError("reynolds needs a mach above 0")
        return self


class SchemeTable(strategy_table(CompressibleScheme, without=("cfl",))):
    """``[scheme]``: see `fluxloom.solvers.compressible_scheme.CompressibleScheme`, whose names and defaults it has.

    Attributes
    ----------
    slopes
        ``"faces"``: by least squares of the elements across the faces of a cell; of all that share a node with it
        ``"least-squares"``, or by the means at its nodes ``"green-gauss"``; see `fluxloom.fv.node_slopes`.
    """

    slopes: Literal["faces", "green-gauss", "least-squares"] = "faces"
    order: Literal[1, 2] = 2
    moved = MappingProxyType({
        "entropy_fix": "flux", "cutoff": "flux",
        "smoothness": "limiter", "length": "limiter", "unlimited": "limiter",
    })  # fmt: skip

    @model_validator(mode="after")
    def _consistent(self) -> SchemeTable:
        if self.order == 1 and self.changed(("limiter",)):
            raise ValueError("order = 1 has no limiter")
        return self


class InitialTable(StartTable):
    """``[initial]``: the flow at the start; the free stream by default.

    Attributes
    ----------
    left, right
        Density, velocities and pressure on both sides of a plane.
    axis, at
        Which the plane is across, and where.
    density, velocity_x, velocity_y, velocity_z, pressure
        Instead: formulas in x, y and z; those that are left out are of the free stream.
    """

    left: State = Field(default=[])
    right: State = Field(default=[])
    axis: Literal["x", "y", "z"] = "x"
    at: float = 0.0
    density: InSpace = ""
    velocity_x: InSpace = ""
    velocity_y: InSpace = ""
    velocity_z: InSpace = ""
    pressure: InSpace = ""

    @model_validator(mode="after")
    def _consistent(self) -> InitialTable:
        self.alone("left", *FORMULA_KEYS)
        if bool(self.left) != bool(self.right):
            raise ValueError("give both of left and right, or neither")
        if self.left and (extra := self.changed(FORMULA_KEYS)):
            raise ValueError(f"give only one of left and {extra[0]}")
        if not self.left and (extra := self.changed(("axis", "at"))):
            raise ValueError(f"{extra[0]} is there but left and right are not: give them, or leave {extra[0]} out")
        return self


class BoundaryTable(MotionTable):
    """``[boundary.PATCH]``: what is beyond a patch of the mesh; every patch that is not periodic needs one.

    Attributes
    ----------
    type
        ``"slip"``, ``"symmetry"``, ``"wall"`` (with friction), ``"far-field"``, ``"supersonic-inlet"``,
        ``"supersonic-outlet"``, ``"total-inlet"``, ``"velocity-inlet"``, ``"mass-inlet"``, ``"outlet"``.
    state
        Density, velocities and pressure beyond a far field or an inlet; by default the free stream.
    pressure, temperature
        Of an outlet; at rest, of a total inlet or a mass inlet; of a wall that is not adiabatic; of gas that enters.
    density
        Of gas that enters a velocity inlet, instead of the temperature.
    velocity
        Of gas that enters, or of a wall that slides; ``"mesh"``: the wall turns with the mesh.
    velocity_x, velocity_y, velocity_z, spin, spin_centre
        Of a wall instead: formulas in x, y and z, or its angular velocity, rad/s, and a place on the axis.
    direction
        Of gas that enters; by default against the normal.
    mass_flux
        That enters through a unit of area, kg/(m^2 s).
    vortex, centre
        Of a far field in two dimensions: the patches of a body, whose lift makes a vortex, and where that is.
    """

    type: Annotated[str, AfterValidator(_one_of(BOUNDARY_KEYS))]
    state: State = Field(default=[])
    pressure: Given = None
    temperature: Given = None
    density: Given = None
    velocity: WallVelocity = Field(default=[])
    direction: Vector = Field(default=[])
    mass_flux: Given = None
    vortex: list[str] = Field(default=[])
    centre: Annotated[list[float], Field(min_length=2, max_length=2)] = Field(default=[0.25, 0.0])

    @model_validator(mode="after")
    def _consistent(self) -> BoundaryTable:
        needed, allowed = BOUNDARY_KEYS[self.type]
        keys = ("state", "pressure", "temperature", "density", "velocity", "direction", "mass_flux", "vortex", "centre")
        given = self.changed(keys)
        for key in given:
            if key not in needed + allowed:
                known = ", ".join(needed + allowed)
                has = f"it may have {known}" if known else "it has no other keys"
                raise ValueError(f'type = "{self.type}" has no {key}: {has}')
        for key in needed:
            if key not in given:
                raise ValueError(f'type = "{self.type}" needs {key}')
        moves = self.motion()
        if moves and self.type not in ("slip", "wall"):
            raise ValueError(f'{moves[0]} is of walls, not of type = "{self.type}"')
        if moves and self.velocity:
            raise ValueError(f"give only one of velocity and {moves[0]}")
        if self.velocity == "mesh" and self.type not in ("slip", "wall"):
            raise ValueError(f'velocity = "mesh" is of walls, not of type = "{self.type}"')
        if self.type == "velocity-inlet" and ("density" in given) == ("temperature" in given):
            raise ValueError('type = "velocity-inlet" needs one of temperature and density')
        if "centre" in given and not self.vortex:
            raise ValueError("centre is there but vortex is not: name the patches that lift, or leave centre out")
        return self


class CompressibleCase(FlowCase):
    """A case file of compressible flow."""

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
    forces: dict[str, CoefficientsTable] = Field(default={})
    surface: SurfaceTable = SurfaceTable()
    probes: ProbesTable = ProbesTable()
    statistics: AveragesTable = AveragesTable()

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
        if walls and not viscous:
            raise ValueError(f'boundary.{walls[0]}: a wall with friction needs gas.viscosity; or type = "slip"')
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
            if self.rotation is not None and not table.velocity:
                raise ValueError(
                    f'boundary.{name}: the mesh turns: say whether this wall does, velocity = "mesh", or not, '
                    "velocity = [0, 0, 0] (a number a dimension)"
                )
        if self.rotation is not None and self.time.integrator == "multigrid":
            raise ValueError('rotation: coarse levels cannot turn: take time.integrator = "explicit" or "implicit"')
