"""Steady flows in two dimensions whose forces and friction others have published, on meshes that others made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log, pi, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    FarField,
    NoSlipWall,
    PressureOutlet,
    SlipWall,
    SupersonicInlet,
    SupersonicOutlet,
    TotalInlet,
)
from fluxloom.fv.compressible.free_stream import FreeStream, PointVortex
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import Limiter, Venkatakrishnan
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.naca import NacaProfile, naca_mesh
from fluxloom.mesh.io import read as read_data
from fluxloom.mesh.ranks.wall_distance import wall_distance_of
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import (
    AerodynamicReference,
    Coefficients,
    PatchValues,
    SurfaceForces,
    patch_values,
)

__all__ = [
    "PublishedCase",
    "Settled",
    "bump",
    "euler_airfoil",
    "laminar_airfoil",
    "laminar_plate",
    "refined",
    "turbulent_airfoil",
    "turbulent_plate",
    "wedge",
]

Array = npt.NDArray[np.float64]

_TEMPERATURE = 300.0
"""540 degrees Rankine, K: of all flows with friction."""
_PLATE_LENGTH = 0.3048
_LAYER = 0.02
"""Thickness of the layer of growing speed at walls in first states, in lengths of the body."""
_SCALE, _PARTS = 0.275, 16
"""Radius of the circle round which flow is that far away from NACA 0012, in chords; quads around in a unit of rings."""


@dataclass(frozen=True, eq=False)
class Settled:
    """A steady state.

    Attributes
    ----------
    flow
        With the state.
    coefficients, friction
        Drag and lift; the part of the drag that is friction.
    wall
        What the flow does at the faces of the body, ordered along ``x``.
    cp, cf : (n,)
        Coefficients of pressure and of friction there; the second is negative where the gas goes against ``x``.
    drop
        Residual over that of the first state.
    steps
        How many were made.
    """

    flow: CompressibleFlow
    coefficients: Coefficients
    friction: float
    wall: PatchValues
    cp: Array
    cf: Array
    drop: float
    steps: int

    def at(self, x: float, values: Array) -> float:
        """Return a value of the wall at a place, linear between the centres of faces."""
        return float(np.interp(x, self.wall.places[:, 0], values))


@dataclass(frozen=True, eq=False)
class PublishedCase:
    """A flow past a body.

    Attributes
    ----------
    mesh, boundaries
        The mesh and what is at its patches.
    stream, gas
        What flows.
    body
        The patch with forces, the one wall with friction.
    length
        Of the body, in forces.
    turbulent
        Whether with the model of Spalart and Allmaras.
    limiter
        Of slopes; only flows with shocks need one.
    implicit
        How steps are made.
    """

    mesh: MeshData
    boundaries: Mapping[str, BoundaryCondition]
    stream: FreeStream
    gas: Gas
    body: str
    length: float = 1.0
    turbulent: bool = False
    limiter: Limiter | None = None
    implicit: Implicit = field(default_factory=lambda: Implicit(cfl=5.0, growth=1.5, switch=1.0))

    def begin(self, context: Context, states: Array | None = None) -> CompressibleFlow:
        """Return the flow with given states of the cells ``(cells, nv)``; by default the free stream, slow at walls."""
        distance = wall_distance_of(self.mesh, [self.body]) if self.gas.viscosity is not None else None
        scheme = CompressibleScheme(limiter=self.limiter, turbulence=SpalartAllmaras() if self.turbulent else None)
        volumes = control_volumes(self.mesh)
        flow = CompressibleFlow(
            context, volumes, self.boundaries, self.gas, scheme, distance if self.turbulent else None
        )
        if states is None:
            one = self.stream.state(self.gas, 2)
            one = np.append(one, self.stream.turbulence(self.gas)) if self.turbulent else one
            states = np.tile(one, (volumes.cells, 1))
            if distance is not None:
                states[:, 1:3] *= np.minimum(distance / (_LAYER * self.length), 1.0)[:, None]
        flow.start(states)
        return flow

    def settle(self, context: Context, drop: float, most: int, states: Array | None = None) -> Settled:
        """Return the state after at most so many steps; how steady it is, its ``drop`` says.

        Parameters
        ----------
        context
            Where it runs.
        drop
            Residual over that of the first state, at which steps end.
        most
            How many there are at most.
        states
            The first ones.
        """
        flow = self.begin(context, states)
        norms = SteadySteps(flow, self.implicit).solve(drop, most)
        return self.found(flow, norms[-1] / norms[0], len(norms) - 1)

    def found(self, flow: CompressibleFlow, drop: float, steps: int) -> Settled:
        """Return forces and what is at the body in the present state."""
        force = SurfaceForces(flow, {"body": [self.body]}, pressure=self.stream.pressure).now()["body"]
        reference = AerodynamicReference(self.stream, self.gas, area=self.length)
        pressure = self.stream.dynamic_pressure(self.gas)
        friction = float(force.friction @ reference.directions[0]) / (pressure * self.length)
        wall = _ordered(patch_values(flow, self.body))
        cp = (wall.pressure - self.stream.pressure) / pressure
        cf = np.copysign(np.linalg.norm(wall.friction, axis=1), wall.friction[:, 0]) / pressure
        return Settled(flow, reference.of(force), friction, wall, cp, cf, drop, steps)


def _ordered(found: PatchValues) -> PatchValues:
    """Return the values of faces in the order of their ``x``."""
    order = np.argsort(found.places[:, 0], kind="stable")
    return PatchValues(found.places[order], found.normals[order], found.area[order], found.pressure[order],
                       found.friction[order], found.y_plus[order])  # fmt: skip


def refined(states: Array, rows: int) -> Array:
    """Return states for a mesh of rows of quads with twice the rows and columns, linear in rows and columns.

    Parameters
    ----------
    states : (cells, nv)
        Row after row.
    rows
        How many there are.
    """
    w = states.reshape(rows, -1, states.shape[1])
    for _ in range(2):
        w = w.swapaxes(0, 1)
        wide = np.concatenate([w[:1], w, w[-1:]])
        both = np.stack([0.75 * w + 0.25 * wide[:-2], 0.75 * w + 0.25 * wide[2:]], axis=1)
        w = both.reshape(2 * len(w), *w.shape[1:])
    return w.reshape(-1, states.shape[1])


# ------------------------------------------------------------------------------------------------------- cases


def _stream(mach: float, reynolds: float, alpha: float = 0.0) -> tuple[Gas, FreeStream]:
    """Return air and a stream with a Reynolds number for a length of 1, at 300 K."""
    gas = Gas(viscosity=Sutherland())
    assert gas.viscosity is not None
    speed = mach * sqrt(gas.gamma * gas.constant * _TEMPERATURE)
    density = reynolds * float(gas.viscosity.at(_TEMPERATURE)) / speed
    pressure = density * gas.constant * _TEMPERATURE
    return gas, FreeStream.at_angles(mach, pressure, _TEMPERATURE, alpha, dimension=2)


def _ends(stream: FreeStream, gas: Gas, turbulence: float) -> dict[str, BoundaryCondition]:
    """Return an inlet with the total state of the stream, and an outlet with its pressure."""
    heat = 1.0 + 0.5 * (gas.gamma - 1.0) * stream.mach**2
    total = stream.pressure * heat ** (gas.gamma / (gas.gamma - 1.0))
    return {
        "inlet": TotalInlet(total, stream.temperature * heat, (1.0, 0.0), turbulence),
        "outlet": PressureOutlet(stream.pressure, turbulence),
    }


def _fronts(vectors: int) -> Implicit:
    """Return how steps are made on meshes with cells a hundred thousand times longer than high."""
    return Implicit(cfl=5.0, growth=1.5, switch=1.0, krylov=vectors, wavefront=True)


def turbulent_plate(data: Path, size: str) -> PublishedCase:
    """Return the plate of NASA's turbulence models: M 0.2, Re 5e6 for a length of 1, two long; size as 035x025."""
    gas, stream = _stream(0.2, 5e6)
    eddies = stream.turbulence(gas)
    sides = {"wall": NoSlipWall(), "symmetry": SlipWall(), "farfield": FarField(stream, eddies)}
    mesh = read_data(data / "flat_plate" / f"mesh_flatplate_turb_{size}.su2")
    return PublishedCase(mesh, sides | _ends(stream, gas, eddies), stream, gas, "wall", 2.0, turbulent=True)


