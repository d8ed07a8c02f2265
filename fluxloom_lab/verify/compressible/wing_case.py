"""The ONERA M6 wing at 3.06 degrees, without friction or turbulent (Spalart and Allmaras) at Re = 11.72e6.

The wing of AGARD AR-138: root chord 0.8059 m, half span 1.1963 m, taper 0.562, leading edge swept by 30 degrees; the
Reynolds number is that of the mean aerodynamic chord.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SlipWall, SymmetryPlane
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.multigrid import squares
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.ranks.wall_distance import wall_distance, wall_faces
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, ImplicitStep, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import AerodynamicReference, SurfaceForces, patch_values
from fluxloom_lab.problems.wing_planform import WingPlanform
from fluxloom_lab.studies.wing_sections import Section, section, strips
from fluxloom_lab.verify.compressible.wing_data import MACH, STATIONS

__all__ = ["ALPHA", "AREA", "CHORD", "PLANFORM", "REYNOLDS", "Wing", "above_their_walls"]

Array = npt.NDArray[np.float64]

ALPHA, REYNOLDS = 3.06, 11.72e6
CHORD, AREA = 0.64607, 0.7532
"""Mean aerodynamic chord and area of the half wing that the report gives, m and m^2."""
PLANFORM = WingPlanform(0.8059, 0.562, 1.1963, 30.0)
_TEMPERATURE = 288.15
_LAYERS, _ALONG = 5, 0.95
"""Layers of cells whose distance is at least their height, and the cosine within which they follow one another."""
_LAYER, _SUBLAYER = 8e-3, 4e-5
"""Thickness of the boundary layer that turbulent flow begins with, and of its viscous part over its speed, m."""


def _free_stream(gas: Gas, mach: float) -> FreeStream:
    """Return the flow far away; with friction its pressure follows from the Reynolds number."""
    found = FreeStream.at_angles(mach, 101325.0, _TEMPERATURE, ALPHA)
    if gas.viscosity is None:
        return found
    density = REYNOLDS * float(gas.viscosity.at(_TEMPERATURE)) / (found.speed(gas) * CHORD)
    return replace(found, pressure=density * gas.constant * _TEMPERATURE)


def _profile(states: Array, distance: Array) -> Array:
    """Slow uniform flow down near the wall, about as a turbulent layer does: gas that hits walls is hard to begin with.

    Velocities are those of a layer of 8 mm with the power 1/7, and near the wall linear, as in the viscous sublayer.
    """
    share = np.minimum(np.minimum(distance / _LAYER, 1.0) ** (1.0 / 7.0), distance / _SUBLAYER)
    states[:, 1:4] *= share[:, None]
    states[:, 5] *= np.minimum(distance / _LAYER, 1.0)
    return states


def above_their_walls(volumes: ControlVolumes, patch: str, distance: Array) -> Array:
    """Return distances not less than the heights of the cells of the first layers above their own faces of a wall.

    Faces with four corners are warped where a wall is curved both ways, often by more than thin cells are high: one of
    their neighbours' triangles is then nearer to a cell than its own face, or cuts it.

    Parameters
    ----------
    volumes
        The cells.
    patch
        The wall.
    distance : (cells,)
        From the nearest face of the wall.

    Returns
    -------
    Array
        The greater of both for the first layers, ``distance`` elsewhere, ``(cells,)``.
    """
    elements = np.asarray(volumes.patches[patch])
    face = volumes.interior + elements - volumes.cells
    origin, inward = volumes.centres[elements], -volumes.normals[face]
    wall = np.full(volumes.cells, -1)
    wall[volumes.faces[face, 0]] = np.arange(elements.size)
    inner, normals = volumes.faces[: volumes.interior], volumes.normals[: volumes.interior]
    for _ in range(_LAYERS):
        for a, b, sign in ((0, 1, 1.0), (1, 0, -1.0)):
            found = np.flatnonzero((wall[inner[:, a]] >= 0) & (wall[inner[:, b]] < 0))
            own = wall[inner[found, a]]
            along = sign * np.einsum("ij,ij->i", normals[found], inward[own]) > _ALONG
            wall[inner[found[along], b]] = own[along]
    cells = np.flatnonzero(wall >= 0)
    own = wall[cells]
    height = np.einsum("ij,ij->i", volumes.centres[cells] - origin[own], inward[own])
    out = distance.copy()
    out[cells] = np.maximum(distance[cells], height)
    return out


class Wing:
    """The flow round the wing, at first uniform, or turbulent with a boundary layer.

    Parameters
    ----------
    context
        Where it runs.
    mesh
        With the patches wing, symmetry and farfield: ``x`` downstream, ``y`` along the span, ``z`` up.
    scheme
        How it is computed; with a model of turbulence there is friction.
    mach
        Of the free stream.

    Attributes
    ----------
    flow, gas, stream, boundaries, distance
        What they say; ``distance`` of each cell from the wing, None without friction.
    seconds
        That control volumes, distances from the wall and the flow took to set up.
    """

    def __init__(self, context: Context, mesh: MeshData, scheme: CompressibleScheme, mach: float = MACH) -> None:
        begin = perf_counter()
        turbulent = scheme.turbulence is not None
        self.mesh, self.gas = mesh, Gas(viscosity=Sutherland() if turbulent else None)
        self.stream = stream = _free_stream(self.gas, mach)
        volumes = control_volumes(mesh)
        self.seconds = {"volumes": perf_counter() - begin}
        self.distance, nut = None, 0.0
        if turbulent:
            begin = perf_counter()
            self.distance = wall_distance(volumes.centres[: volumes.cells], *wall_faces(mesh, ["wing"]))
            self.distance = above_their_walls(volumes, "wing", self.distance)
            self.seconds["distance"] = perf_counter() - begin
            nut = stream.turbulence(self.gas)
        begin = perf_counter()
        walls = NoSlipWall() if turbulent else SlipWall()
        self.boundaries = {"wing": walls, "symmetry": SymmetryPlane(), "farfield": FarField(stream, nut)}
        self.flow = CompressibleFlow(context, volumes, self.boundaries, self.gas, scheme, self.distance)
        uniform = stream.state(self.gas, 3)
        self.uniform = np.concatenate([uniform, [nut]]) if turbulent else uniform
        self.flow.start(self.uniform)
        if self.distance is not None:
            self.continue_from(_profile(np.tile(self.uniform, (len(self.distance), 1)), self.distance))
        self.reference = AerodynamicReference(stream, self.gas, AREA, CHORD)
        self.forces = SurfaceForces(self.flow, {"wing": ["wing"]}, pressure=stream.pressure)
        self.seconds["flow"] = perf_counter() - begin

    def resume(self, file: Path) -> None:
        """Go on from the states ``w`` of an NPZ file, also from those of the mesh before each cell was divided."""
        old = np.load(file)["w"].astype(np.float64)
        old = np.repeat(old, max(1, self.mesh.n_cells // len(old)), axis=0)
        states = np.tile(self.uniform, (len(old), 1))
        states[:, : old.shape[1]] = old
        self.continue_from(states)

    def continue_from(self, states: Array) -> None:
        """Take some states of the cells, ``(cells, nv)``."""
        scale = self.flow.scale.value
        self.flow.start(states)
        self.flow.scale.value = scale  # sizes of components stay those of uniform flow

    def first_order(self, count: int, tell: Callable[[ImplicitStep], None] | None = None) -> float:
        """Make implicit steps of first order, after which those of second order begin more easily.

        It ends before where a step is refused; the states are the last good ones. Each step is told.

        Returns
        -------
        float
            The residual of first order, `SteadySteps.total`.
        """
        flow, scheme = self.flow, replace(self.flow.scheme, order=1)
        rough = CompressibleFlow(flow.context, flow.volumes, self.boundaries, self.gas, scheme, self.distance)
        rough.start(flow.states())
        steps = SteadySteps(rough, Implicit(krylov=0))
        steps.begin()
        with suppress(SolverError):
            for _ in range(count):
                done = steps.step()
                if tell is not None:
                    tell(done)
        self.continue_from(rough.states())
        return steps.total

    def coefficients(self) -> dict[str, float]:
        """Return lift, drag, its part from friction, and the moment about the origin, of the whole wing."""
        force = self.forces.now()["wing"]
        found, friction = self.reference.of(force), replace(force, pressure=0.0 * force.pressure)
        return {"CL": found.lift, "CD": found.drag, "CDv": self.reference.of(friction).drag, "CM": found.moment}

    def residual(self) -> float:
        """Return that of the states now; see `total`."""
        flow = self.flow
        square = flow.context.scalar(np.zeros(flow.components), "square")
        look = Loop(squares, flow.elements, flow.res, square, nv=flow.components)
        Chain([*flow.right_hand_side(flow.w), Reset(square), look], name="look")()
        return self.total(np.sqrt(np.asarray(square.value) / flow.volumes.cells))

    def total(self, norms: Array) -> float:
        """Return one number of norms ``(nv,)``: of mass, momentum and energy over their sizes, as multigrid has it."""
        density, speed = np.sqrt(np.asarray(self.flow.scale.value)[:2])
        sizes = density * speed * np.array([1.0, speed, speed, speed, speed * speed])
        return float(np.linalg.norm(norms[:5] / sizes))

    def sections(self) -> list[Section]:
        """Return the pressure at the stations."""
        values = patch_values(self.flow, "wing")
        return [
            section(self.mesh, ["wing"], values, PLANFORM, eta * PLANFORM.span, stream=self.stream, gas=self.gas)
            for eta in STATIONS
        ]

    def along_span(self) -> dict[str, Any]:
        """Return lift and drag of the strips along the span, those within the published span, and y+.

        The wing goes on beyond that span, with the cap of its tip.
        """
        values = patch_values(self.flow, "wing")
        found, (way, up) = strips(values, self.stream.pressure), self.reference.directions
        scale = self.stream.dynamic_pressure(self.gas) * AREA
        lift, drag, plus = found.force @ up / scale, found.force @ way / scale, np.nan_to_num(values.y_plus)
        within = found.y < PLANFORM.span
        return {
            "strips": {"y": found.y.tolist(), "CL": lift.tolist(), "CD": drag.tolist()},
            "within_span": {"CL": float(lift[within].sum()), "CD": float(drag[within].sum())},
            "y_plus": [float(value) for value in (plus.mean(), np.percentile(plus, 99), plus.max())],
        }
