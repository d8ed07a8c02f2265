"""Runs of small cases in this process that are ended and go on: what is left in their directories, and their fields."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.cases.files.case import parse_schedule
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case, rebuilt
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain
from fluxloom.run.checkpoint import Resumed, RunCheckpoint
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder
from fluxloom_lab.problems.small.state_cases import changed

__all__ = ["Leg", "leg", "same"]


@dataclass(frozen=True)
class Leg:
    """What a run, or a part of one, has left.

    Attributes
    ----------
    fields
        Of all ranks, in global order.
    tables
        Texts of the tables in its directory; of ``residual.csv`` without the seconds.
    resumed
        From where it went on.
    iterations
        Done in all.
    told
        What the user was told.
    """

    fields: Mapping[str, npt.NDArray[Any]]
    tables: Mapping[str, str] = field(default_factory=dict)
    resumed: Resumed | None = None
    iterations: int = 0
    told: tuple[str, ...] = ()


def leg(
    text: str, directory: Path, iterations: int, changes: Mapping[str, Any] | None = None, *, killed: bool = False,
    comm: Comm | None = None, device: str = "cpu", poison: bool = False, save: bool = True, allow_changes: bool = False,
) -> Leg:  # fmt: skip
    """Run a case up to a number of iterations, going on from what is in a directory.

    Parameters
    ----------
    text
        The case, as TOML.
    changes
        As `changed` takes them.
    killed
        Whether the run ends behind the last of these iterations without being told.
    poison
        Whether everything that is no part of the state is made unusable before the state is restored.
    save
        Whether a checkpoint is taken at the end.
    allow_changes
        Whether it goes on from a checkpoint of another case.
    """
    ranks = comm if comm is not None else SelfComm()
    if ranks.rank == 0:
        directory.mkdir(parents=True, exist_ok=True)
    ranks.barrier()
    data = changed(tomllib.loads(text), changes or {})
    model, application = parse_case(Document(Path("case"), data, {}))
    grade = Schedule(deterministic=parse_schedule(model.run.schedule).deterministic)
    context = Context(device, threads=1, schedule=grade, comm=ranks, tuning=False)
    runner = application.build(model, context)
    first, told = ranks.rank == 0, list[str]()
    log = ResidualLog()
    every, case = model.checkpoint.value, model.model_dump()
    checkpoint = RunCheckpoint(every, case, runner, context, directory, {"log": log}, told.append)
    if poison:
        _poison(context, checkpoint)
    resumed = None
    if model.checkpoint.resume:
        resumed = checkpoint.resume(allow_changes=allow_changes, rebuild=lambda tables: rebuilt(tables, context))
    folder = ResultFolder(directory if first else None)
    runner.begin(folder)
    if first:
        log.begin(folder / "residual.csv")
    done = runner.flow.steps
    march(runner, iterations, log, comm=ranks, first=done, asked=True, saver=checkpoint)
    if killed:
        return Leg({}, {}, resumed, log.iterations[-1] if log.iterations else 0, tuple(told))
    if save:
        checkpoint.save()
    runner.finish(pictures=False)
    log.close()
    fields = runner.fields()
    size = runner.flow.points or runner.flow.cells
    numbers = np.arange(size) if runner.flow.part is None else runner.flow.part.numbers[: runner.flow.part.owned]
    whole: dict[str, npt.NDArray[Any]] = {}
    for places, values in ranks.allgather((numbers, dict(fields))):
        for name, found in values.items():
            whole.setdefault(name, np.empty((size, *found.shape[1:]), found.dtype))[places] = found
    ranks.barrier()
    return Leg(whole, dict(_tables(directory)), resumed, log.iterations[-1] if log.iterations else 0, tuple(told))


def _tables(directory: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(directory.glob("*.csv")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.name == "residual.csv":
            lines = [line.rpartition(",")[0] for line in lines]
        yield path.name, "\n".join(lines)


def same(one: Leg, other: Leg) -> list[str]:
    """Return what differs, bit by bit, between two runs."""
    found = [f"{n}: fields" for n in one.fields if one.fields[n].tobytes() != other.fields[n].tobytes()]
    found += [f"{n}: there" for n in set(one.tables) ^ set(other.tables)]
    return found + [f"{n}: text" for n in one.tables if one.tables[n] != other.tables.get(n)]


def _poison(context: Context, checkpoint: RunCheckpoint) -> None:
    """Change all values that loops of a step change and that are no part of the state."""
    memory = checkpoint.memory
    state = {id(dat) for dat in memory.state().dats.values()}
    loops = [loop for call in memory.calls() for loop in (call.loops if isinstance(call, Chain) else (call,))]
    for dat in {id(dat): dat for loop in loops for dat in loop.written if isinstance(dat, Dat)}.values():
        if id(dat) not in state and dat.scalar.floating:
            dat.write(np.full(dat.shape, 1234.5))