def laminar_plate(data: Path) -> PublishedCase:
    """Return a plate of 0.3048 at M 0.2, Re 1.3e6 for its length."""
    gas, stream = _stream(0.2, 1.3e6 / _PLATE_LENGTH)
    sides = {"wall": NoSlipWall(), "symmetry": SlipWall(), "farfield": FarField(stream)}
    mesh = read_data(data / "flat_plate" / "mesh_flatplate_65x65_laminar.su2")
    return PublishedCase(mesh, sides | _ends(stream, gas, 0.0), stream, gas, "wall", _PLATE_LENGTH)


def bump(data: Path, size: str) -> PublishedCase:
    """Return the bump of NASA's turbulence models: M 0.2, Re 3e6 for a length of 1, 1.5 long; size as 0089x041."""
    gas, stream = _stream(0.2, 3e6)
    sides: dict[str, BoundaryCondition] = dict.fromkeys(("lower_upstream", "lower_downstream", "upper"), SlipWall())
    sides |= {"bump": NoSlipWall(), **_ends(stream, gas, stream.turbulence(gas))}
    mesh = read_data(data / "bump_in_channel" / f"mesh_bump_2d_{size}.cgns.gz")
    return PublishedCase(mesh, sides, stream, gas, "bump", 1.5, turbulent=True, implicit=_fronts(80))


