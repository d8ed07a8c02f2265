"""Runs of small cases as processes of their own, which are ended and go on, and what they leave."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import CheckpointError, CommError
from fluxloom.dsl.checkpoint.state import StateFile
from fluxloom.machine.ranks import find_starter
from fluxloom.mesh import read_fields
from fluxloom.run.results.image_data import read_image
from fluxloom_lab.attack.frame import processes_of
from fluxloom_lab.attack.trapped import Trap
from fluxloom_lab.problems.small.state_cases import CASES, changed

__all__ = ["Place", "Process", "Results", "SmallCase", "no_ranks", "saved_steps"]

_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 60.0
_FLAGS = "-O0"
"""Of the compiler, unless others are given: what is attacked is not the code."""
_RUN = "FLUXLOOM_ATTACKED_RUN"
"""Variable of the environment by which the processes of a run are known."""


@dataclass(frozen=True)
class Place:
    """Where a case runs: ranks, and the device of all of them."""

    ranks: int = 1
    device: str = "cpu"

    def __str__(self) -> str:
        return f"{self.ranks} x {self.device}"

    @property
    def words(self) -> list[str]:
        """Options of ``fluxloom run``."""
        if self.ranks == 1:
            return ["--device", self.device, "--threads", "1"]
        return ["--ranks", f"{self.device}:{1 if self.device == 'cpu' else 0}*{self.ranks}"]


@dataclass
class Process:
    """A run that was started.

    Attributes
    ----------
    process
        Its first process.
    name
        By which all of its processes are known.
    output
        What it prints.
    """

    process: subprocess.Popen[bytes]
    name: str
    output: Path
    begin: float = field(default_factory=time.monotonic)

    @property
    def said(self) -> str:
        """What it has printed."""
        return self.output.read_text(errors="replace")

    @property
    def over(self) -> bool:
        """Whether the first process has ended."""
        return self.process.poll() is not None

    def members(self) -> list[int]:
        """Return all processes of the run that have not ended."""
        return [number for number, _ in processes_of(_RUN, self.name)]

    def ranks(self) -> list[int]:
        """Return the processes that are its ranks; the only process if there is no launcher."""
        found = [number for number, command in processes_of(_RUN, self.name) if " -m fluxloom" in command]
        return [number for number in found if number != self.process.pid] or found

    def kill(self) -> None:
        """End all processes of the run without a word."""
        for number in [*self.members(), self.process.pid]:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def wait(self, seconds: float = _PATIENCE) -> int:
        """Return the exit status when all of its processes have ended.

        Raises
        ------
        TimeoutError
            When they have not after so many seconds. They are killed.
        """
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            left = ", ".join(command for _, command in processes_of(_RUN, self.name))
            self.kill()
            raise TimeoutError(f"a run has not ended after {seconds:g} s ({left}): {self.said[-400:]}") from None
        end = time.monotonic() + 10.0
        while (left := self.members()) and time.monotonic() < end:
            time.sleep(0.02)
        if left:
            self.kill()
            raise TimeoutError(f"{len(left)} processes of a run with status {status} are left")
        return status


@dataclass(frozen=True)
class SmallCase:
    """A case of `fluxloom_lab.problems.small`, written into the working directory.

    Attributes
    ----------
    name
        Of the case.
    changes
        Of its values, ``"table.key"`` to a value.
    words
        More options of ``fluxloom run``.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    words: Sequence[str] = ()

    def __post_init__(self) -> None:
        text, changes, _ = CASES[self.name]
        self.file.write_text(_as_toml(changed(tomllib.loads(text), {**changes, **self.changes})))

    @property
    def file(self) -> Path:
        """The case file."""
        return Path("case.toml")

    def command(self, out: str) -> list[str]:
        """Return the words of the command line that run the case in a folder."""
        return ["run", str(self.file), "-o", out, "--no-picture", *self.words]

    def start(self, out: str, place: Place, *, trap: Trap | None = None, cache: str = "") -> Process:
        """Start a run of the case in a folder; compiled code goes to that of the user, or another one."""
        name = f"{os.environ.get('FLUXLOOM_TRIAL', '')}-{time.monotonic_ns()}"
        os.environ.setdefault("FLUXLOOM_CFLAGS", _FLAGS)  # of this process too, where runs go on in it
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
                     "FLUXLOOM_TUNING": str(Path("tuning.json").resolve()), _RUN: name}  # fmt: skip
        variables |= ({"FLUXLOOM_CACHE": cache} if cache else {})
        command = self.command(out)
        program = [sys.executable, "-m", "fluxloom"]
        if trap is not None:
            variables |= trap.environment()
            program[-1] = "fluxloom_lab.attack.trapped"
        if trap is not None and place.ranks > 1:
            starter = find_starter()
            variables |= starter.environment() | trap.environment() | {_RUN: name}
            whole = [*starter.command(place.ranks, program[1:]), *command, "--threads", "1"]
        else:
            whole = [*program, *command, *place.words]
        output = Path(f"output-{name.rpartition('-')[2]}.txt")
        with output.open("wb") as file:
            process = subprocess.Popen(
                whole, env=variables, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )  # fmt: skip
        return Process(process, name, output)


