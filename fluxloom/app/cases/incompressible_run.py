"""A case of incompressible flow in finite volumes as it runs: steps, residual, fields and summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Picture
from fluxloom.app.case import GuardTable
from fluxloom.app.cases.flow_change import Change
from fluxloom.app.cases.flow_history import HistoryPanel
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_plan import COMPONENTS, FlowPlan, flow_pictures
from fluxloom.app.cases.flow_run import FlowRunner
from fluxloom.app.cases.flow_watch import incompressible_watch
from fluxloom.app.gathering import gathered
from fluxloom.app.watch import Watch
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.dsl.parts import Part
from fluxloom.linalg.status import Stop
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.flow_drive import MeanVelocity
from fluxloom.solvers.flow_energy import EnergyBudget
from fluxloom.solvers.flow_vorticity import Vorticity
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["FlowPlan", "IncompressibleRunner"]


class IncompressibleRunner(FlowRunner):
    """The solver of incompressible flow, ready to advance by steps.

    Parameters
    ----------
    solver
        In its initial state.
    mesh
        Returns the whole mesh; on several ranks called on rank 0 alone, once.
    plan
        How it runs.
    observers
        What looks at it.
    partition
        How the mesh is divided; None on a rank alone.
    """

    panels = (*FlowRunner.panels, HistoryPanel("energy per time", ("dissipation", "decay")))

    def __init__(
        self,
        solver: Incompressible,
        mesh: Callable[[], MeshData],
        plan: FlowPlan,
        observers: Sequence[Observer] = (),
        partition: PartitionReport | None = None,
    ) -> None:
        self.solver, cv = solver, solver.volumes
        volume = float(solver.context.comm.reduce(np.array([cv.volumes[: cv.owned].sum()]), "sum")[0])
        super().__init__(solver, Change(solver.u, solver.weight, volume), mesh, plan, observers, partition)
        self._drive = MeanVelocity(solver, plan.mean_velocity) if plan.mean_velocity else None
        self._energy = EnergyBudget(solver) if plan.history else None
        self._curl = Vorticity(solver)

    # ------------------------------------------------------------------------------------- advance
    def _largest_step(self) -> float:
        return self.solver.stable_step(self.plan.courant, self.plan.diffusion)

    def _before(self, dt: float) -> None:
        if self._drive is not None:
            self._drive.before(dt)

    @property
    def _tolerance(self) -> float:
        stop = getattr(self.solver.solver, "stop", None)
        return stop.rtol if isinstance(stop, Stop) else 0.0

    def _columns(self) -> dict[str, float]:
        if self._energy is None:
            return {}
        now, rows = self._energy.now(), self.history.rows
        decay = math.nan
        if rows and now.time > rows[-1][0]:
            decay = (self.history.column("kinetic_energy")[-1] - now.kinetic) / (now.time - rows[-1][0])
        found = {
            "time": now.time, "kinetic_energy": now.kinetic, "mean_kinetic_energy": now.kinetic / self._energy.volume,
            "dissipation": now.dissipation, "decay": decay,
        }  # fmt: skip
        if self._drive is not None:
            found |= {f"force_{'xyz'[k]}": value for k, value in enumerate(self._drive.force.tolist())}
        return found

    # --------------------------------------------------------------------------------------- results
    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.cells.part

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.cells.total

    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        return self.solver.solver.chains

    @property
    def _chains(self) -> list[Chain]:
        solver = self.solver
        return [solver.before, *solver.solver.chains, solver.after, solver.limit, self._change.chain]

    @property
    def pictures(self) -> Sequence[Picture]:
        """Speed, vorticity and pressure, of a plane flow."""
        return flow_pictures(self.plan.name, self.solver.time) if self.solver.dimension == 2 else ()

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, kinematic pressure and vorticity, each ``(cells,)``.

        Of a flow in three dimensions the vorticity is its magnitude.
        """
        velocity = self.solver.velocity()
        found = {name: velocity[:, k].copy() for k, name in enumerate(COMPONENTS[: self.solver.dimension])}
        with np.errstate(all="ignore"):
            found |= {"speed": np.linalg.norm(velocity, axis=1), "p": self.solver.pressure()}
            curl = self._curl.now()
            found["vorticity"] = curl if curl.ndim == 1 else np.linalg.norm(curl, axis=1)
        for observer in self.observers:
            found |= observer.fields()
        return found

    def _volume_field(self, name: str) -> npt.NDArray[Any] | None:
        return gathered(self.solver.context.comm, self.part, self.fields()).get(name)

    def _rows(self) -> Sequence[tuple[str, str]]:
        solver = self.solver
        form = "consistent" if solver.matrices.oblique else "symmetric"
        found = [("operators", f"{form} (angle or skewness of faces: at most {solver.obliqueness:.2g})")]
        if self._drive is not None:
            found.append(("force", ", ".join(f"{value:.6g}" for value in self._drive.force)))
        return found

    def watch(self, table: GuardTable) -> Watch:
        """Return what guards look at. Collective."""
        return incompressible_watch(self.solver, self.plan, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.plan.dt:
            return f"lower time.dt (now {self.plan.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant and time.diffusion, or give time.dt, a fixed step below those that were chosen"
