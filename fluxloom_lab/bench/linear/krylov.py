"""The benchmark of iterative solvers: one Poisson problem, every preconditioner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Any

import numpy as np

from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.approximate_inverse import ApproximateInverse
from fluxloom.linalg.precond.chebyshev import Chebyshev
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.precond.ssor import SSOR
from fluxloom.linalg.status import Stop
from fluxloom.machine.ranks import rank_devices_of
from fluxloom_lab.bench.base import Record, Tell, box_from_text
from fluxloom_lab.bench.options import Ranked, cells_option, rounds_option
from fluxloom_lab.bench.rounds import stopwatch, summed
from fluxloom_lab.options import option
from fluxloom_lab.peers.krylov_peers import LinearSystem, krylov_peers
from fluxloom_lab.problems.boxes import lattice_matrix, usual_side
from fluxloom_lab.problems.matrices import lattice_laplacian

__all__ = ["KrylovBench"]

ROUNDS = 3
SIDE_PYTHON, SIDE_CPU, SIDE_GPU = 6, 96, 256
TOLERANCE, MOST = 1e-8, 3000
_SEED = 1

RECIPES: dict[str, Preconditioner | None] = {
    "none": None,
    "jacobi": Jacobi(),
    "chebyshev": Chebyshev(),
    "approximate inverse": ApproximateInverse(),
    "ssor": SSOR(),
    "smoothed aggregation": SmoothedAggregation(),
}


@dataclass(frozen=True)
class _Problem:
    """Matrix, right-hand side ``b = A x``, the solution wanted, and the vector for the one that is found."""

    matrix: SparseMatrix
    b: Dat
    x: Dat
    wanted: np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class KrylovOptions(Ranked):
    """Options of the benchmark ``krylov``."""

    cells: str = cells_option("Size of the box: N or NX,NY,NZ.")
    rounds: int = rounds_option()
    peers: str = option("", metavar="NAMES", help="Programs to compare with: petsc.")


class KrylovBench:
    """Solves ``A x = b`` with conjugate gradients and one preconditioner after the other, from zero to 1e-8.

    ``A`` is the seven-point Laplacian of a box with zeros around it, kept as any other sparse matrix, ``x`` random
    numbers. Times are those of the slowest rank, the median of several solves; the set-up comes before them.
    ``--peers petsc`` solves the same system with PETSc and hypre, as many processes as there are threads.
    """

    title = "Conjugate gradients on the Poisson problem of a box, with each preconditioner"
    options = KrylovOptions

    def run(self, options: KrylovOptions, tell: Tell) -> Record:
        """Measure."""
        context, comm = options.context(), options.comm
        shape = box_from_text(options.cells, usual_side(context, SIDE_PYTHON, SIDE_CPU, SIDE_GPU))
        if prod(shape) >= 2**31:
            raise CaseError(f"--cells {options.cells!r}: a box of fewer than 2**31 cells is wanted")
        peers = krylov_peers(options.peers, context, options.rounds or ROUNDS, tell)
        tell(f"building {' x '.join(str(n) for n in reversed(shape))} cells on {context!r}")
        problem = _problem(context, shape)
        meter = meter_for(context.device)
        copies, rows = [], []
        for name, row in _methods(options, problem, tell):
            copies.append(meter.measure().copy_gbs)
            rows.append({"preconditioner": name} | row)
        crew, best = rank_devices_of(context), _best(rows)
        if best is None:
            raise CaseError(f"krylov: no method solved the problem of {shape}")
        others = list(peers(_system(problem, shape))) if peers is not None else []
        return Record(
            case="krylov",
            model="conjugate gradients, seven-point Laplacian",
            **crew.place,
            precision="float64",
            sizes={"cells": prod(shape)},
            copy_gbs=summed(comm, median(copies)),
            seconds=best["seconds"],
            metrics={
                "seconds_per_solve": best["seconds"], "best": best["preconditioner"], "shape": list(shape),
                "rtol": TOLERANCE, "threads": context.threads, **_compared(best, others), "methods": rows,
            } | ({"peers": others} if others else {}),
            loops=(),
            command=options.command,
        )  # fmt: skip


def _problem(context: Context, shape: tuple[int, ...]) -> _Problem:
    """Return the problem; on several ranks each has consecutive rows."""
    matrix, numbers, _ = lattice_matrix(context, shape)
    wanted = np.random.default_rng(_SEED).standard_normal(prod(shape))
    b = context.dat(matrix.rows, name="b", shape=(), dtype="float64")
    x = context.dat(matrix.rows, wanted[numbers], "x")
    matrix.product(x, b)()
    return _Problem(matrix, b, x, wanted[numbers])


def _system(problem: _Problem, shape: tuple[int, ...]) -> LinearSystem:
    """Return the system of one rank for other libraries."""
    return LinearSystem(lattice_laplacian(shape), problem.b.read(), problem.wanted, TOLERANCE, MOST)


def _best(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the method that solved the problem in the least time."""
    return min((row for row in rows if row.get("converged")), key=lambda row: row["seconds"], default=None)


def _compared(best: dict[str, Any], others: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fastest of the peers, and its time over that of our fastest method."""
    peer = _best(others)
    if peer is None:
        return {}
    return {"best_peer": peer["preconditioner"], "best_peer_over_best": peer["seconds"] / best["seconds"]}


def _methods(options: KrylovOptions, problem: _Problem, tell: Tell) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, recipe in RECIPES.items():
        try:
            row = _method(options, problem, name, recipe)
        except FluxloomError as error:
            tell(f"{name}: {error}")
            yield name, {"converged": False, "error": str(error)}
            continue
        tell(
            f"{name}: {row['iterations']} iterations, {row['seconds']:.4g} s, {row['ms_per_iteration']:.4g} ms an "
            f"iteration, set-up {row['setup_seconds']:.3g} s"
        )
        yield name, row


def _method(options: KrylovOptions, problem: _Problem, name: str, recipe: Preconditioner | None) -> dict[str, Any]:
    matrix, x = problem.matrix, problem.x
    context, comm = x.context, options.comm
    watch = stopwatch(context)
    built, setup = watch.result(lambda: recipe.build(matrix) if recipe is not None else None)
    solver = ConjugateGradient(
        matrix, problem.b, x, preconditioner=built, stop=Stop(rtol=TOLERANCE, iterations=MOST), name=name
    )
    zero = np.zeros(problem.wanted.shape)
    seconds, status = [], None
    for _ in range(1 + (options.rounds or ROUNDS)):
        x.write(zero)
        status, taken = watch.result(solver.solve)
        seconds.append(taken)
    assert status is not None
    count = max(1, status.iterations)
    error = comm.reduce(np.array([np.abs(x.read() - problem.wanted).max(initial=0.0)]), "max")
    rest = Dat(matrix.rows, name="rest")
    matrix.residual(x, problem.b, rest)()
    squares = comm.reduce(np.array([np.sum(rest.read() ** 2), np.sum(problem.b.read() ** 2)]), "sum")
    mine = sum(loop.report().useful_bytes for loop in solver.body.loops) / solver.interval
    useful = summed(comm, mine)
    return {
        "converged": status.converged,
        "iterations": status.iterations,
        "relative_residual": status.relative,
        "true_residual": float(np.sqrt(squares[0] / squares[1])),
        "error": float(error[0]),
        "setup_seconds": setup,
        "first_seconds": seconds[0],
        "seconds": median(seconds[1:]),
        "seconds_best": min(seconds[1:]),
        "ms_per_iteration": 1e3 * median(seconds[1:]) / count,
        "useful_gbs": 1e-9 * useful * count / median(seconds[1:]),
    }

