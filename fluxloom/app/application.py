"""What the command line needs from a solver, so that ``run``, ``check``, ``tune`` ... are written once.

Another package adds a solver with an entry point in the group ``fluxloom.solvers`` whose object satisfies
`Application`; nothing here has to know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy.typing as npt

from fluxloom.app.results.folder import ResultFolder
from fluxloom.core.status import Goal
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.decompose_report import PartitionReport
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.mesh.mesh import MeshData

if TYPE_CHECKING:
    from fluxloom.app.case import CaseModel

__all__ = [
    "Aimed",
    "Application",
    "Bounded",
    "Choosing",
    "Ending",
    "Estimate",
    "Failing",
    "Nodal",
    "Picture",
    "Runner",
    "Solving",
    "Tunable",
    "Updating",
    "Writer",
]


@dataclass(frozen=True)
class Picture:
    """A picture of a field.

    Attributes
    ----------
    field
        Name of a scalar field.
    title, label
        Of the picture, and of its colour bar.
    window
        ``(x0, x1, y0, y1)``, or None for the whole mesh.
    colours
        A colour map of matplotlib.
    centre
        The value at the middle of the colour map, for maps that diverge.
    """

    field: str
    title: str
    label: str
    window: tuple[float, float, float, float] | None = None
    colours: str = "viridis"
    centre: float | None = None


@dataclass(frozen=True)
class Estimate:
    """What a case would take.

    Attributes
    ----------
    cells
        Number of cells.
    memory
        Bytes of all sets, maps and dats.
    output
        Bytes of the result files.
    rows
        More facts, as (name, text) pairs.
    """

    cells: int
    memory: int
    output: int
    rows: tuple[tuple[str, str], ...] = ()


class Runner(Protocol):
    """A case that has been built and can advance.

    On several ranks every method is collective.
    """

    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        ...

    @property
    def part(self) -> Part | None:
        """The part of the cells that this rank has; None on a rank alone."""
        ...

    @property
    def partition(self) -> PartitionReport | None:
        """How the mesh is divided among several ranks; None on a rank alone."""
        ...

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop once."""
        ...

    @property
    def chain(self) -> Chain | None:
        """The loops as one captured sequence, where there is one."""
        ...

    @property
    def pictures(self) -> Sequence[Picture]:
        """The pictures worth drawing."""
        ...

    def advance(self) -> None:
        """Run one iteration."""
        ...

    def residual(self) -> float:
        """Return the measure of convergence after the last iteration, the same on every rank."""
        ...

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return values of the cells that this rank owns, ``(n,)`` or ``(n, components)``, in local order."""
        ...

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group of this rank."""
        ...

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the results worth printing, as (name, text) pairs."""
        ...

    def mesh(self) -> MeshData:
        """Return the whole mesh, its cells in global order; not collective, wanted on rank 0 only."""
        ...

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        ...


@runtime_checkable
class Writer(Protocol):
    """A runner that writes files of its own; on several ranks both methods are collective."""

    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first iteration."""
        ...

    def finish(self, *, pictures: bool = True) -> None:
        """Write what belongs to the whole run."""
        ...


@runtime_checkable
class Ending(Protocol):
    """A runner that may be done before the last iteration."""

    @property
    def finished(self) -> bool:
        """Whether it is, the same on every rank."""
        ...


@runtime_checkable
class Solving(Protocol):
    """A runner whose steps solve systems by iterations, most of them as far as a recurrence of the residual says."""

    def check_next(self) -> None:
        """Let those of the next step be solved to the residual of the solution itself, as those of a run's last."""
        ...

    def unsolved(self) -> str:
        """Return what the residual of the last solution itself lacks, in words; empty: nothing. Collective."""
        ...


@runtime_checkable
class Aimed(Protocol):
    """A runner whose case asks for a time, or for a residual."""

    def goals(self) -> Sequence[Goal]:
        """Return what the case asks for and how far the run is; without the number of steps."""
        ...


@runtime_checkable
class Choosing(Protocol):
    """A runner that has chosen what the case file leaves open."""

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return what it has chosen, as (name, text) pairs, for ``check`` and the summary."""
        ...


@runtime_checkable
class Failing(Protocol):
    """A runner that does something about its fields when a step has failed."""

    def failed(self) -> None:
        """Let the fields show what the step has left. Collective: all ranks have met."""
        ...


@runtime_checkable
class Nodal(Protocol):
    """A runner whose fields have values at the points of the mesh, not in its cells.

    Its ``part`` is that of the points, and its fields are in their order.
    """

    @property
    def points(self) -> int:
        """Number of points, of all ranks."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A runner that says what it runs, so that it can be tuned before its first iteration."""

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of an iteration."""
        ...


@runtime_checkable
class Updating(Protocol):
    """A runner whose rate is told in million cells a second (MLUPS)."""

    @property
    def updates(self) -> int:
        """Cells that an iteration updates, of all ranks."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """A runner that says what its rate would be if the memory alone decided."""

    def bound(self, copy_gbs: float) -> Sequence[tuple[str, str]]:
        """Return rows of the summary for a copy bandwidth, that of all ranks together, in GB/s. Collective."""
        ...


class Application(Protocol):
    """A solver that case files can name.

    One that runs on several ranks has an attribute ``ranked`` that is true; its `build` is collective then, takes
    the ranks from the context, and divides the mesh as the table ``[partition]`` says. One whose `build` runs loops and
    asks for nothing they find has a ``blind`` that is true: its source can be shown where nothing runs.
    """

    @property
    def name(self) -> str:
        """As in ``[case] solver``."""
        ...

    @property
    def title(self) -> str:
        """What it computes, in a few words."""
        ...

    @property
    def model(self) -> type[CaseModel]:
        """The tables of its case files."""
        ...

    def estimate(self, case: Any) -> Estimate:
        """Return the size of a case without building it."""
        ...

    def build(self, case: Any, context: Context) -> Runner:
        """Build the mesh and every loop of a case (of this application's model) in its initial state."""
        ...
