"""Other libraries for the problem of the benchmark ``krylov``: PETSc with its own and hypre's preconditioners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.peers.petsc import Petsc, Solution, find_petsc, write_system
from fluxloom_lab.peers.programs import peers_from_text

__all__ = ["HYPRE", "METHODS", "PETSC_METHODS", "LinearSystem", "krylov_peers"]

Array = npt.NDArray[np.float64]

HYPRE = ("-pc_type", "hypre", "-pc_hypre_type", "boomeramg")
PETSC_METHODS: dict[str, tuple[str, ...]] = {
    "none": ("-pc_type", "none"),
    "jacobi": ("-pc_type", "jacobi"),
    "ssor": ("-pc_type", "sor"),
    "gamg": ("-pc_type", "gamg"),
    "boomeramg": HYPRE,
    "boomeramg, 3d": (
        *HYPRE, "-pc_hypre_boomeramg_strong_threshold", "0.5", "-pc_hypre_boomeramg_coarsen_type", "HMIS",
        "-pc_hypre_boomeramg_interp_type", "ext+i", "-pc_hypre_boomeramg_P_max", "4",
    ),
}  # fmt: skip
"""Preconditioners by name: PETSc's as they are by default, hypre's also as its manual advises for three dimensions."""

METHODS = {"petsc": PETSC_METHODS}
"""The methods of each peer."""

_SECONDS = 1800.0
_HONEST = 2.0
"""By how much the residual may exceed the one wanted: that of the recursion drifts away from the true one."""


@dataclass(frozen=True)
class LinearSystem:
    """What is to be solved: ``A x = b`` from zero, until ``|b - A x| <= rtol |b|``.

    Attributes
    ----------
    matrix
        Of SciPy, in compressed rows, ``(n, n)``, symmetric and positive.
    b : (n,)
        The right-hand side.
    wanted : (n,)
        The solution.
    rtol, iterations
        Where to end.
    """

    matrix: Any
    b: Array
    wanted: Array
    rtol: float
    iterations: int

    def relative_residual(self, x: Array) -> float:
        """Return ``|b - A x| / |b|``."""
        return float(np.linalg.norm(self.b - self.matrix @ x) / np.linalg.norm(self.b))

    def error(self, x: Array) -> float:
        """Return the largest difference from the solution."""
        return float(np.abs(x - self.wanted).max(initial=0.0))


def krylov_peers(
    names: str, context: Context, rounds: int, tell: Tell
) -> Callable[[LinearSystem], Iterator[dict[str, Any]]] | None:
    """Return what measures the peers that are named, None where none is.

    What is missing is said now, before anything is measured. The result yields the rows of a table, like those of our
    own methods; a method that fails has a row with the error.

    Parameters
    ----------
    names
        As ``--peers`` has them.
    context
        Of our own methods: a peer has as many processes as it has threads.
    rounds
        Timed solves.

    Raises
    ------
    CaseError
        If there is no such peer, or our own methods do not run on one rank of processor cores.
    DeviceUnavailable
        If a library is not installed.
    """
    if not peers_from_text(names, METHODS):
        return None
    if context.comm.size > 1 or context.device.name != "cpu":
        raise CaseError(
            f"--peers {names} runs on the cores of a processor, as many processes as we have threads: give "
            "--device cpu and --threads, on one rank"
        )
    petsc = find_petsc()
    hypre, count = "with" if petsc.hypre else "without", f"{context.threads} process{'es' * (context.threads > 1)}"
    tell(f"PETSc {petsc.version} {hypre} hypre, {count} of {petsc.family or 'an unknown MPI'}")

    def measure(system: LinearSystem) -> Iterator[dict[str, Any]]:
        with TemporaryDirectory(prefix="fluxloom-petsc-") as name:
            folder = Path(name)
            write_system(folder, system.matrix, system.b, petsc.index)
            for method in PETSC_METHODS:
                yield _row(petsc, folder, system, method, context.threads, rounds, tell)

    return measure


def _row(
    petsc: Petsc, folder: Path, system: LinearSystem, method: str, processes: int, rounds: int, tell: Tell
) -> dict[str, Any]:
    """Solve with one method of PETSc."""
    title = {"preconditioner": f"petsc {method}"}
    words = (
        "-ksp_type", "cg", "-ksp_norm_type", "unpreconditioned", "-ksp_rtol", repr(system.rtol), "-ksp_atol", "0",
        "-ksp_max_it", str(system.iterations), *PETSC_METHODS[method],
    )  # fmt: skip
    try:
        if "hypre" in words and not petsc.hypre:
            raise FluxloomError(f"PETSc {petsc.version} was built without hypre; that of libpetsc-real-dev has it")
        found = petsc.solve(folder, words, processes, rounds, _SECONDS)
        row = _numbers(system, found)
    except FluxloomError as error:
        tell(f"PETSc, {method}: {error}")
        return title | {"converged": False, "error": str(error)}
    tell(
        f"PETSc, {method}: {row['iterations']} iterations, {row['seconds']:.4g} s, {row['ms_per_iteration']:.4g} ms an "
        f"iteration, set-up {row['setup_seconds']:.3g} s"
    )
    return title | row


def _numbers(system: LinearSystem, found: Solution) -> dict[str, Any]:
    """Return the numbers of a solve.

    Raises
    ------
    FluxloomError
        If it claims to have converged and has not.
    """
    true = system.relative_residual(found.x)
    if found.converged and not true <= _HONEST * system.rtol:
        raise FluxloomError(f"claims to have converged to {found.relative:.3g}, but |b - A x| / |b| is {true:.3g}")
    return {
        "converged": found.converged,
        "iterations": found.iterations,
        "relative_residual": found.relative,
        "true_residual": true,
        "error": system.error(found.x),
        "setup_seconds": found.setup_seconds,
        "first_seconds": found.first_seconds,
        "seconds": median(found.seconds),
        "seconds_best": min(found.seconds),
        "ms_per_iteration": 1e3 * median(found.seconds) / max(1, found.iterations),
    }
