"""A case of compressible flow as it runs: steps, residual, fields and summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.flows.compressible_steps import Steps
from fluxloom.flows.conserved_start import conserving, state_names
from fluxloom.flows.gas_watch import compressible_watch
from fluxloom.run.flow import Flow, HistoryPanel, Picture, Section, Until
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.reports import loops_once, merged_reports
from fluxloom.run.results.folder import ResultFolder
from fluxloom.run.stall import Stall
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["CompressibleRun"]

_COMPONENTS = ("u", "v", "w")
_AROUND, _SMALL = 0.6, 0.5
"""Of the size of the walls: what pictures show around them; of the size of the mesh: below which they do so."""

Array = npt.NDArray[np.float64]
Window = tuple[float, float, float, float]


class CompressibleRun(Flow):
    """The solver of compressible flow, ready to advance by steps.

    Parameters
    ----------
    solver
        In its initial state.
    steps
        What advances it.
    bodies
        Patches that pictures show.
    """

    remembers = ("_first", "_residual", "_fixed", "_bad", "_last", "_begun")

    def __init__(self, solver: CompressibleFlow, steps: Steps, bodies: Sequence[str] = ()) -> None:
        self.solver, self.steps_of, self.context = solver, steps, solver.context
        self._first, self._residual = 0.0, float("nan")
        self._fixed, self._bad, self._last = 0, 0, 0
        self._begun, self._places = False, ("", "")
        self._below: Sequence[tuple[str, str]] = ()
        self._window = _window(solver, bodies)

    def start_from(self, start: Start) -> None:
        """Start from density, velocity and pressure of another result, and the variable of a model of turbulence.

        They are bounded by those around them, so that density and pressure stay above 0; then mass, momentum and energy
        are made those of the result, see `fluxloom.flows.conserved_start`. A variable of turbulence that the result has
        not stays as it is.
        """
        solver, cv = self.solver, self.solver.volumes
        names, before = state_names(solver.dimension), solver.states()
        if start.held({"run.flow.solver.w": solver.w}, "mesh"):
            solver.start(solver.states())
            solver.time, solver.steps = start.clock
            return
        more = ("nu_tilde",) if solver.turbulent else ()
        found = start.at(
            cv.centres[: cv.owned], names, optional=more, bounded=True, volumes=cv.volumes[: cv.owned],
            correct=conserving(solver.gas, solver.dimension),
        )  # fmt: skip
        rest = [found.get(name, before[:, -1]) for name in more]
        solver.start(np.stack([*(found[name] for name in names), *rest], axis=1))
        solver.time, solver.steps = start.clock

    # ------------------------------------------------------------------------------------- advance
    @property
    def steps(self) -> int:
        """Steps since the flow began."""
        return self.solver.steps

    @property
    def time(self) -> float | None:
        """Of the flow; None on the way to a steady one."""
        return None if self.steps_of.steady else self.solver.time

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self.solver.dimension

    def advance(self, until: Until) -> float:
        """Advance by a step; return the norm of the residual over the first one.

        What it is of, the steps say.

        Raises
        ------
        SolverError
            If a state is not finite; names the cell.
        """
        flow = self.solver
        if not self._begun:
            self._first, self._begun = self.steps_of.begin(), True
        before = flow.limits
        found = self.steps_of.step(until.time)
        self._fixed += found.fixed
        self._bad += found.bad
        self._last = flow.limits - before + found.bad
        if found.fixed:
            self._last = max(self._last, flow.positivity.mark(self.steps_of.looked))
        self._first = self._first or found.norm
        self._residual = found.norm / self._first if self._first else 0.0
        return self._residual

    # --------------------------------------------------------------------------------------- results
    def columns(self) -> dict[str, float]:
        """Return step, time, residual, and what was limited."""
        found = {"step": float(self.solver.steps), "time": self.solver.time, "residual": self._residual}
        found |= {"fixed": float(self._fixed), "bad": float(self._bad), "limited": float(self.solver.limits)}
        return found | self.steps_of.columns()

    def goals(self, until: Until) -> Sequence[Goal]:
        """Return the end, of a flow in time, or the residual of a steady one."""
        time, residual = self.solver.time, self._residual
        ends = [Goal("time.end", "time", until.time, time, until.time <= time)] if until.time else []
        met = residual < until.steady
        return [*ends, *([Goal("time.drop", "residual", until.steady, residual, met)] if until.steady else [])]

    def finish(self, folder: ResultFolder, name: str, *, pictures: bool) -> None:
        """Look for what was limited, and where."""
        self._places, self._below = self._limited_places(), self._negative()

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return the residual of a steady flow, and the coefficients of bodies."""
        panels = [HistoryPanel("residual", ("residual",), logarithmic=True)] if self.steps_of.steady else []
        for name in (column.removesuffix(".lift") for column in columns if column.endswith(".lift")):
            panels += [HistoryPanel(f"{name}: {what}", (f"{name}.{what}",)) for what in ("drag", "lift")]
        over = "step" if self.steps_of.steady else "time"
        return over, panels or [HistoryPanel("imbalance of mass", ("mass_imbalance",))]

    def sections(self, name: str) -> Sequence[Section]:
        """Return the Mach number across y."""
        return [Section("mach", f"Mach number: {name}", "Mach number", (1,))]

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.solver.spaces.cells.set.part

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.solver.spaces.cells.set.total

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of those that stages repeat the first."""
        return loops_once(self.steps_of.parts)

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [part for part in self.steps_of.parts if isinstance(part, Chain)]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return Mach number and pressure."""
        where = name if self.steps_of.steady else f"{name}, time {self.solver.time:.6g}"
        return (
            Picture("mach", f"Mach number: {where}", "Mach number", self._window),
            Picture("p", f"Pressure: {where}", "pressure", self._window, "RdBu_r"),
        )

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return density, velocity, pressure, temperature and Mach number, each ``(cells,)``.

        With a model of turbulence also its variable; and in how many steps cells were limited to keep density and
        pressure above 0, if any were.
        """
        d, w = self.solver.dimension, self.solver.states()
        mean, gas = w[:, : d + 2], self.solver.gas
        found = {"rho": w[:, 0].copy()} | {name: w[:, 1 + k].copy() for k, name in enumerate(_COMPONENTS[:d])}
        with np.errstate(all="ignore"):
            found |= {"p": w[:, 1 + d].copy(), "T": gas.temperature(mean)}
            found["mach"] = np.linalg.norm(w[:, 1 : 1 + d], axis=1) / gas.sound(mean)
        found |= {"nu_tilde": w[:, 2 + d].copy()} if w.shape[1] > d + 2 else {}
        limited = self.solver.positivity.limited
        found |= {} if limited is None else {"limited": self.solver.owned(limited)}
        return found

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return compressible_watch(
            self.solver, table, self.clipped_states, end=until.time, explicit=self.steps_of.explicit
        )

    def why_stalled(self, found: Stall) -> str:
        """Return why the residual gets no lower."""
        return self.steps_of.stalled()

    def clipped_states(self) -> tuple[float, float]:
        """Return how many states stages towards a steady flow have left as they were, and how many there were."""
        stages = len(self.solver.scheme.time.stages)
        return float(self._bad), float(self.cells) * self.solver.steps * stages

    def _most(self, counts: Array) -> tuple[float, str]:
        """Return the largest of some numbers of the owned cells, and its cell and place. Collective."""
        flow = self.solver
        numbers = np.arange(flow.volumes.owned) if self.part is None else self.part.numbers[: flow.volumes.owned]
        k = int(np.argmax(counts)) if counts.size else -1
        here = (0.0, -1, ()) if k < 0 else (-float(counts[k]), int(numbers[k]), tuple(flow.volumes.centres[k].tolist()))
        least, number, place = min(flow.context.comm.allgather(here))
        return -least, f"cell {number:,} at ({', '.join(f'{x:.4g}' for x in place)})"

    def _limited_places(self) -> tuple[str, str]:
        """Return the cell that was limited most often, and one that was in the last step; empty: none. Collective."""
        guard = self.solver.positivity
        if guard.limited is None:
            return "", ""
        count, often = self._most(self.solver.owned(guard.limited))
        now, last = self._most(self.solver.owned(guard.recent)) if guard.at == self.solver.steps else (0.0, "")
        return f"{often} in {count:,.0f} steps" if count else "", last if now else ""

    def _negative(self) -> Sequence[tuple[str, str]]:
        """Return in how many cells the variable of a model of turbulence is negative, and where most. Collective."""
        flow = self.solver
        if not flow.turbulent:
            return ()
        values = flow.states()[:, -1]
        count = int(flow.context.comm.reduce(np.array([float((values < 0.0).sum())]), "sum")[0])
        lowest, place = self._most(-values)
        text = f"negative in {count:,} of {self.cells:,} cells, {-lowest:.3g} in {place}: no eddy viscosity there"
        return (("nu_tilde", text),) if count else ()

    def _limited(self) -> Sequence[tuple[str, str]]:
        """Return what was limited to keep density and pressure above 0, where most often, and whether it still was."""
        if not (self._fixed or self._bad or self.solver.limits):
            return ()
        parts = [
            f"{self._fixed:,} states at faces" if self._fixed else "",
            f"fluxes of {self.solver.limits:,} cells, step by step" if self.solver.limits else "",
            f"{self._bad:,} cells kept their state in a stage" if self._bad else "",
        ]
        often, last = self._places
        text = ", ".join(part for part in parts if part)
        text += f"; most often {often}" if often else ""
        now = f"{self._last:,} cells in the last step" if self._last else "none in the last step"
        return (("limited", f"{text}; {now}" + (f", as {last}" if self._last and last else "")),)

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self.steps_of.parts)

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return steps, time, residual, and what was limited."""
        rows = [("steps", f"{self.steps:,}")]
        if end := until.time:
            rows.append(("time", f"{self.solver.time:.6g}" + ("" if end <= self.solver.time else f" of {end:.6g}")))
        else:
            rows.append(("residual", f"{self._residual:.3e} ({self.steps_of.measure})"))
        return (*rows, *self.steps_of.summary(), *self._limited(), *self._below)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return self.steps_of.advice()


def _window(flow: CompressibleFlow, bodies: Sequence[str]) -> Window | None:
    """Return what pictures of a plane flow show: the surroundings of bodies that are small in it. Collective."""
    cv = flow.volumes
    if flow.dimension != 2 or not bodies:
        return None
    walls = [cv.centres[cv.patches[name].start : cv.patches[name].stop] for name in bodies]
    low, high = _bounds(flow.context.comm, np.concatenate(walls))
    first, last = _bounds(flow.context.comm, cv.centres)
    size = float((high - low).max())
    if not size < _SMALL * (last - first).max():
        return None
    pad = _AROUND * size
    return float(low[0]) - pad, float(high[0]) + pad, float(low[1]) - pad, float(high[1]) + pad


def _bounds(comm: Comm, places: Array) -> tuple[Array, Array]:
    """Return the least and the largest coordinates of the places of all ranks. Collective."""
    low, high = places.min(axis=0, initial=np.inf), places.max(axis=0, initial=-np.inf)
    return comm.reduce(low, "min"), comm.reduce(high, "max")
