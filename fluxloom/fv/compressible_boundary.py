"""Boundaries of compressible flow, and the table that their kernel reads; the states are in `compressible_outside`.

Units are Pa, K, kg, m and s, or others that fit the gas constant. What is given is one value for the whole patch, or a
function of the places ``(n, d)`` that returns one for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible_outside import (
    DENSITY_INLET,
    FAR_FIELD,
    GIVEN_STATE,
    INSIDE_STATE,
    ISOTHERMAL_WALL,
    MASS_INLET,
    NO_SLIP_WALL,
    PARAMETERS,
    PRESSURE_OUTLET,
    SLIP_WALL,
    TEMPERATURE_INLET,
    TOTAL_INLET,
)
from fluxloom.fv.compressible_patches import Number, PatchFaces, State, Vector
from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.gas import Gas
from fluxloom.fv.given import check_patches
from fluxloom.fv.point_vortex import PointVortex

__all__ = [
    "Boundary",
    "FarField",
    "MassFlowInlet",
    "NoSlipWall",
    "PressureOutlet",
    "SlipWall",
    "SupersonicInlet",
    "SupersonicOutlet",
    "TotalInlet",
    "VelocityInlet",
    "boundary_table",
    "check_turning",
]

Array = npt.NDArray[np.float64]
Rows = tuple[int, Array]

_SWEEP = (1e-3, 0.05)
"""Of the fastest place of a wall that turns, what may pass its faces: in the plane, and of facets in space."""


@dataclass(frozen=True)
class SlipWall:
    """A wall without friction, or a plane of symmetry: pressure and density are those of the inside.

    Attributes
    ----------
    velocity
        Of the wall, ``(d,)``; at rest by default. Only its part along the normal counts: gas passes the face with it.
    """

    velocity: Vector = ()

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        return SLIP_WALL, faces.row(0.0, faces.vector("velocity", self.velocity), 0.0)


@dataclass(frozen=True)
class NoSlipWall:
    """A wall with friction: the velocity is its own, the pressure that of the inside.

    Attributes
    ----------
    temperature
        Of the wall; None: no heat passes, the temperature is that of the inside.
    velocity
        Of the wall, ``(d,)``; at rest by default. It should be along the wall: a part along the normal lets gas pass.
    """

    temperature: Number | None = None
    velocity: Vector = ()

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        velocity = faces.vector("velocity", self.velocity)
        if self.temperature is None:
            return NO_SLIP_WALL, faces.row(0.0, velocity, 0.0)
        return ISOTHERMAL_WALL, faces.row(faces.thermal(self.temperature), velocity, 0.0)


@dataclass(frozen=True)
class FarField:
    """Uniform flow beyond the boundary, in or out, below or above the speed of sound: by Riemann invariants.

    Attributes
    ----------
    state
        A `FreeStream`, or density, velocity and pressure, ``(d + 2,)``.
    turbulence
        Variable of the turbulence model in gas that comes in (of Spalart and Allmaras: 3 to 5 times the kinematic
        viscosity), m^2/s.
    vortex
        In two dimensions the vortex of a body that lifts, beside the uniform flow: the end may be nearer then.
    """

    state: State
    turbulence: float = 0.0
    vortex: PointVortex | None = None

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters, without the vortex (`fluxloom.solvers.compressible_vortex` adds it)."""
        w = faces.state(self.state)
        return FAR_FIELD, faces.row(w[:, 0], w[:, 1:-1], w[:, -1], self.turbulence)


@dataclass(frozen=True)
class SupersonicInlet:
    """Everything is given: flow that comes in faster than sound, or exact states of a test.

    Attributes
    ----------
    state, turbulence
        See `FarField`.
    """

    state: State
    turbulence: float = 0.0

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        w = faces.state(self.state)
        return GIVEN_STATE, faces.row(w[:, 0], w[:, 1:-1], w[:, -1], self.turbulence)


