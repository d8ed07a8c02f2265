"""What the command line needs from a solver, so that ``run``, ``check``, ``tune`` ... are written once.

Another package adds a solver with an entry point in the group ``fluxloom.solvers`` whose object satisfies
`Application`; nothing here has to know it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fluxloom.cases.files.case import CaseModel
from fluxloom.core.activity import activity
from fluxloom.dsl.context import Context
from fluxloom.run.flow_run import FlowRun

if TYPE_CHECKING:
    from fluxloom.cases.files.case import CaseModel

__all__ = ["Application", "Estimate", "built", "equal_shares", "measured_shares"]


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

    One that runs on several ranks has an attribute ``distributed`` that is true; its `build` is collective then, takes
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


_WARM, _STEPS = 3, 8


def built(application: Application, case: CaseModel, context: Context) -> FlowRun[Any]:
    """Return what a case describes, ready to be run, the ranks with shares that are measured where it says so.

    Collective.
    """
    if case.partition.shares != "measured" or context.comm.size == 1:
        return application.build(case, context)

    def trial(where: Context, equal: Sequence[float]) -> Callable[[], object]:
        """Return what makes a step of the case with equal shares."""
        run = application.build(case, where, equal)
        return lambda: run.flow.trial_step(run.until)

    return application.build(case, context, measured_shares(context, trial))


def equal_shares(ranks: int) -> tuple[float, ...]:
    """Return the same share for every rank."""
    return (1.0 / ranks,) * ranks


def measured_shares(
    context: Context, build: Callable[[Context, Sequence[float]], Callable[[], object]]
) -> tuple[float, ...]:
    """Return what each rank should get of the cells so that all finish at the same time. Collective.

    The case is built with equal shares and advanced by a few iterations on all ranks at the same time; a rank's time
    without that for which it waited for others, by the cells it had, is its speed.

    Parameters
    ----------
    context
        Says the device and the ranks. The trial has a context of its own.
    build
        Builds the case in a context, for given shares, and returns what makes a step of it.
    """
    comm = context.comm
    if comm.size == 1:
        return (1.0,)
    from fluxloom.dsl.run.hybrid import DistributedProgram, TimedComm
    from fluxloom.perf.shares import shares_from_weights, weights_from_run

    timed = TimedComm(comm)
    trial = Context(
        context.device, schedule=context.schedule, tuning=context.tuning, comm=timed, transport=context.transport,
        overlap=context.overlap,
    )  # fmt: skip
    equal = equal_shares(comm.size)
    with activity("measuring the speed of the ranks"):
        step = build(trial, equal)
        for _ in range(_WARM):
            step()
        timed.settle = trial.synchronize
        busy = DistributedProgram(timed, step, _STEPS).measure().busy
    seconds = comm.reduce(np.array(busy), "max")
    return shares_from_weights(weights_from_run(equal, [max(float(s), 1e-9) for s in seconds]))