def _as_toml(case: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_value(table)}\n" for name, table in case.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def no_ranks() -> str:
    """Return why several ranks cannot be started here; empty: they can."""
    try:
        find_starter()
    except CommError as error:
        return str(error)
    return ""


def saved_steps(out: Path) -> int:
    """Return the steps of the last whole checkpoint in a folder; -1: there is none."""
    for path in (out / "checkpoint.h5", out / "checkpoint.h5.1"):
        try:
            file = StateFile(path, SelfComm())
        except CheckpointError:
            continue
        file.close()
        return int(file.about["steps"])
    return -1


@dataclass(frozen=True)
class Results:
    """What a run left in its folder.

    Attributes
    ----------
    names
        Of the files.
    record
        What ``run.json`` says of the end.
    tables
        Lines of the tables, without the seconds.
    fields
        At the end.
    """

    names: frozenset[str]
    record: Mapping[str, Any]
    tables: Mapping[str, Sequence[Sequence[str]]]
    fields: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def read(cls, out: Path) -> Results:
        """Read a folder."""
        record = json.loads((out / "run.json").read_text())
        tables = {path.name: list(_table(path)) for path in sorted(out.glob("*.csv"))}
        fields: dict[str, npt.NDArray[Any]] = {}
        for path in out.glob("final.*"):
            fields |= _fields(path)
        end = {key: record.get(key) for key in ("status", "iterations", "reason", "lost", "time")}
        return cls(frozenset(path.name for path in out.iterdir()), end, tables, fields)

    def differences(self, other: Results, bound: float = 0.0) -> Iterator[str]:
        """Yield what differs in another run of the same case; fields by at most a bound, 0: bit by bit."""
        for name in sorted(self.names ^ other.names):
            yield f"the file {name} is {'missing' if name in self.names else 'left over'}"
        for key, value in self.record.items():
            if key in ("status", "iterations", "lost") and other.record[key] != value:
                yield f"{key} is {other.record[key]!r}, not {value!r}"
        if set(self.fields) != set(other.fields):
            yield f"there are other fields: {sorted(set(self.fields) ^ set(other.fields))}"
            return
        for name, lines in self.tables.items():
            theirs = other.tables.get(name, ())
            if len(theirs) != len(lines):
                yield f"{name} has {len(theirs)} lines, not {len(lines)}"
            elif not bound and theirs != lines:
                place = next(k for k, (one, two) in enumerate(zip(lines, theirs, strict=True)) if one != two)
                yield f"{name} differs in line {place + 1}: {theirs[place]}, not {lines[place]}"
        yield from self._fields(other, bound)

    def _fields(self, other: Results, bound: float) -> Iterator[str]:
        for name, values in self.fields.items():
            theirs = other.fields[name]
            if not bound:
                if values.tobytes() != theirs.tobytes():
                    yield f"{name} differs, by {np.abs(values - theirs).max():.1e}"
                continue
            if name.endswith(("_mean", "_rms", " uv", " uw", " vw")):  # averages over the steps towards a steady flow
                continue
            scale = float(np.abs(values).max(initial=0.0)) or 1.0
            if name.split()[-1] in ("u", "v", "w"):
                scale = max(float(np.abs(found).max(initial=0.0)) for key, found in self.fields.items()
                            if key.split()[-1] in ("u", "v", "w", "velocity", "speed"))  # fmt: skip
            if (apart := float(np.abs(values - theirs).max(initial=0.0)) / scale) > bound:
                yield f"{name} differs by {apart:.1e} of its largest value, allowed {bound:.0e}"


def _fields(path: Path) -> dict[str, npt.NDArray[Any]]:
    if path.suffix == ".vti":
        return read_image(path)[1]
    found = read_fields(path)
    return {f"{kind} {name}": np.asarray(values) for kind in ("cell_data", "point_data")
            for name, values in (getattr(found, kind) or {}).items()}  # fmt: skip


def _table(path: Path) -> Iterator[list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    left = {place for place, word in enumerate(rows[0]) if word == "seconds"} if rows else set()
    for row in rows:
        yield [word for place, word in enumerate(row) if place not in left]
