"""PETSc as a program of its own: found by pkg-config, built once, given a system in a file, and run.

PETSc brings an MPI of its own, mostly another one than that of mpi4py: it shares no process with us. The files are
those of PETSc's binary viewer: a class number, sizes and the arrays, of each number the greatest byte first (PETSc's
manual pages of ``MatLoad`` and ``VecLoad``).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom_lab.peers.programs import build_program, launched, package_flags, run_program

__all__ = ["Petsc", "Solution", "find_petsc", "read_vector", "write_system"]

Array = npt.NDArray[np.float64]

_MATRIX, _VECTOR = 1211216, 1211214
_REAL = np.dtype(">f8")
_INSTALL = (
    "install it (Debian, Ubuntu: `apt install pkg-config libpetsc-real-dev`, which brings hypre) or name the folder "
    "of its petsc.pc in the environment variable PKG_CONFIG_PATH"
)


@dataclass(frozen=True)
class Solution:
    """What a solve with PETSc gave.

    Attributes
    ----------
    x : (n,)
        The solution.
    processes
        How many worked.
    iterations, converged, reason
        Of the Krylov method; the reason is PETSc's word.
    relative
        Length of the residual over that of the right-hand side, as PETSc says.
    setup_seconds
        Of the preconditioner.
    seconds
        Of each solve after the first one.
    first_seconds
        Of the first one.
    """

    x: Array
    processes: int
    iterations: int
    converged: bool
    reason: str
    relative: float
    setup_seconds: float
    first_seconds: float
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Petsc:
    """PETSc on this machine.

    Attributes
    ----------
    program
        Ours, linked with it.
    version
        As ``"3.18.5"``.
    hypre
        Whether it can call hypre.
    index
        Type of its integers in files.
    family
        Its MPI: ``"Open MPI"``, ``"MPICH"`` or empty.
    """

    program: Path
    version: str
    hypre: bool
    index: np.dtype[Any]
    family: str

    def solve(self, folder: Path, options: Sequence[str], processes: int, rounds: int, seconds: float) -> Solution:
        """Solve the system that `write_system` wrote into a folder, some rounds after one that does not count.

        Parameters
        ----------
        options
            Of PETSc, as ``("-ksp_type", "cg")``.
        seconds
            When the program is ended.

        Raises
        ------
        FluxloomError
            If it fails, or other processes worked than were asked for.
        """
        result = folder / "solution"
        words = [
            str(self.program), "-system", str(folder / "system"), "-solution", str(result), "-rounds", str(1 + rounds),
            "-viewer_binary_skip_info", "true", *options,
        ]  # fmt: skip
        command, environment = launched(words, processes, self.family)
        said = run_program(command, name="PETSc", folder=folder, environment=environment, seconds=seconds)
        told = _told(said)
        if told["processes"] != processes:
            raise FluxloomError(
                f"PETSc ran as {told['processes']} processes instead of {processes}: {command[0]} is of another MPI "
                f"than its {self.family}; put the folder of the right one first in PATH"
            )
        first, *others = told["seconds"]
        return Solution(
            x=read_vector(result, self.index), processes=processes, iterations=told["iterations"],
            converged=told["converged"], reason=told["reason"], relative=told["relative"],
            setup_seconds=told["setup_seconds"], first_seconds=first, seconds=tuple(others),
        )  # fmt: skip


def find_petsc() -> Petsc:
    """Return PETSc, after building our program for it.

    Raises
    ------
    DeviceUnavailable
        If there is no PETSc, or one for complex numbers only; the message names the Debian package.
    CompileError
        If our program cannot be built with it.
    """
    if shutil.which("pkg-config") is None and shutil.which("pkgconf") is None:
        raise DeviceUnavailable(f"comparing with PETSc needs PETSc and pkg-config, which is not here: {_INSTALL}")
    flags = package_flags(("petsc", "PETSc"))
    if not flags:
        raise DeviceUnavailable(f"comparing with PETSc needs PETSc, which pkg-config does not find: {_INSTALL}")
    source = resources.files("fluxloom_lab.peers").joinpath("petsc_peer.c").read_text(encoding="utf-8")
    program = build_program(source, "petsc_peer", (*flags, *package_flags(("mpi-c", "ompi-c", "mpich"))))
    command, environment = launched([str(program), "-about"], 1, "Open MPI")
    told = _told(run_program(command, name="PETSc", environment=environment, seconds=120.0))
    if told["scalar_bytes"] != 8:
        raise DeviceUnavailable(f"the PETSc that pkg-config finds is not for real numbers of 64 bits: {_INSTALL}")
    mpi = str(told["mpi"])
    family = "Open MPI" if "Open MPI" in mpi else "MPICH" if "MPICH" in mpi or "Intel" in mpi else ""
    return Petsc(program, told["version"], bool(told["hypre"]), np.dtype(f">i{told['index_bytes']}"), family)


def _told(lines: Sequence[str]) -> dict[str, Any]:
    """Return the object among the lines of a program: that in the last line which begins with a brace."""
    for text in reversed(lines):
        if text.startswith("{"):
            try:
                return json.loads(text)
            except ValueError:
                break
    raise FluxloomError("\n".join(["PETSc ended without a result; it said:", *lines[-10:]]))


# ---------------------------------------------------------------------------------------------- files


def write_system(folder: Path, matrix: Any, b: npt.ArrayLike, index: np.dtype[Any]) -> None:
    """Write a matrix and a right-hand side for PETSc, in this order into one file.

    Parameters
    ----------
    matrix
        Of SciPy, in compressed rows, ``(n, n)``.
    b : (n,)
        The right-hand side.
    index
        Type of PETSc's integers.
    """
    rows, columns = matrix.shape
    with (folder / "system").open("wb") as file:
        np.array([_MATRIX, rows, columns, matrix.nnz], dtype=index).tofile(file)
        np.diff(matrix.indptr).astype(index).tofile(file)
        matrix.indices.astype(index).tofile(file)
        matrix.data.astype(_REAL).tofile(file)
        np.array([_VECTOR, rows], dtype=index).tofile(file)
        np.asarray(b).astype(_REAL).tofile(file)


def read_vector(path: Path, index: np.dtype[Any]) -> Array:
    """Return a vector that PETSc wrote.

    Raises
    ------
    FluxloomError
        If the file holds something else.
    """
    with path.open("rb") as file:
        head = np.fromfile(file, dtype=index, count=2)
        values = np.fromfile(file, dtype=_REAL)
    if head.size < 2 or head[0] != _VECTOR or head[1] != values.size:
        raise FluxloomError(f"{path} holds no vector of PETSc")
    return values.astype(np.float64)
