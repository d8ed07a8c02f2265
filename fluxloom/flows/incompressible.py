"""A case of incompressible flow in finite volumes as it runs: steps, residual, fields and summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.parts import Part
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_in_time import FlowInTime
from fluxloom.flows.flow_plan import COMPONENTS, StepLengths, flow_pictures
from fluxloom.flows.flow_watch import incompressible_watch
from fluxloom.linalg.status import Stop
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.flow_drive import MeanVelocity
from fluxloom.solvers.flow_energy import EnergyBudget
from fluxloom.solvers.flow_vorticity import Vorticity
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["IncompressibleRun"]


class IncompressibleRun(FlowInTime):
    """The solver of incompressible flow, ready to advance by steps.

    Parameters
    ----------
    solver
        In its initial state.
    lengths
        Of the steps.
    mean_velocity
        Of the volume, which the force keeps, component by component; 0: no force. Empty: the force stays as it is.
    budget
        Whether the history has the budget of energy.
    """

    curves = (*FlowInTime.curves, HistoryPanel("energy per time", ("dissipation", "decay")))

    def __init__(
        self, solver: Incompressible, lengths: StepLengths, mean_velocity: Sequence[float] = (), *, budget: bool = True
    ) -> None:  # fmt: skip
        self.solver, cv = solver, solver.volumes
        volume = float(solver.context.comm.reduce(np.array([cv.volumes[: cv.owned].sum()]), "sum")[0])
        super().__init__(solver, Change(solver.u, solver.weight, volume), lengths)
        self._mean_velocity = mean_velocity
        self._drive = MeanVelocity(solver, mean_velocity) if mean_velocity else None
        self._energy = EnergyBudget(solver) if budget else None
        self._curl = Vorticity(solver)

    def _take(self, start: Start) -> None:
        """Take velocity and scalars of another result; scalars that it has not stay as they are.

        From a checkpoint on the same mesh with the same boundaries, velocities at faces are taken as they are too. Else
        velocities are linear, and made free of divergence; scalars are bounded by those around them.
        """
        solver, cv = self.solver, self.solver.volumes
        places, names = cv.centres[: cv.owned], tuple(solver.scalars.all)
        if start.held({"run.flow.solver.u": solver.u, "run.flow.solver.us": solver.us}, "mesh", "boundary", "space"):
            kept = {name: one for name, one in solver.scalars.all.items() if start.held(
                {f"run.flow.solver.scalars.all[{name}].theta": one.theta}, "mesh", "boundary")}  # fmt: skip
            solver.take({name: one.values() for name, one in kept.items()})
        else:
            scalars = start.at(places, (), optional=names, bounded=True) if names else {}
            solver.initialise(lambda _: start.velocity(places), scalars).require("the pressure of the start")

    # ------------------------------------------------------------------------------------- advance
    def _largest_step(self) -> float:
        return self.solver.stable_step(self.lengths.courant, self.lengths.diffusion)

    def _before(self, dt: float) -> None:
        if self._drive is not None:
            self._drive.before(dt)

    @property
    def _tolerance(self) -> float:
        stop = getattr(self.solver.solver, "stop", None)
        return stop.rtol if isinstance(stop, Stop) else 0.0

    def columns(self) -> dict[str, float]:
        """Return time, the budget of energy, and the force that keeps the flow."""
        if self._energy is None:
            return {}
        now = self._energy.now()
        decay = self._decay(now.time, now.kinetic)
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
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        solver = self.solver
        return [solver.before, *solver.solver.chains, solver.after, solver.limit, self._change.chain]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return speed, vorticity and pressure."""
        return flow_pictures(name, self.solver.time)

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
        return found

    def _rows(self) -> Sequence[tuple[str, str]]:
        solver = self.solver
        form = "consistent" if solver.matrices.oblique else "symmetric"
        found = [("operators", f"{form} (angle or skewness of faces: at most {solver.obliqueness:.2g})")]
        if self._drive is not None:
            found.append(("force", ", ".join(f"{value:.6g}" for value in self._drive.force)))
        return found

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return incompressible_watch(self.solver, self.lengths, until, table, self._mean_velocity)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant and time.diffusion, or give time.dt, a fixed step below those that were chosen"
