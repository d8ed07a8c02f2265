"""A case that has been built: its flow, what looks at it, and what is written and drawn of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import to_first
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.core.status import Goal
from fluxloom.dsl.declare.parts import Part
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.fields import Fields
from fluxloom.run.flow import Flow, Picture, Until
from fluxloom.run.history import History
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.results import ResultFolder

__all__ = ["FlowRun", "Lost", "find_lost", "gathered", "rows_in_order"]

Named = Mapping[str, npt.NDArray[Any]]

Lost = tuple[str, int, int]
"""Name of a field, its first cell with a NaN or infinity, and how many such cells there are."""


def gathered(comm: Comm, part: Part | None, fields: Named) -> dict[str, npt.NDArray[Any]]:
    """Return values of all cells in global order on rank 0, and no values elsewhere. Collective.

    Parameters
    ----------
    comm
        The ranks.
    part
        This rank's part of the cells; None on a rank alone.
    fields
        Name to the values of the owned cells, ``(owned, ...)``; the same names on every rank.
    """
    if part is None:
        return dict(fields)
    numbers = np.concatenate(to_first(comm, part.numbers[: part.owned]))
    whole: dict[str, npt.NDArray[Any]] = {}
    for name, values in fields.items():
        found = np.concatenate(to_first(comm, values))
        if comm.rank:
            continue
        whole[name] = np.empty_like(found)
        whole[name][numbers] = found
    return whole


def find_lost(comm: Comm, part: Part | None, fields: Named) -> Lost | None:
    """Return the first field that has a NaN or an infinity, its first such cell and their number. Collective.

    Every rank gets the same; None when all values are finite.
    """
    for name, values in fields.items():
        lost = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
        numbers = lost if part is None else part.numbers[lost]
        first = int(numbers.min()) if numbers.size else np.iinfo(np.int64).max
        count = int(comm.reduce(np.array([numbers.size]), "sum")[0])
        if count:
            return name, int(comm.reduce(np.array([first], dtype=np.int64), "min")[0]), count
    return None


def rows_in_order(
    comm: Comm, numbers: npt.NDArray[np.integer], rows: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Return rows of all ranks, those with the lowest numbers first, on rank 0; elsewhere none. Collective.

    Parameters
    ----------
    comm
        The ranks.
    numbers : (n,)
        Of this rank's rows, each of one rank.
    rows : (n, k)
        What is brought together.
    """
    if comm.size > 1:
        numbers, rows = (
            np.concatenate(to_first(comm, values)) for values in (numbers.astype(np.int64), rows)
        )
    return rows[np.argsort(numbers, kind="stable")]


_CLOSE = 1e-9
"""Of a time: what has reached it."""

_FEW = 3
"""Lines of the history from which on it is drawn."""

F = TypeVar("F", bound=Flow)


