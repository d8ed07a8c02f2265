"""A case of incompressible flow in time as it runs: steps and their lengths, history, files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from fluxloom.app.cases.flow_history import History, HistoryPanel
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_pictures import draw_history, draw_section
from fluxloom.app.cases.flow_plan import FlowPlan
from fluxloom.app.cases.flow_reports import merged_reports
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.stall import Stall
from fluxloom.core.errors import Divergence, PreconditionerError, SolverError
from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.dsl.identity import unique
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.report import LoopReport
from fluxloom.linalg.status import Status
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.flow_types import FlowState

__all__ = ["FlowRunner"]

_CLOSE = 1e-9
_OF_TOLERANCE = 1e3
"""Times the tolerance of the pressure, below which the residual is made by it."""
_FEW = 3
_STRETCHED = 20
"""Steps before the end that are equal, where each is chosen anew."""
_SHORTER = 0.95
"""Of a given step, at least, where all are made equal."""
_ROUNDING = 1e-13


class _Flow(Protocol):
    """A solver of flow, or of what flow carries, in time."""

    context: Context
    dimension: int
    time: float
    steps: int
    dt: float

    def step(self, dt: float) -> Status | None:
        """Advance by ``dt``; return what the solver of the pressure says, None where there is none."""
        ...

    def state(self) -> object:
        """Return what the flow does now."""
        ...

    def check_next(self) -> None:
        """Let what the next step solves by iterations end with the residual of the solution itself."""
        ...

    def verify(self) -> Status | None:
        """Return what the last solution is by the residual of itself, None where there is none. Collective."""
        ...


class _Measure(Protocol):
    """What measures how fast the velocity changes, as `fluxloom.app.cases.flow_change.Change` does."""

    @property
    def chain(self) -> Chain:
        """What measures."""
        ...

    def measured(self, dt: float) -> float:
        """Return it for a step of ``dt`` that has just been made."""
        ...


class FlowRunner:
    """What runners of incompressible flow in time have in common; a solver's own adds what it alone knows.

    Parameters
    ----------
    solver
        In its initial state.
    change
        Measures the residual.
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

    panels: Sequence[HistoryPanel] = (HistoryPanel("kinetic energy", ("kinetic_energy",)),)
    """Of ``history.png``."""

    remembers = ("_iterations", "_largest", "_last", "_residual")

    place, unknown, section = "cell", "u", "speed"
    """Where values of fields are; what the residual is of; the field of which sections through a volume are drawn."""

    def __init__(
        self,
        solver: _Flow,
        change: _Measure,
        mesh: Callable[[], MeshData],
        plan: FlowPlan,
        observers: Sequence[Observer] = (),
        partition: PartitionReport | None = None,
    ) -> None:
        self._flow, self.plan, self.observers = solver, plan, tuple(observers)
        self.partition = partition
        self._make, self._change = mesh, change
        self._mesh: MeshData | None = None
        self._iterations, self._last, self._residual = 0, 0, float("nan")
        self._largest = 0.0
        self._unsolved = False
        """Whether the residual is that of a steady state, but the pressure behind it is not solved."""
        self.history = History(plan.history, (self._columns, *(observer.columns for observer in observers)))
        self.folder = ResultFolder(None)

    # ----------------------------------------------------------------------- what solvers say themselves
    def _columns(self) -> dict[str, float]:
        """Return the columns of ``history.csv`` that every flow has."""
        raise NotImplementedError

    def _largest_step(self) -> float:
        """Return the largest stable step."""
        raise NotImplementedError

    def _before(self, dt: float) -> None:
        """Do what comes before a step."""

    @property
    def _chains(self) -> list[Chain]:
        """Everything that runs, the iterations of the pressure too."""
        raise NotImplementedError

    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        """What the solver of the pressure runs."""
        raise NotImplementedError

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return values of the elements that this rank owns."""
        raise NotImplementedError

    def _volume_field(self, name: str) -> npt.NDArray[Any] | None:
        """Return a field of the cells of the whole mesh on rank 0, None elsewhere. Collective."""
        raise NotImplementedError

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------- advance
    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first step."""
        self.folder = folder
        for observer in self.observers:
            observer.begin(folder)
        self.history.begin(folder)

    @property
    def time(self) -> float:
        """Of the flow."""
        return self._flow.time

    @property
    def finished(self) -> bool:
        """Whether the end, or a steady state, has been reached."""
        plan = self.plan
        if plan.steady and self._residual <= self._steady_below() and not self._unsolved:
            return True
        return 0.0 < plan.end <= self._flow.time * (1.0 + _CLOSE)

    def _steady_below(self) -> float:
        """Return the residual of a steady state: a part of the largest so far, or what rounding makes of it."""
        speed, dt = getattr(self._change, "speed", 0.0), self._flow.dt
        return max(self.plan.steady * self._largest, _ROUNDING * speed / dt if dt else 0.0)

    def _next_step(self) -> float:
        """Return the length of the next step.

        In time all steps of a given length are made equal such that a whole number of them hits the end, of others the
        last ones, by a twentieth at most; where that is too little the last two share what is left. A run towards a
        steady state goes past the end.
        """
        plan = self.plan
        dt = plan.dt or self._largest_step()
        left = plan.end - self._flow.time if plan.end and not plan.steady else math.inf
        if math.isinf(left) or (not plan.dt and left > _STRETCHED * dt):
            return dt
        count = max(1, math.ceil(left / dt * (1.0 - _CLOSE)))
        fits = abs(left / dt - count) <= _CLOSE * count
        if left >= 2.0 * dt and (fits or left < _SHORTER * dt * count):
            return dt
        return dt if fits and count > 2 else left / count

    def check_next(self) -> None:
        """Let the pressure of the next step be solved to a residual of its own, as that of a run's last step."""
        self._flow.check_next()

    def unsolved(self) -> str:
        """Return what the residual of the last pressure itself lacks, in words; empty: nothing. Collective."""
        status = self._flow.verify()
        if status is None or status.converged:
            return ""
        return f"the pressure of the last step has not converged, |r|/|b| = {status.relative:.2e}"

    def advance(self) -> None:
        """Advance by one step.

        Raises
        ------
        SolverError
            If the velocity is not finite, or the pressure does not converge.
        """
        flow = self._flow
        dt = self._next_step()
        self._before(dt)
        ends = 0.0 < self.plan.end <= (flow.time + dt) * (1.0 + _CLOSE)
        if ends or self._unsolved:
            self.check_next()
        try:
            status = flow.step(dt)
        except SolverError as error:  # maybe on this rank alone: nothing that needs the others
            self._residual = float("nan")
            if isinstance(error, PreconditionerError):
                raise
            if isinstance(error, Divergence):
                raise error.with_more(f": {self.advice()}") from None
            raise SolverError(f"{error}: {self.advice()}") from None
        if status is not None:
            self._solved(status)
        self._residual = self._change.measured(flow.dt)
        self._largest = max(self._largest, self._residual)
        steady = self.plan.steady and self._residual <= self._steady_below()
        self._unsolved = bool(steady and self.unsolved())
        for observer in self.observers:
            observer.stepped()
        self.history.stepped(flow.steps)

    def _solved(self, status: Status) -> None:
        """Count the iterations of the pressure; raise `SolverError` where they have not converged."""
        if not status.converged:
            raise SolverError(
                f"step {self._flow.steps}: the pressure has not converged, |r|/|b| = {status.relative:.2e} after "
                f"{status.iterations:,} iterations ({status.reason}); raise pressure.iterations or pressure.rtol, or "
                "choose another pressure.preconditioner"
            )
        self._last = status.iterations
        self._iterations += status.iterations

    def why_stalled(self, found: Stall) -> str:
        """Return that the tolerance of the pressure is what is left, where it is.

        A step ends with a divergence of ``rtol`` of what the pressure took away; what that does to ``du/dt`` was below
        a thousand times ``rtol`` of the largest ``du/dt`` wherever it was looked at.
        """
        rtol = self._tolerance
        if not rtol or found.lowest > _OF_TOLERANCE * rtol * self._largest:
            return ""
        return f"limited by pressure.rtol = {rtol:g}: lower it"

    @property
    def _tolerance(self) -> float:
        """Of the solver of the pressure, relative; 0: it has none."""
        return 0.0

    def residual(self) -> float:
        """Return the root mean square of ``du/dt`` over the volume, in the last step."""
        return self._residual

    # --------------------------------------------------------------------------------------- results
    def goals(self) -> Sequence[Goal]:
        """Return the end and the residual, relative to its largest value, that the case names."""
        plan, time, residual = self.plan, self._flow.time, self._residual
        ends = [Goal("time.end", "time", plan.end, time, plan.end <= time * (1.0 + _CLOSE))] if plan.end else []
        if not plan.steady:
            return ends
        scale, below = self._largest or 1.0, self._steady_below()
        if plan.steady * scale < residual <= below:  # a flow that begins as the steady one: its largest is round-off
            return [*ends, Goal("time.steady", "du/dt, which is round-off,", below, residual, True)]
        return [*ends, Goal("time.steady", "residual", plan.steady, residual / scale, residual <= below, scale)]

    def finish(self, *, pictures: bool = True) -> None:
        """Close ``history.csv``, draw it, and sections through a volume."""
        self.history.finish()
        for observer in self.observers:
            observer.finish()
        if pictures:
            self._draw()

    def _draw(self) -> None:
        """Draw what is not a plane field."""
        values = self._volume_field(self.section) if self._flow.dimension == 3 else None
        if len(self.history.rows) > _FEW:
            panels = self.history.panels("time", self.panels)
            self.folder.write("history.png", lambda path: draw_history(path, *panels, self.plan.name))
        if values is None:
            return
        title = f"{self.section.capitalize()}: {self.plan.name}, time {self._flow.time:.6g}"
        for normal in (1, 2):
            self.folder.write(
                f"section_{'xyz'[normal]}.png",
                lambda path, normal=normal: draw_section(path, self.mesh(), values, normal, title, self.section),
            )

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return self._chains

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of the iterations of the pressure those of one."""
        pressure = {id(loop) for chain in self._pressure_chains for loop in chain.loops}
        kept: list[Loop] = []
        names: set[str] = set()
        for loop in unique(loop for chain in self._chains for loop in chain.loops):
            if id(loop) in pressure and loop.name in names:
                continue
            names.add(loop.name)
            kept.append(loop)
        return kept

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self._chains)

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return time, steps, sums and the residual."""
        end = f" of {self.plan.end:.6g}" if self.plan.end and not self.finished else ""
        rows = (
            ("time", f"{self._flow.time:.6g}{end}, the last step {self._flow.dt:.3g}"),
            ("steps", f"{self._flow.steps:,}"),
            *self._sums(),
            ("residual", f"{self._residual:.6e} (root mean square of d{self.unknown}/dt)"),
            *self._rows(),
        )
        return (*rows, *(row for observer in self.observers for row in observer.summary()))

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return what was chosen that the case leaves open."""
        return tuple(row for observer in self.observers for row in observer.choices())

    def _sums(self) -> Sequence[tuple[str, str]]:
        """Return rows of the summary: energy, the imbalance of mass, the iterations of the pressure."""
        state = self._flow.state()
        assert isinstance(state, FlowState)
        mean = self._iterations / max(1, state.steps)
        return (
            ("kinetic energy", f"{state.kinetic_energy:.9g}"),
            ("imbalance", f"{state.imbalance:.2e} at most in a {self.place}"),
            ("pressure", f"{self._last:,} iterations in the last step, {mean:.1f} on average"),
        )

    def _rows(self) -> Sequence[tuple[str, str]]:
        """Return rows of the summary that a solver adds."""
        return ()

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew, once, and then kept."""
        if self._mesh is None:
            self._mesh = self._make()
        return self._mesh
