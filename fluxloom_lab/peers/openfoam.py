"""OpenFOAM's ``icoFoam`` as a program of its own: found, run on a case, its steps timed and its velocity read."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom_lab.peers.openfoam_case import CavityCase
from fluxloom_lab.peers.programs import launched, run_program

__all__ = ["FoamFlow", "OpenFoam", "StepLog", "find_openfoam", "read_velocity"]

Array = npt.NDArray[np.float64]

_PROGRAMS = ("icoFoam", "blockMesh", "decomposePar", "reconstructPar")
_INSTALL = "install it (Debian, Ubuntu: `apt install openfoam`) or load the environment of one (its etc/bashrc)"
_FIELD = re.compile(r"internalField\s+nonuniform\s+List<vector>\s+(\d+)\s*\(")
_ITERATIONS = re.compile(r"Solving for p,.*No Iterations (\d+)")


@dataclass
class StepLog:
    """Reads what ``icoFoam`` prints, and the clock when it does.

    Attributes
    ----------
    starts
        Times at which the steps began.
    end
        When the last step was done, before its result was written.
    iterations
        Of all pressure solves.
    processes
        How many work, as it says.
    version
        Of OpenFOAM.
    """

    starts: list[float] = field(default_factory=list)
    end: float = 0.0
    iterations: int = 0
    processes: int = 0
    version: str = ""

    def line(self, text: str) -> None:
        """Take a line that was printed now."""
        if text.startswith("Time = "):
            self.starts.append(time.perf_counter())
        elif text.startswith("time step continuity errors"):
            self.end = time.perf_counter()
        elif found := _ITERATIONS.search(text):
            self.iterations += int(found[1])
        elif text.startswith("nProcs"):
            self.processes = int(text.rpartition(":")[2])
        elif text.startswith("Build"):
            self.version = text.rpartition(":")[2].strip().removeprefix("OPENFOAM=")

    def rounds(self, steps: int) -> tuple[float, ...]:
        """Return the seconds of each part of so many steps.

        Raises
        ------
        FluxloomError
            If it made no such steps.
        """
        if not self.starts or len(self.starts) % steps:
            raise FluxloomError(f"icoFoam made {len(self.starts)} steps, no multiple of {steps}")
        marks = [*self.starts[::steps], self.end]
        return tuple(b - a for a, b in pairwise(marks))


@dataclass(frozen=True)
class FoamFlow:
    """What ``icoFoam`` computed.

    Attributes
    ----------
    seconds
        Of each round.
    velocity : (n, n, 2)
        At the end, y first.
    iterations
        Of the pressure, a step.
    version
        Of OpenFOAM.
    """

    seconds: tuple[float, ...]
    velocity: Array
    iterations: float
    version: str


@dataclass(frozen=True)
class OpenFoam:
    """OpenFOAM on this machine.

    Attributes
    ----------
    programs
        Paths by name.
    variables
        Environment variables that it needs beside those there are.
    family
        Its MPI.
    """

    programs: dict[str, str]
    variables: dict[str, str]
    family: str

    def run(self, case: CavityCase, folder: Path, round_steps: int, seconds: float) -> FoamFlow:
        """Run a case in an empty folder.

        Parameters
        ----------
        round_steps
            Steps that are timed together.
        seconds
            When each program is ended.

        Raises
        ------
        FluxloomError
            If one of its programs fails, or other processes work than were asked for.
        """
        case.write(folder)
        self._call("blockMesh", folder, seconds)
        log, parallel = StepLog(), case.processes > 1
        if parallel:
            self._call("decomposePar", folder, seconds)
        self._call("icoFoam", folder, seconds, case.processes, ("-parallel",) if parallel else (), log)
        if log.processes != case.processes:
            raise FluxloomError(
                f"icoFoam ran as {log.processes} processes instead of {case.processes}: its MPI is not {self.family}; "
                "put the folder of the right mpiexec first in PATH"
            )
        if parallel:
            self._call("reconstructPar", folder, seconds, words=("-latestTime",))
        velocity = read_velocity(_latest(folder) / "U")[:, :2].reshape(case.n, case.n, 2)
        return FoamFlow(log.rounds(round_steps), velocity, log.iterations / case.steps, log.version)

    def _call(
        self, name: str, folder: Path, seconds: float, processes: int = 1, words: Sequence[str] = (),
        log: StepLog | None = None,
    ) -> None:  # fmt: skip
        command, environment = launched([self.programs[name], *words], processes, self.family)
        run_program(
            command, name=name, folder=folder, environment=environment | self.variables, seconds=seconds,
            line=log.line if log is not None else None,
        )  # fmt: skip


def find_openfoam() -> OpenFoam:
    """Return OpenFOAM: that of the environment, or that of the system.

    Raises
    ------
    DeviceUnavailable
        If one of the programs is missing; the message names the Debian package.
    """
    programs = {name: path for name in _PROGRAMS if (path := shutil.which(name))}
    missing = [name for name in _PROGRAMS if name not in programs]
    if missing:
        raise DeviceUnavailable(f"comparing with OpenFOAM needs {', '.join(missing)}, not found: {_INSTALL}")
    variables = {}
    if "WM_PROJECT_DIR" not in os.environ:  # Debian's programs find their settings by this variable only
        share = Path(programs["icoFoam"]).resolve().parent.parent / "share" / "openfoam"
        if not (share / "etc" / "controlDict").exists():
            raise DeviceUnavailable(f"OpenFOAM needs WM_PROJECT_DIR, its folder with etc/controlDict: {_INSTALL}")
        variables["WM_PROJECT_DIR"] = str(share)
    library = os.environ.get("WM_MPLIB", "")
    family = "MPICH" if any(word in library for word in ("MPICH", "INTELMPI", "MVAPICH")) else "Open MPI"
    return OpenFoam(programs, variables, family)


def _latest(folder: Path) -> Path:
    """Return the folder of the last time."""
    times = [path for path in folder.iterdir() if path.is_dir() and re.fullmatch(r"[\d.e+-]+", path.name)]
    return max(times, key=lambda path: float(path.name))


def read_velocity(path: Path) -> Array:
    """Return the vectors in the cells of a field that OpenFOAM wrote as text, ``(cells, 3)``.

    Raises
    ------
    FluxloomError
        If the file has no vectors.
    """
    text = path.read_text(encoding="ascii")
    found = _FIELD.search(text)
    if found is None:
        raise FluxloomError(f"{path}: no field of vectors")
    count = int(found[1])
    words = text[found.end() :].replace("(", " ").replace(")", " ").split(None, 3 * count)[: 3 * count]
    try:
        return np.array(words, dtype=np.float64).reshape(count, 3)
    except ValueError as error:
        raise FluxloomError(f"{path}: {count} vectors are announced, but not there") from error
