"""The Airfoil benchmark as a run sees it: inviscid flow around NACA 0012."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.layout import Layout
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.schedule import Schedule
from fluxloom.flows.airfoil_surface import AirfoilSurface
from fluxloom.flows.gas_watch import airfoil_watch
from fluxloom.mesh.airfoil import AirfoilMesh, airfoil_mesh, airfoil_slice
from fluxloom.mesh.distribute import Partition, RankedMesh, distribute
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.flow import Flow, HistoryPanel, Picture, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.measures import PointValues
from fluxloom.run.monitor import Monitor
from fluxloom.run.watch import Watch
from fluxloom.solvers.airfoil import Airfoil as Solver
from fluxloom.solvers.airfoil import AirfoilConstants
from fluxloom.solvers.airfoil_forces import PATCH

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Airfoil", "airfoil_part", "airfoil_run"]

_WINDOW = (-0.5, 1.5, -0.75, 0.75)


def airfoil_part(
    context: Context, i: int, j: int, method: Partition = "auto", shares: Sequence[float] | None = None
) -> AirfoilMesh | RankedMesh:
    """Return what a rank needs of the mesh: everything on a rank alone, else its part, made from slices.

    Parameters
    ----------
    context
        Has the ranks; on several of them this is collective.
    i, j
        As in `fluxloom.mesh.airfoil.airfoil_mesh`.
    method, shares
        As `fluxloom.mesh.distribute.distribute` takes them.
    """
    comm = context.comm
    if comm.size == 1:
        return airfoil_mesh(i, j)
    return distribute(airfoil_slice(i, j, comm.rank, comm.size), comm, method=method, shares=shares)


class Airfoil(Flow):
    """The Airfoil solver, ready to advance.

    Parameters
    ----------
    solver
        In its initial state.
    constants
        Gas and scheme.
    """

    def __init__(self, solver: Solver, constants: AirfoilConstants) -> None:
        self.solver, self.constants, self.context = solver, constants, solver.context

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.cells.total

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.cells.part

    @property
    def loops(self) -> Sequence[Loop]:
        """The five loops."""
        return self.solver.loops

    @property
    def chain(self) -> Chain | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One iteration."""
        return self.solver.chain

    @property
    def steps(self) -> int:
        """Iterations since the flow began."""
        return self.solver.iterations

    def advance(self, until: Until) -> float:
        """Run one iteration, two sub-steps; return the root mean square change of the last one."""
        self.solver.iterate()
        return self.solver.rms()

    @property
    def patches(self) -> Sequence[str]:
        """The wall."""
        return (PATCH,)

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> AirfoilSurface:
        """Return the wall as a surface, with the force of the pressure. Collective."""
        return AirfoilSurface(self.solver, patches, about)

    def columns(self) -> dict[str, float]:
        """Return the iteration and the root mean square change."""
        return {"iteration": float(self.steps), "residual": self.solver.rms() if self.steps else math.nan}

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return density, velocity, pressure, energy and Mach number in the owned cells."""
        with np.errstate(all="ignore"):
            return self.solver.fields()

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return the residual and the extremes of pressure and Mach number."""
        fields, comm = self.fields(), self.context.comm
        values = [fields[name] for name in ("pressure", "mach")]
        low = comm.reduce(np.array([v.min(initial=np.inf) for v in values]), "min")
        high = comm.reduce(np.array([v.max(initial=-np.inf) for v in values]), "max")
        return (
            ("residual", f"{self.solver.rms():.10e}"),
            ("pressure", f"{low[0]:.4f} to {high[0]:.4f} (free stream 1)"),
            ("Mach number", f"{low[1]:.4f} to {high[1]:.4f} (free stream {self.constants.mach:.4g})"),
        )

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return pressure and Mach number around the section."""
        where = f"NACA 0012 at Mach {self.constants.mach:.3g} (iteration {self.steps:,})"
        return (
            Picture("pressure", f"Pressure around {where}", "pressure / free stream", _WINDOW, "RdBu_r", 1.0),
            Picture("mach", f"Mach number around {where}", "local Mach number", _WINDOW, "viridis"),
        )

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return the residual."""
        return "iteration", [HistoryPanel("root mean square change", ("residual",), logarithmic=True)]

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples density, velocity, pressure and Mach number of cells. Collective."""
        from fluxloom.solvers.airfoil_probes import AirfoilProbes

        return AirfoilProbes(self.solver, points, capacity, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return airfoil_watch(self.solver, self.constants.gamma, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return f"lower flow.cfl (now {self.constants.cfl:.3g}) or raise flow.eps (now {self.constants.eps:.3g})"


def airfoil_run(
    context: Context, mesh: AirfoilMesh | RankedMesh, constants: AirfoilConstants, schedule: Schedule, *,
    fused: bool = True, layout: Layout | None = None, shape: tuple[int, int] | None = None, name: str = "airfoil",
    monitors: Sequence[Monitor] = (),
) -> FlowRun[Airfoil]:  # fmt: skip
    """Return the Airfoil solver, ready to be run. Collective.

    Parameters
    ----------
    context
        Where it runs.
    mesh
        The mesh; on several ranks this rank's part, which is not kept.
    constants
        Gas and scheme.
    schedule
        For every loop.
    fused
        Whether loops may be fused.
    layout
        Of values with several components.
    shape
        The integers that a mesh in parts was made with; without them the whole mesh is not there.
    name, monitors
        As of `FlowRun`.
    """
    solver = Solver(context, mesh, constants, schedule=schedule, fused=fused, layout=layout)
    kept = None if isinstance(mesh, RankedMesh) else mesh

    def whole() -> MeshData:
        """Return the whole mesh with the two sides of the cut joined; on several ranks it is made anew."""
        if kept is not None:
            return kept.to_mesh_data()
        if shape is None:
            raise MeshError("the mesh was given in parts without the integers it was made with: the whole is not known")
        return airfoil_mesh(*shape).to_mesh_data()

    return FlowRun(Airfoil(solver, constants), name, Until(), whole, monitors, partition=solver.partition)
