"""Compressible flow in boxes, with known answers: uniform flow, a vortex, sources, turned meshes, a shock tube."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, radians, sin, sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import Limiter
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.geometry.dual import dual
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.exact.compressible_exact import Vortex
from fluxloom_lab.exact.manufactured import Manufactured
from fluxloom_lab.exact.riemann import SOD

__all__ = [
    "KINDS",
    "Tube",
    "box",
    "change_of_uniform_flow",
    "manufactured",
    "noise_at_rest",
    "turned_flow",
    "vortex",
    "with_points",
]

Array = npt.NDArray[np.float64]

KINDS = ("quad", "triangle", "hexahedron", "tetra", "prism", "pyramid", "polygon", "polyhedron")
"""Of cells. Polygons and polyhedra are those about the points of triangles and tetrahedra."""

_DUALS = {"polygon": "triangle", "polyhedron": "tetra"}
_PLANE = ("quad", "triangle", "polygon")
_SIDES = (("xmin", "xmax"), ("ymin", "ymax"), ("zmin", "zmax"))


def box(kind: str, n: int, length: float = 1.0, perturb: float = 0.0) -> MeshData:
    """Return a square or a cube of one kind of cell, ``n`` intervals along each axis."""
    if kind in _DUALS:
        return dual(box(_DUALS[kind], n, length, perturb))
    if kind in _PLANE:
        return box2d(n, n, (length, length), kind, perturb=perturb, seed=1)
    return box3d(n, n, n, (length,) * 3, kind, perturb=perturb, seed=1)


def with_points(mesh: MeshData, points: Array) -> MeshData:
    """Return a mesh with its points elsewhere."""
    return mesh.with_points(points)


def change_of_uniform_flow(context: Context, kind: str) -> float:
    """Return by how much three steps change a uniform viscous flow on a perturbed mesh; its numbers are near 1."""
    mesh = box(kind, 3, perturb=0.2)
    state = np.array([1.2, 0.5, -0.3, 0.2, 0.9])[[0, 1, 2, 3, 4] if mesh.dimension == 3 else [0, 1, 2, 4]]
    gas = Gas(constant=1.0, viscosity=Sutherland(0.01, 1.0, 0.5))
    volumes = control_volumes(mesh)
    flow = CompressibleFlow(context, volumes, dict.fromkeys(volumes.patches, FarField(state.tolist())), gas)
    flow.start(state)
    flow.iterate(3)
    return float(np.abs(flow.states() - state).max())


def noise_at_rest(context: Context, kind: str, steps: int = 200) -> float:
    """Return by how much noise in a gas at rest in a box grows: the largest change after some steps over the first one.

    Nothing drives the gas, so the noise may only fade. It grows where slopes at walls or in cells answer more to their
    neighbours than the upwind fluxes can damp.

    Parameters
    ----------
    context
        Where it runs.
    kind
        Of cells; the mesh is perturbed.
    steps
        Local steps of second order without a limiter.
    """
    mesh = box(kind, 6 if kind in _PLANE else 3, perturb=0.2)
    volumes = control_volumes(mesh)
    scheme = CompressibleScheme(limiter=None)
    flow = CompressibleFlow(context, volumes, dict.fromkeys(volumes.patches, SlipWall()), scheme=scheme)
    rest = np.zeros(volumes.dimension + 2)
    rest[[0, -1]] = 1.0
    noise = 1e-6 * np.random.default_rng(0).normal(size=(volumes.cells, rest.size))
    flow.start(rest + noise)
    flow.iterate(steps)
    return float(np.abs(flow.states() - rest).max() / np.abs(noise).max())


def vortex(context: Context, kind: str, n: int, scheme: CompressibleScheme | None = None) -> float:
    """Return the mean error of the density behind a vortex that has moved by two of its radii."""
    exact = Vortex(5.0, 0.5, 1.0, 45.0, (10.0, 10.0), (5.0, 5.0))
    volumes = control_volumes(box(kind, n, 10.0), _SIDES[:2])
    flow = CompressibleFlow(context, volumes, scheme=scheme or CompressibleScheme(limiter=None))
    places = volumes.centres[: volumes.cells]
    flow.start(exact.state(places))
    flow.advance_to(2.0)
    error = np.abs(flow.states() - exact.state(places, 2.0))[:, 0]
    return float(error @ volumes.volumes / volumes.volumes.sum())


def manufactured(context: Context, kind: str, n: int, perturb: float = 0.0, eddy: float = 0.0) -> Array:
    """Return errors of a manufactured solution of the Navier-Stokes equations, ``(variables,)``.

    They are roots of mean squares over the largest values, when the mean flow has crossed half the box. There the
    errors of space are as good as settled: waves and friction have passed. The Reynolds number is about 100.

    Parameters
    ----------
    context
        Where it runs.
    kind, n, perturb
        Of the mesh; see `box`.
    eddy
        Mean of the variable of Spalart and Allmaras over the viscosity; 0: without this model.
    """
    gas = Gas(viscosity=Sutherland(mu0=2.0))
    volumes = control_volumes(box(kind, n, perturb=perturb), _SIDES[: 2 if kind in _PLANE else 3])
    exact, places = Manufactured(volumes.dimension, gas, eddy=eddy), volumes.centres[: volumes.cells]
    distance = np.full(volumes.cells, 0.3) if eddy else None
    scheme = CompressibleScheme(limiter=None, turbulence=SpalartAllmaras() if eddy else None)
    source = exact.source(places, distance)
    flow = CompressibleFlow(context, volumes, {}, gas, scheme, distance=distance, source=source)
    wanted = exact.state(places)
    flow.start(wanted)
    flow.advance_to(0.5 * exact.length / (exact.mach * sqrt(gas.gamma * exact.pressure / exact.density)))
    return np.sqrt(((flow.states() - wanted) ** 2).mean(axis=0)) / np.abs(wanted).max(axis=0)


def turned_flow(context: Context, angle: float, limiter: Limiter | None = None, steps: int = 20) -> float:
    """Return how far viscous flow on a mesh that is turned is from the turned flow, over the largest value.

    Parameters
    ----------
    context
        Where it runs.
    angle
        In degrees.
    limiter, steps
        Of the flow.
    """
    mesh, way = box("triangle", 8, perturb=0.2), radians(angle)
    turn = np.array([[cos(way), -sin(way)], [sin(way), cos(way)]])
    start = Manufactured(2, Gas(constant=1.0), 1.0, 1.0 / 1.4).state(control_volumes(mesh).centres[: mesh.n_cells])
    found: list[Array] = []
    for matrix in (np.eye(2), turn):
        volumes = control_volumes(with_points(mesh, mesh.points @ matrix.T), _SIDES[:2])
        gas = Gas(constant=1.0, viscosity=Sutherland(0.01, 1.0, 0.4))
        flow = CompressibleFlow(context, volumes, {}, gas, CompressibleScheme(limiter=limiter))
        first = start.copy()
        first[:, 1:3] = start[:, 1:3] @ matrix.T
        flow.start(first)
        for _ in range(steps):
            flow.advance()
        found.append(flow.states())
    found[0][:, 1:3] = found[0][:, 1:3] @ turn.T
    return float(np.abs(found[1] - found[0]).max() / np.abs(found[0]).max())


@dataclass(frozen=True, eq=False)
class Tube:
    """Sod's shock tube at ``t`` = 0.2, the diaphragm at 1/2, on one row of cells.

    Attributes
    ----------
    x : (n,)
        Centroids.
    states : (n, 3)
        Density, velocity, pressure.
    """

    x: Array
    states: Array

    TIME = 0.2

    @classmethod
    def run(cls, context: Context, n: int, scheme: CompressibleScheme | None = None) -> Tube:
        """Return what is found on ``n`` cells."""
        volumes = control_volumes(box2d(n, 1, (1.0, 1.0 / n)))
        flow = CompressibleFlow(context, volumes, dict.fromkeys(volumes.patches, SlipWall()), scheme=scheme)
        x = volumes.centres[: volumes.cells, 0]
        left, right = ([state[0], state[1], 0.0, state[2]] for state in (SOD.left, SOD.right))
        flow.start(np.where(x[:, None] < 0.5, left, right))
        flow.advance_to(cls.TIME)
        return cls(x, flow.states()[:, [0, 1, 3]])

    @property
    def error(self) -> float:
        """Mean error of the density."""
        return float(np.abs(self.states[:, 0] - SOD.at((self.x - 0.5) / self.TIME)[:, 0]).mean())

    def plateaus(self) -> Iterator[tuple[str, float]]:
        """Yield what is between the waves: means over the middle half of each plateau."""
        _, tail, contact, shock, _ = (0.5 + self.TIME * speed for speed in SOD.waves())
        for name, component, low, high in (("p*", 2, tail, shock), ("u*", 1, tail, shock),
                                           ("rho*L", 0, tail, contact), ("rho*R", 0, contact, shock)):  # fmt: skip
            width = high - low
            inside = (self.x > low + 0.25 * width) & (self.x < high - 0.25 * width)
            yield name, float(self.states[inside, component].mean())

    def places(self) -> Iterator[tuple[str, float]]:
        """Yield where the waves are: both ends of the line through the middle of the fan, contact and shock."""
        head, tail, contact, shock, _ = (0.5 + self.TIME * speed for speed in SOD.waves())
        rho, u, p = self.states.T
        fan = (self.x > 0.75 * head + 0.25 * tail) & (self.x < 0.25 * head + 0.75 * tail)
        rate, base = np.polyfit(self.x[fan], u[fan], 1)
        yield "head", float(-base / rate)
        yield "tail", float((SOD.velocity - base) / rate)
        middle = 0.5 * (SOD.density(SOD.left) + SOD.density(SOD.right))
        yield "contact", self._fall(rho, middle, 0.5 * (tail + contact), 0.5 * (contact + shock))
        yield "shock", self._fall(p, 0.5 * (SOD.pressure + SOD.right[2]), 0.5 * (contact + shock), 1.0)

    def _fall(self, values: Array, level: float, low: float, high: float) -> float:
        """Return where values fall below a level between two places."""
        inside = np.flatnonzero((self.x > low) & (self.x < high) & (values >= level))
        last = int(inside[-1])
        part = (values[last] - level) / (values[last] - values[last + 1])
        return float(self.x[last] + part * (self.x[last + 1] - self.x[last]))
