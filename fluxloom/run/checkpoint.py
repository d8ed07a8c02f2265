"""``checkpoint.h5`` among the results of a run: taken behind steps, and the way on from it, in every solver."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluxloom.core.errors import CheckpointError, DeviceUnavailable, SolverError
from fluxloom.core.packages import require
from fluxloom.dsl.context import Context
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import CHECKPOINT, digests_of_inputs

if TYPE_CHECKING:
    from fluxloom.dsl.checkpoint.state import StateFile
    from fluxloom.run.start import Rebuild

__all__ = ["Every", "Resumed", "RunCheckpoint"]

_ANEW = "set checkpoint.resume = false to begin anew"
_MESH = ("case.solver", "mesh", "rotation.centre")
"""Beginnings of keys that no run changes on its way."""


@dataclass(frozen=True)
class Every:
    """When checkpoints are taken.

    Attributes
    ----------
    steps
        Between two of them.
    seconds
        Instead: seconds; with both, the first of these steps that comes so long after the last checkpoint. Without both
        there is one only where a run is interrupted or ends.
    keep
        How many are kept: ``checkpoint.h5``, and before it ``checkpoint.h5.1`` ...
    minutes
        More seconds, 60 each.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    steps: int = 0
    seconds: float = 0.0
    keep: int = 2
    minutes: float = 0.0

    def __post_init__(self) -> None:
        if not (self.steps >= 0 and self.seconds >= 0 and self.minutes >= 0 and self.keep >= 1):
            raise SolverError(f"checkpoint: numbers from 0 on are wanted, and keep = 1 at least, not {self}")

    @property
    def pause(self) -> float:
        """Seconds between two checkpoints; 0: their number does not matter."""
        return self.seconds + 60.0 * self.minutes


