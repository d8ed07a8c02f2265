"""A case of compressible flow as it runs: steps, residual, fields and summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.application import Picture
from fluxloom.app.case import GuardTable
from fluxloom.app.cases.compressible_observers import SurfaceObserver
from fluxloom.app.cases.compressible_steps import Steps
from fluxloom.app.cases.flow_history import History, HistoryPanel
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_reports import loops_once, merged_reports
from fluxloom.app.cases.gas_watch import compressible_watch
from fluxloom.app.gathering import gathered
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.stall import Stall
from fluxloom.app.watch import Watch
from fluxloom.comm.base import Comm
from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["CompressiblePlan", "CompressibleRunner"]

_COMPONENTS = ("u", "v", "w")
_FEW = 3
_AROUND, _SMALL = 0.6, 0.5
"""Of the size of the walls: what pictures show around them; of the size of the mesh: below which they do so."""

Array = npt.NDArray[np.float64]
Window = tuple[float, float, float, float]


@dataclass(frozen=True)
class CompressiblePlan:
    """How a case runs.

    Attributes
    ----------
    name
        Of the case.
    end
        Time at which the run ends; 0: towards a steady flow.
    drop
        Part of the first residual at which a steady flow has been reached; 0: it does not look.
    history
        Steps between two lines of ``history.csv``; 0: no such file.
    bodies
        Patches that pictures show.
    """

    name: str
    end: float = 0.0
    drop: float = 0.0
    history: int = 0
    bodies: Sequence[str] = ()


class CompressibleRunner:
    """The solver of compressible flow, ready to advance by steps.

    Parameters
    ----------
    flow
        In its initial state.
    steps
        What advances it.
    mesh
        Returns the whole mesh; on several ranks called on rank 0 alone.
    plan
        How it runs.
    observers
        What looks at it; called with the runner.
    partition
        How the mesh is divided; None on a rank alone.
    """

    chain: Chain | None = None
    """None: steps in time ask for their length between two chains."""

    remembers = ("_first", "_residual", "_fixed", "_bad", "_last", "_begun")

    def __init__(
        self,
        flow: CompressibleFlow,
        steps: Steps,
        mesh: Callable[[], MeshData],
        plan: CompressiblePlan,
        observers: Callable[[CompressibleRunner], Sequence[Observer]],
        partition: PartitionReport | None = None,
    ) -> None:
        self.flow, self.steps, self.plan, self.partition = flow, steps, plan, partition
        self._make = mesh
        self._mesh: MeshData | None = None
        self._first, self._residual = 0.0, float("nan")
        self._fixed, self._bad, self._last = 0, 0, 0
        self._begun, self._places = False, ("", "")
        self._below: Sequence[tuple[str, str]] = ()
        self._window = _window(flow, plan.bodies)
        self.observers = tuple(observers(self))
        self.history = History(plan.history, (self._columns, *(observer.columns for observer in self.observers)))
        self.folder = ResultFolder(None)

    # ------------------------------------------------------------------------------------- advance
    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first step."""
        self.folder = folder
        for observer in self.observers:
            observer.begin(folder)
        self.history.begin(folder)

    @property
    def time(self) -> float | None:
        """Of the flow; None on the way to a steady one."""
        return self.flow.time if self.plan.end else None

    @property
    def finished(self) -> bool:
        """Whether the end, or a steady state, has been reached."""
        return 0.0 < self.plan.end <= self.flow.time or self._residual < self.plan.drop

    def advance(self) -> None:
        """Advance by one step.

        Raises
        ------
        SolverError
            If a state is not finite; names the cell.
        """
        flow = self.flow
        if not self._begun:
            self._first, self._begun = self.steps.begin(), True
        before = flow.limits
        found = self.steps.step()
        self._fixed += found.fixed
        self._bad += found.bad
        self._last = flow.limits - before + found.bad
        if found.fixed:
            self._last = max(self._last, flow.positivity.mark(self.steps.looked))
        self._first = self._first or found.norm
        self._residual = found.norm / self._first if self._first else 0.0
        for observer in self.observers:
            observer.stepped()
        self.history.stepped(flow.steps)

    def residual(self) -> float:
        """Return the norm of the residual over the first one; what it is of, the steps say."""
        return self._residual

    # --------------------------------------------------------------------------------------- results
    def _columns(self) -> dict[str, float]:
        """Return the columns of ``history.csv`` that every flow has."""
        found = {"step": float(self.flow.steps), "time": self.flow.time, "residual": self._residual}
        found |= {"fixed": float(self._fixed), "bad": float(self._bad), "limited": float(self.flow.limits)}
        return found | self.steps.columns()

    def goals(self) -> Sequence[Goal]:
        """Return the end, of a flow in time, or the residual of a steady one."""
        plan, time, residual = self.plan, self.flow.time, self._residual
        ends = [Goal("time.end", "time", plan.end, time, plan.end <= time)] if plan.end else []
        drops = [Goal("time.drop", "residual", plan.drop, residual, residual < plan.drop)] if plan.drop else []
        return [*ends, *drops]

    def finish(self, *, pictures: bool = True) -> None:
        """Complete the tables and draw."""
        self._places, self._below = self._limited_places(), self._negative()
        self.history.finish()
        for observer in self.observers:
            observer.finish()
        if pictures:
            self._draw()

    def _draw(self) -> None:
        """Draw what is not a plane field."""
        context, plan, folder = self.flow.context, self.plan, self.folder
        fields = gathered(context.comm, self.part, self.fields()) if self.flow.dimension == 3 else {}
        if not folder.here:
            return
        from fluxloom.app.cases.flow_pictures import draw_history, draw_section

        if len(self.history.rows) > _FEW:
            panels = [HistoryPanel("residual", ("residual",), logarithmic=True)] if not plan.end else []
            for name in (column.removesuffix(".lift") for column in self.history.names if column.endswith(".lift")):
                panels += [HistoryPanel(f"{name}: {what}", (f"{name}.{what}",)) for what in ("drag", "lift")]
            over = "time" if plan.end else "step"
            shown = panels or [HistoryPanel("imbalance of mass", ("mass_imbalance",))]
            folder.write(
                "history.png", lambda path: draw_history(path, *self.history.panels(over, shown), plan.name)
            )  # fmt: skip
        if fields:
            title = f"Mach number: {plan.name}"
            folder.write(
                "section_y.png",
                lambda path: draw_section(path, self.mesh(), fields["mach"], 1, title, "Mach number"),
            )
        surfaces = [observer for observer in self.observers if isinstance(observer, SurfaceObserver)]
        curves = [curve for observer in surfaces for curve in observer.curves]
        if curves:
            from fluxloom.app.cases.compressible_pictures import draw_pressure

            folder.write("pressure.png", lambda path: draw_pressure(path, curves, plan.name))

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        return self.flow.spaces.cells.set.part

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        return self.flow.spaces.cells.set.total

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step; of those that stages repeat the first."""
        return loops_once(self.steps.parts)

    @property
    def pictures(self) -> Sequence[Picture]:
        """Mach number and pressure, of a plane flow."""
        if self.flow.dimension != 2:
            return ()
        time = f", time {self.flow.time:.6g}" if self.plan.end else ""
        where = f"{self.plan.name}{time}"
        return (
            Picture("mach", f"Mach number: {where}", "Mach number", self._window),
            Picture("p", f"Pressure: {where}", "pressure", self._window, "RdBu_r"),
        )

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return density, velocity, pressure, temperature and Mach number, each ``(cells,)``.

        With a model of turbulence also its variable; in how many steps cells were limited to keep density and pressure
        above 0, if any were; and what observers have.
        """
        d, w = self.flow.dimension, self.flow.states()
        mean, gas = w[:, : d + 2], self.flow.gas
        found = {"rho": w[:, 0].copy()} | {name: w[:, 1 + k].copy() for k, name in enumerate(_COMPONENTS[:d])}
        with np.errstate(all="ignore"):
            found |= {"p": w[:, 1 + d].copy(), "T": gas.temperature(mean)}
            found["mach"] = np.linalg.norm(w[:, 1 : 1 + d], axis=1) / gas.sound(mean)
        found |= {"nu_tilde": w[:, 2 + d].copy()} if w.shape[1] > d + 2 else {}
        limited = self.flow.positivity.limited
        found |= {} if limited is None else {"limited": self.flow.owned(limited)}
        for observer in self.observers:
            found |= observer.fields()
        return found

    def watch(self, table: GuardTable) -> Watch:
        """Return what guards look at. Collective."""
        return compressible_watch(
            self.flow, table, self.clipped_states, end=self.plan.end, explicit=self.steps.explicit
        )

    def why_stalled(self, found: Stall) -> str:
        """Return why the residual gets no lower."""
        return self.steps.stalled()

    def clipped_states(self) -> tuple[float, float]:
        """Return how many states stages towards a steady flow have left as they were, and how many there were."""
        stages = len(self.flow.scheme.time.stages)
        return float(self._bad), float(self.cells) * self.flow.steps * stages

    def _most(self, counts: Array) -> tuple[float, str]:
        """Return the largest of some numbers of the owned cells, and its cell and place. Collective."""
        flow = self.flow
        numbers = np.arange(flow.volumes.owned) if self.part is None else self.part.numbers[: flow.volumes.owned]
        k = int(np.argmax(counts)) if counts.size else -1
        here = (0.0, -1, ()) if k < 0 else (-float(counts[k]), int(numbers[k]), tuple(flow.volumes.centres[k].tolist()))
        least, number, place = min(flow.context.comm.allgather(here))
        return -least, f"cell {number:,} at ({', '.join(f'{x:.4g}' for x in place)})"

    def _limited_places(self) -> tuple[str, str]:
        """Return the cell that was limited most often, and one that was in the last step; empty: none. Collective."""
        guard = self.flow.positivity
        if guard.limited is None:
            return "", ""
        count, often = self._most(self.flow.owned(guard.limited))
        now, last = self._most(self.flow.owned(guard.recent)) if guard.at == self.flow.steps else (0.0, "")
        return f"{often} in {count:,.0f} steps" if count else "", last if now else ""

    def _negative(self) -> Sequence[tuple[str, str]]:
        """Return in how many cells the variable of a model of turbulence is negative, and where most. Collective."""
        flow = self.flow
        if not flow.turbulent:
            return ()
        values = flow.states()[:, -1]
        count = int(flow.context.comm.reduce(np.array([float((values < 0.0).sum())]), "sum")[0])
        lowest, place = self._most(-values)
        text = f"negative in {count:,} of {self.cells:,} cells, {-lowest:.3g} in {place}: no eddy viscosity there"
        return (("nu_tilde", text),) if count else ()

    def _limited(self) -> Sequence[tuple[str, str]]:
        """Return what was limited to keep density and pressure above 0, where most often, and whether it still was."""
        if not (self._fixed or self._bad or self.flow.limits):
            return ()
        parts = [
            f"{self._fixed:,} states at faces" if self._fixed else "",
            f"fluxes of {self.flow.limits:,} cells, step by step" if self.flow.limits else "",
            f"{self._bad:,} cells kept their state in a stage" if self._bad else "",
        ]
        often, last = self._places
        text = ", ".join(part for part in parts if part)
        text += f"; most often {often}" if often else ""
        now = f"{self._last:,} cells in the last step" if self._last else "none in the last step"
        return (("limited", f"{text}; {now}" + (f", as {last}" if self._last and last else "")),)

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self.steps.parts)

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return steps, time, residual, what was mended, forces and the imbalance of mass."""
        rows = [("steps", f"{self.flow.steps:,}")]
        if end := self.plan.end:
            rows.append(("time", f"{self.flow.time:.6g}" + ("" if self.finished else f" of {end:.6g}")))
        else:
            rows.append(("residual", f"{self._residual:.3e} ({self.steps.measure})"))
        rows += self.steps.summary()
        rows += [*self._limited(), *self._below]
        return tuple(rows + [row for observer in self.observers for row in observer.summary()])

    def mesh(self) -> MeshData:
        """Return the whole mesh; on several ranks it is made anew, once, and then kept."""
        if self._mesh is None:
            self._mesh = self._make()
        return self._mesh

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return self.steps.advice()


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
