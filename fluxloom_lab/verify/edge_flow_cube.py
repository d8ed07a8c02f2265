"""Steady flows in the cube with a lid: tetrahedra and edges, and hexahedra and finite volumes beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box3d, clustered
from fluxloom.mesh.generate.gmsh_mesh import GmshBox, gmsh_mesh
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.probes import simplices_of
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import ForceReference, Forces
from fluxloom_lab.problems.cylinder import steady_limit
from fluxloom_lab.problems.edge_flow_cases import peak
from fluxloom_lab.problems.lid_cavity import lid_walls

__all__ = ["CubeFlow", "cells_cavity", "edges_cavity", "gmsh_cavity", "middle", "settled"]

Array = npt.NDArray[np.float64]

_SPAN, _RECORDS, _SPANS = 0.8, 4, 50
"""Time between two records of a flow that gets steady; those that tell its limit; at most."""
_STOP = Stop(rtol=1e-4)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CubeFlow:
    """The steady flow in the unit cube under a lid of speed 1, at ``y = 1`` along ``x``.

    Attributes
    ----------
    lines : (m,)
        Places along each axis, from 0 to 1.
    velocity : (m, m, m, 3)
        There, ``z`` first.
    energy
        Kinetic, over the density.
    friction
        Of the wall at ``y = 0``, along ``x``, over the density.
    time
        How long it took to get steady.
    """

    lines: Array
    velocity: Array
    energy: float
    friction: float
    time: float

    @property
    def upright(self) -> Array:
        """``y`` and ``u`` at ``x = z = 1/2``, ``(m, 2)``."""
        weights = middle(self.lines)
        return np.stack([self.lines, np.einsum("a,c,abc->b", weights, weights, self.velocity[..., 0])], axis=1)

    @property
    def level(self) -> Array:
        """``x`` and ``v`` at ``y = z = 1/2``, ``(m, 2)``."""
        weights = middle(self.lines)
        return np.stack([self.lines, np.einsum("a,b,abc->c", weights, weights, self.velocity[..., 1])], axis=1)

    @property
    def numbers(self) -> Array:
        """Least u on the upright centreline, largest and least v on the level one, energy, friction: ``(5,)``."""
        upright, level = self.upright, self.level
        return np.array([peak(upright, -1.0), peak(level, 1.0), peak(level, -1.0), self.energy, self.friction])

    def at(self, places: Array) -> Array:
        """Return the velocity at places ``(n, 3)``, linear in between."""
        from scipy.interpolate import RegularGridInterpolator

        return np.asarray(RegularGridInterpolator((self.lines,) * 3, self.velocity)(places[:, ::-1]))


def middle(lines: Array) -> Array:
    """Return weights ``(m,)`` of values at places that are symmetric about 1/2, for the value there.

    That of the place in the middle, or of the cubic through the four nearest ones.
    """
    weights, half = np.zeros(lines.size), lines.size // 2
    if lines.size % 2:
        weights[half] = 1.0
        return weights
    near, far = lines[half] - 0.5, lines[half + 1] - 0.5
    weights[half - 2 : half + 2] = 0.5 * np.array([-(near**2), far**2, far**2, -(near**2)]) / (far**2 - near**2)
    return weights


def edges_cavity(
    context: Context, n: int, reynolds: float, start: CubeFlow | None = None, strength: float = 1.0
) -> CubeFlow:
    """Return the steady flow on ``6 n^3`` tetrahedra that are finer at the walls, by `EdgeFlow`.

    Parameters
    ----------
    context
        Where it runs.
    n
        Intervals a side, even.
    reynolds
        1 over the viscosity.
    start
        A flow to start from, as that of a coarser mesh; by default the fluid is at rest.
    strength
        Of `fluxloom.mesh.generate.boxes.clustered`.

    Raises
    ------
    SolverError
        If the flow does not get steady.
    """
    mesh = box3d(n, n, n, kind="tetra", axes=(clustered(strength),) * 3)
    flow, velocity, friction = _steady_edges(context, mesh, reynolds, 1.0 / n, start)
    lines = np.asarray(mesh.points[: n + 1, 0], dtype=np.float64)
    there = velocity.reshape(n + 1, n + 1, n + 1, 3)
    return CubeFlow(lines, there, _energy(flow.operators.mass.read(), velocity), friction, flow.time)


def gmsh_cavity(context: Context, size: float, reynolds: float, start: CubeFlow | None = None) -> tuple[int, CubeFlow]:
    """Return the number of points and the steady flow on tetrahedra of one size by Gmsh, by `EdgeFlow`.

    Parameters
    ----------
    context, reynolds, start
        As for `edges_cavity`.
    size
        Side of the tetrahedra; what is returned is at a lattice of places about as far from each other.

    Raises
    ------
    DeviceUnavailable
        If Gmsh is missing.
    SolverError
        If the flow does not get steady.
    """
    mesh = gmsh_mesh(GmshBox(size, z=(0.0, 1.0)))
    flow, velocity, friction = _steady_edges(context, mesh, reynolds, size, start)
    lines = np.linspace(0.0, 1.0, 2 * round(0.5 / size) + 1)
    places = np.stack(np.meshgrid(lines, lines, lines, indexing="ij")[::-1], axis=-1).reshape(-1, 3)
    cells, weights, _ = simplices_of(flow.mesh, places)
    there = np.einsum("nj,njk->nk", weights, velocity[flow.mesh.simplices[cells]]).reshape(*(lines.size,) * 3, 3)
    energy = _energy(flow.operators.mass.read(), velocity)
    return len(velocity), CubeFlow(lines, there, energy, friction, flow.time)


def _steady_edges(
    context: Context, mesh: MeshData, reynolds: float, largest: float, start: CubeFlow | None
) -> tuple[EdgeFlow, Array, float]:
    """Return a flow on edges, its steady velocity and friction of the floor; no step is longer than ``largest``."""
    flow = EdgeFlow(
        point_mesh(context, mesh), 1.0 / reynolds, lid_walls(mesh.patches, 3), preconditioner=SmoothedAggregation(),
        stop=_STOP,
    )
    flow.initialise(() if start is None else start.at)
    flow.step(0.1 * largest)

    def advanced(time: float) -> Array:
        while time - flow.time > _ROUNDING:
            dt = _part(time - flow.time, min(flow.stable_step(), largest))
            flow.step(dt).require("the pressure of the cavity")
        return np.append(flow.velocity(), flow.force("ymin")[0])

    state = settled(advanced, f"{len(mesh.points)} points and edges")
    return flow, state[:-1].reshape(-1, 3), float(state[-1])


def _energy(measure: Array, velocity: Array) -> float:
    """Return ``sum M u . u / 2``."""
    return 0.5 * float(measure @ (velocity**2).sum(axis=1))


def cells_cavity(
    context: Context, n: int, reynolds: float, start: CubeFlow | None = None, strength: float = 0.6
) -> CubeFlow:
    """Return the steady flow on ``n^3`` hexahedra that are finer at the walls, by the finite volumes `Incompressible`.

    Parameters
    ----------
    context, n, reynolds, start, strength
        As for `edges_cavity`.

    Raises
    ------
    SolverError
        If the flow does not get steady.
    """
    mesh = box3d(n, n, n, axes=(clustered(strength),) * 3)
    volumes = control_volumes(mesh)
    flow = Incompressible(
        context, volumes, 1.0 / reynolds, lid_walls(mesh.patches, 3), preconditioner=SmoothedAggregation(), stop=_STOP
    )
    flow.initialise((0.0, 0.0, 0.0) if start is None else start.at)
    floor = Forces(flow, "ymin", ForceReference(1.0, 1.0))

    def advanced(time: float) -> Array:
        while time - flow.time > _ROUNDING:
            dt = _part(time - flow.time, flow.stable_step(0.5, 0.7))
            flow.step(dt).require("the pressure of the cavity")
        return np.append(flow.velocity(), floor.now().friction[0])

    state = settled(advanced, f"{n} x {n} x {n} cells")
    velocity = state[:-1].reshape(-1, 3)
    lines = np.concatenate([[0.0], volumes.centres[:n, 0], [1.0]])
    whole = np.zeros((n + 2, n + 2, n + 2, 3))
    whole[1:-1, -1, 1:-1, 0] = 1.0
    whole[1:-1, 1:-1, 1:-1] = velocity.reshape(n, n, n, 3)
    return CubeFlow(lines, whole, _energy(volumes.volumes, velocity), float(state[-1]), flow.time)


def _part(left: float, most: float) -> float:
    """Return the step of some equal ones for the time that is left, none longer than ``most``."""
    return left / float(np.ceil(left / most))


def settled(advanced: Callable[[float], Array], what: str, allowed: float = 2e-4) -> Array:
    """Return what a flow tends to, once two limits in a row differ by no more than a part of the speed of the lid.

    Parameters
    ----------
    advanced
        Returns the velocity at a time, and what follows it linearly.
    what
        For the error.
    allowed
        That part.

    Raises
    ------
    SolverError
        If there is none.
    """
    records: list[Array] = []
    before = np.inf
    for k in range(_SPANS):
        records = [*records, advanced((k + 1) * _SPAN)][-_RECORDS:]
        if len(records) < _RECORDS:
            continue
        limit = steady_limit(records)
        if np.abs(limit - before).max() < allowed:
            return limit
        before = limit
    raise SolverError(f"cavity in space, {what}: not steady at time {_SPANS * _SPAN:g}; take the mesh finer")
