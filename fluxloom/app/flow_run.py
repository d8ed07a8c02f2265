"""A case that has been built: its flow, what looks at it, and what is written and drawn of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.app.files import fields_name, write_fields
from fluxloom.app.flow import Flow, Picture, Until
from fluxloom.app.gathering import gathered
from fluxloom.app.history import History
from fluxloom.app.observer import Observer
from fluxloom.app.results.folder import ResultFolder
from fluxloom.core.status import Goal
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.mesh.mesh import MeshData

__all__ = ["FlowRun"]

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
    mesh
        Returns the whole mesh; called on rank 0 alone, once.
    observers
        What looks at it.
    partition
        How the mesh is divided; None on a rank alone.
    history
        Steps between two lines of ``history.csv``, 0: no such file; or what keeps it.
    snapshots
        Steps between two files of the fields; 0: there are none before the end.
    """

    remembers = ("_residual",)

    def __init__(
        self, flow: F, name: str, until: Until, mesh: Callable[[], MeshData], observers: Sequence[Observer] = (), *,
        partition: PartitionReport | None = None, history: int | History = 0, snapshots: int = 0,
    ) -> None:  # fmt: skip
        self.flow, self.name, self.until, self.partition = flow, name, until, partition
        self.observers = list(observers)
        self.history = history if isinstance(history, History) else History(history)
        self.snapshots, self.folder = snapshots, ResultFolder(None)
        self._make, self._mesh = mesh, None
        self._residual = float("nan")

    def _columns(self) -> dict[str, float]:
        found = dict(self.flow.columns(self.history))
        for observer in self.observers:
            found |= observer.columns()
        return found

    # ----------------------------------------------------------------------------------------- advance
    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first step."""
        self.folder = folder
        for observer in self.observers:
            observer.begin(folder)
        self.history.begin(folder, self._columns)

    def advance(self) -> None:
        """Advance by a step, and look at it.

        Raises
        ------
        SolverError
            If the step cannot be made, or the state behind it is lost.
        """
        self._residual = float("nan")  # of a step that fails
        self._residual = self.flow.advance(self.until)
        for observer in self.observers:
            observer.stepped()
        self.history.stepped(self.flow.steps)
        if self.snapshots and self.flow.steps % self.snapshots == 0:
            self._snapshot()

    def _snapshot(self) -> None:
        """Write the fields as they are now."""
        steps, nodal = self.flow.steps, bool(self.flow.points)
        fields = gathered(self.flow.context.comm, self.flow.part, self.fields())
        time = float(steps) if self.flow.time is None else self.flow.time  # of a steady flow the steps
        name = fields_name("auto", f"snapshot_{steps:06d}")
        self.folder.write_at(
            time, name, lambda path: write_fields(path, self.mesh(), fields, nodal=nodal, time=time)
        )  # fmt: skip

    def residual(self) -> float:
        """Return the residual of the last step; NaN before the first."""
        return self._residual

    def goals(self) -> Sequence[Goal]:
        """Return what the run aims at beside its number of steps, and how far it is."""
        return self.flow.goals(self.until)

    @property
    def finished(self) -> bool:
        """Whether one of the goals is met."""
        return any(goal.met for goal in self.goals())

    # ------------------------------------------------------------------------------------------ results
    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return values of the elements that this rank owns, those of observers too."""
        found = dict(self.flow.fields())
        for observer in self.observers:
            found |= observer.fields()
        return found

    def mesh(self) -> MeshData:
        """Return the whole mesh, its cells in global order; on several ranks it is made anew, once, and kept."""
        if self._mesh is None:
            self._mesh = self._make()
        return self._mesh

    @property
    def pictures(self) -> Sequence[Picture]:
        """The pictures of a plane flow that are worth drawing."""
        return self.flow.pictures(self.name) if self.flow.dimension == 2 else ()

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the results worth printing, as (name, text) pairs."""
        return (*self.flow.summary(self.until), *(row for observer in self.observers for row in observer.summary()))

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return what was chosen that the case leaves open, as (name, text) pairs."""
        return (*self.flow.choices(), *(row for observer in self.observers for row in observer.choices()))

    def finish(self, *, pictures: bool = True) -> None:
        """Write what belongs to the whole run, and draw it where pictures are wanted."""
        self.history.finish()
        for observer in self.observers:
            observer.finish()
        self.flow.finish(self.folder, self.name, pictures=pictures)
        if pictures:
            self._draw()
            for observer in self.observers:
                observer.draw(self.name)

    def _draw(self) -> None:
        """Draw the history, and sections through a volume."""
        from fluxloom.app.pictures import draw_history, draw_section

        over, panels = self.flow.panels(self.history) if len(self.history.rows) > _FEW else ("", ())
        if panels:
            shown = self.history.panels(over, panels)
            self.folder.write("history.png", lambda path: draw_history(path, *shown, self.name))
        sections = self.flow.sections(self.name) if self.flow.dimension == 3 else ()
        whole = gathered(self.flow.context.comm, self.flow.part, self.fields()) if sections else {}
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
