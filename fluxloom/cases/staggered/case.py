"""The case of incompressible flow on a staggered grid: how its tables become a solver."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.incompressible.choices import initial_velocity, velocity_noise
from fluxloom.cases.shared.mesh import by_key, check_length
from fluxloom.cases.shared.monitors import run_of
from fluxloom.cases.shared.start import explained, flow_boundary
from fluxloom.cases.shared.start_tables import started
from fluxloom.cases.staggered.tables import StaggeredCase, StaggeredMeshTable
from fluxloom.dsl.context import Context
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.staggered.flow import Staggered
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.mesh.generate.boxes import clustered
from fluxloom.run.flow import Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.monitor import Monitor
from fluxloom.solvers.staggered.flow import Staggered as Solver

__all__ = ["StaggeredApplication", "StaggeredCase", "staggered_grid"]

Array = npt.NDArray[np.float64]

_WORDS = {2: 30, 3: 40}
"""Values of a cell by dimension: what is stored, and what the solver of the pressure works with."""


class StaggeredApplication:
    """The solver ``staggered`` of case files."""

    name = "staggered"
    title = "incompressible flow in a box (staggered grid, fast Poisson solver)"
    model: type[CaseModel] = StaggeredCase
    distributed = False

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

    def build(self, case: StaggeredCase, context: Context) -> FlowRun[Staggered]:
        """Build the grid, the loops and the solver of the pressure, and the initial velocity free of divergence.

        Raises
        ------
        CaseError
            For a side without a table or a table without a side, velocities that do not fit or let more in than out,
            and a file of initial values that does not fit.
        """
        time, fluid = case.time, case.fluid
        grid = staggered_grid(case.mesh)
        d = grid.dimension
        check_length("fluid.force", len(fluid.force), d)
        check_length("fluid.mean_velocity", len(fluid.mean_velocity), d)
        with by_key(other="fluid, pressure", force="fluid.force", start="initial", dt="time.dt"):
            flow = Staggered(
                grid, context, viscosity=fluid.viscosity,
                boundaries={name: flow_boundary(table, table.type, name, d) for name, table in case.boundary.items()},
                start=initial_velocity(case.initial, d), force=fluid.force, mean_velocity=fluid.mean_velocity,
                scheme=time.scheme, steps=StepLengths(time.dt, time.courant, time.diffusion),
                residual_interval=time.residual_interval,
                library=case.pressure.library,
            )  # fmt: skip
        started(case, case.initial, flow, velocity_noise(case.initial, d))
        with by_key(dt="time.dt"):
            return run_of(case, flow, Until(time.end, time.steady), _monitors(case, flow.solver))


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


def _monitors(case: StaggeredCase, solver: Solver) -> list[Monitor]:
    """Return what the case looks at."""
    found: list[Monitor] = []
    return found
