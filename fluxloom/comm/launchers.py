"""What the environment says about the program that started this process as one of several."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["STATUS_FILE", "Launcher", "find_launcher", "without_launcher"]

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
