"""Boundaries of compressible flow, and the table that their kernel reads; the states are in `.boundary_states`.

Units are Pa, K, kg, m and s, or others that fit the gas constant. What is given is a number, a formula, a table or a
function, of the place and the time (`fluxloom.values.value.value_of`); of a vector one for each component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy, is_ours, strategy_name
from fluxloom.fv.compressible.boundary_states import (
    PARAMETERS,
    DensityState,
    FaceState,
    FarFieldState,
    GivenState,
    HeatFluxState,
    InsideState,
    IsothermalState,
    MassFlowState,
    NoSlipState,
    OutletState,
    ReservoirState,
    SlipState,
    TemperatureState,
)
from fluxloom.fv.compressible.free_stream import PointVortex
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.patches import Changing, Number, PatchFaces, State, Vector
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.given import check_patches, formulas_in_order

__all__ = [
    "BoundaryCondition",
    "BoundaryTable",
    "FarField",
    "MassFlowInlet",
    "NoSlipWall",
    "PressureOutlet",
    "SlipWall",
    "SupersonicInlet",
    "SupersonicOutlet",
    "SymmetryPlane",
    "TotalInlet",
    "VelocityInlet",
    "boundary_table",
    "check_turning",
    "states_of",
]

Array = npt.NDArray[np.float64]

_SWEEP = (1e-3, 0.05)
"""Of the fastest place of a wall that turns, what may pass its faces: in the plane, and of facets in space."""


class BoundaryCondition(Strategy, FaceState, what="boundary condition", group="fluxloom.compressible_boundaries"):
    """What is given at the faces of a patch, and the formula that makes the states there of it.

    A member is a frozen dataclass with a ``__call__`` that is a ``@func``, see `FaceState`, and fields that are
    numbers. Where fields are arrays or functions of the place, it has a `formula` of its own, which sees them so.
    """

    @property
    def formula(self) -> FaceState:
        """What writes the state at a face."""
        return self

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers that the formula is given at each face, ``(n, PARAMETERS)``; see `PatchFaces.row`."""
        return faces.row(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SlipWall(BoundaryCondition):
    """A wall without friction: pressure and density are those of the inside.

    Attributes
    ----------
    velocity
        Of the wall, ``(d,)``; at rest by default. Only its part along the normal counts: gas passes the face with it.
    slides
        Whether the wall moves along itself, see `NoSlipWall`: then nothing counts.
    """

    velocity: Vector = ()
    slides: bool = False

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return SlipState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        return faces.row(0.0, faces.vector("velocity", self.velocity, slides=self.slides), 0.0)


@dataclass(frozen=True)
class SymmetryPlane(BoundaryCondition):
    """A plane of symmetry: beyond it the flow goes on, mirrored, so that half a flow is the half of the whole.

    Each face mirrors about itself; on curved walls take `SlipWall`. Gradients that look through the nodes of cells, and
    faces that move along their normals, see a wall without friction instead.
    """

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return SlipState()  # the solver adds the mark that makes a face a mirror


@dataclass(frozen=True)
class NoSlipWall(BoundaryCondition):
    """A wall with friction: the velocity is its own, the pressure that of the inside.

    Attributes
    ----------
    temperature
        Of the wall; None: no heat passes, the temperature is that of the inside.
    velocity
        Of the wall, ``(d,)``; at rest by default. It should be along the wall: a part along the normal lets gas pass.
    heat_flux
        Instead of a temperature: heat that the wall gives to the gas, W/m^2; below 0 it takes it.
    slides
        Whether the wall moves along itself: what the velocity has along the normals of its faces is left out.
    """

    temperature: Number | None = None
    velocity: Vector = ()
    heat_flux: Number | None = None
    slides: bool = False

    def __post_init__(self) -> None:
        if self.temperature is not None and self.heat_flux is not None:
            raise SolverError("NoSlipWall: a temperature or a heat flux is wanted, not both")

    @property
    def formula(self) -> FaceState:
        """With a temperature, a heat flux, or neither."""
        if self.heat_flux is not None:
            return HeatFluxState()
        return NoSlipState() if self.temperature is None else IsothermalState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        velocity = faces.vector("velocity", self.velocity, slides=self.slides)
        if self.heat_flux is not None:
            return faces.row(faces.number("heat_flux", self.heat_flux, least=-np.inf), velocity, 0.0)
        if self.temperature is None:
            return faces.row(0.0, velocity, 0.0)
        return faces.row(faces.thermal(self.temperature), velocity, 0.0)


@dataclass(frozen=True)
class FarField(BoundaryCondition):
    """Uniform flow beyond the boundary, in or out, below or above the speed of sound: by Riemann invariants.

    Attributes
    ----------
    state
        A `FreeStream`, or a value each for density, velocity and pressure, ``(d + 2,)``; None: the stream of the flow.
    turbulence
        Variable of the turbulence model in gas that comes in (of Spalart and Allmaras: 3 to 5 times the kinematic
        viscosity), m^2/s; None: that of the stream of the flow, 0 where it has none.
    vortex
        In two dimensions the vortex of a body that lifts, beside the uniform flow: the end may be nearer then.
    """

    state: State | None = None
    turbulence: Number | None = None
    vortex: PointVortex | None = None

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return FarFieldState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face, without the vortex (`fluxloom.solvers.compressible.residual` adds it)."""
        return faces.row(*faces.parts(faces.state(self.state)), self.turbulence)


@dataclass(frozen=True)
class SupersonicInlet(BoundaryCondition):
    """Everything is given: flow that comes in faster than sound, or with ``exact`` the states of a test.

    Attributes
    ----------
    state, turbulence
        See `FarField`.
    exact
        Whether the states are those of an exact solution: they may leave, and be slower than sound.
    """

    state: State | None = None
    turbulence: Number | None = None
    exact: bool = False

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return GivenState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        w = faces.state(self.state) if self.exact else faces.supersonic(self.state)
        return faces.row(*faces.parts(w), self.turbulence)


@dataclass(frozen=True)
class SupersonicOutlet(BoundaryCondition):
    """Everything is that of the inside; it should leave faster than sound."""

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return InsideState()


@dataclass(frozen=True)
class TotalInlet(BoundaryCondition):
    """Gas enters from rest, at most with the speed of sound; see `.boundary_states.from_reservoir`.

    Where the flow inside drives it back it leaves into the same room, as through a `PressureOutlet` with the total
    pressure.

    Attributes
    ----------
    pressure, temperature
        At rest: total pressure and total temperature.
    direction
        Of the flow that enters, ``(d,)``; by default against the normal.
    turbulence
        See `FarField`.
    """

    pressure: Number
    temperature: Number
    direction: Vector = ()
    turbulence: Number | None = None

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return ReservoirState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        heat, way = faces.thermal(self.temperature), faces.inward(self.direction)
        return faces.row(heat, way, faces.number("pressure", self.pressure), self.turbulence)


@dataclass(frozen=True)
class VelocityInlet(BoundaryCondition):
    """Velocity and either density or temperature are given, the pressure is that of the inside: slower than sound.

    Attributes
    ----------
    velocity
        ``(d,)``.
    density, temperature
        One of them.
    turbulence
        See `FarField`.
    """

    velocity: Vector
    density: Number | None = None
    temperature: Number | None = None
    turbulence: Number | None = None

    def __post_init__(self) -> None:
        if (self.density is None) == (self.temperature is None):
            raise SolverError("VelocityInlet: either a density or a temperature is wanted, not both and not none")

    @property
    def formula(self) -> FaceState:
        """With a density or with a temperature."""
        return TemperatureState() if self.density is None else DensityState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        velocity = faces.entering("velocity", self.velocity)
        if self.density is not None:
            return faces.row(faces.number("density", self.density), velocity, 0.0, self.turbulence)
        assert self.temperature is not None
        return faces.row(faces.thermal(self.temperature), velocity, 0.0, self.turbulence)


@dataclass(frozen=True)
class MassFlowInlet(BoundaryCondition):
    """A mass flow enters with a total temperature, at the pressure of the inside.

    Attributes
    ----------
    mass_flux
        That enters through a unit of area, ``-rho u . n``, kg/(m^2 s).
    temperature
        At rest: total temperature.
    direction
        Of the flow that enters, ``(d,)``; by default against the normal.
    turbulence
        See `FarField`.
    """

    mass_flux: Number
    temperature: Number
    direction: Vector = ()
    turbulence: Number | None = None

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return MassFlowState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        way, flux = np.asarray(faces.inward(self.direction)), faces.number("mass_flux", self.mass_flux, zero=True)
        through = -np.einsum("ij,ij->i", way, faces.normals)
        return faces.row(faces.thermal(self.temperature), faces.along(way, flux / through), 0.0, self.turbulence)


@dataclass(frozen=True)
class PressureOutlet(BoundaryCondition):
    """Gas leaves into a room with a given pressure; see `fluxloom.fv.compressible.boundary_states.leaving`.

    Where the flow inside draws it back it enters with the tangential velocity and the entropy of the gas inside: the
    given pressure is the total pressure of its motion along the normal then.

    Attributes
    ----------
    pressure
        Of the room; without effect where the gas leaves faster than sound.
    turbulence
        See `FarField`; of gas that comes back.
    """

    pressure: Number
    turbulence: Number | None = None

    @property
    def formula(self) -> FaceState:
        """See `fluxloom.fv.compressible.boundary_states`."""
        return OutletState()

    def rows(self, faces: PatchFaces) -> Array:
        """Return the numbers of each face."""
        return faces.row(0.0, 0.0, faces.number("pressure", self.pressure), self.turbulence)


def check_turning(
    volumes: ControlVolumes, boundaries: Mapping[str, BoundaryCondition], rows: npt.NDArray[np.float64], turning: Array
) -> None:
    """Raise `SolverError` where a wall sweeps through the gas of a mesh that turns: ``(u - omega x r) . n`` is not 0.

    Parameters
    ----------
    volumes
        Of the mesh.
    boundaries, rows
        Of its patches, and the numbers of `boundary_table`.
    turning : (boundary elements, d)
        ``omega x r`` there.
    """
    d, bound = volumes.dimension, _SWEEP[volumes.dimension == 3]
    for name, elements in volumes.patches.items():
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        if not boundaries[name].formula.wall:
            continue
        apart = rows[place, 1 : 1 + d] - turning[place]
        through = np.abs(np.einsum("ij,ij->i", apart, volumes.normals[volumes.interior :][place]))
        fastest = np.linalg.norm(turning[place], axis=1).max(initial=0.0)
        if (wrong := through > bound * fastest).any():
            raise SolverError(
                f"patch {name!r}: the mesh turns, and {int(wrong.sum())} of {wrong.size} faces of the wall do not turn "
                "with it: they sweep through the gas, as no surface of revolution does; give the wall the velocity of "
                'the mesh (velocity = "mesh")'
            )


def states_of(boundaries: Mapping[str, BoundaryCondition]) -> tuple[FaceState, ...]:
    """Return the formulas of some boundaries, each once, in an order that is the same for all that have the same."""
    return formulas_in_order(boundary.formula for boundary in boundaries.values())


class BoundaryTable(NamedTuple):
    """What boundary elements are given.

    Attributes
    ----------
    kinds : (n,)
        Place of the formula of each; of an image beyond the side of a sector -1 less the number of its rotation
        (`fluxloom.fv.geometry.sectors`).
    rows : (n, PARAMETERS)
        The numbers that the formulas are given, at the start.
    states
        The formulas.
    changing
        By patch what depends on the time, with the parameter that it begins with.
    """

    kinds: npt.NDArray[np.int32]
    rows: Array
    states: tuple[FaceState, ...]
    changing: Mapping[str, Sequence[tuple[int, Changing]]]


def boundary_table(
    volumes: ControlVolumes, boundaries: Mapping[str, BoundaryCondition], gas: Gas
) -> BoundaryTable:
    """Return what the boundary elements of some control volumes are given.

    Raises
    ------
    SolverError
        If a patch has no boundary, a boundary no patch, or what is given does not fit.
    """
    check_patches("boundaries", volumes, boundaries)
    for name in volumes.patches:
        if not isinstance(boundaries.get(name), BoundaryCondition):
            known = ", ".join(kind.__name__ for kind in _OURS)
            raise SolverError(f"patch {name!r} has no boundary: give one of {known}, not {boundaries.get(name)!r}")
    states = states_of(boundaries)
    count = volumes.elements - volumes.cells
    kinds, rows = np.zeros(count, dtype=np.int32), np.zeros((count, PARAMETERS))
    changing: dict[str, list[tuple[int, Changing]]] = {}
    normals = volumes.normals[volumes.interior :]
    if volumes.turned is not None:
        kinds[volumes.turned.elements - volumes.cells] = -1 - volumes.turned.which
    for name, elements in volumes.patches.items():
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        centres = volumes.centres[elements.start : elements.stop]
        kinds[place] = states.index(boundaries[name].formula)
        faces = PatchFaces(name, centres, normals[place], gas)
        rows[place] = _rows(boundaries[name], faces)
        changing[name] = faces.changing
    return BoundaryTable(kinds, rows, states, {name: found for name, found in changing.items() if found})


def _rows(boundary: BoundaryCondition, faces: PatchFaces) -> Array:
    """Return the numbers of the faces of a patch; of conditions of others once they and the formula are tried."""
    if is_ours(boundary):
        return boundary.rows(faces)
    about, shape = f"patch {faces.name!r}: {strategy_name(boundary)}", (len(faces.places), PARAMETERS)
    try:
        found = np.asarray(boundary.rows(faces), dtype=np.float64)
    except SolverError:
        raise
    except Exception as error:
        raise SolverError(f"{about}: rows: {type(error).__name__}: {error}") from error
    if found.shape != shape or not np.isfinite(found).all():
        raise SolverError(f"{about}: rows: finite numbers {shape} are wanted, as faces.row makes them, not {found!r}")
    if len(found):
        from fluxloom.fv.compressible.formula_trials import try_condition

        try_condition(about, boundary.formula, found[0], faces.normals[0])
    return found


_OURS = (
    SlipWall, SymmetryPlane, NoSlipWall, FarField, SupersonicInlet, SupersonicOutlet, TotalInlet, VelocityInlet,
    MassFlowInlet, PressureOutlet,
)  # fmt: skip