@dataclass(frozen=True)
class SupersonicOutlet:
    """Everything is that of the inside; it should leave faster than sound."""

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        return INSIDE_STATE, faces.row(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class TotalInlet:
    """Gas enters from rest, at most with the speed of sound; see `fluxloom.fv.compressible_outside.from_reservoir`.

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
    turbulence: float = 0.0

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        heat, way = faces.thermal(self.temperature), faces.inward(self.direction)
        return TOTAL_INLET, faces.row(heat, way, faces.number("pressure", self.pressure), self.turbulence)


@dataclass(frozen=True)
class VelocityInlet:
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
    turbulence: float = 0.0

    def __post_init__(self) -> None:
        if (self.density is None) == (self.temperature is None):
            raise SolverError("VelocityInlet: either a density or a temperature is wanted, not both and not none")

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        velocity = faces.entering("velocity", self.velocity)
        if self.density is not None:
            return DENSITY_INLET, faces.row(faces.number("density", self.density), velocity, 0.0, self.turbulence)
        assert self.temperature is not None
        return TEMPERATURE_INLET, faces.row(faces.thermal(self.temperature), velocity, 0.0, self.turbulence)


@dataclass(frozen=True)
class MassFlowInlet:
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
    turbulence: float = 0.0

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        way, flux = faces.inward(self.direction), faces.number("mass_flux", self.mass_flux, zero=True)
        momentum = way * (flux / -np.einsum("ij,ij->i", way, faces.normals))[:, None]
        return MASS_INLET, faces.row(faces.thermal(self.temperature), momentum, 0.0, self.turbulence)


@dataclass(frozen=True)
class PressureOutlet:
    """Gas leaves into a room with a given pressure; see `fluxloom.fv.compressible_outside.leaving`.

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
    turbulence: float = 0.0

    def rows(self, faces: PatchFaces) -> Rows:
        """Return kind and parameters."""
        return PRESSURE_OUTLET, faces.row(0.0, 0.0, faces.number("pressure", self.pressure), self.turbulence)


Boundary = (
    SlipWall
    | NoSlipWall
    | FarField
    | SupersonicInlet
    | SupersonicOutlet
    | TotalInlet
    | VelocityInlet
    | MassFlowInlet
    | PressureOutlet
)


def check_turning(
    volumes: ControlVolumes, kinds: npt.NDArray[np.int32], rows: npt.NDArray[np.float64], turning: Array
) -> None:
    """Raise `SolverError` where a wall sweeps through the gas of a mesh that turns, ``(u - omega x r) . n`` not zero.

    Parameters
    ----------
    volumes
        Of the mesh.
    kinds, rows
        Of its boundary, from `boundary_table`.
    turning : (boundary elements, d)
        ``omega x r`` there.
    """
    d, bound = volumes.dimension, _SWEEP[volumes.dimension == 3]
    for name, elements in volumes.patches.items():
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        walls = np.isin(kinds[place], (SLIP_WALL, NO_SLIP_WALL, ISOTHERMAL_WALL))
        apart = rows[place, 1 : 1 + d] - turning[place]
        through = np.abs(np.einsum("ij,ij->i", apart, volumes.normals[volumes.interior :][place]))
        fastest = np.linalg.norm(turning[place], axis=1).max(initial=0.0)
        if (wrong := walls & (through > bound * fastest)).any():
            raise SolverError(
                f"patch {name!r}: the mesh turns, and {int(wrong.sum())} of {wrong.size} faces of the wall do not turn "
                "with it: they sweep through the gas, as no surface of revolution does; give the wall the velocity of "
                'the mesh (velocity = "mesh")'
            )


def boundary_table(
    volumes: ControlVolumes, boundaries: Mapping[str, Boundary], gas: Gas
) -> tuple[npt.NDArray[np.int32], Array]:
    """Return kind and parameters of each boundary element, ``(n,)`` and ``(n, PARAMETERS)``.

    The kind of an image beyond the side of a sector is -1 less the number of its rotation (`fluxloom.fv.sectors`).

    Raises
    ------
    SolverError
        If a patch has no boundary, a boundary no patch, or what is given does not fit.
    """
    check_patches("boundaries", volumes, boundaries)
    count = volumes.elements - volumes.cells
    kinds, rows = np.full(count, SLIP_WALL, dtype=np.int32), np.zeros((count, PARAMETERS))
    normals = volumes.normals[volumes.interior :]
    if volumes.turned is not None:
        kinds[volumes.turned.elements - volumes.cells] = -1 - volumes.turned.which
    for name, elements in volumes.patches.items():
        boundary = boundaries.get(name)
        if not isinstance(boundary, Boundary):
            known = ", ".join(kind.__name__ for kind in Boundary.__args__)
            raise SolverError(f"patch {name!r} has no boundary: give one of {known}, not {boundary!r}")
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        centres = volumes.centres[elements.start : elements.stop]
        kinds[place], rows[place] = boundary.rows(PatchFaces(name, centres, normals[place], gas))
    return kinds, rows
