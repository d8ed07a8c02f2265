"""What looks at a flow while it runs: probes, forces, averages, files of fields are monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Protocol

import numpy.typing as npt

from fluxloom.core.status import Goal
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.fields import Fields
from fluxloom.run.flow import Flow
from fluxloom.run.results.results import ResultFolder

__all__ = ["Monitor", "Table", "Watched"]


class Table(Protocol):
    """The history, as other monitors see it.

    Attributes
    ----------
    every
        Steps between two lines; 0: there are none.
    names, rows
        Of the columns, and the lines so far.
    at
        Step and time of the flow of the last line.
    """

    every: int
    names: tuple[str, ...]
    rows: list[tuple[float, ...]]
    at: tuple[int, float]

    def collect(self) -> None:
        """Write the line whose numbers the flow has kept, if there is one. Collective."""
        ...


class Watched(Protocol):
    """A run, as its monitors see it."""

    name: str

    @property
    def flow(self) -> Flow:
        """What is run."""
        ...

    @property
    def history(self) -> Table:
        """Numbers of the flow over time."""
        ...

    @property
    def monitors(self) -> Sequence[Monitor]:
        """All that look at it, the history last."""
        ...

    @property
    def looks_back(self) -> bool:
        """Whether all columns can be those of a step before: within `Flow.looking_back`."""
        ...

    def mesh(self) -> MeshData:
        """Return the whole mesh; on rank 0 alone."""
        ...

    def fields(self) -> Fields:
        """Return fields of the owned cells or points, those of monitors too. Asking for values is collective."""
        ...

    def columns(self) -> Mapping[str, float]:
        """Return the numbers of now, of the flow and its monitors. Collective."""
        ...


class Monitor:
    """Looks at a flow and adds nothing; what looks at something overrides what it needs.

    It is made without a flow, by a script or from a case, and is attached to one when the run is made. On several
    ranks all methods are collective; files are written by rank 0. What one keeps of steps before, and should have in a
    checkpoint, its class names as ``remembers`` (`fluxloom.dsl.checkpoint.memory`).
    """

    monitor = True
    looks_back = False
    """Whether its columns are of the step at which the flow took its numbers, within `Flow.looking_back`."""

    name = ""
    """By which a checkpoint knows it; those without one are told apart by their number."""

    kind = ""
    """What it looks at, for those that ask for all of a kind: ``"forces"``."""

    table = ""
    """Of the case file that it is of; what it does not find is told with it."""

    behind_history = False
    """Whether it looks at the lines of the history: it hears of a step when the line of that step is there."""

    folder = ResultFolder(None)
    """Where files go, from `begin` on."""

    def attach(self, run: Watched) -> None:
        """Find what is looked at, before anything is written.

        Raises
        ------
        SolverError, MeshError
            If the flow has no such thing: names what it has.
        """

    def changed(self) -> None:
        """Hear that a run goes on with another case: what was seen of the flow before is no goal of this one."""

    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first step."""
        self.folder = folder

    def next_time(self) -> float:
        """Return the time of the flow that a step should hit next; infinite: none. Steps of given length pass it."""
        return inf

    def stepped(self) -> None:
        """Take note of a step."""

    def reached(self) -> None:
        """Take note of a time that a monitor wanted, within a step that is an interval; `stepped` comes at its end."""

    def goals(self) -> Sequence[Goal]:
        """Return what the run aims at by it, and how far it is: the run ends when one is met."""
        return ()

    def columns(self) -> dict[str, float]:
        """Return columns of ``history.csv``, always the same ones."""
        return {}

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return fields of the owned cells, ``(cells,)`` each; `Fields` where they have units or are found later."""
        return {}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return rows of the summary."""
        return ()

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return what was chosen that the case leaves open, for ``check``."""
        return ()

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write what belongs to the whole run."""

    def draw(self, name: str) -> None:
        """Draw what is worth it, of a case of a name; behind `finish`."""
