"""The case of incompressible flow on a staggered grid: how its tables become a solver."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Estimate
from fluxloom.app.case import CaseModel
from fluxloom.app.cases.flow_averages import AveragesObserver
from fluxloom.app.cases.flow_choices import initial_velocity, velocity_noise
from fluxloom.app.cases.flow_monitors import run_of
from fluxloom.app.cases.flow_start import check_step, explained, flow_boundary
from fluxloom.app.cases.flow_volumes import check_length
from fluxloom.app.cases.staggered_observers import StaggeredForcesObserver
from fluxloom.app.cases.staggered_tables import StaggeredCase, StaggeredMeshTable
from fluxloom.app.cases.start_tables import started
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.staggered import StaggeredRun
from fluxloom.fv.staggered_grid import StaggeredGrid
from fluxloom.fv.staggered_sides import check_sides, inflow_of
from fluxloom.mesh.generate import clustered
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.staggered import Staggered
from fluxloom.solvers.staggered_statistics import StaggeredStatistics

__all__ = ["StaggeredApplication", "StaggeredCase", "staggered_grid"]

Array = npt.NDArray[np.float64]

_WORDS = {2: 30, 3: 40}
"""Values of a cell by dimension: what is stored, and what the solver of the pressure works with."""


class StaggeredApplication:
    """The solver ``staggered`` of case files."""

    name = "staggered"
    title = "incompressible flow in a box (staggered grid, fast Poisson solver)"
    model: type[CaseModel] = StaggeredCase
    ranked = False

    def estimate(self, case: StaggeredCase) -> Estimate:
        """Return the size of a case without building it."""
        mesh, d = case.mesh, case.mesh.dimension
        cells = mesh.nx * mesh.ny * max(1, mesh.nz)
        points = (mesh.nx + 1) * (mesh.ny + 1) * (mesh.nz + 1)
        return Estimate(
            cells=cells,
            memory=8 * cells * _WORDS[d],
            output=cells * (8 * (d + 3) + 8 * 4 + 9) + points * 24,
            rows=(("cells", f"{cells:,} in {d} dimensions"),),
        )

    def build(self, case: StaggeredCase, context: Context) -> FlowRun[StaggeredRun]:
        """Build the grid, the loops and the solver of the pressure, and the initial velocity free of divergence.

        Raises
        ------
        CaseError
            For a side without a table or a table without a side, velocities that do not fit or let more in than out,
            and a file of initial values that does not fit.
        """
        time = case.time
        grid = staggered_grid(case.mesh)
        solver = _solver(case, context, grid)
        solver.initialise(_start(case, grid))
        solver.every = time.look
        flow = StaggeredRun(solver, StepLengths(time.dt, time.courant, time.diffusion))
        started(case, case.initial, flow, velocity_noise(case.initial, grid.dimension))
        if not time.dt:
            check_step(bool(np.isfinite(solver.stable_step(time.courant, time.diffusion))))
        return run_of(case, flow, Until(time.end, time.steady), flow.mesh, _monitors(case, solver))


def staggered_grid(table: StaggeredMeshTable) -> StaggeredGrid:
    """Return the grid that a table describes."""
    d = table.dimension
    ends = (table.x, table.y, table.z)[:d]
    counts = (table.nx, table.ny, table.nz)[:d]
    faces: list[Array] = []
    for (low, high), n, stretch in zip(ends, counts, (table.stretch_x, table.stretch_y, table.stretch_z), strict=False):
        parts = np.arange(n + 1) / n
        faces.append(low + (high - low) * (clustered(stretch)(parts) if stretch else parts))
    with explained("mesh", "mesh"):
        return StaggeredGrid(tuple(faces), table.joined)


def _solver(case: StaggeredCase, context: Context, grid: StaggeredGrid) -> Staggered:
    fluid, d = case.fluid, grid.dimension
    check_length("fluid.force", len(fluid.force), d)
    check_length("fluid.mean_velocity", len(fluid.mean_velocity), d)
    boundaries = {name: flow_boundary(table, table.type, name, d) for name, table in case.boundary.items()}
    with explained("boundary"):
        check_sides(grid, boundaries)
        inflow_of(grid, boundaries)
    try:
        return Staggered(
            context, grid, fluid.viscosity, boundaries, force=fluid.force,
            scheme=case.time.scheme, mean_velocity=fluid.mean_velocity,
            library=case.pressure.library,
        )  # fmt: skip
    except SolverError as error:
        raise CaseError(f"fluid, pressure: {error}") from None


def _start(case: StaggeredCase, grid: StaggeredGrid) -> list[Array]:
    """Return the initial velocity at the faces."""
    velocity, d = initial_velocity(case.initial, grid.dimension), grid.dimension
    points = [np.stack([p.ravel() for p in np.broadcast_arrays(*grid.places(a))], axis=1) for a in range(d)]
    shapes = [np.broadcast_shapes(*(p.shape for p in grid.places(a))) for a in range(d)]
    return [velocity(at)[:, a].reshape(shapes[a]) for a, at in enumerate(points)]


def _monitors(case: StaggeredCase, solver: Staggered) -> list[Monitor]:
    """Return what the case looks at."""
    found: list[Monitor] = []
    for name, table in case.forces.items():
        with explained(f"forces.{name}"):
            found.append(StaggeredForcesObserver(solver, name, table.patches or [name]))
    if (table := case.statistics).every:
        sums = StaggeredStatistics(solver, table.start)
        found.append(AveragesObserver(solver, sums, table.every, table.profile))
    return found