def turbulent_airfoil(data: Path, size: str, alpha: float) -> PublishedCase:
    """Return NACA 0012 at M 0.15, Re 6e6, on the C-shaped meshes of NASA's turbulence models; size as 113-33."""
    gas, stream = _stream(0.15, 6e6, alpha)
    sides = {"airfoil": NoSlipWall(), "farfield": FarField(stream, stream.turbulence(gas))}
    mesh = read_data(data / "naca0012" / f"n0012_{size}.su2")
    return PublishedCase(mesh, sides, stream, gas, "airfoil", turbulent=True, implicit=_fronts(120))


def laminar_airfoil(data: Path | None, around: int = 128) -> PublishedCase:
    """Return NACA 0012 at M 0.5, Re 5000: on triangles and quads of ``data``, or without on rings of quads."""
    gas, stream = _stream(0.5, 5000.0)
    far = {"airfoil": NoSlipWall()}
    if data is None:
        mesh = naca_mesh("0012", around, around // 2, 50.0, 0.1)
        return PublishedCase(mesh, far | {"far_field": FarField(stream)}, stream, gas, "airfoil")
    mesh = read_data(data / "naca0012" / "mesh_NACA0012_lam_hybrid_v1.su2")
    return PublishedCase(mesh, far | {"farfield": FarField(stream)}, stream, gas, "airfoil")


def euler_airfoil(mach: float, around: int, reach: float = 150.0, *, vortex: bool = False) -> PublishedCase:
    """Return NACA 0012 at 1.25 degrees without friction, on rings of squares up to ``reach`` chords.

    Forces refer to the chord that the family has without a sharp edge, as those of Vassberg and Jameson. With
    ``vortex`` the far field has that of the lift.
    """
    gas = Gas(constant=1.0)
    stream = FreeStream.at_angles(mach, 1.0, 1.0, 1.25, dimension=2)
    outward = around * round(_PARTS * log(reach / _SCALE) / (2.0 * pi)) // _PARTS  # so that meshes nest
    far = FarField(stream, vortex=PointVortex(("airfoil",)) if vortex else None)
    sides, profile = {"airfoil": SlipWall(), "far_field": far}, NacaProfile.named("0012")
    smooth = mach < 0.6  # without shocks nothing has to be limited
    return PublishedCase(
        naca_mesh(profile, around, outward, reach), sides, stream, gas, "airfoil", profile.family_chord,
        limiter=None if smooth else Venkatakrishnan(),
        implicit=Implicit(cfl=20.0) if smooth else Implicit(),
    )  # fmt: skip


def wedge(data: Path, suffix: str) -> PublishedCase:
    """Return a wedge of 10 degrees that begins at 1/2, at M 2; suffix su2 or cgns."""
    gas = Gas(constant=1.0)
    stream = FreeStream.at_angles(2.0, 1.0, 1.0, 0.0, dimension=2)
    sides = {"inlet": SupersonicInlet(stream), "outlet": SupersonicOutlet(), "upper": SlipWall(), "lower": SlipWall()}
    mesh = read_data(data / "inviscid_misc" / f"mesh_wedge_inv.{suffix}")
    return PublishedCase(mesh, sides, stream, gas, "lower", limiter=Venkatakrishnan(), implicit=Implicit())