@dataclass(frozen=True)
class Resumed:
    """From where a run goes on.

    Attributes
    ----------
    steps
        Iterations that were done.
    time
        Of the flow; None where it has none.
    path
        The file.
    told
        What the user should know, a line each: a damaged file that was passed over, monitors that begin now.
    """

    steps: int
    time: float | None
    path: Path
    told: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What the user is told."""
        time = "" if self.time is None else f", time {self.time:.6g}"
        return (f"resumed from step {self.steps:,}{time}, {self.path}", *self.told)


class RunCheckpoint:
    """Takes checkpoints of a run, and lets it go on from the last one. On several ranks every method is collective.

    A checkpoint that cannot be written never ends the run: the one before it stays, and the user is told.

    Parameters
    ----------
    every
        When checkpoints are taken.
    case
        What the run was made of, as JSON has it; one that goes on may differ as `fluxloom.run.results.case_difference`
        says.
    run
        As it was built.
    context
        Of its loops.
    directory
        Of the results.
    also
        More that keeps numbers, by name: the log of residuals.
    tell
        Hears of a checkpoint that could not be written, a line.

    Raises
    ------
    DeviceUnavailable
        When checkpoints are asked for and h5py is not installed.
    """

    def __init__(
        self, every: Every, case: Mapping[str, Any], run: FlowRun[Any], context: Context, directory: Path,
        also: Mapping[str, Any] | None = None, tell: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        if every.steps or every.pause:
            require("h5py", "mesh", "[checkpoint]")
        self._every, self._flow, self._monitors, self._comm = every, run.flow, run.monitors, context.comm
        self._case: dict[str, Any] = json.loads(json.dumps(case, default=str))
        self.path = directory / CHECKPOINT
        self._tell = tell if tell is not None else lambda _line: None
        from fluxloom.dsl.checkpoint.memory import Memory

        self.memory = Memory(run.flow, *run.monitors, run=run, **(also or {}))
        self.run = ""
        self.inputs: Mapping[str, str] = {}
        """Digests of the files that the case names."""
        self._steps = self._saved = 0
        self._since = time.monotonic()
        self._mute = self._written = False

    # ---------------------------------------------------------------------------------------- go on
    def resume(
        self, run: str | None = None, *, allow_changes: bool = False, rebuild: Rebuild | None = None
    ) -> Resumed | None:
        """Give the run the state of the last checkpoint, if there is one; touch no file.

        Parameters
        ----------
        run
            Of which run the checkpoint has to be; None: any. That of another one is left alone, and replaced later.
        allow_changes
            Whether a checkpoint of another case on the same mesh serves too: the flow starts from its fields, at its
            time (`fluxloom.run.start`), monitors go on, and what else steps keep begins now.
        rebuild
            As `fluxloom.run.start.Start` takes it.

        Returns
        -------
        Resumed or None
            From where the run goes on; None: from its beginning.

        Raises
        ------
        CheckpointError
            When no checkpoint can be read, or it is of another case. It is of no use then.
        DeviceUnavailable
            When there is one and h5py is not installed.
        """
        paths = self._comm.broadcast(self._found())
        if not paths:
            return None
        file, told = self._opened(paths)
        if run and file.about.get("run") not in ("", run):
            file.close()
            self._tell(f"{file.path}: is of the run before this one began anew, and is not gone on from")
            return None
        from fluxloom.run.results.case_difference import case_differences, monitor_differences

        try:
            about = file.about
            if differing := case_differences(about["case"], self._case):
                self._check(file, differing, allow_changes)
                told += [f"changed: {line}" for line in differing]
            told += [f"[{key}] is not as in {file.path.name}: what is new in it begins now"
                     for key in monitor_differences(about["case"], self._case)]
            if differing:
                self._start(file.path, rebuild)
            anew = self.memory.restore(file, beside=bool(differing))
            for monitor in self._monitors if differing else ():
                monitor.changed()
            told += [f"{_name(path)} is not in {file.path.name}: it begins now" for path in anew]
        except CheckpointError as error:
            raise CheckpointError(f"{error}; {_ANEW}" if _ANEW not in str(error) else str(error)) from None
        finally:
            file.close()
        self._steps = self._saved = self._flow.steps
        self._since, self._written = time.monotonic(), file.path == self.path
        return Resumed(self._steps, about["time"], file.path, tuple(told))

    def _check(self, file: StateFile, differing: Sequence[str], allowed: bool) -> None:
        """Raise `CheckpointError` unless a run may go on from a checkpoint of a case that differs."""
        keys = "; ".join(differing)
        if not allowed:
            raise CheckpointError(
                f"{file.path}: is of another case ({keys}): go back to that case, go on with this one "
                f"(--allow-changes), choose another directory with --output, or {_ANEW}"
            )
        before = file.about.get("inputs", {})
        now = digests_of_inputs(self._case.get("mesh", {}))
        other = [line for line in differing if line.startswith(_MESH)]
        other += [f"{name}: has changed" for name, digest in now.items() if before.get(name, digest) != digest]
        if other := self._comm.broadcast(other):
            raise CheckpointError(
                f"{file.path}: is of another mesh ({'; '.join(other)}), with which no run goes on: let a new one start "
                f'from it, [initial] file = "{file.path}", with another --output'
            )

    def _start(self, path: Path, rebuild: Rebuild | None) -> None:
        """Let the flow start from the fields of a checkpoint, at its time."""
        from fluxloom.run.start import Start

        start = Start(path, self._comm, keep_time=True, case=self._case, rebuild=rebuild)
        try:
            self._flow.start_from(start)
        except SolverError as error:
            raise CheckpointError(str(error)) from None
        finally:
            start.close()

    def _found(self) -> list[Path]:
        """Return the files there are, the last one first."""
        if self._comm.rank:
            return []
        older = sorted(self.path.parent.glob(f"{CHECKPOINT}.[0-9]*"), key=lambda p: int(p.suffix[1:] or 0))
        return [path for path in (self.path, *older) if path.exists()]

    def _opened(self, paths: list[Path]) -> tuple[StateFile, list[str]]:
        """Return the last file that is whole, and what is to be said of those that are not."""
        told: list[str] = []
        from fluxloom.dsl.checkpoint.state import StateFile

        for path in paths:
            try:
                return StateFile(path, self._comm), told
            except CheckpointError as error:
                told.append(str(error))
        raise CheckpointError(f"{told[0]}; no other checkpoint is whole")

    # ----------------------------------------------------------------------------------------- take
    def due(self, steps: int) -> bool:
        """Take note that so many iterations are done in all; return whether a checkpoint is due."""
        self._steps, every = steps, self._every
        if not (every.steps or every.pause) or steps % max(1, every.steps):
            return False
        if not every.pause:
            return True
        return bool(self._comm.broadcast(time.monotonic() - self._since >= every.pause))

    def save(self) -> str:
        """Take a checkpoint now; return the name of the file, empty if it could not be written."""
        if self._saved == self._steps and self._written:
            return CHECKPOINT
        if self._mute:
            return ""
        about = {
            "case": self._case, "run": self.run, "steps": self._steps, "time": self._flow.time,
            "monitors": self.memory.monitors(), "inputs": dict(self.inputs),
        }  # fmt: skip
        try:
            from fluxloom.dsl.checkpoint.state import write_state

            write_state(self.path, self._comm, self.memory.state(), about, self._every.keep)
        except DeviceUnavailable as error:  # the same packages on every rank
            self._tell(f"no checkpoint is written: {error}")
            self._mute = True
            return ""
        except CheckpointError as error:
            self._tell(f"{error}; the run goes on, the checkpoint before is kept")
            self._since = time.monotonic()
            return ""
        self._saved, self._written, self._since = self._steps, True, time.monotonic()
        return CHECKPOINT


def _name(path: str) -> str:
    """Return the name of a monitor in words."""
    return path.rpartition("[")[2].rstrip("]") if path.endswith("]") else path.rpartition(".")[2]