class FlowRun(Generic[F]):
    """A flow, ready to be run. On several ranks every method is collective.

    Parameters
    ----------
    flow
        In its initial state.
    name
        Of the case.
    until
        How far it runs.
    monitors
        What looks at it, a `History` among them or not; they are attached to it here.

    Raises
    ------
    SolverError
        If the flow can never come to the end, or a monitor finds nothing to look at.
    """

    remembers = ("_residual",)

    def __init__(self, flow: F, name: str, until: Until, monitors: Sequence[Monitor] = ()) -> None:
        flow.check_end(until)
        self.flow, self.name, self.until = flow, name, until
        self.history = next((one for one in monitors if isinstance(one, History)), History(0))
        others = [one for one in monitors if one is not self.history]
        before, behind = ([one for one in others if one.behind_history is last] for last in (False, True))
        self.monitors = [*before, self.history, *behind]
        self.folder = ResultFolder(None)
        self._mesh: MeshData | None = None
        self._residual = float("nan")
        for monitor in self.monitors:
            _attach(monitor, self)

    def columns(self) -> dict[str, float]:
        """Return the numbers of now, of the flow and its monitors."""
        found = dict(self.flow.columns())
        for monitor in self.monitors:
            found |= monitor.columns()
        return found

    @property
    def looks_back(self) -> bool:
        """Whether all columns can be those of a step before: within `Flow.looking_back`."""
        return all(one.looks_back or type(one).columns is Monitor.columns for one in self.monitors)

    # ----------------------------------------------------------------------------------------- advance
    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first step."""
        self.folder = folder
        for monitor in self.monitors:
            monitor.begin(folder)

    def advance(self) -> None:
        """Advance by a step, and look at it; within a step that is an interval also at times that monitors want.

        Raises
        ------
        SolverError
            If the step cannot be made, or the state behind it is lost.
        """
        self._residual = float("nan")  # of a step that fails
        before, began = self.flow.steps, self.flow.time
        while True:
            stop = min((monitor.next_time() for monitor in self.monitors), default=inf)
            self._residual = self.flow.advance(self.until.stopped(stop))
            if self.flow.steps > before or not (self.flow.time or 0.0) >= stop * (1.0 - _CLOSE):
                break
            for monitor in self.monitors:
                monitor.reached()
        if began is not None and self.flow.time == began and not 0.0 < self.until.time <= began * (1.0 + _CLOSE):
            raise SolverError(
                f"step {self.flow.steps}, time {began:.6g}: the time does not pass any more, steps are shorter than "
                "its rounding; what is given may grow without bound there, or a cell be far too small"
            )
        for monitor in self.monitors:
            monitor.stepped()

    def residual(self) -> float:
        """Return the residual of the last step; NaN before the first."""
        return self._residual

    def goals(self) -> Sequence[Goal]:
        """Return what the run aims at beside its number of steps, and how far it is."""
        return [*self.flow.goals(self.until), *(goal for monitor in self.monitors for goal in monitor.goals())]

    @property
    def finished(self) -> bool:
        """Whether one of the goals is met."""
        return any(goal.met for goal in self.goals())

    # ------------------------------------------------------------------------------------------ results
    def fields(self) -> Fields:
        """Return values of the elements that this rank owns, those of monitors too, found when they are asked for."""
        found = Fields.of(self.flow.fields())
        for monitor in self.monitors:
            found = found | monitor.fields()
        return found

    def mesh(self) -> MeshData:
        """Return the whole mesh, its cells in global order; on several ranks it is made anew, once, and kept."""
        if self._mesh is None:
            self._mesh = self.flow.mesh()
        return self._mesh

    @property
    def pictures(self) -> Sequence[Picture]:
        """The pictures of a plane flow that are worth drawing."""
        return self.flow.pictures(self.name) if self.flow.dimension == 2 else ()

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the results worth printing, as (name, text) pairs."""
        return (*self.flow.summary(self.until), *(row for monitor in self.monitors for row in monitor.summary()))

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return what was chosen that the case leaves open, as (name, text) pairs."""
        return (*self.flow.choices(), *(row for monitor in self.monitors for row in monitor.choices()))

    def finish(self, *, pictures: bool = True) -> None:
        """Write what belongs to the whole run, and draw it where pictures are wanted."""
        for monitor in self.monitors:
            monitor.finish()
        self.flow.finish(self.folder, self.name, pictures=pictures)
        if pictures:
            self._draw()
            for monitor in self.monitors:
                monitor.draw(self.name)

    def _draw(self) -> None:
        """Draw the history, and sections through a volume."""
        from fluxloom.run.pictures import draw_history, draw_section

        over, panels = self.flow.panels(self.history.names) if len(self.history.rows) > _FEW else ("", ())
        if panels:
            shown = self.history.panels(over, panels)
            self.folder.write("history.png", lambda path: draw_history(path, *shown, self.name))
        sections = self.flow.sections(self.name) if self.flow.dimension == 3 else ()
        drawn = self.fields().chosen(list(dict.fromkeys(section.field for section in sections))) if sections else {}
        whole = gathered(self.flow.context.comm, self.flow.part, drawn)
        for section in sections if self.folder.here else ():
            values = self._of_cells(whole[section.field])
            for normal in section.across:
                self.folder.write(
                    f"section_{'xyz'[normal]}.png",
                    lambda path, normal=normal, values=values, section=section: draw_section(
                        path, self.mesh(), values, normal, section.title, section.label
                    ),
                )

    def _of_cells(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return values of cells, of ones at points the means of the corners."""
        if not self.flow.points:
            return values
        (corners,) = self.mesh().cells.values()
        return values[corners].mean(axis=1)


def _attach(monitor: Monitor, run: Watched) -> None:
    """Attach a monitor to a run; an error of one that a table of a case made is one of that table."""
    try:
        monitor.attach(run)
    except (SolverError, MeshError) as error:
        if not monitor.table:
            raise
        raise CaseError(f"{monitor.table}: {error}") from None
