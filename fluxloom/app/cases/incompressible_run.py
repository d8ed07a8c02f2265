"""A case of incompressible flow as it runs: steps, residual, fields and summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Picture
from fluxloom.app.cases.flow_checkpoint import CheckpointPlan, FlowCheckpoint
from fluxloom.app.cases.flow_history import History, HistoryPanel
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_pictures import draw_history, draw_section
from fluxloom.app.cases.flow_reports import merged_reports
from fluxloom.app.gathering import gathered
from fluxloom.core.access import RW, Const, Inc, Read
from fluxloom.core.errors import SolverError
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.dsl.identity import unique
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.dsl.steps import Reset
from fluxloom.kernel.frontend import kernel
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.flow_drive import MeanVelocity
from fluxloom.solvers.flow_energy import EnergyBudget
from fluxloom.solvers.flow_vorticity import Vorticity
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["FlowPlan", "IncompressibleRunner"]

_COMPONENTS = ("u", "v", "w")
_CLOSE = 1e-9
_PANELS = (
    HistoryPanel("kinetic energy", ("kinetic_energy",)),
    HistoryPanel("energy per time", ("dissipation", "decay")),
)
_FEW = 3


@kernel
def change(u: Read, volume: Read, before: RW, total: Inc, *, d: Const[int]):
    """``sum Omega |u - u_before|^2``, then ``u_before = u``."""
    for k in range(d):
        step = u[k] - before[k]
        total[0] += volume[0] * step * step
        before[k] = u[k]


@dataclass(frozen=True)
class FlowPlan:
    """How a case runs.

    Attributes
    ----------
    name
        Of the case.
    dt
        Length of a step; 0: the largest stable one, of `courant` and `diffusion`.
    end, steady
        Time, and residual, at which the run ends; 0: there is none.
    courant, diffusion
        As in `Incompressible.stable_step`.
    mean_velocity
        Of the volume, which the force keeps, component by component; 0: no force. Empty: the force stays as it is.
    history
        Steps between two lines of ``history.csv``; 0: no such file.
    checkpoint
        When checkpoints are taken; None: never.
    """

    name: str
    dt: float = 0.0
    end: float = 0.0
    steady: float = 0.0
    courant: float = 0.35
    diffusion: float = 0.2
    mean_velocity: Sequence[float] = ()
    history: int = 0
    checkpoint: CheckpointPlan | None = None


class IncompressibleRunner:
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

    chain: Chain | None = None
    """None: how many iterations the pressure takes is known only when it is solved."""

    def __init__(
        self,
        solver: Incompressible,
        mesh: Callable[[], MeshData],
        plan: FlowPlan,
        observers: Sequence[Observer] = (),
        partition: PartitionReport | None = None,
    ) -> None:
        self.solver, self.plan, self.observers = solver, plan, tuple(observers)
        self.partition = partition
        self._make = mesh
        self._mesh: MeshData | None = None
        self._iterations, self._last, self._residual = 0, 0, float("nan")
        self._ending = False
        context, d = solver.context, solver.dimension
        cv = solver.volumes
        self._volume = float(context.comm.reduce(np.array([cv.volumes[: cv.owned].sum()]), "sum")[0])
        self._before = context.dat(solver.elements, solver.u.read(), "u_before")
        self._total = context.scalar(0.0, "change")
        measure = Loop(change, solver.elements, solver.u, solver.weight, self._before, self._total, d=d)
        self._measure = Chain([Reset(self._total), measure], name="change")
        self._drive = MeanVelocity(solver, plan.mean_velocity) if plan.mean_velocity else None
        self._energy = EnergyBudget(solver) if plan.history else None
        self._curl = Vorticity(solver)
        self.history = History(plan.history, (self._columns, *(observer.columns for observer in observers)))
        self.checkpoint = FlowCheckpoint(plan.checkpoint, context)
        self._directory: Path | None = None

    # ------------------------------------------------------------------------------------- advance
    def begin(self, directory: Path) -> None:
        """Hear where files go, before the first step; from here on checkpoints are taken."""
        self._directory = directory
        self.checkpoint.begin(directory)
        for observer in self.observers:
            observer.begin(directory)
        self.history.begin(directory / "history.csv" if self.solver.context.comm.rank == 0 else None)

    @property
    def finished(self) -> bool:
        """Whether the end, or a steady state, has been reached."""
        plan = self.plan
        if self.checkpoint.catching_up:
            return False
        return 0.0 < plan.end <= self.solver.time * (1.0 + _CLOSE) or self._residual < plan.steady

    def _next_step(self) -> float:
        """Return the length of the next step; the last two are equal and hit the end.

        Checkpoints are taken before those, so that a step that is repeated has its length whatever the end is now.
        """
        plan, solver = self.plan, self.solver
        dt = plan.dt or solver.stable_step(plan.courant, plan.diffusion)
        left = plan.end - solver.time if plan.end else math.inf
        if left >= 2.0 * dt or self.checkpoint.catching_up:
            return dt
        self._ending = True
        return left if left <= dt * (1.0 + _CLOSE) else 0.5 * left

    def advance(self) -> None:
        """Advance by one step.

        Raises
        ------
        SolverError
            If the velocity is not finite, or the pressure does not converge.
        """
        solver = self.solver
        dt = self._next_step()
        if self._drive is not None:
            self._drive.before(dt)
        try:
            status = solver.step(dt)
        except SolverError as error:
            raise SolverError(f"{error}: {self.advice()}") from None
        if not status.converged:
            raise SolverError(
                f"step {solver.steps}: the pressure has not converged, |r|/|b| = {status.relative:.2e} after "
                f"{status.iterations:,} iterations ({status.reason}); raise pressure.iterations or pressure.rtol, or "
                "choose another pressure.preconditioner"
            )
        self._last = status.iterations
        self._iterations += status.iterations
        repeated = self.checkpoint.catching_up
        if not self._ending:
            self.checkpoint.mark(solver.steps)
        self._measure()
        self._residual = float(np.sqrt(self._total.value / self._volume)) / solver.dt
        if repeated:
            self.checkpoint.check(solver.steps, solver.time, self.plan.end)
        for observer in self.observers:
            observer.stepped(repeated=self.checkpoint.catching_up)
        self.history.stepped(solver.steps, last=self.finished)

    def _columns(self) -> dict[str, float]:
        """Return the columns of ``history.csv`` that every flow has."""
        if self._energy is None:
            return {}
        now, rows = self._energy.now(), self.history.rows
        decay = math.nan
        if rows and now.time > rows[-1][0]:
            decay = (self.history.column("kinetic_energy")[-1] - now.kinetic) / (now.time - rows[-1][0])
        found = {"time": now.time, "kinetic_energy": now.kinetic, "dissipation": now.dissipation, "decay": decay}
        if self._drive is not None:
            found |= {f"force_{'xyz'[k]}": value for k, value in enumerate(self._drive.force.tolist())}
        return found

    def finish(self, *, pictures: bool = True) -> Sequence[str]:
        """Close ``history.csv``, draw it, and sections through a volume; return the names of the files."""
        if self._directory is None:
            return ()
        if self.checkpoint.catching_up:
            self.checkpoint.abandon()
            return ["history.csv"] if self.history.finish() else []
        written = [*self.checkpoint.finish(), *(["history.csv"] if self.history.finish() else [])]
        written += [name for observer in self.observers for name in observer.finish()]
        if pictures:
            written += self._draw(self._directory)
        return written

    def _draw(self, directory: Path) -> list[str]:
        """Draw what is not a plane field; return the names of the files."""
        fields = gathered(self.solver.context.comm, self.part, self.fields()) if self.solver.dimension == 3 else {}
        if self.solver.context.comm.rank:
            return []
        written: list[str] = []
        if len(self.history.rows) > _FEW:
            draw_history(directory / "history.png", *self.history.panels("time", _PANELS), self.plan.name)
            written.append("history.png")
        if fields:
            title = f"{self.plan.name}, time {self.solver.time:.6g}"
            for normal in (1, 2):
                name = f"section_{'xyz'[normal]}.png"
                draw_section(directory / name, self.mesh(), fields["speed"], normal, f"Speed: {title}", "speed")
                written.append(name)
        return written

    def residual(self) -> float:
        """Return the root mean square of ``du/dt`` over the volume, in the last step."""
        return self._residual

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
    def _chains(self) -> list[Chain]:
        solver = self.solver
        return [solver.before, *solver.solver.chains, solver.after, solver.limit, self._measure]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of the iterations of the pressure those of one."""
        pressure = {id(loop) for chain in self.solver.solver.chains for loop in chain.loops}
        kept: list[Loop] = []
        names: set[str] = set()
        for loop in unique(loop for chain in self._chains for loop in chain.loops):
            if id(loop) in pressure and loop.name in names:
                continue
            names.add(loop.name)
            kept.append(loop)
        return kept

    @property
    def pictures(self) -> Sequence[Picture]:
        """Speed, vorticity and pressure, of a plane flow."""
        if self.solver.dimension != 2:
            return ()
        where = f"{self.plan.name}, time {self.solver.time:.6g}"
        return (
            Picture("speed", f"Speed: {where}", "speed", None, "viridis"),
            Picture("vorticity", f"Vorticity: {where}", "vorticity", None, "RdBu_r", 0.0),
            Picture("p", f"Pressure: {where}", "kinematic pressure", None, "RdBu_r", 0.0),
        )

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, kinematic pressure and vorticity, each ``(cells,)``.

        Of a flow in three dimensions the vorticity is its magnitude. Nothing while a run catches up with a checkpoint.
        """
        if self.checkpoint.catching_up:
            return {}
        velocity = self.solver.velocity()
        found = {name: velocity[:, k].copy() for k, name in enumerate(_COMPONENTS[: self.solver.dimension])}
        with np.errstate(all="ignore"):
            found |= {"speed": np.linalg.norm(velocity, axis=1), "p": self.solver.pressure()}
            curl = self._curl.now()
            found["vorticity"] = curl if curl.ndim == 1 else np.linalg.norm(curl, axis=1)
        for observer in self.observers:
            found |= observer.fields()
        return found

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self._chains)

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return time, steps, energy, the imbalance of mass and the iterations of the pressure."""
        if self.checkpoint.catching_up:
            return (("time", f"{self.solver.time:.6g}, before the checkpoint, which is still there"),)
        state = self.solver.state()
        mean = self._iterations / max(1, state.steps)
        end = f" of {self.plan.end:.6g}" if self.plan.end and not self.finished else ""
        rows = [
            ("time", f"{state.time:.6g}{end}, the last step {state.dt:.3g}"),
            ("steps", f"{state.steps:,}"),
            ("kinetic energy", f"{state.kinetic_energy:.9g}"),
            ("imbalance", f"{state.imbalance:.2e} at most in a cell"),
            ("pressure", f"{self._last:,} iterations in the last step, {mean:.1f} on average"),
            ("residual", f"{self._residual:.6e} (root mean square of du/dt)"),
        ]
        if self._drive is not None:
            rows.append(("force", ", ".join(f"{value:.6g}" for value in self._drive.force)))
        return tuple(rows + [row for observer in self.observers for row in observer.summary()])

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew, once, and then kept."""
        if self._mesh is None:
            self._mesh = self._make()
        return self._mesh

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.plan.dt:
            return f"lower time.dt (now {self.plan.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant and time.diffusion, or give time.dt, a fixed step below those that were chosen"
