"""Our solvers for the lid-driven cavity of tetrahedra, beside which others are measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.operators import shared_edge_operators
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Status, Stop
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.probes import Probes
from fluxloom_lab.problems.lid_cavity import LID, lid_walls
from fluxloom_lab.problems.tetra_cavity import MIDDLE, Profiles, TetraCavity, profile_points

__all__ = ["OURS", "CavityRun", "FlowRun", "edges", "finite_volumes", "ours"]

Array = npt.NDArray[np.float64]

_DIFFUSION = 0.45
"""Of ``1 / sum nu A / (delta Omega)``: diffusion alone is stable up to a half in Adams and Bashforth's steps."""
_CONVECTION = 0.35


@dataclass(frozen=True, eq=False)
class CavityRun:
    """What everybody computes, from rest.

    Attributes
    ----------
    cavity
        Mesh and points.
    viscosity
        Kinematic; the density is 1.
    dt, steps
        Length and number of the steps.
    tolerance
        Of each pressure solve, relative to the right-hand side.
    """

    cavity: TetraCavity
    viscosity: float
    dt: float
    steps: int
    tolerance: float


@dataclass(frozen=True, eq=False)
class FlowRun:
    """What came of it.

    Attributes
    ----------
    seconds, cpu_seconds
        Of each step, of the clock and of all threads together.
    iterations
        Of the pressure solves, a step.
    profiles
        At the end.
    details
        What else there is to say, for the record.
    """

    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    iterations: float
    profiles: Profiles
    details: Mapping[str, Any] = field(default_factory=dict)


def finite_volumes(context: Context, run: CavityRun, recipe: Preconditioner) -> FlowRun:
    """Run `Incompressible`: velocities in the tetrahedra, explicit steps, one pressure solve each.

    Where a step is too long for it, it makes several of equal length instead (``substeps``), which count as one.
    """
    flow = _flow(context, run, recipe)
    flow.initialise((0.0, 0.0, 0.0))
    substeps = ceil(run.dt / flow.stable_step(_CONVECTION, _DIFFUSION))
    dt = run.dt / substeps
    flow.step(dt)  # compiles
    flow = _flow(context, run, recipe)
    probes = Probes(flow, {f"p{k}": point for k, point in enumerate(profile_points().tolist())}, capacity=1)
    forces = [Forces(flow, patches) for patches in ((LID, MIDDLE), MIDDLE)]
    flow.initialise((0.0, 0.0, 0.0))
    times = _timed(context, run, substeps, lambda: flow.step(dt))
    probes.sample()
    along_y, along_x = np.split(probes.series().velocity[0], 2)
    profiles = Profiles(along_y[:, 0], along_x[:, 1], *(float(force.now().total[0]) for force in forces))
    return FlowRun(*times, profiles, {"substeps": substeps})


def edges(context: Context, run: CavityRun, recipe: Preconditioner) -> FlowRun:
    """Run `EdgeFlow`: velocities at the points, explicit momentum with four stages, one pressure solve.

    Steps that are too long are divided as those of
    `finite_volumes` are. ``held`` is the force on the lid, with its share of the rim, of the discrete equations
    themselves.
    """
    cavity, stop = run.cavity, Stop(rtol=run.tolerance)
    mesh = point_mesh(context, cavity.mesh)
    operators = shared_edge_operators(mesh)

    def started() -> EdgeFlow:
        sides = lid_walls(cavity.mesh.patches, 3)
        flow = EdgeFlow(mesh, run.viscosity, sides, stop=stop, preconditioner=recipe, operators=operators)
        flow.initialise((0.0, 0.0, 0.0))
        return flow

    flow = started()
    substeps = ceil(run.dt / flow.stable_step(1.0))
    flow.step(run.dt / substeps)  # compiles
    flow = started()
    times = _timed(context, run, substeps, lambda: flow.step(run.dt / substeps))
    profiles = cavity.profiles(flow.velocity(), run.viscosity)
    return FlowRun(*times, profiles, {"substeps": substeps, "held": float(flow.force(LID)[0])})


def _timed(
    context: Context, run: CavityRun, substeps: int, step: Callable[[], Status]
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Make all steps; return the seconds of each by the clock and of all threads, and the iterations a step."""
    seconds, busy, iterations = [], [], 0
    for _ in range(run.steps):
        context.synchronize()
        start, before = time.perf_counter(), time.process_time()
        for _ in range(substeps):
            iterations += step().require("the pressure of the cavity").iterations
        context.synchronize()
        seconds.append(time.perf_counter() - start)
        busy.append(time.process_time() - before)
    return tuple(seconds), tuple(busy), iterations / run.steps


def _flow(context: Context, run: CavityRun, recipe: Preconditioner) -> Incompressible:
    """Return the flow at rest."""
    mesh = run.cavity.divided()
    sides = lid_walls(mesh.patches, 3, moving=(LID, MIDDLE))
    stop = Stop(rtol=run.tolerance)
    return Incompressible(context, control_volumes(mesh), run.viscosity, sides, preconditioner=recipe, stop=stop)


OURS: dict[str, Callable[[Context, CavityRun], FlowRun]] = {
    "edges, diagonal": partial(edges, recipe=Jacobi()),
    "edges, smoothed aggregation": partial(edges, recipe=SmoothedAggregation()),
    "finite volumes, jacobi": partial(finite_volumes, recipe=Jacobi()),
    "finite volumes, smoothed aggregation": partial(finite_volumes, recipe=SmoothedAggregation()),
}
"""Our flows by name; another solver is another entry."""


def ours(context: Context, run: CavityRun, name: str) -> FlowRun:
    """Run one of `OURS`.

    Raises
    ------
    FluxloomError
        If its steps fail, or its velocity is not finite at the end.
    """
    found = OURS[name](context, run)
    require_finite(name, found.profiles)
    return found


def require_finite(name: str, profiles: Profiles) -> None:
    """Raise where a flow is lost.

    Raises
    ------
    FluxloomError
        Naming it.
    """
    if not np.isfinite([*profiles.u, *profiles.v, profiles.drag, profiles.middle_drag]).all():
        raise FluxloomError(f"{name}: the velocity is not finite at the end; take a shorter step")
