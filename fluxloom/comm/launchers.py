"""The program that started this process as one of several: what the environment says of it, and what it has to hear.

A rank that ends with status 0 in the middle of a run must not let the whole run look as if it had ended well. Launchers
pass on the status of the rank that goes first and kill the others: nothing they do can change it any more.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

__all__ = [
    "BEGUN", "STATUS_FILE", "Launcher", "find_launcher", "mark", "refuse_early_exit", "unmark",
    "without_launcher",
]  # fmt: skip

STATUS_FILE = "FLUXLOOM_RANKS_STATUS"
"""Environment variable: the file in which a rank that ends the others leaves the exit status."""

# What a launcher is called; the variable that only it sets; that with the number of processes; the library it starts.
_KNOWN = (
    ("mpiexec of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "Open MPI"),
    ("mpiexec of MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MPICH"),
    ("mpiexec of MPICH or Intel MPI", "MPI_LOCALNRANKS", "PMI_SIZE", "MPICH"),
    ("jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_SIZE", ""),
    ("srun of Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", ""),
    ("flux run", "FLUX_JOB_SIZE", "FLUX_JOB_SIZE", ""),
    ("a launcher that speaks PMI", "PMI_RANK", "PMI_SIZE", ""),
    ("a launcher that speaks PMIx", "PMIX_RANK", "", ""),
)
# Variables of a process that was launched, and the one whose presence tells them from settings of the user.
_TOLD = (
    ("PMI_", ""), ("MPI_LOCAL", ""), ("MV2_COMM_WORLD_", ""), ("FLUXLOOM_RANKS", ""),
    ("PMIX_", "PMIX_RANK"), ("OMPI_", "OMPI_COMM_WORLD_SIZE"), ("PRTE_", "OMPI_COMM_WORLD_SIZE"),
)  # fmt: skip


@dataclass(frozen=True)
class Launcher:
    """The program that started this process.

    Attributes
    ----------
    name
        What it is called.
    processes
        How many processes it started; 0 where it does not say.
    family
        ``"MPICH"`` or ``"Open MPI"`` where it starts programs of that library only, else empty.
    """

    name: str
    processes: int
    family: str


def find_launcher(environment: Mapping[str, str] | None = None) -> Launcher | None:
    """Return the launcher that this process was started by, None without one.

    A step of Slurm with one task is an interactive shell as well as a run: it counts as none.

    Parameters
    ----------
    environment
        Variables; those of the process by default.
    """
    variables = os.environ if environment is None else environment
    for name, mark, size, family in _KNOWN:
        if mark not in variables:
            continue
        text = variables.get(size, "")
        processes = int(text) if text.isdigit() else 0
        if not size:  # PMIx tells a process its number only
            processes = max(0, int(variables[mark]) + 1) if variables[mark].isdigit() else 0
            processes = processes if processes > 1 else 0
        if name.startswith("srun") and processes == 1:
            continue
        return Launcher(name, processes, family)
    return None


def without_launcher(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without what a launcher told this process; the next one will tell its own.

    Settings of the user for a launcher stay.
    """
    variables = os.environ if environment is None else environment
    told = tuple(prefix for prefix, mark in _TOLD if not mark or mark in variables)
    return {name: value for name, value in variables.items() if not name.startswith(told)}


BEGUN = "begun"
"""What stands in the file of `STATUS_FILE` from the first communicator until all ranks have come to their end."""


def mark() -> None:
    """Tell the program that started the ranks that they have begun. One rank does."""
    if name := os.environ.get(STATUS_FILE):
        Path(name).write_text(BEGUN, encoding="ascii")


def unmark() -> None:
    """Tell it that all ranks have come to their end."""
    if name := os.environ.get(STATUS_FILE):
        Path(name).unlink(missing_ok=True)


def refuse_early_exit(may: Callable[[], bool], abort: Callable[[str], NoReturn]) -> None:
    """Let ``os._exit(0)`` end all ranks with a status other than 0, in this process and not in copies of it.

    Parameters
    ----------
    may
        Whether this rank may go.
    abort
        Ends all ranks, and says why.
    """
    leave, process = os._exit, os.getpid()
    if hasattr(leave, "__wrapped__"):
        return

    @functools.wraps(leave)
    def leave_or_abort(status: int) -> NoReturn:
        if status == 0 and os.getpid() == process and not may():
            abort("os._exit(0) in the middle of the run: all ranks are ended; leave by the end of the program, an "
                  "exception or sys.exit")  # fmt: skip
        leave(status)

    os._exit = leave_or_abort
