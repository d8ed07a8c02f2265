"""Case files: TOML in, one checked and frozen model out, all mistakes reported at once.

A case file has the tables ``[case]``, ``[run]`` and ``[output]``, described here, and those of its solver
(``[mesh]``, ``[flow]`` ...), described by the model which the solver's `Application` names.
"""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from fluxloom.cases.files.errors import Document, describe_errors
from fluxloom.cases.files.strategy_tables import Table, strategy_table
from fluxloom.core.errors import CaseError, FluxloomError, did_you_mean
from fluxloom.dsl.declare.runtime import device_registry
from fluxloom.dsl.declare.schedule import RACE_STRATEGIES, Schedule
from fluxloom.machine.ranks import parse
from fluxloom.run.checkpoint import Every
from fluxloom.run.watch import GuardLimits

__all__ = [
    "CaseModel", "CaseTable", "CheckpointTable", "GuardTable", "OutputFormat", "OutputTable", "PartitionTable",
    "RunTable", "parse_schedule", "parse_shares", "schedule_text",
]  # fmt: skip

_WORDS = {"true": True, "false": False, "none": None}


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a text describes.

    Parameters
    ----------
    text
        ``"auto"``, or a race strategy, or ``key=value`` pairs of `Schedule`, separated by commas:
        ``"gather, block=256, lanes=8"``, ``"deterministic=plan"``.

    Raises
    ------
    CaseError
        For unknown keys and values that are not numbers where numbers belong.
    PlanError
        For strategies and values that `Schedule` refuses.
    """
    known = [f.name for f in fields(Schedule)]
    values: dict[str, Any] = {}
    for number, part in enumerate(item.strip() for item in text.split(",")):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            if number or not part:
                raise CaseError(f"schedule {text!r}: write a strategy first, then key=value pairs, comma-separated")
            key, value = "strategy", "" if part == "auto" else part
            if value and value not in RACE_STRATEGIES:
                allowed = ("auto", *RACE_STRATEGIES)
                hint = did_you_mean(value, allowed)
                raise CaseError(f"unknown schedule {value!r}{hint} (allowed: {', '.join(allowed)})")
            if not value:
                continue
        if key not in known:
            hint = did_you_mean(key, known)
            raise CaseError(f"schedule {text!r}: no option {key!r}{hint} (allowed: {', '.join(known)})")
        values[key] = _value(text, key, value)
    return Schedule(**values)


def _value(text: str, key: str, value: str) -> Any:
    """Return the typed value of an option."""
    if value in _WORDS:
        return _WORDS[value]
    default = getattr(Schedule(), key)
    if isinstance(default, int) and not isinstance(default, bool):
        try:
            return int(value)
        except ValueError:
            raise CaseError(f"schedule {text!r}: {key} must be a whole number, got {value!r}") from None
    return value


def schedule_text(schedule: Schedule) -> str:
    """Return a schedule as `parse_schedule` reads it."""
    parts = [schedule.strategy] if schedule.strategy else []
    for item in fields(Schedule):
        value = getattr(schedule, item.name)
        if item.name != "strategy" and value != item.default:
            parts.append(f"{item.name}={str(value).lower()}")
    return ", ".join(parts) or "auto"


_LEAST_SHARE = 1e-6  # of the largest; METIS cannot aim at much less


def _known_device(name: Any) -> Any:
    known = device_registry().names()
    if isinstance(name, str) and name.partition(":")[0] not in known:
        raise ValueError(f"unknown device {_listed(name, known)}")
    return name


def _known_schedule(text: Any) -> Any:
    if isinstance(text, str):
        try:
            parse_schedule(text)
        except FluxloomError as error:
            raise ValueError(str(error)) from None
    return text


class _OutputFormats:
    """A check of pydantic: a text is ``"auto"``, ``"none"`` or a format of results."""

    @property
    def known(self) -> list[str]:
        """The names that there are."""
        from fluxloom.mesh.io.formats import output_formats

        return ["auto", *output_formats(), "none"]

    def __call__(self, name: Any) -> Any:
        """Return a text that is one."""
        if not isinstance(name, str) or name in ("auto", "none"):
            return name
        if ":" not in name and name not in self.known:
            raise ValueError(f"unknown format {_listed(name, self.known)}")
        from fluxloom.mesh.io.formats import output_format

        try:
            output_format(name)
        except FluxloomError as error:
            raise ValueError(str(error)) from None
        return name


OutputFormat = Annotated[str, BeforeValidator(_OutputFormats())]
"""The type of a key that chooses in which format results are written."""


def _known_ranks(text: Any) -> Any:
    if isinstance(text, str) and text:
        try:
            parse(text)
        except FluxloomError as error:
            raise ValueError(str(error)) from None
    return text


def _known_shares(value: Any) -> Any:
    words = ("auto", "measured")
    if isinstance(value, str):
        if value not in words:
            hint = did_you_mean(value, words)
            raise ValueError(f"unknown {value!r}{hint} (allowed: auto, measured, or a list of numbers)")
        return value
    numbers = value if isinstance(value, list) else []
    if not numbers or any(isinstance(v, bool) or not isinstance(v, int | float) for v in numbers):
        raise ValueError("the shares of the ranks must be auto, measured, or numbers, one a rank, as in [3, 1]")
    if not all(isfinite(v) and v > 0 for v in numbers):
        raise ValueError("the shares of the ranks must be positive numbers, one a rank, as in [3, 1]")
    if min(numbers) < _LEAST_SHARE * max(numbers):
        raise ValueError(f"a share is less than {_LEAST_SHARE:g} of the largest: leave that rank out")
    return [float(v) for v in numbers]


def parse_shares(text: str) -> str | list[float]:
    """Return the shares that a text describes: ``"auto"``, ``"measured"``, or numbers like ``"3,1"``.

    Raises
    ------
    CaseError
        For anything else.
    """
    words = [word.strip() for word in text.split(",")]
    try:
        if text in ("auto", "measured"):
            return text
        return _known_shares([float(word) for word in words] if all(map(_is_number, words)) else text)
    except ValueError as error:
        raise CaseError(f"shares {text!r}: {error}") from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _listed(name: str, known: list[str]) -> str:
    return f"{name!r}{did_you_mean(name, known)} (allowed: {', '.join(known)})"


class CaseTable(Table):
    """``[case]``: what is computed.

    Attributes
    ----------
    name
        Name of the case, also of its default output directory.
    solver
        Name of the solver; it decides which other tables there are.
    """

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[\w][\w .+-]*$")]
    solver: str


class RunTable(Table):
    """``[run]``: how long, and on what.

    Attributes
    ----------
    iterations
        Iterations (time steps) to run, at most; 0: until ``time.end``, which is needed then.
    report_every
        Iterations between two lines of progress.
    device
        ``"cpu"``, ``"reference"``, ``"cuda"`` or ``"opencl"``; of several GPUs ``"cuda:1"``, of several OpenCL
        devices ``"opencl:1"`` or a part of its name, ``"opencl:nvidia"``.
    threads
        Threads of the CPU device; 0: all cores of the process.
    schedule
        ``"auto"``, or a race strategy with options: ``"block_colour, block=2048, lanes=8"``; solvers that choose
        those by themselves take ``"deterministic=plan"`` and ``"deterministic=global"`` alone.
    fused
        Whether loops may be fused.
    ranks
        What each rank computes on, which are then started: ``"cuda:0, cpu:14"``, ``"cpu:1*4"``; empty: one rank,
        or those of mpiexec.
    tune
        ``"startup"``: ragged loops and sums are timed on the mesh of the run before its first step, in all ways that
        are right for them, and run the fastest way; the tuning file keeps the winners.
    transport
        How messages between GPUs travel: ``"host"``, ``"mpi"``, ``"nccl"``, ``"peer"``, or ``"auto"``: as is fastest.
    overlap
        Whether loops run while messages travel; without, a run shows what that gains.
    """

    iterations: Annotated[int, Field(ge=0, le=10**9)] = 0
    report_every: Annotated[int, Field(ge=1, le=10**9)] = 100
    device: Annotated[str, BeforeValidator(_known_device)] = "cpu"
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    schedule: Annotated[str, BeforeValidator(_known_schedule)] = "auto"
    fused: bool = True
    ranks: Annotated[str, BeforeValidator(_known_ranks)] = ""
    tune: Literal["off", "startup"] = "off"
    transport: Literal["auto", "host", "mpi", "nccl", "peer"] = "auto"
    overlap: bool = True

    def leave_choices(self) -> None:
        """Raise `ValueError` where a case chooses how loops run, for a solver that does; it may say how repeatable."""
        wanted = parse_schedule(self.schedule)
        chosen = ["schedule"] if wanted != Schedule(deterministic=wanted.deterministic) else []
        for key in [*chosen, *self.changed(("fused",))]:
            rest = ", but for deterministic=..." if key == "schedule" else ""
            raise ValueError(f"run.{key}: this solver chooses how its loops run by itself{rest}; leave the key out")


class PartitionTable(Table):
    """``[partition]``: how the mesh is divided among several ranks.

    Attributes
    ----------
    method
        ``"kway"`` (METIS), ``"rcb"`` (recursive bisection), ``"block"`` (in the order of the numbers), or ``"auto"``.
    shares
        What each rank gets of the cells: ``"auto"``: the same, ``"measured"``: as fast as it is in a short
        trial, or a list of numbers, one a rank, which need not add up to 1.
    """

    method: Literal["auto", "kway", "rcb", "block"] = "auto"
    shares: Annotated[str | list[float], BeforeValidator(_known_shares)] = "auto"

    @property
    def given(self) -> list[float] | None:
        """The shares, where they are given as numbers."""
        return None if isinstance(self.shares, str) else list(self.shares)


class OutputTable(Table):
    """``[output]``: what is written.

    Attributes
    ----------
    directory
        Where, relative to the working directory; empty: ``results/`` and the case's name.
    fields
        Of the final fields and of snapshots: names, and formulas of fields with a name of their own,
        ``["u", "q_criterion", "cp = (p - 101325) / 500"]``; empty: those of the solver.
    format
        Of the final fields: ``"auto"`` is VTKHDF where h5py is installed, else VTU; also a format of another package,
        by its name or its place.
    picture
        Whether pictures of the fields and of the residual are drawn.
    residual
        Whether ``residual.csv`` is written.
    """

    directory: str = ""
    renamed = MappingProxyType({"vtk": "format"})
    fields: list[str] = Field(default=[])
    format: OutputFormat = "auto"
    picture: bool = True
    residual: bool = True

    @property
    def writes_fields(self) -> bool:
        """Whether fields are written, which need room on the disk."""
        return self.format != "none"


class CheckpointTable(Table):
    """``[checkpoint]``: ``checkpoint.h5`` among the results, from which the next run goes on.

    Attributes
    ----------
    every
        Iterations between two checkpoints.
    seconds
        Instead: seconds; with both, the first of these iterations that comes so long after the last checkpoint.
        Without both there is one only where a run is interrupted or ends.
    keep
        How many are kept: ``checkpoint.h5``, and before it ``checkpoint.h5.1`` ...
    resume
        Whether to go on from the file where there is one; otherwise the run begins anew.
    """

    every: Annotated[int, Field(ge=0, le=10**9)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    keep: Annotated[int, Field(ge=1, le=100)] = 2
    resume: bool = True

    @property
    def value(self) -> Every:
        """What the table says, but for ``resume``."""
        return Every(self.every, self.seconds, self.keep)


class GuardTable(strategy_table(GuardLimits)):
    """``[guards]``: what ends a run as diverged; the names and defaults of `fluxloom.run.watch.GuardLimits`."""


def _as_written(value: Any) -> Any:
    """Return a value with lists for tuples, as a file has them."""
    if isinstance(value, dict):
        return {key: _as_written(item) for key, item in value.items()}
    return [_as_written(item) for item in value] if isinstance(value, list | tuple) else value


class CaseModel(Table):
    """What every case file has; solvers add their own tables."""

    case: CaseTable
    run: RunTable = RunTable()
    output: OutputTable = OutputTable()
    partition: PartitionTable = PartitionTable()
    checkpoint: CheckpointTable = CheckpointTable()
    guards: GuardTable = GuardTable()

    @property
    def end(self) -> float | None:
        """The time at which the run ends; 0: there is none; None: the solver has no such key."""
        return getattr(getattr(self, "time", None), "end", None)

    @model_validator(mode="after")
    def _ends(self) -> CaseModel:
        if not (self.run.iterations or self.end):
            other = "" if self.end is None else ", or time.end, the time at which it ends"
            raise ValueError(f"there is no end: give run.iterations, the steps of the run{other}")
        return self

    @property
    def divided(self) -> str:
        """What makes results depend on the ranks whatever ``run.schedule`` says, in words; empty: nothing does."""
        return ""

    @property
    def directory(self) -> Path:
        """Where results go."""
        return Path(self.output.directory or Path("results") / self.case.name)

    def with_run(self, **changes: Any) -> CaseModel:
        """Return the case with other values in ``[run]`` (None: as it is), checked like the file's."""
        given = {name: value for name, value in changes.items() if value is not None}
        data = _as_written(self.model_dump())
        data["run"] |= given
        try:
            return type(self).model_validate(data)
        except ValidationError as error:
            document = Document(Path("command line"), data, {})
            raise CaseError(describe_errors(document, type(self), error)) from None
