"""What the command line needs from a solver, so that ``run``, ``check``, ``tune`` ... are written once.

Another package adds a solver with an entry point in the group ``fluxloom.solvers`` whose object satisfies
`Application`; nothing here has to know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fluxloom.dsl.context import Context
from fluxloom.run.flow_run import FlowRun

if TYPE_CHECKING:
    from fluxloom.app.case import CaseModel

__all__ = ["Application", "Estimate"]


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

    def build(self, case: Any, context: Context, shares: Sequence[float] | None = None) -> FlowRun[Any]:
        """Build the mesh and every loop of a case (of this application's model) in its initial state.

        ``shares`` are those of the ranks; by default what ``[partition]`` gives.
        """
        ...
