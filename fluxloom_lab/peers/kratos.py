"""Kratos Multiphysics as a program of its own: its interpreter found, a case run, its steps timed, its result read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.comm.launchers import without_launcher
from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom_lab.peers.kratos_case import MODEL, KratosCase
from fluxloom_lab.peers.programs import run_program

__all__ = ["VARIABLE", "Kratos", "KratosFlow", "StepLog", "find_kratos", "read_result"]

Array = npt.NDArray[np.float64]

VARIABLE = "FLUXLOOM_KRATOS_PYTHON"
"""Environment variable with the interpreter that has Kratos."""

_PEER = Path(__file__).with_name("kratos_peer.py")
_INSTALL = (
    "`pip install KratosMultiphysics KratosFluidDynamicsApplication` into an environment, and name its interpreter "
    f"with --python or {VARIABLE}"
)
_LOOK = """
from importlib.util import find_spec
from pathlib import Path
found = find_spec("KratosMultiphysics")
places = found.submodule_search_locations if found else ()
print("fluxloom:", any((Path(place) / "FluidDynamicsApplication").is_dir() for place in places))
"""
_PATIENCE = 60.0
_ITERATIONS = re.compile(r"AMGCLSolver: (\d+) iterations")


@dataclass
class StepLog:
    """Reads what Kratos and `fluxloom_lab.peers.kratos_peer` print, and the clock when they do.

    Kratos' fractional-step strategy says when it begins with the pressure and when with the correction, at the echo
    level 1; its ``amgcl`` the number of iterations, at the verbosity 3.

    Attributes
    ----------
    seconds, cpu_seconds
        Of each step, of the clock and of all threads together, as the program itself has measured them.
    momentum, pressure
        Parts of each step: until the pressure begins, and until the correction begins.
    iterations
        Of each step's pressure solve.
    sweeps
        Solves of the momentum equations, of all steps.
    threads, version
        Of Kratos, as it says.
    """

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    momentum: list[float] = field(default_factory=list)
    pressure: list[float] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    sweeps: int = 0
    threads: int = 0
    version: str = ""
    _mark: float = 0.0
    _count: int = 0

    def line(self, text: str) -> None:
        """Take a line that was printed now."""
        if text.startswith("fluxloom: "):
            self._own(text.split()[1:])
        elif "FRAC VEL.: ratio" in text:
            self.sweeps += 1
        elif text.endswith("Calculating Pressure."):
            self.momentum.append(self._lap())
        elif text.endswith("Updating Velocity."):
            self.pressure.append(self._lap())
        elif found := _ITERATIONS.search(text):
            self._count = int(found[1])

    def _own(self, words: list[str]) -> None:
        """Take a line of the script that drives Kratos."""
        if words[0] == "step":
            self._mark, self._count = time.perf_counter(), 0
        elif words[0] == "done":
            self.seconds.append(float(words[1]))
            self.cpu_seconds.append(float(words[2]))
            self.iterations.append(self._count or int(words[3]))
        elif words[0] == "threads":
            self.threads = int(words[1])
        elif words[0] == "version":
            self.version = words[1].replace('"', "").partition("-")[0]

    def _lap(self) -> float:
        """Return the seconds since the last mark, and set it."""
        before, self._mark = self._mark, time.perf_counter()
        return self._mark - before

    def require(self, steps: int, threads: int, most: int) -> None:
        """Raise where something else was done than was asked for.

        Raises
        ------
        FluxloomError
            If it made other steps, on other threads, or the pressure ended at its most iterations.
        """
        if not len(self.seconds) == len(self.momentum) == len(self.pressure) == steps:
            raise FluxloomError(
                f"Kratos made {len(self.seconds)} steps with {len(self.pressure)} pressures instead of {steps}"
            )
        if self.threads != threads:
            raise FluxloomError(f"Kratos ran on {self.threads} threads instead of {threads}: see OMP_NUM_THREADS")
        if (worst := max(self.iterations)) >= most:
            raise FluxloomError(f"Kratos' pressure of a step made {worst} iterations: it has not converged")


@dataclass(frozen=True, eq=False)
class KratosFlow:
    """What Kratos computed.

    Attributes
    ----------
    log
        Of its steps.
    velocity, reaction : (points, 3)
        At the end; the reaction is the force that holds points whose velocity is given.
    pressure : (points,)
        At the end.
    """

    log: StepLog
    velocity: Array
    pressure: Array
    reaction: Array


@dataclass(frozen=True)
class Kratos:
    """Kratos on this machine.

    Attributes
    ----------
    python
        The interpreter that has it.
    """

    python: str

    def run(self, case: KratosCase, folder: Path, threads: int, seconds: float) -> KratosFlow:
        """Run a case in an empty folder.

        Parameters
        ----------
        threads
            Of OpenMP.
        seconds
            When the program is ended.

        Raises
        ------
        FluxloomError
            If it fails, or does something else than was asked for.
        """
        case.write(folder)
        log = StepLog()
        environment = without_launcher() | {"OMP_NUM_THREADS": str(threads)}
        # Isolated, so that nothing of the environment that runs us is found in place of its own packages.
        run_program(
            [self.python, "-I", str(_PEER), str(case.steps), MODEL], name="Kratos", folder=folder,
            environment=environment, seconds=seconds, line=log.line,
        )  # fmt: skip
        log.require(case.steps, threads, case.most_iterations)
        return KratosFlow(log, *read_result(folder / "result.npz", case.cavity.mesh.n_points))


def find_kratos(python: str = "") -> Kratos:
    """Return Kratos: of the interpreter that is named, of that in the environment variable, or of any in the path.

    Raises
    ------
    DeviceUnavailable
        If no interpreter has it; the message says how to install it.
    """
    named = python or os.environ.get(VARIABLE, "")
    candidates = [named] if named else [sys.executable, *filter(None, map(shutil.which, ("python3", "python")))]
    candidates = list(dict.fromkeys(candidates))
    for candidate in candidates:
        if _has_kratos(candidate):
            return Kratos(candidate)
    tried = ", ".join(candidates)
    raise DeviceUnavailable(f"comparing with Kratos needs an interpreter that has it, not {tried}: {_INSTALL}")


def _has_kratos(python: str) -> bool:
    """Return whether an interpreter has Kratos and its application for fluids, without loading them."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _LOOK], capture_output=True, text=True, check=False, timeout=_PATIENCE,
            env=without_launcher(),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "fluxloom: True" in done.stdout


def read_result(path: Path, points: int) -> tuple[Array, Array, Array]:
    """Return velocity, pressure and reaction at the points, of the file that `kratos_peer` wrote.

    Raises
    ------
    FluxloomError
        If the file is missing, or has other points.
    """
    wanted = {"velocity": (points, 3), "pressure": (points,), "reaction": (points, 3)}
    try:
        with np.load(path) as file:
            found = {name: np.asarray(file[name], dtype=np.float64) for name in wanted}
    except (OSError, KeyError, ValueError) as error:
        raise FluxloomError(f"{path}: no result of Kratos: {error}") from error
    for name, shape in wanted.items():
        if found[name].shape != shape:
            raise FluxloomError(f"{path}: {name} has the shape {found[name].shape} instead of {shape}")
    return found["velocity"], found["pressure"], found["reaction"]
